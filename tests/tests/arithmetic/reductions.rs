//! `reduce` of rows with extreme values of a dtype, in every layout, compared with a sequential reduction.

use tilewright::prelude::*;
use tilewright::runtime::HostTensor;
use tilewright_tests::meaning::numbers::{real, rounded, same};

use super::{INTEGERS, bits, integer, outputs};

const COLS: i64 = 20;

/// Variants of reductions: the cheapest, and those through shared memory.
const VARIANTS: [Option<&str>; 3] = [None, Some("across_warps"), Some("single_owners")];

/// The kinds of reductions of a dtype.
fn kinds(dtype: DType) -> impl Iterator<Item = ReduceKind> {
    ReduceKind::ALL.iter().copied().filter(move |kind| !(kind.is_bitwise() && dtype.is_float()))
}

/// Every kind of reduction over the rows of a matrix of which some threads hold no elements.
fn reductions(dtype: DType, rows: i64, variant: Option<&str>) -> Kernel {
    kernel("reductions", |k| {
        k.threads(96);
        let x = k.input("x", dtype, [rows, COLS]);
        let v = k.fragment("v", dtype, [rows, COLS]);
        k.copy(v, x);
        for kind in kinds(dtype) {
            let y = k.output(&format!("{}_of_x", kind.name()), dtype, [rows]);
            let result = k.fragment(&format!("{}_of_v", kind.name()), dtype, [rows]);
            k.reduce(kind, result, v, 1).variant_opt(variant);
            k.copy(y, result);
        }
    })
}

fn matrix(dtype: DType, rows: &[Vec<u64>]) -> HostTensor {
    let element = |at: i64| u128::from(rows[(at / COLS) as usize][(at % COLS) as usize]);
    HostTensor::from_fn(dtype, &[rows.len() as i64, COLS], element)
}

/// Rows of integers, as 64 bits: a constant, alternating limits, and numbers around 0.
fn integer_rows(dtype: DType) -> Vec<Vec<u64>> {
    let (least, most) = dtype.integers().expect("an integer");
    let of = |number: &dyn Fn(i64) -> i128| (0..COLS).map(|at| number(at) as u64).collect::<Vec<u64>>();
    vec![
        of(&|_| most),
        of(&|_| least),
        of(&|_| 0),
        of(&|at| if at % 2 == 0 { least } else { most }),
        of(&|at| if at == 7 { least } else { 5 }),
        of(&|at| i128::from(at) - 10),
    ]
}

/// A reduction of integers of a dtype: sums and absolute values wrap.
fn reduced(dtype: DType, kind: ReduceKind, row: &[u64]) -> i128 {
    let wrapped = |value: i128| integer(dtype, value as u64);
    let values = row.iter().map(|bits| integer(dtype, *bits));
    let absolute = values.clone().map(|value| wrapped(value.abs()));
    let result = match kind {
        Sum => Some(wrapped(values.sum())),
        AbsSum => Some(wrapped(absolute.sum())),
        SquareSum => Some(values.fold(0, |sum, value| wrapped(sum + wrapped(value.wrapping_mul(value))))),
        Max => values.max(),
        Min => values.min(),
        AbsMax => absolute.max(),
        Product => Some(values.fold(1, |product: i128, value| wrapped(product.wrapping_mul(value)))),
        And => values.reduce(|a, b| a & b),
        Or => values.reduce(|a, b| a | b),
        Xor => values.reduce(|a, b| a ^ b),
    };
    result.expect("a row has elements")
}

#[test]
fn rows_at_the_ends_of_integers() {
    for dtype in INTEGERS {
        let rows = integer_rows(dtype);
        for variant in VARIANTS {
            let kernel = reductions(dtype, rows.len() as i64, variant);
            let Some(found) = outputs("rows_at_the_ends_of_integers", kernel, &[matrix(dtype, &rows)]) else { return };
            for (kind, found) in kinds(dtype).zip(found) {
                let found: Vec<i128> = bits(&found).iter().map(|bits| integer(dtype, *bits)).collect();
                let wanted: Vec<i128> = rows.iter().map(|row| reduced(dtype, kind, row)).collect();
                assert_eq!(found, wanted, "{} of {dtype}, {variant:?}", kind.name());
            }
        }
    }
}

/// Rows of floats: infinities, NaN alone and with numbers, zeros of both signs.
fn float_rows() -> Vec<Vec<f64>> {
    let of = |number: &dyn Fn(i64) -> f64| (0..COLS).map(number).collect::<Vec<f64>>();
    vec![
        of(&|_| f64::INFINITY),
        of(&|_| f64::NEG_INFINITY),
        of(&|_| f64::NAN),
        of(&|at| if at == 13 { -1.5 } else { f64::NAN }),
        of(&|at| if at == 0 { f64::NEG_INFINITY } else { f64::NAN }),
        of(&|_| 0.0),
        of(&|_| -0.0),
        of(&|at| at as f64 - 10.0),
    ]
}

/// `f64::max` and `f64::min` return the other operand if one is NaN.
fn reduced_floats(kind: ReduceKind, row: &[f64]) -> f64 {
    let values = row.iter().copied();
    let absolute = values.clone().map(f64::abs);
    let result = match kind {
        Sum => values.reduce(|a, b| a + b),
        AbsSum => absolute.reduce(|a, b| a + b),
        SquareSum => values.map(|value| value * value).reduce(|a, b| a + b),
        Max => values.reduce(f64::max),
        Min => values.reduce(f64::min),
        AbsMax => absolute.reduce(f64::max),
        Product => values.reduce(|a, b| a * b),
        And | Or | Xor => None,
    };
    result.expect("a row has elements")
}

/// Equal bit for bit, or both NaN.
fn is_same(dtype: DType, found: u64, wanted: f64) -> bool {
    found == rounded(dtype, wanted) || (wanted.is_nan() && real(dtype, found).is_nan())
}

#[test]
fn rows_of_infinities_and_nan() {
    let rows = float_rows();
    for dtype in [F16, BF16, F32, F64] {
        let given: Vec<Vec<u64>> =
            rows.iter().map(|row| row.iter().map(|value| rounded(dtype, *value)).collect()).collect();
        for variant in VARIANTS {
            let kernel = reductions(dtype, rows.len() as i64, variant);
            let Some(found) = outputs("rows_of_infinities_and_nan", kernel, &[matrix(dtype, &given)]) else { return };
            for (kind, found) in kinds(dtype).zip(found) {
                for (row, found) in rows.iter().zip(bits(&found)) {
                    let wanted = reduced_floats(kind, row);
                    let (name, seen) = (kind.name(), real(dtype, found));
                    assert!(is_same(dtype, found, wanted), "{name} of {row:?} as {dtype}, {variant:?}: {seen}");
                }
            }
        }
    }
}

#[test]
fn what_was_there_is_one_more_element() {
    let before = [f64::NAN, 3.0, f64::NAN, f64::NEG_INFINITY];
    let rows = [f64::NAN, f64::NAN, -2.0, -2.0].map(|value| vec![rounded(F32, value); COLS as usize]);
    for variant in VARIANTS {
        let kernel = kernel("accumulated", |k| {
            k.threads(96);
            let x = k.input("x", F32, [4, COLS]);
            let was = k.input("was", F32, [4]);
            let y = k.output("y", F32, [4]);
            let v = k.fragment("v", F32, [4, COLS]);
            let result = k.fragment("result", F32, [4]);
            k.copy(v, x);
            k.copy(result, was);
            k.reduce(Max, result, v, 1).accumulate().variant_opt(variant);
            k.copy(y, result);
        });
        let was = HostTensor::from_fn(F32, &[4], |at| u128::from(rounded(F32, before[at as usize])));
        let inputs = [matrix(F32, &rows), was];
        let Some(found) = outputs("what_was_there_is_one_more_element", kernel, &inputs) else { return };
        for (found, wanted) in bits(&found[0]).into_iter().zip([f64::NAN, 3.0, -2.0, -2.0]) {
            assert!(same(F32, found, rounded(F32, wanted)), "{variant:?}: {}, expected {wanted}", real(F32, found));
        }
    }
}

/// A tile with an odd number of elements in every dimension, reduced over every set of its dimensions.
#[test]
fn several_dimensions_at_once() {
    const EXTENTS: [i64; 3] = [3, 7, 20];
    let sets: [&[usize]; 7] = [&[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]];
    let left = |set: &[usize]| -> Vec<usize> { (0..3).filter(|at| !set.contains(at)).collect() };
    let shape = |set: &[usize]| -> Vec<i64> {
        let extents: Vec<i64> = left(set).iter().map(|at| EXTENTS[*at]).collect();
        if extents.is_empty() { vec![1] } else { extents }
    };
    for variant in VARIANTS {
        let kernel = kernel("several", |k| {
            k.threads(96);
            let x = k.input("x", I32, EXTENTS);
            let v = k.fragment("v", I32, EXTENTS);
            k.copy(v, x);
            for (at, set) in sets.iter().enumerate() {
                let y = k.output(&format!("y{at}"), I32, shape(set));
                let result = k.fragment(&format!("result{at}"), I32, shape(set));
                let dimensions = set.iter().fold(Dimensions::from([]), |all, one| all.with(*one));
                k.reduce(Sum, result, v, dimensions).variant_opt(variant);
                k.copy(y, result);
            }
        });
        let number = |at: i64| at * at % 101;
        let x = HostTensor::from_f64(I32, &EXTENTS, |at| number(at) as f64);
        let Some(found) = outputs("several_dimensions", kernel, &[x]) else { return };
        for (set, found) in sets.iter().zip(found) {
            let mut sums = vec![0i64; shape(set).iter().product::<i64>() as usize];
            for at in 0..EXTENTS.iter().product::<i64>() {
                let index = [at / 140, at / 20 % 7, at % 20];
                let row = left(set).iter().fold(0, |row, one| row * EXTENTS[*one] + index[*one]);
                sums[row as usize] += number(at);
            }
            let found: Vec<i64> = bits(&found).iter().map(|bits| integer(I32, *bits) as i64).collect();
            assert_eq!(found, sums, "{set:?} {variant:?}");
        }
    }
}
