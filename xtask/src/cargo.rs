//! Runs cargo from a command.

use std::io::{IsTerminal, stderr};
use std::process::Command;

use crate::exit::Exit;
use crate::terminal::print_error;

/// The cargo that started this command, or the one on the path.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Reports that cargo cannot be started.
pub(crate) fn no_cargo(error: &std::io::Error) -> Exit {
    print_error(&format!("cargo cannot be started: {error}"));
    Exit::Unsupported
}

/// Runs this very command again, built in another profile. On a terminal, cargo shows the progress of the build.
pub(crate) fn again_in(profile: &str) -> Exit {
    let mut command = cargo();
    command.arg("run");
    if !stderr().is_terminal() {
        command.arg("--quiet");
    }
    command.args(["--profile", profile, "--package", "xtask", "--"]).args(std::env::args_os().skip(1));
    match command.status() {
        Ok(status) => status.code().and_then(Exit::of_status).unwrap_or_else(|| not_built(profile)),
        Err(error) => no_cargo(&error),
    }
}

fn not_built(profile: &str) -> Exit {
    print_error(&format!("this command cannot be built in the profile `{profile}`, or it was stopped; see above"));
    Exit::Unsupported
}
