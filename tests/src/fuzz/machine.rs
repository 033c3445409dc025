//! Mutated PTX and launch files on the virtual GPU: every input must come back with an error or a result.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::OnceLock;

use tilewright::vgpu::launch_file::LaunchFile;
use tilewright::vgpu::{Module, Options, RunError, run};

use super::said;
use crate::rng::Rng;
use crate::toolchain::package;

/// The kernels that are mutated: the smallest ones of `fixtures/triton`.
const KERNELS: [&str; 4] = ["add.sm_100", "histogram_by_atomics.sm_100", "histogram.sm_100", "sum_under_a_lock.sm_80"];
/// The share of inputs that should get past the parser.
pub const UNDERSTOOD_GOAL: f64 = 0.2;
/// Bytes that the buffers of a launch may have.
const MOST_BYTES: u64 = 1 << 20;
/// Instructions per thread that a CTA may execute.
const MOST_INSTRUCTIONS: u64 = 2_000;
/// CTAs of a mutated launch that is run.
const MOST_CTAS: u32 = 64;
/// The maximum number of wrong inputs that are kept.
const EXAMPLES: usize = 5;

/// What is mutated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutated {
    /// The PTX.
    Ptx,
    /// The launch file.
    Launch,
}

/// How many inputs ended in each way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineReport {
    outcomes: BTreeMap<&'static str, u64>,
    wrong: u64,
    examples: Vec<String>,
}

struct Seed {
    ptx: String,
    launch: String,
}

fn folder() -> PathBuf {
    package().join("fixtures/triton")
}

fn seeds() -> &'static [Seed] {
    static SEEDS: OnceLock<Vec<Seed>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let read = |name: String| {
            std::fs::read_to_string(folder().join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        KERNELS
            .iter()
            .map(|name| Seed { ptx: read(format!("{name}.ptx")), launch: read(format!("{name}.json")) })
            .collect()
    })
}

/// Runs the inputs with these numbers.
pub fn run_machine(seed: u64, mutated: Mutated, inputs: Range<u64>) -> MachineReport {
    let mut report = MachineReport::default();
    for input in inputs {
        let rng = &mut Rng::new(seed, input);
        let base = rng.pick(seeds());
        let (ptx, launch) = match mutated {
            Mutated::Ptx => (changed(rng, &base.ptx), base.launch.clone()),
            // Most changes of a number leave the file well formed.
            Mutated::Launch if rng.percent(70) => {
                let at = rng.below(base.launch.lines().count());
                (base.ptx.clone(), with_number(rng, &base.launch, at))
            }
            Mutated::Launch => (base.ptx.clone(), changed(rng, &base.launch)),
        };
        match catch_unwind(AssertUnwindSafe(|| outcome(&ptx, &launch))) {
            Ok(outcome) => *report.outcomes.entry(outcome).or_default() += 1,
            Err(panic) => {
                report.wrong += 1;
                let text = if mutated == Mutated::Ptx { &ptx } else { &launch };
                report.examples.push(format!("input {input}: {}\n{text}", said(panic.as_ref())));
                report.examples.truncate(EXAMPLES);
            }
        }
    }
    report
}

/// A text with one to four changes: bytes, words and lines are removed, doubled, exchanged or replaced, or the end is cut off.
fn changed(rng: &mut Rng, text: &str) -> String {
    let mut text = text.to_string();
    for _ in 0..1 + rng.below(4) {
        let lines: Vec<&str> = text.lines().collect();
        if text.trim().is_empty() {
            return text;
        }
        let at = rng.below(lines.len());
        let line = lines[at];
        let words: Vec<&str> = text.split_whitespace().collect();
        let with = |new: String| {
            let mut all: Vec<&str> = lines.clone();
            all[at] = &new;
            all.join("\n") + "\n"
        };
        let place = |rng: &mut Rng| {
            let ends: Vec<usize> = line.char_indices().map(|(place, _)| place).chain([line.len()]).collect();
            *rng.pick(&ends)
        };
        text = match rng.below(8) {
            0 => with(String::new()),
            1 => with(format!("{line}\n{line}")),
            2 => {
                let mut all = lines.clone();
                all.swap(at, rng.below(lines.len()));
                all.join("\n") + "\n"
            }
            3 => {
                let old: Vec<&str> = line.split_whitespace().collect();
                let word = if old.is_empty() { "" } else { *rng.pick(&old) };
                let other: &str = words[rng.below(words.len())];
                with(line.replacen(word, other, 1))
            }
            4 => {
                let (from, byte) = (place(rng), char::from(32 + rng.below(95) as u8));
                with(format!("{}{byte}{}", &line[..from], &line[from..]))
            }
            5 => {
                let (a, b) = (place(rng), place(rng));
                with(format!("{}{}", &line[..a.min(b)], &line[a.max(b)..]))
            }
            6 => with_number(rng, &text, at),
            _ if rng.percent(10) => text[..lines[..at].iter().map(|line| line.len() + 1).sum::<usize>()].to_string(),
            _ => text,
        };
    }
    text
}

/// The text with a number in a line replaced by another one.
fn with_number(rng: &mut Rng, text: &str, at: usize) -> String {
    let number = *rng.pick(&["0", "1", "-1", "31", "33", "4294967295", "18446744073709551615", "0x7fffffff", "1e9"]);
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    let digits: Vec<&str> = lines[at].split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).collect();
    if !digits.is_empty() {
        let old: &str = digits[rng.below(digits.len())];
        lines[at] = lines[at].replacen(old, number, 1);
    }
    lines.join("\n") + "\n"
}

fn outcome(ptx: &str, launch: &str) -> &'static str {
    let Ok(module) = Module::parse(ptx) else { return SYNTAX };
    let file = match LaunchFile::parse(launch, &folder(), &module, MOST_BYTES) {
        Ok(file) => file,
        Err(_) => return "bad launch file",
    };
    let mut memory = file.memory.clone();
    let options = Options { max_instructions_per_thread: MOST_INSTRUCTIONS, ..Options::default() };
    let options = file.options(options);
    for launch in &file.launches {
        if launch.grid.iter().fold(1u32, |all, size| all.saturating_mul(*size)) > MOST_CTAS {
            return "too many CTAs to run";
        }
        match run(&module, launch, &mut memory, &options) {
            Ok(_) => {}
            Err(RunError::Fault(fault)) => return fault.kind.as_str(),
            Err(RunError::Unsupported(_)) => return "unsupported",
            Err(RunError::BadLaunch(_)) => return "bad launch",
        }
    }
    let is_right = file.unwritten(&memory).is_none() && file.difference(&memory).is_none();
    if is_right { "right" } else { "wrong result" }
}

const SYNTAX: &str = "syntax error";

impl MachineReport {
    /// The sum of two reports.
    pub fn merged(mut self, other: MachineReport) -> MachineReport {
        for (name, count) in other.outcomes {
            *self.outcomes.entry(name).or_default() += count;
        }
        self.wrong += other.wrong;
        self.examples.extend(other.examples);
        self.examples.truncate(EXAMPLES);
        self
    }

    /// How often each outcome occurred.
    pub fn outcomes(&self) -> &BTreeMap<&'static str, u64> {
        &self.outcomes
    }

    /// The number of inputs that panicked.
    pub fn wrong(&self) -> u64 {
        self.wrong
    }

    /// The first inputs that panicked.
    pub fn examples(&self) -> &[String] {
        &self.examples
    }

    /// The share of inputs that got past the parser of PTX and of launch files.
    pub fn understood_share(&self) -> f64 {
        let all: u64 = self.outcomes.values().sum();
        let refused: u64 = [SYNTAX, "bad launch file"].iter().filter_map(|name| self.outcomes.get(name)).sum();
        (all - refused) as f64 / all.max(1) as f64
    }
}

impl fmt::Display for MachineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in &self.outcomes {
            writeln!(f, "{name:22} {count}")?;
        }
        writeln!(f, "panics {}, past the parsers {:.1}%", self.wrong, 100.0 * self.understood_share())
    }
}
