//! `softmax(q*k^T/sqrt(depth))*v` of each head, without the whole matrix of scores; sequences of any length.

use tilewright::prelude::*;

/// Queries of a CTA: 16 for each of two warps.
const ROWS: i64 = 32;
/// Keys of a part.
const KEYS: i64 = 32;

/// All tensors are `heads` x `length` x `depth`, of f16. `depth` is a multiple of 8.
pub fn flash_attention(heads: i64, length: i64, depth: i64) -> Kernel {
    let scale = 1.0 / (depth as f64).sqrt();
    // Each warp has whole rows, so that reductions along them stay inside of it.
    let product = |transpose_b: bool, clear: bool| Gemm {
        transpose_a: false,
        transpose_b,
        policy: WarpPolicy::FullRow,
        clear,
        ..Gemm::PLAIN
    };
    // 16 bytes more for each line, so that neighbouring lines are in other banks.
    let padded = |lines: i64| S([lines, depth], [depth + 8, 1]);
    let shape = [heads, length, depth];
    kernel("flash_attention", |k| {
        let q = k.input("q", F16, shape);
        let key = k.input("key", F16, shape);
        let value = k.input("value", F16, shape);
        let out = k.output("out", F16, shape);
        let [cta, head] = k.grid([(length + ROWS - 1) / ROWS, heads]);
        k.threads(64);
        let top = cta * ROWS;
        let q_tile = k.shared("q_tile", F16, padded(ROWS));
        let key_tile = k.shared("key_tile", F16, padded(KEYS));
        let value_tile = k.shared("value_tile", F16, padded(KEYS));
        let scores = k.fragment("scores", F32, [ROWS, KEYS]);
        let weights = k.fragment("weights", F16, [ROWS, KEYS]);
        let held = k.fragment("held", F32, [ROWS, depth]);
        let max = k.fragment("max", F32, [ROWS]);
        let before = k.fragment("before", F32, [ROWS]);
        let rescale = k.fragment("rescale", F32, [ROWS]);
        let sum = k.fragment("sum", F32, [ROWS]);
        k.parallel([ROWS, depth], |k, [i, j]| {
            k.store(q_tile, (i, j), q.at((head, top + i, j)));
        });
        k.fill(held, 0.0);
        k.fill(max, f64::NEG_INFINITY);
        k.fill(sum, 0.0);
        k.pipelined("t", 0..(length + KEYS - 1) / KEYS, 2, |k, t| {
            let first = t * KEYS;
            k.parallel([KEYS, depth], |k, [i, j]| {
                let row = first + i;
                k.store(key_tile, (i, j), key.at((head, row, j)));
                k.store(value_tile, (i, j), value.at((head, row, j)));
            });
            k.gemm(scores, q_tile, key_tile).with(product(true, true));
            // What lies below the last key has no weight.
            k.parallel([ROWS, KEYS], |k, [i, j]| {
                let is_key = Value::from(first + j).lt(length);
                k.store(scores, (i, j), is_key.select(scores.at((i, j)) * scale, f64::NEG_INFINITY));
            });
            k.copy(before, max);
            k.reduce(Max, max, scores, 1).accumulate();
            k.parallel([ROWS], |k, [i]| {
                let factor = k.named("factor", (before.at((i,)) - max.at((i,))).exp());
                k.store(rescale, (i,), factor);
                k.store(sum, (i,), sum.at((i,)) * factor);
            });
            k.parallel([ROWS, KEYS], |k, [i, j]| {
                let weight = k.named("weight", (scores.at((i, j)) - max.at((i,))).exp());
                k.store(scores, (i, j), weight);
                k.store(weights, (i, j), weight.cast(F16));
            });
            k.reduce(Sum, sum, scores, 1).accumulate();
            k.parallel([ROWS, depth], |k, [i, j]| {
                k.store(held, (i, j), held.at((i, j)) * rescale.at((i,)));
            });
            k.gemm(held, weights, value_tile).with(product(false, false));
        });
        k.parallel([ROWS, depth], |k, [i, j]| {
            k.store(out, (head, top + i, j), (held.at((i, j)) / sum.at((i,))).cast(F16));
        });
    })
}

/// The same in plain Rust.
pub fn reference(q: &[f32], key: &[f32], value: &[f32], length: usize, depth: usize) -> Vec<f32> {
    let head = length * depth;
    let mut out = Vec::with_capacity(q.len());
    for ((q, key), value) in q.chunks(head).zip(key.chunks(head)).zip(value.chunks(head)) {
        for q in q.chunks(depth) {
            let score = |key: &[f32]| q.iter().zip(key).map(|(q, key)| q * key).sum::<f32>() / (depth as f32).sqrt();
            let scores: Vec<f32> = key.chunks(depth).map(score).collect();
            let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let weights: Vec<f32> = scores.iter().map(|score| (score - max).exp()).collect();
            let sum: f32 = weights.iter().sum();
            let column = |d: usize| weights.iter().zip(value.chunks(depth)).map(move |(weight, row)| weight * row[d]);
            out.extend((0..depth).map(|d| column(d).sum::<f32>() / sum));
        }
    }
    out
}
