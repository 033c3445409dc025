use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{COLS, ROWS, THREADS, divisible};
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "topk",
    about: "the greatest elements of every row in descending order, and where they are",
    shape: &[
        ROWS,
        COLS,
        ShapeKey { name: "count", default: 4, about: "how many elements of a row are wanted" },
        THREADS,
    ],
    dtypes: &[F32, F16, BF16],
    build: |config, _| topk(config),
    run_time: |_| &["rows", "cols"],
    inputs: |c| vec![scattered(c.dtype, &[c.size("rows"), c.size("cols")], 1)],
    reference,
    tolerance: |_| Tolerance::EXACT,
    tested: &[
        (F32, &[("rows", 1), ("cols", 1), ("count", 1)]),
        (BF16, &[("rows", 3), ("cols", 2000), ("count", 8), ("threads", 96)]),
        (F16, &[("rows", 7), ("cols", 13), ("count", 13), ("threads", 32)]),
        (F32, &[("rows", 2), ("cols", 3), ("count", 5), ("threads", 64)]),
    ],
};

/// A CTA holds a row in registers and takes the greatest element out of it, again and again. Of equal elements the first comes
/// first. A row that has no more gets NaN, at -1.
fn topk(config: &Config) -> Kernel {
    let (dtype, threads, count) = (config.dtype, config.size("threads"), config.size("count"));
    let tile = (config.size("cols") as u64).next_power_of_two() as i64;
    kernel("topk", |k| {
        let (rows, cols) = (k.size("rows"), divisible(k, config, "cols").max(tile));
        let x = k.input("x", dtype, (rows, cols));
        let values = k.output("values", dtype, (rows, count));
        let places = k.output("places", I32, (rows, count));
        let [row] = k.grid([rows]);
        k.threads(threads);
        let v = k.fragment("v", dtype, [tile]);
        let (most, place) = (k.fragment("most", dtype, [1]), k.fragment("place", I32, [1]));
        k.copy(v, x.sub((row, at(0, tile))));
        k.serial("n", 0..count, |k, n| {
            k.argmax(most, place, v, 0);
            k.parallel([1], |k, [i]| {
                k.store(values, (row, n), most.at((i,)));
                k.store(places, (row, n), Value::from(n).lt(Expr::from(cols)).select(place.at((i,)), -1));
            });
            k.map(v, |[j]| place.at((0,)).eq(j).select(f64::NAN, v.at((j,))));
        });
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let (count, shape) = (config.size("count") as usize, [config.size("rows"), config.size("count")]);
    let of_row = |row: &[f64]| {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|a, b| row[*b].total_cmp(&row[*a]).then(a.cmp(b)));
        order.truncate(count);
        let found = order.into_iter().map(|at| (row[at], at as f64));
        found.chain(std::iter::repeat((f64::NAN, -1.0))).take(count).collect::<Vec<_>>()
    };
    let found: Vec<(f64, f64)> = elements(&inputs[0]).chunks(config.size("cols") as usize).flat_map(of_row).collect();
    let (values, places): (Vec<f64>, Vec<f64>) = found.into_iter().unzip();
    vec![listed(config.dtype, &shape, &values), listed(I32, &shape, &places)]
}
