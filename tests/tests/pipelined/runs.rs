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

/// Whole rows of a matrix, from a row on that a loop shifts.
#[test]
fn whole_rows_are_a_run() {
    let kernel = kernel("rows", |k| {
        let m = k.size("m").multiple_of(8);
        let x = k.input("x", F16, (m, 40));
        let y = k.output("y", F16, (m, 40));
        k.threads(64);
        let tile = k.shared("tile", F16, [8, 40]);
        k.serial("t", ..m / 8, |k, t| {
            let rows = |tensor: Buffer, first: Expr| tensor.sub((at(first, 8), ..));
            k.copy_async(tile, rows(x, m - 8 - t * 8)).variant("bulk");
            k.copy_async(rows(y, t * 8), tile).variant("bulk");
        });
    });
    for m in [8, 40] {
        let y = |at: i64| number((m - 8 - at / 320 * 8) * 40 + at % 320);
        check_all_in_schedules(&kernel, &[("m", m)], &[tensor(F16, &[m, 40], number)], &[tensor(F16, &[m, 40], y)]);
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
