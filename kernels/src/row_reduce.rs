//! `row_sum` and `row_max`: reduce every row to one element.

use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{Blocks, COLS, ROWS, THREADS, divisible};
use crate::numbers::{by_rows, greatest, listed, negative, scattered};
use crate::{Config, KernelEntry};

pub(crate) const SUM: KernelEntry = KernelEntry {
    name: "row_sum",
    about: "the sum of every row",
    shape: &[ROWS, COLS, THREADS],
    dtypes: &[F32],
    build: |c, _| row_reduce("row_sum", Sum, c),
    run_time: |_| &["rows"],
    inputs: |c| vec![scattered(F32, &[c.size("rows"), c.size("cols")], 1)],
    reference: |c, inputs| reference(c, inputs, |row| row.iter().sum()),
    // Sums of such inputs are exact, in whatever order.
    tolerance: |_| Tolerance::EXACT,
    tested: &[(F32, &[("rows", 7), ("cols", 13), ("threads", 64)])],
};

pub(crate) const MAX: KernelEntry = KernelEntry {
    name: "row_max",
    about: "the maximum of every row",
    build: |c, _| row_reduce("row_max", Max, c),
    inputs: |c| vec![negative(F32, &[c.size("rows"), c.size("cols")], 1)],
    reference: |c, inputs| reference(c, inputs, greatest),
    ..SUM
};

/// The smallest program with a reduction: a block of rows in, one number per row out. Both are copied between memory and
/// registers, and of the threads that share a row, one stores its result.
fn row_reduce(name: &str, kind: ReduceKind, config: &Config) -> Kernel {
    let Blocks { cols, threads, block } = Blocks::of(config);
    kernel(name, |k| {
        let rows = divisible(k, config, "rows");
        let x = k.input("x", F32, (rows, cols));
        let y = k.output("y", F32, (rows,));
        let [cta] = k.grid([rows.ceil_div(block)]);
        k.threads(threads);
        let block = at(cta * block, block);
        k.reduce(kind, y.sub((block,)), x.sub((block, ..)), 1);
    })
}

fn reference(config: &Config, inputs: &[HostTensor], of_row: fn(&[f64]) -> f64) -> Vec<HostTensor> {
    let y = by_rows(&inputs[0], config.size("cols"), |row| vec![of_row(row)]);
    vec![listed(F32, &[config.size("rows")], &y)]
}
