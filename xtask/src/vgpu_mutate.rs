//! `vgpu-mutate`: what the virtual GPU finds of the mechanical changes of a kernel.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, value_parser};
use serde_json::{Value, json};
use tilewright::vgpu::{Module, Options};
use tilewright_tests::mutants::{MutationReport, ending, mutants, run_launches};

use crate::exit::Exit;
use crate::terminal::count_bar;
use crate::vgpu::Inputs;

/// Arguments of `vgpu-mutate`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The PTX file.
    #[arg(value_name = "KERNEL.ptx")]
    ptx: PathBuf,
    /// Its launch file, with what the buffers must hold at the end.
    #[arg(long, value_name = "FILE")]
    launch: PathBuf,
    /// The number of schedules in which a mutant is run.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = value_parser!(u64).range(1..))]
    schedules: u64,
    /// How many instructions per thread a CTA may execute before it is stopped.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = value_parser!(u64).range(1..))]
    max_steps: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    match attempt(arguments) {
        Ok(report) => {
            if arguments.json {
                say!("{}", as_json(&report));
            } else {
                print(&report);
            }
            if report.survivors.is_empty() { Exit::Done } else { Exit::Differs }
        }
        Err(exit) => exit,
    }
}

fn attempt(arguments: &Arguments) -> Result<MutationReport, Exit> {
    let Inputs { ptx, file, .. } = Inputs::read(&arguments.ptx, &arguments.launch, 4, &BTreeSet::new())?;
    let all = mutants(&ptx);
    let bar = count_bar("mutants", all.len() as u64);
    let mut report = MutationReport::default();
    for mutant in &all {
        let attempt = |module: &Module, seed: u64| {
            let options = Options { seed, max_instructions_per_thread: arguments.max_steps, ..Options::default() };
            run_launches(module, &file, &options)
        };
        report.add(mutant, &ending(mutant, arguments.schedules, &attempt));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(report)
}

fn print(report: &MutationReport) {
    for (operator, endings) in &report.endings {
        let counts: Vec<String> = endings.iter().map(|(ending, count)| format!("{ending} {count}")).collect();
        say!("{operator:24} {}", counts.join(", "));
    }
    say!("mutants {}, survived {}", report.mutants(), report.survivors.len());
    if report.mutants() == 0 {
        say!("note: the kernels have no barrier, fence, wait, count or descriptor that could be changed");
    }
    for (operator, line, instruction) in &report.survivors {
        say!("  survived: {operator} at PTX line {line}: {instruction}");
    }
}

fn as_json(report: &MutationReport) -> Value {
    let survivor = |(operator, line, instruction): &(&str, usize, String)| json!({"operator": operator, "ptx_line": line, "instruction": instruction});
    json!({
        "mutants": report.mutants(),
        "endings": report.endings,
        "survivors": report.survivors.iter().map(survivor).collect::<Vec<Value>>(),
    })
}
