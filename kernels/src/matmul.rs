use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::divisible;
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, small};
use crate::products::{K, LAYOUT, M, N, product_of, stored_factors, transposed, turned};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "matmul",
    about: "a matrix product by roles: one loads, one multiplies, one stores; clusters compute tile after tile",
    shape: &[
        M,
        N,
        K,
        ShapeKey { default: 12, ..LAYOUT },
        ShapeKey { name: "columns", default: 128, about: "columns of a tile of 128 rows" },
        ShapeKey { name: "stages", default: 4, about: "stages of 128 bytes of each row of the factors" },
        ShapeKey { name: "epilogue", default: 1, about: "1: the product; 2: with a bias; 3: the same, and relu" },
        ShapeKey { name: "cluster", default: 1, about: "CTAs of a cluster, one below the other: 1, 2, 4 or 8" },
        ShapeKey { name: "clusters", default: 4, about: "clusters, each of which computes every so many-th tile" },
    ],
    dtypes: &[BF16, F16, E4M3, E5M2, I8],
    build: matmul,
    run_time: |_| &["m", "n", "k"],
    inputs,
    reference,
    // Sums of products of such inputs are exact, and rounded once.
    tolerance: Tolerance::EXACT,
    tested: &[
        (F16, &[("m", 300), ("n", 144), ("k", 200), ("layout", 21), ("columns", 64)]),
        (BF16, &[("m", 1), ("n", 1), ("k", 1)]),
        (BF16, &[("m", 257), ("n", 67), ("k", 129), ("columns", 64), ("epilogue", 2), ("clusters", 2)]),
        (E4M3, &[("m", 130), ("n", 260), ("k", 96), ("columns", 256), ("stages", 2), ("epilogue", 3), ("cluster", 2)]),
        (I8, &[("m", 512), ("n", 96), ("k", 272), ("columns", 48), ("epilogue", 3), ("clusters", 3)]),
        (BF16, &[("m", 520), ("n", 272), ("k", 192), ("cluster", 2), ("clusters", 2)]),
        (F16, &[("m", 640), ("n", 144), ("k", 128), ("columns", 64), ("cluster", 4), ("clusters", 1)]),
    ],
};

/// Rows of a tile.
const ROWS: i64 = 128;
/// Bytes of which the rows of a factor begin at multiples, if the copy engine copies it.
const ROW_UNIT: i64 = 16;
/// Bytes of a row of a factor in a stage.
const STEP_BYTES: i64 = 128;
/// Rows of tiles that CTAs compute at the same time.
const GROUP: i64 = 8;

/// How a product is computed; the rest of the kernel follows.
#[derive(Clone, Copy, Debug)]
struct Matmul {
    /// The dtype of the factors.
    factor: DType,
    /// Whether the factors are stored as K x M and N x K.
    gemm: Gemm,
    /// Columns of a tile.
    columns: i64,
    /// Stages of the factors.
    stages: i64,
    /// Whether a bias is added to each row.
    has_bias: bool,
    /// Whether negative elements become 0.
    is_relu: bool,
    /// CTAs of a cluster, which have rows of their own and the same columns.
    cluster: i64,
    /// Clusters.
    clusters: i64,
    /// Whether the rows of the factors begin at multiples of as many bytes as the copy engine needs.
    has_whole_rows: bool,
}

impl Matmul {
    fn of(config: &Config) -> Matmul {
        let [transpose_a, transpose_b] = transposed(config);
        let gemm = Gemm { transpose_a, transpose_b, ..Gemm::PLAIN };
        let [columns, stages, cluster, clusters] =
            ["columns", "stages", "cluster", "clusters"].map(|name| config.size(name));
        let (has_bias, is_relu) = (config.size("epilogue") >= 2, config.size("epilogue") >= 3);
        let rows = [if transpose_a { "m" } else { "k" }, if transpose_b { "k" } else { "n" }];
        let has_whole_rows = rows.iter().all(|name| config.size(name) * config.dtype.bytes() % ROW_UNIT == 0);
        Matmul { factor: config.dtype, gemm, columns, stages, has_bias, is_relu, cluster, clusters, has_whole_rows }
    }

    /// Whether the two CTAs of a cluster multiply as a pair: each then has half of the columns of `b`.
    fn is_pair(self, target: Target) -> bool {
        target == Target::Sm100a && self.cluster == 2 && self.columns % 32 == 0 && self.has_whole_rows
    }

    /// The dtype of sums.
    fn sum(self) -> DType {
        if self.factor == I8 { I32 } else { F32 }
    }

    /// The dtype of the result.
    fn result(self) -> DType {
        if self.factor.bytes() == 2 { self.factor } else { self.sum() }
    }

    /// The sums of a tile that the threads of a role hold at a time on their way from tensor memory: so many columns.
    fn part(self) -> i64 {
        [32, 24, 16].into_iter().find(|part| self.columns % part == 0).unwrap_or(8)
    }

    /// The part of K in a stage.
    fn step(self) -> i64 {
        STEP_BYTES / self.factor.bytes()
    }
}

fn matmul(config: &Config, target: Target) -> Kernel {
    let shape = Matmul::of(config);
    let Matmul { factor, gemm, columns, stages, has_bias, is_relu, cluster, clusters, .. } = shape;
    let (step, part, pair) = (shape.step(), shape.part(), shape.is_pair(target));
    let gemm = Gemm { pair, ..gemm };
    // A CTA of a pair has half of the columns of `b`.
    let own = if pair { columns / 2 } else { columns };
    kernel("matmul", |k| {
        let [m, n, depth] = ["m", "n", "k"].map(|name| divisible(k, config, name));
        let sized = |[rows, cols]: [Size; 2]| (rows, cols);
        let a = k.input("a", factor, sized(turned(gemm.transpose_a, [m, depth])));
        let b = k.input("b", factor, sized(turned(gemm.transpose_b, [depth, n])));
        let bias = has_bias.then(|| k.input("bias", shape.sum(), (n,)));
        let c = k.output("c", shape.result(), (m, n));
        let rank = k.cluster(cluster);
        let tiles = Tiles::persistent(k, [m.ceil_div(ROWS * cluster), n.ceil_div(columns)], (clusters, GROUP));
        let first_row = |row: Expr| (row * cluster + rank) * ROWS;
        let steps = depth.ceil_div(step);
        let factors = k.ring("factors", stages, |r| {
            let left = r.shared("left", factor, turned(gemm.transpose_a, [ROWS, step]));
            (left, r.shared("right", factor, turned(gemm.transpose_b, [step, own])))
        });
        k.role("load", 1, |k| {
            tiles.for_each(k, |k, [row, column]| {
                let rows = at(first_row(row), ROWS);
                let columns = at(if pair { column * columns + rank * own } else { column * columns }, own);
                k.serial("t", ..steps, |k, t| {
                    let along = at(t * step, step);
                    factors.produce(k, |k, (left, right)| {
                        k.copy(left, a.sub(turned(gemm.transpose_a, [rows, along])));
                        k.copy(right, b.sub(turned(gemm.transpose_b, [along, columns])));
                    });
                });
            });
        });
        let add_products = |k: &mut KernelBuilder, sums: Buffer| {
            k.fill(sums, 0);
            k.serial("t", ..steps, |k, _| {
                factors.consume(k, |k, (left, right)| k.gemm_async(sums, left, right).with(gemm));
            });
        };
        let out = k.shared("out", shape.result(), [ROWS, columns]);
        // Some columns of a tile, from `first` on; the tile has the column `column` among the tiles.
        let finish = |k: &mut KernelBuilder, column: Expr, first: Expr, sum: &dyn Fn(Expr, Expr) -> Value| {
            let added = bias.map(|bias| {
                let added = k.fragment("added", shape.sum(), [part]);
                k.copy(added, bias.sub((at(column * columns + first, part),)));
                added
            });
            k.parallel([ROWS, part], |k, [i, j]| {
                let mut value = sum(i, j);
                if let Some(added) = added {
                    value = value + added.at((j,));
                }
                if is_relu {
                    value = value.max(0);
                }
                k.store(out, (i, first + j), value.cast(shape.result()));
            });
        };
        let store = |k: &mut KernelBuilder, [row, column]: [Expr; 2]| {
            k.copy_async(c.sub((at(first_row(row), ROWS), at(column * columns, columns))), out);
        };
        match target {
            Target::Sm90a => {
                k.threads(32 + 256);
                k.role("multiply", 8, |k| {
                    tiles.for_each(k, |k, tile @ [_, column]| {
                        let sums = k.fragment("sums", shape.sum(), [ROWS, columns]);
                        add_products(k, sums);
                        k.unroll("p", 0..columns / part, |k, p| {
                            finish(k, column, p * part, &|i, j| sums.at((i, p * part + j)));
                        });
                        store(k, tile);
                    });
                });
            }
            Target::Sm100a => {
                k.threads(32 + 32 + 128);
                let acc = k.ring("acc", 2, |r| r.tensor("sums", shape.sum(), [ROWS, columns]));
                k.role("multiply", 1, |k| {
                    tiles.for_each(k, |k, _| acc.produce(k, add_products));
                });
                k.role("store", 4, |k| {
                    tiles.for_each(k, |k, tile @ [_, column]| {
                        // The next products may begin once all sums are in registers.
                        let stage = acc.wait(k);
                        k.unroll("p", 0..columns / part, |k, p| {
                            let held = k.fragment("held", shape.sum(), [ROWS, part]);
                            k.copy(held, stage.buffers.sub((.., at(p * part, part))));
                            finish(k, column, p * part, &|i, j| held.at((i, j)));
                        });
                        stage.release(k);
                        store(k, tile);
                    });
                });
            }
        }
    })
}

/// The factors, and the bias if there is one.
fn inputs(config: &Config) -> Vec<HostTensor> {
    let shape = Matmul::of(config);
    let bias = shape.has_bias.then(|| small(shape.sum(), &[config.size("n")], 3));
    stored_factors(config).into_iter().chain(bias).collect()
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let (shape, n) = (Matmul::of(config), config.size("n") as usize);
    let bias = inputs.get(2).map(elements);
    let mut c = product_of(config, inputs);
    for (at, element) in c.iter_mut().enumerate() {
        *element += bias.as_ref().map_or(0.0, |bias| bias[at % n]);
        *element = if shape.is_relu { element.max(0.0) } else { *element };
    }
    vec![listed(shape.result(), &[config.size("m"), config.size("n")], &c)]
}
