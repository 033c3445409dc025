//! The part of `bench` that compares compile times and machine code with those of TileLang, which is installed in an
//! environment that is thrown away.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tilewright::compile::{LowerOptions, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::CudaText;
use tilewright_tests::machine_code;

use crate::bench_kernel::library_kernel;
use crate::exit::Exit;
use crate::resources::median_times;
use crate::terminal::fail;
use crate::toolchain::provisioned;

/// The version that is compared.
const PACKAGE: &str = "tilelang==0.1.15";
/// The programs, in TileLang.
const PROGRAMS: &str = include_str!("tilelang_bench/programs.py");
/// The target of both; TileLang's text of `elementwise` for sm_100a does not compile.
const TARGET: Target = Target::Sm90a;
/// Compiles of each program.
const RUNS: usize = 7;

/// The programs in the library: a name in [`PROGRAMS`], the kernel and its sizes.
const PAIRS: [(&str, &[(&str, i64)]); 4] = [
    ("elementwise", &[("rows", 128), ("cols", 128)]),
    ("softmax", &[("rows", 32), ("cols", 1024)]),
    ("gemm", &[("m", 128), ("n", 128), ("k", 1024), ("tile", 128)]),
    ("short_attention", &[("rows", 64), ("cols", 64)]),
];

/// Compile times and machine code of both as a Markdown table.
pub(crate) fn table() -> Result<String, Exit> {
    let folder = tempfile::tempdir().map_err(|error| fail(Exit::BadInput, &format!("no temporary folder: {error}")))?;
    let theirs = theirs(folder.path())?;
    let head = format!("| program | ours, ms | {PACKAGE}, ms | its time over ours | our machine code over its |");
    let mut lines = vec![head, "|---|---|---|---|---|".to_string()];
    for (name, sizes) in PAIRS {
        let milliseconds = theirs.iter().find_map(|line| (line["name"] == name).then(|| line["milliseconds"].as_f64()));
        let Some(milliseconds) = milliseconds.flatten() else {
            return Err(fail(Exit::Unsupported, &format!("TileLang says nothing about `{name}`")));
        };
        let own = median_times(RUNS, || compiled(name, sizes).map(|_| ()))?.cpu;
        let [ours, theirs] = [our_machine_code(name, sizes)?, their_machine_code(folder.path(), name)?];
        let (faster, shorter) = (milliseconds / own, ours as f64 / theirs as f64);
        lines.push(format!("| `{name}` | {own:.1} | {milliseconds:.0} | {faster:.0} | {shorter:.2} |"));
    }
    Ok(lines.join("\n"))
}

fn compiled(name: &str, sizes: &[(&str, i64)]) -> Result<tilewright::compile::Artifact, Exit> {
    let options = Options { target: TARGET, lower: LowerOptions::default() };
    compile(library_kernel(name, sizes)?, &options).map_err(|found| fail(Exit::BadInput, &format!("{found:?}")))
}

fn our_machine_code(name: &str, sizes: &[(&str, i64)]) -> Result<usize, Exit> {
    let artifact = compiled(name, sizes)?;
    let built = provisioned(TARGET.name()).build(&artifact, &CudaText::Generated);
    let built = built.map_err(|failure| fail(Exit::Unsupported, &failure))?;
    counted(&built.cubin, artifact.entry())
}

fn their_machine_code(folder: &Path, name: &str) -> Result<usize, Exit> {
    let cubin = std::fs::read(folder.join(format!("{name}.cubin")));
    counted(
        &cubin.map_err(|error| fail(Exit::Unsupported, &format!("no machine code of `{name}`: {error}")))?,
        "main_kernel",
    )
}

fn counted(cubin: &[u8], entry: &str) -> Result<usize, Exit> {
    let text = machine_code::disassemble(cubin).map_err(|why| fail(Exit::Unsupported, &why))?;
    Ok(machine_code::instructions(&text, entry))
}

/// Installs TileLang in `folder`, and returns what its programs print.
fn theirs(folder: &Path) -> Result<Vec<Value>, Exit> {
    let (environment, programs) = (folder.join("environment"), folder.join("programs.py"));
    std::fs::write(&programs, PROGRAMS).map_err(|error| fail(Exit::BadInput, &format!("cannot write: {error}")))?;
    let python = environment.join("bin/python");
    output(OsStr::new("python3"), &["-m".as_ref(), "venv".as_ref(), environment.as_os_str()])?;
    let install = ["-m", "pip", "install", "--quiet", PACKAGE].map(OsStr::new);
    output(python.as_os_str(), &install)?;
    let runs = RUNS.to_string();
    let arguments = [programs.as_os_str(), TARGET.name().as_ref(), runs.as_ref(), folder.as_os_str()];
    let printed = output(python.as_os_str(), &arguments)?;
    Ok(printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// What a command prints. An error if it cannot be started or fails.
fn output(program: &OsStr, arguments: &[&OsStr]) -> Result<String, Exit> {
    let said = |what: String| fail(Exit::Unsupported, &format!("{}: {what}", program.display()));
    let output = Command::new(program).args(arguments).output().map_err(|error| said(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(said(String::from_utf8_lossy(&output.stderr).trim().to_string()))
}
