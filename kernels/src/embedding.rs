use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{THREADS, divisible};
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const FORWARD: KernelEntry = KernelEntry {
    name: "embedding",
    about: "rows of a table, chosen by the numbers of tokens; tokens that are not in the table give zeros",
    shape: &[
        ShapeKey { name: "tokens", default: 40, about: "tokens" },
        ShapeKey { name: "words", default: 100, about: "rows of the table" },
        ShapeKey { name: "dim", default: 256, about: "columns of the table" },
        THREADS,
    ],
    dtypes: &[F16, BF16, F32],
    build: |config, _| embedding(config),
    run_time: |_| &["tokens", "words", "dim"],
    inputs: |c| vec![tokens(c), scattered(c.dtype, &[c.size("words"), c.size("dim")], 1)],
    reference,
    tolerance: |_| Tolerance::EXACT,
    tested: &[
        (F32, &[("tokens", 1), ("words", 1), ("dim", 1)]),
        (BF16, &[("tokens", 7), ("dim", 1000), ("threads", 64)]),
        (F32, &[("tokens", 33), ("dim", 13), ("threads", 32)]),
    ],
};

pub(crate) const BACKWARD: KernelEntry = KernelEntry {
    name: "embedding_grad",
    about: "the gradient of an embedding: rows of a gradient are added to the rows that their tokens chose",
    build: |config, _| embedding_grad(config),
    inputs: |c| vec![tokens(c), scattered(c.dtype, &[c.size("tokens"), c.size("dim")], 2)],
    reference: reference_grad,
    ..FORWARD
};

/// Tokens of a CTA.
const TOKENS: i64 = 4;
/// Elements of a thread in a row.
const EACH: i64 = 8;

/// Numbers of tokens, which repeat. Every seventh is not in the table.
fn tokens(config: &Config) -> HostTensor {
    let words = config.size("words");
    let token = |at: i64| if at % 7 == 6 { words } else { at * 5 % words };
    HostTensor::from_f64(I32, &[config.size("tokens")], |at| token(at) as f64)
}

fn embedding(config: &Config) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    let width = threads * EACH / TOKENS;
    kernel("embedding", |k| {
        let (tokens, words, dim) = (k.size("tokens"), k.size("words"), divisible(k, config, "dim"));
        let token = k.input("token", I32, (tokens,));
        let table = k.input("table", dtype, (words, dim));
        let y = k.output("y", dtype, (tokens, dim));
        let [top, side] = k.grid([tokens.ceil_div(TOKENS), dim.ceil_div(width)]);
        k.threads(threads);
        k.parallel([TOKENS, width], |k, [i, j]| {
            let (row, column) = (top * TOKENS + i, side * width + j);
            k.store(y, (row, column), table.at((token.at((row,)), column)));
        });
    })
}

/// Several tokens may have chosen the same row, in any CTA.
fn embedding_grad(config: &Config) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    let width = threads * EACH / TOKENS;
    kernel("embedding_grad", |k| {
        let (tokens, words, dim) = (k.size("tokens"), k.size("words"), divisible(k, config, "dim"));
        let token = k.input("token", I32, (tokens,));
        let gradient = k.input("gradient", dtype, (tokens, dim));
        let table = k.accumulator("table", F32, (words, dim));
        let [top, side] = k.grid([tokens.ceil_div(TOKENS), dim.ceil_div(width)]);
        k.threads(threads);
        k.parallel([TOKENS, width], |k, [i, j]| {
            let (row, column) = (top * TOKENS + i, side * width + j);
            let part = gradient.at((row, column)).cast(F32);
            k.atomic_add(table, (token.at((row,)), column), part);
        });
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let dim = config.size("dim") as usize;
    let (token, table) = (elements(&inputs[0]), elements(&inputs[1]));
    let row = |token: &f64| table.chunks(dim).nth(*token as usize).map_or(vec![0.0; dim], <[f64]>::to_vec);
    let y: Vec<f64> = token.iter().flat_map(row).collect();
    vec![listed(config.dtype, &[config.size("tokens"), config.size("dim")], &y)]
}

fn reference_grad(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let (words, dim) = (config.size("words") as usize, config.size("dim") as usize);
    let mut table = vec![0.0; words * dim];
    for (token, row) in elements(&inputs[0]).iter().zip(elements(&inputs[1]).chunks(dim)) {
        if let Some(sums) = table.chunks_mut(dim).nth(*token as usize) {
            sums.iter_mut().zip(row).for_each(|(sum, part)| *sum += part);
        }
    }
    vec![listed(F32, &[words as i64, dim as i64], &table)]
}
