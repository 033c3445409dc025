//! Pipelined loops: copies to shared memory run ahead, and the result is that of the serial loop.

mod additions;
mod attention;
mod boxes;
mod claims;
mod clusters;
mod exchanges;
mod fills;
mod gates;
mod in_flight;
mod ladder;
mod loads;
mod matmul;
mod overlap;
mod plans;
mod products;
mod registers;
mod rescaled;
mod ring_edges;
mod rings;
mod roles;
mod runs;
mod stores;
mod stores_of_roles;
mod tensor_factors;
mod tensor_memory;
mod tiles;
mod turns;
mod warpgroups;

use std::collections::BTreeSet;

use tilewright::compile::{Artifact, Options, compile};
use tilewright::ir::tile::Gemm;
use tilewright::prelude::*;
use tilewright::runtime::{Built, Device, HostTensor, Tolerance, compare_all, run_watched};
use tilewright::vgpu;
use tilewright_tests::mutants::{MutationReport, ending, mutants};
use tilewright_tests::pages::{check, tensor};
use tilewright_tests::toolchain::built_or_skipped;

fn compiled(kernel: &Kernel) -> Artifact {
    compile(kernel.clone(), &Options::new(Target::Sm100a)).unwrap_or_else(|found| panic!("{found:?}"))
}

/// A number for each element, exact in every float dtype, as are sums of their products.
fn number(at: i64) -> f64 {
    (at * 7 % 13) as f64 - 6.0
}

/// Writes a loop over the tiles of a tensor around the statements for one tile, given its first element.
type Loops = fn(&mut KernelBuilder, Size, Stages, &mut dyn FnMut(&mut KernelBuilder, Expr));

/// The variants in which copies are asynchronous.
const VARIANTS: [&str; 3] = ["tma", "tma_warp_specialised", "cp_async"];

/// `y[i]` is the sum of element `63 - i` of all tiles of `x`: another warp copies it.
fn turned_sum(stages: Stages, loops: Loops) -> Kernel {
    kernel("turned_sum", |k| {
        let n = k.size("n");
        let x = k.input("x", F32, (n,));
        let y = k.output("y", F32, [64]);
        k.threads(64);
        let tile = k.shared("tile", F32, [64]);
        let sum = k.fragment("sum", F32, [64]);
        k.fill(sum, 0.0);
        loops(k, n, stages, &mut |k, first| {
            k.copy(tile, x.sub((at(first, 64),)));
            k.parallel([64], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) + tile.at((63 - &i,))));
        });
        k.copy(y, sum);
    })
}

/// The tiles that are whole, one after the other.
fn by_number(k: &mut KernelBuilder, n: Size, stages: Stages, body: &mut dyn FnMut(&mut KernelBuilder, Expr)) {
    k.pipelined("t", ..n / 64, stages, |k, t| body(k, t * 64));
}

fn turned_sum_of(tiles: i64) -> HostTensor {
    tensor(F32, &[64], |i| (0..tiles).map(|tile| number(tile * 64 + 63 - i)).sum::<f64>() + 0.0)
}

/// Whether a kernel gives these results in a schedule of the virtual GPU.
fn is_right(
    (artifact, built): (&Artifact, &Built),
    inputs: &[HostTensor],
    expected: &[HostTensor],
    seed: u64,
) -> Result<bool, String> {
    is_within((artifact, built), (inputs, expected), seed, Tolerance::EXACT)
}

/// Whether the results of a launch in a schedule are right.
fn is_within(
    (artifact, built): (&Artifact, &Built),
    (inputs, expected): (&[HostTensor], &[HostTensor]),
    seed: u64,
    tolerance: Tolerance,
) -> Result<bool, String> {
    is_within_by((artifact, built), (inputs, expected), vgpu::Options { seed, ..vgpu::Options::default() }, tolerance)
}

/// The same, on a virtual GPU with these options.
fn is_within_by(
    (artifact, built): (&Artifact, &Built),
    (inputs, expected): (&[HostTensor], &[HostTensor]),
    options: vgpu::Options,
    tolerance: Tolerance,
) -> Result<bool, String> {
    let run = run_watched(artifact, built, inputs, &Device::Virtual, &options, &mut |_| ())
        .map_err(|failure| failure.to_string())?;
    let compared = compare_all(&run.outputs, expected, tolerance).map_err(|why| why.to_string())?;
    Ok(compared.iter().all(|comparison| comparison.mismatch.is_none()))
}

/// Checks the results of a launch in 20 schedules of the virtual GPU.
fn check_all_in_schedules(kernel: &Kernel, sizes: &[(&str, i64)], inputs: &[HostTensor], expected: &[HostTensor]) {
    let artifact = compiled(kernel);
    let Some(built) = built_or_skipped(&artifact, &kernel.name) else { return };
    let bound = artifact.clone().for_sizes(sizes).expect("sizes");
    for seed in 0..20 {
        let found = is_right((&bound, &built), inputs, expected, seed);
        assert_eq!(found, Ok(true), "{sizes:?}, schedule {seed}\n{}", artifact.cuda());
    }
}

#[test]
fn every_number_of_stages_gives_the_result_of_the_serial_loop() {
    let all = VARIANTS.iter().flat_map(|variant| (2..=6).map(move |count| Stages::of(count).variant(variant)));
    for stages in all.chain([Stages::of(1), Stages::any()]) {
        let kernel = turned_sum(stages.clone(), by_number);
        let artifact = compiled(&kernel);
        let Some(built) = built_or_skipped(&artifact, "pipelined loops") else { return };
        for tiles in 0..=9 {
            let n = tiles * 64 + 5;
            let bound = artifact.clone().for_sizes(&[("n", n)]).expect("a size");
            let (x, y) = (tensor(F32, &[n], number), turned_sum_of(tiles));
            for seed in 0..20 {
                let found = is_right((&bound, &built), std::slice::from_ref(&x), std::slice::from_ref(&y), seed);
                assert_eq!(
                    found,
                    Ok(true),
                    "{stages:?}, {tiles} tiles, schedule {seed}\n{}\n{}",
                    artifact.cuda(),
                    artifact.stage(tilewright::compile::Stage::Plan)
                );
            }
        }
    }
}

#[test]
fn loops_may_begin_anywhere_and_have_a_step() {
    let ranges: [(&str, Loops); 3] = [
        ("step", |k, n, stages, body| k.pipelined("t", (..n / 64 * 64).step(64), stages, |k, t| body(k, t))),
        ("begin", |k, n, stages, body| {
            k.pipelined("t", Expr::from(3)..n / 64 + 3, stages, |k, t| body(k, (t - 3) * 64))
        }),
        ("begin and step", |k, n, stages, body| {
            k.pipelined("t", (Expr::from(5)..n / 64 * 64 + 5).step(64), stages, |k, t| body(k, t - 5));
        }),
    ];
    for (name, range) in ranges {
        for (stages, variant) in [2, 3, 4].into_iter().flat_map(|stages| VARIANTS.map(|variant| (stages, variant))) {
            let kernel = turned_sum(Stages::of(stages).variant(variant), range);
            assert!(plan(&kernel).contains(&format!("* {variant}")), "{name}");
            for tiles in [0, 1, 2, 7] {
                let n = tiles * 64 + 63;
                check(&kernel, &[("n", n)], &[tensor(F32, &[n], number)], &[turned_sum_of(tiles)], Tolerance::EXACT);
            }
        }
    }
}

#[test]
fn a_loop_in_a_loop_fills_its_buffers_again() {
    for variant in VARIANTS {
        a_loop_in_a_loop(variant);
    }
}

fn a_loop_in_a_loop(variant: &str) {
    let kernel = kernel("rows", |k| {
        let (rows, cols) = (k.size("rows"), k.size("cols").multiple_of(4));
        let x = k.input("x", F32, (rows, cols));
        let y = k.output("y", F32, [64]);
        k.threads(64);
        let tile = k.shared("tile", F32, [64]);
        let sum = k.fragment("sum", F32, [64]);
        k.fill(sum, 0.0);
        k.serial("row", ..rows, |k, row| {
            k.pipelined("t", ..cols.ceil_div(64), Stages::of(3).variant(variant), |k, t| {
                k.copy(tile, x.sub((&row, at(t * 64, 64))));
                k.parallel([64], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) + tile.at((63 - &i,))));
            });
        });
        k.copy(y, sum);
    });
    for (rows, cols) in [(1, 4), (3, 64), (4, 68), (2, 300), (5, 124)] {
        let element = |i: i64| {
            let places = (0..rows).flat_map(|row| (0..8).map(move |tile| (row, tile * 64 + 63 - i)));
            places.filter(|(_, col)| *col < cols).map(|(row, col)| number(row * cols + col)).sum::<f64>() + 0.0
        };
        let (x, y) = (tensor(F32, &[rows, cols], number), tensor(F32, &[64], element));
        check(&kernel, &[("rows", rows), ("cols", cols)], &[x], &[y], Tolerance::EXACT);
    }
}

/// `c = a*b`, with copies as ops.
fn product(stages: Stages) -> Kernel {
    kernel("product", |k| {
        let (m, n, depth) = (k.size("m"), k.size("n").multiple_of(8), k.size("depth").multiple_of(8));
        let a = k.input("a", F16, (m, depth));
        let b = k.input("b", F16, (depth, n));
        let c = k.output("c", F32, (m, n));
        let [column, row] = k.grid([n.ceil_div(32), m.ceil_div(32)]);
        k.threads(64);
        let left = k.shared("left", F16, [32, 32]);
        let right = k.shared("right", F16, [32, 32]);
        let sums = k.fragment("sums", F32, [32, 32]);
        k.fill(sums, 0.0);
        k.pipelined("t", ..depth.ceil_div(32), stages, |k, t| {
            k.copy(left, a.sub((at(row * 32, 32), at(&t * 32, 32))));
            k.copy(right, b.sub((at(&t * 32, 32), at(column * 32, 32))));
            k.gemm(sums, left, right).with(Gemm::PLAIN);
        });
        k.copy(c.sub((at(row * 32, 32), at(column * 32, 32))), sums);
    })
}

fn product_of(m: i64, n: i64, depth: i64) -> ([HostTensor; 2], HostTensor) {
    let b = |at: i64| number(at + 4);
    let element = |at: i64| (0..depth).map(|d| number(at / n * depth + d) * b(d * n + at % n)).sum();
    ([tensor(F16, &[m, depth], number), tensor(F16, &[depth, n], b)], tensor(F32, &[m, n], element))
}

#[test]
fn a_product_streams_ragged_matrices() {
    for variant in VARIANTS {
        let kernel = product(Stages::of(3).variant(variant));
        for (m, n, depth) in [(1, 8, 8), (32, 32, 32), (33, 40, 104), (70, 8, 200)] {
            let (inputs, c) = product_of(m, n, depth);
            check(&kernel, &[("m", m), ("n", n), ("depth", depth)], &inputs, &[c], Tolerance::EXACT);
        }
    }
}

/// A launch of a kernel: its sizes, its inputs and what it computes.
type Launched = (Vec<(&'static str, i64)>, Vec<HostTensor>, HostTensor);

/// Drops or changes each wait, commit and barrier, one at a time; counts what 20 schedules of any of the launches find.
fn mutated(kernel: &Kernel, launches: &[Launched]) -> Option<MutationReport> {
    mutated_as(&compiled(kernel), launches)
}

/// The same, for a kernel that is compiled already.
fn mutated_as(artifact: &Artifact, launches: &[Launched]) -> Option<MutationReport> {
    mutated_within(artifact, launches, Tolerance::EXACT)
}

/// The same, for results that are right within a tolerance.
fn mutated_within(artifact: &Artifact, launches: &[Launched], tolerance: Tolerance) -> Option<MutationReport> {
    let built = built_or_skipped(artifact, "mutants of pipelined loops")?;
    let bound: Vec<Artifact> =
        launches.iter().map(|(sizes, ..)| artifact.clone().for_sizes(sizes).expect("sizes")).collect();
    let mut report = MutationReport::default();
    for mutant in mutants(&built.ptx) {
        let mut changed = built.clone();
        changed.ptx = mutant.text.clone();
        let attempt = |_: &vgpu::Module, seed: u64| {
            Ok(bound.iter().zip(launches).all(|(artifact, (_, inputs, expected))| {
                is_within((artifact, &changed), (inputs, std::slice::from_ref(expected)), seed, tolerance) == Ok(true)
            }))
        };
        report.add(&mutant, &ending(&mutant, 20, &attempt));
    }
    Some(report)
}

/// NVRTC writes two iterations of a loop out and puts an odd last one after the loop. It starts no copies, its commit closes a
/// group of nothing, and nobody waits for the stage that it releases, so nobody misses these. The virtual GPU has no rule
/// for `fence.mbarrier_init`.
#[test]
fn every_wait_commit_and_barrier_is_needed() {
    let sum = |tiles: i64| (vec![("n", 64 * tiles)], vec![tensor(F32, &[64 * tiles], number)], turned_sum_of(tiles));
    let of_product = |depth: i64| {
        let (inputs, c) = product_of(33, 40, depth);
        (vec![("m", 33), ("n", 40), ("depth", depth)], inputs.to_vec(), c)
    };
    for (stages, variant) in [2, 3, 4].into_iter().flat_map(|stages| VARIANTS.map(|variant| (stages, variant))) {
        let stages = Stages::of(stages).variant(variant);
        let cases = [
            (turned_sum(stages.clone(), by_number), [sum(7), sum(8)]),
            (product(stages.clone()), [of_product(200), of_product(232)]),
        ];
        for (kernel, launches) in cases {
            let Some(report) = mutated(&kernel, &launches) else { return };
            assert!(are_found(&report, &OF_LAST), "{stages:?}, {}: {report:#?}", kernel.name);
        }
    }
}

/// What nobody misses in the last iteration of a pipelined loop.
const OF_LAST: [&str; 4] = ["cp.async.commit_group", "mbarrier.", "bar.warp.sync", "fence.mbarrier_init"];

/// Whether all mutants of a loop are found but for those of its first or last iteration, of which nothing comes before or after,
/// and of the fence that the barrier behind it makes needless: one of each of these opcodes.
fn are_found(report: &MutationReport, at_ends: &[&str]) -> bool {
    let opcode = |text: &str| text.split_whitespace().next().unwrap_or_default().to_string();
    let survivors = report.survivors.iter().map(|(operator, _, text)| (*operator, opcode(text)));
    let is_known = |(_, opcode): &(&str, String)| at_ends.iter().any(|start| opcode.starts_with(start));
    let once: BTreeSet<(&str, String)> = survivors.filter(is_known).collect();
    report.mutants() >= 5 && once.len() == report.survivors.len()
}

/// The plan of a loop.
fn plan(kernel: &Kernel) -> String {
    let artifact = compiled(kernel);
    let plan = artifact.plans().iter().find(|plan| plan.title.starts_with("pipelined")).expect("a plan");
    plan.to_string().lines().skip(1).collect::<Vec<&str>>().join("\n")
}
