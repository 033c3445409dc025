//! The kernel: roles that load, multiply and store.

use tilewright::prelude::*;

use super::config::{MatmulConfig, MatmulShape, ROWS, Scheduler};
use super::operands::Operands;
use crate::products::turned;

/// The kernel for sizes like these: they are given at launch, and may be any that have the same powers of two up to 16 as divisors.
pub(super) fn matmul(config: &MatmulConfig, like: MatmulShape) -> Kernel {
    let MatmulConfig {
        target,
        factor,
        result,
        columns,
        stages,
        sums,
        cluster,
        scheduler,
        clusters,
        group,
        swapped,
        splits,
        ..
    } = MatmulConfig { splits: config.splits.max(1), ..*config };
    let (sum, step, part, is_pair) = (config.sum(), config.step(), config.part(), config.is_pair());
    // The left factor of the instructions, whose rows are lanes of tensor memory, and the right one.
    let [transpose_left, transpose_right] = config.transposed_sides();
    let gemm = Gemm {
        transpose_a: transpose_left,
        transpose_b: transpose_right,
        pair: is_pair,
        tf32: factor == F32,
        ..Gemm::PLAIN
    };
    // A CTA of a pair has half of the columns of the right factor.
    let own = if is_pair { columns / 2 } else { columns };
    kernel("matmul", |k| {
        let [products, rows_of_left, columns_of_right] = config.most(like.batch * splits);
        let [most_rows, most_columns] = turned(swapped, [rows_of_left, columns_of_right]);
        let operands = Operands::declare(k, config, like, [(products / splits).max(1), most_rows, most_columns]);
        let Operands { batch, extents: [m, n, depth], a, b, residual, bias, c, .. } = operands;
        if config.overlaps {
            k.overlap_previous(&[b.tensor]);
        }
        let ([left_factor, right_factor], [m, n]) = (turned(swapped, [a, b]), turned(swapped, [m, n]));
        let rank = k.cluster(cluster);
        let all = [batch.map_or(Expr::from(1), Expr::from) * splits, m.ceil_div(ROWS * cluster), n.ceil_div(columns)];
        let tiles = match scheduler {
            Scheduler::Persistent => Tiles::persistent(k, all, (clusters, group)),
            Scheduler::OneEach => Tiles::one_per_cta(k, all),
            Scheduler::Claimed => Tiles::claimed(k, all, group),
        };
        // The rows of the left factor and the columns of the right one that a CTA multiplies.
        let sides =
            |[_, row, column]: [Expr; 3]| [at((row * cluster + rank) * ROWS, ROWS), at(column * columns, columns)];
        // The part of the result that it computes.
        let tile_of = |tile: [Expr; 3]| turned(swapped, sides(tile));
        // As many for each part of K; the last ones may be zeros beyond its end.
        let steps = depth.ceil_div(step * splits);
        let factors = k.ring("factors", stages, |r| {
            let left = r.shared("left", factor, turned(transpose_left, [ROWS, step]));
            (left, r.shared("right", factor, turned(transpose_right, [step, own])))
        });
        // Loads tiles of the left factor, of the right one, or of both.
        let load = |k: &mut KernelBuilder, [loads_left, loads_right]: [bool; 2]| {
            tiles.for_each(k, |k, tile @ [matrix, _, column]| {
                let [rows, _] = sides(tile);
                let columns = at(if is_pair { column * columns + rank % 2 * own } else { column * columns }, own);
                k.serial("t", ..steps, |k, t| {
                    let along = at((matrix % splits * steps + t) * step, step);
                    factors.produce(k, |k, (left, right)| {
                        if loads_left {
                            k.copy(left, left_factor.sub(matrix / splits, turned(transpose_left, [rows, along])));
                        }
                        if loads_right {
                            k.copy(right, right_factor.sub(matrix / splits, turned(transpose_right, [along, columns])));
                        }
                    });
                });
            });
        };
        if config.overlaps {
            // Who loads `b` alone does not wait for the launch before.
            k.role("load", 1, |k| load(k, turned(swapped, [true, false])));
            k.role("weights", 1, |k| load(k, turned(swapped, [false, true])));
        } else {
            k.role("load", 1, |k| load(k, [true, true]));
        }
        let added = residual.map(|residual| {
            let added = k.ring("added", 1, |r| r.shared("extra", result, turned(swapped, [ROWS, columns])));
            k.role("add", 1, |k| {
                tiles.for_each(k, |k, tile| {
                    added.produce(k, |k, extra| k.copy(extra, residual.sub(tile[0], tile_of(tile))));
                });
            });
            added
        });
        let add_products = |k: &mut KernelBuilder, sums: Buffer| {
            k.fill(sums, 0);
            k.serial("t", ..steps, |k, _| {
                factors.consume(k, |k, (left, right)| k.gemm_async(sums, left, right).with(gemm));
            });
        };
        // Some columns of the sums of a tile, from `first` on.
        let finish = |k: &mut KernelBuilder,
                      (tile, first): ([Expr; 3], Expr),
                      extra: Option<Buffer>,
                      sum_at: &dyn Fn(Expr, Expr) -> Value,
                      (out, suffix): (Buffer, &str)| {
            let (bias_length, bias_at) =
                if swapped { (ROWS, sides(tile)[0]) } else { (part, at(tile[2] * columns + first, part)) };
            let bias = bias.map(|bias| {
                let held = k.fragment(&format!("held_bias{suffix}"), sum, [bias_length]);
                k.copy(held, bias.sub((bias_at,)));
                held
            });
            k.parallel([ROWS, part], |k, [i, j]| {
                let [row, column] = turned(swapped, [i, first + j]);
                let bias = bias.map(|bias| bias.at((if swapped { i } else { j },)));
                let extra = extra.map(|extra| extra.at((row, column)));
                let element = operands.finished(k, sum_at(i, j), [bias, extra]);
                k.store(out, (row, column), element);
            });
        };
        let tile_in = |k: &mut KernelBuilder, suffix: &str| {
            k.shared(&format!("out{suffix}"), result, turned(swapped, [ROWS, columns]))
        };
        let store = |k: &mut KernelBuilder, tile: [Expr; 3], out: Buffer| {
            let part = c.sub(tile[0] / splits, tile_of(tile));
            if splits > 1 {
                k.atomic_add(part, out);
            } else {
                k.copy_async(part, out);
            }
        };
        match target {
            // Two warpgroups share a tile, or each has a tile of its own: one multiplies while the other stores.
            Target::Sm90a => {
                let together: &[(&str, i64, &str)] = &[("multiply", 8, "")];
                let in_turns: &[(&str, i64, &str)] = &[("even", 4, "_even"), ("odd", 4, "_odd")];
                let roles = if config.takes_turns() { in_turns } else { together };
                for (turn, (name, warps, suffix)) in roles.iter().enumerate() {
                    let out = tile_in(k, suffix);
                    k.role(name, *warps, |k| {
                        tiles.for_every(k, [turn as i64, roles.len() as i64], |k, tile| {
                            let sums = k.fragment(&format!("sums{suffix}"), sum, [ROWS, columns]);
                            add_products(k, sums);
                            let extra = added.as_ref().map(|added| added.wait(k));
                            let added = extra.as_ref().map(|extra| extra.buffers);
                            k.unroll("p", 0..columns / part, |k, p| {
                                finish(k, (tile, p * part), added, &|i, j| sums.at((i, p * part + j)), (out, suffix));
                            });
                            extra.into_iter().for_each(|extra| extra.release(k));
                            store(k, tile, out);
                        });
                    });
                }
            }
            Target::Sm100a => {
                let out = tile_in(k, "");
                let acc = k.ring("acc", sums, |r| r.tensor("sums", sum, [ROWS, columns]));
                k.role("multiply", 1, |k| {
                    tiles.for_each(k, |k, _| acc.produce(k, add_products));
                });
                k.role("store", 4, |k| {
                    tiles.for_each(k, |k, tile| {
                        // The next products may begin once all sums are in registers.
                        let stage = acc.wait(k);
                        let extra = added.as_ref().map(|added| added.wait(k));
                        let added = extra.as_ref().map(|extra| extra.buffers);
                        k.unroll("p", 0..columns / part, |k, p| {
                            let held = k.fragment("held", sum, [ROWS, part]);
                            k.copy(held, stage.buffers.sub((.., at(p * part, part))));
                            finish(k, (tile, p * part), added, &|i, j| held.at((i, j)), (out, ""));
                        });
                        stage.release(k);
                        extra.into_iter().for_each(|extra| extra.release(k));
                        store(k, tile, out);
                    });
                });
            }
        }
        k.threads(32 * config.warps());
        if config.takes_turns() {
            k.move_registers();
        }
    })
}
