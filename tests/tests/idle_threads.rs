//! Reductions of rows that not all threads have a part of: the others take part in shuffles with neutral values.

use tilewright::compile::{Artifact, Options, Stage, compile};
use tilewright::prelude::*;
use tilewright_tests::pages::{computes, tensor};

/// The rows of a matrix, reduced.
fn reduced(kind: ReduceKind, dtype: DType, [rows, cols]: [i64; 2], threads: i64) -> Kernel {
    kernel("reduced", |k| {
        let x = k.input("x", dtype, [rows, cols]);
        let y = k.output("y", dtype, [rows]);
        k.threads(threads);
        let v = k.fragment("v", dtype, [rows, cols]);
        let result = k.fragment("result", dtype, [rows]);
        k.copy(v, x);
        k.reduce(kind, result, v, 1);
        k.copy(y, result);
    })
}

fn value(index: i64) -> f64 {
    -((index * 7 % 29) as f64) - 1.0
}

fn expected(kind: ReduceKind, row: i64, cols: i64) -> f64 {
    let values = (row * cols..(row + 1) * cols).map(value);
    match kind {
        Sum => values.sum(),
        AbsSum => values.map(f64::abs).sum(),
        SquareSum => values.map(|value| value * value).sum(),
        Max => values.fold(f64::NEG_INFINITY, f64::max),
        AbsMax => values.map(f64::abs).fold(0.0, f64::max),
        Min => values.fold(f64::INFINITY, f64::min),
        // Of integers, modulo 2^32.
        Product => values.fold(1i32, |product, value| product.wrapping_mul(value as i32)).into(),
        And => values.fold(-1, |bits, value| bits & value as i32).into(),
        Or => values.fold(0, |bits, value| bits | value as i32).into(),
        Xor => values.fold(0, |bits, value| bits ^ value as i32).into(),
    }
}

const SHAPES: [([i64; 2], i64); 12] = [
    ([1, 1000], 256),
    ([1, 1000], 1024),
    ([1, 196], 256),
    ([1, 77], 96),
    ([1, 20], 32),
    ([1, 3], 32),
    ([1, 50], 50),
    ([4, 49], 128),
    ([7, 12], 96),
    ([5, 25], 160),
    ([3, 40], 64),
    ([2, 999], 64),
];

#[test]
fn results_do_not_depend_on_idle_threads() {
    for (shape, threads) in SHAPES {
        for kind in [Sum, AbsSum, SquareSum, Max, AbsMax, Min, Product, And, Or, Xor] {
            // Products of floats are not exact.
            let of_integers = kind == Product || kind.is_bitwise();
            for dtype in if of_integers { [I32].to_vec() } else { [F32, I32].to_vec() } {
                let [rows, cols] = shape;
                let x = tensor(dtype, &shape, value);
                let y = tensor(dtype, &[rows], |row| expected(kind, row, cols));
                computes(&reduced(kind, dtype, shape, threads), &[x], &[y]);
            }
        }
    }
}

/// What the plan says of the reduction.
fn plan(shape: [i64; 2], threads: i64) -> String {
    let compiled = compile(reduced(Sum, F32, shape, threads), &Options::new(Target::Sm100a));
    let plans = compiled.as_ref().map(|artifact: &Artifact| artifact.stage(Stage::Plan)).expect("it compiles");
    let line = plans.lines().find(|line| line.contains("shuffle") && line.contains("per thread")).unwrap_or_default();
    line.trim().to_string()
}

#[test]
fn every_warp_combines_its_part_by_shuffles() {
    let across = "1 row per thread, 5 shuffles each, then";
    for (threads, parts) in [(256, 8), (1024, 16)] {
        let text = plan([1, 1000], threads);
        assert!(text.contains(&format!("{across} {parts} parts of each row through shared memory")), "{text}");
    }
    let text = plan([1, 77], 96);
    assert!(text.contains(&format!("{across} 3 parts")), "{text}");
    let text = plan([1, 20], 32);
    assert!(text.contains("shuffles: ") && text.ends_with("1 row per thread, 5 shuffles each"), "{text}");
}
