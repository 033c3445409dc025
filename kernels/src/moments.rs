use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::divisible;
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "moments",
    about: "mean and variance of every row, of any length, in one pass",
    shape: &[
        ShapeKey { name: "rows", default: 16, about: "number of rows" },
        ShapeKey { name: "cols", default: 1000, about: "elements of a row" },
        ShapeKey { name: "threads", default: 128, about: "threads of a CTA, which takes a row" },
    ],
    dtypes: &[F32, F16, BF16],
    build: |config, _| moments(config),
    run_time: |_| &["rows", "cols"],
    inputs: |c| vec![scattered(c.dtype, &[c.size("rows"), c.size("cols")], 5)],
    reference,
    tolerance: |_| Tolerance { absolute: 1e-5, relative: 1e-5 },
    tested: &[
        (F32, &[("rows", 3), ("cols", 1)]),
        (F16, &[("rows", 5), ("cols", 4097), ("threads", 256)]),
        (BF16, &[("rows", 7), ("cols", 13), ("threads", 32)]),
    ],
};

/// Vectors of a thread in one step, of 16 bytes each.
const VECTORS: i64 = 2;

/// Number, mean, and sum of the squares of the distances from the mean, of two sets of elements together (Chan, Golub and
/// LeVeque, 1979).
fn together([n, mean, squares]: [Value; 3], [more, other, others]: [Value; 3]) -> [Value; 3] {
    let all = n + more;
    let (apart, share) = (other - mean, more / all.max(1.0));
    [all, mean + apart * share, squares + others + apart * apart * n * share]
}

fn moments(config: &Config) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    let each = 16 / dtype.bytes();
    kernel("moments", |k| {
        let (rows, cols) = (k.size("rows"), divisible(k, config, "cols"));
        let x = k.input("x", dtype, (rows, cols));
        let (means, variances) = (k.output("means", F32, (rows,)), k.output("variances", F32, (rows,)));
        let [row] = k.grid([rows]);
        k.threads(threads);
        let v = k.fragment("v", F32, [VECTORS, threads, each]);
        let own = ["own_n", "own_mean", "own_squares"].map(|name| k.fragment(name, F32, [threads]));
        let all = ["n", "mean", "squares"].map(|name| k.fragment(name, F32, [1]));
        all.iter().for_each(|of| _ = k.fill(*of, 0.0));
        k.serial("first", (..cols).step(VECTORS * threads * each), |k, first| {
            k.map(v, |[u, i, e]| x.at((row, first + (u * threads + i) * each + e)).cast(F32));
            let left = |u: i64, i: Expr| Value::from(cols - first - (i + u * threads) * each).max(0).min(each);
            k.map(own[0], |[i]| (left(0, i) + left(1, i)).cast(F32));
            k.reduce(Sum, own[1], v, [0, 2]);
            k.map(own[1], |[i]| own[1].at((i,)) / own[0].at((i,)).max(1.0));
            k.map(v, |[u, i, e]| v.at((u, i, e)) - own[1].at((i,)));
            k.reduce(SquareSum, own[2], v, [0, 2]);
            k.reduce_by(all, own, 0, [0.0; 3], together).accumulate();
        });
        k.parallel([1], |k, [i]| {
            k.store(means, (row,), all[1].at((i,)));
            k.store(variances, (row,), all[2].at((i,)) / all[0].at((i,)));
        });
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let (rows, cols) = (config.size("rows"), config.size("cols") as usize);
    let of_row = |row: &[f64]| {
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        (mean, row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / row.len() as f64)
    };
    let (means, variances): (Vec<f64>, Vec<f64>) = elements(&inputs[0]).chunks(cols).map(of_row).unzip();
    [means, variances].iter().map(|values| listed(F32, &[rows], values)).collect()
}
