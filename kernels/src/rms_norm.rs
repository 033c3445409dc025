use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{Blocks, COLS, ROWS, THREADS, divisible};
use crate::numbers::{by_rows, elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "rms_norm",
    about: "every row divided by its root mean square, times a weight for each column",
    shape: &[ROWS, COLS, THREADS],
    dtypes: &[F32],
    build: |config, _| rms_norm(config),
    run_time: |_| &["rows"],
    inputs: |c| {
        let (rows, cols) = (c.size("rows"), c.size("cols"));
        vec![scattered(F32, &[rows, cols], 1), scattered(F32, &[cols], 2)]
    },
    reference,
    tolerance: |_| Tolerance { absolute: 1e-6, relative: 1e-5 },
    tested: &[(F32, &[("rows", 7), ("cols", 13), ("threads", 64)])],
};

/// Added to the mean of the squares.
const EPSILON: f64 = 1e-5;

/// One loop writes two fragments, so both have the same layout; the loop over rows runs on the threads with the sums.
fn rms_norm(config: &Config) -> Kernel {
    let Blocks { cols, threads, block } = Blocks::of(config);
    kernel("rms_norm", |k| {
        let rows = divisible(k, config, "rows");
        let x = k.input("x", F32, (rows, cols));
        let weight = k.input("weight", F32, [cols]);
        let y = k.output("y", F32, (rows, cols));
        let [cta] = k.grid([rows.ceil_div(block)]);
        k.threads(threads);
        let first = cta * block;
        let v = k.fragment("v", F32, [block, cols]);
        let scale = k.fragment("scale", F32, [block]);
        k.parallel([block, cols], |k, [i, j]| k.store(v, (i, j), x.at((first + i, j))));
        k.reduce(SquareSum, scale, v, 1);
        k.parallel([block], |k, [i]| k.store(scale, (i,), (scale.at((i,)) / cols as f64 + EPSILON).rsqrt()));
        k.parallel([block, cols], |k, [i, j]| {
            k.store(y, (first + i, j), v.at((i, j)) * scale.at((i,)) * weight.at((j,)))
        });
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let weight = elements(&inputs[1]);
    let y = by_rows(&inputs[0], config.size("cols"), |row| {
        let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
        let scale = 1.0 / (mean + EPSILON).sqrt();
        row.iter().zip(&weight).map(|(x, weight)| x * scale * weight).collect()
    });
    vec![listed(F32, inputs[0].shape(), &y)]
}
