//! The PTX of all fixtures against the decode table: no kernel has an instruction that is not supported.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tilewright::vgpu::{Module, instructions};
use tilewright_tests::toolchain::package;

/// The PTX files below a folder.
fn ptx_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            ptx_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            found.push(path);
        }
    }
}

/// The opcodes of a text, with their modifiers.
fn opcodes(text: &str) -> BTreeSet<String> {
    let statements = text.lines().map(str::trim).filter(|line| line.ends_with(';') && !line.starts_with('.'));
    let opcode = |line: &str| {
        let rest = if line.starts_with('@') { line.split_once(char::is_whitespace)?.1 } else { line };
        rest.trim_start_matches('{').split([' ', '\t', ';']).find(|word| !word.is_empty()).map(str::to_string)
    };
    statements.filter_map(opcode).filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect()
}

#[test]
fn no_fixture_has_an_instruction_that_is_not_supported() {
    let mut files = Vec::new();
    ptx_files(&package().join("fixtures"), &mut files);
    let known: BTreeSet<&str> = instructions().into_iter().map(|instruction| instruction.name).collect();
    let (mut kernels, mut all) = (0, BTreeSet::new());
    for file in &files {
        let text = std::fs::read_to_string(file).expect("it is read");
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for kernel in module.kernels() {
            let found = module.unsupported(&kernel.name).expect("the kernel is there");
            assert!(found.is_empty(), "{}: {found:?}", file.display());
            kernels += 1;
        }
        all.extend(opcodes(&text));
    }
    let is_known = |opcode: &String| {
        let parts: Vec<&str> = opcode.split('.').collect();
        (1..=parts.len()).any(|length| known.contains(parts[..length].join(".").as_str()))
    };
    let missing: Vec<&String> = all.iter().filter(|opcode| !is_known(opcode)).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
    println!("{} files, {kernels} kernels, {} opcodes", files.len(), all.len());
    assert!(kernels >= 60 && all.len() >= 150, "{kernels} kernels, {} opcodes", all.len());
}
