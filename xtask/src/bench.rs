//! `bench`: how fast the compiler and the virtual GPU are. Medians over many runs, ratios within one run.

use clap::Args;
use tilewright::prelude::*;

use crate::bench_kernel::{compile_named, options};
use crate::cargo::again_in;
use crate::defect::fail_on_kernel;
use crate::exit::Exit;
use crate::figure::{Figure, Goal, all_json, all_text};
use crate::measuring::Measuring;
use crate::resources::{median_milliseconds, memory};

/// Arguments of `bench`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Only measure the virtual GPU.
    #[arg(long)]
    vgpu: bool,
    /// Only compare kernels of the library with hand-written ones, and print a Markdown table.
    #[arg(long, conflicts_with_all = ["json", "vgpu"])]
    by_hand: bool,
    /// Only time kernels of the library on a GPU, and print a Markdown table.
    #[arg(long, conflicts_with_all = ["json", "by_hand", "vgpu"])]
    gpu: bool,
    /// Only compare compile times and machine code with TileLang, and print a Markdown table. Installs TileLang from PyPI
    /// in a temporary folder (several GB).
    #[arg(long, conflicts_with_all = ["json", "by_hand", "gpu", "vgpu"])]
    tilelang: bool,
    /// Only compile one kernel of the library, or one CUDA text, to machine code: what a measured process does.
    #[arg(long, value_name = "NAME|FILE", hide = true)]
    cold: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    // Figures of a debug build mean nothing.
    if cfg!(debug_assertions) {
        return again_in("release");
    }
    if let Some(what) = &arguments.cold {
        return crate::cold_bench::compile_once(what);
    }
    if arguments.by_hand {
        return printed(crate::hand_bench::table(&Measuring::begin()));
    }
    if arguments.gpu {
        return printed(crate::gpu_bench::table(&Measuring::begin()));
    }
    if arguments.tilelang {
        return printed(crate::tilelang_bench::table());
    }
    let part = if arguments.vgpu { crate::vgpu_bench::figures } else { measure };
    let figures = match part(&Measuring::begin()) {
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

fn printed(table: Result<String, Exit>) -> Exit {
    match table {
        Ok(table) => {
            say!("{table}");
            Exit::Done
        }
        Err(exit) => exit,
    }
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
    figures.push(measuring.figure(name, "x the time of 1", Goal::Below(11.0), emission_growth)?);
    figures.extend(crate::vgpu_bench::figures(measuring)?);
    figures.extend(crate::growth_bench::figures(measuring)?);
    figures.extend(crate::infer_bench::figures(measuring)?);
    figures.extend(crate::compile_bench::figures(measuring)?);
    figures.extend(crate::cold_bench::figures(measuring)?);
    figures.extend(crate::permute_bench::figures(measuring)?);
    figures.extend(crate::hand_bench::figures(measuring)?);
    figures.extend(crate::layout_bench::figures(measuring)?);
    figures.extend(crate::page_bench::figures(measuring)?);
    Ok(figures)
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
    let (small, large) = (emission_milliseconds(20)?, emission_milliseconds(200)?);
    Ok(large / small)
}

/// The time to emit a kernel of `copies` permutes.
fn emission_milliseconds(copies: i64) -> Result<f64, Exit> {
    let options = options(None);
    let failed = |found| fail_on_kernel(|| many_permutes(copies).to_string(), &options, found, Exit::BadInput);
    let verified = tilewright::ir::tile::verify(many_permutes(copies), options.target).map_err(failed)?;
    let program = tilewright::lower::lower(&verified, options.target, &options.lower).map_err(failed)?;
    let program = tilewright::ir::thread::verify(program).map_err(failed)?;
    median_milliseconds(31, || tilewright::emit::emit(&program).map(|_| ()).map_err(|found| failed(vec![found])))
}
