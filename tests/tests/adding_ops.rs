//! The excerpts of sources in `docs/add-a-tile-op.md` are up to date, and its op needs changes only in the files it
//! lists.

use std::collections::BTreeSet;
use std::path::Path;

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright_tests::toolchain::workspace;

/// The names by which code refers to the op of the page.
const NAMED: &str = "OpKind::Atomic(";

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn page(name: &str) -> String {
    read(&workspace().join("docs").join(name))
}

/// The blocks of a page that are copied from a file: the file's path and the lines.
fn excerpts(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(path) = line.strip_prefix("```rust,ignore,file:") {
            found.push((path, lines.by_ref().take_while(|line| *line != "```").collect()));
        }
    }
    found
}

/// Lines without their common indentation.
fn dedented<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let indents = lines.iter().filter(|line| !line.is_empty()).map(|line| line.len() - line.trim_start().len());
    let common = indents.min().unwrap_or(0);
    lines.iter().copied().map(|line| line.get(common..).unwrap_or_default()).collect()
}

/// Whether the lines occur consecutively in a source, at any indentation.
fn stands_in(source: &str, excerpt: &[&str]) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    lines.windows(excerpt.len()).any(|window| dedented(window) == dedented(excerpt))
}

/// The files of a page's table, whose rows begin with their paths.
fn listed(page: &str) -> BTreeSet<String> {
    let row = |line: &str| line.strip_prefix("| `crates/")?.split_once('`').map(|(path, _)| format!("crates/{path}"));
    page.lines().filter_map(row).collect()
}

/// The files under a folder of the workspace that name the op.
fn naming(folder: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(workspace().join(folder)).into_iter().flatten().flatten() {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            found.append(&mut naming(&path));
        } else if path.ends_with(".rs") && read(&entry.path()).contains(NAMED) {
            found.insert(path);
        }
    }
    found
}

#[test]
fn the_code_of_the_page_stands_in_the_files_that_it_names() {
    for (name, least) in [("add-a-tile-op.md", 5), ("add-an-instruction.md", 2)] {
        let page = page(name);
        let excerpts = excerpts(&page);
        assert!(excerpts.len() >= least, "{name}: {}", excerpts.len());
        for (path, excerpt) in excerpts {
            assert!(!excerpt.is_empty(), "empty block of {path}");
            let source = read(&workspace().join(path));
            assert!(stands_in(&source, &excerpt), "{path} does not contain\n{}", excerpt.join("\n"));
        }
    }
}

/// Such an op requires no change in other files of the compiler.
#[test]
fn the_files_of_the_page_are_those_that_know_the_op() {
    let listed = listed(&page("add-a-tile-op.md"));
    assert_eq!(listed, naming("crates"));
    assert!(listed.len() <= 5, "{listed:?}");
}

#[test]
fn lines_are_compared_at_any_indentation() {
    let source = "fn f() {\n    if x {\n        y();\n    }\n}\n";
    assert!(stands_in(source, &["if x {", "    y();", "}"]));
    assert!(!stands_in(source, &["if x {", "y();", "}"]));
    assert!(!stands_in(source, &["if x {", "    z();", "}"]));
}

/// The kernel of the page, with a requested variant.
fn added(variant: &'static str) -> Kernel {
    kernel("added", |k| {
        let x = k.input("x", F32, [64]);
        let y = k.output("y", F32, [64]);
        k.threads(64);
        let totals = k.shared("totals", F32, [64]);
        let held = k.fragment("held", F32, [64]);
        k.fill(totals, 1.0);
        k.copy(held, x);
        k.atomic_add(totals, held).name("sums").variant(variant);
        k.copy(y, totals);
    })
}

#[test]
fn an_op_of_one_variant_takes_a_name_and_a_variant() {
    let options = Options::new(Target::Sm100a);
    let artifact = compile(added("elements"), &options).expect("it has this variant");
    let plan = &artifact.plans()[2];
    let expected = ("sums: atomic_add(totals, held)", "elements", true);
    assert_eq!((plan.title.as_str(), plan.chosen, plan.forced), expected);
    let error = &compile(added("fast"), &options).expect_err("it has no such variant")[0];
    assert_eq!((error.code, error.message.as_str()), ("P0401", "`atomic_add` has no variant `fast`"));
}
