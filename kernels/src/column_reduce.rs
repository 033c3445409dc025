//! `column_sum` and `column_max`: reduce every column to one element.

use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{COLS, ROWS, THREADS, divisible, fitting_rows};
use crate::numbers::{elements, greatest, listed, negative, scattered};
use crate::{Config, KernelEntry};

pub(crate) const SUM: KernelEntry = KernelEntry {
    name: "column_sum",
    about: "the sum of every column, a block of rows at a time",
    shape: &[ROWS, COLS, THREADS],
    dtypes: &[F32],
    build: |c, _| column_reduce("column_sum", Sum, 0.0, c),
    run_time: |_| &["rows", "cols"],
    inputs: |c| vec![scattered(F32, &[c.size("rows"), c.size("cols")], 1)],
    reference: |c, inputs| reference(c, inputs, |column| column.iter().sum()),
    // Sums of such inputs are exact, in whatever order.
    tolerance: |_| Tolerance::EXACT,
    tested: &[(F32, &[("rows", 7), ("cols", 13), ("threads", 64)])],
};

pub(crate) const MAX: KernelEntry = KernelEntry {
    name: "column_max",
    about: "the maximum of every column, a block of rows at a time",
    build: |c, _| column_reduce("column_max", Max, f64::NEG_INFINITY, c),
    inputs: |c| vec![negative(F32, &[c.size("rows"), c.size("cols")], 1)],
    reference: |c, inputs| reference(c, inputs, greatest),
    ..SUM
};

/// The most elements that a thread loads before it adds them.
const ELEMENTS: i64 = 128;
/// The most columns of a CTA: whole sectors.
const MOST_COLUMNS: i64 = 32;

/// Each CTA takes some columns and goes through all rows, block by block; each block is combined with the result.
/// `neutral` is the neutral element of the reduction.
fn column_reduce(name: &str, kind: ReduceKind, neutral: f64, config: &Config) -> Kernel {
    let [rows, cols, threads] = ["rows", "cols", "threads"].map(|name| config.size(name));
    let width = cols.min(MOST_COLUMNS);
    let block = fitting_rows(rows, threads * ELEMENTS / width.max(1));
    kernel(name, |k| {
        let [rows, cols] = ["rows", "cols"].map(|name| divisible(k, config, name));
        let x = k.input("x", F32, (rows, cols));
        let y = k.output("y", F32, (cols,));
        let [cta] = k.grid([cols.ceil_div(width)]);
        k.threads(threads);
        let first = cta * width;
        let v = k.fragment("v", F32, [block, width]);
        let result = k.fragment("result", F32, [width]);
        k.fill(result, neutral);
        k.serial("t", ..rows.ceil_div(block), |k, t| {
            k.parallel([block, width], |k, [i, j]| k.store(v, (i, j), x.at((t * block + i, first + j))));
            k.reduce(kind, result, v, 0).accumulate();
        });
        k.parallel([width], |k, [j]| k.store(y, (first + j,), result.at((j,))));
    })
}

fn reference(config: &Config, inputs: &[HostTensor], of_column: fn(&[f64]) -> f64) -> Vec<HostTensor> {
    let cols = config.size("cols") as usize;
    let x = elements(&inputs[0]);
    let column = |j: usize| x.iter().copied().skip(j).step_by(cols).collect::<Vec<f64>>();
    let y: Vec<f64> = (0..cols).map(|j| of_column(&column(j))).collect();
    vec![listed(F32, &[cols as i64], &y)]
}
