//! Elements that are read again after a store, by a value from before, and elements from beyond an edge.

use super::assert_rendered;
use tilewright::compile::{Options, compile};
use tilewright::prelude::*;

#[test]
fn an_element_that_is_read_again_after_a_store() {
    let kernel = kernel("decayed", |k| {
        let x = k.input("x", F32, [64]);
        let h = k.inout("h", F32, [64]);
        let y = k.output("y", F32, [64]);
        k.parallel([64], |k, [i]| {
            let new = h.at((i,)) * 0.5 + x.at((i,));
            k.store(h, (i,), new);
            k.store(y, (i,), new * 2.0);
        });
    });
    let artifact = compile(kernel, &Options::new(Target::Sm100a)).expect("the kernel is right");
    assert_rendered("an_element_that_is_read_again_after_a_store", &artifact.warnings());
}

#[test]
fn elements_that_are_read_as_their_stores_say() {
    let kernel = kernel("quiet", |k| {
        let h = k.inout("h", F32, [64]);
        let y = k.output("y", F32, [64]);
        let total = k.inout("total", F32, [64]);
        k.parallel([32], |k, [i]| {
            let other = h.at((i + 32,));
            let old = k.named("old", h.at((i,)));
            k.store(h, (i,), other);
            k.store(h, (i + 32,), old);
            // Made again, after the store.
            k.store(y, (i,), h.at((i,)));
            // One branch does not run after the other.
            let sum = total.at((i,));
            k.if_else(old.gt(0.0), |k| k.store(total, (i,), sum + 1.0), |k| k.store(total, (i,), sum - 1.0));
        });
    });
    let artifact = compile(kernel, &Options::new(Target::Sm100a)).expect("the kernel is right");
    assert!(artifact.warnings().is_empty(), "{:?}", artifact.warnings());
}

#[test]
fn an_element_that_a_branch_stored() {
    let kernel = kernel("branch", |k| {
        let total = k.inout("total", F32, [64]);
        let y = k.output("y", F32, [64]);
        k.parallel([64], |k, [i]| {
            let sum = total.at((i,));
            k.if_(sum.gt(0.0), |k| k.store(total, (i,), sum + 1.0));
            k.store(y, (i,), sum);
        });
    });
    let artifact = compile(kernel, &Options::new(Target::Sm100a)).expect("the kernel is right");
    assert_eq!(artifact.warnings().len(), 1);
}

#[test]
fn a_row_that_is_written_after_the_tile_hangs_over_an_edge() {
    let kernel = kernel("greatest", |k| {
        let n = k.size("n").max(64);
        let x = k.input("x", F32, (4, n));
        let y = k.output("y", F32, [4]);
        let tile = k.fragment("tile", F32, [4, 64]);
        let most = k.fragment("most", F32, [4]);
        k.copy(tile, x.sub((.., at(0, 64))));
        k.fill(tile.sub((0, ..)), -9.0);
        k.reduce(Max, most, tile, 1);
        k.copy(y, most);
    });
    let artifact = compile(kernel, &Options::new(Target::Sm100a)).expect("the kernel is right");
    assert_rendered("a_row_that_is_written_after_the_tile_hangs_over_an_edge", &artifact.warnings());
}

#[test]
fn a_number_beyond_a_tensor() {
    let kernel = kernel("last", |k| {
        let x = k.input("x", F32, [8]);
        let y = k.output("y", F32, [8]);
        k.parallel([8], |k, [i]| k.store(y, (i,), x.at((8,))));
    });
    let artifact = compile(kernel, &Options::new(Target::Sm100a)).expect("the kernel is right");
    assert_rendered("a_number_beyond_a_tensor", &artifact.warnings());
}
