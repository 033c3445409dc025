//! The layout inference part of `bench`: inference alone, of kernels that are verified already.

use tilewright::infer::infer;
use tilewright::ir::tile::verify;
use tilewright::prelude::*;

use crate::bench_kernel::{library_kernel, options};
use crate::defect::fail_on_kernel;
use crate::exit::Exit;
use crate::figure::{Figure, Goal};
use crate::measuring::Measuring;
use crate::resources::median_milliseconds;

const RUNS: usize = 51;

pub(crate) fn figures(measuring: &Measuring) -> Result<Vec<Figure>, Exit> {
    let attention = library_kernel("short_attention", &[])?;
    let programs = [
        ("inference: elementwise 128 x 128, 128 threads", elementwise(), 0.3),
        ("inference: softmax 64 x 128, 128 threads", softmax(64, 128), 0.6),
        ("inference: softmax 128 x 128, 128 threads", softmax(128, 128), 0.6),
        ("inference: attention-shaped, with gemms", attention, 5.0),
        ("inference: attention-shaped, without gemms", without_products(), 5.0),
        ("inference: chain of 100 loops", chain(100), 10.0),
    ];
    let mut figures = Vec::new();
    for (name, kernel, bound) in programs {
        figures.push(figure(measuring, name, kernel, Goal::Below(bound))?);
    }
    let half = figure(measuring, "inference: chain of 200 loops", chain(200), Goal::Below(20.0))?;
    let goal = Goal::Linear(2.0 * half.value);
    figures.push(half);
    figures.push(figure(measuring, "inference: chain of 400 loops", chain(400), goal)?);
    Ok(figures)
}

fn figure(measuring: &Measuring, name: &'static str, kernel: Kernel, goal: Goal) -> Result<Figure, Exit> {
    measuring.figure(name, "ms", goal, || {
        let (text, options) = (kernel.to_string(), options(None));
        let failed = |found| fail_on_kernel(|| text.clone(), &options, found, Exit::BadInput);
        let kernel = verify(kernel, options.target).map_err(failed)?;
        median_milliseconds(RUNS, || infer(kernel.kernel()).map(|_| ()).map_err(failed))
    })
}

/// A copy in, one loop, and a copy out.
fn elementwise() -> Kernel {
    kernel("elementwise", |k| {
        k.threads(128);
        let x = k.input("x", F16, [128, 128]);
        let y = k.output("y", F16, [128, 128]);
        let a = k.fragment("a", F16, [128, 128]);
        let b = k.fragment("b", F16, [128, 128]);
        k.copy(a, x);
        k.parallel([128, 128], |k, [i, j]| {
            k.store(b, (&i, &j), a.at((&i, &j)) * 2.0);
        });
        k.copy(y, b);
    })
}

fn softmax(rows: i64, cols: i64) -> Kernel {
    kernel("softmax", |k| {
        k.threads(128);
        let x = k.input("x", F32, [rows, cols]);
        let y = k.output("y", F32, [rows, cols]);
        let v = k.fragment("v", F32, [rows, cols]);
        let max = k.fragment("max", F32, [rows]);
        let sum = k.fragment("sum", F32, [rows]);
        k.copy(v, x);
        k.reduce(Max, max, v, 1);
        k.parallel([rows, cols], |k, [i, j]| {
            k.store(v, (&i, &j), (v.at((&i, &j)) - max.at((&i,))).exp());
        });
        k.reduce(Sum, sum, v, 1);
        k.parallel([rows, cols], |k, [i, j]| {
            k.store(y, (&i, &j), v.at((&i, &j)) / sum.at((&i,)));
        });
    })
}

/// Scores, their softmax with running sums, and an output that is scaled: the loops of attention without its products.
fn without_products() -> Kernel {
    let (rows, cols) = (64, 64);
    kernel("attention_shaped", |k| {
        k.threads(128);
        let s = k.input("s", F32, [rows, cols]);
        let v = k.input("v", F32, [rows, cols]);
        let o = k.output("o", F32, [rows, cols]);
        let scores = k.fragment("scores", F32, [rows, cols]);
        let weights = k.fragment("weights", F16, [rows, cols]);
        let output = k.fragment("output", F32, [rows, cols]);
        let [max, scale, sum, part] = ["max", "scale", "sum", "part"].map(|name| k.fragment(name, F32, [rows]));
        k.fill(output, 0);
        k.fill(sum, 0);
        k.fill(scale, 1);
        k.copy(scores, s);
        k.reduce(Max, max, scores, 1);
        k.parallel([rows, cols], |k, [i, j]| {
            k.store(scores, (&i, &j), (scores.at((&i, &j)) - max.at((&i,))).exp());
        });
        k.reduce(Sum, part, scores, 1);
        k.parallel([rows], |k, [i]| {
            k.store(sum, (&i,), sum.at((&i,)) * scale.at((&i,)) + part.at((&i,)));
        });
        k.parallel([rows, cols], |k, [i, j]| {
            k.store(weights, (&i, &j), scores.at((&i, &j)).cast(F16));
        });
        k.parallel([rows, cols], |k, [i, j]| {
            let weighted = weights.at((&i, &j)).cast(F32) * v.at((&i, &j));
            k.store(output, (&i, &j), output.at((&i, &j)) * scale.at((&i,)) + weighted);
        });
        k.parallel([rows, cols], |k, [i, j]| {
            k.store(o, (&i, &j), output.at((&i, &j)) / sum.at((&i,)));
        });
    })
}

/// A chain of loops, each of which computes its own fragment from the one before.
pub(crate) fn chain(loops: i64) -> Kernel {
    kernel("chain", |k| {
        k.threads(128);
        let x = k.input("x", F32, [1024]);
        let y = k.output("y", F32, [1024]);
        let mut last = k.fragment("f0", F32, [1024]);
        k.copy(last, x);
        for at in 1..=loops {
            let next = k.fragment(&format!("f{at}"), F32, [1024]);
            let before = last;
            k.parallel([1024], |k, [i]| {
                k.store(next, (&i,), before.at((&i,)) + 1.0);
            });
            last = next;
        }
        k.copy(y, last);
    })
}
