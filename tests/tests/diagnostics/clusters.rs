//! Clusters that no GPU runs, and pairs of CTAs that cannot multiply together.

use super::*;

/// How a product of a pair is wrong.
#[derive(Clone, Copy)]
struct Pair {
    ctas: i64,
    columns: i64,
    /// Whether a part of the stage is filled by stores.
    stores: bool,
    /// Whether the factors have a stride that the copy engine cannot take.
    is_odd: bool,
    /// Whether the number of stages depends on the rank.
    of_rank: bool,
    /// What else the role does that multiplies.
    beside: Beside,
}

#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    Copies,
    Single,
}

const RIGHT: Pair =
    Pair { ctas: 2, columns: 128, stores: false, is_odd: false, of_rank: false, beside: Beside::Nothing };

const OF_PAIR: Gemm = Gemm { transpose_b: true, pair: true, ..Gemm::PLAIN };

fn product(pair: Pair) -> Kernel {
    let Pair { ctas, columns, stores, is_odd, of_rank, beside } = pair;
    kernel("k", |k| {
        let depth = if is_odd { 68 } else { 64 };
        let (a, b) = (k.input("a", BF16, [256, depth]), k.input("b", BF16, [128, depth]));
        let (c, d) = (k.output("c", F32, [256, 128]), k.output("d", F32, [32]));
        let rank = k.cluster(ctas);
        k.threads(192);
        let ab = k.ring("ab", 1, |r| [r.shared("left", BF16, [128, 64]), r.shared("right", BF16, [64, 64])]);
        let acc = k.ring("acc", 1, |r| r.tensor("sums", F32, [128, columns]));
        let steps = if of_rank { rank + 1 } else { Expr::from(1) };
        k.role("load", 1, |k| {
            k.serial("t", ..steps, |k, _| {
                ab.produce(k, |k, [left, right]| {
                    k.copy(left, a.sub((at(rank * 128, 128), 0..64)));
                    match stores {
                        false => _ = k.copy(right, b.sub((at(rank * 64, 64), 0..64))),
                        true => _ = k.fill(right, 1),
                    }
                });
            });
        });
        k.role("multiply", 1, |k| {
            acc.produce(k, |k, sums| {
                k.fill(sums, 0);
                k.serial("t", ..steps, |k, _| {
                    ab.consume(k, |k, [left, right]| {
                        k.gemm_async(sums, left, right).with(OF_PAIR);
                        if beside == Beside::Single {
                            k.gemm_async(sums, left, right).with(Gemm { pair: false, ..OF_PAIR });
                        }
                    });
                });
            });
            if beside == Beside::Copies {
                k.fill(d, 0.0);
            }
        });
        k.role("store", 4, |k| {
            acc.consume(k, |k, sums| {
                let held = k.fragment("held", F32, [128, columns]);
                k.copy(held, sums);
                k.copy(c.sub((at(rank * 128, 128), 0..columns)), held);
            });
        });
    })
}

#[test]
fn clusters_that_no_gpu_runs() {
    assert_mistake("a_cluster_of_3", product(Pair { ctas: 3, ..RIGHT }));
    let twice = kernel("k", |k| {
        k.cluster(2);
        k.cluster(4);
    });
    assert_mistake("two_clusters", twice);
    let late = kernel("k", |k| {
        k.grid([4]);
        k.cluster(2);
    });
    assert_mistake("a_cluster_after_the_grid", late);
    let deep = kernel("k", |k| {
        k.cluster(2);
        k.grid([4, 4, 4]);
    });
    assert_mistake("a_grid_of_clusters_of_3_dimensions", deep);
}

#[test]
fn pairs_that_cannot_multiply() {
    assert!(compile(product(RIGHT), &Options::new(Target::Sm100a)).is_ok());
    assert_mistake("a_pair_of_1", product(Pair { ctas: 1, ..RIGHT }));
    assert_mistake("columns_of_one_cta", product(Pair { columns: 64, ..RIGHT }));
    assert_mistake("a_role_of_a_pair_that_copies", product(Pair { beside: Beside::Copies, ..RIGHT }));
    assert_mistake("a_pair_and_a_single_cta", product(Pair { columns: 128, beside: Beside::Single, ..RIGHT }));
    assert_mistake("stages_of_a_pair_of_unlike_numbers", product(Pair { of_rank: true, ..RIGHT }));
    assert_mistake("stores_to_stages_of_a_pair", product(Pair { stores: true, ..RIGHT }));
    assert_mistake("odd_strides_of_a_pair", product(Pair { is_odd: true, ..RIGHT }));
    let plain = kernel("k", |k| {
        k.cluster(2);
        let (a, b) = (k.shared("a", BF16, [64, 64]), k.shared("b", BF16, [64, 64]));
        let c = k.fragment("c", F32, [64, 128]);
        for buffer in [a, b, c] {
            k.fill(buffer, 0);
        }
        k.gemm(c, a, b).with(Gemm { pair: true, ..Gemm::PLAIN });
    });
    assert_mistake("gemm_of_a_pair", plain);
}
