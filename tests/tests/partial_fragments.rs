//! Fragments of which only a part is written: the rest is zero, whichever thread holds it.

use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, computes, tensor};

#[test]
fn a_row_that_some_threads_hold_is_filled() {
    let filled = kernel("filled", |k| {
        let y = k.output("y", F32, [64]);
        k.threads(64);
        let f = k.fragment("f", F32, [64]);
        let rows = k.view("rows", f, [8, 8]);
        k.fill(rows.sub((0, ..)), 2.0);
        k.copy(y, f);
    });
    computes(&filled, &[], &[tensor(F32, &[64], |i| if i < 8 { 2.0 } else { 0.0 })]);
}

#[test]
fn a_condition_on_the_indices_of_a_loop_leaves_elements_out() {
    let causal = kernel("causal", |k| {
        let y = k.output("y", F32, [32, 32]);
        k.threads(64);
        let f = k.fragment("f", F32, [32, 32]);
        k.parallel([32, 32], |k, [i, j]| k.if_(j.le(i), |k| k.store(f, (i, j), 1.0)));
        k.copy(y, f);
    });
    computes(&causal, &[], &[tensor(F32, &[32, 32], |at| if at % 32 <= at / 32 { 1.0 } else { 0.0 })]);
}

#[test]
fn rows_without_elements_sum_to_zero() {
    let summed = kernel("summed", |k| {
        let y = k.output("y", F32, [32]);
        k.threads(64);
        let (f, s) = (k.fragment("f", F32, [32, 32]), k.fragment("s", F32, [32]));
        k.fill(f.sub((0..16, ..)), 1.0);
        k.reduce(Sum, s, f, 1);
        k.copy(y, s);
    });
    computes(&summed, &[], &[tensor(F32, &[32], |i| if i < 16 { 32.0 } else { 0.0 })]);
}

#[test]
fn a_product_is_added_to_zero_where_nothing_was_written() {
    let product = kernel("product", |k| {
        let (a, b) = (k.input("a", F16, [32, 16]), k.input("b", F16, [16, 8]));
        let y = k.output("y", F32, [32, 8]);
        k.threads(64);
        let sums = k.fragment("sums", F32, [32, 8]);
        let (left, right) = (k.shared("left", F16, [32, 16]), k.shared("right", F16, [16, 8]));
        k.copy(left, a);
        k.copy(right, b);
        k.fill(sums.sub((0..16, ..)), 1.0);
        let by_rows = Gemm { transpose_a: false, transpose_b: false, policy: WarpPolicy::FullRow, ..Gemm::PLAIN };
        k.gemm(sums, left, right).with(by_rows);
        k.copy(y, sums);
    });
    let zeros = |shape: &[i64]| tensor(F16, shape, |_| 0.0);
    let expected = tensor(F32, &[32, 8], |at| if at < 128 { 1.0 } else { 0.0 });
    computes(&product, &[zeros(&[32, 16]), zeros(&[16, 8])], &[expected]);
}

#[test]
fn a_part_that_one_warp_writes_is_zero_for_the_others() {
    let named = kernel("named", |k| {
        let y = k.output("y", F32, [64]);
        k.threads(64);
        let f = k.fragment("f", F32, S([64], [1 * TX]));
        k.parallel([64], |k, [i]| k.if_(i.ge(32), |k| k.store(f, (i,), 3.0)));
        k.copy(y, f);
    });
    computes(&named, &[], &[tensor(F32, &[64], |i| if i < 32 { 0.0 } else { 3.0 })]);
}

/// The conditions on lane and warp are one in CUDA, and nothing else mentions the warp.
#[test]
fn rows_that_some_warps_and_lanes_hold_are_filled() {
    let filled = kernel("filled", |k| {
        k.threads(96);
        let y = k.output("y", F32, [33]);
        let held = S([3, 3, 11], [1 * WARPID, 1 * LANEID, 1 * M]) + R([10], [3 * LANEID]);
        let (rows, most) = (k.fragment("rows", F32, ([3, 33], held)), k.fragment("most", F32, [33]));
        k.fill(rows.sub((0..2, ..)), 3.5);
        k.reduce(Max, most, rows, 0);
        k.copy(y, most);
    });
    computes(&filled, &[], &[tensor(F32, &[33], |_| 3.5)]);
}

/// What every thread writes before it reads needs no zero.
#[test]
fn no_zero_is_stored_where_everything_is_written() {
    let whole = kernel("whole", |k| {
        let (x, y) = (k.input("x", F32, [33]), k.output("y", F32, [33]));
        k.threads(64);
        let f = k.fragment("f", F32, [33]);
        k.copy(f, x);
        k.parallel([33], |k, [i]| k.store(f, (i,), f.at((i,)) + 1.0));
        k.copy(y, f);
    });
    let options = tilewright::compile::Options::new(Target::Sm100a);
    let artifact = tilewright::compile::compile(whole.clone(), &options).expect("it compiles");
    assert!(!artifact.cuda().contains("= 0"), "{}", artifact.cuda());
    computes(&whole, &[tensor(F32, &[33], |i| i as f64)], &[tensor(F32, &[33], |i| i as f64 + 1.0)]);
}

/// A loop without iterations writes nothing.
#[test]
fn what_only_a_loop_writes_is_zero_if_it_has_no_iteration() {
    let written = kernel("written", |k| {
        let n = k.size("n").max(8);
        let (x, y) = (k.input("x", F64, [16]), k.output("y", F64, [16]));
        k.threads(32);
        let (f, g) = (k.fragment("f", F64, [16]), k.fragment("g", F64, [16]));
        k.copy(f, x);
        k.fill(g.sub((at(0, 15),)), 2.0);
        k.serial("t", ..n - 2, |k, _| {
            k.copy(g, f);
        });
        k.copy(y, g);
    });
    let x = tensor(F64, &[16], |i| i as f64 + 1.0);
    for n in [1, 2, 3] {
        let of = |i: i64| if n > 2 { i as f64 + 1.0 } else { f64::from(i < 15) * 2.0 };
        check(&written, &[("n", n)], std::slice::from_ref(&x), &[tensor(F64, &[16], of)], Tolerance::EXACT);
    }
}
