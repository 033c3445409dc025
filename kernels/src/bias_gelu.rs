use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{Blocks, COLS, ROWS, THREADS, divisible};
use crate::numbers::{CUBE, ROOT, elements, gelu_tanh, scattered, tensor};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "bias_gelu",
    about: "y = residual + gelu(x + bias), where bias has a number for each column",
    shape: &[ROWS, COLS, THREADS],
    dtypes: &[F16, BF16, F32],
    build: |config, _| bias_gelu(config),
    run_time: |_| &["rows"],
    inputs: |c| {
        let matrix = [c.size("rows"), c.size("cols")];
        let of = |shape: &[i64], seed| scattered(c.dtype, shape, seed);
        vec![of(&matrix, 1), of(&matrix[1..], 2), of(&matrix, 3)]
    },
    reference,
    // Half of the distance between bf16 numbers from 4 to 8.
    tolerance: |_| Tolerance { absolute: 1.0 / 64.0, relative: 0.0 },
    tested: &[
        (F32, &[("rows", 7), ("cols", 13), ("threads", 64)]),
        (F16, &[("rows", 33), ("cols", 100), ("threads", 128)]),
    ],
};

/// The most elements of a thread.
const ELEMENTS: i64 = 64;

/// Every element by itself: `gelu(v)` is `v * sigmoid(2 * ROOT * (v + CUBE * v^3))`.
fn bias_gelu(config: &Config) -> Kernel {
    let Blocks { cols, threads, block } = Blocks::with(config, ELEMENTS);
    kernel("bias_gelu", |k| {
        let rows = divisible(k, config, "rows");
        let x = k.input("x", config.dtype, (rows, cols));
        let bias = k.input("bias", config.dtype, [cols]);
        let residual = k.input("residual", config.dtype, (rows, cols));
        let y = k.output("y", config.dtype, (rows, cols));
        let [cta] = k.grid([rows.ceil_div(block)]);
        k.threads(threads);
        // Each thread has the same columns of all of its rows.
        let added = k.fragment("added", config.dtype, [cols]);
        k.copy(added, bias);
        k.parallel([block, cols], |k, [i, j]| {
            let place = (cta * block + i, j);
            let v = k.named("v", x.at(place).cast(F32) + added.at((j,)).cast(F32));
            let gelu = v / (1.0 + (v * (v * v * (-2.0 * ROOT * CUBE) - 2.0 * ROOT)).fast_exp());
            k.store(y, place, (residual.at(place).cast(F32) + gelu).cast(config.dtype));
        });
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let [x, bias, residual] = [0, 1, 2].map(|at| elements(&inputs[at]));
    let cols = config.size("cols") as usize;
    let y = tensor(config.dtype, inputs[0].shape(), |i| {
        let i = i as usize;
        residual[i] + gelu_tanh(x[i] + bias[i % cols])
    });
    vec![y]
}
