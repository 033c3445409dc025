//! The ladder of products: every step is right at all sizes, and the page has its code and its figures.

use std::collections::BTreeSet;

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{Built, Device, HostTensor, counted_instructions, run_watched};
use tilewright::vgpu::{self, Report, Space};
use tilewright_kernels::ladder::{STEPS, Step};
use tilewright_kernels::{MatmulConfig, MatmulShape};
use tilewright_tests::machine_code::{disassemble, find, gaps};
use tilewright_tests::pages::tensor;
use tilewright_tests::sources::text_of;
use tilewright_tests::toolchain::workspace;

use super::{built_or_skipped, is_right};

fn built(step: &Step) -> Option<(Artifact, Built)> {
    let artifact = compile((step.kernel)(), &Options::new(Target::Sm100a)).expect(step.name);
    let built = built_or_skipped(&artifact, step.name)?;
    Some((artifact, built))
}

fn left(i: i64, d: i64) -> f64 {
    ((i * 3 + d) % 5 - 2) as f64
}

fn right(j: i64, d: i64) -> f64 {
    ((j + d * 2) % 7 - 3) as f64
}

fn factors([m, n, depth]: [i64; 3]) -> [HostTensor; 2] {
    let a = tensor(BF16, &[m, depth], |at| left(at / depth, at % depth));
    [a, tensor(BF16, &[n, depth], |at| right(at / depth, at % depth))]
}

fn sizes([m, n, depth]: [i64; 3]) -> [(&'static str, i64); 3] {
    [("m", m), ("n", n), ("k", depth)]
}

#[test]
fn every_step_is_right() {
    for step in &STEPS {
        let Some((artifact, built)) = built(step) else { return };
        for shape @ [m, n, depth] in [[16, 16, 16], [272, 144, 80], [128, 304, 336]] {
            let bound = artifact.clone().for_sizes(&sizes(shape)).expect("sizes");
            let sum = |i, j| (0..depth).map(|d| left(i, d) * right(j, d)).fold(0.0, |sum, product| sum + product);
            let c = tensor(BF16, &[m, n], |at| sum(at / n, at % n));
            for seed in 0..2 {
                let found = is_right((&bound, &built), &factors(shape), std::slice::from_ref(&c), seed);
                assert_eq!(found, Ok(true), "{} at {shape:?}, schedule {seed}", step.name);
            }
        }
    }
}

/// What a launch of a product of one size takes.
#[derive(Clone, Copy)]
struct Counts {
    instructions: f64,
    /// Bytes that SMs ask memory for, those of factors and of the result.
    bytes: f64,
}

impl Counts {
    fn of(report: &Report) -> Counts {
        let of_threads = report.accesses.iter().filter(|access| access.space == Space::Global);
        let sectors: u64 = of_threads.map(|access| access.sectors).sum();
        let bytes = (sectors + report.bulk.sectors) as f64 * 32.0;
        Counts { instructions: counted_instructions(report) as f64, bytes }
    }

    /// A straight line through two launches, at this extent.
    fn line((at, first): (i64, Counts), (then, second): (i64, Counts), depth: i64) -> Counts {
        let at = |a: f64, b: f64| a + (b - a) / (then - at) as f64 * (depth - at) as f64;
        let instructions = at(first.instructions, second.instructions);
        Counts { instructions, bytes: at(first.bytes, second.bytes) }
    }
}

/// The extents of the product that the page's figures are of.
const LARGE: i64 = 4096;

/// What a large product takes, by a straight line through two small ones: both have whole tiles.
fn counts(step: &Step, (artifact, built): (&Artifact, &Built)) -> Counts {
    // The first step takes too long otherwise.
    let ([m, n], first) = if step.name == "naive" { ([64, 64], 64) } else { ([512, LARGE], 64) };
    let second = 2 * first;
    let at = |depth: i64| {
        let shape = [m, n, depth];
        let bound = artifact.clone().for_sizes(&sizes(shape)).expect("sizes");
        let options = vgpu::Options::default();
        let run = run_watched(&bound, built, &factors(shape), &Device::Virtual, &options, &mut |_| ()).expect("a run");
        Counts::of(&run.report.expect("a report"))
    };
    let Counts { instructions, bytes } = Counts::line((first, at(first)), (second, at(second)), LARGE);
    let times = (LARGE / m * (LARGE / n)) as f64;
    Counts { instructions: instructions * times, bytes: bytes * times }
}

/// The configuration whose model describes a step.
fn config(step: &Step) -> Option<MatmulConfig> {
    let one_tile = MatmulConfig { sums: 1, ..MatmulConfig::new(Target::Sm100a, BF16) };
    let persistent = MatmulConfig { sums: 2, ..one_tile };
    match step.name {
        "tensor_memory" | "engine_stores" => Some(one_tile),
        "persistent" => Some(persistent),
        "pair" => Some(MatmulConfig { columns: 256, cluster: 2, clusters: 74, ..persistent }),
        "matmul" => persistent.choose(MatmulShape::new([LARGE; 3])),
        _ => None,
    }
}

/// Instructions between two products of a loop, where the machine code can be read.
fn between(step: &Step, (artifact, built): (&Artifact, &Built)) -> Option<String> {
    find()?;
    if config(step).is_none() {
        return Some("-".to_string());
    }
    let text = disassemble(&built.cubin).expect("machine code");
    gaps(&text, artifact.entry(), &["MMA"]).into_iter().max().map(|most| most.to_string())
}

/// The time of a step: that of the model, or, where it has none, that in which warps can issue their instructions.
fn predicted(step: &Step, counts: Counts) -> String {
    let machine = tilewright_kernels::Machine::of(Target::Sm100a);
    match config(step) {
        Some(config) => format!("{:.0}", config.cost(MatmulShape::new([LARGE; 3])).seconds * 1e6),
        None => format!("over {:.0}", counts.instructions / (machine.sms * 4) as f64 / machine.busy_clock * 1e6),
    }
}

fn page() -> String {
    text_of(&workspace().join("docs/ladder.md"))
}

#[test]
fn figures_of_the_page() {
    let page = page();
    let (mut given, mut expected) = (Vec::new(), Vec::new());
    for step in &STEPS {
        let Some((artifact, built)) = built(step) else { return };
        let resources = built.resources.as_ref().expect("resources");
        assert_eq!((resources.spill_store_bytes, resources.stack_bytes), (0, 0), "{}", step.name);
        let counts = counts(step, (&artifact, &built));
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` | ", step.name))).expect(step.name);
        let known = row.split('|').map(str::trim).nth(4).unwrap_or_default();
        let between = between(step, (&artifact, &built)).unwrap_or_else(|| known.to_string());
        let Counts { instructions, bytes } = counts;
        let (millions, gigabytes, time) = (instructions / 1e6, bytes / 1e9, predicted(step, counts));
        expected.push(format!("| `{}` | {millions:.1} | {gigabytes:.2} | {between} | {time} |", step.name));
        given.push(row);
    }
    assert_eq!(given, expected, "figures of the page, and those that were found:\n{}", expected.join("\n"));
}

fn code(step: &Step) -> String {
    text_of(&workspace().join(format!("kernels/src/ladder/{}.rs", step.name)))
}

/// The lines of a step that another one does not have, each after a sign, but for the names of both.
fn only_in(of: &str, other: &str, sign: char) -> Vec<String> {
    let known: BTreeSet<&str> = other.lines().map(str::trim).collect();
    let is_name = |line: &str| line.starts_with("pub(super) fn") || line.starts_with("kernel(\"");
    let lines = of.lines().map(str::trim).filter(|line| !known.contains(line) && !is_name(line));
    lines.map(|line| format!("{sign} {line}")).collect()
}

/// The page shows what each step changes, wherever it is indented.
#[test]
fn code_of_the_page() {
    let page = page();
    // The last step is the library's kernel.
    for pair in STEPS[..STEPS.len() - 1].windows(2) {
        let [before, after] = [&pair[0], &pair[1]].map(code);
        let changed = [only_in(&before, &after, '-'), only_in(&after, &before, '+')].concat().join("\n");
        let block = format!("```diff\n{changed}\n```");
        assert!(page.contains(&block), "the page lacks what `{}` changes:\n{block}", pair[1].name);
    }
    let first = code(&STEPS[0]);
    let body = first.split_once("kernel(\"naive\"").expect("the kernel").1;
    assert!(body.lines().all(|line| page.contains(line.trim())), "the page lacks the first step");
}
