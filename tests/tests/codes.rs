//! Every diagnostic code has a section in the docs and a test that compares its rendered text.
//!
//! A code counts as tested if a rendered diagnostic is compared: with a snapshot named by a test, or with a string in a
//! unit test of the crates. A code that is only mentioned, or searched for in a longer text, does not count.

use std::collections::BTreeSet;
use std::path::Path;

use tilewright::diag::Severity;
use tilewright_tests::sources::{rust_files, rust_files_in, text_of};
use tilewright_tests::toolchain::{package, workspace};

/// `K0201`
fn is_code(word: &str) -> bool {
    let is_letter = |letter: char| "LKVPERI".contains(letter);
    word.len() == 5
        && word.strip_prefix(is_letter).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The codes of all diagnostics in the sources.
fn codes() -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for path in rust_files().iter().filter(|path| !path.starts_with(package())) {
        codes.extend(text_of(path).split('"').filter(|word| is_code(word)).map(str::to_string));
    }
    codes
}

/// The code in the first line of a rendered diagnostic: `error[K0201]: the message`.
fn rendered_code(line: &str) -> Option<&str> {
    let severities = [Severity::Error, Severity::Internal, Severity::Warning];
    let rest = severities.iter().find_map(|severity| line.strip_prefix(severity.name()))?;
    let (code, message) = rest.strip_prefix('[')?.split_once("]: ")?;
    (is_code(code) && !message.is_empty()).then_some(code)
}

/// The names of the snapshots of diagnostics, without extensions.
fn snapshots() -> Vec<String> {
    let files = std::fs::read_dir(package().join("snapshots/diagnostics")).expect("the snapshots").flatten();
    let names = files.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter_map(|name| name.strip_suffix(".snap").map(str::to_string)).collect()
}

/// Whether a test compares the snapshot with this name: the name occurs as a string, or it is the name of an edit
/// (`edited.rs`).
fn is_compared(name: &str, tests: &str) -> bool {
    let edit = name.strip_prefix("edited_").unwrap_or(name);
    [name, edit].iter().any(|name| tests.contains(&format!("\"{name}\"")))
}

/// The text of all integration tests.
fn integration_tests() -> String {
    rust_files_in(&package().join("tests")).iter().map(|path| text_of(path)).collect()
}

/// The codes of rendered diagnostics in snapshots that are compared.
fn in_snapshots() -> BTreeSet<String> {
    let tests = integration_tests();
    let mut found = BTreeSet::new();
    for name in snapshots().iter().filter(|name| is_compared(name, &tests)) {
        let text = text_of(&package().join(format!("snapshots/diagnostics/{name}.snap")));
        found.extend(text.lines().filter_map(rendered_code).map(str::to_string));
    }
    found
}

/// The part of a source file that is only built for tests; `path` is relative to the workspace.
fn test_code<'a>(path: &Path, text: &'a str) -> &'a str {
    let is_whole = path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests");
    let start = if is_whole { Some(0) } else { text.find("#[cfg(test)]") };
    start.map_or("", |start| &text[start..])
}

/// Whether the string that follows is searched for in another string rather than compared with it.
fn is_searched_for(before: &str) -> bool {
    before.ends_with("contains(") || before.ends_with("starts_with(")
}

/// The code of the rendered diagnostic that begins after the quotation mark at byte `mark`.
fn code_at(line: &str, mark: usize) -> Option<&str> {
    let text = line[mark + 1..].split('"').next()?;
    rendered_code(text).filter(|_| !is_searched_for(&line[..mark]))
}

/// The codes of rendered diagnostics in the strings of test code.
fn in_code(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let found = lines.flat_map(|line| line.match_indices('"').filter_map(move |(mark, _)| code_at(line, mark)));
    found.map(str::to_string).collect()
}

/// The codes of rendered diagnostics that unit tests compare.
fn in_unit_tests() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in rust_files_in(&workspace().join("crates")) {
        let text = text_of(&path);
        let inside = path.strip_prefix(workspace()).unwrap_or(&path);
        found.extend(in_code(test_code(inside, &text)));
    }
    found
}

#[test]
fn every_code_has_a_section_in_the_docs() {
    let page = text_of(&workspace().join("docs/diagnostics.md"));
    for code in codes() {
        assert!(page.contains(&format!("\n## {code}\n")), "{code} has no section in docs/diagnostics.md");
    }
}

#[test]
fn every_section_in_the_docs_is_of_a_code() {
    let page = text_of(&workspace().join("docs/diagnostics.md"));
    let codes = codes();
    for section in page.lines().filter_map(|line| line.strip_prefix("## ")).filter(|section| is_code(section)) {
        assert!(codes.contains(section), "docs/diagnostics.md has a section {section} without a diagnostic");
    }
}

#[test]
fn the_rendered_text_of_every_code_is_compared() {
    let (snapshots, unit_tests) = (in_snapshots(), in_unit_tests());
    for code in codes() {
        assert!(
            snapshots.contains(&code) || unit_tests.contains(&code),
            "no test compares the rendered text of {code}"
        );
    }
}

#[test]
fn no_snapshot_of_a_diagnostic_is_left_over() {
    let tests = integration_tests();
    for name in snapshots() {
        assert!(is_compared(&name, &tests), "no test compares snapshots/diagnostics/{name}.snap");
    }
}

#[test]
fn codes_that_are_mentioned_or_searched_for_do_not_count() {
    let of = |code: &str| BTreeSet::from([code.to_string()]);
    assert_eq!(in_code(r#"assert_eq!(said, "error[K0201]: `a` is taken");"#), of("K0201"));
    assert_eq!(in_code(r#"    ("internal error[V0302]: a store", |f, _| {"#), of("V0302"));
    for other in [
        r#"assert_eq!(finding.code, "K0201");"#,
        r#"assert!(said.contains("error[K0201]: `a` is taken"));"#,
        r#"assert!(said.starts_with("error[K0201]: `a`"));"#,
        r#"assert_eq!(said, "error[K0201]: ");"#,
        r#"assert_eq!(said, "see [K0201]: it is taken");"#,
        r#"// assert_eq!(said, "error[K0201]: `a` is taken");"#,
    ] {
        assert!(in_code(other).is_empty(), "{other}");
    }
}
