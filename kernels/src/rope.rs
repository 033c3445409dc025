use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{THREADS, divisible, fitting_rows};
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const HALVES: KernelEntry = KernelEntry {
    name: "rope_halves",
    about: "rotary position embedding: element i of a head is rotated with element i + dim/2",
    shape: &[
        ShapeKey { name: "tokens", default: 16, about: "tokens" },
        ShapeKey { name: "heads", default: 8, about: "heads of a token" },
        ShapeKey { name: "dim", default: 128, about: "elements of a head, an even number" },
        THREADS,
    ],
    dtypes: &[F16, BF16, F32],
    build: |c, _| rope("rope_halves", c, Places { step: 1, distance: c.size("dim") / 2 }),
    run_time: |_| &["tokens"],
    inputs: |c| {
        let [tokens, heads, dim] = ["tokens", "heads", "dim"].map(|name| c.size(name));
        let angles = [tokens, dim / 2];
        vec![scattered(c.dtype, &[tokens, heads, dim], 1), scattered(F32, &angles, 2), scattered(F32, &angles, 3)]
    },
    reference: |c, inputs| reference(c, inputs, Places { step: 1, distance: c.size("dim") / 2 }),
    // Everything is exact in f32 for such inputs, and is rounded once.
    tolerance: |_| Tolerance::EXACT,
    tested: &[(F32, &[("tokens", 3), ("heads", 5), ("dim", 20), ("threads", 32)])],
};

pub(crate) const PAIRS: KernelEntry = KernelEntry {
    name: "rope_pairs",
    about: "rotary position embedding: elements 2*i and 2*i + 1 of a head are rotated with each other",
    build: |c, _| rope("rope_pairs", c, Places { step: 2, distance: 1 }),
    reference: |c, inputs| reference(c, inputs, Places { step: 2, distance: 1 }),
    ..HALVES
};

/// Which two elements of a head an angle rotates.
#[derive(Clone, Copy)]
struct Places {
    /// From the first element of one angle to that of the next.
    step: i64,
    /// From the first to the second element of an angle.
    distance: i64,
}

/// The elements of a thread.
const ELEMENTS: i64 = 128;

/// A CTA takes some tokens. The same angles rotate all heads of a token; their cosines and sines are inputs.
fn rope(name: &str, config: &Config, Places { step, distance }: Places) -> Kernel {
    let [tokens, heads, dim, threads] = ["tokens", "heads", "dim", "threads"].map(|name| config.size(name));
    let block = fitting_rows(tokens, threads * ELEMENTS / (heads * dim).max(1));
    kernel(name, |k| {
        let tokens = divisible(k, config, "tokens");
        let x = k.input("x", config.dtype, (tokens, heads, dim));
        let cos = k.input("cos", F32, (tokens, dim / 2));
        let sin = k.input("sin", F32, (tokens, dim / 2));
        let y = k.output("y", config.dtype, (tokens, heads, dim));
        let [cta] = k.grid([tokens.ceil_div(block)]);
        k.threads(threads);
        let top = cta * block;
        let [cosine, sine, negative] =
            ["cosine", "sine", "negative"].map(|name| k.fragment(name, F32, [block, dim / 2]));
        k.parallel([block, dim / 2], |k, [t, i]| {
            k.store(cosine, (t, i), cos.at((top + t, i)));
            k.store(sine, (t, i), sin.at((top + t, i)));
            k.store(negative, (t, i), -sin.at((top + t, i)));
        });
        let v = k.fragment("v", config.dtype, [block, heads, dim]);
        let rotated = k.fragment("rotated", config.dtype, [block, heads, dim]);
        k.parallel([block, heads, dim], |k, [t, h, j]| k.store(v, (t, h, j), x.at((top + t, h, j))));
        k.parallel([block, heads, dim / 2], |k, [t, h, i]| {
            let (first, second) = (i * step, i * step + distance);
            let (a, b) = (v.at((t, h, first)).cast(F32), v.at((t, h, second)).cast(F32));
            let [cos, sin, negative] = [cosine, sine, negative].map(|of| of.at((t, i)));
            k.store(rotated, (t, h, first), (a * cos + b * negative).cast(config.dtype));
            k.store(rotated, (t, h, second), (b * cos + a * sin).cast(config.dtype));
        });
        k.parallel([block, heads, dim], |k, [t, h, j]| k.store(y, (top + t, h, j), rotated.at((t, h, j))));
    })
}

fn reference(config: &Config, inputs: &[HostTensor], Places { step, distance }: Places) -> Vec<HostTensor> {
    let [x, cos, sin] = [0, 1, 2].map(|at| elements(&inputs[at]));
    let [heads, dim] = ["heads", "dim"].map(|name| config.size(name) as usize);
    let mut y = x.clone();
    for (head, rotated) in y.chunks_mut(dim).enumerate() {
        for i in 0..dim / 2 {
            let (first, second) = (i * step as usize, i * step as usize + distance as usize);
            let (a, b) = (x[head * dim + first], x[head * dim + second]);
            let angle = head / heads * (dim / 2) + i;
            rotated[first] = a * cos[angle] - b * sin[angle];
            rotated[second] = b * cos[angle] + a * sin[angle];
        }
    }
    vec![listed(config.dtype, inputs[0].shape(), &y)]
}
