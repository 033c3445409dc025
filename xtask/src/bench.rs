//! `bench`: how fast the compiler and the virtual GPU are. Medians over many runs, ratios within one run.

use std::process::Command;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use tilewright::compile::{LowerOptions, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::CudaText;
use tilewright::vgpu;

use crate::exit::Exit;
use crate::terminal::{complain, report};
use crate::toolchain::provisioned;

/// Arguments of `bench`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// One figure, with what it should be.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) goal: &'static str,
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    if cfg!(debug_assertions) {
        return in_release(arguments);
    }
    // Memory first: the peak of this process so far is that of compiling alone.
    let figures = match measure() {
        Ok(figures) => figures,
        Err(exit) => return exit,
    };
    if arguments.json {
        let list: Vec<_> =
            figures.iter().map(|f| json!({"name": f.name, "value": f.value, "unit": f.unit, "goal": f.goal})).collect();
        say!("{}", json!(list));
    } else {
        for f in figures {
            say!("{:<52} {:>10.3} {:<22} goal: {}", f.name, f.value, f.unit, f.goal);
        }
    }
    Exit::Done
}

/// Figures of a debug build mean nothing; this runs the same command optimised.
fn in_release(arguments: &Arguments) -> Exit {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "--package", "xtask", "--", "bench"]);
    if arguments.json {
        command.arg("--json");
    }
    match command.status() {
        Ok(status) if status.success() => Exit::Done,
        Ok(_) => Exit::Unsupported,
        Err(error) => {
            complain(&format!("cargo cannot be started: {error}"));
            Exit::Unsupported
        }
    }
}

fn measure() -> Result<Vec<Figure>, Exit> {
    let seed = || compile_named("sf_transpose_global", &[], None).map(|_| ());
    let transpose = || compile_named("warp_transpose", &[("rows", 32), ("cols", 32)], None).map(|_| ());
    let mut figures = vec![Figure {
        name: "seed program, DSL to CUDA text",
        value: median_milliseconds(301, seed)?,
        unit: "ms",
        goal: "< 0.5",
    }];
    if let Some(mebibytes) = peak_memory() {
        figures.push(Figure { name: "peak memory up to here", value: mebibytes, unit: "MiB", goal: "< 50" });
    }
    figures.push(Figure {
        name: "warp_transpose 32 x 32, DSL to CUDA text",
        value: median_milliseconds(101, transpose)?,
        unit: "ms",
        goal: "< 2",
    });
    figures.push(Figure {
        name: "emission: time of 10 times the statements",
        value: emission_growth()?,
        unit: "x the time of 1",
        goal: "about 10: linear",
    });
    figures.push(Figure {
        name: "virtual GPU, warp_transpose over 2048 CTAs",
        value: virtual_gpu_rate()?,
        unit: "M thread inst/s/core",
        goal: ">= 50",
    });
    figures.extend(crate::infer_bench::figures()?);
    figures.extend(crate::permute_bench::figures()?);
    figures.extend(crate::layout_bench::figures()?);
    figures.extend(crate::page_bench::figures()?);
    Ok(figures)
}

fn compile_named(
    name: &str,
    sizes: &[(&str, i64)],
    variant: Option<&str>,
) -> Result<tilewright::compile::Artifact, Exit> {
    let entry = tilewright_kernels::find(name).ok_or(Exit::BadInput)?;
    let sizes: Vec<(String, i64)> = sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    let config = entry.config(None, &sizes).map_err(|_| Exit::BadInput)?;
    compile_kernel((entry.build)(&config), variant)
}

pub(crate) fn compile_kernel(kernel: Kernel, variant: Option<&str>) -> Result<tilewright::compile::Artifact, Exit> {
    let lower = LowerOptions { variant: variant.map(str::to_string) };
    compile(kernel, &Options { target: Target::Sm100a, lower }).map_err(|found| {
        report(&found);
        Exit::BadInput
    })
}

pub(crate) fn median_milliseconds(runs: usize, mut work: impl FnMut() -> Result<(), Exit>) -> Result<f64, Exit> {
    work()?;
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[runs / 2])
}

/// Peak resident memory of this process in MiB, where the system tells it.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kibibytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes / 1024.0)
}

/// A kernel of `copies` permutes in a row.
fn many_permutes(copies: i64) -> Kernel {
    kernel("many", |k| {
        let a = k.input("a", F32, S([copies, 8, 32], [256, 32, 1]));
        let b = k.output("b", F32, S([copies, 8, 32], [256, 1, 8]));
        k.threads(32);
        k.unroll("i", 0..copies, |k, i| {
            k.warp().permute_layout(b.sub((&i, .., ..)), a.sub((&i, .., ..))).variant("warp_xor_swizzle");
        });
    })
}

/// How much longer ten times the statements take to print.
fn emission_growth() -> Result<f64, Exit> {
    let program = |copies| -> Result<tilewright::ir::VerifiedProgram, Exit> {
        let verified =
            tilewright::ir::tile::verify(many_permutes(copies), Target::Sm100a).map_err(|_| Exit::BadInput)?;
        let options = tilewright::lower::Options::default();
        let program = tilewright::lower::lower(&verified, Target::Sm100a, &options).map_err(|_| Exit::BadInput)?;
        tilewright::ir::thread::verify(program).map_err(|_| Exit::BadInput)
    };
    let (small, large) = (program(20)?, program(200)?);
    let time = |program: &tilewright::ir::VerifiedProgram| {
        median_milliseconds(31, || tilewright::emit::emit(program).map(|_| ()).map_err(|_| Exit::BadInput))
    };
    Ok(time(&large)? / time(&small)?)
}

/// Millions of thread instructions per second on one core, races checked.
fn virtual_gpu_rate() -> Result<f64, Exit> {
    // One element an access, so that the figure stays one of instructions, whatever plan is the cheapest.
    let artifact = compile_named("warp_transpose", &[("tiles", 2048)], Some("warp_xor_swizzle"))?;
    let failed = |failure: tilewright::runtime::Failure| {
        report(&failure.diagnostics);
        Exit::from(failure.kind)
    };
    let built = provisioned(artifact.target().name()).build(&artifact, &CudaText::Generated).map_err(failed)?;
    let module = vgpu::Module::parse(&built.ptx).map_err(|_| Exit::Unsupported)?;
    let bytes = (artifact.parameters()[0].memory_elements() * 4) as usize;
    let (mut instructions, mut times) = (0, Vec::new());
    for _ in 0..5 {
        let mut memory = vgpu::Memory::new();
        let buffers = [memory.allocate("a", vec![1; bytes]), memory.allocate_poison("b", bytes)];
        let launch = vgpu::Launch {
            kernel: artifact.name().to_string(),
            grid: artifact.grid().map(|n| n as u32),
            block: [artifact.threads() as u32, 1, 1],
            dynamic_shared_bytes: 0,
            args: buffers.into_iter().map(|buffer| vgpu::Arg::Buffer { buffer, byte_offset: 0 }).collect(),
        };
        let start = Instant::now();
        let report = vgpu::run(&module, &launch, &mut memory, &vgpu::Options::default()).map_err(|_| Exit::Fault)?;
        times.push(start.elapsed().as_secs_f64());
        instructions = report.thread_instructions;
    }
    times.sort_by(f64::total_cmp);
    Ok(instructions as f64 / times[times.len() / 2] / 1e6)
}
