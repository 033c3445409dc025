//! Operations on the bits of integers, remainders, and conditions made of others, compared with Rust.

use tilewright::prelude::*;
use tilewright_tests::meaning::numbers::{integer, wrapped};

use super::{INTEGERS, bits, outputs, tensor};

/// Numbers that are edges of every integer dtype, or counts of shifts around its width.
const NUMBERS: [i128; 20] =
    [0, 1, 2, 3, 7, 8, 9, 15, 31, 32, 33, 63, 64, 100, -1, -2, -33, 127, -128, 0x55aa_1234_8000_0000];

fn by_rust(dtype: DType, row: usize, a: i128, b: i128) -> i128 {
    let count = (0..i128::from(8 * dtype.bytes())).contains(&b).then_some(b);
    match row {
        0 => a & b,
        1 => a | b,
        2 => a ^ b,
        3 => !a,
        4 => count.map_or(0, |count| a << count),
        5 => count.map_or(if a < 0 { -1 } else { 0 }, |count| a >> count),
        6 if b == 0 => a,
        6 => a % b,
        7 => a << 3,
        8 => a >> 3,
        _ => (a & 12) % 5,
    }
}

#[test]
fn operations_on_bits_of_every_integer_dtype() {
    const ROWS: usize = 10;
    let count = NUMBERS.len() as i64;
    for dtype in INTEGERS {
        let kernel = kernel("operations", |k| {
            let x = k.input("x", dtype, [count]);
            let y = k.output("y", dtype, [ROWS as i64, count, count]);
            k.threads(64);
            k.parallel([count, count], |k, [i, j]| {
                let (a, b) = (k.named("a", x.at((i,))), k.named("b", x.at((j,))));
                let results = [a & b, a | b, a ^ b, !a, a << b, a >> b, a % b, a << 3, a >> 3, (a & 12) % 5];
                for (row, result) in (0i64..).zip(results) {
                    k.store(y, (row, i, j), result);
                }
            });
        });
        let numbers = NUMBERS.map(|number| wrapped(dtype, number));
        let Some(outputs) = outputs("operations on bits", kernel, &[tensor(dtype, &numbers)]) else { return };
        let found = bits(&outputs[0]);
        for (at, found) in found.into_iter().enumerate() {
            let (row, pair) = (at / (numbers.len() * numbers.len()), at % (numbers.len() * numbers.len()));
            let [a, b] = [pair / numbers.len(), pair % numbers.len()].map(|at| integer(dtype, numbers[at]));
            assert_eq!(found, wrapped(dtype, by_rust(dtype, row, a, b)), "{dtype} row {row}: {a}, {b}");
        }
    }
}

#[test]
fn conditions_are_joined() {
    let kernel = kernel("joined", |k| {
        let x = k.input("x", I32, [64]);
        let y = k.output("y", I32, [5, 64]);
        k.threads(64);
        k.parallel([64], |k, [i]| {
            let x = x.at((i,));
            let (is_low, is_odd) = (x.lt(10), (x & 1).ne(0));
            let truths = [is_low & is_odd, is_low | is_odd, is_low ^ is_odd, !is_low, !(is_low & !is_odd) | i.lt(3)];
            for (row, truth) in (0i64..).zip(truths) {
                k.store(y, (row, i), truth.select(1, 0));
            }
        });
    });
    let x: Vec<u64> = (0..64).map(|i| i * 7 % 23).collect();
    let Some(outputs) = outputs("joined conditions", kernel, &[tensor(I32, &x)]) else { return };
    let truths = |row: usize, i: usize| {
        let (low, odd) = (x[i] < 10, x[i] % 2 == 1);
        [low && odd, low || odd, low != odd, !low, !low || odd || i < 3][row]
    };
    let expected: Vec<u64> = (0..5 * 64).map(|at| u64::from(truths(at / 64, at % 64))).collect();
    assert_eq!(bits(&outputs[0]), expected);
}

/// What both parts of a condition say is known where it holds.
#[test]
fn a_joined_condition_bounds_an_index() {
    let kernel = kernel("neighbours", |k| {
        let x = k.input("x", I32, [64]);
        let y = k.output("y", I32, [64]);
        let tile = k.shared("tile", I32, [64]);
        k.threads(64);
        k.copy(tile, x);
        k.parallel([64], |k, [i]| {
            let is_inside = k.named("is_inside", i.ge(1) & i.lt(63));
            let sum = tile.at((i - 1,)) + tile.at((i + 1,));
            let either = (i.lt(1) | i.ge(63)).select(0, tile.at((i - 1,)) - tile.at((i + 1,)));
            k.store(y, (i,), is_inside.select(sum, -1) + either);
        });
    });
    let x: Vec<u64> = (0..64).map(|i| i * i).collect();
    let Some(outputs) = outputs("bounded by both", kernel, &[tensor(I32, &x)]) else { return };
    let expected: Vec<u64> =
        (0..64).map(|i| if (1..63).contains(&i) { 2 * x[i - 1] } else { wrapped(I32, -1) }).collect();
    assert_eq!(bits(&outputs[0]), expected);
}
