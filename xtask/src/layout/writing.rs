//! Writes the files that the user names.

use std::path::Path;

use super::failure::Failure;

pub(super) fn write(option: &str, path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let why = if folder.exists() { "is not a folder" } else { "does not exist" };
        let (path, folder) = (path.display(), folder.display());
        return Err(Failure::Request(format!("{option} {path}: the folder {folder} {why}")));
    }
    tilewright::files::write(path, text.as_bytes())
        .map_err(|error| Failure::File(format!("{option} {}: {error}", path.display())))
}
