//! Loops that the copy engine serves, and why it serves others not.

use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};

use super::{compiled, number, plan};

/// The sum of `trips` tiles of a tensor of rank `N`, the first at `first` and each `step` further, read in the opposite order.
fn opposite_sum<const N: usize>(
    shape: [i64; N],
    tile: [i64; N],
    first: [i64; N],
    step: [i64; N],
    trips: i64,
) -> Kernel {
    kernel("opposite_sum", |k| {
        let x = k.input("x", F32, shape);
        let y = k.output("y", F32, tile);
        k.threads(96);
        let held = k.shared("held", F32, tile);
        let sum = k.fragment("sum", F32, tile);
        k.fill(sum, 0.0);
        k.pipelined("t", 0..trips, Stages::of(2).variant("tma"), |k, t| {
            k.parallel(tile, |k, here| {
                let from: [Expr; N] = std::array::from_fn(|at| t * step[at] + here[at] + first[at]);
                k.store(held, here, x.at(from).or_zero());
            });
            k.parallel(tile, |k, here| {
                let opposite: [Expr; N] = std::array::from_fn(|at| tile[at] - 1 - here[at]);
                k.store(sum, here, sum.at(here) + held.at(opposite));
            });
        });
        k.copy(y, sum);
    })
}

fn check_opposite_sum<const N: usize>(shape: [i64; N], tile: [i64; N], first: [i64; N], step: [i64; N], trips: i64) {
    let element = |at: [i64; N]| {
        let is_inside = at.iter().zip(&shape).all(|(at, extent)| (0..*extent).contains(at));
        let flat = at.iter().zip(&shape).fold(0, |flat, (at, extent)| flat * extent + at);
        if is_inside { number(flat) } else { 0.0 }
    };
    let sum = |flat: i64| {
        let (mut here, mut rest) = ([0; N], flat);
        for (at, extent) in here.iter_mut().zip(&tile).rev() {
            (*at, rest) = (rest % extent, rest / extent);
        }
        let place = |t: i64| std::array::from_fn(|at| t * step[at] + first[at] + tile[at] - 1 - here[at]);
        (0..trips).map(|t| element(place(t))).sum::<f64>() + 0.0
    };
    let kernel = opposite_sum(shape, tile, first, step, trips);
    check(&kernel, &[], &[tensor(F32, &shape, number)], &[tensor(F32, &tile, sum)], Tolerance::EXACT);
}

#[test]
fn tiles_of_every_rank_stream() {
    check_opposite_sum([200], [64], [0], [48], 5);
    check_opposite_sum([20, 64], [8, 32], [1, 4], [5, 16], 4);
    check_opposite_sum([3, 9, 16], [2, 3, 16], [0, 1, 0], [1, 3, 0], 3);
    check_opposite_sum([2, 3, 4, 8], [2, 2, 4, 8], [0, 0, 0, 0], [0, 1, 1, 0], 3);
    check_opposite_sum([2, 2, 3, 4, 8], [1, 2, 2, 4, 4], [0, 0, 1, 0, 4], [1, 0, 0, 1, 4], 3);
}

#[test]
fn tiles_may_begin_before_their_tensor_and_end_behind_it() {
    check_opposite_sum([100], [64], [-24], [40], 4);
    check_opposite_sum([6, 36], [4, 16], [-2, -4], [3, 12], 4);
    // A dimension of extent 1, beyond which there is nothing but zeros.
    check_opposite_sum([1, 3, 12], [1, 1, 8], [0, 0, 0], [1, 1, 4], 4);
}

/// The sum of rows that a loop in a branch reads, as often as the loop around it says.
#[test]
fn a_loop_in_a_branch_begins_its_barriers_again() {
    let kernel = kernel("branch", |k| {
        let x = k.input("x", F32, [8, 64]);
        let takes = k.input("takes", I32, [4]);
        let y = k.output("y", F32, [64]);
        k.threads(64);
        let tile = k.shared("tile", F32, [64]);
        let sum = k.fragment("sum", F32, [64]);
        k.fill(sum, 0.0);
        k.serial("turn", 0..4, |k, turn| {
            k.if_(takes.at((turn,)).ne(0), |k| {
                k.pipelined("t", 0..8, Stages::of(3).variant("tma"), |k, t| {
                    k.copy(tile, x.sub((t, ..)));
                    k.parallel([64], |k, [i]| k.store(sum, (i,), sum.at((i,)) + tile.at((63 - i,))));
                });
            });
        });
        k.copy(y, sum);
    });
    for takes in [[0, 0, 0, 0], [1, 0, 1, 1], [0, 1, 0, 0]] {
        let times = takes.iter().sum::<i64>() as f64;
        let y = tensor(F32, &[64], |i| (0..8).map(|t| number(t * 64 + 63 - i)).sum::<f64>() * times + 0.0);
        let takes = tensor(I32, &[4], |at| takes[at as usize] as f64);
        check(&kernel, &[], &[tensor(F32, &[8, 64], number), takes], &[y], Tolerance::EXACT);
    }
}

/// The copies of an unrolled loop share their stages. The last one has a single iteration, so nothing runs ahead in it.
#[test]
fn all_copies_of_an_unrolled_loop_take_the_engine_or_none() {
    let rows = |last: i64| {
        kernel("unrolled", |k| {
            let x = k.input("x", F32, [8, 64]);
            let y = k.output("y", F32, [64]);
            k.threads(64);
            let tile = k.shared("tile", F32, [64]);
            let sum = k.fragment("sum", F32, [64]);
            k.fill(sum, 0.0);
            k.unroll("turn", 0..3, |k, turn| {
                k.pipelined("t", Expr::from(0)..(turn * -3 + (6 + last)), 2, |k, t| {
                    k.copy(tile, x.sub((t, ..)));
                    k.parallel([64], |k, [i]| k.store(sum, (i,), sum.at((i,)) + tile.at((63 - i,))));
                });
            });
            k.copy(y, sum);
        })
    };
    let chosen = |kernel: &Kernel| -> Vec<&'static str> {
        let artifact = compiled(kernel);
        artifact.plans().iter().filter(|plan| plan.title.starts_with("pipelined")).map(|plan| plan.chosen).collect()
    };
    assert!(!chosen(&rows(1)).contains(&"tma"), "{:?}", chosen(&rows(1)));
    for last in [1, 2] {
        let times = |t: i64| (0..3).filter(|turn| t < 6 - turn * 3 + last).count() as f64;
        let y = tensor(F32, &[64], |i| (0..8).map(|t| number(t * 64 + 63 - i) * times(t)).sum::<f64>() + 0.0);
        check(&rows(last), &[], &[tensor(F32, &[8, 64], number)], &[y], Tolerance::EXACT);
    }
}

/// Why the engine does not serve a loop over the rows of `x` that fills `tile`.
fn refused(dtype: DType, cols: i64, tile: impl FnOnce(&mut KernelBuilder) -> Buffer, fill: Fill) -> String {
    let kernel = kernel("refused", |k| {
        let x = k.input("x", dtype, [64, cols]);
        let y = k.output("y", dtype, [8, 16]);
        k.threads(64);
        let tile = tile(k);
        k.pipelined("t", 0..8, 2, |k, t| {
            fill(k, tile, x, t);
            k.copy(y, tile);
        });
    });
    let plan = plan(&kernel);
    let reason = plan.lines().skip_while(|line| !line.contains("tma: not possible")).nth(1);
    reason.unwrap_or(&plan).trim().to_string()
}

type Fill = fn(&mut KernelBuilder, Buffer, Buffer, Expr);

#[test]
fn what_the_engine_cannot_do_is_said() {
    let rows: Fill = |k, tile, x, t| {
        k.copy(tile, x.sub((at(t * 8, 8), at(0, 16))));
    };
    let open = |dtype| move |k: &mut KernelBuilder| k.shared("tile", dtype, [8, 16]);
    let title = "`copy(tile, x[t*8..+8, 0..16])`";
    assert_eq!(
        refused(F16, 36, open(F16), rows),
        format!("{title}: neighbours of dimension 0 of `x` are 36 elements apart; accepted: multiples of 8 elements")
    );
    let shifted: Fill = |k, tile, x, t| {
        k.copy(tile, x.sub((at(t * 8, 8), at(t * 4, 16))));
    };
    let rows_of_16 = |k: &mut KernelBuilder| k.shared("tile", F16, S([8, 16], [16, 1]));
    assert_eq!(
        refused(F16, 64, rows_of_16, shifted),
        "`copy(tile, x[t*8..+8, t*4..+16])`: the rows of the box begin at `t*4` in rows of `x`; accepted: multiples of 8, which \
         are 16 bytes"
    );
    let padded = |k: &mut KernelBuilder| k.shared("tile", F16, S([8, 16], [24, 1]));
    assert_eq!(
        refused(F16, 32, padded, rows),
        format!(
            "{title}: no box of `x` matches `tile`: a box would start at byte 48 of shared memory; accepted: boxes that start at \
                 multiples of 128 bytes"
        )
    );
    let turned = |k: &mut KernelBuilder| k.shared("tile", F16, S([8, 16], [1, 8]));
    assert_eq!(
        refused(F16, 32, turned, rows),
        format!(
            "{title}: no box of `x` matches `tile`: neighbours in shared memory are 32 elements apart in the tensor; accepted: \
                 rows that are contiguous in the tensor and in the tile"
        )
    );
    let doubled: Fill = |k, tile, x, t| {
        k.parallel([8, 16], |k, [i, j]| k.store(tile, (i, j), x.at((t * 8 + i, j)) * 2.0));
    };
    assert_eq!(
        refused(F16, 32, open(F16), doubled),
        "`parallel i, j`: elements are computed on the way; accepted: one store of what one load gives"
    );
    let apart: Fill = |k, tile, x, t| {
        k.parallel([8, 16], |k, [i, j]| k.store(tile, (i, j), x.at((t * 8 + i, j * 2))));
    };
    assert_eq!(
        refused(F32, 32, open(F32), apart),
        "`parallel i, j`: `j*2` does not go through neighbours; accepted: a start plus `j`"
    );
}

/// The rows of a view, turned around by another thread.
fn rows_of_view(stages: Stages, view: impl FnOnce(&mut KernelBuilder, Buffer) -> Buffer) -> Kernel {
    kernel("rows_of_view", |k| {
        let x = k.input("x", I32, [8, 72]);
        let view = view(k, x);
        let y = k.output("y", I32, [8, 32]);
        k.threads(64);
        let tile = k.shared("tile", I32, [32]);
        k.pipelined("t", 0..8, stages, |k, t| {
            k.copy(tile, view.sub((t, at(0, 32))));
            k.parallel([32], |k, [i]| k.store(y, (t, i), tile.at((31 - i,))));
        });
    })
}

#[test]
fn a_view_may_begin_at_whole_16_bytes() {
    let x = |at: i64| (at % 1000) as f64;
    let by_engine = || Stages::of(3).variant("tma");
    let shifted =
        |stages: Stages, by: i64| rows_of_view(stages, move |k, x| k.view("v", x, S([8, 32], [72, 1]) + by * M));
    let refused = plan(&shifted(Stages::of(3), 3));
    assert!(refused.contains("`v` begins 3 elements into its memory; accepted: multiples of 16 bytes"), "{refused}");
    for (stages, by) in [(by_engine(), 8), (Stages::of(3), 3)] {
        let y = tensor(I32, &[8, 32], |at| x(at / 32 * 72 + by + 31 - at % 32));
        check(&shifted(stages, by), &[], &[tensor(I32, &[8, 72], x)], &[y], Tolerance::EXACT);
    }
}
