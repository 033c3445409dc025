use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::divisible;
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "adamw",
    about: "a step of the optimizer AdamW: parameters and both moments are updated in place",
    shape: &[
        ShapeKey { name: "n", default: 4096, about: "number of parameters" },
        ShapeKey { name: "threads", default: 256, about: "threads of a CTA" },
    ],
    dtypes: &[F32],
    build: |config, _| adamw(config),
    run_time: |_| &["n"],
    inputs: |c| {
        let n = [c.size("n")];
        let squares: Vec<f64> = elements(&scattered(F32, &n, 4)).iter().map(|x| x * x).collect();
        let tensors = [scattered(F32, &n, 1), scattered(F32, &n, 2), scattered(F32, &n, 3), listed(F32, &n, &squares)];
        tensors.into_iter().chain(SCALARS.map(|(_, value)| listed(F32, &[1], &[value]))).collect()
    },
    reference,
    tolerance: |_| Tolerance { absolute: 1e-6, relative: 1e-5 },
    tested: &[(F32, &[("n", 1)]), (F32, &[("n", 1000), ("threads", 96)])],
};

/// The numbers of a step, with values after ten steps: the last two correct the moments for their first value, 0.
const SCALARS: [(&str, f64); 7] = [
    ("rate", 1e-3),
    ("beta1", 0.9),
    ("beta2", 0.999),
    ("epsilon", 1e-8),
    ("decay", 0.01),
    ("correction1", 1.0 / (1.0 - 0.348_678_44)),
    ("correction2", 1.0 / (1.0 - 0.990_044_88)),
];

/// Elements of a thread.
const EACH: i64 = 8;

/// Decoupled weight decay (Loshchilov and Hutter, 2019).
fn adamw(config: &Config) -> Kernel {
    let threads = config.size("threads");
    let tile = threads * EACH;
    kernel("adamw", |k| {
        let n = divisible(k, config, "n").max(1 << 30);
        let gradient = k.input("gradient", F32, (n,));
        let [x, mean, square] = ["x", "mean", "square"].map(|name| k.inout(name, F32, (n,)));
        let [rate, beta1, beta2, epsilon, decay, correction1, correction2] =
            SCALARS.map(|(name, _)| k.scalar(name, F32));
        let [block] = k.grid([n.ceil_div(tile)]);
        k.threads(threads);
        k.parallel([tile], |k, [i]| {
            let at = block * tile + i;
            let g = k.named("g", gradient.at((at,)));
            let old = k.named("old", x.at((at,)));
            let first = k.named("first", beta1 * mean.at((at,)) + (1.0 - beta1) * g);
            let second = k.named("second", beta2 * square.at((at,)) + (1.0 - beta2) * g * g);
            let step = first * correction1 / ((second * correction2).sqrt() + epsilon);
            k.store(x, (at,), old - rate * (step + decay * old));
            k.store(mean, (at,), first);
            k.store(square, (at,), second);
        });
    })
}

fn reference(_: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let shape = inputs[0].shape();
    let [gradient, x, mean, square] = [0, 1, 2, 3].map(|at| elements(&inputs[at]));
    // As they are passed, rounded to f32: `1 - beta2` depends on their last bits.
    let scalars: Vec<f64> = inputs[4..].iter().flat_map(elements).collect();
    let [rate, beta1, beta2, epsilon, decay, correction1, correction2] = std::array::from_fn(|at| scalars[at]);
    let combined = |beta: f64, old: &[f64], new: &dyn Fn(f64) -> f64| -> Vec<f64> {
        old.iter().zip(&gradient).map(|(old, g)| beta * old + (1.0 - beta) * new(*g)).collect()
    };
    let (first, second) = (combined(beta1, &mean, &|g| g), combined(beta2, &square, &|g| g * g));
    let step = |at: usize| first[at] * correction1 / ((second[at] * correction2).sqrt() + epsilon);
    let x: Vec<f64> = x.iter().enumerate().map(|(at, x)| x - rate * (step(at) + decay * x)).collect();
    [x, first, second].iter().map(|values| listed(F32, shape, values)).collect()
}
