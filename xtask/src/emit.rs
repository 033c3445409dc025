//! `emit`: prints stages of a kernel.

use clap::Args;
use tilewright::compile::Stage;
use tilewright::runtime::{Built, CudaText};
use tilewright_tests::machine_code::disassemble;

use crate::exit::Exit;
use crate::request::{Compiled, KernelArguments};
use crate::terminal::{paint, print_error};
use crate::toolchain::provisioned;

/// Arguments of `emit`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    kernel: KernelArguments,
    /// Stages, separated by commas: tile, layouts, graph, thread, plan, cuda, ptx, sass.
    #[arg(long, default_value = "cuda", value_delimiter = ',')]
    stage: Vec<String>,
}

/// A stage of the compiler, or one after NVRTC.
enum Wanted {
    Own(Stage),
    Ptx,
    Sass,
}

fn parse(name: &str) -> Result<Wanted, String> {
    match name {
        "ptx" => Ok(Wanted::Ptx),
        "sass" => Ok(Wanted::Sass),
        _ => name.parse().map(Wanted::Own).map_err(|error: String| format!("{error}, ptx, sass")),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    let wanted: Result<Vec<Wanted>, String> = arguments.stage.iter().map(|name| parse(name)).collect();
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(text) => {
            print_error(&text);
            return Exit::BadInput;
        }
    };
    let compiled = match arguments.kernel.compile() {
        Ok(compiled) => compiled,
        Err(exit) => return exit,
    };
    if let Err(exit) = compiled.warn() {
        return exit;
    }
    let several = wanted.len() > 1;
    for (name, stage) in arguments.stage.iter().zip(wanted) {
        if several {
            say!("{}", paint("1", &format!("== {name}")));
        }
        match text(&compiled, &stage) {
            Ok(text) => say!("{}", text.trim_end_matches('\n')),
            Err(exit) => return exit,
        }
    }
    Exit::Done
}

fn text(compiled: &Compiled, stage: &Wanted) -> Result<String, Exit> {
    match stage {
        Wanted::Own(stage) => Ok(compiled.artifact.stage(*stage)),
        Wanted::Ptx => Ok(build(compiled)?.ptx),
        Wanted::Sass => disassemble(&build(compiled)?.cubin).map_err(|why| {
            print_error(&why);
            Exit::Unsupported
        }),
    }
}

fn build(compiled: &Compiled) -> Result<Built, Exit> {
    let toolchain = provisioned(compiled.artifact.target().name());
    toolchain.build(&compiled.artifact, &CudaText::Generated).map_err(|failure| compiled.failed(failure))
}
