//! Reads files that a user names, or that anyone may have put where this project looks, and writes files whole.
//!
//! Only regular files are read, and only up to a stated size. An endless device, a FIFO that waits for a writer and a
//! folder are errors that name the file and what is expected instead.

mod error;
mod read;
mod write;

pub use error::{FileError, Problem};
pub use read::{MOST_BYTES, open, read, read_text};
pub use write::write;
