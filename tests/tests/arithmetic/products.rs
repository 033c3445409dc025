//! `gemm` of f64: results that f32 would round are exact, for matrices in any memory.

use tilewright::prelude::*;
use tilewright::runtime::HostTensor;

use super::{bits, outputs};

const M: i64 = 16;
const N: i64 = 24;
const K: i64 = 20;

/// A product of matrices in global memory or in fragments. With `is_turned`, both are stored transposed.
fn product(is_turned: bool, in_fragments: bool) -> Kernel {
    let (of_a, of_b) = if is_turned { ([K, M], [N, K]) } else { ([M, K], [K, N]) };
    let told =
        Gemm { transpose_a: is_turned, transpose_b: is_turned, policy: WarpPolicy::Square, clear: true, ..Gemm::PLAIN };
    kernel("product", |k| {
        k.threads(64);
        let (a, b) = (k.input("a", F64, of_a), k.input("b", F64, of_b));
        let c = k.output("c", F64, [M, N]);
        let sums = k.fragment("sums", F64, [M, N]);
        if in_fragments {
            let (left, right) = (k.fragment("left", F64, of_a), k.fragment("right", F64, of_b));
            k.copy(left, a);
            k.copy(right, b);
            k.gemm(sums, left, right).with(told);
        } else {
            k.gemm(sums, a, b).with(told);
        }
        k.copy(c, sums);
    })
}

/// A matrix in row-major order, or transposed.
fn matrix([rows, columns]: [i64; 2], is_turned: bool, element: fn(i64, i64) -> i64) -> HostTensor {
    let shape = if is_turned { [columns, rows] } else { [rows, columns] };
    HostTensor::from_fn(F64, &shape, |at| {
        let (line, place) = (at / shape[1], at % shape[1]);
        let number = if is_turned { element(place, line) } else { element(line, place) };
        u128::from((number as f64).to_bits())
    })
}

fn left(row: i64, depth: i64) -> i64 {
    (row * 7919 + depth * 104_729) % 1_048_573 - 524_287
}

fn right(depth: i64, column: i64) -> i64 {
    (depth * 15_485 + column * 32_452 + 7) % 1_048_573 - 524_287
}

#[test]
fn products_of_doubles_are_added_up_as_doubles() {
    let sum = |at: i64| (0..K).map(|depth| left(at / N, depth) * right(depth, at % N)).sum::<i64>();
    let wanted: Vec<f64> = (0..M * N).map(|at| sum(at) as f64).collect();
    assert!(wanted.iter().any(|sum| f64::from(*sum as f32) != *sum));
    for (is_turned, in_fragments) in [(false, false), (true, false), (false, true), (true, true)] {
        let inputs = [matrix([M, K], is_turned, left), matrix([K, N], is_turned, right)];
        let Some(found) = outputs("products_of_doubles", product(is_turned, in_fragments), &inputs) else { return };
        let found: Vec<f64> = bits(&found[0]).into_iter().map(f64::from_bits).collect();
        assert_eq!(found, wanted, "turned: {is_turned}, in fragments: {in_fragments}");
    }
}
