use std::f64::consts::LOG2_E;

use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{THREADS, divisible};
use crate::config::ShapeKey;
use crate::numbers::{elements, greatest, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "short_attention",
    about: "softmax(q*k^T/sqrt(depth))*v, all keys at once; cols and depth are multiples of 8",
    shape: &[
        ShapeKey { name: "rows", default: 64, about: "queries" },
        ShapeKey { name: "cols", default: 64, about: "keys and values" },
        ShapeKey { name: "depth", default: 64, about: "elements of a query, a key or a value" },
        THREADS,
    ],
    dtypes: &[F16],
    build: |config, _| short_attention(config),
    run_time: |_| &["rows"],
    inputs: |c| {
        let [rows, cols, depth] = ["rows", "cols", "depth"].map(|name| c.size(name));
        let tensor = |lines: i64, seed: u64| scattered(F16, &[lines, depth], seed);
        vec![tensor(rows, 1), tensor(cols, 2), tensor(cols, 3)]
    },
    reference,
    // Weights are rounded to f16 before they are multiplied by values up to 2.
    tolerance: |_| Tolerance { absolute: 2e-3, relative: 0.0 },
    tested: &[(F16, &[("rows", 24), ("cols", 40), ("threads", 64)])],
};

/// Rows of an instruction.
const ROWS_OF_AN_INSTRUCTION: i64 = 16;
/// The most scores of a thread.
const MOST_SCORES: i64 = 128;
/// The most warps of a CTA.
const MOST_WARPS: i64 = 32;

/// The warps divide the queries. The first product fixes the layout of the scores; with each row on four lanes of one
/// warp, both reductions stay inside the warp, and the exponentials are laid out as the second product's left operand. A
/// row is divided by its sum through one reciprocal. Exponentials are powers of 2: scaled and shifted by one fused
/// operation each, and those below 2^-126 are 0, as they would be in f16.
fn short_attention(config: &Config) -> Kernel {
    let [rows, cols, depth, threads] = ["rows", "cols", "depth", "threads"].map(|name| config.size(name));
    let warps = (threads / 32).clamp(1, MOST_WARPS);
    let block = warps * rows_of_a_warp(rows / warps, cols);
    let scale = LOG2_E / (depth as f64).sqrt();
    kernel("short_attention", |k| {
        let rows = divisible(k, config, "rows");
        let q = k.input("q", F16, (rows, depth));
        let key = k.input("key", F16, [cols, depth]);
        let value = k.input("value", F16, [cols, depth]);
        let out = k.output("out", F32, (rows, depth));
        let [cta] = k.grid([rows.ceil_div(block)]);
        k.threads(threads);
        let first = cta * block;
        let queries = k.fragment("queries", F16, [block, depth]);
        let keys = k.shared("keys", F16, [cols, depth]);
        let values = k.shared("values", F16, [cols, depth]);
        let scores = k.fragment("scores", F32, [block, cols]);
        let weights = k.fragment("weights", F16, [block, cols]);
        let held = k.fragment("held", F32, [block, depth]);
        let max = k.fragment("max", F32, [block]);
        let sum = k.fragment("sum", F32, [block]);
        k.parallel([block, depth], |k, [i, j]| k.store(queries, (i, j), q.at((first + i, j))));
        k.copy(keys, key);
        k.copy(values, value);
        k.gemm(scores, queries, keys).with(product(true));
        k.reduce(Max, max, scores, 1);
        k.parallel([block], |k, [i]| k.store(max, (i,), max.at((i,)) * scale));
        k.parallel([block, cols], |k, [i, j]| {
            k.store(scores, (i, j), (scores.at((i, j)) * scale - max.at((i,))).fast_exp2())
        });
        k.reduce(Sum, sum, scores, 1);
        k.parallel([block, cols], |k, [i, j]| k.store(weights, (i, j), scores.at((i, j)).cast(F16)));
        k.gemm(held, weights, values).with(product(false));
        k.parallel([block], |k, [i]| k.store(sum, (i,), 1.0 / sum.at((i,))));
        k.parallel([block, depth], |k, [i, j]| k.store(out, (first + i, j), held.at((i, j)) * sum.at((i,))));
    })
}

/// The queries of one warp: those of two instructions if there are many and the scores fit, since both use the same keys
/// and values.
fn rows_of_a_warp(rows: i64, cols: i64) -> i64 {
    let of_two = 2 * ROWS_OF_AN_INSTRUCTION;
    if rows >= 2 * of_two && of_two * cols / 32 <= MOST_SCORES { of_two } else { ROWS_OF_AN_INSTRUCTION }
}

/// A product that starts from 0, with the rows divided among all warps.
fn product(transpose_b: bool) -> Gemm {
    Gemm { transpose_a: false, transpose_b, policy: WarpPolicy::FullRow, clear: true, ..Gemm::PLAIN }
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let [queries, keys, values] = [0, 1, 2].map(|at| elements(&inputs[at]));
    let depth = config.size("depth") as usize;
    let scale = 1.0 / (depth as f64).sqrt();
    let of_query = |query: &[f64]| {
        let score = |key: &[f64]| query.iter().zip(key).map(|(a, b)| a * b).sum::<f64>() * scale;
        let scores: Vec<f64> = keys.chunks(depth).map(score).collect();
        let max = greatest(&scores);
        let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let mut out = vec![0.0; depth];
        for (weight, value) in weights.iter().zip(values.chunks(depth)) {
            out.iter_mut().zip(value).for_each(|(out, element)| *out += weight / sum * element);
        }
        out
    };
    let out: Vec<f64> = queries.chunks(depth).flat_map(of_query).collect();
    vec![listed(F32, &[config.size("rows"), depth as i64], &out)]
}
