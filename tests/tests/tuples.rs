//! `reduce_by` in many layouts, compared with a loop over each row.

use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};
use tilewright_tests::pages::{check, computes, tensor};

/// Variants of reductions: the cheapest, and those through shared memory.
const VARIANTS: [Option<&str>; 3] = [None, Some("across_warps"), Some("single_owners")];

/// Shapes, the dimension that is reduced, and threads.
const CASES: [([i64; 2], usize, i64); 9] = [
    ([1, 32], 1, 32),
    ([8, 64], 1, 64),
    ([64, 8], 0, 128),
    ([16, 16], 0, 32),
    ([4, 256], 1, 128),
    ([3, 100], 1, 96),
    ([100, 3], 0, 32),
    ([7, 1], 1, 32),
    ([2, 33], 1, 160),
];

/// An integer that repeats within a row.
fn number(at: i64) -> i64 {
    (at * 37 + at / 7) % 23 - 11
}

/// The elements of a row of a tensor.
fn row_of([rows, cols]: [i64; 2], dimension: usize, row: i64) -> Vec<i64> {
    match dimension {
        0 => (0..rows).map(|at| at * cols + row).collect(),
        _ => (0..cols).map(|at| row * cols + at).collect(),
    }
}

/// How many rows a tensor has.
fn rows([rows, cols]: [i64; 2], dimension: usize) -> i64 {
    if dimension == 0 { cols } else { rows }
}

type Pair = [Value; 2];

/// The greater value, and of equal ones the one with the smaller index. Its text is not symmetric.
fn greatest([v0, i0]: Pair, [v1, i1]: Pair) -> Pair {
    let is_later = v1.gt(v0) | (v1.eq(v0) & i1.lt(i0));
    [is_later.select(v1, v0), is_later.select(i1, i0)]
}

/// The sum, and the greatest. Its text is symmetric.
fn sum_and_greatest([s0, m0]: Pair, [s1, m1]: Pair) -> Pair {
    [s0 + s1, m0.max(m1)]
}

/// The kernel that reduces pairs of an element and its position.
fn pairs(
    (shape, dimension, threads): ([i64; 2], usize, i64),
    dtypes: [DType; 2],
    (identity, variant): ([Scalar; 2], Option<&str>),
    combine: fn(Pair, Pair) -> Pair,
) -> Kernel {
    kernel("pairs", |k| {
        let rows = rows(shape, dimension);
        let x = k.input("x", dtypes[0], shape);
        let (values, places) = (k.output("values", dtypes[0], [rows]), k.output("places", dtypes[1], [rows]));
        k.threads(threads);
        let (v, i) = (k.fragment("v", dtypes[0], shape), k.fragment("i", dtypes[1], shape));
        let (m, at) = (k.fragment("m", dtypes[0], [rows]), k.fragment("at", dtypes[1], [rows]));
        k.copy(v, x);
        k.map(i, |[row, col]| if dimension == 0 { row } else { col });
        k.reduce_by([m, at], [v, i], dimension, identity, combine).variant_opt(variant);
        k.copy(values, m);
        k.copy(places, at);
    })
}

#[test]
fn the_first_of_the_greatest_is_found_in_every_layout() {
    for case in CASES {
        let (shape, dimension, _) = case;
        let of = |row: i64| {
            let row = row_of(shape, dimension, row);
            let most = row.iter().map(|at| number(*at)).max().unwrap_or_default();
            (most, row.iter().position(|at| number(*at) == most).unwrap_or_default())
        };
        let rows = rows(shape, dimension);
        for dtypes in [[F32, I32], [I32, I32], [F64, U32], [I64, F64]] {
            let x = tensor(dtypes[0], &shape, |at| number(at) as f64);
            let values = tensor(dtypes[0], &[rows], |row| of(row).0 as f64);
            let places = tensor(dtypes[1], &[rows], |row| of(row).1 as f64);
            for variant in VARIANTS {
                let identity = [Scalar::from(-1000), Scalar::from(1 << 20)];
                let made = pairs(case, dtypes, (identity, variant), greatest);
                computes(&made, std::slice::from_ref(&x), &[values.clone(), places.clone()]);
            }
        }
    }
}

#[test]
fn a_symmetric_function_is_right_in_every_layout() {
    for case in CASES {
        let (shape, dimension, _) = case;
        let numbers = |row: i64| row_of(shape, dimension, row).into_iter().map(number);
        let rows = rows(shape, dimension);
        let x = tensor(I32, &shape, |at| number(at) as f64);
        let sums = tensor(I32, &[rows], |row| numbers(row).sum::<i64>() as f64);
        let most = tensor(I32, &[rows], |_| (shape[dimension] - 1) as f64);
        for variant in VARIANTS {
            let made = pairs(case, [I32, I32], ([0.into(), (-1).into()], variant), sum_and_greatest);
            computes(&made, std::slice::from_ref(&x), &[sums.clone(), most.clone()]);
        }
    }
}

/// The number of elements, their mean, and the sum of the squares of their distances from it (Welford; Chan et al.).
fn moments([n0, m0, s0]: [Value; 3], [n1, m1, s1]: [Value; 3]) -> [Value; 3] {
    let n = n0 + n1;
    let (apart, share) = (m1 - m0, n1 / n.max(1.0));
    [n, m0 + apart * share, s0 + s1 + apart * apart * n0 * share]
}

/// Mean and variance of rows of any length, in parts of 128.
fn variances(dtype: DType, threads: i64, stages: bool) -> Kernel {
    kernel("variances", |k| {
        let (rows, cols) = (k.size("rows"), k.size("cols"));
        let x = k.input("x", dtype, (rows, cols));
        let (mean, variance) = (k.output("mean", dtype, (rows,)), k.output("variance", dtype, (rows,)));
        let [row] = k.grid([rows]);
        k.threads(threads);
        let (one, v, zero) =
            (k.fragment("one", dtype, [128]), k.fragment("v", dtype, [128]), k.fragment("zero", dtype, [128]));
        let [n, m, s] = ["n", "m", "s"].map(|name| k.fragment(name, dtype, [1]));
        for of in [n, m, s] {
            k.fill(of, 0.0);
        }
        k.fill(one, 1.0);
        k.fill(zero, 0.0);
        let part = |k: &mut KernelBuilder, t: Expr| {
            k.copy(v, x.sub((row, at(t * 128, 128))));
            k.reduce_by([n, m, s], [one, v, zero], 0, [0.0, 0.0, 0.0], moments).accumulate();
        };
        if stages {
            k.serial("t", ..cols.ceil_div(128), part);
        } else {
            // Another use in the loop: every iteration has the result.
            let seen = k.fragment("seen", dtype, [1]);
            k.serial("t", ..cols.ceil_div(128), |k, t| {
                part(k, t);
                k.copy(seen, n);
            });
        }
        k.parallel([1], |k, [i]| {
            k.store(mean, (row,), m.at((i,)));
            k.store(variance, (row,), s.at((i,)) / n.at((i,)));
        });
    })
}

#[test]
fn three_values_accumulate_across_a_loop_of_any_length() {
    for (dtype, threads, stages) in [(F32, 32, true), (F32, 128, true), (F64, 64, true), (F32, 64, false)] {
        let made = variances(dtype, threads, stages);
        for cols in [1, 5, 128, 129, 700] {
            let x = |at: i64| 1000.0 + number(at) as f64;
            let of = |row: i64| (0..cols).map(move |col| x(row * cols + col));
            let mean = |row: i64| of(row).sum::<f64>() / cols as f64;
            let variance = |row: i64| of(row).map(|x| (x - mean(row)).powi(2)).sum::<f64>() / cols as f64;
            let expected = [tensor(dtype, &[2], mean), tensor(dtype, &[2], variance)];
            let tolerance = Tolerance { absolute: 1e-3, relative: 1e-6 };
            check(&made, &[("rows", 2), ("cols", cols)], &[tensor(dtype, &[2, cols], x)], &expected, tolerance);
        }
    }
}

/// One source has its rows shared by the lanes; every lane holds all of the other.
#[test]
fn sources_may_have_layouts_that_the_user_wrote() {
    let laid_out = kernel("laid_out", |k| {
        let (x, w) = (k.input("x", I32, [4, 32]), k.input("w", I32, [4, 32]));
        let (y, z) = (k.output("y", I32, [4]), k.output("z", I32, [4]));
        k.threads(32);
        let v = k.fragment("v", I32, S([4, 32], [1 * M, 1 * LANEID]));
        let all = k.fragment("all", I32, S([4, 32], [32 * M, 1 * M]) + R([32], [1 * LANEID]));
        let (a, b) = (k.fragment("a", I32, [4]), k.fragment("b", I32, [4]));
        k.copy(v, x);
        k.copy(all, w);
        k.reduce_by([a, b], [v, all], 1, [0, -1], sum_and_greatest);
        k.copy(y, a);
        k.copy(z, b);
    });
    let x = tensor(I32, &[4, 32], |at| number(at) as f64);
    let w = tensor(I32, &[4, 32], |at| (at * 5 % 67) as f64);
    let sums = tensor(I32, &[4], |row| (0..32).map(|at| number(row * 32 + at)).sum::<i64>() as f64);
    let most = tensor(I32, &[4], |row| (0..32).map(|at| (row * 32 + at) * 5 % 67).max().unwrap_or_default() as f64);
    computes(&laid_out, &[x, w], &[sums, most]);
}

#[test]
fn a_role_reduces_tuples_too() {
    let made = kernel("by_a_role", |k| {
        let x = k.input("x", I32, [8, 64]);
        let (y, z) = (k.output("y", I32, [8]), k.output("z", I32, [8]));
        k.threads(96);
        let tile = k.shared("tile", I32, [8, 64]);
        k.role("load", 1, |k| k.copy(tile, x));
        k.role("math", 2, |k| {
            let (v, a, b) = (k.fragment("v", I32, [8, 64]), k.fragment("a", I32, [8]), k.fragment("b", I32, [8]));
            let w = k.fragment("w", I32, [8, 64]);
            k.copy(v, tile);
            k.copy(w, tile);
            k.reduce_by([a, b], [v, w], 1, [0, -1000], sum_and_greatest).variant("across_warps");
            k.copy(y, a);
            k.copy(z, b);
        });
    });
    let numbers = |row: i64| (0..64).map(move |at| number(row * 64 + at));
    let sums = tensor(I32, &[8], |row| numbers(row).sum::<i64>() as f64);
    let most = tensor(I32, &[8], |row| numbers(row).max().unwrap_or_default() as f64);
    computes(&made, &[tensor(I32, &[8, 64], |at| number(at) as f64)], &[sums, most]);
}

/// Numbers without a dtype are computed exactly, and converted as casts say: `5/2` is 2, 300 is 127 as i8 if it saturates, and
/// 2.7 is 2 as i32. Scalar parameters may be used.
#[test]
fn the_function_may_use_numbers_and_scalars() {
    let made = kernel("capped", |k| {
        let (x, y, z) = (k.input("x", F32, [64]), k.output("y", F32, [1]), k.output("z", F32, [1]));
        let scale = k.scalar("scale", F32);
        k.threads(32);
        let (v, most, least) =
            (k.fragment("v", F32, [64]), k.fragment("most", F32, [1]), k.fragment("least", F32, [1]));
        k.copy(v, x);
        let cap = Value::from(300).saturating_cast(I8).cast(F32) * scale;
        let floor = Value::from(2.7).cast(I32).cast(F32) + Value::from(5) / Value::from(2);
        k.reduce_by([most, least], [v, v], 0, [-1e30, 1e30], |[a, c], [b, d]| [a.max(b).min(cap), c.min(d).max(floor)]);
        k.copy(y, most);
        k.copy(z, least);
    });
    let x = tensor(F32, &[64], |at| (at - 10) as f64 * 100.0);
    let expected = [tensor(F32, &[1], |_| 127.0 * 4.0), tensor(F32, &[1], |_| 4.0)];
    computes(&made, &[x, tensor(F32, &[1], |_| 4.0)], &expected);
}

/// The index of the greatest element of a tile that hangs over the edge is inside.
#[test]
fn what_lies_beyond_an_edge_counts_as_the_identity() {
    let made = kernel("beyond", |k| {
        let n = k.size("n");
        let x = k.input("x", F32, (n,));
        let (y, z) = (k.output("y", F32, [1]), k.output("z", I32, [1]));
        k.threads(64);
        let (v, i) = (k.fragment("v", F32, [256]), k.fragment("i", I32, [256]));
        let (m, place) = (k.fragment("m", F32, [1]), k.fragment("place", I32, [1]));
        k.copy(v, x.sub((at(0, 256),)));
        k.map(i, |[i]| i);
        k.reduce_by([m, place], [v, i], 0, [Scalar::from(-1e30), Scalar::from(1 << 20)], greatest);
        k.copy(y, m);
        k.copy(z, place);
    });
    for n in [1, 2, 31, 64, 100, 255, 256] {
        let x = |at: i64| -1.0 - number(at).abs() as f64;
        let most = (0..n).fold((f64::MIN, 0), |best, at| if x(at) > best.0 { (x(at), at) } else { best });
        let expected: [HostTensor; 2] = [tensor(F32, &[1], |_| most.0), tensor(I32, &[1], |_| most.1 as f64)];
        check(&made, &[("n", n)], &[tensor(F32, &[n], x)], &expected, Tolerance::EXACT);
    }
}
