//! The reasons with which variants of `permute_layout` refuse tiles.

use tilewright::compile::{Options, compile};
use tilewright::dsl::IntoLayout;
use tilewright::layout::TableLayout;
use tilewright::prelude::*;

use super::shuffled;

const XOR: &str = "warp_xor_swizzle";
const VECTORIZED: &str = "warp_vectorized";
const PACKED: &str = "warp_packed";
const SCHEDULED: &str = "warp_scheduled";

/// One line per reason, as diagnostics and plans print it.
pub(crate) fn refusals() -> Vec<String> {
    let table = TableLayout::of_positions(&M, &shuffled(128)).expect("every element has a place");
    [
        reasons(XOR, |k| pair(k, F32, (swizzle(), S([32, 32], [32, 1])), S([32, 32], [1, 32]))),
        reasons(XOR, |k| pair(k, F32, [12, 32], S([12, 32], [1, 12]))),
        reasons(XOR, |k| pair(k, F32, [4, 32], S([4, 32], [1, 32]))),
        reasons(VECTORIZED, |k| pair(k, F32, [4, 32], ([4, 32], table))),
        reasons(VECTORIZED, |k| pair(k, F32, S([4, 32], [64, 2]), S([4, 32], [2, 8]))),
        reasons(PACKED, |k| pair(k, F32, [4, 32], S([4, 32], [1, 4]))),
        reasons(PACKED, |k| pair(k, B8, [6, 32], S([6, 32], [1, 6]))),
        reasons(SCHEDULED, large_in_place),
        reasons(SCHEDULED, repeated),
        reasons(SCHEDULED, inside_a_word),
        reasons(SCHEDULED, inside_a_swizzle),
        reasons(SCHEDULED, over_an_edge),
    ]
    .concat()
}

/// The reasons why the variant refuses to move the second of two tiles to the first.
fn reasons(variant: &str, tiles: impl FnOnce(&mut KernelBuilder) -> [Region; 2]) -> Vec<String> {
    let kernel = kernel("refused", |k| {
        k.threads(32);
        let [dst, src] = tiles(k);
        k.warp().permute_layout(dst, src).variant(variant);
    });
    let found = compile(kernel, &Options::new(Target::Sm100a)).expect_err("the variant refuses");
    found.into_iter().flat_map(|finding| finding.notes).collect()
}

/// Two shared buffers: the destination of `tile`, and `tile`.
fn pair(k: &mut KernelBuilder, dtype: DType, tile: impl IntoLayout, turned: impl IntoLayout) -> [Region; 2] {
    let tile = k.shared("tile", dtype, tile);
    let turned = k.shared("turned", dtype, turned);
    [turned.into(), tile.into()]
}

fn swizzle() -> SwizzleLayout {
    SwizzleLayout::new(0, 5, 5, true).expect("a swizzle")
}

fn large_in_place(k: &mut KernelBuilder) -> [Region; 2] {
    let tile = k.shared("tile", F32, [120, 120]);
    let turned = k.view("turned", tile, S([120, 120], [1, 120]));
    [turned.into(), tile.into()]
}

fn repeated(k: &mut KernelBuilder) -> [Region; 2] {
    let tile = k.input("tile", F32, S([3, 32], [0, 1]));
    let turned = k.output("turned", F32, [3, 32]);
    [turned.into(), tile.into()]
}

/// Rows of 129 bytes may begin at any byte of a word.
fn inside_a_word(k: &mut KernelBuilder) -> [Region; 2] {
    let tile = k.input("tile", B8, [3, 129]);
    let turned = k.output("turned", B8, S([3, 128], [1, 3]));
    let [row] = k.grid([3]);
    [turned.sub((&row, ..)), tile.sub((&row, 0..128))]
}

/// A swizzle of 1024 elements, 256 of which form a tile.
fn inside_a_swizzle(k: &mut KernelBuilder) -> [Region; 2] {
    let tile = k.shared("tile", F32, (swizzle(), S([32, 32], [32, 1])));
    k.fill(tile, 0);
    let turned = k.output("turned", F32, S([32, 32], [32, 1]));
    let [part] = k.grid([4]);
    let rows = (at(&part * 8, 8), Index::All);
    [turned.sub(rows), tile.sub(rows)]
}

fn over_an_edge(k: &mut KernelBuilder) -> [Region; 2] {
    let n = k.size("n");
    let tile = k.input("tile", F32, (&n, 32));
    let turned = k.output("turned", F32, (&n, 32));
    let [part] = k.grid([n.ceil_div(24)]);
    let rows = (at(&part * 24, 24), Index::All);
    [turned.sub(rows), tile.sub(rows)]
}
