use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::divisible;
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "swiglu",
    about: "`silu(gate)*up`, element by element",
    shape: &[
        ShapeKey { name: "n", default: 8192, about: "number of elements" },
        ShapeKey { name: "threads", default: 256, about: "threads of a CTA" },
    ],
    dtypes: &[F16, BF16, F32],
    build: |config, _| swiglu(config),
    run_time: |_| &["n"],
    inputs: |c| [1, 2].map(|seed| scattered(c.dtype, &[c.size("n")], seed)).to_vec(),
    reference,
    tolerance: |_| Tolerance { absolute: 1e-2, relative: 1e-2 },
    tested: &[(F32, &[("n", 1)]), (BF16, &[("n", 1000), ("threads", 96)]), (F32, &[("n", 5000), ("threads", 128)])],
};

/// Elements of a thread.
const EACH: i64 = 8;

fn swiglu(config: &Config) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    let tile = threads * EACH;
    kernel("swiglu", |k| {
        let n = divisible(k, config, "n").max(1 << 30);
        let (gate, up) = (k.input("gate", dtype, (n,)), k.input("up", dtype, (n,)));
        let y = k.output("y", dtype, (n,));
        let [block] = k.grid([n.ceil_div(tile)]);
        k.threads(threads);
        k.parallel([tile], |k, [i]| {
            let at = block * tile + i;
            let gated = gate.at((at,)).cast(F32).silu() * up.at((at,)).cast(F32);
            k.store(y, (at,), gated.cast(dtype));
        });
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let [gate, up] = [0, 1].map(|at| elements(&inputs[at]));
    let y: Vec<f64> = gate.iter().zip(&up).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up).collect();
    vec![listed(config.dtype, inputs[0].shape(), &y)]
}
