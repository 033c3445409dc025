use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{Blocks, COLS, ROWS, THREADS};
use crate::numbers::{by_rows, greatest, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "softmax",
    about: "softmax of every row: maximum, exponentials, their sum, products with its reciprocal",
    shape: &[ROWS, COLS, THREADS],
    dtypes: &[F32],
    build: softmax,
    run_time: &[],
    inputs: |c| vec![scattered(F32, &[c.size("rows"), c.size("cols")], 1)],
    reference,
    tolerance: Tolerance { absolute: 1e-7, relative: 1e-5 },
    tested: &[(F32, &[("rows", 7), ("cols", 13), ("threads", 64)])],
};

/// About how many elements a thread holds, so that few lanes share a short row.
const ELEMENTS: i64 = 32;

/// A CTA holds a block of rows. No layout is declared: both reductions leave their results on the threads that hold the
/// rows, and the loops follow. Rows below the last one read as 0, and nothing is stored for them. A row is divided by its
/// sum through one reciprocal: a quotient is within 1.5 units in the last place instead of 0.5.
fn softmax(config: &Config) -> Kernel {
    let blocks = Blocks::with(config, ELEMENTS);
    let Blocks { rows, cols, threads, block } = blocks;
    kernel("softmax", |k| {
        let x = k.input("x", F32, [rows, cols]);
        let y = k.output("y", F32, [rows, cols]);
        let [cta] = k.grid([blocks.ctas()]);
        k.threads(threads);
        let first = cta * block;
        let v = k.fragment("v", F32, [block, cols]);
        let max = k.fragment("max", F32, [block]);
        let sum = k.fragment("sum", F32, [block]);
        k.parallel([block, cols], |k, [i, j]| k.store(v, (i, j), x.at((first + i, j))));
        k.reduce(Max, max, v, 1);
        k.parallel([block, cols], |k, [i, j]| k.store(v, (i, j), (v.at((i, j)) - max.at((i,))).fast_exp()));
        k.reduce(Sum, sum, v, 1);
        k.parallel([block], |k, [i]| k.store(sum, (i,), 1.0 / sum.at((i,))));
        k.parallel([block, cols], |k, [i, j]| k.store(y, (first + i, j), v.at((i, j)) * sum.at((i,))));
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let y = by_rows(&inputs[0], config.size("cols"), |row| {
        let max = greatest(row);
        let sum: f64 = row.iter().map(|x| (x - max).exp()).sum();
        row.iter().map(|x| (x - max).exp() / sum).collect()
    });
    vec![listed(F32, inputs[0].shape(), &y)]
}
