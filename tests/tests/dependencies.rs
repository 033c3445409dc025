//! Checks the dependency table of `docs/architecture.md` against `cargo metadata` and the sources, and the features of dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};
use tilewright_tests::sources::{rust_files_in, text_of};
use tilewright_tests::toolchain::workspace;

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(workspace().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata answers")
}

/// The short name of a package: its folder.
fn short(package: &str) -> &str {
    package.strip_prefix("tilewright-").unwrap_or(package)
}

/// Rows `| `name` | text | `a`, `b` |` of the table: a crate and its allowed dependencies.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let page = std::fs::read_to_string(workspace().join("docs/architecture.md")).expect("the page is there");
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_string).collect::<Vec<_>>();
    page.lines()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
            let [name, _, uses] = cells[..] else { return None };
            Some((names(name).into_iter().next()?, names(uses).into_iter().collect()))
        })
        .collect()
}

/// The crates that a crate may use, directly or transitively.
fn reach(table: &BTreeMap<String, BTreeSet<String>>, name: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<String> = table.get(name).into_iter().flatten().cloned().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next.clone()) {
            open.extend(table.get(&next).into_iter().flatten().cloned());
        }
    }
    reached
}

#[test]
fn every_package_has_a_row_and_uses_only_what_its_row_allows() {
    let (metadata, table) = (metadata(), table());
    let packages: BTreeSet<String> = metadata.packages.iter().map(|p| short(&p.name).to_string()).collect();
    assert_eq!(packages, table.keys().cloned().collect(), "packages differ from rows");
    for package in &metadata.packages {
        let name = short(&package.name);
        let allowed = reach(&table, name);
        let used = package
            .dependencies
            .iter()
            .filter(|d| d.kind == DependencyKind::Normal)
            .map(|d| short(&d.name).to_string());
        for dependency in used.filter(|d| packages.contains(d)) {
            assert!(allowed.contains(&dependency), "`{name}` uses `{dependency}`, which is not in its row");
        }
    }
}

#[test]
fn the_table_has_no_cycle() {
    let table = table();
    for name in table.keys() {
        assert!(!reach(&table, name).contains(name), "`{name}` would use itself");
    }
}

#[test]
fn some_packages_are_used_by_one_crate_only() {
    let owners = [("egg", "expr"), ("petgraph", "infer"), ("cudarc", "cuda"), ("libloading", "cuda"), ("tera", "emit")];
    for package in &metadata().packages {
        for dependency in &package.dependencies {
            if let Some((name, owner)) = owners.iter().find(|(name, _)| *name == dependency.name) {
                let user = short(&package.name);
                let also = *name == "tera" && user == "viz";
                assert!(user == *owner || also, "`{user}` uses {name}, which only `{owner}` may");
            }
        }
    }
}

/// The workspace's lints forbid `unsafe` in every crate that inherits them; only `cuda` does not.
#[test]
fn every_crate_but_cuda_inherits_the_lints_that_forbid_unsafe() {
    for package in &metadata().packages {
        let manifest = std::fs::read_to_string(&package.manifest_path).expect("a manifest");
        let inherits = manifest.contains("[lints]\nworkspace = true");
        assert_eq!(inherits, short(&package.name) != "cuda", "{}", package.name);
    }
}

#[test]
fn libraries_do_not_print_exit_or_skip_tests() {
    let forbidden = ["println!(", "eprintln!(", "print!(", "process::exit", "#[ignore", "todo!(", "unimplemented!("];
    let files = rust_files_in(&workspace().join("crates"));
    for path in files.iter().filter(|path| path.to_string_lossy().contains("/src/")) {
        let text = text_of(path);
        for word in forbidden {
            let lines = text.lines().filter(|line| line.contains(word) && !line.trim_start().starts_with("//"));
            assert_eq!(lines.count(), 0, "{} contains `{word}`", path.display());
        }
    }
}

/// The crates of the compiler: the builder, the pipeline, and everything that the pipeline may use.
fn compiler() -> BTreeSet<String> {
    let mut crates = reach(&table(), "compile");
    crates.extend(["compile", "dsl"].map(str::to_string));
    crates
}

/// The compiler reads no files, environment or clock: the same kernel gives the same bytes everywhere.
#[test]
fn the_compiler_looks_at_nothing_but_the_kernel() {
    let forbidden = ["std::fs", "std::env", "std::net", "std::process", "Instant::", "SystemTime", "std::thread"];
    for name in compiler() {
        let files = rust_files_in(&workspace().join("crates").join(&name).join("src"));
        assert!(!files.is_empty(), "`{name}` has no sources");
        for path in files {
            let text = text_of(&path);
            for word in forbidden {
                assert!(!text.contains(word), "{} contains `{word}`", path.display());
            }
        }
    }
}

/// The packages that a command of cargo builds for this machine, with their features.
fn features(selection: &[&str]) -> BTreeSet<String> {
    let listed = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--prefix", "none", "--no-dedupe", "--format", "{p}: {f}"])
        .args(selection)
        .current_dir(workspace())
        .output()
        .expect("cargo runs");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    String::from_utf8_lossy(&listed.stdout).lines().map(str::to_string).collect()
}

#[test]
fn xtask_and_the_tests_share_what_they_build() {
    let tests = features(&["--workspace", "--edges", "normal,build,dev"]);
    let xtask = features(&["--package", "xtask", "--edges", "normal,build"]);
    let rebuilt: Vec<&String> = xtask.difference(&tests).collect();
    assert!(xtask.len() > 50 && rebuilt.is_empty(), "give xtask the features that tests give: {rebuilt:#?}");
}
