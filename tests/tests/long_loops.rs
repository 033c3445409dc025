//! Parallel loops of many steps that do not roll up: they are loops in the CUDA, over the same iterations.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright_tests::meaning::check::{Ended, check};
use tilewright_tests::meaning::evaluate::Rules;
use tilewright_tests::pages::{computes, tensor};
use tilewright_tests::rng::Rng;

fn number(at: i64) -> f64 {
    (at * 7 % 23 - 5) as f64
}

fn compiled(kernel: &Kernel) -> Artifact {
    compile(kernel.clone(), &Options::new(Target::Sm100a)).unwrap()
}

/// Checks that the CUDA has a loop over turns, and what the kernel computes from `x` of this shape.
#[track_caller]
fn repeats(kernel: &Kernel, shape: &[i64], expected: impl Fn(i64) -> f64) {
    let cuda = compiled(kernel).cuda().to_string();
    assert!(cuda.contains("int turn = 0;"), "{cuda}");
    assert_eq!(check(kernel, &mut Rng::new(1, 0), Rules::ALL), Ok(Ended::Right));
    computes(kernel, &[tensor(I32, shape, number)], &[tensor(I32, shape, expected)]);
}

/// A neighbour in each direction of a box of odd extents, where there is one.
fn neighbours(extents: [i64; 3], threads: i64) -> Kernel {
    kernel("neighbours", |k| {
        let (x, y) = (k.input("x", I32, extents), k.output("y", I32, extents));
        k.threads(threads);
        k.parallel(extents, |k, [a, b, c]| {
            let sum = x.at((&a - 1, &b, &c)) + x.at((&a, &b + 2, &c)) + x.at((&a, &b, &c - 1));
            k.store(y, (a, b, c), sum);
        });
    })
}

#[test]
fn odd_extents_leave_a_tail() {
    for (extents, threads) in [([9, 17, 31], 96), ([7, 13, 33], 32), ([3, 29, 37], 64)] {
        let [rows, cols, depth] = extents;
        let at = |a: i64, b: i64, c: i64| {
            let is_inside = (0..rows).contains(&a) && (0..cols).contains(&b) && (0..depth).contains(&c);
            if is_inside { number((a * cols + b) * depth + c) } else { 0.0 }
        };
        let expected = |i: i64| {
            let (a, b, c) = (i / depth / cols, i / depth % cols, i % depth);
            at(a - 1, b, c) + at(a, b + 2, c) + at(a, b, c - 1)
        };
        repeats(&neighbours(extents, threads), &extents, expected);
    }
}

#[test]
fn iterations_under_a_condition() {
    for threads in [32, 96, 128] {
        let built = kernel("some", |k| {
            let (x, y) = (k.input("x", I32, [6000]), k.output("y", I32, [6000]));
            k.threads(threads);
            k.parallel([6000], |k, [i]| {
                k.store(y, (&i,), 1);
                k.if_((&i % 7).lt(3), |k| {
                    k.store(y, (&i,), x.at((&i,)) * 2);
                });
            });
        });
        repeats(&built, &[6000], |i| if i % 7 < 3 { 2.0 * number(i) } else { 1.0 });
    }
}

#[test]
fn vectors_inside_rows() {
    let extents = [31, 29, 148];
    let built = kernel("vectors", |k| {
        let (x, y) = (k.input("x", I32, extents), k.output("y", I32, extents));
        k.threads(32);
        k.parallel(extents, |k, [a, b, c]| {
            let other = x.at((30 - &a, 28 - &b, &c));
            k.store(y, (a, b, c), other + 1);
        })
        .vector(4);
    });
    let cuda = compiled(&built).cuda().to_string();
    assert_eq!(cuda.matches("reinterpret_cast<const int4*>(x)").count(), 2, "{cuda}");
    repeats(&built, &extents, |i| {
        let (a, b, c) = (i / 148 / 29, i / 148 % 29, i % 148);
        number(((30 - a) * 29 + 28 - b) * 148 + c) + 1.0
    });
}

#[test]
fn shared_memory_and_atomics() {
    let extents = [7, 13, 33];
    let built = kernel("counted", |k| {
        let (x, y) = (k.input("x", I32, extents), k.output("y", I32, extents));
        k.threads(64);
        let tile = k.shared("tile", I32, extents);
        k.copy(tile, x);
        k.parallel(extents, |k, [a, b, c]| k.store(y, (a, b, c), 0));
        k.parallel(extents, |k, [a, b, c]| k.atomic_add(y, (&a, (&b * 5) % 13, &c), tile.at((a, b, c))));
    });
    repeats(&built, &extents, |i| {
        let (a, b, c) = (i / 33 / 13, i / 33 % 13, i % 33);
        // 8 is the inverse of 5 modulo 13.
        number((a * 13 + b * 8 % 13) * 33 + c)
    });
}

#[test]
fn inner_loops_in_order() {
    let built = kernel("nested", |k| {
        let (x, y) = (k.input("x", I32, [97, 31]), k.output("y", I32, [97, 31]));
        k.threads(32);
        k.parallel([97, 31], |k, [i, j]| {
            k.store(y, (&i, &j), 0);
            k.serial("t", 0..5, |k, t| {
                k.store(y, (&i, &j), y.at((&i, &j)) * 2 + x.at(((&i * 3 + t) % 97, &j)));
            });
        });
    });
    repeats(&built, &[97, 31], |at| {
        let (i, j) = (at / 31, at % 31);
        (0..5).fold(0.0, |sum, t| sum * 2.0 + number((i * 3 + t) % 97 * 31 + j))
    });
}

#[test]
fn nests_that_roll_up_are_written_out() {
    let built = kernel("even", |k| {
        let (x, y) = (k.input("x", I32, [128, 64]), k.output("y", I32, [128, 64]));
        k.threads(128);
        k.parallel([128, 64], |k, [i, j]| k.store(y, (&i, &j), x.at((127 - &i, &j)))).vector(1);
    });
    let cuda = compiled(&built).cuda().to_string();
    assert!(!cuda.contains("turn"), "{cuda}");
}

#[test]
fn a_loop_without_registers_is_unrolled_no_further_than_it_helps() {
    let built = kernel("stencil", |k| {
        let (n, m) = (k.size("n"), k.size("m"));
        let (x, y) = (k.input("x", F32, (&n, &m)), k.output("y", F32, (&n, &m)));
        let [by, bx] = k.grid([n.ceil_div(1024), m.ceil_div(64)]);
        k.threads(128);
        k.parallel([1024, 64], |k, [i, j]| {
            let (p, q) = (&by * 1024 + i, &bx * 64 + j);
            let sum = x.at((&p - 1, &q)) + x.at((&p, &q - 1)) + x.at((&p + 1, &q)) + x.at((&p, &q + 1));
            k.store(y, (&p, &q), sum - 4.0 * x.at((&p, &q)));
        });
    });
    let cuda = compiled(&built).cuda().to_string();
    assert!(cuda.contains("    #pragma unroll 2\n    for (int i = 0; i < 511; ++i) {"), "{cuda}");
}

/// The first turns of a long row are all in that row; later ones are in two.
#[test]
fn rows_longer_than_many_turns() {
    let (rows, cols) = (20, 1031);
    let built = kernel("stencil", |k| {
        let (x, y) = (k.input("x", I32, [rows, cols]), k.output("y", I32, [rows, cols]));
        k.threads(32);
        k.parallel([rows, cols], |k, [i, j]| {
            let sum = x.at((&i - 1, &j)) + x.at((&i, &j - 1)) + x.at((&i, &j + 1)) + x.at((&i + 1, &j));
            k.store(y, (i, j), sum);
        });
    });
    let at = |i: i64, j: i64| {
        let is_inside = (0..rows).contains(&i) && (0..cols).contains(&j);
        if is_inside { number(i * cols + j) } else { 0.0 }
    };
    repeats(&built, &[rows, cols], |place| {
        let (i, j) = (place / cols, place % cols);
        at(i - 1, j) + at(i, j - 1) + at(i, j + 1) + at(i + 1, j)
    });
    assert!(compiled(&built).cuda().lines().count() < 100);
}

#[test]
fn threads_with_blocks_of_their_own() {
    let built = kernel("blocks", |k| {
        let (x, y) = (k.input("x", I32, [32, 99]), k.output("y", I32, [32, 99]));
        k.threads(32);
        k.parallel([32, 99], |k, [i, j]| {
            k.store(y, (&i, &j), 1);
            k.if_(((&i * 99 + j) % 7).lt(3), |k| k.store(y, (&i, &j), x.at((31 - &i, &j))));
        })
        .layout(S([32, 99], [1 * TX, 1 * REG]));
    });
    repeats(&built, &[32, 99], |at| if at % 7 < 3 { number((31 - at / 99) * 99 + at % 99) } else { 1.0 });
}
