//! Checks that no text of the project contains a phrase that `docs/style.md` excludes.

use std::path::{Path, PathBuf};

use tilewright_tests::toolchain::workspace;

/// The page with the list, which is not searched, since it contains the phrases.
const PAGE: &str = "docs/style.md";
/// The folders that are searched.
const FOLDERS: [&str; 6] = ["crates", "docs", "kernels", "tests/src", "tests/tests", "xtask"];

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The phrases in the left column of the last table.
fn phrases(page: &str) -> Vec<&str> {
    let (_, list) = page.split_once("\n## Phrases\n").expect("the list of phrases");
    list.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |")).map(|(phrase, _)| phrase).collect()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| ["rs", "md", "tera", "js"].iter().any(|known| extension == *known))
        {
            found.push(path);
        }
    }
}

/// A text without line breaks, since a phrase may continue on the next line of a comment.
fn unwrapped(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim().trim_start_matches(['/', '!']).trim());
    lines.collect::<Vec<_>>().join(" ").to_lowercase()
}

#[test]
fn no_text_has_a_phrase_that_the_page_rules_out() {
    let page = read(&workspace().join(PAGE));
    let phrases = phrases(&page);
    assert!(phrases.len() >= 12, "{}", phrases.len());
    let mut all = Vec::new();
    FOLDERS.iter().for_each(|folder| files(&workspace().join(folder), &mut all));
    let mut wrong = Vec::new();
    for path in all.iter().filter(|path| !path.ends_with(PAGE)) {
        let text = unwrapped(&read(path));
        let found = phrases.iter().filter(|phrase| text.contains(**phrase));
        wrong.extend(found.map(|phrase| format!("{}: {phrase}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_phrase_is_found_over_the_end_of_a_line() {
    assert!(unwrapped("/// one\n    /// phrase").contains("one phrase"));
}
