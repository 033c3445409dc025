//! `test`: all tests of the workspace, with NVRTC provisioned first where that is possible.

use std::process::Command;

use clap::Args;
use tilewright::prelude::Target;

use crate::exit::Exit;
use crate::terminal::complain;
use crate::toolchain::provisioned;

/// Arguments of `test`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Only tests whose name contains this.
    filter: Option<String>,
    /// Accept what the tests produce: rewrites snapshots and committed PTX.
    #[arg(long)]
    bless: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    // Tests never fetch anything themselves.
    let _ = provisioned(Target::ALL[0].name());
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["test", "--workspace", "--quiet"]);
    if arguments.bless {
        command.env("INSTA_UPDATE", "always").env("TILEWRIGHT_BLESS", "1");
    }
    if let Some(filter) = &arguments.filter {
        command.arg("--").arg(filter);
    }
    match command.status() {
        Ok(status) if status.success() => Exit::Done,
        Ok(_) => Exit::Differs,
        Err(error) => {
            complain(&format!("cargo cannot be started: {error}"));
            Exit::Unsupported
        }
    }
}
