//! The outputs shown in the README and the book are up to date.

use std::path::{Path, PathBuf};
use std::process::Command;

use tilewright::compile::{Options, compile};
use tilewright::layout::TileLayout;
use tilewright::layout::axis::M;
use tilewright::prelude::Target;
use tilewright::runtime::{CudaText, Device, counted_instructions, op_traffic, run};
use tilewright_kernels::find;
use tilewright_tests::toolchain::{offline, workspace};

fn page(path: &str) -> String {
    std::fs::read_to_string(workspace().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The text of the first fenced block with this opening line.
fn block(page: &str, opening: &str) -> String {
    let (_, rest) = page.split_once(&format!("```{opening}\n")).unwrap_or_else(|| panic!("no block {opening}"));
    rest.split_once("```").expect("the block ends").0.to_string()
}

#[test]
fn the_cuda_of_the_readme_is_what_the_compiler_prints() {
    let entry = find("sf_transpose_global").expect("the kernel");
    let config = entry.config(None, &[]).expect("its defaults");
    let artifact = compile((entry.build)(&config, Target::Sm100a), &Options::new(Target::Sm100a)).expect("it compiles");
    assert_eq!(block(&page("README.md"), "cuda"), artifact.cuda());
}

#[test]
fn the_kernel_of_the_readme_has_at_most_20_lines() {
    assert!(block(&page("README.md"), "rust").lines().count() <= 20);
}

#[test]
fn the_layout_of_the_readme_is_drawn_right() {
    let text = "S[(4,8):(1@m,4@m)]";
    assert!(page("README.md").contains(&format!("Layout {text}:")));
    let positions = text.parse::<TileLayout>().expect("a layout").positions(&M);
    let rows: Vec<String> = positions.chunks(8).map(|row| row.iter().map(|p| format!("{p:>3}")).collect()).collect();
    assert_eq!(block(&page("README.md"), "text"), rows.join("\n") + "\n");
}

/// Uses committed PTX, so that the numbers are the same on every machine.
#[test]
fn the_running_page_shows_what_is_said_of_a_run() {
    let entry = find("sf_transpose").expect("the kernel");
    let config = entry.config(None, &[]).expect("its defaults");
    let artifact = compile((entry.build)(&config, Target::Sm100a), &Options::new(Target::Sm100a)).expect("it compiles");
    let built = offline().build(&artifact, &CudaText::Generated).expect("committed PTX");
    let run = run(&artifact, &built, &(entry.inputs)(&config), &Device::Virtual).expect("it runs");
    let (report, resources) = (run.report.expect("counts"), built.resources.expect("what NVRTC said"));
    let traffic = op_traffic(&artifact, &report).expect("what the plans predict");
    let mut said: Vec<String> = traffic.iter().map(|op| format!("checked    {op}")).collect();
    let (counted, threads) = (counted_instructions(&report), report.thread_instructions);
    said.push(format!("executed   {counted} warp instructions, {threads} thread instructions"));
    let (registers, stack, shared) = (resources.registers, resources.stack_bytes, resources.shared_bytes);
    said.push(format!("registers  {registers}, 0 spills, {stack} bytes stack, {shared} bytes shared"));
    let page = page("docs/running.md");
    let shown = block(&page, "console");
    let is_counted = |line: &&str| ["checked ", "executed ", "registers "].iter().any(|word| line.starts_with(word));
    let lines: Vec<&str> = shown.lines().filter(is_counted).collect();
    assert_eq!(lines.len(), 4);
    for line in lines {
        assert!(said.iter().any(|said| said == line), "shown: {line}\nsaid: {said:#?}");
    }
}

#[test]
fn pages_show_mistakes_in_edited_text_as_they_are_told() {
    for (path, name) in [
        ("docs/running.md", "edited_no_syncwarp"),
        ("docs/diagnostics.md", "edited_does_not_compile"),
        ("docs/diagnostics.md", "edited_past_the_end"),
    ] {
        let snapshot = page(&format!("tests/snapshots/diagnostics/{name}.snap"));
        let told = snapshot.splitn(3, "---\n").nth(2).expect("a snapshot has a head").trim_end();
        assert!(page(path).contains(&format!("```text\n{told}\n```\n")), "{path} does not show\n{told}");
    }
}

/// The two commands in the README are those of the alias and of CI.
#[test]
fn ci_runs_the_readmes_test_command() {
    let commands = block(&page("README.md"), "console");
    let test = commands
        .lines()
        .filter_map(|line| line.strip_prefix("$ "))
        .find(|line| line.contains("test"))
        .expect("a test command");
    assert!(page(".ci/run").contains(test), ".ci/run does not call `{test}`");
}

/// Builds and tests the crate of `docs/testing.md` outside of the workspace: without optimization, which would take longer than
/// its tests save, and with what the workspace has already built of other packages.
#[test]
fn a_users_own_crate_is_tested_as_the_book_says() {
    let page = page("docs/testing.md");
    let folder = tempfile::tempdir().expect("a folder");
    for (language, file) in [("toml", "Cargo.toml"), ("rust,ignore", "src/lib.rs"), ("rust,ignore", "tests/kernel.rs")]
    {
        let text = block(&page, &format!("{language},file={file}"));
        write(folder.path(), file, &text.replace("PATH_TO_TILEWRIGHT", &workspace().display().to_string()));
    }
    // The workspace's lock file pins versions that are already fetched, so no network is needed.
    write(folder.path(), "Cargo.lock", &std::fs::read_to_string(workspace().join("Cargo.lock")).expect("a lock file"));
    // As in the workspace's profile, unless the environment says otherwise for both.
    let debug = std::env::var("CARGO_PROFILE_DEV_DEBUG").unwrap_or_else(|_| "line-tables-only".to_string());
    let output = Command::new(env!("CARGO"))
        .args(["test", "--offline", "--quiet", "--config", "profile.dev.package.'*'.opt-level=0"])
        .env("CARGO_PROFILE_DEV_DEBUG", debug)
        .current_dir(folder.path())
        .env("CARGO_TARGET_DIR", target_folder())
        .env("INSTA_UPDATE", "no")
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("2 passed"), "{said}");
}

/// The folder in which this test was built: its program is in `debug/deps`.
fn target_folder() -> PathBuf {
    let program = std::env::current_exe().expect("this program has a path");
    program.ancestors().nth(3).expect("a folder of builds").to_path_buf()
}

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
    std::fs::write(path, text).expect("a file can be written");
}
