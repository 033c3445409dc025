//! The pictures of the page: kernels, and the steps of a warp in one op of each.

use tilewright::ir::tile::verify;
use tilewright::layout::TableLayout;
use tilewright::lower::{Options, lower};
use tilewright::prelude::*;
use tilewright::viz::schedule::Schedule;
use tilewright_kernels::find;

use super::shuffled;

/// The pictures, by name, as SVG.
pub fn pictures() -> Vec<(&'static str, String)> {
    vec![
        ("naive", picture(naive(), "elementwise")),
        ("xor", picture(warp_transpose(F32, 4, 32), "warp_xor_swizzle")),
        ("blocks", picture(warp_transpose(F32, 32, 32), "warp_vectorized")),
        ("packed", picture(warp_transpose(B8, 32, 32), "warp_packed")),
        ("table", picture(shuffle(), "warp_scheduled")),
    ]
}

/// Whether the picture of this name shows the op of this kernel that uses the variant.
pub fn is_picture(name: &str, kernel: Kernel, variant: &str) -> bool {
    let drawn = picture(kernel, variant);
    pictures().into_iter().any(|(known, svg)| known == name && svg == drawn)
}

/// A drawing of what a warp does in the op for which `variant` is requested.
fn picture(kernel: Kernel, variant: &str) -> String {
    let target = Target::Sm100a;
    let kernel = verify(kernel, target).expect("the kernel is right");
    let options = Options { variant: Some(variant.to_string()) };
    let program = lower(&kernel, target, &options).expect("the variant accepts it");
    let op = program.plans.iter().position(|plan| plan.forced && plan.chosen == variant).expect("an op of the variant");
    let schedule = Schedule::of(&program, op).expect("every index has a value").expect("the op touches shared memory");
    schedule.to_svg().expect("it can be drawn")
}

/// Rows become columns, element by element.
fn naive() -> Kernel {
    kernel("naive", |k| {
        k.threads(32);
        let tile = k.shared("tile", F32, [4, 32]);
        let columns = k.shared("columns", F32, S([4, 32], [1, 4]));
        k.warp().copy(columns, tile);
    })
}

fn warp_transpose(dtype: DType, rows: i64, cols: i64) -> Kernel {
    let entry = find("warp_transpose").expect("the kernel is in the library");
    let sizes = [("rows".to_string(), rows), ("cols".to_string(), cols)];
    (entry.build)(&entry.config(Some(dtype), &sizes).expect("a configuration"), Target::Sm100a)
}

/// A random bijection.
fn shuffle() -> Kernel {
    let positions = shuffled(256);
    let table = TableLayout::of_positions(&M, &positions).expect("every element has a place");
    kernel("shuffle", |k| {
        let a = k.input("a", F32, [256]);
        let b = k.output("b", F32, [256]);
        k.threads(32);
        let tile = k.shared("tile", F32, [256]);
        let mixed = k.view("mixed", tile, table);
        k.warp().copy(tile, a);
        k.warp().permute_layout(mixed, tile);
        k.warp().copy(b, tile);
    })
}
