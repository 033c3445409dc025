use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// Writes a file under a temporary name in its folder and renames it, so that a reader sees a whole file or none, and a
/// failure loses nothing. The file has the mode of an ordinary new file: on Unix, 0666 less the umask.
///
/// # Errors
///
/// The operating system's, without a name: the temporary one means nothing to the user.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // `NamedTempFile::new_in` would create it with mode 0600, which the renamed file keeps.
    let create = |aside: &Path| OpenOptions::new().write(true).create_new(true).open(aside);
    let mut aside = tempfile::Builder::new().make_in(folder, create)?;
    aside.write_all(bytes).map_err(|error| io::Error::from(error.kind()))?;
    aside.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write(&path, b"the first").unwrap();
        write(&path, b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_error_does_not_show_the_temporary_name() {
        let folder = tempfile::tempdir().unwrap();
        let error = write(&folder.path().join("missing/a.txt"), b"").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!error.to_string().contains("tmp"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_has_the_mode_of_an_ordinary_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let [ours, ordinary] = ["ours", "ordinary"].map(|name| folder.path().join(name));
        write(&ours, b"").unwrap();
        // The umask of this process decides.
        std::fs::write(&ordinary, b"").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&ordinary));
    }
}
