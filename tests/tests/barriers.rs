//! Barriers between ops: where they stand, and the conflict that the plan names.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, computes, tensor};

/// The reasons for the barriers of a kernel, in program order.
fn reasons(kernel: Kernel) -> Vec<String> {
    let artifact = compile(kernel, &Options::new(Target::Sm100a)).expect("compiles");
    artifact.plans().iter().flat_map(|plan| plan.barriers.iter().map(|barrier| barrier.reason.clone())).collect()
}

/// Two loops over two rows of shared memory: the second reads one row at `read`, and writes the other at `write`.
fn two_loops(read: (i64, bool), write: (i64, bool)) -> Kernel {
    kernel("two_loops", |k| {
        let (x, y) = (k.input("x", F32, [64]), k.output("y", F32, [64]));
        k.threads(64);
        let s = k.shared("s", F32, [2, 64]);
        let place = |(row, is_turned): (i64, bool), i: &Expr| (row, if is_turned { 63 - i } else { *i });
        k.parallel([64], |k, [i]| {
            k.store(s, (0, &i), x.at((&i,)));
        })
        .vector(1);
        k.parallel([64], |k, [i]| {
            k.store(y, (&i,), s.at(place(read, &i)));
            k.store(s, place(write, &i), 1.0);
        })
        .vector(1);
    })
}

#[test]
fn a_loop_that_reads_and_writes_waits_for_what_it_reads() {
    let reads = two_loops((0, true), (1, false));
    assert_eq!(reasons(reads), ["parallel i reads `s` after parallel i, by other warps"]);
}

#[test]
fn an_op_that_overwrites_waits_for_those_that_read() {
    let overwrites = kernel("overwrites", |k| {
        let (x, y) = (k.input("x", F32, [64]), k.output("y", F32, [2, 64]));
        k.threads(64);
        let s = k.shared("s", F32, [64]);
        k.copy(s, x);
        k.copy(y.sub((0, ..)), s);
        k.parallel([64], |k, [i]| {
            k.store(s, (63 - &i,), 1.0);
        })
        .vector(1);
        k.copy(y.sub((1, ..)), s);
    });
    let found = reasons(overwrites);
    assert!(found.iter().any(|reason| reason.contains("parallel i writes `s` after copy(y[0], s)")), "{found:?}");
}

#[test]
fn elements_that_stay_on_their_threads_need_no_barrier() {
    assert_eq!(reasons(two_loops((0, false), (1, true))), [""; 0]);
}

/// Each copy is like one before it, so only two of them are compared with those that follow.
#[test]
fn repeated_copies_by_the_same_threads_need_no_barriers() {
    let copies = kernel("copies", |k| {
        let (x, y) = (k.input("x", F32, [64, 64]), k.output("y", F32, [64, 64]));
        k.threads(128);
        let (a, b) = (k.shared("a", F32, [64, 64]), k.shared("b", F32, [64, 64]));
        k.copy(a, x);
        for _ in 0..100 {
            k.copy(b, a);
            k.copy(a, b);
        }
        k.copy(y, a);
    });
    assert_eq!(reasons(copies), [""; 0]);
}

#[test]
fn line_breaks_in_a_name_do_not_end_its_comment() {
    let named = kernel("named", |k| {
        let (x, y) = (k.input("x", F32, [32]), k.output("y", F32, [32]));
        k.threads(32);
        k.copy(y, x).name("load\n  return;");
    });
    let artifact = compile(named, &Options::new(Target::Sm100a)).expect("compiles");
    assert!(artifact.cuda().contains("// load return;"), "{}", artifact.cuda());
}

/// A transpose through shared memory of a matrix whose sizes are known only at launch. Each warp has a tile of its own, or
/// they share one.
fn transpose_at_edges(has_own_tiles: bool) -> Kernel {
    kernel("transpose", |k| {
        let [m, n] = ["m", "n"].map(|name| k.size(name).max(1024));
        let (a, b) = (k.input("a", F32, (m, n)), k.output("b", F32, (n, m)));
        let [y, x] = k.grid([m.ceil_div(32), n.ceil_div(128)]);
        k.threads(128);
        let shape = [4, 32, 32];
        let tile = k.shared("tile", F32, S(shape, [1056, 33, 1]));
        let columns = k.view("columns", tile, S(shape, [1056, 1, 33]));
        let warp = k.warp_id();
        let column = |part: Expr| at((x * 4 + part) * 32, 32);
        k.warp().copy(tile.sub((warp, .., ..)), a.sub((at(y * 32, 32), column(warp))));
        if has_own_tiles {
            k.warp().copy(b.sub((column(warp), at(y * 32, 32))), columns.sub((warp, .., ..)));
        } else {
            k.copy(b.sub((column(Expr::from(0)), at(y * 32, 32))), columns.sub((0, .., ..)));
        }
    })
}

#[test]
fn warps_with_their_own_tiles_do_not_wait_for_each_other_at_edges() {
    let reasons_of = |has_own_tiles| reasons(transpose_at_edges(has_own_tiles)).join("; ");
    let own = reasons_of(true);
    assert!(own.ends_with(", by other lanes of the warp") && !own.contains("other warps"), "{own}");
    assert!(reasons_of(false).ends_with(", by other warps"), "{}", reasons_of(false));
}

/// More CTAs than are compared one by one, and offsets from a table.
#[test]
fn offsets_from_a_table_are_waited_for_in_any_number_of_ctas() {
    for (threads, ctas) in [(32, 2), (32, 64), (64, 64)] {
        let turned = kernel("turned", |k| {
            let a = k.input("a", F32, [ctas, 24, 40]);
            let b = k.output("b", F32, [ctas, 24, 40]);
            let [x] = k.grid([ctas]);
            k.threads(threads);
            let tile = k.shared("tile", F32, [24, 40]);
            let columns = k.shared("columns", F32, S([24, 40], [1, 24]));
            k.copy(tile, a.sub((x, .., ..)));
            k.warp_at(0).permute_layout(columns, tile);
            k.copy(b.sub((x, .., ..)), columns);
        });
        let all = || tensor(F32, &[ctas, 24, 40], |at| (at % 9973) as f64);
        computes(&turned, &[all()], &[all()]);
    }
}

/// What is written before a loop and only read in it is ordered once, before the loop, also if loops are nested.
#[test]
fn tiles_that_a_loop_only_reads() {
    let built = kernel("sums", |k| {
        let (x, y) = (k.input("x", F32, [16, 64]), k.output("y", F32, [64]));
        k.threads(64);
        let tile = k.shared("tile", F32, [16, 64]);
        let total = k.fragment("total", F32, [64]);
        k.copy(tile, x);
        k.fill(total, 0.0);
        k.serial("o", 0..3, |k, o| {
            k.serial("d", 0..16, |k, d| {
                k.parallel([64], |k, [i]| {
                    k.store(total, (&i,), total.at((&i,)) + tile.at((d, 63 - &i)) * o.cast(F32));
                });
            });
        });
        k.copy(y, total);
    });
    let cuda = compile(built.clone(), &Options::new(Target::Sm100a)).unwrap().cuda().to_string();
    let [barriers, loops] = ["  __syncthreads();", "for (int o ="].map(|text| cuda.matches(text).count());
    assert_eq!((barriers, loops), (1, 1), "{cuda}");
    assert!(cuda.find("  __syncthreads();") < cuda.find("for (int o ="), "{cuda}");
    let number = |at: i64| (at % 7) as f64;
    let y = tensor(F32, &[64], |i| 3.0 * (0..16).map(|d| number(d * 64 + 63 - i)).sum::<f64>());
    computes(&built, &[tensor(F32, &[16, 64], number)], &[y]);
}

/// Tiles of a tensor of any size, as many as it has: iteration `t` reads at `read` of its tile and writes at `write`.
fn tiles_of_a_tensor(read: fn(Expr) -> Expr, write: fn(Expr) -> Expr) -> Kernel {
    kernel("tiles", |k| {
        let (rows, n) = (k.size("rows"), k.size("n").multiple_of(64));
        let y = k.inout("y", F32, (rows, n + 64));
        let [row] = k.grid([rows]);
        k.threads(64);
        k.serial("t", ..n / 64, |k, t| {
            k.parallel([64], |k, [i]| {
                let value = k.named("value", y.at((row, t * 64 + read(i))));
                k.store(y, (row, t * 64 + write(i)), value + 1.0);
            })
            .vector(1);
        });
    })
}

/// What the kernel computes, by its definition.
fn of_tiles(read: fn(i64) -> i64, write: fn(i64) -> i64) -> Vec<f64> {
    let mut y: Vec<f64> = (0..2 * 256).map(|at| (at % 7) as f64).collect();
    for (row, t) in (0..2).flat_map(|row| (0..3).map(move |t| (row, t))) {
        let values: Vec<f64> = (0..64).map(|i| y[(row * 256 + t * 64 + read(i)) as usize] + 1.0).collect();
        values.iter().zip(0..).for_each(|(value, i)| y[(row * 256 + t * 64 + write(i)) as usize] = *value);
    }
    y
}

#[test]
fn iterations_with_tiles_of_their_own_do_not_wait_for_each_other() {
    let own = tiles_of_a_tensor(|i| i, |i| i);
    assert_eq!(reasons(own.clone()), [""; 0]);
    let (y, expected) = (|at: i64| (at % 7) as f64, of_tiles(|i| i, |i| i));
    let wanted = tensor(F32, &[2, 256], |at| expected[at as usize]);
    check(&own, &[("rows", 2), ("n", 192)], &[tensor(F32, &[2, 256], y)], &[wanted], Tolerance::EXACT);
}

#[test]
fn an_iteration_waits_for_what_other_threads_wrote_to_the_next_tile() {
    let next = tiles_of_a_tensor(|i| i * -1 + 63, |i| i + 64);
    let found = reasons(next.clone());
    assert_eq!(found, ["parallel i reads `y` after parallel i of an earlier iteration, by other warps"]);
    let (y, expected) = (|at: i64| (at % 7) as f64, of_tiles(|i| 63 - i, |i| i + 64));
    let wanted = tensor(F32, &[2, 256], |at| expected[at as usize]);
    check(&next, &[("rows", 2), ("n", 192)], &[tensor(F32, &[2, 256], y)], &[wanted], Tolerance::EXACT);
}

/// The first thread has nothing to do in the loop, but others write what it overwrites.
#[test]
fn loops_whose_length_differs_between_threads_are_waited_for() {
    let written = kernel("written", |k| {
        let (x, y) = (k.input("x", F32, [96]), k.output("y", F32, [96]));
        k.threads(96);
        k.parallel([96], |k, [i]| {
            k.serial("u", ..(i % 3 - 1), |k, u| k.store(y, (95 - i + u,), 1.0).any_wins());
        })
        .vector(1);
        k.parallel([96], |k, [i]| k.store(y, (i,), x.at((i,)))).vector(1);
    });
    assert_eq!(reasons(written.clone()), ["parallel i writes `y` after parallel i, by other warps"]);
    let x = || tensor(F32, &[96], |i| (i % 7) as f64);
    computes(&written, &[x()], &[x()]);
}

/// Four warps have a row each, whose length is known only at launch. An iteration reads an element at `read` from the one that it
/// then writes: so many rows and columns further.
fn rows_of_warps(read: (i64, i64)) -> Kernel {
    kernel("rows_of_warps", |k| {
        let (rows, n) = (k.size("rows").multiple_of(4), k.size("n").multiple_of(2));
        let (y, z) = (k.inout("y", F32, (rows, n)), k.output("z", F32, (rows, n)));
        let [cta] = k.grid([rows / 4]);
        k.threads(128);
        k.serial("t", ..n.ceil_div(32), |k, t| {
            let place = |i: Expr, (down, right): (i64, i64)| (cta * 4 + (i / 32 + down) % 4, t * 32 + i % 32 + right);
            k.parallel([128], |k, [i]| k.store(z, place(i, (0, 0)), y.at(place(i, read)).or_zero())).vector(1);
            k.parallel([128], |k, [i]| k.store(y, place(i, (0, 0)), -1.0)).vector(1);
        });
    })
}

/// The reasons for its barriers, in short, after a run that compares it with its definition.
fn barriers_of_rows(read: (i64, i64)) -> Vec<String> {
    let kernel = rows_of_warps(read);
    for (rows, n) in [(4, 2), (8, 64), (4, 130)] {
        let mut y: Vec<f64> = (0..rows * n).map(|at| (at % 7) as f64).collect();
        let mut z = y.clone();
        for first in (0..n).step_by(32) {
            for row in 0..rows {
                for column in first..n.min(first + 32) {
                    let (from, at) = (row / 4 * 4 + (row % 4 + read.0) % 4, column + read.1);
                    let inside = (0..n).contains(&at);
                    z[(row * n + column) as usize] = if inside { y[(from * n + at) as usize] } else { 0.0 };
                }
            }
            for row in 0..rows {
                (first..n.min(first + 32)).for_each(|column| y[(row * n + column) as usize] = -1.0);
            }
        }
        let [wanted_y, wanted_z] = [y, z].map(|all| tensor(F32, &[rows, n], |at| all[at as usize]));
        let inputs = [tensor(F32, &[rows, n], |at| (at % 7) as f64)];
        check(&kernel, &[("rows", rows), ("n", n)], &inputs, &[wanted_y, wanted_z], Tolerance::EXACT);
    }
    let short = |reason: String| {
        let when = if reason.contains("of an earlier iteration") { "earlier" } else { "same" };
        let by = if reason.ends_with("by other warps") { "warps" } else { "lanes" };
        format!("{when} {by}")
    };
    reasons(kernel).into_iter().map(short).collect()
}

#[test]
fn warps_with_rows_of_their_own_do_not_wait_for_each_other() {
    assert_eq!(barriers_of_rows((0, 0)), [""; 0]);
    assert_eq!(
        barriers_of_rows((0, 1)),
        ["same lanes"],
        "the next element is that of another lane, or of the next tile"
    );
    assert_eq!(barriers_of_rows((0, -1)), ["earlier lanes", "same lanes"], "or of the tile before");
    assert_eq!(barriers_of_rows((0, -40)), ["earlier lanes"]);
    assert_eq!(barriers_of_rows((1, 0)), ["same warps"], "the row of another warp, which has not written there yet");
    assert_eq!(barriers_of_rows((1, -40)), ["earlier warps"]);
}

#[test]
fn tensors_at_data_are_waited_for_and_rows_of_any_length_are_not() {
    let rows = kernel("rows", |k| {
        let n = k.size("n").multiple_of(64);
        let (at, y) = (k.input("at", I32, [64]), k.inout("y", F32, (n, n)));
        k.threads(64);
        k.serial("t", ..n / 64, |k, t| {
            k.parallel([64], |k, [i]| k.store(y, (i, t), 1.0)).vector(1);
        });
        k.serial("u", ..n / 64, |k, u| {
            k.parallel([64], |k, [i]| k.store(y, (u, at.at((i,)).max(0)), 2.0).any_wins()).vector(1);
        });
    });
    // In the first loop, every thread has a row of its own.
    assert_eq!(reasons(rows), ["parallel i writes `y` after parallel i of an earlier iteration, by other warps"]);
}
