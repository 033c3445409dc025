//! `fuzz`: mutated notation through the parser and what follows it, random layouts through every operation against brute
//! force, or random tile programs through inference, on all cores. The report depends only on the seed and the count.

use std::fmt::Display;

use clap::Args;
use serde_json::{Value, json};
use tilewright::cuda::SearchOptions;
use tilewright::prelude::Target;
use tilewright::runtime::{Device, DeviceChoice, Toolchain};
use tilewright_tests::fuzz::{
    ACCEPTED_GOAL, MachineReport, Mutated, PARSED_GOAL, Report, TextReport, UNDERSTOOD_GOAL, run_cases, run_machine,
    run_texts, spread,
};
use tilewright_tests::meaning::evaluate::Rules;
use tilewright_tests::meaning::{MeaningReport, run_kernels, run_kernels_on};
use tilewright_tests::tilelang::{ProgramReport, SlowProgram, run_programs, slower, slowest_programs};

use crate::cargo::again_in;
use crate::exit::Exit;
use crate::resources::thread_time;
use crate::terminal::count_bar;

/// The default number of texts.
const TEXTS: u64 = 10_000_000;
/// The default number of cases of each operation.
const CASES: u64 = 100_000;
/// The default number of programs, and of kernels.
const PROGRAMS: u64 = 100_000;
/// The default number of mutated PTX texts or launch files.
const MACHINE_INPUTS: u64 = 1_000_000;
/// Of them, those that a core takes at a time.
const MACHINE_INPUTS_AT_ONCE: u64 = 500;
/// Texts that a core takes at a time.
const TEXTS_AT_ONCE: u64 = 10_000;
/// Cases of each operation that a core takes at a time.
const CASES_AT_ONCE: u64 = 100;
/// Programs that a core takes at a time.
const PROGRAMS_AT_ONCE: u64 = 50;
/// Kernels that a core takes at a time if NVRTC compiles each.
const COMPILED_AT_ONCE: u64 = 10;

/// Arguments of `fuzz`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Check random layouts through every operation against brute force, instead of mutated texts.
    #[arg(long)]
    layouts: bool,
    /// Check random tile programs through layout inference against a separate checker, and the results of as many random
    /// kernels, which have loops, scans, copies and roles too, instead of mutated texts.
    #[arg(long, conflicts_with = "layouts")]
    infer: bool,
    /// Compile random kernels with conditions, views, atomics, claims and edge values, execute them thread by thread,
    /// and check the results against their meaning, instead of mutated texts.
    #[arg(long, conflicts_with_all = ["layouts", "infer"])]
    meaning: bool,
    /// Run mutated PTX on the virtual GPU, instead of mutated texts.
    #[arg(long, conflicts_with_all = ["layouts", "infer", "meaning"])]
    ptx: bool,
    /// Run mutated launch files on the virtual GPU, instead of mutated texts.
    #[arg(long, conflicts_with_all = ["layouts", "infer", "meaning", "ptx"])]
    launch: bool,
    /// With --meaning: compile with NVRTC and run on this device (auto, gpu or virtual), instead of interpreting the
    /// thread programs.
    #[arg(long, value_name = "DEVICE", requires = "meaning")]
    device: Option<DeviceChoice>,
    /// With --device: the target.
    #[arg(long, value_name = "TARGET", default_value = "sm_100a")]
    target: Target,
    /// The number of texts (default: 10000000); with --layouts, of cases of each operation, with --infer, of programs,
    /// and with --meaning, of kernels (default: 100000).
    #[arg(long, value_name = "N")]
    inputs: Option<u64>,
    /// The seed of the random inputs.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// With --infer: compile each program, and print the N slowest with their times, instead of checking them.
    #[arg(long, value_name = "N", requires = "infer")]
    slow: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The results of a run.
struct Findings {
    /// The report as text.
    table: String,
    data: Value,
    wrong: u64,
    /// Examples of wrong results.
    examples: Vec<String>,
    /// Shares below their goals.
    rare: Vec<String>,
}

impl Findings {
    /// Both results; the data of the second one under a name.
    fn and(mut self, name: &str, other: Findings) -> Findings {
        self.table = format!("{}\n{}", self.table.trim_end(), other.table);
        self.data[name] = other.data;
        self.wrong += other.wrong;
        self.examples.extend(other.examples);
        self.rare.extend(other.rare);
        self
    }
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    // A debug build is too slow; the `fuzz` profile still checks for overflow.
    if cfg!(debug_assertions) {
        return again_in("fuzz");
    }
    // Panics are counted and listed in the report.
    std::panic::set_hook(Box::new(|_| ()));
    if let Some(most) = arguments.slow {
        return slowest(arguments, most);
    }
    let mutated = [(arguments.ptx, Mutated::Ptx), (arguments.launch, Mutated::Launch)];
    let mutated = mutated.into_iter().find(|(is_asked, _)| *is_asked);
    let findings = match (arguments.layouts, arguments.infer, arguments.meaning) {
        (true, ..) => layouts(arguments),
        (_, true, _) => programs(arguments).and("kernels", kernels(arguments)),
        (_, _, true) => kernels(arguments),
        (false, false, false) => match mutated {
            Some((_, mutated)) => machine(arguments, mutated),
            None => texts(arguments),
        },
    };
    if arguments.json {
        say!("{}", findings.data);
    } else {
        say!("{}", findings.table.trim_end());
        tell("wrong", &findings.examples);
        tell("share below the goal", &findings.rare);
    }
    if findings.wrong == 0 && findings.rare.is_empty() { Exit::Done } else { Exit::Differs }
}

fn tell(what: &str, list: &[impl Display]) {
    for item in list {
        say!("{what}: {item}");
    }
}

fn layouts(arguments: &Arguments) -> Findings {
    let cases = arguments.inputs.unwrap_or(CASES);
    let bar = count_bar("cases of each operation", cases);
    let parts = spread(cases, CASES_AT_ONCE, &|part| run_cases(arguments.seed, part), &|count| bar.inc(count));
    bar.finish_and_clear();
    let report = parts.into_iter().fold(run_cases(arguments.seed, 0..0), Report::merged);
    let tallies = report.tallies().iter().map(|tally| {
        json!({
            "operation": tally.name,
            "cases": tally.cases(),
            "accepted": tally.accepted,
            "refused": tally.refused,
            "wrong": tally.wrong,
            "examples": tally.examples,
        })
    });
    let rare = report.shares().into_iter().filter(|(_, share)| cases > 0 && *share < ACCEPTED_GOAL);
    Findings {
        data: json!({"seed": arguments.seed, "operations": tallies.collect::<Vec<_>>()}),
        table: report.to_string(),
        wrong: report.wrong(),
        examples: report.examples().map(str::to_string).collect(),
        rare: rare.map(|(name, share)| format!("{name} accepts {:.1}%", 100.0 * share)).collect(),
    }
}

fn machine(arguments: &Arguments, mutated: Mutated) -> Findings {
    let inputs = arguments.inputs.unwrap_or(MACHINE_INPUTS);
    let bar = count_bar("inputs", inputs);
    let work = |part| run_machine(arguments.seed, mutated, part);
    let parts = spread(inputs, MACHINE_INPUTS_AT_ONCE, &work, &|count| bar.inc(count));
    bar.finish_and_clear();
    let report = parts.into_iter().fold(MachineReport::default(), MachineReport::merged);
    let share = report.understood_share();
    let rare = (inputs > 0 && share < UNDERSTOOD_GOAL).then(|| format!("{:.1}% get past the parsers", 100.0 * share));
    Findings {
        data: json!({
            "seed": arguments.seed,
            "outcomes": report.outcomes(),
            "understood_share": share,
            "wrong": report.wrong(),
            "examples": report.examples(),
        }),
        table: report.to_string(),
        wrong: report.wrong(),
        examples: report.examples().to_vec(),
        rare: rare.into_iter().collect(),
    }
}

fn kernels(arguments: &Arguments) -> Findings {
    let inputs = arguments.inputs.unwrap_or(PROGRAMS);
    let bar = count_bar("kernels", inputs);
    // Without a cache, since no kernel occurs twice.
    let toolchain = Toolchain::new(SearchOptions::from_env(), None, None);
    let parts = match arguments.device {
        None => {
            let work = |part| run_kernels(arguments.seed, part, Rules::ALL);
            spread(inputs, PROGRAMS_AT_ONCE, &work, &|count| bar.inc(count))
        }
        Some(choice) => {
            let work = |part| match Device::choose(choice, arguments.target.name()) {
                Ok(device) => run_kernels_on(arguments.seed, part, &toolchain, (&device, arguments.target)),
                Err(failure) => MeaningReport::stopped(&failure.to_string()),
            };
            spread(inputs, COMPILED_AT_ONCE, &work, &|count| bar.inc(count))
        }
    };
    bar.finish_and_clear();
    let report = parts.into_iter().fold(MeaningReport::default(), MeaningReport::merged);
    Findings {
        data: json!({
            "seed": arguments.seed,
            "right": report.right,
            "undefined": report.undefined,
            "refused": report.refused,
            "wrong": report.wrong,
            "examples": report.examples.iter().map(|(_, text)| text).collect::<Vec<_>>(),
        }),
        table: report.to_string(),
        wrong: report.wrongs(),
        examples: report.examples.into_iter().map(|(_, text)| text).collect(),
        rare: Vec::new(),
    }
}

fn programs(arguments: &Arguments) -> Findings {
    let inputs = arguments.inputs.unwrap_or(PROGRAMS);
    let bar = count_bar("programs", inputs);
    let parts = spread(inputs, PROGRAMS_AT_ONCE, &|part| run_programs(arguments.seed, part), &|count| bar.inc(count));
    bar.finish_and_clear();
    let report = parts.into_iter().fold(ProgramReport::default(), ProgramReport::merged);
    Findings {
        data: json!({
            "seed": arguments.seed,
            "programs": report.programs(),
            "accepted": report.accepted(),
            "rejected": report.refused(),
            "features": report.features(),
            "wrong": report.wrong(),
            "examples": report.examples(),
        }),
        table: report.to_string(),
        wrong: report.wrong(),
        examples: report.examples(),
        rare: Vec::new(),
    }
}

/// Prints the programs that take longest to compile.
fn slowest(arguments: &Arguments, most: usize) -> Exit {
    let inputs = arguments.inputs.unwrap_or(PROGRAMS);
    let bar = count_bar("programs", inputs);
    let work = |part| slowest_programs(arguments.seed, part, most, thread_time);
    let parts = spread(inputs, PROGRAMS_AT_ONCE, &work, &|count| bar.inc(count));
    bar.finish_and_clear();
    let found = parts.into_iter().fold(Vec::new(), |some, others| slower(some, others, most));
    let milliseconds = |program: &SlowProgram| program.time.as_secs_f64() * 1e3;
    if arguments.json {
        let programs = found.iter().map(
            |program| json!({"program": program.number, "milliseconds": milliseconds(program), "text": program.text}),
        );
        say!("{}", json!({"seed": arguments.seed, "slowest": programs.collect::<Vec<_>>()}));
    } else {
        for program in &found {
            say!("{:.1} ms: program {} of seed {}", milliseconds(program), program.number, arguments.seed);
            say!("{}", program.text.trim_end());
        }
    }
    Exit::Done
}

fn texts(arguments: &Arguments) -> Findings {
    let inputs = arguments.inputs.unwrap_or(TEXTS);
    let bar = count_bar("texts", inputs);
    let parts = spread(inputs, TEXTS_AT_ONCE, &|part| run_texts(arguments.seed, part), &|count| bar.inc(count));
    bar.finish_and_clear();
    let report = parts.into_iter().fold(TextReport::default(), TextReport::merged);
    let share = report.parsed_share();
    let rare = (inputs > 0 && share < PARSED_GOAL).then(|| format!("{:.1}% get past the parser", 100.0 * share));
    Findings {
        data: json!({
            "seed": arguments.seed,
            "inputs": report.inputs(),
            "parsed_share": share,
            "stages": report.stages(),
            "wrong": report.wrong(),
            "examples": report.examples(),
        }),
        table: report.to_string(),
        wrong: report.wrong(),
        examples: report.examples().to_vec(),
        rare: rare.into_iter().collect(),
    }
}
