//! Loops whose bounds the launch determines: sizes, block indices and variables of outer loops, with a step.

use tilewright::compile::{Artifact, Options, Stage, compile};
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};

fn compiled(kernel: Kernel) -> Artifact {
    compile(kernel, &Options::new(Target::Sm100a)).unwrap_or_else(|found| panic!("{found:?}"))
}

/// A number for each element, exact in every float dtype.
fn number(at: i64) -> f64 {
    (at * 7 % 13) as f64 - 6.0
}

/// How often a text stands in the CUDA of a kernel.
fn count(kernel: Kernel, text: &str) -> usize {
    compiled(kernel).cuda().matches(text).count()
}

/// Sums every row, a part of 64 columns at a time; `body` adds a part.
fn row_sums(step: bool) -> Kernel {
    kernel("row_sums", |k| {
        let (rows, cols) = (k.size("rows"), k.size("cols"));
        let x = k.input("x", F32, (rows, cols));
        let y = k.output("y", F32, (rows,));
        let [row] = k.grid([rows]);
        k.threads(64);
        let part = k.fragment("part", F32, [64]);
        let sum = k.fragment("sum", F32, [1]);
        k.fill(sum, 0.0);
        let add = |k: &mut KernelBuilder, first: Expr| {
            k.copy(part, x.sub((row, at(first, 64))));
            k.reduce(Sum, sum, part, 0).accumulate();
        };
        match step {
            true => k.serial("t", (..cols).step(64), add),
            false => k.serial("t", ..cols.ceil_div(64), |k, t| add(k, t * 64)),
        };
        k.copy(y.sub((at(row, 1),)), sum);
    })
}

#[test]
fn a_loop_up_to_a_size_runs_for_every_size() {
    for step in [false, true] {
        for cols in [1, 63, 64, 65, 300] {
            let y = tensor(F32, &[3], |i| (0..cols).map(|j| number(i * cols + j)).sum());
            let x = tensor(F32, &[3, cols], number);
            check(&row_sums(step), &[("rows", 3), ("cols", cols)], &[x], &[y], Tolerance::EXACT);
        }
    }
}

#[test]
fn the_bounds_stand_in_the_text_of_every_stage() {
    let artifact = compiled(row_sums(true));
    assert!(artifact.stage(Stage::Tile).contains("  serial t in 0..cols step 64\n"), "{}", artifact.stage(Stage::Tile));
    assert!(artifact.stage(Stage::Thread).contains("for t in 0..cols step 64\n"));
    assert!(artifact.cuda().contains("for (int t = 0; t < cols; t += 64) {"));
    assert!(compiled(row_sums(false)).cuda().contains("for (int t = 0; t < (cols + 63) >> 6; ++t) {"));
}

#[test]
fn a_variable_of_a_loop_that_passes_31_bits_is_wide() {
    let to = |most: i64| {
        kernel("long", |k| {
            let n = k.size("n").max(most);
            let y = k.output("y", F32, (n,));
            k.serial("t", (..n).step(64), |k, t| k.fill(y.sub((at(t, 64),)), 1.0));
        })
    };
    assert!(compiled(to((1 << 31) - 65)).cuda().contains("for (int t = 0; t < n; t += 64)"));
    assert!(compiled(to((1 << 31) - 1)).cuda().contains("for (long long t = 0; t < n; t += 64)"));
}

/// Counts the iterations of a loop in `y`.
fn counted(range: impl Fn(Size, Expr) -> tilewright::dsl::Bounds) -> Kernel {
    kernel("counted", |k| {
        let n = k.size("n").max(64);
        let y = k.output("y", I32, (n,));
        let [block] = k.grid([n]);
        let count = k.fragment("count", I32, [1]);
        k.fill(count, 0);
        k.serial("t", range(n, block), |k, t| {
            k.parallel([1], |k, [i]| k.store(count, (i,), count.at((i,)) + t * 100 + 1));
        });
        k.copy(y.sub((at(block, 1),)), count);
    })
}

#[test]
fn first_last_and_step_may_be_anything() {
    type Range = fn(Size, Expr) -> tilewright::dsl::Bounds;
    type Values = fn(i64, i64) -> Vec<i64>;
    let cases: [(Range, Values); 7] = [
        (|n, _| (..n).step(1), |n, _| (0..n).collect()),
        (|n, block| (block, n).step(1), |n, block| (block..n).collect()),
        (|_, block| (..block).step(3), |_, block| (0..block).step_by(3).collect()),
        (|n, block| (block, n).step(4), |n, block| (block..n).step_by(4).collect()),
        (|n, _| (-5, n - 6).step(2), |n, _| (-5..n - 6).step_by(2).collect()),
        (|n, block| (1, (block * 2 + 1).at_most(n)).step(1), |n, block| (1..n.min(block * 2 + 1)).collect()),
        (|n, block| (block.at_least(3), n.ceil_div(2)).step(1), |n, block| (block.max(3)..(n + 1) / 2).collect()),
    ];
    for (number, (range, values)) in cases.into_iter().enumerate() {
        let kernel = counted(range);
        for n in [1, 2, 7, 9] {
            let y = tensor(I32, &[n], |block| values(n, block).into_iter().map(|t| (t * 100 + 1) as f64).sum());
            println!("case {number}, n = {n}");
            check(&kernel, &[("n", n)], &[], &[y], Tolerance::EXACT);
        }
    }
}

#[test]
fn a_loop_that_never_runs_is_left_out() {
    let kernel = counted(|n, block| (block + 1, block.at_most(n)).step(1));
    assert!(!compiled(kernel.clone()).cuda().contains("for ("));
    check(&kernel, &[("n", 3)], &[], &[tensor(I32, &[3], |_| 0.0)], Tolerance::EXACT);
}

/// Copies rows through one of two stages of shared memory, which the remainder of the row decides.
fn staged(rows: Option<i64>, stages: i64) -> Kernel {
    kernel("staged", move |k| {
        let n = k.size("n").max(1 << 16);
        let x = k.input("x", F32, (n, 128));
        let y = k.output("y", F32, (n, 128));
        k.threads(128);
        let stage = k.shared("stage", F32, [stages, 128]);
        let body = |k: &mut KernelBuilder, t: Expr| {
            k.copy(stage.sub((t % stages, ..)), x.sub((t, ..)));
            k.parallel([128], |k, [i]| k.store(y, (t, i), stage.at((t % stages, i ^ 64))));
        };
        match rows {
            Some(rows) => k.serial("t", 0..rows, body),
            None => k.serial("t", ..n, body),
        }
    })
}

#[test]
fn two_stages_need_one_barrier_in_an_iteration_and_one_needs_two() {
    let barriers = |rows, stages| count(staged(rows, stages), "__syncthreads()");
    assert_eq!((barriers(Some(9), 1), barriers(None, 1)), (2, 2));
    assert_eq!((barriers(Some(9), 2), barriers(None, 2)), (1, 1));
    assert_eq!((barriers(Some(9), 3), barriers(None, 3)), (1, 1));
    for (stages, n) in [(1, 5), (2, 1), (2, 6), (3, 8)] {
        let y = tensor(F32, &[n, 128], |at| number(at / 128 * 128 + ((at % 128) ^ 64)));
        check(&staged(None, stages), &[("n", n)], &[tensor(F32, &[n, 128], number)], &[y], Tolerance::EXACT);
    }
}

/// Writes a tile, may do something in a loop, and reads the tile in another order.
fn around_a_loop(least: i64) -> Kernel {
    kernel("around_a_loop", move |k| {
        let n = k.size("n").max(1 << 16);
        let x = k.input("x", F32, [128]);
        let y = k.output("y", F32, [128]);
        k.threads(128);
        let (tile, other) = (k.shared("tile", F32, [128]), k.shared("other", F32, [128]));
        let held = k.fragment("held", F32, [128]);
        k.copy(tile, x);
        k.copy(held, x);
        k.serial("t", (0, Expr::from(n) - 1 + least), |k, _| {
            k.copy(other, held);
            k.parallel([128], |k, [i]| k.store(held, (i,), other.at((i ^ 96,))));
        });
        k.parallel([128], |k, [i]| k.store(y, (i,), tile.at((i ^ 33,)) + held.at((i,))));
    })
}

#[test]
fn a_barrier_in_a_loop_without_iterations_orders_nothing() {
    // The barriers of the loop order `tile` where it runs at least once.
    assert_eq!(count(around_a_loop(1), "__syncthreads()"), 2);
    assert_eq!(count(around_a_loop(0), "__syncthreads()"), 3);
    for n in [1, 2, 5] {
        let turns = |i: i64| if (n - 1) % 2 == 0 { i } else { i ^ 96 };
        let y = tensor(F32, &[128], |i| number(i ^ 33) + number(turns(i)));
        check(&around_a_loop(0), &[("n", n)], &[tensor(F32, &[128], number)], &[y], Tolerance::EXACT);
    }
}

#[test]
fn the_variable_of_a_run_time_loop_may_index_registers() {
    let kernel = kernel("prefix", |k| {
        let n = k.size("n").max(6);
        let x = k.input("x", F32, [6, 32]);
        let y = k.output("y", F32, [6, 32]);
        let held = k.fragment("held", F32, [6, 32]);
        k.copy(held, x);
        k.serial("t", (1, n), |k, t| {
            k.parallel([32], |k, [i]| k.store(held, (t, i), held.at((t, i)) + held.at((t - 1, i))));
        });
        k.copy(y, held);
    });
    for n in 1..=6 {
        let sum = |row: i64, i: i64| (0..=row).map(|r| number(r * 32 + i)).sum();
        let y = tensor(F32, &[6, 32], |at| if at / 32 < n { sum(at / 32, at % 32) } else { number(at) });
        check(&kernel, &[("n", n)], &[tensor(F32, &[6, 32], number)], &[y], Tolerance::EXACT);
    }
}

#[test]
fn a_loop_inside_iterations_may_depend_on_their_variables() {
    let kernel = kernel("triangle", |k| {
        let n = k.size("n").max(4096);
        let x = k.input("x", F32, (n, n));
        let y = k.output("y", F32, (n,));
        let [block] = k.grid([n.ceil_div(32)]);
        let sum = k.fragment("sum", F32, [32]);
        k.fill(sum, 0.0);
        k.parallel([32], |k, [i]| {
            let row = block * 32 + i;
            k.serial("t", ..row.at_most(n), |k, t| k.store(sum, (i,), sum.at((i,)) + x.at((row, t))));
            k.store(y, (row,), sum.at((i,)));
        });
    });
    assert!(compiled(kernel.clone()).cuda().contains("for (int t = 0; t < min("));
    for n in [1, 32, 45] {
        let y = tensor(F32, &[n], |i| (0..i).map(|t| number(i * n + t)).fold(0.0, |sum, x| sum + x));
        check(&kernel, &[("n", n)], &[tensor(F32, &[n, n], number)], &[y], Tolerance::EXACT);
    }
}

#[test]
fn a_size_that_the_tile_divides_needs_no_mask() {
    let copied = |multiple: i64| {
        kernel("copied", move |k| {
            let n = k.size("n").multiple_of(multiple);
            let (x, y) = (k.input("x", F32, (n,)), k.output("y", F32, (n,)));
            k.threads(32);
            k.serial("t", (..n).step(128), |k, t| {
                k.copy(y.sub((at(t, 128),)), x.sub((at(t, 128),)));
            });
            k.serial("u", ..n.ceil_div(128), |k, u| {
                k.copy(y.sub((at(u * 128, 128),)), x.sub((at(u * 128, 128),)));
            });
        })
    };
    assert_eq!(count(copied(128), "if ("), 0);
    assert!(count(copied(4), "if (") > 0);
}
