//! Keeps the total size of a cache's entries below a limit: the least recently used are removed first.
//!
//! The time of an entry's last use is its file's modification time. Several processes may trim a folder at the
//! same time, so files may vanish; what fails here is left to the next trim.

use std::fs::{self, DirEntry, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The suffix of an entry's file name.
pub(super) const ENTRY: &str = ".kernel";

/// The prefix of the name of a file that is being written. It is the default of `tempfile`, which this cache once used.
pub(super) const ASIDE: &str = ".tmp";

/// No write takes this long: an older temporary file was left by a process that was killed.
const LONGEST_WRITE: Duration = Duration::from_secs(24 * 60 * 60);

/// A file of the folder.
struct Stored {
    path: PathBuf,
    name: String,
    bytes: u64,
    /// When it was last used: its modification time.
    used: SystemTime,
}

/// Marks an entry as used. If that fails, it is only removed earlier than it should be.
pub(super) fn mark_used(path: &Path, now: SystemTime) {
    let _ = File::options().write(true).open(path).and_then(|file| file.set_modified(now));
}

/// Removes entries, but never `written`, until the rest take at most `most_bytes`; also files left by killed processes.
pub(super) fn trim(dir: &Path, most_bytes: u64, written: &Path, now: SystemTime) {
    let files = stored(dir);
    for file in files.iter().filter(|file| file.name.starts_with(ASIDE) && file.is_left_over(now)) {
        let _ = fs::remove_file(&file.path);
    }
    let mut entries: Vec<&Stored> = files.iter().filter(|file| file.name.ends_with(ENTRY)).collect();
    entries.sort_by(|a, b| (a.used, &a.name).cmp(&(b.used, &b.name)));
    let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    for entry in entries.iter().filter(|entry| entry.path != written) {
        if total <= most_bytes {
            return;
        }
        if is_gone(&entry.path) {
            total -= entry.bytes;
        }
    }
}

/// Removes a file. Also true if another process has removed it first.
fn is_gone(path: &Path) -> bool {
    match fs::remove_file(path) {
        Ok(()) => true,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// The regular files of a folder. Files that vanish meanwhile are left out.
fn stored(dir: &Path) -> Vec<Stored> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| Stored::of(&entry)).collect()
}

impl Stored {
    fn of(entry: &DirEntry) -> Option<Stored> {
        let metadata = entry.metadata().ok().filter(|metadata| metadata.is_file())?;
        Some(Stored {
            path: entry.path(),
            name: entry.file_name().to_string_lossy().into_owned(),
            bytes: metadata.len(),
            used: metadata.modified().ok()?,
        })
    }

    /// Whether a killed process left it. A file dated in the future has no age: the clock may have been set back.
    fn is_left_over(&self, now: SystemTime) -> bool {
        now.duration_since(self.used).is_ok_and(|age| age > LONGEST_WRITE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The current time in all of these tests.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
    }

    /// A file of 10 bytes that was used some hours ago.
    fn store(dir: &Path, name: &str, hours: u64) -> PathBuf {
        let path = dir.join(name);
        fs::write(&path, [0u8; 10]).unwrap();
        mark_used(&path, now() - Duration::from_secs(hours * 60 * 60));
        path
    }

    fn left(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = stored(dir).into_iter().map(|file| file.name).collect();
        names.sort();
        names
    }

    #[test]
    fn the_entries_not_used_for_the_longest_time_go_first() {
        let folder = tempfile::tempdir().unwrap();
        for (name, hours) in [("a.kernel", 2), ("b.kernel", 9), ("c.kernel", 5), ("d.kernel", 100)] {
            store(folder.path(), name, hours);
        }
        let written = store(folder.path(), "new.kernel", 0);
        trim(folder.path(), 30, &written, now());
        assert_eq!(left(folder.path()), ["a.kernel", "c.kernel", "new.kernel"]);
    }

    #[test]
    fn nothing_goes_where_all_fit() {
        let folder = tempfile::tempdir().unwrap();
        let written = store(folder.path(), "a.kernel", 50);
        store(folder.path(), "b.kernel", 60);
        trim(folder.path(), 20, &written, now());
        assert_eq!(left(folder.path()), ["a.kernel", "b.kernel"]);
    }

    /// Its time may be the oldest: the clocks of machines that share a folder differ.
    #[test]
    fn the_entry_that_was_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let written = store(folder.path(), "a.kernel", 500);
        store(folder.path(), "b.kernel", 0);
        trim(folder.path(), 0, &written, now());
        assert_eq!(left(folder.path()), ["a.kernel"]);
    }

    #[test]
    fn of_files_written_aside_those_older_than_a_day_go() {
        let folder = tempfile::tempdir().unwrap();
        for (name, hours) in [(".tmpold", 25), (".tmpnew", 24), ("notes.txt", 1000)] {
            store(folder.path(), name, hours);
        }
        fs::create_dir(folder.path().join(".tmpfolder")).unwrap();
        let written = store(folder.path(), "a.kernel", 0);
        trim(folder.path(), 0, &written, now());
        assert_eq!(left(folder.path()), [".tmpnew", "a.kernel", "notes.txt"]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent");
        trim(&absent, 0, &absent.join("a.kernel"), now());
        assert!(!absent.exists());
    }

    /// Two processes that trim at the same time both remove it.
    #[test]
    fn an_entry_that_another_process_removed_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = store(folder.path(), "a.kernel", 0);
        assert_eq!((is_gone(&path), is_gone(&path), is_gone(folder.path())), (true, true, false));
    }
}
