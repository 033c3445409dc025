//! Which elements copies fill, and which threads fill them.

use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};

use super::{compiled, number, plan};

/// The result of a loop in which `fill` fills a tile of 64 from row `t` of `x`, and the tile is read backwards; for 64 threads.
fn turned_rows(dtype: DType, threads: i64, fill: impl FnOnce(&mut KernelBuilder, Buffer, Buffer, Expr)) -> Kernel {
    kernel("turned_rows", |k| {
        let x = k.input("x", dtype, [6, 64]);
        let y = k.output("y", dtype, [6, 64]);
        k.threads(threads);
        let tile = k.shared("tile", dtype, [64]);
        k.pipelined("t", 0..6, 3, |k, t| {
            fill(k, tile, x, t);
            k.parallel([64], |k, [i]| k.store(y, (&t, &i), tile.at((63 - &i,))));
        });
    })
}

fn check_turned_rows(kernel: &Kernel, dtype: DType, from: impl Fn(i64, i64) -> f64) {
    let x = tensor(dtype, &[6, 64], number);
    check(kernel, &[], &[x], &[tensor(dtype, &[6, 64], |at| from(at / 64, 63 - at % 64))], Tolerance::EXACT);
}

/// Asynchronous copies to the same bytes would be in no order.
#[test]
fn the_last_of_two_copies_to_the_same_elements_counts() {
    let twice = turned_rows(I32, 96, |k, tile, x, t| {
        k.copy(tile, x.sub((5 - &t, ..)));
        k.copy(tile, x.sub((&t, ..)));
    });
    check_turned_rows(&twice, I32, |t, i| number(t * 64 + i));
    let part = turned_rows(I32, 96, |k, tile, x, t| {
        k.copy(tile, x.sub((&t, ..)));
        k.copy(tile.sub((at(48, 16),)), x.sub((5 - &t, at(0, 16))));
    });
    check_turned_rows(&part, I32, |t, i| if i < 48 { number(t * 64 + i) } else { number((5 - t) * 64 + i - 48) });
    let any = turned_rows(I32, 64, |k, tile, x, t| {
        k.parallel([128], |k, [i]| k.store(tile, (&i / 2,), x.at((&t, &i / 2))).any_wins());
    });
    check_turned_rows(&any, I32, |t, i| number(t * 64 + i));
}

/// The cheapest loads and stores take elements one by one, so that no thread idles; asynchronous copies cannot.
#[test]
fn a_copy_of_few_narrow_elements_is_asynchronous() {
    for dtype in [U16, U8, F32] {
        for threads in [33, 64, 256] {
            let kernel = turned_rows(dtype, threads, |k, tile, x, t| {
                k.copy(tile, x.sub((t, ..)));
            });
            assert!(plan(&kernel).contains("* cp_async"), "{dtype}, {threads} threads: {}", plan(&kernel));
        }
    }
    let kernel = turned_rows(I32, 33, |k, tile, x, t| {
        k.copy(tile, x.sub((t, ..)));
    });
    check_turned_rows(&kernel, I32, |t, i| number(t * 64 + i));
}

#[test]
fn rows_that_are_known_at_launch_are_copied_by_some_of_the_threads() {
    for threads in [32, 33, 256] {
        let kernel = kernel("ragged", |k| {
            let m = k.size("m").max(8);
            let x = k.input("x", F32, (m, 96));
            let y = k.output("y", F32, [8]);
            k.threads(threads);
            let tile = k.shared("tile", F32, [8, 16]);
            let sum = k.fragment("sum", F32, [8]);
            k.fill(sum, 0.0);
            k.pipelined("t", 0..6, Stages::of(2).variant("cp_async"), |k, t| {
                k.copy(tile, x.sub((at(0, 8), at(t * 16, 16))));
                k.parallel([8], |k, [i]| {
                    let all = (0..16).map(|j| tile.at((7 - &i, j))).fold(sum.at((&i,)), |sum, element| sum + element);
                    k.store(sum, (&i,), all)
                });
            });
            k.copy(y, sum);
        });
        for m in [1, 5, 8] {
            let row = |row: i64| if row < m { (0..96).map(|j| number(row * 96 + j)).sum::<f64>() + 0.0 } else { 0.0 };
            let (x, y) = (tensor(F32, &[m, 96], number), tensor(F32, &[8], |i| row(7 - i)));
            check(&kernel, &[("m", m)], &[x], &[y], Tolerance::EXACT);
        }
    }
}

/// The copies of an unrolled loop share the stages.
#[test]
fn a_pipelined_loop_in_an_unrolled_one_has_its_stages_once() {
    let kernel = kernel("unrolled", |k| {
        let x = k.input("x", I32, [6, 64]);
        let y = k.output("y", I32, [4, 6, 64]);
        k.threads(96);
        let tile = k.shared("tile", I32, [64]);
        k.unroll("u", 0..4, |k, u| {
            k.pipelined("t", 0..6, 3, |k, t| {
                k.copy(tile, x.sub((&t, ..)));
                k.parallel([64], |k, [i]| k.store(y, (&u, &t, &i), tile.at((63 - &i,)) + u));
            });
        });
    });
    let artifact = compiled(&kernel);
    let plans: Vec<&str> = artifact
        .plans()
        .iter()
        .filter_map(|plan| Some(plan.facts()?.summary.as_str()))
        .filter(|text| text.contains("stages"))
        .collect();
    assert_eq!(plans, ["3 stages of `tile`: 256 B each; copies run 2 iterations ahead"; 4]);
    let x = tensor(I32, &[6, 64], number);
    let y = tensor(I32, &[4, 6, 64], |at| number(at / 64 % 6 * 64 + 63 - at % 64) + (at / 384) as f64);
    check(&kernel, &[], &[x], &[y], Tolerance::EXACT);
}
