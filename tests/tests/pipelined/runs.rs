//! Tiles that are neighbouring elements, in shared memory and in their tensor: the copy engine moves them in one copy, without a
//! tensor map.

use tilewright::compile::{Options, Stage, compile};
use tilewright::layout::DType;
use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::{
    are_found, by_number, check_all_in_schedules, compiled, mutated, number, tiles, turned_sum, turned_sum_of,
};

/// The lines of a kernel's CUDA that start copies.
fn started(kernel: &Kernel) -> Vec<String> {
    tiles::calls(kernel, &["bulk_copy", "bulk_store", "tensor_"])
}

/// Twice the elements of whole tiles, which come and go by the copy engine.
fn doubled(dtype: DType, side: i64, variant: &str) -> Kernel {
    kernel("doubled", |k| {
        let n = k.size("n").multiple_of(side);
        let x = k.input("x", dtype, (n,));
        let y = k.output("y", dtype, (n,));
        k.threads(64);
        let [from, to] = ["from", "to"].map(|name| k.shared(name, dtype, [side]));
        k.serial("t", ..n / side, |k, t| {
            k.copy_async(from, x.sub((at(t * side, side),))).variant(variant);
            k.parallel([side], |k, [i]| k.store(to, (i,), from.at((side - 1 - i,)) + from.at((side - 1 - i,))));
            k.copy_async(y.sub((at(t * side, side),)), to).variant(variant);
        });
    })
}

#[test]
fn runs_of_every_dtype_take_one_copy() {
    for (dtype, side) in [(F32, 4096), (F32, 4), (F16, 8), (F16, 1000), (I8, 48), (F64, 2), (I64, 130), (I8, 8192)] {
        let kernel = doubled(dtype, side, "bulk");
        assert_eq!(started(&kernel), ["bulk_copy", "bulk_store"], "{dtype} {side}");
        assert!(!compiled(&kernel).cuda().contains("TensorMap"));
        for tiles in [1, 3] {
            let n = side * tiles;
            let turned = |at: i64| 2.0 * number(at / side * side + side - 1 - at % side);
            let (x, y) = (tensor(dtype, &[n], number), tensor(dtype, &[n], turned));
            check_all_in_schedules(&kernel, &[("n", n)], &[x], &[y]);
        }
    }
}

/// A run takes no tensor map, so it is taken unless boxes are asked for.
#[test]
fn a_run_is_taken_before_boxes() {
    assert_eq!(started(&doubled(F32, 1024, "tma")), ["tensor_copy_2d", "tensor_store_2d"]);
    let open = kernel("open", |k| {
        let n = k.size("n").multiple_of(1024);
        let y = k.output("y", F32, (n,));
        let [block] = k.grid([n / 1024]);
        k.threads(64);
        let tile = k.shared("tile", F32, [1024]);
        k.parallel([1024], |k, [i]| k.store(tile, (i,), (block * 1024 + i).cast(F32)));
        k.copy_async(y.sub((at(block * 1024, 1024),)), tile);
    });
    let plan = compiled(&open).stage(Stage::Plan).to_string();
    assert!(
        plan.contains("* bulk: cost 6; a run of 4096 B") && plan.contains("tma: cost 6; a box of 256 x 4 elements"),
        "{plan}"
    );
    assert_eq!(started(&open), ["bulk_store"]);
    check_all_in_schedules(&open, &[("n", 3072)], &[], &[tensor(F32, &[3072], |at| at as f64)]);
}

/// Whole rows of a matrix, from a row on that a loop shifts; rows of 64 could have a swizzle.
#[test]
fn whole_rows_are_a_run() {
    [40, 64].into_iter().for_each(check_rows);
}

fn check_rows(cols: i64) {
    let kernel = kernel("rows", |k| {
        let m = k.size("m").multiple_of(8);
        let x = k.input("x", F16, (m, cols));
        let y = k.output("y", F16, (m, cols));
        k.threads(64);
        let tile = k.shared("tile", F16, [8, cols]);
        k.serial("t", ..m / 8, |k, t| {
            let rows = |tensor: Buffer, first: Expr| tensor.sub((at(first, 8), ..));
            k.copy_async(tile, rows(x, m - 8 - t * 8)).variant("bulk");
            k.copy_async(rows(y, t * 8), tile).variant("bulk");
        });
    });
    for m in [8, 40] {
        let tile = 8 * cols;
        let y = |at: i64| number((m - 8 - at / tile * 8) * cols + at % tile);
        let [x, y] = [tensor(F16, &[m, cols], number), tensor(F16, &[m, cols], y)];
        check_all_in_schedules(&kernel, &[("m", m)], &[x], &[y]);
    }
}

/// Threads store to a tensor before the engine reads it, and use it after the engine has written it.
#[test]
fn threads_and_runs_use_the_same_tensor() {
    let kernel = kernel("both", |k| {
        let y = k.inout("y", F32, [4, 64]);
        k.threads(64);
        let tile = k.shared("tile", F32, [64]);
        let own = k.fragment("own", F32, [64]);
        for row in 0..3 {
            k.parallel([64], |k, [i]| k.store(y, (row, 63 - i), y.at((row, 63 - i)) + 1.0));
            k.copy_async(tile, y.sub((row, ..))).variant("bulk");
            k.copy_async(y.sub((row + 1, ..)), tile).variant("bulk");
            k.copy(own, y.sub((row + 1, ..)));
            k.parallel([64], |k, [i]| k.store(y, (row, i), own.at((i,)) * 2.0));
        }
    });
    let y = |at: i64| {
        let (row, first) = (at / 64, number(at % 64));
        if row < 3 { 2.0 * (first + (row + 1) as f64) } else { first + 3.0 }
    };
    check_all_in_schedules(&kernel, &[], &[tensor(F32, &[4, 64], number)], &[tensor(F32, &[4, 64], y)]);
}

/// Stages of 16 bytes.
#[test]
fn short_stages_begin_where_runs_may() {
    let kernel = kernel("short", |k| {
        let n = k.size("n").multiple_of(4);
        let x = k.input("x", F32, (n,));
        let y = k.output("y", F32, [4]);
        k.threads(32);
        let (tile, sum) = (k.shared("tile", F32, [4]), k.fragment("sum", F32, [4]));
        k.fill(sum, 0.0);
        k.pipelined("t", ..n / 4, Stages::of(3).variant("tma"), |k, t| {
            k.copy(tile, x.sub((at(t * 4, 4),)));
            k.parallel([4], |k, [i]| k.store(sum, (i,), sum.at((i,)) + tile.at((3 - i,))));
        });
        k.copy(y, sum);
    });
    assert_eq!(started(&kernel), ["bulk_copy", "bulk_copy"]);
    for tiles in [1, 2, 7] {
        let y = |i: i64| (0..tiles).map(|tile| number(tile * 4 + 3 - i)).sum::<f64>() + 0.0;
        let x = tensor(F32, &[tiles * 4], number);
        check_all_in_schedules(&kernel, &[("n", tiles * 4)], &[x], &[tensor(F32, &[4], y)]);
    }
}

/// Loops whose copies run ahead bring runs, too.
#[test]
fn stages_of_a_loop_are_runs() {
    for variant in ["tma", "tma_warp_specialised"] {
        let kernel = turned_sum(Stages::of(3).variant(variant), by_number);
        assert!(compiled(&kernel).stage(Stage::Plan).contains("one thread issues 1 copy"), "{variant}");
        assert_eq!(started(&kernel), ["bulk_copy", "bulk_copy"]);
        for tiles in 1..=5 {
            let x = tensor(F32, &[tiles * 64], number);
            check_all_in_schedules(&kernel, &[("n", tiles * 64)], &[x], &[turned_sum_of(tiles)]);
        }
    }
}

#[test]
fn every_wait_fence_commit_and_barrier_is_needed() {
    let kernel = doubled(F32, 256, "bulk");
    let launches = [1, 2, 4].map(|tiles| {
        let n = tiles * 256;
        let y = |at: i64| 2.0 * number(at / 256 * 256 + 255 - at % 256);
        (vec![("n", n)], vec![tensor(F32, &[n], number)], tensor(F32, &[n], y))
    });
    let Some(report) = mutated(&kernel, &launches) else { return };
    assert!(are_found(&report, &["cp.async.bulk.wait_group.read", "bar.sync", "fence.mbarrier_init"]), "{report:#?}");
}

/// What the plan says against a run.
fn refused(copy: impl FnOnce(&mut KernelBuilder, [Buffer; 2])) -> Vec<String> {
    let kernel = kernel("refused", |k| {
        let (m, n) = (k.size("m"), k.size("n").multiple_of(8));
        let x = k.input("x", F32, (m, n));
        let y = k.inout("y", F32, [16, 64]);
        k.threads(64);
        copy(k, [x, y]);
    });
    let found = compile(kernel, &Options::new(Target::Sm100a)).expect_err("no run is possible");
    assert_eq!(found[0].code, "P0402");
    found[0].notes.iter().filter(|note| note.starts_with("bulk: ")).cloned().collect()
}

#[test]
fn a_run_that_is_asked_for_is_had_or_an_error() {
    let rows = refused(|k, [x, _]| {
        let tile = k.shared("tile", F32, [2, 8]);
        k.copy_async(tile, x.sub((at(0, 2), at(0, 8)))).variant("bulk");
    });
    assert_eq!(
        rows,
        [
            "bulk: the tile may reach beyond dimension 0 of `x`; accepted: tiles that are inside of the tensor for all sizes, CTAs and iterations"
        ]
    );
    let columns = refused(|k, [_, y]| {
        let tile = k.shared("tile", F32, [2, 8]);
        k.copy_async(tile, y.sub((at(0, 2), at(0, 8)))).variant("bulk");
    });
    assert_eq!(
        columns,
        [
            "bulk: the elements of the tile are not one after the other in `y`; accepted: whole rows in their order, not swizzled"
        ]
    );
    let padded = refused(|k, [_, y]| {
        let tile = k.shared("tile", F32, S([16, 64], [72, 1]));
        k.copy_async(tile, y).variant("bulk");
    });
    assert_eq!(
        padded,
        [
            "bulk: the elements of the tile are not one after the other in `tile`; accepted: whole rows in their order, not swizzled"
        ]
    );
    let short = refused(|k, [_, y]| {
        let tile = k.shared("tile", F32, [6]);
        k.copy_async(tile, y.sub((1, at(2, 6)))).variant("bulk");
    });
    assert_eq!(short, ["bulk: the tile is 24 bytes from element 66 of `y` on; accepted: multiples of 16 bytes"]);
}
