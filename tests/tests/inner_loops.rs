//! Loops inside an iteration whose statements depend on those of earlier iterations.

use tilewright::prelude::*;
use tilewright_tests::pages::{computes, tensor};

const ROWS: i64 = 32;

fn number(at: i64) -> f64 {
    ((at * 7 + at / 3) % 5) as f64 - 1.0
}

/// A kernel over the rows of a matrix of `cols` columns: `body` gets a row, x, y and a number of the row, which is 0.
fn by_row(cols: i64, body: impl Fn(&mut Elements, &Expr, [Buffer; 3])) -> Kernel {
    kernel("by_row", |k| {
        let (x, y) = (k.input("x", F32, [ROWS, cols]), k.output("y", F32, [ROWS, cols]));
        k.threads(32);
        let carried = k.fragment("carried", F32, [ROWS]);
        k.fill(carried, 0.0);
        k.parallel([ROWS], |k, [i]| body(k, &i, [x, y, carried]));
    })
}

/// The kernel computes `y[i][j] = of(x[i], j)`.
fn is(build: impl Fn(i64) -> Kernel, of: impl Fn(&[f64], usize) -> f64) {
    for cols in [2, 4, 16, 17] {
        let row = |i: i64| (0..cols).map(|j| number(i * cols + j)).collect::<Vec<f64>>();
        let x = tensor(F32, &[ROWS, cols], number);
        let y = tensor(F32, &[ROWS, cols], |at| of(&row(at / cols), (at % cols) as usize));
        computes(&build(cols), &[x], &[y]);
    }
}

fn sum(row: &[f64]) -> f64 {
    row.iter().fold(0.0, |sum, x| sum + x)
}

#[test]
fn a_sum_is_stored_after_each_step() {
    let prefix = |cols| {
        by_row(cols, move |k, i, [x, y, carried]| {
            k.serial("j", 0..cols, |k, j| {
                k.store(carried, (i,), carried.at((i,)) + x.at((i, &j)));
                k.store(y, (i, &j), carried.at((i,)));
            });
        })
    };
    is(prefix, |row, j| sum(&row[..=j]));
}

#[test]
fn a_sum_is_stored_before_each_step() {
    let exclusive = |cols| {
        by_row(cols, move |k, i, [x, y, carried]| {
            k.serial("j", 0..cols, |k, j| {
                k.store(y, (i, &j), carried.at((i,)));
                k.store(carried, (i,), carried.at((i,)) + x.at((i, &j)));
            });
        })
    };
    is(exclusive, |row, j| sum(&row[..j]));
}

#[test]
fn a_sum_with_a_name_is_of_its_own_step() {
    let named = |cols| {
        by_row(cols, move |k, i, [x, y, carried]| {
            k.serial("j", 0..cols, |k, j| {
                let value = k.named("value", carried.at((i,)) + x.at((i, &j)));
                k.store(carried, (i,), value);
                k.store(y, (i, &j), value);
            });
        })
    };
    is(named, |row, j| sum(&row[..=j]));
}

#[test]
fn two_updates_of_a_number_alternate() {
    let halved = |cols| {
        by_row(cols, move |k, i, [x, y, carried]| {
            k.serial("j", 0..cols, |k, j| {
                k.store(carried, (i,), carried.at((i,)) * 0.5);
                k.store(carried, (i,), carried.at((i,)) + x.at((i, &j)));
                k.store(y, (i, &j), carried.at((i,)));
            });
        })
    };
    is(halved, |row, j| row[..=j].iter().fold(0.0, |so_far, x| so_far * 0.5 + x));
}

#[test]
fn an_element_of_the_step_before_is_read() {
    let differences = |cols| {
        by_row(cols, move |k, i, [x, y, carried]| {
            k.serial("j", 0..cols, |k, j| {
                k.store(y, (i, &j), x.at((i, &j)) - carried.at((i,)));
                k.store(carried, (i,), x.at((i, &j)));
            });
        })
    };
    is(differences, |row, j| row[j] - if j > 0 { row[j - 1] } else { 0.0 });
}

#[test]
fn a_number_in_shared_memory_is_carried() {
    let shared = |cols| {
        kernel("shared", |k| {
            let (x, y) = (k.input("x", F32, [ROWS, cols]), k.output("y", F32, [ROWS, cols]));
            k.threads(32);
            let carried = k.shared("carried", F32, [ROWS]);
            k.fill(carried, 0.0);
            k.parallel([ROWS], |k, [i]| {
                k.serial("j", 0..cols, |k, j| {
                    k.store(carried, (&i,), carried.at((&i,)) + x.at((&i, &j)));
                    k.store(y, (&i, &j), carried.at((&i,)));
                });
            });
        })
    };
    is(shared, |row, j| sum(&row[..=j]));
}

/// Neighbours of a step are touched in another one: `y[j]` is stored twice, in two steps.
#[test]
fn stores_of_neighbouring_steps_overlap_in_order() {
    let overlapping = |cols| {
        by_row(cols, move |k, i, [x, y, _]| {
            k.serial("j", 0..cols, |k, j| {
                k.store(y, (i, &j), x.at((i, &j)));
                k.store(y, (i, (&j + 1) % cols), x.at((i, &j)) * 2.0);
            });
        })
    };
    // The last step stores to the first column again.
    is(overlapping, |row, j| if j > 0 { row[j] } else { row[row.len() - 1] * 2.0 });
}

/// Statements of different elements are still executed together, as vectors.
#[test]
fn steps_that_carry_nothing_move_vectors() {
    let doubled = |cols| {
        by_row(cols, move |k, i, [x, y, _]| {
            k.serial("j", 0..cols, |k, j| {
                let value = k.named("value", x.at((i, &j)) * 2.0);
                k.store(y, (i, &j), value);
            });
        })
    };
    is(doubled, |row, j| row[j] * 2.0);
    let artifact = tilewright::compile::compile(doubled(4), &tilewright::compile::Options::new(Target::Sm100a));
    let cuda = artifact.expect("it compiles").cuda().to_string();
    assert!(cuda.contains("float4"), "{cuda}");
}
