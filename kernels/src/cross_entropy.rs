use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{COLS, ROWS, THREADS, divisible};
use crate::numbers::{elements, greatest, listed, scattered};
use crate::online::{Part, max_and_sum};
use crate::{Config, KernelEntry};

pub(crate) const FORWARD: KernelEntry = KernelEntry {
    name: "cross_entropy",
    about: "the loss of every row of logits: the logarithm of the sum of exponentials, less the logit of the label",
    shape: &[ROWS, COLS, THREADS],
    dtypes: &[F16, BF16, F32],
    build: |config, _| cross_entropy(config),
    run_time: |_| &["rows", "cols"],
    inputs: |c| vec![logits(c), labels(c)],
    reference,
    tolerance: |_| Tolerance { absolute: 1e-5, relative: 1e-5 },
    tested: &[
        (F32, &[("rows", 1), ("cols", 1)]),
        (BF16, &[("rows", 3), ("cols", 5000), ("threads", 96)]),
        (F32, &[("rows", 7), ("cols", 13), ("threads", 32)]),
    ],
};

pub(crate) const BACKWARD: KernelEntry = KernelEntry {
    name: "cross_entropy_grad",
    about: "the gradient of the loss of every row: its softmax, less 1 at the label, times the gradient of the loss",
    build: |config, _| cross_entropy_grad(config),
    inputs: |c| {
        let forward = reference(c, &[logits(c), labels(c)]);
        vec![logits(c), labels(c), forward[1].clone(), scattered(F32, &[c.size("rows")], 2)]
    },
    reference: reference_grad,
    // Rounded to 16 bits: bf16 has 8.
    tolerance: |_| Tolerance { absolute: 1e-6, relative: 8e-3 },
    ..FORWARD
};

fn logits(config: &Config) -> HostTensor {
    scattered(config.dtype, &[config.size("rows"), config.size("cols")], 1)
}

fn labels(config: &Config) -> HostTensor {
    HostTensor::from_f64(I32, &[config.size("rows")], |row| (row * 37 % config.size("cols")) as f64)
}

/// A CTA reads a row once. The logarithm of the sum is an output as well: the gradient needs it.
fn cross_entropy(config: &Config) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    kernel("cross_entropy", |k| {
        let (rows, cols) = (k.size("rows"), divisible(k, config, "cols"));
        let x = k.input("x", dtype, (rows, cols));
        let label = k.input("label", I32, (rows,));
        let loss = k.output("loss", F32, (rows,));
        let log_sum = k.output("log_sum", F32, (rows,));
        let [row] = k.grid([rows]);
        k.threads(threads);
        let (max, sum) = max_and_sum(k, x, row, cols, Part::of(threads, dtype));
        k.parallel([1], |k, [i]| {
            let all = k.named("all", sum.at((i,)).log() + max.at((i,)));
            k.store(log_sum, (row,), all);
            k.store(loss, (row,), all - x.at((row, label.at((row,)))).cast(F32));
        });
    })
}

fn cross_entropy_grad(config: &Config) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    let tile = threads * 8;
    kernel("cross_entropy_grad", |k| {
        let (rows, cols) = (k.size("rows"), divisible(k, config, "cols"));
        let x = k.input("x", dtype, (rows, cols));
        let label = k.input("label", I32, (rows,));
        let log_sum = k.input("log_sum", F32, (rows,));
        let factor = k.input("factor", F32, (rows,));
        let gradient = k.output("gradient", dtype, (rows, cols));
        let [row, side] = k.grid([rows.into(), cols.ceil_div(tile)]);
        k.threads(threads);
        k.parallel([tile], |k, [i]| {
            let column = side * tile + i;
            let weight = (x.at((row, column)).cast(F32) - log_sum.at((row,))).fast_exp();
            let one = label.at((row,)).eq(column).select(1.0, 0.0);
            k.store(gradient, (row, column), ((weight - one) * factor.at((row,))).cast(dtype));
        });
    })
}

fn log_sum(row: &[f64]) -> f64 {
    let max = greatest(row);
    row.iter().map(|x| (x - max).exp()).sum::<f64>().ln() + max
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let (x, label, cols) = (elements(&inputs[0]), elements(&inputs[1]), config.size("cols") as usize);
    let sums: Vec<f64> = x.chunks(cols).map(log_sum).collect();
    let loss: Vec<f64> = sums.iter().enumerate().map(|(row, sum)| sum - x[row * cols + label[row] as usize]).collect();
    [loss, sums].iter().map(|of_rows| listed(F32, &[config.size("rows")], of_rows)).collect()
}

fn reference_grad(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let [x, label, sums, factor] = [0, 1, 2, 3].map(|at| elements(&inputs[at]));
    let cols = config.size("cols") as usize;
    let element = |(at, x): (usize, &f64)| {
        let (row, column) = (at / cols, at % cols);
        ((x - sums[row]).exp() - if label[row] as usize == column { 1.0 } else { 0.0 }) * factor[row]
    };
    let gradient: Vec<f64> = x.iter().enumerate().map(element).collect();
    vec![listed(config.dtype, inputs[0].shape(), &gradient)]
}
