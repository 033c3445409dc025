use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::divisible;
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "argmax",
    about: "where the greatest element of every row is: rows of any length, tile by tile",
    shape: &[
        ShapeKey { name: "rows", default: 16, about: "number of rows" },
        ShapeKey { name: "cols", default: 1000, about: "elements of a row" },
        ShapeKey { name: "threads", default: 128, about: "threads of a CTA, which takes a row" },
    ],
    dtypes: &[F32, F16, BF16],
    build: |config, _| argmax(config),
    run_time: |_| &["rows", "cols"],
    inputs: |c| vec![scattered(c.dtype, &[c.size("rows"), c.size("cols")], 5)],
    reference,
    tolerance: |_| Tolerance::EXACT,
    tested: &[
        (F32, &[("rows", 3), ("cols", 1)]),
        (F16, &[("rows", 5), ("cols", 4097), ("threads", 256)]),
        (BF16, &[("rows", 7), ("cols", 13), ("threads", 32)]),
    ],
};

/// Elements of a thread in one step.
const EACH: i64 = 8;

fn argmax(config: &Config) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    let tile = threads * EACH;
    kernel("argmax", |k| {
        let (rows, cols) = (k.size("rows"), divisible(k, config, "cols"));
        let x = k.input("x", dtype, (rows, cols));
        let y = k.output("y", I32, (rows,));
        let [row] = k.grid([rows]);
        k.threads(threads);
        let v = k.fragment("v", dtype, [tile]);
        let (most, best) = (k.fragment("most", dtype, [1]), k.fragment("best", dtype, [1]));
        let (at_most, place) = (k.fragment("at_most", I32, [1]), k.fragment("place", I32, [1]));
        k.fill(best, f64::NAN);
        k.fill(place, 0);
        k.serial("t", ..cols.ceil_div(tile), |k, t| {
            k.copy(v, x.sub((row, at(t * tile, tile))));
            k.argmax(most, at_most, v, 0);
            k.parallel([1], |k, [i]| {
                let (new, old) = (most.at((i,)), best.at((i,)));
                // NaN is less than every number.
                k.if_(new.gt(old) | (old.ne(old) & new.eq(new)), |k| {
                    k.store(best, (i,), new);
                    k.store(place, (i,), at_most.at((i,)) + t * tile);
                });
            });
        });
        k.copy(y.sub((at(row, 1),)), place);
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let (rows, cols) = (config.size("rows"), config.size("cols") as usize);
    let first_greatest = |row: &[f64]| {
        let best = row
            .iter()
            .enumerate()
            .fold((0, f64::NEG_INFINITY), |best, (at, value)| if *value > best.1 { (at, *value) } else { best });
        best.0 as f64
    };
    let places: Vec<f64> = elements(&inputs[0]).chunks(cols).map(first_greatest).collect();
    vec![listed(I32, &[rows], &places)]
}
