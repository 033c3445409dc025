//! The kernel: roles that load, multiply and store.

use tilewright::prelude::*;

use super::config::{Activation, MOST, MatmulConfig, MatmulShape, ROWS};
use crate::blocks::divisible_like;
use crate::numbers::{CUBE, ROOT};
use crate::products::turned;

/// A matrix, or a batch of them.
#[derive(Clone, Copy)]
struct Matrices {
    tensor: Buffer,
    is_batch: bool,
}

impl Matrices {
    fn input(
        k: &mut KernelBuilder,
        (name, dtype): (&str, DType),
        batch: Option<Size>,
        [rows, columns]: [Size; 2],
    ) -> Self {
        let tensor = match batch {
            Some(batch) => k.input(name, dtype, (batch, rows, columns)),
            None => k.input(name, dtype, (rows, columns)),
        };
        Matrices { tensor, is_batch: batch.is_some() }
    }

    fn output(
        k: &mut KernelBuilder,
        (name, dtype): (&str, DType),
        batch: Option<Size>,
        [rows, columns]: [Size; 2],
    ) -> Self {
        let tensor = match batch {
            Some(batch) => k.output(name, dtype, (batch, rows, columns)),
            None => k.output(name, dtype, (rows, columns)),
        };
        Matrices { tensor, is_batch: batch.is_some() }
    }

    /// Some rows and columns of a matrix.
    fn sub(self, matrix: Expr, [rows, columns]: [Index; 2]) -> Region {
        if self.is_batch { self.tensor.sub((matrix, rows, columns)) } else { self.tensor.sub((rows, columns)) }
    }
}

/// The kernel for sizes like these: they are given at launch, and may be any that have the same powers of two up to 16 as divisors.
pub(super) fn matmul(config: &MatmulConfig, like: MatmulShape) -> Kernel {
    let MatmulConfig { target, factor, result, columns, stages, sums, cluster, clusters, group, epilogue, .. } =
        *config;
    let (sum, value_of, step, part, is_pair) =
        (config.sum(), config.value(), config.step(), config.part(), config.is_pair());
    let [transpose_a, transpose_b] = config.transposed;
    let gemm = Gemm { transpose_a, transpose_b, pair: is_pair, ..Gemm::PLAIN };
    // A CTA of a pair has half of the columns of `b`.
    let own = if is_pair { columns / 2 } else { columns };
    kernel("matmul", |k| {
        let [m, n, depth] =
            [("m", like.m), ("n", like.n), ("k", like.k)].map(|(name, size)| divisible_like(k, name, size));
        // The tiles of a batch are counted in 32 bits.
        let batch = (like.batch > 1).then(|| k.size("batch").max(MOST));
        let [m, n] = if batch.is_some() { [m.max(MOST * ROWS), n.max(MOST * columns)] } else { [m, n] };
        let a = Matrices::input(k, ("a", factor), batch, turned(transpose_a, [m, depth]));
        let b = Matrices::input(k, ("b", factor), batch, turned(transpose_b, [depth, n]));
        let residual = epilogue.residual.then(|| Matrices::input(k, ("residual", result), batch, [m, n]));
        let bias = epilogue.bias.then(|| k.input("bias", sum, (n,)));
        let scale = epilogue.scale.then(|| k.scalar("scale", F32));
        let c = Matrices::output(k, ("c", result), batch, [m, n]);
        let rank = k.cluster(cluster);
        let all = [batch.map_or(Expr::from(1), Expr::from), m.ceil_div(ROWS * cluster), n.ceil_div(columns)];
        let tiles = Tiles::persistent(k, all, (clusters, group));
        // The part of the result that a CTA computes.
        let tile_of =
            |[_, row, column]: [Expr; 3]| [at((row * cluster + rank) * ROWS, ROWS), at(column * columns, columns)];
        let steps = depth.ceil_div(step);
        let factors = k.ring("factors", stages, |r| {
            let left = r.shared("left", factor, turned(transpose_a, [ROWS, step]));
            (left, r.shared("right", factor, turned(transpose_b, [step, own])))
        });
        k.role("load", 1, |k| {
            tiles.for_each(k, |k, tile @ [matrix, _, column]| {
                let [rows, _] = tile_of(tile);
                let columns = at(if is_pair { column * columns + rank * own } else { column * columns }, own);
                k.serial("t", ..steps, |k, t| {
                    let along = at(t * step, step);
                    factors.produce(k, |k, (left, right)| {
                        k.copy(left, a.sub(matrix, turned(transpose_a, [rows, along])));
                        k.copy(right, b.sub(matrix, turned(transpose_b, [along, columns])));
                    });
                });
            });
        });
        let added = residual.map(|residual| {
            let added = k.ring("added", 1, |r| r.shared("extra", result, [ROWS, columns]));
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
        let out = k.shared("out", result, [ROWS, columns]);
        // Some columns of a tile, from `first` on; the tile is the `column`-th of its row.
        let finish = |k: &mut KernelBuilder,
                      [column, first]: [Expr; 2],
                      extra: Option<Buffer>,
                      sum_at: &dyn Fn(Expr, Expr) -> Value| {
            let bias = bias.map(|bias| {
                let held = k.fragment("held_bias", sum, [part]);
                k.copy(held, bias.sub((at(column * columns + first, part),)));
                held
            });
            k.parallel([ROWS, part], |k, [i, j]| {
                let sum = sum_at(i, j).cast(value_of);
                let scaled = scale.map_or(sum, |scale| sum * scale);
                let biased = bias.map_or(scaled, |bias| scaled + bias.at((j,)).cast(value_of));
                let active = match epilogue.activation {
                    Activation::None => biased,
                    Activation::Relu => biased.max(0),
                    Activation::Gelu => {
                        // Results of 32 bits keep more digits than `fast_tanh` has.
                        let v = k.named("v", biased);
                        v * (v * (v * v * (2.0 * ROOT * CUBE) + 2.0 * ROOT)).fast_sigmoid()
                    }
                    Activation::Silu => biased.fast_silu(),
                };
                let value = extra.map_or(active, |extra| active + extra.at((i, first + j)).cast(value_of));
                k.store(out, (i, first + j), value.cast(result));
            });
        };
        let store = |k: &mut KernelBuilder, tile: [Expr; 3]| {
            k.copy_async(c.sub(tile[0], tile_of(tile)), out);
        };
        match target {
            Target::Sm90a => {
                k.role("multiply", 8, |k| {
                    tiles.for_each(k, |k, tile @ [_, _, column]| {
                        let sums = k.fragment("sums", sum, [ROWS, columns]);
                        add_products(k, sums);
                        let extra = added.as_ref().map(|added| added.wait(k));
                        let added = extra.as_ref().map(|extra| extra.buffers);
                        k.unroll("p", 0..columns / part, |k, p| {
                            finish(k, [column, p * part], added, &|i, j| sums.at((i, p * part + j)));
                        });
                        extra.into_iter().for_each(|extra| extra.release(k));
                        store(k, tile);
                    });
                });
            }
            Target::Sm100a => {
                let acc = k.ring("acc", sums, |r| r.tensor("sums", sum, [ROWS, columns]));
                k.role("multiply", 1, |k| {
                    tiles.for_each(k, |k, _| acc.produce(k, add_products));
                });
                k.role("store", 4, |k| {
                    tiles.for_each(k, |k, tile @ [_, _, column]| {
                        // The next products may begin once all sums are in registers.
                        let stage = acc.wait(k);
                        let extra = added.as_ref().map(|added| added.wait(k));
                        let added = extra.as_ref().map(|extra| extra.buffers);
                        k.unroll("p", 0..columns / part, |k, p| {
                            let held = k.fragment("held", sum, [ROWS, part]);
                            k.copy(held, stage.buffers.sub((.., at(p * part, part))));
                            finish(k, [column, p * part], added, &|i, j| held.at((i, j)));
                        });
                        stage.release(k);
                        extra.into_iter().for_each(|extra| extra.release(k));
                        store(k, tile);
                    });
                });
            }
        }
        k.threads(32 * config.warps());
    })
}
