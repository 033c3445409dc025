use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{Blocks, COLS, ROWS, THREADS, divisible};
use crate::numbers::{by_rows, elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "layer_norm",
    about: "every row with mean 0 and variance 1, times a weight and plus a bias for each column",
    shape: &[ROWS, COLS, THREADS],
    dtypes: &[F32],
    build: |config, _| layer_norm(config),
    run_time: |_| &["rows"],
    inputs: |c| {
        let (rows, cols) = (c.size("rows"), c.size("cols"));
        vec![scattered(F32, &[rows, cols], 1), scattered(F32, &[cols], 2), scattered(F32, &[cols], 3)]
    },
    reference,
    tolerance: |_| Tolerance { absolute: 2e-5, relative: 1e-5 },
    tested: &[(F32, &[("rows", 7), ("cols", 13), ("threads", 64)])],
};

/// Added to the variance.
const EPSILON: f64 = 1e-5;

/// Two reductions in sequence; loops over rows between them run on every thread that has a replica of the results.
fn layer_norm(config: &Config) -> Kernel {
    let Blocks { cols, threads, block } = Blocks::of(config);
    kernel("layer_norm", |k| {
        let rows = divisible(k, config, "rows");
        let x = k.input("x", F32, (rows, cols));
        let weight = k.input("weight", F32, [cols]);
        let bias = k.input("bias", F32, [cols]);
        let y = k.output("y", F32, (rows, cols));
        let [cta] = k.grid([rows.ceil_div(block)]);
        k.threads(threads);
        let first = cta * block;
        let v = k.fragment("v", F32, [block, cols]);
        let mean = k.fragment("mean", F32, [block]);
        let scale = k.fragment("scale", F32, [block]);
        k.parallel([block, cols], |k, [i, j]| k.store(v, (i, j), x.at((first + i, j))));
        k.reduce(Sum, mean, v, 1);
        k.parallel([block], |k, [i]| k.store(mean, (i,), mean.at((i,)) / cols as f64));
        k.parallel([block, cols], |k, [i, j]| k.store(v, (i, j), v.at((i, j)) - mean.at((i,))));
        k.reduce(SquareSum, scale, v, 1);
        k.parallel([block], |k, [i]| k.store(scale, (i,), (scale.at((i,)) / cols as f64 + EPSILON).rsqrt()));
        k.parallel([block, cols], |k, [i, j]| {
            let normal = v.at((i, j)) * scale.at((i,));
            k.store(y, (first + i, j), normal * weight.at((j,)) + bias.at((j,)));
        });
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let (weight, bias) = (elements(&inputs[1]), elements(&inputs[2]));
    let y = by_rows(&inputs[0], config.size("cols"), |row| {
        let count = row.len() as f64;
        let mean = row.iter().sum::<f64>() / count;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let scale = 1.0 / (variance + EPSILON).sqrt();
        let columns = weight.iter().zip(&bias);
        row.iter().zip(columns).map(|(x, (weight, bias))| (x - mean) * scale * weight + bias).collect()
    });
    vec![listed(F32, inputs[0].shape(), &y)]
}
