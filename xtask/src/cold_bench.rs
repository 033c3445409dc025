//! The part of `bench` that times whole processes: from the DSL to machine code, with nothing cached, beside NVRTC alone
//! on the same text. What differs is what this compiler takes from its user.

use std::process::{Command, Stdio};
use std::time::Instant;

use tempfile::TempDir;
use tilewright::cuda::Request;
use tilewright_tests::toolchain::toolchain;

use crate::bench_kernel::compile_named;
use crate::exit::Exit;
use crate::figure::{Figure, Goal};
use crate::measuring::Measuring;
use crate::resources::median;
use crate::terminal::fail;

/// The pairs of processes of which the median counts.
const PAIRS: usize = 5;
/// The target that they compile for.
const TARGET: &str = "sm_100a";
/// The kernels that are measured.
const KERNELS: [&str; 2] = ["matmul", "attention_roles"];

pub(crate) fn figures(measuring: &Measuring) -> Result<Vec<Figure>, Exit> {
    if toolchain().nvrtc(TARGET).is_err() {
        measuring.note("no NVRTC: cold processes are not measured");
        return Ok(Vec::new());
    }
    let figure = |name: &&str| {
        let title = format!("cold process for {name}, DSL to machine code, beyond NVRTC on the same text");
        measuring.figure(title, "ms", Goal::Below(10.0), || beyond_nvrtc(name))
    };
    KERNELS.iter().map(figure).collect()
}

/// The median of what a process that starts with the DSL takes longer than one that starts with its CUDA text.
fn beyond_nvrtc(name: &str) -> Result<f64, Exit> {
    let failed = |error: std::io::Error| fail(Exit::Unsupported, &error);
    let folder = TempDir::new().map_err(failed)?;
    let text = folder.path().join("kernel.cu");
    std::fs::write(&text, compile_named(name, &[], None)?.cuda()).map_err(failed)?;
    let text = text.to_string_lossy().into_owned();
    let pair = |_| Ok(process_milliseconds(name)? - process_milliseconds(&text)?);
    Ok(median((0..PAIRS).map(pair).collect::<Result<_, Exit>>()?))
}

fn process_milliseconds(what: &str) -> Result<f64, Exit> {
    let failed = |error: std::io::Error| fail(Exit::Unsupported, &error);
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    let start = Instant::now();
    let status = command.args(["bench", "--cold", what]).stdout(Stdio::null()).status().map_err(failed)?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    match status.success() {
        true => Ok(milliseconds),
        false => Err(fail(Exit::Unsupported, &format!("a process that compiles `{what}` ended with {status}"))),
    }
}

/// Compiles a kernel of the library, or a CUDA text where the name ends with `.cu`, with nothing cached.
pub(crate) fn compile_once(what: &str) -> Exit {
    let source = match what.ends_with(".cu") {
        true => std::fs::read_to_string(what).map_err(|error| fail(Exit::BadInput, &error)),
        false => compile_named(what, &[], None).map(|artifact| artifact.cuda().to_string()),
    };
    let compiled = source.and_then(|source| {
        let nvrtc = toolchain().nvrtc(TARGET).map_err(|error| fail(Exit::Unsupported, &error))?;
        let request = Request { source: &source, name: "/tilewright/bench.cu", target: TARGET, options: &[] };
        nvrtc.compile(&request).map_err(|error| fail(Exit::Unsupported, &error))
    });
    compiled.map_or_else(|exit| exit, |_| Exit::Done)
}
