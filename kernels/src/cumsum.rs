use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::divisible;
use crate::config::ShapeKey;
use crate::numbers::{elements, listed};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "cumsum",
    about: "running sums of every row: a scan of each tile, and a carry from tile to tile",
    shape: &[
        ShapeKey { name: "rows", default: 4, about: "number of rows" },
        ShapeKey { name: "cols", default: 2000, about: "elements of a row" },
        ShapeKey { name: "threads", default: 128, about: "threads of a CTA, which takes a row" },
    ],
    dtypes: &[F32, I32],
    build: |config, _| cumsum(config),
    run_time: |_| &["rows", "cols"],
    inputs: |c| vec![HostTensor::from_f64(c.dtype, &[c.size("rows"), c.size("cols")], |at| (at * 37 % 11 - 5) as f64)],
    reference,
    tolerance: |_| Tolerance::EXACT,
    tested: &[
        (F32, &[("rows", 2), ("cols", 1)]),
        (I32, &[("rows", 3), ("cols", 5000), ("threads", 256)]),
        (F32, &[("rows", 7), ("cols", 129), ("threads", 32)]),
    ],
};

/// Elements of a thread in one step.
const EACH: i64 = 4;

fn cumsum(config: &Config) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    let tile = threads * EACH;
    kernel("cumsum", |k| {
        let (rows, cols) = (k.size("rows"), divisible(k, config, "cols"));
        let x = k.input("x", dtype, (rows, cols));
        let y = k.output("y", dtype, (rows, cols));
        let [row] = k.grid([rows]);
        k.threads(threads);
        let (v, carry) = (k.fragment("v", dtype, [tile]), k.fragment("carry", dtype, [1]));
        k.fill(carry, 0);
        k.serial("t", ..cols.ceil_div(tile), |k, t| {
            let part = (row, at(t * tile, tile));
            k.copy(v, x.sub(part));
            k.scan(Sum, v, v, 0).carry(carry);
            k.copy(y.sub(part), v);
        });
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let cols = config.size("cols") as usize;
    let running = |row: &[f64]| -> Vec<f64> {
        row.iter()
            .scan(0.0, |sum, value| {
                *sum += value;
                Some(*sum)
            })
            .collect()
    };
    let sums: Vec<f64> = elements(&inputs[0]).chunks(cols).flat_map(running).collect();
    vec![listed(config.dtype, inputs[0].shape(), &sums)]
}
