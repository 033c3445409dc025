//! `bench`: how fast the compiler and the virtual GPU are. Medians over many runs, ratios within one run.

use std::fmt::Display;
use std::time::Instant;

use clap::Args;
use tilewright::compile::{LowerOptions, Options, compile};
use tilewright::diag::Diagnostic;
use tilewright::prelude::*;
use tilewright::runtime::CudaText;
use tilewright::vgpu;

use crate::cargo::again_in;
use crate::exit::Exit;
use crate::figure::{Figure, Goal, all_json, all_text};
use crate::measuring::Measuring;
use crate::terminal::{complain, report};
use crate::toolchain::provisioned;

/// Arguments of `bench`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    // Figures of a debug build mean nothing.
    if cfg!(debug_assertions) {
        return again_in("release");
    }
    let figures = match measure(&Measuring::begin()) {
        Ok(figures) => figures,
        Err(exit) => return exit,
    };
    if arguments.json {
        say!("{}", all_json(&figures));
    } else {
        say!("{}", all_text(&figures));
    }
    Exit::Done
}

fn measure(measuring: &Measuring) -> Result<Vec<Figure>, Exit> {
    let seed = || compile_named("sf_transpose_global", &[], None).map(|_| ());
    let transpose = || compile_named("warp_transpose", &[("rows", 32), ("cols", 32)], None).map(|_| ());
    let seed_time = || median_milliseconds(301, seed);
    let mut figures = vec![measuring.figure("seed program, DSL to CUDA text", "ms", Goal::Below(0.5), seed_time)?];
    // Memory first: so far, the peak of this process is that of compiling alone.
    if let Some(mebibytes) = memory("VmHWM:") {
        figures.push(measuring.figure("peak memory up to here", "MiB", Goal::Below(50.0), || Ok(mebibytes))?);
    }
    let name = "warp_transpose 32 x 32, DSL to CUDA text";
    figures.push(measuring.figure(name, "ms", Goal::Below(2.0), || median_milliseconds(101, transpose))?);
    let name = "emission: time for 10 times the statements";
    figures.push(measuring.figure(name, "x the time of 1", Goal::Linear(10.0), emission_growth)?);
    let name = "virtual GPU, warp_transpose over 2048 CTAs";
    figures.push(measuring.figure(name, "M thread inst/s/core", Goal::AtLeast(50.0), virtual_gpu_rate)?);
    figures.extend(crate::growth_bench::figures(measuring)?);
    figures.extend(crate::infer_bench::figures(measuring)?);
    figures.extend(crate::permute_bench::figures(measuring)?);
    figures.extend(crate::layout_bench::figures(measuring)?);
    figures.extend(crate::page_bench::figures(measuring)?);
    Ok(figures)
}

/// Reports why something cannot be measured.
pub(crate) fn stopped(exit: Exit, why: &dyn Display) -> Exit {
    complain(&why.to_string());
    exit
}

/// Reports why a kernel cannot be measured.
pub(crate) fn refused(found: Vec<Diagnostic>) -> Exit {
    report(&found);
    Exit::BadInput
}

/// A kernel of the library with these sizes.
pub(crate) fn library_kernel(name: &str, sizes: &[(&str, i64)]) -> Result<Kernel, Exit> {
    let missing = || stopped(Exit::BadInput, &format!("the kernel `{name}` is not in the library"));
    let entry = tilewright_kernels::find(name).ok_or_else(missing)?;
    let sizes: Vec<(String, i64)> = sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    let config = entry.config(None, &sizes).map_err(|error| stopped(Exit::BadInput, &error))?;
    Ok((entry.build)(&config))
}

fn compile_named(
    name: &str,
    sizes: &[(&str, i64)],
    variant: Option<&str>,
) -> Result<tilewright::compile::Artifact, Exit> {
    compile_kernel(library_kernel(name, sizes)?, variant)
}

pub(crate) fn compile_kernel(kernel: Kernel, variant: Option<&str>) -> Result<tilewright::compile::Artifact, Exit> {
    let lower = LowerOptions { variant: variant.map(str::to_string) };
    compile(kernel, &Options { target: Target::Sm100a, lower }).map_err(refused)
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

/// Memory of this process in MiB, if the system reports it: `VmHWM:` is the peak, `VmRSS:` the current size.
pub(crate) fn memory(which: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(which))?;
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

/// The factor by which ten times the statements take longer to emit.
fn emission_growth() -> Result<f64, Exit> {
    let program = |copies| -> Result<tilewright::ir::VerifiedProgram, Exit> {
        let verified = tilewright::ir::tile::verify(many_permutes(copies), Target::Sm100a).map_err(refused)?;
        let options = tilewright::lower::Options::default();
        let program = tilewright::lower::lower(&verified, Target::Sm100a, &options).map_err(refused)?;
        tilewright::ir::thread::verify(program).map_err(refused)
    };
    let (small, large) = (program(20)?, program(200)?);
    let time = |program: &tilewright::ir::VerifiedProgram| {
        median_milliseconds(31, || tilewright::emit::emit(program).map(|_| ()).map_err(|found| refused(vec![found])))
    };
    Ok(time(&large)? / time(&small)?)
}

/// Millions of thread instructions per second on one core, with race checking.
fn virtual_gpu_rate() -> Result<f64, Exit> {
    // One element per access, so that the figure measures instructions, whichever plan is the cheapest.
    let artifact = compile_named("warp_transpose", &[("tiles", 2048)], Some("warp_xor_swizzle"))?;
    let failed = |failure: tilewright::runtime::Failure| {
        report(&failure.diagnostics);
        Exit::from(failure.kind)
    };
    let built = provisioned(artifact.target().name()).build(&artifact, &CudaText::Generated).map_err(failed)?;
    let module = vgpu::Module::parse(&built.ptx).map_err(|error| stopped(Exit::Unsupported, &error))?;
    let bytes = (artifact.parameters()[0].memory_elements() * 4) as usize;
    let (mut instructions, mut times) = (0, Vec::new());
    for _ in 0..5 {
        let mut memory = vgpu::Memory::new();
        let buffers = [memory.allocate("a", vec![1; bytes]), memory.allocate_poison("b", bytes)];
        let launch = vgpu::Launch {
            kernel: artifact.entry().to_string(),
            grid: artifact.grid().map(|n| n as u32),
            block: [artifact.threads() as u32, 1, 1],
            dynamic_shared_bytes: 0,
            args: buffers.into_iter().map(|buffer| vgpu::Arg::Buffer { buffer, byte_offset: 0 }).collect(),
        };
        let start = Instant::now();
        let ended = vgpu::run(&module, &launch, &mut memory, &vgpu::Options::default());
        let report = ended.map_err(|error| stopped(Exit::Fault, &error))?;
        times.push(start.elapsed().as_secs_f64());
        instructions = report.thread_instructions;
    }
    times.sort_by(f64::total_cmp);
    Ok(instructions as f64 / times[times.len() / 2] / 1e6)
}
