//! Reductions and scans of tiles in memory, and of parts of fragments.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};

fn number(at: i64) -> f64 {
    ((at * 37) % 101) as f64 / 16.0 - 9.0
}

fn row(n: i64, r: i64) -> impl Iterator<Item = f64> + Clone {
    (r * n..r * n + n).map(number)
}

#[test]
fn rows_of_a_tensor_are_reduced_to_another_tensor() {
    let kernel = kernel("rows", |k| {
        let (m, n) = (k.size("m"), k.size("n").max(100));
        let x = k.input("x", F32, (m, n));
        let y = k.output("y", F32, (m,));
        let [block] = k.grid([m.ceil_div(4)]);
        k.threads(64);
        k.reduce(Max, y.sub((at(block * 4, 4),)), x.sub((at(block * 4, 4), at(0, 128))), 1);
    });
    for n in [1, 31, 64, 100] {
        // Two rows of the second block lie beyond the edge, and columns from `n` on.
        let y = tensor(F32, &[6], |r| row(n, r).fold(f64::NEG_INFINITY, f64::max));
        check(&kernel, &[("m", 6), ("n", n)], &[tensor(F32, &[6, n], number)], &[y], Tolerance::EXACT);
    }
}

#[test]
fn what_was_reduced_before_is_accumulated_in_memory() {
    let kernel = kernel("halves", |k| {
        let x = k.input("x", F32, [4, 64]);
        let y = k.output("y", F32, [4]);
        k.threads(64);
        let (tile, sums) = (k.shared("tile", F32, [4, 64]), k.shared("sums", F32, [4]));
        k.copy(tile, x);
        k.reduce(Sum, sums, tile.sub((.., 0..32)), 1);
        k.reduce(Sum, sums, tile.sub((.., 32..64)), 1).accumulate();
        k.copy(y, sums);
    });
    let y = tensor(F32, &[4], |r| row(64, r).sum());
    check(&kernel, &[], &[tensor(F32, &[4, 64], number)], &[y], Tolerance::EXACT);
}

#[test]
fn a_part_of_a_fragment_is_reduced() {
    let kernel = kernel("part", |k| {
        let x = k.input("x", F32, [8, 32]);
        let y = k.output("y", F32, [4]);
        k.threads(32);
        let (tile, least) = (k.fragment("tile", F32, [8, 32]), k.fragment("least", F32, [8]));
        k.copy(tile, x);
        k.fill(least, 0.0);
        k.reduce(Min, least.sub((4..8,)), tile.sub((2..6, ..)), 1);
        k.copy(y, least.sub((4..8,)));
    });
    let y = tensor(F32, &[4], |r| row(32, r + 2).fold(f64::INFINITY, f64::min));
    check(&kernel, &[], &[tensor(F32, &[8, 32], number)], &[y], Tolerance::EXACT);
}

#[test]
fn a_tile_in_shared_memory_is_scanned_in_place() {
    let kernel = kernel("in_place", |k| {
        let x = k.input("x", F32, [4, 64]);
        let y = k.output("y", F32, [4, 64]);
        k.threads(64);
        let tile = k.shared("tile", F32, [4, 64]);
        k.copy(tile, x);
        k.scan(Sum, tile, tile, 1);
        k.copy(y, tile);
    });
    let y = tensor(F32, &[4, 64], |at| (at / 64 * 64..=at).map(number).sum());
    check(&kernel, &[], &[tensor(F32, &[4, 64], number)], &[y], Tolerance::EXACT);
}

#[test]
fn the_copies_are_ops_with_plans() {
    let kernel = kernel("direct", |k| {
        let x = k.input("x", F32, [8, 64]);
        let y = k.output("y", F32, [8]);
        k.threads(64);
        k.reduce(Sum, y, x, 1);
    });
    let artifact = compile(kernel, &Options::new(Target::Sm100a)).expect("the kernel is right");
    let titles: Vec<&str> = artifact.plans().iter().map(|plan| plan.title.as_str()).collect();
    assert_eq!(titles, ["copy(x_held, x)", "reduce(y_held, x_held, sum, dimension 1)", "copy(y, y_held)"]);
}
