use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{Blocks, COLS, ROWS, THREADS, divisible};
use crate::numbers::{elements, scattered, tensor};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "elementwise",
    about: "y = max(1.5*x + b, 0)*c in f32, stored as the dtype; b has a number for each column, c one for each row",
    shape: &[ROWS, COLS, THREADS],
    dtypes: &[F16, BF16, F32],
    build: |config, _| elementwise(config),
    run_time: |_| &["rows"],
    inputs: |c| {
        let (rows, cols) = (c.size("rows"), c.size("cols"));
        vec![scattered(F32, &[rows, cols], 1), scattered(F32, &[cols], 2), scattered(F32, &[rows], 3)]
    },
    reference,
    // Everything is exact in f32 for such inputs, and is rounded once.
    tolerance: |_| Tolerance::EXACT,
    tested: &[(BF16, &[("rows", 7), ("cols", 13), ("threads", 64)])],
};

const SLOPE: f64 = 1.5;
/// Elements of a thread: its rows share a vector of `b`.
const ELEMENTS: i64 = 64;

/// A chain of two loops over a fragment, with two vectors that are copied to every thread that reads them.
fn elementwise(config: &Config) -> Kernel {
    let Blocks { cols, threads, block } = Blocks::with(config, ELEMENTS);
    kernel("elementwise", |k| {
        let rows = divisible(k, config, "rows");
        let x = k.input("x", F32, (rows, cols));
        let b = k.input("b", F32, [cols]);
        let c = k.input("c", F32, (rows,));
        let y = k.output("y", config.dtype, (rows, cols));
        let [cta] = k.grid([rows.ceil_div(block)]);
        k.threads(threads);
        let first = cta * block;
        let bias = k.fragment("bias", F32, [cols]);
        let scale = k.fragment("scale", F32, [block]);
        let v = k.fragment("v", F32, [block, cols]);
        k.copy(bias, b);
        k.parallel([block], |k, [i]| k.store(scale, (i,), c.at((first + i,))));
        k.parallel([block, cols], |k, [i, j]| k.store(v, (i, j), x.at((first + i, j)) * SLOPE + bias.at((j,))));
        k.parallel([block, cols], |k, [i, j]| {
            let scaled = v.at((i, j)).max(0.0) * scale.at((i,));
            k.store(y, (first + i, j), scaled.cast(config.dtype));
        });
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let [x, b, c] = [0, 1, 2].map(|at| elements(&inputs[at]));
    let cols = config.size("cols") as usize;
    let y = tensor(config.dtype, inputs[0].shape(), |i| {
        let i = i as usize;
        (x[i] * SLOPE + b[i % cols]).max(0.0) * c[i / cols]
    });
    vec![y]
}
