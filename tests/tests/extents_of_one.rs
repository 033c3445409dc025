//! All ops ignore dimensions of extent 1: one stage of a buffer with several stages is an ordinary operand.

use tilewright::compile::{Options, compile};
use tilewright::dsl::IntoLayout;
use tilewright::prelude::*;
use tilewright_tests::pages::{computes, tensor};

/// Rows and columns of a product, and the depth of one stage.
const ROWS: i64 = 64;
const COLS: i64 = 64;
const DEPTH: i64 = 32;

/// The number of stages that are multiplied or reduced, one after the other.
const STEPS: i64 = 5;

/// The number of products in a batch.
const BATCH: i64 = 3;

/// Small numbers, so that sums of their products are exact.
fn left(row: i64, depth: i64) -> i64 {
    (row * 3 + depth * 5) % 7 - 3
}

fn right(depth: i64, column: i64) -> i64 {
    (depth * 2 + column * 11) % 9 - 4
}

/// Multiplies one stage of shared memory while filling the other.
fn two_stages(of_left: impl IntoLayout) -> Kernel {
    kernel("two_stages", |k| {
        k.threads(128);
        let a = k.input("a", F16, [STEPS, ROWS, DEPTH]);
        let b = k.input("b", F16, [STEPS, DEPTH, COLS]);
        let c = k.output("c", F32, [ROWS, COLS]);
        let sa = k.shared("sa", F16, of_left);
        let sb = k.shared("sb", F16, [2, DEPTH, COLS]);
        let sums = k.fragment("sums", F32, [ROWS, COLS]);
        k.fill(sums, 0.0);
        k.copy(sa.sub((0, .., ..)), a.sub((0, .., ..)));
        k.copy(sb.sub((0, .., ..)), b.sub((0, .., ..)));
        k.serial("t", 0..STEPS - 1, |k, t| {
            let (cur, next) = (t % 2, (t + 1) % 2);
            k.copy(sa.sub((next, .., ..)), a.sub((t + 1, .., ..)));
            k.copy(sb.sub((next, .., ..)), b.sub((t + 1, .., ..)));
            k.gemm(sums, sa.sub((cur, .., ..)), sb.sub((cur, .., ..)));
        });
        let last = (STEPS - 1) % 2;
        k.gemm(sums, sa.sub((last, .., ..)), sb.sub((last, .., ..)));
        k.copy(c, sums);
    })
}

#[test]
fn a_stage_of_two_is_a_multiplicand() {
    let a = tensor(F16, &[STEPS, ROWS, DEPTH], |at| {
        let (step, row, depth) = (at / (ROWS * DEPTH), at / DEPTH % ROWS, at % DEPTH);
        left(row, step * DEPTH + depth) as f64
    });
    let b = tensor(F16, &[STEPS, DEPTH, COLS], |at| right(at / COLS, at % COLS) as f64);
    let sum = |at: i64| (0..STEPS * DEPTH).map(|d| left(at / COLS, d) * right(d, at % COLS)).sum::<i64>();
    let (inputs, c) = ([a, b], [tensor(F32, &[ROWS, COLS], |at| sum(at) as f64)]);
    let swizzle = SwizzleLayout::new(3, 3, 3, true).expect("a swizzle");
    let padded = S([2, ROWS, DEPTH], [ROWS * (DEPTH + 8), DEPTH + 8, 1]);
    let swizzled = (swizzle, S([2, ROWS, DEPTH], [ROWS * DEPTH, DEPTH, 1]));
    for kernel in [two_stages([2, ROWS, DEPTH]), two_stages(padded), two_stages(swizzled)] {
        computes(&kernel, &inputs, &c);
    }
}

/// One product per CTA, with the batch as the first, the second or the last dimension.
fn of_a_batch(sums_are_in_memory: bool) -> Kernel {
    let told = Gemm { transpose_a: false, transpose_b: false, policy: WarpPolicy::Square, clear: true, ..Gemm::PLAIN };
    kernel("of_a_batch", |k| {
        let a = k.input("a", F16, [BATCH, 32, 16]);
        let b = k.input("b", F16, [16, BATCH, 24]);
        let c = k.output("c", F32, [32, 24, BATCH]);
        let [batch] = k.grid([BATCH]);
        k.threads(64);
        let (a, b, c) = (a.sub((batch, .., ..)), b.sub((.., batch, ..)), c.sub((.., .., batch)));
        if sums_are_in_memory {
            k.gemm(c, a, b).with(told);
        } else {
            let sums = k.fragment("sums", F32, [1, 32, 24]);
            k.gemm(sums, a, b).with(told);
            k.copy(c, sums);
        }
    })
}

#[test]
fn any_dimension_of_extent_1_is_left_out_of_a_matrix() {
    let a = tensor(F16, &[BATCH, 32, 16], |at| left(at / 16, at % 16) as f64);
    let b = tensor(F16, &[16, BATCH, 24], |at| right(at / (BATCH * 24), at % (BATCH * 24)) as f64);
    let c = tensor(F32, &[32, 24, BATCH], |at| {
        let (row, column, batch) = (at / (24 * BATCH), at / BATCH % 24, at % BATCH);
        (0..16).map(|d| left(batch * 32 + row, d) * right(d, batch * 24 + column)).sum::<i64>() as f64
    });
    let inputs = [a, b];
    for sums_are_in_memory in [false, true] {
        computes(&of_a_batch(sums_are_in_memory), &inputs, std::slice::from_ref(&c));
    }
}

/// Reduces one dimension of a 1 x 16 x 32 fragment, read from one stage of two.
fn reduced(dimension: usize, result: &[i64]) -> Kernel {
    let length = result.iter().product::<i64>();
    kernel("reduced", |k| {
        k.threads(64);
        let x = k.input("x", F32, [STEPS, 16, 32]);
        let y = k.output("y", F32, [STEPS, length]);
        let stages = k.shared("stages", F32, [2, 16, 32]);
        let held = k.fragment("held", F32, [1, 16, 32]);
        let sums = k.fragment("sums", F32, result.to_vec());
        k.serial("t", 0..STEPS, |k, t| {
            let cur = t % 2;
            k.copy(stages.sub((cur, .., ..)), x.sub((t, .., ..)));
            k.copy(held, stages.sub((cur, .., ..)));
            k.reduce(Sum, sums, held, dimension);
            k.copy(y.sub((t, ..)), sums);
        });
    })
}

#[test]
fn dimensions_of_extent_1_are_left_out_of_what_is_reduced_and_of_the_result() {
    let number = |at: i64| (at * 7 % 31 - 20) as f64;
    let x = tensor(F32, &[STEPS, 16, 32], number);
    let along_rows = tensor(F32, &[STEPS, 16], |at| (0..32).map(|column| number(at * 32 + column)).sum());
    let along_columns = tensor(F32, &[STEPS, 32], |at| {
        let (step, column) = (at / 32, at % 32);
        (0..16).map(|row| number((step * 16 + row) * 32 + column)).sum()
    });
    let results: [(usize, &[i64]); 5] = [(2, &[16]), (2, &[1, 16]), (2, &[1, 16, 1]), (1, &[32]), (1, &[1, 1, 32])];
    for (dimension, result) in results {
        let y = if dimension == 2 { &along_rows } else { &along_columns };
        computes(&reduced(dimension, result), std::slice::from_ref(&x), std::slice::from_ref(y));
    }
}

#[test]
fn the_number_of_a_dimension_counts_those_of_extent_1() {
    let verdict = |dimension: usize, result: &[i64]| {
        let compiled = compile(reduced(dimension, result), &Options::new(Target::Sm100a));
        compiled.err().map(|found| found[0].code)
    };
    assert_eq!(verdict(1, &[16]), Some("K0219"));
    assert_eq!(verdict(2, &[16]), None);
    assert_eq!(verdict(3, &[16]), Some("K0219"));
}

#[test]
fn a_stage_is_reduced_where_it_is() {
    let in_memory = kernel("k", |k| {
        let x = k.input("x", F32, [2, 16, 32]);
        let y = k.output("y", F32, [16]);
        k.threads(32);
        let stages = k.shared("stages", F32, [2, 16, 32]);
        k.copy(stages, x);
        k.reduce(Sum, y, stages.sub((1, .., ..)), 2);
    });
    let y = tensor(F32, &[16], |row| (0..32).map(|at| (512 + row * 32 + at) as f64).sum());
    computes(&in_memory, &[tensor(F32, &[2, 16, 32], |at| at as f64)], &[y]);
}
