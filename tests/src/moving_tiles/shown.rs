//! Regenerates the blocks of a page that show output.
//!
//! A block marked `command` begins with a command and shows what it prints about `permute_layout`: the chosen variant
//! of a plan, or all variants if it is marked `command,all`; the lines of the op in CUDA; the predicted and the counted
//! passes of a run. `...` stands for omitted lines. A block marked `refusals` lists the reasons of variants.

use tilewright::compile::{Artifact, LowerOptions, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{CudaText, Device, op_traffic, run};
use tilewright_kernels::{Config, KernelEntry, find};

use super::refusals::refusals;
use crate::toolchain::{has_no_nvrtc, toolchain};

const GAP: &str = "...";

/// The page with its blocks regenerated, and the commands that could not be run because NVRTC is missing.
pub fn refreshed(page: &str) -> (String, Vec<String>) {
    let (mut text, mut skipped) = (Vec::new(), Vec::new());
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        text.push(line.to_string());
        let Some((_, mark)) = line.strip_prefix("```").and_then(|opening| opening.split_once(',')) else { continue };
        if !["command", "command,all", "refusals"].contains(&mark) {
            continue;
        }
        let shown: Vec<String> = lines.by_ref().take_while(|line| *line != "```").map(str::to_string).collect();
        let fresh = if mark == "refusals" { Some(refusals()) } else { printed(&shown, mark == "command,all") };
        if fresh.is_none() {
            skipped.extend(shown.first().cloned());
        }
        text.extend(fresh.unwrap_or(shown));
        text.push("```".to_string());
    }
    (text.join("\n") + "\n", skipped)
}

/// The command of a block with its output; `None` if it cannot be run here.
fn printed(shown: &[String], all: bool) -> Option<Vec<String>> {
    let line = shown.first().expect("a block begins with a command");
    let command = Command::parse(line);
    let artifact = command.artifact();
    let output = match (command.verb, command.option("stage")) {
        ("emit", Some("plan")) => plan_lines(&artifact, all),
        ("emit", Some("cuda")) => cuda_lines(&artifact),
        ("run-kernel", None) => checked_lines(&command, &artifact)?,
        _ => panic!("`{line}` is not a command that pages show"),
    };
    assert!(output.iter().any(|line| line != GAP), "`{line}` prints nothing about `permute_layout`");
    Some(std::iter::once(line.clone()).chain(output).collect())
}

/// `$ cargo xtask emit NAME --key value ...`
struct Command<'a> {
    verb: &'a str,
    entry: &'static KernelEntry,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Command<'a> {
    fn parse(line: &'a str) -> Command<'a> {
        let line = line.strip_prefix("$ cargo xtask ").expect("a command of xtask");
        let mut words = line.split(' ');
        let verb = words.next().expect("a verb");
        let entry = words.next().and_then(find).expect("a kernel");
        let mut options = Vec::new();
        while let Some(option) = words.next() {
            let key = option.strip_prefix("--").expect("an option");
            options.push((key, words.next().expect("its value")));
        }
        Command { verb, entry, options }
    }

    fn option(&self, key: &str) -> Option<&'a str> {
        self.options.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    fn config(&self) -> Config {
        let dtype: Option<DType> = self.option("dtype").map(|name| name.parse().expect("a dtype"));
        let sizes = self.options.iter().filter(|(key, _)| *key == "shape").map(|(_, size)| {
            let (name, value) = size.split_once('=').expect("a size");
            (name.to_string(), value.parse().expect("a number"))
        });
        self.entry.config(dtype, &sizes.collect::<Vec<(String, i64)>>()).expect("a configuration")
    }

    fn artifact(&self) -> Artifact {
        let config = self.config();
        let lower = LowerOptions { variant: self.option("variant").map(str::to_string) };
        let options = Options { target: Target::Sm100a, lower };
        let artifact = compile((self.entry.build)(&config, options.target), &options).expect("the kernel compiles");
        artifact.for_sizes(&self.entry.sizes(&config)).expect("its sizes fit")
    }
}

/// The index of `permute_layout` in the plans.
fn moved_at(artifact: &Artifact) -> usize {
    artifact.plans().iter().position(|plan| plan.title.starts_with("permute_layout")).expect("a permute_layout")
}

/// Marks omitted lines; adjacent marks are merged.
fn leave_out(lines: &mut Vec<String>) {
    if lines.last().is_none_or(|line| line != GAP) {
        lines.push(GAP.to_string());
    }
}

fn plan_lines(artifact: &Artifact, all: bool) -> Vec<String> {
    let (plans, at) = (artifact.plans(), moved_at(artifact));
    let mut lines = Vec::new();
    if at > 0 {
        leave_out(&mut lines);
    }
    let mut is_shown = true;
    for line in plans[at].to_string().lines() {
        let name = line.get(2..).unwrap_or_default();
        if plans[at].considered.iter().any(|one| name.starts_with(&format!("{}:", one.variant))) {
            is_shown = all || line.starts_with('*');
        }
        if is_shown {
            lines.push(line.to_string());
        } else {
            leave_out(&mut lines);
        }
    }
    if at + 1 < plans.len() {
        leave_out(&mut lines);
    }
    lines
}

fn cuda_lines(artifact: &Artifact) -> Vec<String> {
    let title = &artifact.plans()[moved_at(artifact)].title;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(artifact.cuda().lines()) {
        if artifact.source_map().origin(number).is_some_and(|origin| origin.title == *title) {
            lines.push(line.to_string());
        } else {
            leave_out(&mut lines);
        }
    }
    lines
}

/// The lines on predicted and counted passes; `None` if NVRTC is missing.
fn checked_lines(command: &Command<'_>, artifact: &Artifact) -> Option<Vec<String>> {
    let built = match toolchain().build(artifact, &CudaText::Generated) {
        Ok(built) => built,
        Err(failure) if has_no_nvrtc(&failure) => return None,
        Err(failure) => panic!("{failure}"),
    };
    let inputs = (command.entry.inputs)(&command.config());
    let outcome = run(artifact, &built, &inputs, &Device::Virtual).expect("it runs");
    let report = outcome.report.expect("the virtual GPU counts");
    let mut lines = vec![GAP.to_string()];
    let traffic = op_traffic(artifact, &report).expect("what the plans predict");
    let ops = traffic.into_iter().filter(|op| op.title.starts_with("permute_layout"));
    lines.extend(ops.map(|op| format!("{:<10} {op}", "checked")));
    lines.push(GAP.to_string());
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_made_anew_and_the_rest_of_the_page_stays() {
        let page = "# A page\n\n```text,command\n$ cargo xtask emit sf_transpose_global --stage plan\nold\n```\nEnd.\n";
        let (fresh, skipped) = refreshed(page);
        assert!(skipped.is_empty() && !fresh.contains("\nold\n"), "{fresh}");
        assert!(
            fresh.starts_with("# A page\n\n```text,command\n$ cargo xtask emit ") && fresh.ends_with("```\nEnd.\n")
        );
        assert!(fresh.contains("\npermute_layout(b[s], a[s])  // kernels/src/sf_transpose_global.rs:"), "{fresh}");
    }

    #[test]
    fn of_a_plan_the_variant_that_was_taken_is_shown() {
        let command = Command::parse("$ cargo xtask emit sf_transpose --variant warp_xor_swizzle --stage plan");
        let lines = plan_lines(&command.artifact(), false);
        let variants: Vec<&String> = lines.iter().filter(|line| line.contains(": cost ")).collect();
        assert_eq!(variants.len(), 1);
        assert!(variants[0].starts_with("* warp_xor_swizzle: cost ") && lines[0] == GAP, "{lines:?}");
    }
}
