//! Swizzled tiles are moved in vectors as wide as the swizzle keeps contiguous, with computed addresses.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright_tests::pages::{computes, tensor};

/// A buffer with two stages of 64 rows, the second of which is written and read: by copies, or element by element.
fn staged(dtype: DType, swizzle: &str, by_elements: bool) -> Kernel {
    let layout: Layout = format!("{swizzle} o S[(2,64,64):(4096,64,1)]").parse().expect("a layout");
    kernel("staged", |k| {
        let x = k.input("x", dtype, [64, 64]);
        let y = k.output("y", dtype, [64, 64]);
        let s = k.shared("s", dtype, ([2i64, 64, 64], layout));
        k.threads(128);
        k.serial("stage", 0..2, |k, stage| {
            if by_elements {
                k.parallel([64, 64], |k, [i, j]| k.store(s, (stage, i, j), x.at((i, j))));
                k.parallel([64, 64], |k, [i, j]| k.store(y, (i, j), s.at((stage, i, j))));
            } else {
                k.copy(s.sub((stage, .., ..)), x);
                k.copy(y, s.sub((stage, .., ..)));
            }
        });
    })
}

/// The widths of shared memory accesses, in bytes.
fn widths(kernel: &Kernel) -> Vec<i64> {
    let artifact = compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("the kernel is right");
    assert!(!artifact.cuda().contains("of_thread"), "{}", artifact.cuda());
    let chosen = artifact.plans().iter().map(|plan| {
        let found = plan.considered.iter().find(|one| one.variant == plan.chosen);
        found.and_then(|one| one.answer.as_ref().ok()).expect("the facts of what was chosen").clone()
    });
    let accesses = chosen.flat_map(|facts| facts.accesses.clone());
    let mut widths: Vec<i64> = accesses.filter(|access| access.operand == "s").map(|access| access.width).collect();
    widths.dedup();
    widths
}

/// `bytes`: of an access by copies, and of one element by element.
fn assert_moved(dtype: DType, swizzle: &str, bytes: [i64; 2]) {
    for (by_elements, bytes) in [false, true].into_iter().zip(bytes) {
        let kernel = staged(dtype, swizzle, by_elements);
        assert_eq!(widths(&kernel), [bytes], "{swizzle}, element by element: {by_elements}");
        let numbers = || tensor(dtype, &[64, 64], |at| (at % 97) as f64);
        computes(&kernel, &[numbers()], &[numbers()]);
    }
}

#[test]
fn an_atom_of_16_bytes_is_moved_at_once() {
    assert_moved(F16, "swizzle(M=3,B=3,S=3)", [16, 16]);
    assert_moved(F32, "swizzle(M=2,B=3,S=3)", [16, 16]);
}

#[test]
fn a_smaller_atom_is_moved_at_once() {
    assert_moved(F16, "swizzle(M=2,B=2,S=4)", [8, 8]);
    // All threads have two neighbours in one order, if they are found in another order than that of the tile.
    assert_moved(I8, "swizzle(M=0,B=2,S=4)", [1, 2]);
}

#[test]
fn a_larger_atom_is_moved_by_the_widest_vectors() {
    assert_moved(U8, "swizzle(M=5,B=1,S=3)", [16, 16]);
}
