//! Accesses to shared memory and fragments that only a condition keeps in bounds: stencils with a halo, and scans.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright_tests::meaning::check::{Ended, check};
use tilewright_tests::meaning::evaluate::Rules;
use tilewright_tests::pages::{computes, tensor};
use tilewright_tests::rng::Rng;

/// The number of elements of a row.
const N: i64 = 64;

fn number(at: i64) -> f64 {
    (at * 7 % 23 - 5) as f64
}

/// The sum of the elements of a row at these indices; indices out of bounds are skipped.
fn sum(places: impl IntoIterator<Item = i64>, count: i64) -> f64 {
    places.into_iter().filter(|at| (0..count).contains(at)).map(number).sum()
}

/// A kernel with `count` numbers in shared memory.
fn of_shared(count: i64, threads: i64, body: impl FnOnce(&mut KernelBuilder, Buffer, Buffer)) -> Kernel {
    kernel("of_shared", |k| {
        let x = k.input("x", I32, [count]);
        let y = k.output("y", I32, [count]);
        let s = k.shared("s", I32, [count]);
        k.threads(threads);
        k.copy(s, x);
        body(k, s, y);
    })
}

/// Checks that the kernel computes these numbers, on the interpreter and on the virtual GPU for every target.
#[track_caller]
fn gives(kernel: &Kernel, shape: &[i64], expected: impl Fn(i64) -> f64) {
    assert_eq!(check(kernel, &mut Rng::new(1, 0), Rules::ALL), Ok(Ended::Right));
    computes(kernel, &[tensor(I32, shape, number)], &[tensor(I32, shape, expected)]);
}

#[test]
fn neighbours_under_branches() {
    for threads in [32, 64, 128] {
        let stencil = of_shared(N, threads, |k, s, y| {
            let total = k.fragment("total", I32, [N]);
            k.parallel([N], |k, [i]| {
                k.store(total, (i,), s.at((i,)));
                k.if_(i.ge(1), |k| {
                    k.store(total, (i,), total.at((i,)) + s.at((i - 1,)));
                });
                let has_next = k.named("has_next", (i + 1).lt(N));
                k.if_(has_next, |k| {
                    k.store(total, (i,), total.at((i,)) + s.at((i + 1,)));
                });
            });
            k.copy(y, total);
        });
        gives(&stencil, &[N], |at| sum(at - 1..=at + 1, N));
    }
}

#[test]
fn neighbours_in_arms_of_select() {
    for threads in [32, 64, 128] {
        let stencil = of_shared(N, threads, |k, s, y| {
            k.parallel([N], |k, [i]| {
                let before = i.ge(1).select(s.at((i - 1,)), 0);
                let behind = (i + 1).ge(N).select(0, s.at((i + 1,)));
                k.store(y, (i,), before + s.at((i,)) + behind);
            });
        });
        gives(&stencil, &[N], |at| sum(at - 1..=at + 1, N));
    }
}

/// At a distance of four elements, so that adjacent steps may be vectorized.
#[test]
fn vectors_in_arms_of_select() {
    let stencil = of_shared(4 * N, 32, |k, s, y| {
        k.parallel([4 * N], |k, [i]| {
            let before = i.ge(4).select(s.at((i - 4,)), 0);
            let behind = (i + 4).lt(4 * N).select(s.at((i + 4,)), 0);
            k.store(y, (i,), before + s.at((i,)) + behind);
        });
    });
    gives(&stencil, &[4 * N], |at| sum([at - 4, at, at + 4], 4 * N));
}

#[test]
fn neighbours_in_two_dimensions() {
    let (rows, columns) = (8, 32);
    let stencil = kernel("five_points", |k| {
        let x = k.input("x", I32, [rows, columns]);
        let y = k.output("y", I32, [rows, columns]);
        let s = k.shared("s", I32, [rows, columns]);
        k.threads(64);
        k.copy(s, x);
        k.parallel([rows, columns], |k, [i, j]| {
            let up = i.ge(1).select(s.at((i - 1, j)), 0);
            let down = (i + 1).lt(rows).select(s.at((i + 1, j)), 0);
            let left = j.gt(0).select(s.at((i, j - 1)), 0);
            let right = j.eq(columns - 1).select(0, s.at((i, j + 1)));
            k.store(y, (i, j), up + down + left + right);
        });
    });
    let at = |row: i64, column: i64| {
        let is_inside = (0..rows).contains(&row) && (0..columns).contains(&column);
        if is_inside { number(row * columns + column) } else { 0.0 }
    };
    gives(&stencil, &[rows, columns], |place| {
        let (row, column) = (place / columns, place % columns);
        at(row - 1, column) + at(row + 1, column) + at(row, column - 1) + at(row, column + 1)
    });
}

#[test]
fn a_scan_between_two_buffers() {
    for threads in [32, 64] {
        let scan = of_shared(N, threads, |k, s, y| {
            let other = k.shared("other", I32, [N]);
            let (mut from, mut to) = (s, other);
            for step in [1i64, 2, 4, 8, 16, 32] {
                k.parallel([N], |k, [j]| {
                    k.if_else(
                        j.ge(step),
                        |k| k.store(to, (j,), from.at((j,)) + from.at((j - step,))),
                        |k| k.store(to, (j,), from.at((j,))),
                    );
                });
                (from, to) = (to, from);
            }
            k.copy(y, from);
        });
        gives(&scan, &[N], |at| sum(0..=at, N));
    }
}

/// The active iterations depend on the iteration of a loop, which is a loop in CUDA, too.
#[test]
fn a_window_whose_condition_is_asked_in_every_turn() {
    let window = of_shared(N, 64, |k, s, y| {
        let total = k.fragment("total", I32, [N]);
        k.fill(total, 0);
        k.parallel([N], |k, [j]| {
            k.serial("t", 0..12, |k, t| {
                k.if_(j.ge(t), |k| {
                    k.store(total, (j,), total.at((j,)) + s.at((j - t,)));
                });
            });
        });
        k.copy(y, total);
    });
    gives(&window, &[N], |at| sum(at - 11..=at, N));
}

#[test]
fn a_condition_around_the_loop() {
    let before = kernel("before", |k| {
        let x = k.input("x", I32, [4, 32]);
        let y = k.output("y", I32, [4, 32]);
        let s = k.shared("s", I32, [3, 32]);
        let [block] = k.grid([4]);
        k.copy(s, x.sub((0..3, ..)));
        k.if_else(
            block.ge(1),
            |k| {
                k.parallel([32], |k, [j]| k.store(y, (block, j), s.at((block - 1, j))));
            },
            |k| {
                k.fill(y.sub((block, ..)), 0);
            },
        );
    });
    gives(&before, &[4, 32], |at| if at < 32 { 0.0 } else { number(at - 32) });
}

/// In the first iteration the index is -1 for all threads, and is not used.
#[test]
fn an_index_that_is_outside_for_all_threads() {
    let written_out = of_shared(4, 32, |k, s, y| {
        k.fill(y, 0);
        k.unroll("t", 0..4, |k, t| {
            k.if_(t.ge(1), |k| {
                k.parallel([1], |k, [i]| k.store(y, (t + i,), s.at((t + i - 1,))));
            });
            k.parallel([1], |k, [i]| {
                let before = t.ge(1).select(s.at((t + i - 1,)), 0);
                k.if_(before.gt(0), |k| {
                    k.store(y, (t + i,), before);
                });
            });
        });
    });
    gives(&written_out, &[4], |at| if at < 1 { 0.0 } else { number(at - 1) });
}

#[test]
fn rows_of_a_fragment() {
    let shifted = kernel("shifted", |k| {
        let x = k.input("x", I32, [4, 32]);
        let y = k.output("y", I32, [4, 32]);
        let held = k.fragment("held", I32, [4, 32]);
        k.threads(32);
        k.copy(held, x);
        k.parallel([4, 32], |k, [i, j]| {
            k.store(y, (i, j), held.at((i, j)) + i.ge(1).select(held.at((i - 1, j)), 0));
        });
    });
    gives(&shifted, &[4, 32], |at| number(at) + if at < 32 { 0.0 } else { number(at - 32) });
}

/// A value that occurs twice gets a name before the statement only if it may be computed unconditionally.
#[test]
fn what_stands_twice_in_an_arm_stays_there() {
    let squared = of_shared(N, 64, |k, s, y| {
        k.parallel([N], |k, [i]| {
            let before = s.at((i - 1,));
            let mut power = before * before + 1;
            for _ in 0..4 {
                power = power * power - before;
            }
            k.store(y, (i,), i.ge(1).select(power, 0));
        });
    });
    assert_eq!(check(&squared, &mut Rng::new(1, 0), Rules::ALL), Ok(Ended::Right));
}

/// The code of the first diagnostic for a read at an index under a condition.
fn verdict(read: impl FnOnce(&mut Elements, [Buffer; 2], Expr)) -> &'static str {
    let kernel = of_shared(N, 64, |k, s, y| {
        k.parallel([N], |k, [i]| read(k, [s, y], i));
    });
    match compile(kernel, &Options::new(Target::Sm100a)) {
        Ok(_) => "accepted",
        Err(found) => found[0].code,
    }
}

#[test]
fn a_condition_that_is_off_by_one_is_seen() {
    let branch = |from: i64| {
        verdict(move |k, [s, y], i| {
            k.if_else(i.ge(from), |k| k.store(y, (i,), s.at((i - 3,))), |k| k.store(y, (i,), 0));
        })
    };
    assert_eq!([branch(3), branch(2)], ["accepted", "K0216"]);
    let arm = |below: i64| {
        verdict(move |k, [s, y], i| {
            k.store(y, (i,), i.lt(below).select(s.at((i + 3,)), 0));
        })
    };
    assert_eq!([arm(N - 3), arm(N - 2)], ["accepted", "K0216"]);
    let other_arm = verdict(|k, [s, y], i| {
        k.store(y, (i,), i.lt(N - 3).select(0, s.at((i + 3,))));
    });
    assert_eq!(other_arm, "K0216");
}
