//! Products with sums in tensor memory, by three roles: one loads, one multiplies, one stores.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::number;
use super::products::{self, ANY, are_missed, multiplied};

/// What a product is made of.
#[derive(Clone, Copy, Debug)]
struct Shape {
    columns: i64,
    depth: i64,
    dtypes: [DType; 2],
    gemm: Gemm,
    /// Of the factors, and of the sums.
    stages: [i64; 2],
    /// Columns that the role that stores holds at a time.
    part: i64,
    /// CTAs, each of which computes every so many-th tile.
    ctas: i64,
}

const PLAIN: Shape = Shape {
    columns: 64,
    depth: 64,
    dtypes: [BF16, F32],
    gemm: Gemm { transpose_b: true, ..Gemm::PLAIN },
    stages: [3, 2],
    part: 32,
    ctas: 2,
};

const ROWS: i64 = 128;

/// `c = a*b`; `a` and `b` are stored as the attributes say. Each CTA computes several tiles, one after the other.
fn product(shape: Shape) -> Kernel {
    let Shape { columns, depth, dtypes: [factor, sum], gemm, stages, part, ctas } = shape;
    kernel("product", |k| {
        let (m, n, inner) = (
            k.size("m").multiple_of(16).max(4096),
            k.size("n").multiple_of(16).max(4096),
            k.size("k").multiple_of(16).max(4096),
        );
        let (a_shape, a_tile) =
            if gemm.transpose_a { ((inner, m), [depth, ROWS]) } else { ((m, inner), [ROWS, depth]) };
        let (b_shape, b_tile) =
            if gemm.transpose_b { ((n, inner), [columns, depth]) } else { ((inner, n), [depth, columns]) };
        let (a, b) = (k.input("a", factor, a_shape), k.input("b", factor, b_shape));
        let c = k.output("c", sum, (m, n));
        let [first] = k.grid([ctas]);
        k.threads(192);
        let ab = k.ring("ab", stages[0], |r| (r.shared("left", factor, a_tile), r.shared("right", factor, b_tile)));
        let acc = k.ring("acc", stages[1], |r| r.tensor("sums", sum, [ROWS, columns]));
        let (across, down) = (n.ceil_div(columns), m.ceil_div(ROWS));
        let tiles = (across * down + (ctas - 1) - first) / ctas;
        let steps = inner.ceil_div(depth);
        k.role("load", 1, |k| {
            k.serial("tile", ..tiles, |k, tile| {
                let tile = tile * ctas + first;
                k.serial("t", ..steps, |k, t| {
                    let region = |is_turned: bool, first: Expr, extent: i64| {
                        let (own, along) = (at(first, extent), at(t * depth, depth));
                        if is_turned { [along, own] } else { [own, along] }
                    };
                    ab.produce(k, |k, (left, right)| {
                        k.copy(left, a.sub(region(gemm.transpose_a, tile / across * ROWS, ROWS)));
                        k.copy(right, b.sub(region(!gemm.transpose_b, tile % across * columns, columns)));
                    });
                });
            });
        });
        k.role("multiply", 1, |k| {
            k.serial("tile", ..tiles, |k, _| {
                acc.produce(k, |k, sums| {
                    k.fill(sums, 0);
                    k.serial("t", ..steps, |k, _| {
                        ab.consume(k, |k, (left, right)| k.gemm_async(sums, left, right).with(gemm));
                    });
                });
            });
        });
        k.role("store", 4, |k| {
            k.serial("tile", ..tiles, |k, tile| {
                let tile = tile * ctas + first;
                acc.consume(k, |k, sums| {
                    k.unroll("part", 0..columns / part, |k, at_part| {
                        let held = k.fragment("held", sum, [ROWS, part]);
                        k.copy(held, sums.sub((.., at(at_part * part, part))));
                        let column = tile % across * columns + at_part * part;
                        k.copy(c.sub((at(tile / across * ROWS, ROWS), at(column, part))), held);
                    });
                });
            });
        });
    })
}

fn compiled_for(shape: Shape) -> Artifact {
    compile(product(shape), &Options::new(Target::Sm100a)).unwrap_or_else(|found| panic!("{shape:?}: {found:?}"))
}

/// Checks the results of a launch in some schedules.
fn check(shape: Shape, size: [i64; 3], seeds: u64) {
    products::check(&compiled_for(shape), &multiplied(shape.gemm, shape.dtypes, size), seeds);
}

#[test]
fn factors_of_16_bits_may_be_stored_in_any_way() {
    for (transpose_a, transpose_b) in [(false, false), (false, true), (true, false), (true, true)] {
        let gemm = Gemm { transpose_a, transpose_b, ..Gemm::PLAIN };
        for (dtype, columns, depth) in [(BF16, 64, 64), (F16, 128, 32)] {
            check(Shape { gemm, dtypes: [dtype, F32], columns, depth, ..PLAIN }, [272, 144, 208], 2);
        }
    }
}

#[test]
fn sums_have_any_number_of_columns() {
    for (columns, part) in [(16, 16), (32, 32), (48, 24), (96, 32), (128, 64), (192, 64), (256, 64)] {
        check(Shape { columns, part, ..PLAIN }, [128, 272, 64], 1);
    }
    // Two instructions for each step.
    check(Shape { columns: 512, part: 128, stages: [2, 1], depth: 16, ..PLAIN }, [128, 528, 48], 1);
}

#[test]
fn other_dtypes() {
    for dtypes in [[E4M3, F32], [E5M2, F32], [I8, I32], [U8, I32]] {
        for transpose_b in [true, false] {
            let gemm = Gemm { transpose_b, ..Gemm::PLAIN };
            check(Shape { dtypes, gemm, ..PLAIN }, [144, 80, 192], 2);
        }
    }
}

#[test]
fn factors_of_tf32_may_be_stored_in_any_way() {
    for (transpose_a, transpose_b) in [(false, false), (false, true), (true, false), (true, true)] {
        let gemm = Gemm { transpose_a, transpose_b, tf32: true, ..Gemm::PLAIN };
        for (columns, depth) in [(64, 32), (96, 16), (32, 64)] {
            check(Shape { gemm, dtypes: [F32, F32], columns, depth, ..PLAIN }, [272, 144, 208], 2);
        }
    }
}

#[test]
fn stages_of_factors_and_of_sums() {
    for stages in [[1, 1], [2, 1], [1, 2], [4, 2], [2, 4]] {
        for (ctas, size) in [(1, [400, 208, 320]), (3, [272, 144, 16]), (7, [128, 64, 64])] {
            check(Shape { stages, ctas, ..PLAIN }, size, 3);
        }
    }
}

/// The only survivors: the fence of barriers, which a barrier of the CTA makes needless; fences between barriers and tensor memory,
/// for which the virtual GPU has no rule; barriers of lanes that have waited for their loads together, and of stores to other tiles;
/// and the last arrivals, for which nobody waits.
#[test]
fn every_barrier_is_needed() {
    let shape = Shape { ctas: 1, stages: [2, 2], ..PLAIN };
    let launches = [[384, 64, 320], [512, 64, 448]].map(|size| multiplied(shape.gemm, shape.dtypes, size));
    let Some(report) = super::mutated_as(&compiled_for(shape), &launches) else { return };
    let fences = [("fence.mbarrier_init", 1), ("tcgen05.fence", ANY)];
    let known =
        [&fences[..], &[("bar.sync \t3", 1), ("bar.sync 3", 1), ("bar.warp", 1), ("arrive.shared", 2)]].concat();
    assert!(are_missed(&report, &known), "{report:#?}");
}

/// `c[t] = a[t]*b`: each product replaces the sums of the one before, in the only stage.
#[test]
fn products_may_replace_the_sums() {
    let kernel = kernel("replaced", |k| {
        let rows = k.size("rows").multiple_of(128);
        let (a, b) = (k.input("a", BF16, (rows, 64)), k.input("b", BF16, [64, 64]));
        let c = k.output("c", F32, (rows, 64));
        k.threads(192);
        let ab = k.ring("ab", 2, |r| (r.shared("left", BF16, [128, 64]), r.shared("right", BF16, [64, 64])));
        let acc = k.ring("acc", 1, |r| r.tensor("sums", F32, [128, 64]));
        k.role("load", 1, |k| {
            k.serial("t", ..rows / 128, |k, t| {
                ab.produce(k, |k, (left, right)| {
                    k.copy(left, a.sub((at(t * 128, 128), ..)));
                    k.copy(right, b);
                });
            });
        });
        k.role("multiply", 1, |k| {
            k.serial("t", ..rows / 128, |k, _| {
                acc.produce(k, |k, sums| {
                    ab.consume(k, |k, (left, right)| {
                        k.gemm_async(sums, left, right).with(Gemm { clear: true, ..Gemm::PLAIN });
                    });
                });
            });
        });
        k.role("store", 4, |k| {
            k.serial("t", ..rows / 128, |k, t| {
                acc.consume(k, |k, sums| {
                    let held = k.fragment("held", F32, [128, 64]);
                    k.copy(held, sums);
                    k.copy(c.sub((at(t * 128, 128), ..)), held);
                });
            });
        });
    });
    let artifact = compile(kernel, &Options::new(Target::Sm100a)).expect("a kernel");
    let (left, right) = (|row: i64, t: i64| number(row * 3 + t * 5), |t: i64, column: i64| number(t * 2 + column * 7));
    let element = |at: i64| (0..64).map(|t| left(at / 64, t) * right(t, at % 64)).sum::<f64>() + 0.0;
    let inputs = vec![
        tensor(BF16, &[384, 64], |at| left(at / 64, at % 64)),
        tensor(BF16, &[64, 64], |at| right(at / 64, at % 64)),
    ];
    products::check(&artifact, &(vec![("rows", 384)], inputs, tensor(F32, &[384, 64], element)), 5);
}
