//! `cargo xtask`: the project's commands. One file per verb; `cargo xtask --help` lists them.

#[macro_use]
mod terminal;

mod bench;
mod bench_kernel;
mod cache_dir;
mod cargo;
mod cold_bench;
mod compile_bench;
mod counted;
mod defect;
mod doctor;
mod emit;
mod errors;
mod exit;
mod figure;
mod fuzz;
mod gpu_bench;
mod growth_bench;
mod hand_bench;
mod infer_bench;
mod layout;
mod layout_bench;
mod list;
mod matrix;
mod measuring;
mod page_bench;
mod permute_bench;
mod report;
mod request;
mod resources;
mod run_kernel;
mod setup;
mod test;
mod tilelang_bench;
mod toolchain;
mod tune;
mod validate;
mod vgpu;
mod vgpu_bench;
mod vgpu_mutate;
mod why;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::Exit;

/// Tilewright's commands. Exit status: 0 done, 1 a result differs, 2 a fault, 3 unsupported here, 4 bad input, 5 a
/// defect of Tilewright.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Build a kernel, run it, and check every element against its reference.
    RunKernel(run_kernel::Arguments),
    /// List the kernels.
    List(list::Arguments),
    /// Print stages of a kernel: tile, layouts, graph, thread, plan, cuda, ptx, sass.
    Emit(emit::Arguments),
    /// Explain why a buffer has its layout, traced back to a line of the kernel.
    Why(why::Arguments),
    /// Draw a layout, answer questions about it, plan the conversion to another: notation, a hardware name, or `list`.
    Layout(layout::Arguments),
    /// Run the tests, or with `kernels` every kernel with inferred layouts in many sizes.
    Test(test::Arguments),
    /// Run a kernel of any PTX file on the virtual GPU, as a launch file says.
    Vgpu(vgpu::Arguments),
    /// Rank the configurations of a matrix product by their predicted cost, from a model of the machine.
    Tune(tune::Arguments),
    /// Change a kernel at every barrier, fence, wait and count, one at a time, and report what the virtual GPU finds.
    VgpuMutate(vgpu_mutate::Arguments),
    /// Measure the compiler and the virtual GPU.
    Bench(bench::Arguments),
    /// Measure what the kernels of the library cost on the virtual GPU, and write docs/quality.md and docs/quality.json.
    Report(report::Arguments),
    /// Feed mutated notation or random layouts to the layout crate, or random tile programs to layout inference, and
    /// check every result.
    Fuzz(fuzz::Arguments),
    /// Compile every committed CUDA snapshot, with warnings and spills as errors, and check the list of reserved names.
    Validate(validate::Arguments),
    /// Report what this machine has and how to fix what is missing. Builds nothing.
    Doctor(doctor::Arguments),
    /// Provision NVRTC (and with --sass the disassembler), pinned and hash-checked.
    Setup(setup::Arguments),
}

fn main() -> ExitCode {
    let exit = match Arguments::try_parse() {
        Ok(arguments) => perform(arguments.verb),
        Err(error) => unread(&error),
    };
    errors::print(exit);
    exit.into()
}

/// Reports why the command line cannot be parsed. Help and version go to stdout and are not errors.
fn unread(error: &clap::Error) -> Exit {
    let _ = error.print();
    if !error.use_stderr() {
        return Exit::Done;
    }
    errors::record_usage(&error.to_string());
    Exit::BadInput
}

fn perform(verb: Verb) -> Exit {
    match verb {
        Verb::RunKernel(arguments) => run_kernel::run(&arguments),
        Verb::List(arguments) => list::run(&arguments),
        Verb::Emit(arguments) => emit::run(&arguments),
        Verb::Why(arguments) => why::run(&arguments),
        Verb::Layout(arguments) => layout::run(&arguments),
        Verb::Test(arguments) => test::run(&arguments),
        Verb::Vgpu(arguments) => vgpu::run(&arguments),
        Verb::Tune(arguments) => tune::run(&arguments),
        Verb::VgpuMutate(arguments) => vgpu_mutate::run(&arguments),
        Verb::Bench(arguments) => bench::run(&arguments),
        Verb::Report(arguments) => report::run(&arguments),
        Verb::Fuzz(arguments) => fuzz::run(&arguments),
        Verb::Validate(arguments) => validate::run(&arguments),
        Verb::Doctor(arguments) => doctor::run(&arguments),
        Verb::Setup(arguments) => setup::run(&arguments),
    }
}
