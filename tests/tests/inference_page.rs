//! The blocks of `docs/how-layouts-are-inferred.md` are up to date; `cargo xtask test --bless inference_page` rewrites
//! them.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::viz::{Style, render_all};
use tilewright_kernels::find;
use tilewright_tests::toolchain::{is_blessing, workspace};

// The page's own mistake, and the prelude.
include!("inference_page/two_layouts.rs");

const PAGE: &str = "docs/how-layouts-are-inferred.md";
const MISTAKE: &str = "tests/tests/inference_page/two_layouts.rs";

fn read(path: &str) -> String {
    std::fs::read_to_string(workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A kernel of the library with its default sizes.
fn artifact(name: &str) -> Artifact {
    let entry = find(name).expect("a kernel");
    let config = entry.config(None, &[]).expect("its defaults");
    compile((entry.build)(&config, Target::Sm100a), &Options::new(Target::Sm100a)).expect("it compiles")
}

/// The output of a command.
fn printed(line: &str) -> String {
    let command = line.strip_prefix("$ cargo xtask ").expect("a command of xtask");
    let words: Vec<&str> = command.split(' ').collect();
    match words.as_slice() {
        ["emit", name, "--stage", stage] => artifact(name).stage(stage.parse().expect("a stage")),
        ["why", name, buffer] => artifact(name).why(buffer).expect("a buffer"),
        _ => panic!("`{line}` is not a command that the page shows"),
    }
}

/// The diagnostics for the page's mistake.
fn told() -> String {
    let found = compile(two_layouts(), &Options::new(Target::Sm100a)).expect_err("the kernel is a mistake");
    let source = |file: &str| std::fs::read_to_string(workspace().join(file)).ok();
    render_all(&found, &source, Style::Plain)
}

/// The page with its blocks regenerated.
fn refreshed(page: &str) -> String {
    let mut text: Vec<String> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        text.push(line.to_string());
        if !line.starts_with("```") {
            continue;
        }
        let shown: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let fresh = match line {
            "```text,shown" | "```cuda,shown" => {
                let command = shown.first().expect("a block begins with a command");
                format!("{command}\n{}", printed(command))
            }
            "```rust,mistake" => read(MISTAKE),
            "```text,mistake" => told(),
            _ => shown.join("\n"),
        };
        text.extend(fresh.lines().map(str::to_string));
        text.push("```".to_string());
    }
    text.join("\n") + "\n"
}

#[test]
fn the_inference_page_shows_what_comes_out() {
    let fresh = refreshed(&read(PAGE));
    if is_blessing() {
        std::fs::write(workspace().join(PAGE), &fresh).expect("the page can be written");
    }
    let page = read(PAGE);
    let differing = page.lines().zip(fresh.lines()).find(|(shown, fresh)| shown != fresh);
    assert!(page == fresh, "shown and actual: {differing:?}; run `cargo xtask test --bless inference_page`");
}

#[test]
fn the_page_on_costs_has_every_weight() {
    let (page, source) = (read("docs/cost.md"), read("crates/layout/src/weights.rs"));
    let (_, table) = source.split_once("pub const WEIGHTS: Weights = Weights {").expect("the table");
    let weights: Vec<(&str, &str)> =
        table.lines().filter_map(|line| line.trim().strip_suffix(',')?.split_once(": ")).collect();
    assert_eq!(weights.len(), 11);
    for (name, value) in weights {
        assert!(page.contains(&format!("| `{name}` | {value} |")), "`{name}` = {value} is not on the page");
    }
}

/// The seed document's kernel: TileLang accepts its layouts and cannot lower them. Here the sparse threads have a
/// guard.
#[test]
fn the_seeds_sparse_read_has_a_guard() {
    let file = "kernels/src/plan_then_buffer_layout.rs";
    let first = 1 + read(file).lines().position(|line| line.contains("k.parallel(")).expect("a loop");
    for threads in [32, 64, 128, 192] {
        let entry = find("plan_then_buffer_layout").expect("the kernel");
        let config = entry.config(None, &[("threads".to_string(), threads)]).expect("a configuration");
        let artifact =
            compile((entry.build)(&config, Target::Sm100a), &Options::new(Target::Sm100a)).expect("it compiles");
        let layouts = artifact.stage(tilewright::compile::Stage::Layouts);
        assert!(layouts.contains("\n  guard: ") && layouts.contains("\n  from: fragment\n"), "{layouts}");
        let why = artifact.why("fragment").expect("the fragment");
        assert!(why.ends_with(&format!("\nfixed by: {file}:{first}, parallel i, j\n")), "{why}");
    }
}
