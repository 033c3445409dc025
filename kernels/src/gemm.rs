use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{THREADS, ceil_div};
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "gemm",
    about: "a matrix product: every CTA computes a square tile of the result",
    shape: &[
        ShapeKey { name: "rows", default: 64, about: "rows of the result" },
        ShapeKey { name: "cols", default: 64, about: "columns of the result" },
        ShapeKey { name: "depth", default: 128, about: "columns of the left operand, rows of the right one" },
        ShapeKey { name: "tile", default: 64, about: "rows and columns of a CTA's tile, a multiple of 16" },
        ShapeKey { name: "step", default: 32, about: "columns of the left operand that are multiplied at once" },
        ShapeKey { name: "stages", default: 3, about: "steps of which the operands are in shared memory" },
        THREADS,
    ],
    dtypes: &[F16],
    build: gemm,
    run_time: &[],
    inputs: |c| {
        let [rows, cols, depth] = ["rows", "cols", "depth"].map(|name| c.size(name));
        vec![scattered(F16, &[rows, depth], 1), scattered(F16, &[depth, cols], 2)]
    },
    reference,
    // Products of such inputs are exact, and so are their sums.
    tolerance: Tolerance::EXACT,
    tested: &[(F16, &[("rows", 50), ("cols", 72), ("depth", 104), ("threads", 64)])],
};

/// Both operands go through shared memory a step at a time, copied ahead. What lies beyond their edges reads as 0.
fn gemm(config: &Config) -> Kernel {
    let [rows, cols, depth, tile, threads] = ["rows", "cols", "depth", "tile", "threads"].map(|name| config.size(name));
    let [step, stages] = ["step", "stages"].map(|name| config.size(name));
    kernel("gemm", |k| {
        let a = k.input("a", F16, [rows, depth]);
        let b = k.input("b", F16, [depth, cols]);
        let c = k.output("c", F32, [rows, cols]);
        let [column, row] = k.grid([ceil_div(cols, tile), ceil_div(rows, tile)]);
        k.threads(threads);
        let (top, first) = (row * tile, column * tile);
        let left = k.shared("left", F16, [tile, step]);
        let right = k.shared("right", F16, [step, tile]);
        let sums = k.fragment("sums", F32, [tile, tile]);
        k.fill(sums, 0.0);
        k.pipelined("t", 0..ceil_div(depth, step), stages, |k, t| {
            let at = t * step;
            k.parallel([tile, step], |k, [i, j]| k.store(left, (i, j), a.at((top + i, at + j))));
            k.parallel([step, tile], |k, [i, j]| k.store(right, (i, j), b.at((at + i, first + j))));
            k.gemm(sums, left, right);
        });
        k.parallel([tile, tile], |k, [i, j]| k.store(c, (top + i, first + j), sums.at((i, j))));
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let [rows, cols, depth] = ["rows", "cols", "depth"].map(|name| config.size(name) as usize);
    let (a, b) = (elements(&inputs[0]), elements(&inputs[1]));
    let element = |at: usize| (0..depth).map(|k| a[at / cols * depth + k] * b[k * cols + at % cols]).sum();
    let c: Vec<f64> = (0..rows * cols).map(element).collect();
    vec![listed(F32, &[rows as i64, cols as i64], &c)]
}
