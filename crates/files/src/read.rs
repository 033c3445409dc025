use std::fs::{File, FileType};
use std::io::Read;
use std::path::Path;

use crate::error::{FileError, Problem};

/// The size limit of text files, in bytes: 64 MiB.
pub const MOST_BYTES: u64 = 64 << 20;

/// Opens a regular file of at most `most` bytes.
///
/// # Errors
///
/// [`FileError`] for anything else, without opening it: opening a FIFO would wait for a writer.
pub fn open(path: &Path, most: u64) -> Result<File, FileError> {
    named(path, open_regular(path, most))
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
///
/// [`FileError`] for anything else, and if reading fails.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    named(path, read_regular(path, most))
}

/// Reads a regular file of at most [`MOST_BYTES`] as text.
///
/// # Errors
///
/// [`FileError`] for anything else, if reading fails, and for bytes that are not UTF-8.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    let text =
        |bytes| String::from_utf8(bytes).map_err(|error| Problem::NotText { at: error.utf8_error().valid_up_to() });
    named(path, read_regular(path, MOST_BYTES).and_then(text))
}

fn named<T>(path: &Path, result: Result<T, Problem>) -> Result<T, FileError> {
    result.map_err(|problem| FileError { path: path.to_path_buf(), problem })
}

fn open_regular(path: &Path, most: u64) -> Result<File, Problem> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(Problem::NotRegular { what: name_of(metadata.file_type()), most });
    }
    if metadata.len() > most {
        return Err(Problem::TooLong { most });
    }
    Ok(File::open(path)?)
}

/// Does not trust the reported length: a file may grow while it is read, and files in `/proc` report none.
fn read_regular(path: &Path, most: u64) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    open_regular(path, most)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(Problem::TooLong { most }) } else { Ok(bytes) }
}

/// What a file is, if it is not a regular file.
fn name_of(kind: FileType) -> &'static str {
    if kind.is_dir() { "a folder" } else { special(kind) }
}

#[cfg(unix)]
fn special(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_char_device() {
        "a character device"
    } else if kind.is_block_device() {
        "a block device"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "not a regular file"
    }
}

#[cfg(not(unix))]
fn special(_: FileType) -> &'static str {
    "not a regular file"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_file_of_exactly_the_limit_is_read_and_a_longer_one_is_not() {
        let folder = folder();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read(&path, 4), Ok(b"four".to_vec()));
        assert_eq!(read(&path, 3).unwrap_err().problem, Problem::TooLong { most: 3 });
        assert_eq!(open(&path, 3).unwrap_err().problem, Problem::TooLong { most: 3 });
        assert_eq!(read_text(&path), Ok("four".to_string()));
    }

    #[test]
    fn what_is_not_there_and_what_is_no_text_are_told() {
        let folder = folder();
        let path = folder.path().join("a.txt");
        assert!(read_text(&path).unwrap_err().is_missing());
        std::fs::write(&path, b"text\xff").unwrap();
        assert_eq!(read_text(&path).unwrap_err().problem, Problem::NotText { at: 4 });
    }

    #[test]
    fn a_folder_is_no_file() {
        let folder = folder();
        let error = read(folder.path(), 10).unwrap_err();
        assert_eq!(error.problem, Problem::NotRegular { what: "a folder", most: 10 });
        assert!(!error.is_missing());
    }

    /// Reading one of these would never end.
    #[cfg(unix)]
    #[test]
    fn a_device_and_a_fifo_are_not_opened() {
        let folder = folder();
        let fifo = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        for (path, what) in [(Path::new("/dev/zero"), "a character device"), (fifo.as_path(), "a FIFO")] {
            let problem = Problem::NotRegular { what, most: MOST_BYTES };
            assert_eq!(read_text(path).unwrap_err().problem, problem);
            assert_eq!(open(path, MOST_BYTES).unwrap_err().problem, problem);
        }
    }

    /// Such a file reports no length, but is read all the same.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_tells_no_length_is_read_up_to_the_limit() {
        let path = Path::new("/proc/self/maps");
        assert!(read_text(path).is_ok_and(|text| !text.is_empty()));
        assert_eq!(read(path, 1).unwrap_err().problem, Problem::TooLong { most: 1 });
    }
}
