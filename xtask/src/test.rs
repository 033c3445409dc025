//! `test`: all tests of the workspace, with NVRTC provisioned first where that is possible; or the matrix of kernels.

use std::path::Path;
use std::process::Command;

use clap::Args;
use tilewright::prelude::Target;

use crate::exit::Exit;
use crate::matrix;
use crate::terminal::complain;
use crate::toolchain::provisioned;

/// Arguments of `test`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Only tests whose name contains this; `kernels` runs every kernel with inferred layouts in many sizes instead.
    filter: Option<String>,
    /// With `kernels`, only those whose name contains this.
    name: Option<String>,
    /// Accept what the tests produce: rewrites snapshots and committed PTX.
    #[arg(long)]
    bless: bool,
}

/// The filter that stands for the matrix of kernels.
const KERNELS: &str = "kernels";

pub(crate) fn run(arguments: &Arguments) -> Exit {
    let name = arguments.name.as_deref();
    match (arguments.filter.as_deref(), name) {
        (Some(KERNELS), _) if arguments.bless => bad(&format!("`test {KERNELS}` has nothing to accept")),
        (Some(KERNELS), name) => matrix::run(name.unwrap_or_default()),
        (_, Some(name)) => bad(&format!("`{name}` stands behind `{KERNELS}` only")),
        (_, None) => cargo_test(arguments),
    }
}

fn bad(text: &str) -> Exit {
    complain(text);
    Exit::BadInput
}

fn cargo_test(arguments: &Arguments) -> Exit {
    // Tests never fetch anything themselves.
    let _ = provisioned(Target::ALL[0].name());
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["test", "--workspace", "--quiet", "--no-fail-fast"]);
    if arguments.bless {
        command.env("INSTA_UPDATE", "always").env("TILEWRIGHT_BLESS", "1");
    }
    if let Some(filter) = &arguments.filter {
        command.arg("--").arg(filter);
    }
    let Ok(skipped) = tempfile::NamedTempFile::new() else {
        complain("cannot write a temporary file");
        return Exit::BadInput;
    };
    let status = command.env("TILEWRIGHT_SKIPPED", skipped.path()).status();
    list_skipped(skipped.path());
    match status {
        Ok(status) if status.success() => Exit::Done,
        Ok(_) => Exit::Differs,
        Err(error) => {
            complain(&format!("cargo cannot be started: {error}"));
            Exit::Unsupported
        }
    }
}

/// Counts and names what was skipped for want of NVRTC or a browser.
fn list_skipped(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut names: Vec<&str> = text.lines().collect();
    names.sort_unstable();
    for name in &names {
        say!("skipped {name}");
    }
    say!("{} skipped for want of NVRTC or a browser", names.len());
}
