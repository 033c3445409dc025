use std::f64::consts::LOG2_E;

use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::THREADS;
use crate::config::ShapeKey;
use crate::numbers::{elements, greatest, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const DECODE: KernelEntry = KernelEntry {
    name: "attention_decode",
    about: "attention of one query of each sequence: keys and values in pages, which CTAs share",
    shape: &[
        ShapeKey { name: "batch", default: 3, about: "sequences" },
        ShapeKey { name: "heads", default: 2, about: "heads" },
        ShapeKey { name: "depth", default: 64, about: "elements of a query, a key or a value" },
        ShapeKey { name: "pages", default: 20, about: "pages of 32 keys and values" },
        ShapeKey { name: "most", default: 5, about: "the most pages of a sequence" },
        ShapeKey { name: "splits", default: 2, about: "CTAs that share the keys of a head" },
        THREADS,
    ],
    dtypes: &[F16, BF16, F32],
    build: |config, _| decode(config),
    run_time: |_| &["batch", "heads", "pages", "most"],
    inputs,
    reference,
    tolerance: |_| Tolerance { absolute: 2e-3, relative: 1e-3 },
    tested: &[
        (F32, &[("batch", 1), ("heads", 1), ("depth", 8), ("pages", 1), ("most", 1), ("splits", 1), ("threads", 32)]),
        (BF16, &[("heads", 3), ("depth", 100), ("most", 3), ("splits", 4), ("threads", 64)]),
        (F16, &[("batch", 2), ("depth", 128), ("most", 9), ("threads", 256)]),
    ],
};

pub(crate) const COMBINE: KernelEntry = KernelEntry {
    name: "attention_combine",
    about: "what the CTAs of attention_decode found of each head, as one result",
    shape: &[
        ShapeKey { name: "rows", default: 6, about: "heads of all sequences" },
        ShapeKey { name: "splits", default: 4, about: "CTAs that shared the keys of a head" },
        ShapeKey { name: "depth", default: 64, about: "elements of a value" },
        THREADS,
    ],
    dtypes: &[F16, BF16, F32],
    build: |config, _| combine(config),
    run_time: |_| &["rows"],
    inputs: |c| {
        let [rows, splits, depth] = ["rows", "splits", "depth"].map(|name| c.size(name));
        let sums: Vec<f64> = elements(&scattered(F32, &[rows, splits], 3)).iter().map(|sum| sum.abs() + 1.0).collect();
        vec![
            scattered(F32, &[rows, splits, depth], 1),
            scattered(F32, &[rows, splits], 2),
            listed(F32, &[rows, splits], &sums),
        ]
    },
    reference: reference_combined,
    // Results are rounded to 16 bits: bf16 has 8.
    tolerance: |_| Tolerance { absolute: 1e-5, relative: 8e-3 },
    tested: &[
        (F32, &[("rows", 1), ("splits", 1), ("depth", 1)]),
        (BF16, &[("rows", 5), ("splits", 7), ("depth", 100), ("threads", 64)]),
    ],
};

/// Keys and values of a page.
const PAGE: i64 = 32;
/// A maximum less than any score, but a number.
const LEAST: f64 = -3.0e38;

/// A CTA takes every `splits`-th page of a sequence. Its sums are not divided yet: those of all CTAs are combined first.
/// Exponentials are powers of 2.
fn decode(config: &Config) -> Kernel {
    let [depth, splits] = ["depth", "splits"].map(|name| config.size(name));
    let (dtype, scale) = (config.dtype, LOG2_E / (depth as f64).sqrt());
    kernel("attention_decode", |k| {
        let [batch, heads] = ["batch", "heads"].map(|name| k.size(name).max(65_535));
        let (pages, most) = (k.size("pages"), k.size("most"));
        let q = k.input("q", dtype, (batch, heads, depth));
        let [key, value] = ["key", "value"].map(|name| k.input(name, dtype, (pages, heads, PAGE, depth)));
        let table = k.input("table", I32, (batch, most));
        let lengths = k.input("lengths", I32, (batch,));
        let out = k.output("out", F32, (batch, heads, splits, depth));
        let [out_max, out_sum] = ["out_max", "out_sum"].map(|name| k.output(name, F32, (batch, heads, splits)));
        let [split, head, sequence] = k.grid([Expr::from(splits), heads.into(), batch.into()]);
        k.threads(config.size("threads"));
        let query = k.fragment("query", F32, [depth]);
        let products = k.fragment("products", F32, [PAGE, depth]);
        let scores = k.fragment("scores", F32, [PAGE]);
        let held = k.fragment("held", F32, [depth]);
        let [max, before, sum] = ["max", "before", "sum"].map(|name| k.fragment(name, F32, [1]));
        k.map(query, |[d]| q.at((sequence, head, d)).cast(F32) * scale);
        k.fill(held, 0.0);
        k.fill(max, LEAST);
        k.fill(sum, 0.0);
        k.serial("p", (split, most).step(splits), |k, p| {
            k.if_(lengths.at((sequence,)).gt(p * PAGE), |k| {
                let at =
                    |i: Expr, d: Expr| (table.at((sequence, p)), Value::from(head), Value::from(i), Value::from(d));
                k.map(products, |[i, d]| key.at(at(i, d)).cast(F32) * query.at((d,)));
                k.reduce(Sum, scores, products, 1);
                k.map(scores, |[i]| {
                    lengths.at((sequence,)).gt(p * PAGE + i).select(scores.at((i,)), f64::NEG_INFINITY)
                });
                k.copy(before, max);
                k.reduce(Max, max, scores, 0).accumulate();
                k.map(before, |[i]| (before.at((i,)) - max.at((i,))).fast_exp2());
                k.map(scores, |[i]| (scores.at((i,)) - max.at((0,))).fast_exp2());
                k.map(sum, |[i]| sum.at((i,)) * before.at((i,)));
                k.reduce(Sum, sum, scores, 0).accumulate();
                k.map(products, |[i, d]| value.at(at(i, d)).cast(F32) * scores.at((i,)));
                k.map(held, |[d]| held.at((d,)) * before.at((0,)));
                k.reduce(Sum, held, products, 0).accumulate();
            });
        });
        k.copy(out.sub((sequence, head, split, ..)), held);
        k.copy(out_max.sub((sequence, head, split)), max);
        k.copy(out_sum.sub((sequence, head, split)), sum);
    })
}

/// A CTA combines what was found of a head.
fn combine(config: &Config) -> Kernel {
    let [splits, depth] = ["splits", "depth"].map(|name| config.size(name));
    kernel("attention_combine", |k| {
        let rows = k.size("rows");
        let part = k.input("part", F32, (rows, splits, depth));
        let [part_max, part_sum] = ["part_max", "part_sum"].map(|name| k.input(name, F32, (rows, splits)));
        let y = k.output("y", config.dtype, (rows, depth));
        let [row] = k.grid([rows]);
        k.threads(config.size("threads"));
        let parts = k.fragment("parts", F32, [splits, depth]);
        let [weights, sums] = ["weights", "sums"].map(|name| k.fragment(name, F32, [splits]));
        let [max, sum] = ["max", "sum"].map(|name| k.fragment(name, F32, [1]));
        let held = k.fragment("held", F32, [depth]);
        k.copy(weights, part_max.sub((row, ..)));
        k.reduce(Max, max, weights, 0);
        k.map(weights, |[s]| (weights.at((s,)) - max.at((0,))).fast_exp2());
        k.map(sums, |[s]| weights.at((s,)) * part_sum.at((row, s)));
        k.reduce(Sum, sum, sums, 0);
        k.map(parts, |[s, d]| weights.at((s,)) * part.at((row, s, d)));
        k.reduce(Sum, held, parts, 0);
        k.parallel([depth], |k, [d]| k.store(y, (row, d), (held.at((d,)) / sum.at((0,))).cast(config.dtype)));
    })
}

/// Sequences of different lengths, whose pages are anywhere.
fn inputs(config: &Config) -> Vec<HostTensor> {
    let [batch, heads, depth, pages, most] = ["batch", "heads", "depth", "pages", "most"].map(|name| config.size(name));
    let page = |at: i64| (at * 7 + 3) % pages;
    let length = |sequence: i64| 1 + (sequence * 53 + most * PAGE - 7) % (most * PAGE);
    vec![
        scattered(config.dtype, &[batch, heads, depth], 1),
        scattered(config.dtype, &[pages, heads, PAGE, depth], 2),
        scattered(config.dtype, &[pages, heads, PAGE, depth], 3),
        HostTensor::from_f64(I32, &[batch, most], |at| page(at) as f64),
        HostTensor::from_f64(I32, &[batch], |sequence| length(sequence) as f64),
    ]
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let [q, key, value, table, lengths] = [0, 1, 2, 3, 4].map(|at| elements(&inputs[at]));
    let [batch, heads, depth, most, splits] =
        ["batch", "heads", "depth", "most", "splits"].map(|name| config.size(name) as usize);
    let page = PAGE as usize;
    let (mut out, mut maxima, mut sums) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..batch * heads * splits {
        let (sequence, head, split) = (at / splits / heads, at / splits % heads, at % splits);
        let length = lengths[sequence] as usize;
        let lines = (0..length).filter(|line| line / page % splits == split);
        let row = |line: usize| {
            let of = table[sequence * most + line / page] as usize;
            ((of * heads + head) * page + line % page) * depth
        };
        let query = &q[(sequence * heads + head) * depth..][..depth];
        let dot = |line: usize| query.iter().zip(&key[row(line)..]).map(|(a, b)| a * b).sum::<f64>();
        let scores: Vec<(usize, f64)> =
            lines.map(|line| (row(line), dot(line) * LOG2_E / (depth as f64).sqrt())).collect();
        let max = greatest(&scores.iter().map(|(_, score)| *score).chain([LEAST]).collect::<Vec<f64>>());
        let mut held = vec![0.0; depth];
        for (row, score) in &scores {
            held.iter_mut().zip(&value[*row..]).for_each(|(sum, value)| *sum += (score - max).exp2() * value);
        }
        out.extend(held);
        maxima.push(max);
        sums.push(scores.iter().map(|(_, score)| (score - max).exp2()).sum());
    }
    let [batch, heads, splits, depth] = [batch, heads, splits, depth].map(|extent| extent as i64);
    let of_splits = [batch, heads, splits];
    vec![
        listed(F32, &[batch, heads, splits, depth], &out),
        listed(F32, &of_splits, &maxima),
        listed(F32, &of_splits, &sums),
    ]
}

fn reference_combined(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let [part, maxima, sums] = [0, 1, 2].map(|at| elements(&inputs[at]));
    let [rows, splits, depth] = ["rows", "splits", "depth"].map(|name| config.size(name) as usize);
    let combined = |at: usize| {
        let (row, d) = (at / depth, at % depth);
        let max = greatest(&maxima[row * splits..][..splits]);
        let weight = |s: usize| (maxima[row * splits + s] - max).exp2();
        let sum: f64 = (0..splits).map(|s| weight(s) * sums[row * splits + s]).sum();
        (0..splits).map(|s| weight(s) * part[(row * splits + s) * depth + d]).sum::<f64>() / sum
    };
    let y: Vec<f64> = (0..rows * depth).map(combined).collect();
    vec![listed(config.dtype, &[rows as i64, depth as i64], &y)]
}
