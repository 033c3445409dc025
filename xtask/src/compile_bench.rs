//! The part of `bench` that times whole compiles, DSL to CUDA text: every kernel of the library at three sizes, and how
//! the time grows with loops, statements, copies and elements.

use tilewright::prelude::*;
use tilewright_kernels::KERNELS;

use crate::bench_kernel::{compile_kernel, compile_named};
use crate::exit::Exit;
use crate::figure::{Figure, Goal};
use crate::infer_bench::chain;
use crate::measuring::Measuring;
use crate::resources::median_times;

/// Runs of each compile, after one that is not measured.
const RUNS: usize = 15;
/// Runs of compiles that take long.
const FEW_RUNS: usize = 3;
/// The goal in milliseconds of CPU time where a case has no other.
const MOST: f64 = 20.0;
/// The greatest exponent of the time in the size of the kernel.
const EXPONENT: f64 = 1.1;

type Sizes = &'static [(&'static str, i64)];

/// A kernel of the library at one size, and the goal in milliseconds of CPU time, if it is not [`MOST`].
type Case = (&'static str, Sizes, Option<f64>);

/// What grows, the kernel of a size, two sizes, and the goal for the larger one in milliseconds of CPU time.
type Grown = (&'static str, fn(i64) -> Kernel, [i64; 2], f64);

/// Kernels with sizes at a small one, at a large one, and at one that does not divide; those that are not listed once.
const CASES: [Case; 59] = [
    ("short_attention", &[("cols", 64)], Some(10.0)),
    ("short_attention", &[("cols", 256)], None),
    ("short_attention", &[("rows", 50), ("cols", 40)], None),
    ("bias_gelu", &[], None),
    ("bias_gelu", &[("rows", 1024), ("cols", 768)], None),
    ("bias_gelu", &[("rows", 1024), ("cols", 100)], None),
    ("column_max", &[("cols", 128)], None),
    ("column_max", &[("rows", 4096), ("cols", 1024)], None),
    ("column_max", &[("rows", 7), ("cols", 13)], None),
    ("column_sum", &[("cols", 128)], None),
    ("column_sum", &[("rows", 4096), ("cols", 1024)], None),
    ("column_sum", &[("rows", 7), ("cols", 13)], None),
    ("elementwise", &[("rows", 128), ("cols", 128)], Some(5.0)),
    ("elementwise", &[("rows", 1024), ("cols", 1024)], None),
    ("elementwise", &[("rows", 50), ("cols", 100)], None),
    ("attention", &[], None),
    ("attention", &[("depth", 128), ("causal", 1), ("stages", 3)], None),
    ("gemm", &[], None),
    ("gemm", &[("m", 128), ("n", 128), ("tile", 128)], None),
    ("gemm", &[("m", 50), ("n", 72), ("k", 104)], None),
    ("matmul", &[("m", 4096), ("n", 4096), ("k", 4096)], Some(10.0)),
    ("matmul", &[("m", 300), ("n", 200), ("k", 72)], Some(10.0)),
    ("matmul", &[("m", 1), ("n", 1), ("k", 1)], Some(10.0)),
    ("matmul", &[("m", 4096), ("n", 4096), ("k", 4096), ("epilogue", 3)], Some(10.0)),
    ("matmul_fallback", &[], Some(10.0)),
    ("attention_roles", &[("depth", 64)], None),
    ("attention_roles", &[("depth", 128), ("causal", 1)], None),
    ("attention_roles", &[("sequences", 4), ("longest", 200)], None),
    ("layer_norm", &[("cols", 1024)], None),
    ("layer_norm", &[("cols", 8192)], Some(15.0)),
    ("layer_norm", &[("rows", 7), ("cols", 1000)], None),
    ("plan_then_buffer_layout", &[("threads", 64)], None),
    ("rms_norm", &[("cols", 1024)], None),
    ("rms_norm", &[("cols", 8192)], None),
    ("rms_norm", &[("rows", 7), ("cols", 1000)], None),
    ("rope_halves", &[], None),
    ("rope_halves", &[("tokens", 256)], None),
    ("rope_pairs", &[("tokens", 3), ("heads", 5), ("dim", 20)], None),
    ("row_max", &[("cols", 1024)], None),
    ("row_max", &[("cols", 8192)], None),
    ("row_max", &[("rows", 7), ("cols", 1000)], None),
    ("row_sum", &[("cols", 1024)], None),
    ("row_sum", &[("cols", 8192)], None),
    ("row_sum", &[("rows", 7), ("cols", 1000)], None),
    ("sf_transpose", &[], None),
    ("sf_transpose_global", &[], None),
    ("softmax", &[("cols", 128)], Some(3.0)),
    ("softmax", &[("rows", 32), ("cols", 1024)], Some(12.0)),
    ("softmax", &[("cols", 8192)], Some(12.0)),
    ("softmax", &[("rows", 7), ("cols", 1000)], None),
    ("softmax", &[("cols", 8192), ("threads", 1024)], None),
    ("transpose_2d", &[], None),
    ("transpose_2d", &[("m", 1000), ("n", 1000)], None),
    ("transpose_2d", &[("m", 1001), ("n", 1003)], None),
    ("warp_transpose", &[("rows", 32), ("cols", 32)], None),
    ("warp_transpose", &[("rows", 64), ("cols", 64)], None),
    ("warp_transpose", &[("rows", 24), ("cols", 40)], None),
    ("warp_transpose", &[("rows", 7), ("cols", 13)], None),
    ("warp_transpose", &[("rows", 128), ("cols", 32)], None),
];

pub(crate) fn figures(measuring: &Measuring) -> Result<Vec<Figure>, Exit> {
    let mut figures = Vec::new();
    let is_listed = |name: &str| CASES.iter().any(|(kernel, ..)| *kernel == name);
    let others = KERNELS.iter().filter(|entry| !is_listed(entry.name)).map(|entry| (entry.name, &[][..], None));
    for (kernel, sizes, goal) in CASES.into_iter().chain(others) {
        let sizes_text: String = sizes.iter().map(|(name, size)| format!(" {name}={size}")).collect();
        let work = || median_times(RUNS, || compile_named(kernel, sizes, None).map(|_| ()));
        let goal = Goal::Below(goal.unwrap_or(MOST));
        figures.push(measuring.compile(format!("compile {kernel}{sizes_text}"), goal, work)?);
    }
    let grown: [Grown; 4] = [
        ("loops in a chain", chain, [100, 400], 60.0),
        ("statements", statements, [400, 1600], 80.0),
        ("copies between shared tiles", copies, [400, 1600], 200.0),
        ("elements in a reduced row", reduced, [8192, 32768], 60.0),
    ];
    for (what, kernel, sizes, goal) in grown {
        figures.extend(growth(measuring, what, kernel, sizes, goal)?);
    }
    Ok(figures)
}

/// The times of a kernel at two sizes, and the exponent of the time in the size.
fn growth(
    measuring: &Measuring,
    what: &str,
    kernel: fn(i64) -> Kernel,
    [small, large]: [i64; 2],
    goal: f64,
) -> Result<[Figure; 3], Exit> {
    let compiled = |size: i64, goal: Goal| {
        let work = || median_times(FEW_RUNS, || compile_kernel(|| kernel(size), None).map(|_| ()));
        measuring.compile(format!("compile {size} {what}"), goal, work)
    };
    let (few, many) = (compiled(small, Goal::Base)?, compiled(large, Goal::Below(goal))?);
    let exponent = (many.value / few.value).ln() / (large as f64 / small as f64).ln();
    let name = format!("compile: exponent of the time in {what}");
    let exponent = measuring.figure(name, "", Goal::AtMost(EXPONENT), || Ok(exponent))?;
    Ok([few, many, exponent])
}

/// A loop with statements that each change a fragment in place.
fn statements(count: i64) -> Kernel {
    kernel("statements", |k| {
        let x = k.input("x", F32, [1024]);
        let y = k.output("y", F32, [1024]);
        k.threads(128);
        let f = k.fragment("f", F32, [1024]);
        k.copy(f, x);
        k.parallel([1024], |k, [i]| {
            for at in 0..count {
                k.store(f, (i,), f.at((i,)) * (1.5 + at as f64));
            }
        });
        k.copy(y, f);
    })
}

/// Copies back and forth between two tiles in shared memory.
fn copies(count: i64) -> Kernel {
    kernel("copies", |k| {
        let tiles = ["left", "right"].map(|name| k.shared(name, F32, [128, 8]));
        k.threads(128);
        k.fill(tiles[0], 0.0);
        for at in 0..count as usize {
            k.copy(tiles[(at + 1) % 2], tiles[at % 2]);
        }
    })
}

/// The sum of a row.
fn reduced(elements: i64) -> Kernel {
    kernel("reduced", |k| {
        let x = k.input("x", F32, [1, elements]);
        let y = k.output("y", F32, [1]);
        k.threads(128);
        let v = k.fragment("v", F32, [1, elements]);
        let sum = k.fragment("sum", F32, [1]);
        k.copy(v, x);
        k.reduce(Sum, sum, v, 1);
        k.copy(y, sum);
    })
}
