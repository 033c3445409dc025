//! `copy_async`: a copy stays in flight until something needs it.

use tilewright::compile::{Options, Stage, compile};
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};

use super::tiles::{add_turned, check_in_schedules, launches_of_pairs, row, turned, two_by_two, two_tiles, with_tiles};
use super::{compiled, mutated, number};

/// The waits of a kernel, in the order of the text: how many later groups may be pending.
fn waits(kernel: &Kernel) -> Vec<String> {
    let cuda = compiled(kernel).cuda().to_string();
    let is_wait = |line: &&str| line.trim_start().starts_with("cp_async_wait<");
    cuda.lines().filter(is_wait).map(|line| line.trim().to_string()).collect()
}

/// What the plans of a kernel say about asynchronous copies: what they wait for, and why they are none.
fn told(kernel: &Kernel) -> Vec<String> {
    let text = compiled(kernel).stage(Stage::Plan).to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_told = |at: &usize| lines[*at].contains("cp_async") || *at > 0 && lines[at - 1] == "cp_async: not possible";
    (0..lines.len()).filter(is_told).map(|at| lines[at].to_string()).collect()
}

/// Starts a copy by the threads.
fn start(k: &mut KernelBuilder, tile: Buffer, from: Region) {
    k.copy_async(tile, from).variant("cp_async");
}

#[test]
fn a_copy_is_in_flight_while_an_earlier_one_is_used() {
    let kernel = two_tiles("cp_async");
    assert_eq!(waits(&kernel), ["cp_async_wait<1>();", "cp_async_wait<0>();"]);
    check_in_schedules(&kernel, &[turned(2, |_| 1), turned(5, |row| i64::from(row < 2))]);
    assert_eq!(
        told(&kernel)[..2],
        [
            "cp_async_wait, __syncthreads: parallel i uses `first`; 1 later copy may be pending",
            "* cp_async: cost 334, forced; 64 threads, 16 B at a time"
        ]
    );
}

#[test]
fn copies_are_in_flight_into_the_next_iteration() {
    let kernel = two_by_two("cp_async", 64);
    assert_eq!(waits(&kernel), ["cp_async_wait<1>();", "cp_async_wait<1>();", "cp_async_wait<0>();"]);
    check_in_schedules(&kernel, &launches_of_pairs());
}

/// The groups of a role follow one of all threads, in each iteration of a loop.
#[test]
fn a_copy_by_all_is_in_flight_during_a_pipelined_loop_of_a_role() {
    let kernel = kernel("role", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 128));
        let y = k.output("y", F32, [128]);
        k.threads(96);
        let [first, second] = ["first", "second"].map(|name| k.shared(name, F32, [128]));
        let sum = k.fragment("sum", F32, [128]);
        k.copy_async(first, row(x, 0)).variant("cp_async");
        k.role("sums", 2, |k| {
            k.fill(sum, 0.0);
            k.pipelined("t", ..rows, Stages::of(3).variant("cp_async"), |k, t| {
                k.copy(second, row(x, t));
                add_turned(k, sum, second);
            });
            add_turned(k, sum, first);
            k.copy(y, sum);
        });
    });
    let launches = [1, 2, 3, 6].map(|rows| turned(rows, |row| 1 + i64::from(row == 0)));
    check_in_schedules(&kernel, &launches);
}

#[test]
fn every_wait_and_barrier_is_needed() {
    // NVRTC writes four iterations of the loop out, and the rest in another loop.
    for (kernel, pairs) in [(two_tiles("cp_async"), 1), (two_by_two("cp_async", 64), 9)] {
        let launches: Vec<_> = (1..=pairs).map(|pairs| turned(2 * pairs, |_| 1)).collect();
        let Some(report) = mutated(&kernel, &launches) else { return };
        // Nothing uses what the wait at the end of the kernel is for: the row behind the last one.
        let is_end = |text: &str| pairs > 1 && text == "cp.async.wait_group 0;";
        let others: Vec<_> = report.survivors.iter().filter(|(_, _, text)| !is_end(text)).collect();
        assert!(report.mutants() >= 5 && others.is_empty(), "{}: {report:#?}", kernel.name);
    }
}

/// A branch waits for what it uses, and what follows it for what only another path has waited for.
#[test]
fn a_branch_waits_for_what_it_uses() {
    let kernel = with_tiles(64, |k, (x, rows), [first, second], sum| {
        start(k, first, row(x, 0));
        start(k, second, row(x, 1));
        k.if_(Value::from(Expr::from(rows)).lt(3), |k| add_turned(k, sum, first));
        add_turned(k, sum, first);
        add_turned(k, sum, second);
    });
    assert_eq!(waits(&kernel), ["cp_async_wait<1>();", "cp_async_wait<1>();", "cp_async_wait<0>();"]);
    check_in_schedules(&kernel, &[turned(2, |row| 2 - row), turned(3, |row| i64::from(row < 2))]);
}

/// The groups of a pipelined loop are later than the copy.
#[test]
fn a_copy_is_in_flight_during_a_pipelined_loop() {
    for stages in [2, 3] {
        let kernel = with_tiles(64, |k, (x, rows), [first, second], sum| {
            start(k, first, row(x, 0));
            k.pipelined("t", ..rows, Stages::of(stages).variant("cp_async"), |k, t| {
                k.copy_async(second, row(x, t));
                add_turned(k, sum, second);
            });
            add_turned(k, sum, first);
        });
        let launches = [1, 2, 3, 6].map(|rows| turned(rows, |row| 1 + i64::from(row == 0)));
        check_in_schedules(&kernel, &launches);
    }
}

#[test]
fn what_is_copied_from_is_written_after_the_copy() {
    let kernel = kernel("replaced", |k| {
        let x = k.inout("x", F32, [128]);
        let y = k.output("y", F32, [128]);
        k.threads(64);
        let tile = k.shared("tile", F32, [128]);
        let held = k.fragment("held", F32, [128]);
        k.copy_async(tile, x);
        k.fill(x, 7.0);
        k.parallel([128], |k, [i]| k.store(held, (&i,), tile.at((127 - &i,))));
        k.copy(y, held);
    });
    let outputs = [tensor(F32, &[128], |_| 7.0), tensor(F32, &[128], |i| number(127 - i))];
    check(&kernel, &[], &[tensor(F32, &[128], number)], &outputs, Tolerance::EXACT);
}

#[test]
fn a_copy_that_cannot_be_asynchronous_says_why() {
    let bytes = kernel("bytes", |k| {
        let n = k.size("n");
        let x = k.input("x", U8, (n,));
        let y = k.output("y", U8, (n,));
        k.threads(64);
        let tile = k.shared("tile", U8, [128]);
        let held = k.fragment("held", U8, [128]);
        k.copy_async(tile, x.sub((at(0, 128),)));
        k.copy_async(held, tile);
        k.copy(y.sub((at(0, 128),)), held);
    });
    assert_eq!(
        told(&bytes),
        [
            "cp_async: not possible",
            "a thread moves 1 B at a time; accepted: 4, 8 or 16 B, from addresses that are multiples of it",
            "cp_async: not possible",
            "the copy does not fill shared memory; accepted: copies from tensors to shared memory",
        ]
    );
    for n in [1, 77, 128] {
        let x = tensor(U8, &[n], |at| (at % 251) as f64);
        check(&bytes, &[("n", n)], std::slice::from_ref(&x), std::slice::from_ref(&x), Tolerance::EXACT);
    }
}

#[test]
fn a_variant_that_is_asked_for_is_taken_or_refused() {
    let plain = kernel("plain", |k| {
        let x = k.input("x", F32, [128]);
        let y = k.output("y", F32, [128]);
        k.threads(32);
        let tile = k.shared("tile", F32, [128]);
        k.copy_async(tile, x).variant("vectorized");
        k.copy(y, tile);
    });
    assert!(waits(&plain).is_empty());
    let refused = kernel("refused", |k| {
        let x = k.input("x", F32, [128]);
        let y = k.output("y", F32, [128]);
        k.threads(32);
        let held = k.fragment("held", F32, [128]);
        k.copy_async(held, x).variant("cp_async");
        k.copy(y, held);
    });
    let found = compile(refused, &Options::new(Target::Sm100a)).expect_err("a fragment is not in shared memory");
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(finding.code, "P0402");
    assert_eq!(
        finding.notes,
        ["cp_async: the copy does not fill shared memory; accepted: copies from tensors to shared memory"]
    );
}

/// Nothing uses the tile: the copy has arrived when the kernel ends.
#[test]
fn a_copy_that_nothing_uses_arrives() {
    let kernel = with_tiles(64, |k, (x, _), [first, _], _| {
        start(k, first, row(x, 0));
    });
    assert_eq!(waits(&kernel), ["cp_async_wait<0>();"]);
    check_in_schedules(&kernel, &[turned(2, |_| 0)]);
}

/// The values of a tile that a copy fills, as `body` reads them into `sum`; for so many threads.
fn one_tile(threads: i64, body: impl FnOnce(&mut KernelBuilder, Buffer, Buffer, Buffer)) -> Kernel {
    kernel("one_tile", |k| {
        let x = k.input("x", F32, [128]);
        let y = k.output("y", F32, [128]);
        k.threads(threads);
        let tile = k.shared("tile", F32, [128]);
        let sum = k.fragment("sum", F32, [128]);
        k.fill(sum, 0.0);
        body(k, x, tile, sum);
        k.copy(y, sum);
    })
}

fn check_one_tile(kernel: &Kernel, value: impl Fn(i64) -> f64) {
    assert!(!waits(kernel).is_empty(), "{}", compiled(kernel).cuda());
    check_in_schedules(kernel, &[(Vec::new(), vec![tensor(F32, &[128], number)], tensor(F32, &[128], value))]);
}

#[test]
fn ctas_of_any_number_of_threads_wait() {
    for threads in [1, 7, 32, 33, 1024] {
        let kernel = one_tile(threads, |k, x, tile, sum| {
            k.copy_async(tile, x);
            add_turned(k, sum, tile);
        });
        check_one_tile(&kernel, |i| number(127 - i));
    }
}

#[test]
fn the_second_of_two_copies_to_a_tile_counts() {
    let kernel = one_tile(64, |k, x, tile, sum| {
        k.copy_async(tile, x);
        k.copy_async(tile.sub((at(64, 64),)), x.sub((at(0, 64),)));
        add_turned(k, sum, tile);
    });
    check_one_tile(&kernel, |i| if i < 64 { number(63 - i) } else { number(127 - i) });
}

#[test]
fn a_view_of_the_tile_waits_for_it() {
    let kernel = one_tile(64, |k, x, tile, sum| {
        let square = k.view("square", tile, [8, 16]);
        k.copy_async(tile, x);
        k.parallel([128], |k, [i]| {
            k.store(sum, (i,), square.at((i % 8, i / 8)));
        });
    });
    check_one_tile(&kernel, |i| number(i % 8 * 16 + i / 8));
}

#[test]
fn a_condition_on_the_tile_waits_for_it() {
    let kernel = one_tile(64, |k, x, tile, sum| {
        k.copy_async(tile, x);
        k.if_(tile.at((127,)).lt(100.0), |k| {
            k.fill(sum, 3.0);
        });
    });
    check_one_tile(&kernel, |_| 3.0);
}

/// A copy in a branch is waited for behind it, and so is nothing where the branch is not taken.
#[test]
fn a_copy_in_a_branch_is_waited_for_behind_it() {
    for takes in [0, 1] {
        let kernel = kernel("branch", |k| {
            let x = k.input("x", F32, [128]);
            let takes = k.input("takes", I32, [1]);
            let y = k.output("y", F32, [128]);
            k.threads(64);
            let tile = k.shared("tile", F32, [128]);
            let sum = k.fragment("sum", F32, [128]);
            k.fill(sum, 0.0);
            k.fill(tile, 5.0);
            k.if_(takes.at((0,)).ne(0), |k| {
                k.copy_async(tile, x);
            });
            add_turned(k, sum, tile);
            k.copy(y, sum);
        });
        let inputs = vec![tensor(F32, &[128], number), tensor(I32, &[1], |_| takes as f64)];
        let y = tensor(F32, &[128], |i| if takes == 1 { number(127 - i) } else { 5.0 });
        check_in_schedules(&kernel, &[(Vec::new(), inputs, y)]);
    }
}

/// Each warp reads what others have copied.
#[test]
fn ops_of_warps_wait_too() {
    let kernel = kernel("warps", |k| {
        let x = k.input("x", F32, [4, 128]);
        let y = k.output("y", F32, [4, 128]);
        k.threads(128);
        let tile = k.shared("tile", F32, [4, 128]);
        k.copy_async(tile, x);
        let warp = k.warp_id();
        k.warp().copy(y.sub((warp, ..)), tile.sub((-warp + 3, ..)));
    });
    let y = tensor(F32, &[4, 128], |at| number((3 - at / 128) * 128 + at % 128));
    check_in_schedules(&kernel, &[(Vec::new(), vec![tensor(F32, &[4, 128], number)], y)]);
}

/// Elements of a transposed tensor are copied one by one, 4 bytes each.
#[test]
fn a_transposed_tile_is_copied_in_elements() {
    let kernel = kernel("transposed", |k| {
        let (m, n) = (k.size("m"), k.size("n"));
        let x = k.input("x", F32, (m, n));
        let y = k.output("y", F32, [16, 32]);
        k.threads(64);
        let tile = k.shared("tile", F32, [32, 16]);
        let held = k.fragment("held", F32, [16, 32]);
        k.copy_async(tile, x.sub((at(0, 32), at(0, 16))));
        k.parallel([16, 32], |k, [i, j]| k.store(held, (i, j), tile.at((j, i))));
        k.copy(y, held);
    });
    for (m, n) in [(1, 1), (32, 16), (33, 17), (20, 9)] {
        let y = tensor(F32, &[16, 32], |at| {
            let (i, j) = (at % 32, at / 32);
            if i < m && j < n { number(i * n + j) } else { 0.0 }
        });
        check_in_schedules(&kernel, &[(vec![("m", m), ("n", n)], vec![tensor(F32, &[m, n], number)], y)]);
    }
}
