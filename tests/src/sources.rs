//! The Rust sources of the workspace, for tests that read them.

use std::path::{Path, PathBuf};

use crate::toolchain::workspace;

/// The Rust files in a folder and its subfolders, except build folders.
pub fn rust_files_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            found.extend(rust_files_in(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The Rust files of all packages.
pub fn rust_files() -> Vec<PathBuf> {
    ["crates", "kernels", "tests", "xtask"].iter().flat_map(|folder| rust_files_in(&workspace().join(folder))).collect()
}

/// The text of a file.
///
/// # Panics
///
/// If it cannot be read.
pub fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
