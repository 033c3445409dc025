use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{Blocks, COLS, ROWS, THREADS, divisible};
use crate::numbers::{by_rows, greatest, listed, scattered};
use crate::online::{Part, max_and_sum};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "softmax",
    about: "softmax of every row: maximum, exponentials, their sum, products with its reciprocal",
    shape: &[ROWS, COLS, THREADS],
    dtypes: &[F32],
    build: |c, _| if is_long(c) { online(c) } else { in_registers(c) },
    run_time: |c| if is_long(c) { &["rows", "cols"] } else { &["rows"] },
    inputs: |c| vec![scattered(F32, &[c.size("rows"), c.size("cols")], 1)],
    reference,
    tolerance: |_| Tolerance { absolute: 1e-7, relative: 1e-5 },
    tested: &[
        (F32, &[("rows", 7), ("cols", 13), ("threads", 64)]),
        (F32, &[("rows", 2), ("cols", 5000), ("threads", 64)]),
        (F32, &[("rows", 3), ("cols", 2051), ("threads", 32)]),
    ],
};

/// The most elements of a thread for which a row is held in registers.
const MOST_HELD: i64 = 64;

/// Whether the rows are too long for registers.
fn is_long(config: &Config) -> bool {
    config.size("cols") > config.size("threads") * MOST_HELD
}

/// About how many elements a thread holds, so that few lanes share a short row.
const ELEMENTS: i64 = 32;

/// A CTA holds a block of rows. No layout is declared: both reductions leave their results on the threads that hold the
/// rows, and the loops follow. Rows below the last one read as 0, and nothing is stored for them. A row is divided by its
/// sum through one reciprocal: a quotient is within 1.5 units in the last place instead of 0.5.
fn in_registers(config: &Config) -> Kernel {
    let Blocks { cols, threads, block } = Blocks::with(config, ELEMENTS);
    kernel("softmax", |k| {
        let rows = divisible(k, config, "rows");
        let x = k.input("x", F32, (rows, cols));
        let y = k.output("y", F32, (rows, cols));
        let [cta] = k.grid([rows.ceil_div(block)]);
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

/// A CTA reads its row twice, the second time from the cache: for the maximum and the sum in one pass, and for the results. The
/// length of a row is known only at launch.
fn online(config: &Config) -> Kernel {
    let threads = config.size("threads");
    let tile = threads * ELEMENTS;
    kernel("softmax", |k| {
        let [rows, cols] = ["rows", "cols"].map(|name| divisible(k, config, name));
        let x = k.input("x", F32, (rows, cols));
        let y = k.output("y", F32, (rows, cols));
        let [row] = k.grid([rows]);
        k.threads(threads);
        let (max, sum) = max_and_sum(k, x, row, cols, Part::of(threads, F32));
        k.map(sum, |[i]| 1.0 / sum.at((i,)));
        k.serial("first", (..cols).step(tile), |k, first| {
            k.parallel([tile], |k, [j]| {
                let weight = (x.at((row, first + j)) - max.at((0,))).fast_exp();
                k.store(y, (row, first + j), weight * sum.at((0,)));
            });
        });
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
