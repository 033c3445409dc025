use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

impl FileError {
    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self.problem, Problem::System { kind: io::ErrorKind::NotFound, .. })
    }
}

impl std::error::Error for FileError {}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read {}: {}", self.path.display(), self.problem)
    }
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The operating system failed to open or read it.
    System {
        /// The kind of the failure.
        kind: io::ErrorKind,
        /// The operating system's message.
        reason: String,
    },
    /// It is not a regular file.
    NotRegular {
        /// What it is, such as `a FIFO`.
        what: &'static str,
        /// The size limit, in bytes.
        most: u64,
    },
    /// It is longer than the limit.
    TooLong {
        /// The size limit, in bytes.
        most: u64,
    },
    /// It is not text.
    NotText {
        /// The first byte that is not UTF-8, counted from 0.
        at: usize,
    },
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem::System { kind: error.kind(), reason: error.to_string() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::System { reason, .. } => f.write_str(reason),
            Problem::NotRegular { what, most } => write!(f, "it is {what}; {}", Accepted(*most)),
            Problem::TooLong { most } => write!(f, "it is too long; {}", Accepted(*most)),
            Problem::NotText { at } => write!(f, "byte {at} is not UTF-8; text in UTF-8 is expected"),
        }
    }
}

/// Displays which files are accepted; the number is the size limit in bytes.
struct Accepted(u64);

impl fmt::Display for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: u64 = 1 << 20;
        f.write_str("a regular file of at most ")?;
        match self.0 {
            most if most.is_multiple_of(MIB) => write!(f, "{} MiB is expected", most / MIB),
            most => write!(f, "{most} bytes is expected"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(problem: Problem) -> String {
        FileError { path: PathBuf::from("a.txt"), problem }.to_string()
    }

    #[test]
    fn an_error_names_the_file_and_what_is_read() {
        let texts = [
            text(Problem::NotRegular { what: "a folder", most: 64 << 20 }),
            text(Problem::TooLong { most: 100 }),
            text(Problem::NotText { at: 7 }),
        ];
        let expected = [
            "cannot read a.txt: it is a folder; a regular file of at most 64 MiB is expected",
            "cannot read a.txt: it is too long; a regular file of at most 100 bytes is expected",
            "cannot read a.txt: byte 7 is not UTF-8; text in UTF-8 is expected",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn only_a_file_that_is_not_there_is_missing() {
        let is_missing = |kind: io::ErrorKind| {
            FileError { path: PathBuf::from("a.txt"), problem: io::Error::from(kind).into() }.is_missing()
        };
        assert!(is_missing(io::ErrorKind::NotFound) && !is_missing(io::ErrorKind::PermissionDenied));
    }
}
