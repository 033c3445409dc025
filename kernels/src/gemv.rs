use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{COLS, ROWS, THREADS, divisible};
use crate::numbers::{by_rows, elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "gemv",
    about: "the product of a matrix and a vector",
    shape: &[ROWS, COLS, THREADS],
    dtypes: &[F16, BF16, F32],
    build: |config, _| gemv(config),
    run_time: |_| &["rows", "cols"],
    inputs: |c| {
        vec![scattered(c.dtype, &[c.size("rows"), c.size("cols")], 1), scattered(c.dtype, &[c.size("cols")], 2)]
    },
    reference,
    // Products of such inputs are exact, and so are their sums.
    tolerance: |_| Tolerance::EXACT,
    tested: &[
        (F32, &[("rows", 1), ("cols", 1)]),
        (F16, &[("rows", 9), ("cols", 3001), ("threads", 96)]),
        (BF16, &[("rows", 100), ("cols", 1000), ("threads", 256)]),
    ],
};

/// Rows of a CTA.
const BLOCK: i64 = 4;
/// Elements of a row that a thread multiplies in one step.
const EACH: i64 = 8;

/// Each element of the vector is read once for all rows of a CTA. Threads add up their own products, and meet after the loop.
fn gemv(config: &Config) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    let tile = threads * EACH;
    kernel("gemv", |k| {
        let (rows, cols) = (k.size("rows"), divisible(k, config, "cols"));
        let a = k.input("a", dtype, (rows, cols));
        let x = k.input("x", dtype, (cols,));
        let y = k.output("y", F32, (rows,));
        let [cta] = k.grid([rows.ceil_div(BLOCK)]);
        k.threads(threads);
        let top = cta * BLOCK;
        let part = k.fragment("part", dtype, [tile]);
        let products = k.fragment("products", F32, [BLOCK, tile]);
        let sums = k.fragment("sums", F32, [BLOCK]);
        k.fill(sums, 0.0);
        k.serial("first", (..cols).step(tile), |k, first| {
            k.copy(part, x.sub((at(first, tile),)));
            k.map(products, |[i, j]| a.at((top + i, first + j)).cast(F32) * part.at((j,)).cast(F32));
            k.reduce(Sum, sums, products, 1).accumulate();
        });
        k.copy(y.sub((at(top, BLOCK),)), sums);
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let x = elements(&inputs[1]);
    let y = by_rows(&inputs[0], config.size("cols"), |row| vec![row.iter().zip(&x).map(|(a, x)| a * x).sum()]);
    vec![listed(F32, &[config.size("rows")], &y)]
}
