use std::f64::consts::LOG2_E;

use tilewright::prelude::*;

use crate::attention::{
    CAUSAL, DEPTH, GROUP, HEADS, KEYS, QUERIES, STAGES, TOLERANCE, VALUE_DEPTH, inputs, product, reference, value_depth,
};
use crate::config::ShapeKey;
use crate::running_softmax::RunningSoftmax;
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "attention_roles",
    about: "softmax(q*k^T/sqrt(depth))*v of each head by roles: one loads, one multiplies, others compute weights",
    shape: &[
        HEADS,
        GROUP,
        QUERIES,
        KEYS,
        ShapeKey { about: "elements of a query or a key: a multiple of 16", ..DEPTH },
        VALUE_DEPTH,
        CAUSAL,
        STAGES,
    ],
    dtypes: &[BF16, F16],
    build: attention_roles,
    run_time: |_| &["heads", "queries", "keys"],
    inputs,
    reference,
    tolerance: |_| TOLERANCE,
    tested: &[
        (F16, &[("queries", 1), ("keys", 1)]),
        (F16, &[("queries", 300), ("keys", 300), ("causal", 1), ("stages", 3)]),
        (BF16, &[("heads", 3), ("group", 2), ("queries", 70), ("keys", 129), ("depth", 128)]),
        (F16, &[("heads", 1), ("queries", 150), ("keys", 140), ("depth", 192), ("value_depth", 128), ("causal", 1)]),
    ],
};

/// Columns of sums that are in registers at a time on their way from tensor memory.
const PART: i64 = 16;
/// Queries of a tile.
const ROWS: i64 = 128;

/// A CTA has one tile of queries, or two on `sm_100a`: while the weights of one are computed, the tensor core multiplies for the
/// other.
fn attention_roles(config: &Config, target: Target) -> Kernel {
    let [depth, stages, group] = ["depth", "stages", "group"].map(|name| config.size(name));
    let of_value = value_depth(config);
    let (dtype, is_causal) = (config.dtype, config.size("causal") == 1);
    let scale = LOG2_E / (depth as f64).sqrt();
    // The keys of a tile, as many as there are registers for their scores: on `sm_100a` a thread has a whole row.
    let (blocks, tile_keys) = match target {
        Target::Sm90a => (1, 128),
        Target::Sm100a => (2, 64),
    };
    kernel("attention_roles", |k| {
        let (heads, queries, keys) = (k.size("heads").max(65_535 / group), k.size("queries"), k.size("keys"));
        let q = k.input("q", dtype, (heads * group, queries, depth));
        let key = k.input("key", dtype, (heads, keys, depth));
        let value = k.input("value", dtype, (heads, keys, of_value));
        let out = k.output("out", F32, (heads * group, queries, of_value));
        let [cta, head] = k.grid([queries.ceil_div(blocks * ROWS), heads * group]);
        let top = |block: i64| (cta * blocks + block) * ROWS;
        let rows = |block: i64| (head, at(top(block), ROWS), ..);
        // All tiles of queries of a CTA go through the keys that the last one sees.
        let seen = if is_causal { ((cta + 1) * (blocks * ROWS)).at_most(keys) } else { keys.into() };
        // Whether a query sees a key.
        let sees = |block: i64, t: Expr| {
            move |i: Expr, j: Expr| {
                let last = if is_causal { (top(block) + i + 1).at_most(keys) } else { keys.into() };
                Value::from(t * tile_keys + j).lt(last)
            }
        };
        let tiles = seen.ceil_div(tile_keys);
        let query = k.ring("query", 1, |r| {
            (0..blocks).map(|block| r.shared(&format!("q{block}"), dtype, [ROWS, depth])).collect::<Vec<Buffer>>()
        });
        let pairs = k.ring("pairs", stages, |r| {
            (r.shared("key_tile", dtype, [tile_keys, depth]), r.shared("value_tile", dtype, [tile_keys, of_value]))
        });
        k.role("load", 1, |k| {
            query.produce(k, |k, all| {
                for (block, held_q) in (0..).zip(all) {
                    k.copy(held_q, q.sub(rows(block)));
                }
            });
            k.serial("t", ..tiles, |k, t| {
                pairs.produce(k, |k, (key_tile, value_tile)| {
                    let tile = (head / group, at(t * tile_keys, tile_keys), ..);
                    k.copy(key_tile, key.sub(tile));
                    k.copy(value_tile, value.sub(tile));
                });
            });
        });
        match target {
            Target::Sm90a => {
                k.threads(128 + 256);
                k.move_registers();
                k.role("compute", 8, |k| {
                    let softmax = RunningSoftmax::new(k, [ROWS, tile_keys]);
                    let weights = k.fragment("weights", dtype, [ROWS, tile_keys]);
                    let held = k.fragment("held", F32, [ROWS, of_value]);
                    k.fill(held, 0.0);
                    let stage = query.wait(k);
                    k.serial("t", ..tiles, |k, t| {
                        pairs.consume(k, |k, (key_tile, value_tile)| {
                            k.gemm_async(softmax.scores, stage.buffers[0], key_tile).with(product(true, true));
                            softmax.step(k, scale, sees(0, t));
                            k.map(weights, |[i, j]| softmax.scores.at((i, j)).cast(dtype));
                            k.map(held, |[i, j]| held.at((i, j)) * softmax.before.at((i,)));
                            k.gemm_async(held, weights, value_tile).with(product(false, false));
                        });
                    });
                    stage.release(k);
                    softmax.finish(k, held);
                    k.copy(out.sub(rows(0)), held);
                });
            }
            Target::Sm100a => {
                k.threads(128 + blocks * 128);
                k.move_registers();
                // What the roles of a tile of queries exchange: scores, weights, and weights times values.
                let exchanged: Vec<_> = (0..blocks)
                    .map(|block| {
                        let name = |what: &str| format!("{what}{block}");
                        let scores = k.ring(&name("scores_of"), 1, |r| r.tensor(&name("s"), F32, [ROWS, tile_keys]));
                        let weights = k.ring(&name("weights"), 1, |r| r.shared(&name("p"), dtype, [ROWS, tile_keys]));
                        let sums = k.ring(&name("sums"), 1, |r| r.tensor(&name("o"), F32, [ROWS, of_value]));
                        (scores, weights, sums)
                    })
                    .collect();
                k.role("multiply", 1, |k| {
                    let stage = query.wait(k);
                    k.serial("t", ..tiles, |k, _| {
                        pairs.consume(k, |k, (key_tile, value_tile)| {
                            for ((scores, _, _), held_q) in exchanged.iter().zip(&stage.buffers) {
                                scores.produce(k, |k, s| k.gemm_async(s, *held_q, key_tile).with(product(true, true)));
                            }
                            for (_, weights, sums) in &exchanged {
                                weights.consume(k, |k, p| {
                                    sums.produce(k, |k, o| k.gemm_async(o, p, value_tile).with(product(false, true)));
                                });
                            }
                        });
                    });
                    stage.release(k);
                });
                for (block, (scores, weights, sums)) in (0..).zip(&exchanged) {
                    k.role(&format!("softmax{block}"), 4, |k| {
                        let softmax = RunningSoftmax::new(k, [ROWS, tile_keys]);
                        let held = k.fragment(&format!("held{block}"), F32, [ROWS, of_value]);
                        let part = k.fragment(&format!("part{block}"), F32, [ROWS, PART]);
                        k.fill(held, 0.0);
                        k.serial("t", ..tiles, |k, t| {
                            scores.consume(k, |k, s| k.copy(softmax.scores, s));
                            softmax.step(k, scale, sees(block, t));
                            weights.produce(k, |k, p| {
                                k.map(p, |[i, j]| softmax.scores.at((i, j)).cast(dtype));
                            });
                            sums.consume(k, |k, o| {
                                k.unroll("c", 0..of_value / PART, |k, c| {
                                    k.copy(part, o.sub((.., at(c * PART, PART))));
                                    k.parallel([ROWS, PART], |k, [i, j]| {
                                        let place = (i, c * PART + j);
                                        k.store(
                                            held,
                                            place,
                                            held.at(place) * softmax.before.at((i,)) + part.at((i, j)),
                                        );
                                    });
                                });
                            });
                        });
                        softmax.finish(k, held);
                        // A thread has a row, and stores it in vectors that fill sectors.
                        k.unroll("c", 0..of_value / PART, |k, c| {
                            k.parallel([ROWS, PART], |k, [i, j]| {
                                let column = c * PART + j;
                                k.store(out, (head, top(block) + i, column), held.at((i, column)));
                            });
                        });
                    });
                }
            }
        }
    })
}
