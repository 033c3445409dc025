//! `copy_async` from a tensor to shared memory by the copy engine: what uses the tile waits at a barrier of the copy.

use tilewright::compile::Stage;
use tilewright::layout::DType;
use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::tiles::{
    self, TILES, add_turned, check_in_schedules, launches_of_pairs, matrices, row, turned, two_by_two, two_tiles,
    with_tiles,
};
use super::{are_found, check_all_in_schedules, compiled, mutated, number};

/// The lines of a kernel's CUDA that are about copies by the engine, without indices.
fn calls(kernel: &Kernel) -> Vec<String> {
    tiles::calls(kernel, &["mbarrier_", "bulk_", "fence_", "tensor_", "__sync", "sync_warps"])
}

fn load(k: &mut KernelBuilder, tile: Buffer, x: Buffer, at: impl Into<Expr>) {
    k.copy_async(tile, row(x, at)).variant("tma");
}

#[test]
fn each_use_waits_for_its_own_tile() {
    let kernel = two_tiles("tma");
    let in_order = [
        "mbarrier_init",
        "mbarrier_init",
        "fence_mbarrier_init",
        "mbarrier_expect",
        "tensor_copy_2d",
        "mbarrier_expect",
        "tensor_copy_2d",
        "__syncthreads",
        "mbarrier_wait",
        "mbarrier_wait",
    ];
    assert_eq!(calls(&kernel), in_order);
    check_in_schedules(&kernel, &[turned(2, |_| 1), turned(5, |row| i64::from(row < 2))]);
    let text = compiled(&kernel).stage(Stage::Plan).to_string();
    assert!(text.contains("mbarrier_wait: parallel i uses `first`"), "{text}");
    assert!(text.contains("* tma: cost 6, forced; a box of 128 x 1 elements, no swizzle"), "{text}");
}

#[test]
fn copies_are_in_flight_into_the_next_iteration() {
    for threads in [32, 40, 64, 96] {
        let kernel = two_by_two("tma", threads);
        check_in_schedules(&kernel, &launches_of_pairs());
    }
}

/// A tile that only one warp uses: the others wait for the copy too, before the next one may arrive.
#[test]
fn threads_that_do_not_use_a_tile_keep_up_with_its_phases() {
    let kernel = kernel("narrow", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 16));
        let y = k.output("y", F32, (rows, 16));
        k.threads(128);
        let tile = k.shared("tile", F32, [16]);
        k.serial("t", ..rows, |k, t| {
            k.copy_async(tile, x.sub((t, ..))).variant("tma");
            k.parallel([16], |k, [i]| k.store(y, (t, i), tile.at((15 - i,))));
        });
    });
    for rows in [1, 2, 3, 8] {
        let y = tensor(F32, &[rows, 16], |at| number(at / 16 * 16 + 15 - at % 16));
        check_all_in_schedules(&kernel, &[("rows", rows)], &[tensor(F32, &[rows, 16], number)], &[y]);
    }
}

/// A branch waits for what it uses, and what follows it for what only another path has waited for.
#[test]
fn a_branch_starts_and_waits() {
    let kernel = with_tiles(64, |k, (x, rows), [first, second], sum| {
        k.serial("t", ..rows, |k, t| {
            load(k, first, x, t);
            k.if_(Value::from(t % 2).lt(1), |k| {
                load(k, second, x, t);
                add_turned(k, sum, first);
            });
            add_turned(k, sum, first);
        });
        add_turned(k, sum, second);
    });
    // The last even row is in `second`.
    let launches =
        [1, 2, 3, 6].map(|rows| turned(rows, |row| 1 + (row + 1) % 2 + i64::from(row == (rows - 1) / 2 * 2)));
    check_in_schedules(&kernel, &launches);
}

/// What follows a branch waits for a copy that the branch may not have started.
#[test]
fn a_copy_in_a_branch_may_not_start() {
    let kernel = with_tiles(64, |k, (x, rows), [first, _], sum| {
        k.parallel([128], |k, [i]| k.store(first, (i,), 0.0));
        k.if_(Value::from(Expr::from(rows)).lt(3), |k| load(k, first, x, 0));
        add_turned(k, sum, first);
    });
    let launches = [1, 2, 3, 6].map(|rows| turned(rows, |row| i64::from(rows < 3 && row == 0)));
    check_in_schedules(&kernel, &launches);
}

/// A role fills its tile again from another tensor before a second role writes the first one, which the first copy has read.
#[test]
fn what_an_earlier_copy_has_read_is_written_after_it() {
    let kernel = kernel("again", |k| {
        let x = k.inout("x", F32, [128]);
        let z = k.input("z", F32, [128]);
        let y = k.output("y", F32, [128]);
        k.threads(64);
        let tile = k.shared("tile", F32, [128]);
        let sum = k.fragment("sum", F32, [128]);
        k.role("sums", 1, |k| {
            k.fill(sum, 0.0);
            k.copy_async(tile, x).variant("tma");
            add_turned(k, sum, tile);
            k.copy_async(tile, z).variant("tma");
        });
        k.role("other", 1, |k| _ = k.fill(x, 1.0));
        k.role("sums", 1, |k| {
            add_turned(k, sum, tile);
            k.copy(y, sum);
        });
    });
    let [x, z] = [0, 3].map(|more| tensor(F32, &[128], |at| number(at + more)));
    let results = [tensor(F32, &[128], |_| 1.0), tensor(F32, &[128], |at| number(127 - at) + number(130 - at) + 0.0)];
    check_all_in_schedules(&kernel, &[], &[x, z], &results);
}

/// Threads write what a copy reads, before it and after it.
#[test]
fn a_tensor_is_written_before_and_after_a_copy_from_it() {
    let kernel = kernel("in_place", |k| {
        let x = k.inout("x", F32, [8, 32]);
        let y = k.output("y", F32, [8, 32]);
        k.threads(64);
        let tile = k.shared("tile", F32, [8, 32]);
        k.parallel([8, 32], |k, [i, j]| k.store(x, (i, j), x.at((i, j)) + 1.0));
        k.copy_async(tile, x).variant("tma");
        k.parallel([8, 32], |k, [i, j]| k.store(x, (i, j), 0.0));
        k.parallel([8, 32], |k, [i, j]| k.store(y, (i, j), tile.at((7 - i, j))));
    });
    let all = calls(&kernel);
    let fence = all.iter().position(|call| call == "fence_proxy_async").expect("a fence");
    assert_eq!(
        all[fence..],
        ["fence_proxy_async", "__syncthreads", "mbarrier_expect", "tensor_copy_2d", "mbarrier_wait"]
    );
    let y = tensor(F32, &[8, 32], |at| number((7 - at / 32) * 32 + at % 32) + 1.0);
    let results = [tensor(F32, &[8, 32], |_| 0.0), y];
    check_all_in_schedules(&kernel, &[], &[tensor(F32, &[8, 32], number)], &results);
}

/// Rows go through a tile from one tensor to another: threads only wait.
fn streamed() -> Kernel {
    kernel("streamed", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 128));
        let y = k.output("y", F32, (rows, 128));
        k.threads(64);
        let tile = k.shared("tile", F32, [128]);
        k.serial("t", ..rows, |k, t| {
            load(k, tile, x, t);
            k.copy_async(y.sub((t, ..)), tile).variant("tma");
        });
    })
}

#[test]
fn rows_stream_through_a_tile() {
    let kernel = streamed();
    let all = calls(&kernel);
    assert!(!all.iter().any(|call| call.starts_with("fence_proxy")), "{all:?}");
    for rows in [1, 2, 3, 7] {
        let x = tensor(F32, &[rows, 128], number);
        check_all_in_schedules(&kernel, &[("rows", rows)], std::slice::from_ref(&x), std::slice::from_ref(&x));
    }
}

/// Tiles of a matrix, a row below and 16 bytes to the right of where they go.
fn shifted(dtype: DType, [rows, cols]: [i64; 2], threads: i64) -> Kernel {
    kernel("shifted", |k| {
        let unit = 16 / dtype.bytes();
        let (m, n) = (k.size("m").max(1 << 12), k.size("n").multiple_of(unit));
        let x = k.input("x", dtype, (m, n));
        let y = k.output("y", dtype, (m, n));
        let [bx, by] = k.grid([n.ceil_div(cols), m.ceil_div(rows)]);
        k.threads(threads);
        let tile = k.shared("tile", dtype, [rows, cols]);
        let part = x.sub((at(by * rows + 1, rows), at(bx * cols + unit, cols)));
        k.copy_async(tile, part).variant("tma");
        k.parallel([rows, cols], |k, [i, j]| k.store(y, (by * rows + i, bx * cols + j), tile.at((i, j))));
    })
}

#[test]
fn tiles_of_every_dtype_and_side_come_from_ragged_matrices() {
    for (dtype, sides, threads) in TILES {
        let (kernel, unit) = (shifted(dtype, sides, threads), 16 / dtype.bytes());
        for (m, n) in matrices(dtype, sides) {
            let shifted = |at: i64| match (at / n + 1, at % n + unit) {
                (i, j) if i >= m || j >= n => 0.0,
                (i, j) => number(i * n + j),
            };
            let (x, y) = (tensor(dtype, &[m, n], number), tensor(dtype, &[m, n], shifted));
            check_all_in_schedules(&kernel, &[("m", m), ("n", n)], &[x], &[y]);
        }
    }
}

/// One role loads, another one uses the tile; or each role loads its own.
#[test]
fn roles_load_for_others_and_for_themselves() {
    let for_others = kernel("for_others", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 128));
        let y = k.output("y", F32, (rows, 128));
        k.threads(96);
        let tile = k.shared("tile", F32, [128]);
        k.serial("t", ..rows, |k, t| {
            k.role("load", 1, |k| load(k, tile, x, t));
            k.role("math", 2, |k| {
                k.parallel([128], |k, [i]| k.store(y, (t, i), tile.at((127 - i,))));
            });
        });
    });
    let for_themselves = kernel("for_themselves", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 128));
        k.threads(96);
        for (place, name) in [(0, "even"), (1, "odd")] {
            let y = k.output(name, F32, (rows, 128));
            let tile = k.shared(&format!("{name}_tile"), F32, [128]);
            k.role(name, 1 + place, |k| {
                k.serial("t", ..rows, |k, t| {
                    load(k, tile, x, t);
                    k.parallel([128], |k, [i]| k.store(y, (t, i), tile.at((127 - i,)) + place as f64));
                });
            });
        }
    });
    assert_eq!(calls(&for_themselves).iter().filter(|call| *call == "__syncthreads").count(), 1);
    for rows in [1, 2, 3, 6] {
        let turned = |more: f64| move |at: i64| number(at / 128 * 128 + 127 - at % 128) + more;
        let [x, y, z] = [
            tensor(F32, &[rows, 128], number),
            tensor(F32, &[rows, 128], turned(0.0)),
            tensor(F32, &[rows, 128], turned(1.0)),
        ];
        check_all_in_schedules(&for_others, &[("rows", rows)], std::slice::from_ref(&x), std::slice::from_ref(&y));
        check_all_in_schedules(&for_themselves, &[("rows", rows)], &[x], &[y, z]);
    }
}

/// Many elements for few threads are cheaper as boxes, and get a layout that the engine can fill.
#[test]
fn the_cheaper_way_is_taken() {
    let tiles = |threads: i64, side: i64| {
        kernel("tiles", |k| {
            let x = k.input("x", F16, [side, 64]);
            let y = k.output("y", F16, [side, 64]);
            k.threads(threads);
            let tile = k.shared("tile", F16, [side, 64]);
            k.copy_async(tile, x);
            k.parallel([side, 64], |k, [i, j]| k.store(y, (i, j), tile.at((i, j))));
        })
    };
    let chosen = |kernel: &Kernel| {
        let plans = compiled(kernel).plans().to_vec();
        plans.iter().find(|plan| plan.title.starts_with("copy_async")).expect("a copy").chosen
    };
    for (side, variant) in [(128, "tma"), (8, "cp_async")] {
        let kernel = tiles(128, side);
        assert_eq!(chosen(&kernel), variant);
        let x = tensor(F16, &[side, 64], number);
        check_all_in_schedules(&kernel, &[], std::slice::from_ref(&x), std::slice::from_ref(&x));
    }
}

/// The virtual GPU has no rule for `fence.mbarrier_init`, and nothing follows the barrier of the last iteration.
#[test]
fn every_wait_fence_and_barrier_is_needed() {
    for (kernel, pairs) in [(two_tiles("tma"), 1), (two_by_two("tma", 64), 9)] {
        let launches: Vec<_> = (1..=pairs).map(|pairs| turned(2 * pairs, |_| 1)).collect();
        let Some(report) = mutated(&kernel, &launches) else { return };
        assert!(
            are_found(&report, &["fence.mbarrier_init.release.cluster", "bar.sync"]),
            "{}: {report:#?}",
            kernel.name
        );
    }
}
