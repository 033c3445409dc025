//! What the README and the book show is what comes out.

use std::path::Path;
use std::process::Command;

use tilewright::compile::{Options, compile};
use tilewright::layout::TileLayout;
use tilewright::layout::axis::M;
use tilewright::prelude::Target;
use tilewright_kernels::find;
use tilewright_tests::toolchain::workspace;

fn page(path: &str) -> String {
    std::fs::read_to_string(workspace().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The text of the first fenced block whose opening line is this.
fn block(page: &str, opening: &str) -> String {
    let (_, rest) = page.split_once(&format!("```{opening}\n")).unwrap_or_else(|| panic!("no block {opening}"));
    rest.split_once("```").expect("the block ends").0.to_string()
}

#[test]
fn the_cuda_of_the_readme_is_what_the_compiler_prints() {
    let entry = find("sf_transpose_global").expect("the kernel");
    let config = entry.config(None, &[]).expect("its defaults");
    let artifact = compile((entry.build)(&config), &Options::new(Target::Sm100a)).expect("it compiles");
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

/// The two commands that the README promises are those of the alias and of CI.
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

/// The crate of `docs/testing.md`, built outside the workspace and tested there.
#[test]
fn a_users_own_crate_is_tested_as_the_book_says() {
    let page = page("docs/testing.md");
    let folder = tempfile::tempdir().expect("a folder");
    for (language, file) in [("toml", "Cargo.toml"), ("rust,ignore", "src/lib.rs"), ("rust,ignore", "tests/kernel.rs")]
    {
        let text = block(&page, &format!("{language},file={file}"));
        write(folder.path(), file, &text.replace("PATH_TO_TILEWRIGHT", &workspace().display().to_string()));
    }
    // The workspace's lock file pins what is already fetched, so no network is needed.
    write(folder.path(), "Cargo.lock", &std::fs::read_to_string(workspace().join("Cargo.lock")).expect("a lock file"));
    let output = Command::new(env!("CARGO"))
        .args(["test", "--offline", "--quiet"])
        .current_dir(folder.path())
        .env("CARGO_TARGET_DIR", workspace().join("target/users-crate"))
        .env("INSTA_UPDATE", "no")
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("2 passed"), "{said}");
}

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
    std::fs::write(path, text).expect("a file can be written");
}
