use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{COLS, ROWS, THREADS, divisible};
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "quantize_int8",
    about: "every row as 8-bit integers and one scale: its greatest absolute value is 127",
    shape: &[ROWS, COLS, THREADS],
    dtypes: &[F16, BF16, F32],
    build: quantize,
    run_time: |_| &["rows", "cols"],
    inputs: |c| vec![scattered(c.dtype, &[c.size("rows"), c.size("cols")], 1)],
    reference,
    // A quotient that is rounded differently may be the next integer.
    tolerance: Tolerance { absolute: 1.0, relative: 1e-6 },
    tested: &[
        (F32, &[("rows", 1), ("cols", 1)]),
        (BF16, &[("rows", 3), ("cols", 5000), ("threads", 96)]),
        (F32, &[("rows", 7), ("cols", 13), ("threads", 32)]),
    ],
};

/// Elements of a row that a thread holds.
const EACH: i64 = 8;

/// A CTA reads its row twice, the second time from the cache: for the greatest absolute value, and to divide by it.
fn quantize(config: &Config) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    let tile = threads * EACH;
    kernel("quantize_int8", |k| {
        let (rows, cols) = (k.size("rows"), divisible(k, config, "cols"));
        let x = k.input("x", dtype, (rows, cols));
        let q = k.output("q", I8, (rows, cols));
        let scales = k.output("scales", F32, (rows,));
        let [row] = k.grid([rows]);
        k.threads(threads);
        let v = k.fragment("v", dtype, [tile]);
        let most = k.fragment("most", dtype, [1]);
        let [scale, inverse] = ["scale", "inverse"].map(|name| k.fragment(name, F32, [1]));
        k.fill(most, 0.0);
        k.serial("t", ..cols.ceil_div(tile), |k, t| {
            k.copy(v, x.sub((row, at(t * tile, tile))));
            k.reduce(AbsMax, most, v, 0).accumulate();
        });
        k.map(scale, |[i]| most.at((i,)).cast(F32) * (1.0 / 127.0));
        // A row of zeros has the scale 0, and no reciprocal.
        k.map(inverse, |[i]| scale.at((i,)).gt(0.0).select(1.0 / scale.at((i,)), 0.0));
        k.copy(scales.sub((at(row, 1),)), scale);
        k.serial("s", ..cols.ceil_div(tile), |k, s| {
            let part = (row, at(s * tile, tile));
            k.copy(v, x.sub(part));
            k.parallel([tile], |k, [i]| {
                let rounded = (v.at((i,)).cast(F32) * inverse.at((0,))).round_ties_even();
                k.store(q, (row, s * tile + i), rounded.cast(I8));
            });
        });
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let (shape, cols) = (inputs[0].shape(), config.size("cols") as usize);
    let x = elements(&inputs[0]);
    let scale = |row: &[f64]| row.iter().map(|x| x.abs()).fold(0.0, f64::max) / 127.0;
    let scales: Vec<f64> = x.chunks(cols).map(scale).collect();
    let quantized = |(at, x): (usize, &f64)| {
        let scale = scales[at / cols];
        if scale > 0.0 { (x / scale).round_ties_even() } else { 0.0 }
    };
    let q: Vec<f64> = x.iter().enumerate().map(quantized).collect();
    vec![listed(I8, shape, &q), listed(F32, &shape[..1], &scales)]
}
