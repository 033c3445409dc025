//! Products in clusters: copies that go to several CTAs, and pairs of CTAs that multiply together.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::products::{self, ANY, are_missed, multiplied};
use super::{MutationReport, number};

/// What a product is made of.
#[derive(Clone, Copy, Debug)]
struct Shape {
    target: Target,
    /// CTAs of a cluster, along M and along N.
    cluster: [i64; 2],
    /// Whether every two CTAs of a cluster multiply as a pair.
    pair: bool,
    /// Columns of a tile of a CTA, or of a pair.
    columns: i64,
    dtypes: [DType; 2],
    gemm: Gemm,
    /// Of the factors, and of the sums.
    stages: [i64; 2],
    /// Clusters, each of which computes every so many-th tile.
    clusters: i64,
}

const ROWS: i64 = 128;
const DEPTH: i64 = 64;
const PART: i64 = 32;

const PLAIN: Shape = Shape {
    target: Target::Sm100a,
    cluster: [2, 1],
    pair: false,
    columns: 64,
    dtypes: [BF16, F32],
    gemm: Gemm { transpose_b: true, ..Gemm::PLAIN },
    stages: [3, 2],
    clusters: 2,
};

const PAIR: Shape = Shape { pair: true, columns: 128, ..PLAIN };

/// `c = a*b`; `a` and `b` are stored as the attributes say. Each cluster computes several tiles, one after the other.
fn product(shape: Shape) -> Kernel {
    let Shape { target, cluster, pair, columns, dtypes: [factor, sum], gemm, stages, clusters } = shape;
    let gemm = Gemm { pair, ..gemm };
    let turned = |is_turned: bool, [one, other]: [i64; 2]| if is_turned { [other, one] } else { [one, other] };
    // A CTA of a pair has half of the columns of `b`.
    let own = if pair { columns / 2 } else { columns };
    kernel("product", |k| {
        let [m, n, inner] = ["m", "n", "k"].map(|name| k.size(name).multiple_of(16).max(4096));
        let sized = |is_turned: bool, [one, other]: [Size; 2]| if is_turned { (other, one) } else { (one, other) };
        let a = k.input("a", factor, sized(gemm.transpose_a, [m, inner]));
        let b = k.input("b", factor, sized(gemm.transpose_b, [inner, n]));
        let c = k.output("c", sum, (m, n));
        let rank = k.cluster(cluster[0] * cluster[1]);
        let [down, across] = [rank % cluster[0], rank / cluster[0]];
        let tiles =
            Tiles::persistent(k, [m.ceil_div(ROWS * cluster[0]), n.ceil_div(columns * cluster[1])], (clusters, 4));
        let steps = inner.ceil_div(DEPTH);
        let ab = k.ring("ab", stages[0], |r| {
            let left = r.shared("left", factor, turned(gemm.transpose_a, [ROWS, DEPTH]));
            (left, r.shared("right", factor, turned(gemm.transpose_b, [DEPTH, own])))
        });
        k.role("load", 1, |k| {
            tiles.for_each(k, |k, [row, column]| {
                let (row, column) = (row * cluster[0] + down, column * cluster[1] + across);
                let first = if pair { column * columns + rank % 2 * own } else { column * columns };
                k.serial("t", ..steps, |k, t| {
                    let region = |is_turned: bool, first: Expr, extent: i64| {
                        let (own, along) = (at(first, extent), at(t * DEPTH, DEPTH));
                        if is_turned { [along, own] } else { [own, along] }
                    };
                    ab.produce(k, |k, (left, right)| {
                        k.copy(left, a.sub(region(gemm.transpose_a, row * ROWS, ROWS)));
                        k.copy(right, b.sub(region(!gemm.transpose_b, first, own)));
                    });
                });
            });
        });
        let add = |k: &mut KernelBuilder, sums: Buffer| {
            k.fill(sums, 0);
            k.serial("t", ..steps, |k, _| ab.consume(k, |k, (left, right)| k.gemm_async(sums, left, right).with(gemm)));
        };
        let place =
            |[row, column]: [Expr; 2]| [(row * cluster[0] + down) * ROWS, (column * cluster[1] + across) * columns];
        match target {
            Target::Sm90a => {
                k.threads(160);
                k.role("math", 4, |k| {
                    tiles.for_each(k, |k, tile| {
                        let sums = k.fragment("sums", sum, [ROWS, columns]);
                        add(k, sums);
                        let [row, column] = place(tile);
                        k.copy(c.sub((at(row, ROWS), at(column, columns))), sums);
                    });
                });
            }
            Target::Sm100a => {
                k.threads(192);
                let acc = k.ring("acc", stages[1], |r| r.tensor("sums", sum, [ROWS, columns]));
                k.role("multiply", 1, |k| tiles.for_each(k, |k, _| acc.produce(k, add)));
                k.role("store", 4, |k| {
                    tiles.for_each(k, |k, tile| {
                        let [row, column] = place(tile);
                        acc.consume(k, |k, sums| {
                            k.unroll("p", 0..columns / PART, |k, p| {
                                let held = k.fragment("held", sum, [ROWS, PART]);
                                k.copy(held, sums.sub((.., at(p * PART, PART))));
                                k.copy(c.sub((at(row, ROWS), at(column + p * PART, PART))), held);
                            });
                        });
                    });
                });
            }
        }
    })
}

fn compiled_for(shape: Shape) -> Artifact {
    compile(product(shape), &Options::new(shape.target)).unwrap_or_else(|found| panic!("{shape:?}: {found:?}"))
}

/// Checks the results of a launch in some schedules.
fn check(shape: Shape, size: [i64; 3], seeds: u64) -> Artifact {
    let artifact = compiled_for(shape);
    products::check(&artifact, &multiplied(shape.gemm, shape.dtypes, size), seeds);
    artifact
}

#[test]
fn copies_go_to_the_ctas_that_need_the_same() {
    for target in Target::ALL.iter().copied() {
        for (cluster, maps) in [([2, 1], "b"), ([1, 2], "a"), ([2, 2], "ab"), ([4, 1], "b"), ([2, 4], "ab")] {
            let artifact = check(Shape { target, cluster, ..PLAIN }, [272, 144, 208], 2);
            for map in ["a", "b"] {
                let is_shared = artifact
                    .cuda()
                    .lines()
                    .any(|line| line.contains("tensor_copy_2d_multicast(&") && line.contains(&format!("&{map}_map")));
                assert_eq!(is_shared, maps.contains(map), "{target} {cluster:?} {map}\n{}", artifact.cuda());
            }
        }
    }
}

#[test]
fn pairs_multiply_factors_stored_in_any_way() {
    for (transpose_a, transpose_b) in [(false, false), (false, true), (true, false), (true, true)] {
        let gemm = Gemm { transpose_a, transpose_b, ..Gemm::PLAIN };
        check(Shape { gemm, ..PAIR }, [272, 400, 208], 3);
    }
}

#[test]
fn pairs_of_other_dtypes_and_widths() {
    for (dtypes, columns) in [([F16, F32], 256), ([BF16, F32], 64), ([E4M3, F32], 128), ([I8, I32], 128)] {
        check(Shape { dtypes, columns, ..PAIR }, [400, 272, 192], 2);
    }
}

#[test]
fn pairs_with_stages_of_factors_and_of_sums() {
    for stages in [[1, 1], [2, 1], [1, 2], [4, 2]] {
        for (clusters, size) in [(1, [528, 208, 320]), (3, [272, 144, 16])] {
            check(Shape { stages, clusters, ..PAIR }, size, 3);
        }
    }
}

/// Copies of what pairs have in common go to one CTA of each, and count in the first CTA of its pair.
#[test]
fn pairs_of_larger_clusters_share_copies() {
    for (cluster, maps) in [([4, 1], "b"), ([2, 2], "a"), ([8, 1], "b"), ([2, 4], "a"), ([4, 2], "a")] {
        for (columns, clusters) in [(128, 1), (64, 2)] {
            let shape = Shape { cluster, columns, clusters, ..PAIR };
            let artifact = check(shape, [784, 272, 208], 3);
            for map in ["a", "b"] {
                let is_shared = artifact.cuda().lines().any(|line| {
                    line.contains("tensor_copy_2d_multicast_of_pair(&") && line.contains(&format!("&{map}_map"))
                });
                assert_eq!(is_shared, maps.contains(map), "{cluster:?} {map}\n{}", artifact.cuda());
            }
        }
    }
}

/// `c = a*b + d` for the rows of two CTAs, where the stage of the sums has the row `d` too, which both CTAs copy.
fn sums_beside_a_shared_row() -> Kernel {
    kernel("beside", |k| {
        let tiles = k.size("tiles");
        let (a, b) = (k.input("a", BF16, (tiles, 256, 64)), k.input("b", BF16, [64, 64]));
        let (d, c) = (k.input("d", F32, (tiles, 64)), k.output("c", F32, (tiles, 256, 64)));
        let rank = k.cluster(2);
        k.threads(192);
        let ab = k.ring("ab", 2, |r| (r.shared("left", BF16, [128, 64]), r.shared("right", BF16, [64, 64])));
        let acc = k.ring("acc", 2, |r| (r.tensor("sums", F32, [128, 64]), r.shared("row", F32, [64])));
        k.role("load", 1, |k| {
            k.serial("t", ..tiles, |k, t| {
                acc.produce(k, |k, (_, row)| k.copy(row, d.sub((t, ..))));
                ab.produce(k, |k, (left, right)| {
                    k.copy(left, a.sub((t, at(rank * 128, 128), ..)));
                    k.copy(right, b);
                });
            });
        });
        k.role("multiply", 1, |k| {
            k.serial("t", ..tiles, |k, _| {
                acc.produce(k, |k, (sums, _)| {
                    k.fill(sums, 0);
                    ab.consume(k, |k, (left, right)| k.gemm_async(sums, left, right));
                });
            });
        });
        k.role("store", 4, |k| {
            k.serial("t", ..tiles, |k, t| {
                acc.consume(k, |k, (sums, row)| {
                    let held = k.fragment("held", F32, [128, 64]);
                    k.copy(held, sums);
                    k.parallel([128, 64], |k, [i, j]| {
                        k.store(c, (t, rank * 128 + i, j), held.at((i, j)) + row.at((j,)));
                    });
                });
            });
        });
    })
}

#[test]
fn sums_of_a_cta_are_its_own_beside_shared_copies() {
    let options = Options::new(Target::Sm100a);
    let artifact = compile(sums_beside_a_shared_row(), &options).unwrap_or_else(|found| panic!("{found:?}"));
    assert!(artifact.cuda().contains("bulk_copy_multicast(&row"), "{}", artifact.cuda());
    for tiles in [1, 2, 3, 5] {
        let left = |tile: i64, row: i64, t: i64| number(tile + row * 3 + t * 5);
        let right = |t: i64, column: i64| number(t * 2 + column * 7);
        let inputs = vec![
            tensor(BF16, &[tiles, 256, 64], |at| left(at / (256 * 64), at / 64 % 256, at % 64)),
            tensor(BF16, &[64, 64], |at| right(at / 64, at % 64)),
            tensor(F32, &[tiles, 64], number),
        ];
        let expected = tensor(F32, &[tiles, 256, 64], |at| {
            let (tile, row, column) = (at / (256 * 64), at / 64 % 256, at % 64);
            (0..64).map(|t| left(tile, row, t) * right(t, column)).sum::<f64>() + number(tile * 64 + column)
        });
        products::check(&artifact, &(vec![("tiles", tiles)], inputs, expected), 3);
    }
}

/// The results of mutants of the PTX of a product whose clusters compute several tiles, with few stages.
fn mutated(shape: Shape) -> Option<MutationReport> {
    let rows = ROWS * shape.cluster[0];
    let launches = [[3 * rows, shape.columns, 320], [4 * rows, shape.columns, 448]];
    let launches = launches.map(|size| multiplied(shape.gemm, shape.dtypes, size));
    super::mutated_as(&compiled_for(Shape { clusters: 1, stages: [2, 2], ..shape }), &launches)
}

/// The only survivors: the fence of barriers, which a barrier of the cluster makes needless; fences between barriers and tensor memory,
/// for which the virtual GPU has no rule; and barriers of lanes that have waited for their loads together, and of stores to other tiles.
const SURVIVORS: [(&str, usize); 4] =
    [("fence.mbarrier_init", 1), ("tcgen05.fence", ANY), ("bar.sync", 1), ("bar.warp", 1)];

#[test]
fn every_barrier_of_a_pair_is_needed() {
    let Some(report) = mutated(PAIR) else { return };
    assert!(are_missed(&report, &SURVIVORS), "{report:#?}");
}

#[test]
fn every_barrier_of_pairs_in_a_larger_cluster_is_needed() {
    let Some(report) = mutated(Shape { cluster: [4, 1], ..PAIR }) else { return };
    assert!(are_missed(&report, &SURVIVORS), "{report:#?}");
}

#[test]
fn every_barrier_of_shared_copies_is_needed() {
    for target in Target::ALL.iter().copied() {
        let Some(report) = mutated(Shape { target, ..PLAIN }) else { return };
        assert!(are_missed(&report, &SURVIVORS), "{target} {report:#?}");
    }
}
