use std::f64::consts::LOG2_E;
use std::ops::Range;

use tilewright::prelude::*;
use tilewright::runtime::HostTensor;

use crate::attention::{
    CAUSAL, DEPTH, GROUP, HEADS, KEYS, QUERIES, STAGES, TOLERANCE, VALUE_DEPTH, inputs, of_sequences, product,
    reference, value_depth,
};
use crate::config::ShapeKey;
use crate::numbers::listed;
use crate::running_softmax::{RunningSoftmax, Seen};
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
        SEQUENCES,
        LONGEST,
    ],
    dtypes: &[BF16, F16],
    build: attention_roles,
    run_time: |config| match is_packed(config) {
        false => &["heads", "queries", "keys"],
        true => &["heads", "queries", "keys", "sequences", "longest"],
    },
    inputs: packed_inputs,
    reference: |config, inputs| match sequences(config) {
        sequences if sequences.is_empty() => reference(config, inputs),
        sequences => of_sequences(config, inputs, &sequences),
    },
    tolerance: |_| TOLERANCE,
    tested: &[
        (F16, &[("queries", 1), ("keys", 1)]),
        (F16, &[("queries", 300), ("keys", 300), ("causal", 1), ("stages", 3)]),
        (BF16, &[("heads", 3), ("group", 2), ("queries", 70), ("keys", 129), ("depth", 128)]),
        (F16, &[("heads", 1), ("queries", 150), ("keys", 140), ("depth", 192), ("value_depth", 128), ("causal", 1)]),
        (F16, &[("heads", 1), ("queries", 340), ("keys", 420), ("sequences", 5), ("longest", 149)]),
        (BF16, &[("heads", 1), ("queries", 400), ("keys", 400), ("sequences", 4), ("longest", 223), ("causal", 1)]),
    ],
};

/// Sequences that follow each other in the tensors.
const SEQUENCES: ShapeKey = ShapeKey {
    name: "sequences",
    default: 0,
    about: "sequences that follow each other among the queries and keys of a head; 0: a head is one sequence",
};
/// The queries for which the launch has CTAs.
const LONGEST: ShapeKey =
    ShapeKey { name: "longest", default: 128, about: "queries of the longest of several sequences" };

/// Columns of sums that are in registers at a time on their way from and to tensor memory.
const PART: i64 = 16;
/// Of so many exponentials, one is computed by a polynomial on `sm_100a`. The unit for exponentials takes an eighth of a warp in a
/// cycle, and the others a whole one. There are about 6 other operations for each score, and a polynomial is 8 more: with one
/// of 8, both are busy for 7 cycles.
const POLYNOMIALS: i64 = 8;
/// Queries of a tile.
const ROWS: i64 = 128;

/// Whether there are several sequences of any length in each head, and tensors that say where they begin.
fn is_packed(config: &Config) -> bool {
    config.size("sequences") > 0
}

/// The queries and the keys of each of several sequences: the first one has no queries, and the last one no keys.
fn sequences(config: &Config) -> Vec<(Range<usize>, Range<usize>)> {
    let [all, queries, keys] = ["sequences", "queries", "keys"].map(|name| config.size(name) as usize);
    let part = |of: usize, at: usize| of * at.saturating_sub(1).pow(2) / (all - 1).max(1).pow(2);
    let first = |of: usize, at: usize| if at == all { of } else { part(of, at) };
    (0..all)
        .map(|at| {
            (first(queries, at)..first(queries, at + 1), keys - first(keys, all - at)..keys - first(keys, all - at - 1))
        })
        .collect()
}

fn packed_inputs(config: &Config) -> Vec<HostTensor> {
    let mut made = inputs(config);
    let sequences = sequences(config);
    if !sequences.is_empty() {
        let ends =
            |of: Vec<usize>| listed(I32, &[of.len() as i64], &of.iter().map(|at| *at as f64).collect::<Vec<_>>());
        let (of_queries, of_keys) = sequences.iter().map(|(queries, keys)| (queries.end, keys.end)).unzip();
        made.extend([of_queries, of_keys].map(|of: Vec<usize>| ends([vec![0], of].concat())));
    }
    made
}

/// The queries and keys of the sequence of a CTA, as indices of rows.
struct Sequence {
    first_query: Expr,
    end_query: Expr,
    first_key: Expr,
    end_key: Expr,
}

/// A CTA has one tile of queries, or two on `sm_100a`: while the weights of one are computed, the tensor core multiplies for the
/// other.
fn attention_roles(config: &Config, target: Target) -> Kernel {
    let [depth, stages, group] = ["depth", "stages", "group"].map(|name| config.size(name));
    let of_value = value_depth(config);
    let (dtype, is_causal) = (config.dtype, config.size("causal") == 1);
    let scale = LOG2_E / (depth as f64).sqrt();
    // The keys of a tile, as many as there are shared memory and registers for: on `sm_100a`, a thread has the scores of a whole row, and
    // the ends of several sequences.
    let (blocks, tile_keys) = match target {
        Target::Sm90a => (1, 128),
        Target::Sm100a if depth.max(of_value) > 64 || is_packed(config) => (2, 64),
        Target::Sm100a => (2, 128),
    };
    kernel("attention_roles", |k| {
        let (heads, queries, keys) = (k.size("heads").max(65_535 / group), k.size("queries"), k.size("keys"));
        let q = k.input("q", dtype, (heads * group, queries, depth));
        let key = k.input("key", dtype, (heads, keys, depth));
        let mut value = k.input("value", dtype, (heads, keys, of_value));
        let mut out = k.output("out", F32, (heads * group, queries, of_value));
        let mut sequence =
            Sequence { first_query: 0.into(), end_query: queries.into(), first_key: 0.into(), end_key: keys.into() };
        let (cta, head);
        if is_packed(config) {
            let (sequences, longest) = (k.size("sequences").max(65_535), k.size("longest"));
            let of_queries = k.input("of_queries", I32, (sequences + 1,));
            let of_keys = k.input("of_keys", I32, (sequences + 1,));
            let [x, y, z] = k.grid([longest.ceil_div(blocks * ROWS), heads * group, sequences.into()]);
            (cta, head) = (x, y);
            sequence = Sequence {
                first_query: k.index("first_query", of_queries.at((z,)), queries),
                end_query: k.index("end_query", of_queries.at((z + 1,)), queries),
                first_key: k.index("first_key", of_keys.at((z,)), keys),
                end_key: k.index("end_key", of_keys.at((z + 1,)), keys),
            };
            // The rows of the next sequence are neither multiplied by weights of 0 nor written.
            value = k.truncated("values", value, 1, sequence.end_key);
            out = k.truncated("outs", out, 1, sequence.end_query);
        } else {
            [cta, head] = k.grid([queries.ceil_div(blocks * ROWS), heads * group]);
        }
        let Sequence { first_query, first_key, .. } = sequence;
        let known = sequence.end_key - first_key;
        let top = |block: i64| (cta * blocks + block) * ROWS;
        let rows = |block: i64| (head, at(first_query + top(block), ROWS), ..);
        // All tiles of queries of a CTA go through the keys that the last one sees.
        let seen = if is_causal { ((cta + 1) * (blocks * ROWS)).at_most(known) } else { known };
        // The keys of a tile that queries see: those before the end of what a query sees.
        let seen_in = |block: i64, t: Expr| {
            let end = move |i: Expr| if is_causal { (top(block) + i + 1).at_most(known) } else { known };
            let all = Value::from((t + 1) * tile_keys).le(end(0.into()));
            Seen { all, is_seen: move |i: Expr, j: Expr| Value::from(t * tile_keys + j).lt(end(i)) }
        };
        let tiles = seen.ceil_div(tile_keys);
        // The copy engine does not know where a sequence ends: threads copy values then.
        let loaders = match target {
            _ if !is_packed(config) => 1,
            Target::Sm90a => 4,
            Target::Sm100a => 2,
        };
        let query = k.ring("query", 1, |r| {
            (0..blocks).map(|block| r.shared(&format!("q{block}"), dtype, [ROWS, depth])).collect::<Vec<Buffer>>()
        });
        let pairs = k.ring("pairs", stages, |r| {
            (r.shared("key_tile", dtype, [tile_keys, depth]), r.shared("value_tile", dtype, [tile_keys, of_value]))
        });
        k.role("load", loaders, |k| {
            query.produce(k, |k, all| {
                for (block, held_q) in (0..).zip(all) {
                    k.copy(held_q, q.sub(rows(block)));
                }
            });
            k.serial("t", ..tiles, |k, t| {
                pairs.produce(k, |k, (key_tile, value_tile)| {
                    let tile = (head / group, at(first_key + t * tile_keys, tile_keys), ..);
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
                            softmax.step(k, scale, seen_in(0, t));
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
                // Of 512 columns of tensor memory, scores take one for each key, weights half of one, and sums one for each element of a value.
                let are_weights_in_tensor = blocks * (tile_keys + tile_keys / 2 + of_value) <= 512;
                // What the roles of a tile of queries exchange: scores, and weights with the sums of what they are multiplied by.
                let exchanged: Vec<_> = (0..blocks)
                    .map(|block| {
                        let name = |what: &str| format!("{what}{block}");
                        let scores = k.ring(&name("scores_of"), 1, |r| r.tensor(&name("s"), F32, [ROWS, tile_keys]));
                        let sums = k.exchange(&name("sums"), |r| {
                            let weights = match are_weights_in_tensor {
                                true => r.tensor(&name("p"), dtype, [ROWS, tile_keys]),
                                false => r.shared(&name("p"), dtype, [ROWS, tile_keys]),
                            };
                            (weights, r.tensor(&name("o"), F32, [ROWS, of_value]))
                        });
                        (scores, sums)
                    })
                    .collect();
                k.role("multiply", 1, |k| {
                    exchanged.iter().for_each(|(_, sums)| sums.consume(k, |_, _| ()));
                    let stage = query.wait(k);
                    k.serial("t", ..tiles, |k, _| {
                        pairs.consume(k, |k, (key_tile, value_tile)| {
                            for ((scores, _), held_q) in exchanged.iter().zip(&stage.buffers) {
                                scores.produce(k, |k, s| k.gemm_async(s, *held_q, key_tile).with(product(true, true)));
                            }
                            for (_, sums) in &exchanged {
                                sums.consume(k, |k, (p, o)| k.gemm_async(o, p, value_tile).with(product(false, false)));
                            }
                        });
                    });
                    stage.release(k);
                    exchanged.iter().for_each(|(_, sums)| sums.consume(k, |_, _| ()));
                });
                for (block, (scores, sums)) in (0..).zip(&exchanged) {
                    k.role(&format!("softmax{block}"), 4, |k| {
                        let softmax = RunningSoftmax::new(k, [ROWS, tile_keys]).with_polynomials(Some(POLYNOMIALS));
                        let part = k.fragment(&format!("part{block}"), F32, [ROWS, PART]);
                        let by_parts =
                            |k: &mut KernelBuilder, o: Buffer, body: &dyn Fn(&mut KernelBuilder, Expr, Region)| {
                                k.unroll("c", 0..of_value / PART, |k, c| body(k, c, o.sub((.., at(c * PART, PART)))));
                            };
                        k.fill(part, 0.0);
                        sums.produce(k, |k, (_, o)| by_parts(k, o, &|k, _, tile| _ = k.copy(tile, part)));
                        k.serial("t", ..tiles, |k, t| {
                            scores.consume(k, |k, s| k.copy(softmax.scores, s));
                            let some_grow = softmax.step_with_leeway(k, scale, seen_in(block, t));
                            sums.produce(k, |k, (p, o)| {
                                let weight = |[i, j]: [Expr; 2]| softmax.scores.at((i, j)).cast(dtype);
                                if are_weights_in_tensor {
                                    let weights = k.fragment(&format!("weights{block}"), dtype, [ROWS, tile_keys]);
                                    k.map(weights, weight);
                                    k.copy(p, weights);
                                } else {
                                    k.map(p, weight);
                                }
                                k.if_(some_grow, |k| {
                                    by_parts(k, o, &|k, _, tile| {
                                        k.copy(part, tile.clone());
                                        k.map(part, |[i, j]| part.at((i, j)) * softmax.before.at((i,)));
                                        k.copy(tile, part);
                                    });
                                });
                            });
                        });
                        let of_row = softmax.inverse_sums(k);
                        // A thread has a row, and stores it in vectors that fill sectors.
                        sums.produce(k, |k, (_, o)| {
                            by_parts(k, o, &|k, c, tile| {
                                k.copy(part, tile);
                                k.parallel([ROWS, PART], |k, [i, j]| {
                                    let place = (head, first_query + top(block) + i, c * PART + j);
                                    k.store(out, place, part.at((i, j)) * of_row.at((i,)));
                                });
                            });
                        });
                    });
                }
            }
        }
    })
}
