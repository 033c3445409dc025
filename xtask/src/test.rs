//! `test`: runs all tests of the workspace, provisioning NVRTC first if possible; or the matrix of kernels.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use clap::Args;
use tilewright::prelude::Target;
use tilewright::runtime::DeviceChoice;

use crate::cargo::{cargo, no_cargo};
use crate::exit::Exit;
use crate::matrix;
use crate::terminal::{print_error, print_text};
use crate::toolchain::provisioned;

/// Arguments of `test`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Run only tests whose name contains this; at least one must. `kernels` runs every kernel with inferred layouts in
    /// many sizes instead.
    filter: Option<String>,
    /// With `kernels`, run only those whose name contains this.
    name: Option<String>,
    /// With `kernels`, where they run: auto uses a GPU for each target that it can run, or else the virtual GPU.
    #[arg(long, requires = "filter")]
    device: Option<DeviceChoice>,
    /// With `kernels`, run them for this target only.
    #[arg(long, requires = "filter")]
    target: Option<Target>,
    /// Accept what the tests produce: rewrites snapshots and committed PTX.
    #[arg(long)]
    bless: bool,
}

/// The filter that selects the matrix of kernels.
const KERNELS: &str = "kernels";

pub(crate) fn run(arguments: &Arguments) -> Exit {
    let name = arguments.name.as_deref();
    match (arguments.filter.as_deref(), name) {
        (Some(KERNELS), _) if arguments.bless => bad(&format!("`test {KERNELS}` has nothing to accept")),
        (Some(KERNELS), name) => {
            let device = arguments.device.unwrap_or(DeviceChoice::Virtual);
            matrix::run(name.unwrap_or_default(), device, arguments.target)
        }
        _ if arguments.device.is_some() || arguments.target.is_some() => {
            bad(&format!("--device and --target can only be given with `{KERNELS}`"))
        }
        (_, Some(name)) => bad(&format!("`{name}` can only be given after `{KERNELS}`")),
        (_, None) => cargo_test(arguments),
    }
}

fn bad(text: &str) -> Exit {
    print_error(text);
    Exit::BadInput
}

fn cargo_test(arguments: &Arguments) -> Exit {
    // Tests never fetch anything themselves.
    let _ = provisioned(Target::ALL[0].name());
    let mut command = cargo();
    command.args(["test", "--workspace", "--quiet", "--no-fail-fast"]);
    if arguments.bless {
        command.env("INSTA_UPDATE", "always").env("TILEWRIGHT_BLESS", "1");
    }
    let Ok(skipped) = tempfile::NamedTempFile::new() else {
        print_error("cannot write a temporary file");
        return Exit::BadInput;
    };
    command.env("TILEWRIGHT_SKIPPED", skipped.path());
    let ended = match &arguments.filter {
        None => command.status().map(|status| (status, None)),
        Some(filter) => counted(command.arg("--").arg(filter)).map(|(status, tests)| (status, Some((filter, tests)))),
    };
    let skips = list_skipped(skipped.path());
    match ended {
        Ok((status, _)) if !status.success() => Exit::Differs,
        Ok((_, Some((filter, 0)))) if skips == 0 => bad(&format!("no test has `{filter}` in its name")),
        Ok(_) => Exit::Done,
        Err(error) => no_cargo(&error),
    }
}

/// Runs tests, forwards their output, and counts the tests that their summaries report.
fn counted(command: &mut Command) -> std::io::Result<(ExitStatus, u64)> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut tests = 0;
    if let Some(output) = child.stdout.take() {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line);
            print_text(format_args!("{text}"));
            tests += tests_of(&text);
            line.clear();
        }
    }
    Ok((child.wait()?, tests))
}

/// The words after counts in summaries: those of cargo, and of tests that print their own summary.
const COUNTED: [&str; 7] = ["passed", "failed", "ignored", "skipped", "refused", "not", "pairs"];

/// The number of tests that a summary line reports: `test result: ok. 2 passed; 0 failed; 1 ignored; ...` of three.
fn tests_of(line: &str) -> u64 {
    let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let counts = words.windows(2).filter(|pair| COUNTED.contains(&pair[1]));
    counts.filter_map(|pair| pair[0].parse::<u64>().ok()).sum()
}

/// Counts and lists the tests that were skipped because NVRTC or a browser is missing.
fn list_skipped(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut names: Vec<&str> = text.lines().collect();
    names.sort_unstable();
    for name in &names {
        say!("skipped {name}");
    }
    say!("{} skipped because NVRTC or a browser is missing", names.len());
    names.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_say_how_many_tests_there_were() {
        let cases = [
            ("test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 40 filtered out; finished in 0.21s", 3),
            ("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 40 filtered out; finished in 0.00s", 0),
            ("end to end: 1 passed (1 from committed PTX), 1 failed, 2 skipped", 4),
            ("golden tilelang run: 0 passed, 0 failed, 3 not run, 1 refused", 4),
            ("permute: 1200 pairs, 0 failed", 1200),
            ("running 12 tests", 0),
        ];
        for (line, tests) in cases {
            assert_eq!(tests_of(line), tests, "{line}");
        }
    }
}
