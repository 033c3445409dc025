//! Writes files under a temporary name and renames them, so that a failure loses nothing.

use std::io::Write;
use std::path::Path;

pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut aside = tempfile::NamedTempFile::new_in(folder).map_err(|e| failed(&e))?;
    aside.write_all(text.as_bytes()).map_err(|e| failed(&e))?;
    aside.persist(path).map_err(|e| failed(&e.error))?;
    Ok(())
}
