use std::f64::consts::LOG2_E;
use std::ops::Range;

use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::config::ShapeKey;
use crate::numbers::{elements, greatest, listed, scattered};
use crate::running_softmax::{RunningSoftmax, Seen};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "attention",
    about: "softmax(q*k^T/sqrt(depth))*v of each head, keys tile by tile; depth is a multiple of 8",
    shape: &[
        HEADS,
        GROUP,
        QUERIES,
        KEYS,
        DEPTH,
        CAUSAL,
        STAGES,
        ShapeKey { name: "threads", default: 128, about: "threads of a CTA; each warp has 16 queries" },
    ],
    dtypes: &[F16, BF16],
    build: |config, _| attention(config),
    run_time: |_| &["heads", "queries", "keys"],
    inputs,
    reference,
    tolerance: |_| TOLERANCE,
    tested: &[
        (F16, &[("queries", 1), ("keys", 1), ("depth", 8), ("threads", 32)]),
        (F16, &[("queries", 70), ("keys", 65), ("causal", 1), ("stages", 3)]),
        (BF16, &[("heads", 3), ("queries", 17), ("keys", 129), ("threads", 64)]),
        (F16, &[("group", 4), ("queries", 33), ("keys", 40), ("depth", 32), ("threads", 64)]),
    ],
};

/// Heads of keys and values.
pub(crate) const HEADS: ShapeKey = ShapeKey { name: "heads", default: 2, about: "heads of keys and values" };
/// Heads of queries for each of keys and values.
pub(crate) const GROUP: ShapeKey =
    ShapeKey { name: "group", default: 1, about: "heads of queries that share one of keys and values" };
/// Queries of a head.
pub(crate) const QUERIES: ShapeKey = ShapeKey { name: "queries", default: 100, about: "queries of a head" };
/// Keys of a head.
pub(crate) const KEYS: ShapeKey = ShapeKey { name: "keys", default: 200, about: "keys and values of a head" };
/// Elements of a query.
pub(crate) const DEPTH: ShapeKey =
    ShapeKey { name: "depth", default: 64, about: "elements of a query, a key or a value" };
/// Elements of a value, where they are others than those of a query.
pub(crate) const VALUE_DEPTH: ShapeKey = ShapeKey {
    name: "value_depth",
    default: 0,
    about: "elements of a value, a multiple of 16; 0: as many as of a query",
};
/// Whether a query sees the keys up to it only.
pub(crate) const CAUSAL: ShapeKey =
    ShapeKey { name: "causal", default: 0, about: "1 if query i sees the keys up to i only, else 0" };
/// Tiles in shared memory.
pub(crate) const STAGES: ShapeKey =
    ShapeKey { name: "stages", default: 2, about: "tiles of keys and values in shared memory" };

/// Weights are rounded to 16 bits before they are multiplied by values up to 2: bf16 has 8 bits.
pub(crate) const TOLERANCE: Tolerance = Tolerance { absolute: 1.6e-2, relative: 0.0 };

/// Keys and values of a tile.
const TILE: i64 = 64;

/// The warps divide the queries of a CTA, so that rows of scores stay inside a warp.
fn attention(config: &Config) -> Kernel {
    let [depth, threads, stages, group] = ["depth", "threads", "stages", "group"].map(|name| config.size(name));
    let (dtype, is_causal, block) = (config.dtype, config.size("causal") == 1, threads / 32 * 16);
    let scale = LOG2_E / (depth as f64).sqrt();
    kernel("attention", |k| {
        let (heads, queries, keys) = (k.size("heads").max(65_535 / group), k.size("queries"), k.size("keys"));
        let q = k.input("q", dtype, (heads * group, queries, depth));
        let key = k.input("key", dtype, (heads, keys, depth));
        let value = k.input("value", dtype, (heads, keys, depth));
        let out = k.output("out", F32, (heads * group, queries, depth));
        let [cta, head] = k.grid([queries.ceil_div(block), heads * group]);
        k.threads(threads);
        let top = cta * block;
        let rows = (head, at(top, block), ..);
        let held_q = k.fragment("held_q", dtype, [block, depth]);
        let key_tile = k.shared("key_tile", dtype, [TILE, depth]);
        let value_tile = k.shared("value_tile", dtype, [TILE, depth]);
        let weights = k.fragment("weights", dtype, [block, TILE]);
        let held = k.fragment("held", F32, [block, depth]);
        let softmax = RunningSoftmax::new(k, [block, TILE]);
        let RunningSoftmax { scores, before, .. } = softmax;
        k.copy(held_q, q.sub(rows));
        k.fill(held, 0.0);
        let seen = if is_causal { (top + block).at_most(keys) } else { keys.into() };
        k.pipelined("t", ..seen.ceil_div(TILE), stages, |k, t| {
            let tile = (head / group, at(t * TILE, TILE), ..);
            k.copy(key_tile, key.sub(tile));
            k.copy(value_tile, value.sub(tile));
            k.gemm(scores, held_q, key_tile).with(product(true, true));
            // The keys that a query sees are those before this one.
            let end = |i: Expr| if is_causal { (top + i + 1).at_most(keys) } else { keys.into() };
            let all = Value::from((t + 1) * TILE).le(end(0.into()));
            softmax.step(k, scale, Seen { all, is_seen: |i, j| Value::from(t * TILE + j).lt(end(i)) });
            k.map(weights, |[i, j]| scores.at((i, j)).cast(dtype));
            k.map(held, |[i, j]| held.at((i, j)) * before.at((i,)));
            k.gemm(held, weights, value_tile).with(product(false, false));
        });
        softmax.finish(k, held);
        k.copy(out.sub(rows), held);
    })
}

/// A product with the rows divided among all warps.
pub(crate) fn product(transpose_b: bool, clear: bool) -> Gemm {
    Gemm { transpose_a: false, transpose_b, policy: WarpPolicy::FullRow, clear, ..Gemm::PLAIN }
}

/// Elements of a value: as many as of a query, unless the kernel has a size for them and it is given.
pub(crate) fn value_depth(config: &Config) -> i64 {
    let given = config.sizes().find(|(name, value)| *name == VALUE_DEPTH.name && *value > 0);
    given.map_or(config.size("depth"), |(_, depth)| depth)
}

pub(crate) fn inputs(c: &Config) -> Vec<HostTensor> {
    let [heads, queries, keys, depth] = ["heads", "queries", "keys", "depth"].map(|name| c.size(name));
    let tensor = |shape: [i64; 3], seed: u64| scattered(c.dtype, &shape, seed);
    let q = tensor([heads * c.size("group"), queries, depth], 1);
    vec![q, tensor([heads, keys, depth], 2), tensor([heads, keys, value_depth(c)], 3)]
}

pub(crate) fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let [queries, keys] = ["queries", "keys"].map(|name| config.size(name) as usize);
    of_sequences(config, inputs, &[(0..queries, 0..keys)])
}

/// Attention of sequences, each with some of the queries and of the keys of every head.
pub(crate) fn of_sequences(
    config: &Config,
    inputs: &[HostTensor],
    sequences: &[(Range<usize>, Range<usize>)],
) -> Vec<HostTensor> {
    let [q, key, value] = [0, 1, 2].map(|at| elements(&inputs[at]));
    let [heads, queries, keys, depth, group] =
        ["heads", "queries", "keys", "depth", "group"].map(|name| config.size(name) as usize);
    let of_value = value_depth(config) as usize;
    let is_causal = config.size("causal") == 1;
    let of_query = |head: usize, query: usize, of: &Range<usize>, seen: Range<usize>| {
        let seen = if is_causal { seen.start..seen.end.min(seen.start + query - of.start + 1) } else { seen };
        let row_of =
            |of: &[f64], line: usize, depth: usize| of[(head / group * keys + line) * depth..][..depth].to_vec();
        let query = &q[(head * queries + query) * depth..][..depth];
        let dot = |line: usize| query.iter().zip(row_of(&key, line, depth)).map(|(a, b)| a * b).sum::<f64>();
        let scores: Vec<f64> = seen.clone().map(|line| dot(line) / (depth as f64).sqrt()).collect();
        let max = greatest(&scores);
        let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let mut out = vec![0.0; of_value];
        for (line, weight) in seen.zip(&weights) {
            out.iter_mut()
                .zip(row_of(&value, line, of_value))
                .for_each(|(out, element)| *out += weight / sum * element);
        }
        out
    };
    let mut out = Vec::new();
    for head in 0..heads * group {
        for (of, seen) in sequences {
            out.extend(of.clone().flat_map(|query| of_query(head, query, of, seen.clone())));
        }
    }
    vec![listed(F32, &[(heads * group) as i64, queries as i64, of_value as i64], &out)]
}
