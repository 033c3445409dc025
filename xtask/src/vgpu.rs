//! `vgpu`: runs the launches of a launch file on the virtual GPU.

mod gpu;
mod inputs;
mod report;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum, value_parser};
use tilewright::files;
use tilewright::vgpu::launch_file::{Array, LaunchFile};
use tilewright::vgpu::timeline::Timeline;
use tilewright::vgpu::trace::Trace;
use tilewright::vgpu::{self, Lint, MAX_INSTRUCTIONS_PER_THREAD, Memory, Module, Options, RunError};
use tilewright::viz::timeline_page;

use crate::exit::Exit;
use crate::terminal::{fail, print_error};
pub(crate) use crate::vgpu::inputs::Inputs;
use crate::vgpu::report::{Ended, Outcome};

/// Arguments of `vgpu`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The PTX file.
    #[arg(value_name = "KERNEL.ptx")]
    ptx: PathBuf,
    /// The launch file: kernel, grid, buffers, arguments, and what the buffers must hold at the end.
    #[arg(long, value_name = "FILE")]
    launch: PathBuf,
    /// The order in which CTAs start, and how they and their warps interleave; 0 is the order of their indices.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Run with this many seeds, from the one given, up to the first that has a fault or a difference.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u64).range(1..))]
    schedules: u64,
    /// Treat unordered stores of equal values (`benign_race`) as a fault.
    #[arg(long)]
    strict: bool,
    /// Do not require what the PTX ISA requires: with `tensor-fences`, a barrier orders accesses to tensor memory without
    /// `tcgen05.fence` around it; with `tensor-lanes`, lane 0 in the address of a `tcgen05.ld` or `tcgen05.st` stands for the
    /// first lane of its warp.
    #[arg(long, value_name = "NAME", value_enum)]
    allow: Vec<Allowed>,
    /// Also note what is in order on devices so far, but not by the PTX ISA: with `war-proxy`, bytes that threads have read and
    /// that an asynchronous copy overwrites without a proxy fence.
    #[arg(long, value_name = "NAME", value_enum)]
    lint: Vec<Linted>,
    /// Fuse a `mul` and an `add` or `sub` of its result that have no rounding modifier, as the assembler may do.
    #[arg(long)]
    contract: bool,
    /// Print the operands of the instructions on this line of the PTX file, each time a warp reaches them. Several lines are separated
    /// by commas.
    #[arg(long, value_name = "PTX_LINE", value_delimiter = ',')]
    trace: Vec<u32>,
    /// Write the final contents of a buffer to a file in the format of NumPy, also after a fault: BUFFER.npy if none is named. The
    /// elements are those of its expectation, or else bytes.
    #[arg(long, value_name = "BUFFER[=FILE.npy]")]
    dump: Vec<String>,
    /// Most memory that the buffers may have together, in GiB.
    #[arg(long, value_name = "GIB", default_value_t = 4)]
    memory: u64,
    /// How many instructions per thread a CTA may execute before it is stopped.
    #[arg(long, value_name = "N", default_value_t = MAX_INSTRUCTIONS_PER_THREAD)]
    #[arg(value_parser = value_parser!(u64).range(1..))]
    max_steps: u64,
    /// Write a page that shows what warps and asynchronous engines do over time: what they wait for, and what ends each wait.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Then run the launches on the first GPU that can run the target, and compare its buffers with those of the virtual GPU.
    #[arg(long)]
    gpu: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What `--allow` allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Allowed {
    TensorFences,
    TensorLanes,
}

/// What `--lint` notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Linted {
    WarProxy,
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    match attempt(arguments) {
        Ok(outcome) => {
            let exit = outcome.exit(arguments.strict);
            let exit = if exit == Exit::Done && !outcome.is_right_on_gpu() { Exit::Differs } else { exit };
            if arguments.json {
                say!("{}", outcome.json(exit));
            } else {
                outcome.print(exit);
            }
            exit
        }
        Err(exit) => exit,
    }
}

fn attempt(arguments: &Arguments) -> Result<Outcome, Exit> {
    let bad = |text: String| {
        print_error(&text);
        Exit::BadInput
    };
    let traced: BTreeSet<u32> = arguments.trace.iter().copied().collect();
    let inputs = Inputs::read(&arguments.ptx, &arguments.launch, arguments.memory, &traced)?;
    let Inputs { module, file, .. } = &inputs;
    let gpu = if arguments.gpu { Some(gpu::open(module.target())?) } else { None };
    must_have_instructions(module, file, &traced).map_err(bad)?;
    let dumps = dumps(arguments, file).map_err(bad)?;
    let seeds = arguments.seed..arguments.seed.saturating_add(arguments.schedules);
    let mut last = None;
    for seed in seeds {
        let (outcome, memory) = run_with(module, file, seed, arguments)?;
        let has_failed = outcome.exit(arguments.strict) != Exit::Done;
        last = Some((outcome, memory));
        if has_failed {
            break;
        }
    }
    let Some((mut outcome, memory)) = last else { return Err(bad("there is no seed after the one given".to_string())) };
    if let Some(gpu) = gpu.filter(|_| !matches!(outcome.ended, Ended::Fault(_))) {
        outcome.on_gpu = Some(gpu::run(&gpu, &inputs, &memory)?);
    }
    if let Some(target) = &arguments.html {
        write_page(module, file, arguments, target)?;
        if !arguments.json {
            say!("wrote {}", target.display());
        }
    }
    for (name, target) in dumps {
        write(file, &memory, &name, &target).map_err(bad)?;
        if !arguments.json {
            say!("wrote {}", target.display());
        }
    }
    Ok(outcome)
}

/// Runs all launches with one seed. Unsupported instructions and launches that do not fit their kernel are errors.
fn run_with(module: &Module, file: &LaunchFile, seed: u64, arguments: &Arguments) -> Result<(Outcome, Memory), Exit> {
    let start = Instant::now();
    let options = options(arguments, seed);
    let mut memory = file.memory.clone();
    let (mut reports, mut traces) = (Vec::new(), Vec::new());
    let mut ended = Ended::AsExpected;
    for (number, launch) in file.launches.iter().enumerate() {
        let mut options = file.options(options.clone());
        if number + 1 < file.launches.len()
            && let Some(observed) = &mut options.observed
        {
            // What later launches overwrite is not compared.
            observed.clear();
        }
        let result = if arguments.trace.is_empty() {
            vgpu::run(module, launch, &mut memory, &options)
        } else {
            let mut trace = Trace::default();
            let result = vgpu::run_traced(module, launch, &mut memory, &options, &mut trace);
            traces.push(trace);
            result
        };
        match result {
            Ok(report) => reports.push((launch.kernel.clone(), report)),
            Err(RunError::Fault(fault)) => {
                ended = Ended::Fault(fault);
                break;
            }
            Err(error @ RunError::Unsupported(_)) => return Err(fail(Exit::Unsupported, &error)),
            Err(error @ RunError::BadLaunch(_)) => {
                return Err(fail(Exit::BadInput, &format!("{}: {error}", arguments.launch.display())));
            }
        }
    }
    if matches!(ended, Ended::AsExpected) {
        if let Some((buffer, offset)) = file.unwritten(&memory) {
            ended = Ended::Unwritten { buffer, offset };
        } else if let Some(difference) = file.difference(&memory) {
            ended = Ended::Differs(difference);
        }
    }
    let outcome = Outcome {
        reports,
        traced: arguments.trace.clone(),
        traces,
        ended,
        seed,
        schedules: seed - arguments.seed + 1,
        expectations: file.expectations.len(),
        wall_seconds: start.elapsed().as_secs_f64(),
        on_gpu: None,
    };
    Ok((outcome, memory))
}

/// A line that is traced has instructions of a kernel that is launched.
fn must_have_instructions(module: &Module, file: &LaunchFile, traced: &BTreeSet<u32>) -> Result<(), String> {
    let lines: BTreeSet<u32> =
        file.launches.iter().filter_map(|launch| module.instruction_lines(&launch.kernel)).flatten().collect();
    match traced.difference(&lines).next() {
        None => Ok(()),
        Some(line) => {
            let near = [lines.range(..line).next_back(), lines.range(line..).next()];
            let near: Vec<String> = near.into_iter().flatten().map(u32::to_string).collect();
            Err(format!(
                "--trace: PTX line {line} has no instruction of a kernel that is launched; the nearest lines with one: {}",
                near.join(" and ")
            ))
        }
    }
}

/// Runs the launches once more, and writes the page of the last one that began.
fn write_page(module: &Module, file: &LaunchFile, arguments: &Arguments, target: &Path) -> Result<(), Exit> {
    let options = file.options(options(arguments, 0));
    let mut memory = file.memory.clone();
    let (mut timeline, mut title, mut fault) = (Timeline::default(), String::new(), None);
    for launch in &file.launches {
        title = format!("{} on the virtual GPU", launch.kernel);
        if let Err(error) = vgpu::run_recorded(module, launch, &mut memory, &options, &mut timeline) {
            fault = Some(error.to_string());
            break;
        }
    }
    let page = timeline_page(&title, &timeline, fault.as_deref());
    files::write(target, page.as_bytes())
        .map_err(|error| fail(Exit::BadInput, &format!("{}: {error}", target.display())))
}

fn options(arguments: &Arguments, seed: u64) -> Options {
    Options {
        seed,
        max_instructions_per_thread: arguments.max_steps,
        needs_tensor_fences: !arguments.allow.contains(&Allowed::TensorFences),
        needs_tensor_lanes: !arguments.allow.contains(&Allowed::TensorLanes),
        lints: arguments.lint.iter().map(|Linted::WarProxy| Lint::WarProxy).collect(),
        contract: arguments.contract,
        ..Options::default()
    }
}

/// The buffers that are written at the end, and the files to write them to.
fn dumps(arguments: &Arguments, file: &LaunchFile) -> Result<Vec<(String, PathBuf)>, String> {
    let dump = |text: &String| {
        let (name, target) = match text.split_once('=') {
            Some((name, target)) => (name, PathBuf::from(target)),
            None => (text.as_str(), PathBuf::from(format!("{text}.npy"))),
        };
        if file.buffer(name).is_none() {
            let all: Vec<String> = file.buffers.iter().map(|(name, _)| format!("`{name}`")).collect();
            return Err(format!("--dump: there is no buffer `{name}`; the launch file has {}", all.join(", ")));
        }
        Ok((name.to_string(), target))
    };
    let dumps = arguments.dump.iter().map(dump).collect::<Result<Vec<_>, String>>()?;
    must_lose_nothing(arguments, file, &dumps)?;
    Ok(dumps)
}

/// No file is written over one that is read, nor over another one that is written.
fn must_lose_nothing(arguments: &Arguments, file: &LaunchFile, dumps: &[(String, PathBuf)]) -> Result<(), String> {
    let read = [(&arguments.ptx, "the PTX file"), (&arguments.launch, "the launch file")];
    let arrays = file.arrays.iter().map(|path| (path, "an array that the launch file reads"));
    let mut taken: Vec<(PathBuf, &str)> =
        read.into_iter().chain(arrays).map(|(path, what)| (absolute(path), what)).collect();
    let dumps = dumps.iter().map(|(name, target)| (target, format!("--dump {name}=FILE.npy")));
    let page = arguments.html.iter().map(|target| (target, "--html FILE".to_string()));
    for (target, flag) in dumps.chain(page) {
        let path = absolute(target);
        if let Some((_, what)) = taken.iter().find(|(known, _)| *known == path) {
            return Err(format!("{} is {what}; name another file: `{flag}`", target.display()));
        }
        taken.push((path, "written by another flag"));
    }
    Ok(())
}

/// The path without links, also of a file that is not there yet.
fn absolute(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let resolved =
        path.canonicalize().or_else(|_| Ok(folder.canonicalize()?.join(path.file_name().unwrap_or_default())));
    resolved.unwrap_or_else(|_: std::io::Error| path.to_path_buf())
}

fn write(file: &LaunchFile, memory: &Memory, name: &str, target: &Path) -> Result<(), String> {
    let Some(id) = file.buffer(name) else { return Ok(()) };
    let expected = file.expectations.iter().find(|expectation| expectation.buffer == name);
    let bytes = memory.bytes(id).to_vec();
    let array = match expected {
        Some(expectation) => Array { dtype: expectation.dtype, shape: expectation.array.shape.clone(), bytes },
        None => Array::of_bytes(bytes),
    };
    files::write(target, &array.to_file()).map_err(|error| format!("{}: {error}", target.display()))
}
