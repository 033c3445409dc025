//! Checks whether a file can safely be passed to the dynamic loader.
//!
//! The loader maps a library according to its program headers, without checking the length of the file. If the file is
//! cut short, it maps pages past the end of the file, and the first access to such a page kills the process (SIGBUS).
//! So a file is checked before it is opened.

use crate::elf::{self, HEADER_BYTES, MAGIC, Table};
use std::env::consts::ARCH;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The size limit of a library that is opened, in bytes.
const MOST_BYTES: u64 = 4 << 30;

/// Byte offsets inside an ELF header.
const CLASS: usize = 4;
const BYTE_ORDER: usize = 5;
const KIND: usize = 16;
const MACHINE: usize = 18;

/// The kind of a shared library (`ET_DYN`).
const SHARED: u64 = 3;

/// The machines for which there is an NVRTC: their numbers in ELF, and their names in Rust.
const MACHINES: [(u64, &str); 2] = [(62, "x86_64"), (183, "aarch64")];

/// Why a file is not passed to the loader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// It is not a library for this machine: the loader rejects or skips it.
    Unfit(String),
    /// It is one, but incomplete: the loader would map it, and the process might be killed.
    Damaged(String),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Flaw::Unfit(why) | Flaw::Damaged(why)) = self;
        f.write_str(why)
    }
}

/// Checks a file. On systems other than Linux, libraries are not ELF files, and nothing is checked.
pub(crate) fn check(path: &Path) -> Result<(), Flaw> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    let opened = tilewright_files::open(path, MOST_BYTES);
    check_image(&mut opened.map_err(|error| Flaw::Unfit(error.problem.to_string()))?)
}

/// The header must be that of a shared library for this machine; both tables and all segments must lie inside the file.
fn check_image(image: &mut (impl Read + Seek)) -> Result<(), Flaw> {
    let length = image.seek(SeekFrom::End(0)).map_err(unreadable)?;
    let header = read(image, 0, HEADER_BYTES as u64)?;
    if let Some(what) = foreign(&header) {
        return Err(Flaw::Unfit(format!("it is {what}; a 64-bit ELF library for {ARCH} is needed")));
    }
    let inside = |what: &str, end: Option<u64>| match end {
        Some(end) if end <= length => Ok(()),
        Some(end) => Err(damaged(&format!("{what} ends at byte {end}, and the file has {length} bytes"))),
        None => Err(damaged(&format!("{what} has no valid offset and size"))),
    };
    let segments = Table::of_segments(&header);
    inside("the table of segments", segments.and_then(|table| table.end()))?;
    inside("the table of sections", Table::of_sections(&header).and_then(|table| table.end()))?;
    let Some(segments) = segments else { return Ok(()) };
    let table = read(image, segments.start, segments.size())?;
    for (number, segment) in segments.split(&table).enumerate() {
        inside(&format!("segment {number}"), elf::segment_end(segment))?;
    }
    Ok(())
}

/// What a file is, by its header, if it is not a library for this machine. One cut inside the header may be one.
fn foreign(header: &[u8]) -> Option<String> {
    let field = |at: usize, width: usize| elf::number(header, at, width);
    let is_not = |found: Option<u64>, wanted: u64| found.is_some_and(|found| found != wanted);
    let little_64_bit = |at: usize| u64::from(MAGIC[at]);
    if !header.starts_with(&MAGIC[..CLASS]) {
        Some("not an ELF file".to_string())
    } else if is_not(field(CLASS, 1), little_64_bit(CLASS)) {
        Some("not a 64-bit ELF file".to_string())
    } else if is_not(field(BYTE_ORDER, 1), little_64_bit(BYTE_ORDER)) {
        Some("a big-endian ELF file".to_string())
    } else if is_not(field(KIND, 2), SHARED) {
        Some("an ELF file that is not a shared library".to_string())
    } else {
        let machine = machine_name(field(MACHINE, 2)?);
        (machine != ARCH).then(|| format!("an ELF library for {machine}"))
    }
}

fn machine_name(number: u64) -> String {
    let known = MACHINES.iter().find(|(machine, _)| *machine == number);
    known.map_or_else(|| format!("machine {number}"), |(_, name)| name.to_string())
}

/// Reads up to `count` bytes from offset `start`; fewer at the end of the file.
fn read(image: &mut (impl Read + Seek), start: u64, count: u64) -> Result<Vec<u8>, Flaw> {
    let mut bytes = Vec::new();
    image.seek(SeekFrom::Start(start)).map_err(unreadable)?;
    image.by_ref().take(count).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

fn unreadable(error: io::Error) -> Flaw {
    Flaw::Unfit(format!("it cannot be read: {error}"))
}

fn damaged(what: &str) -> Flaw {
    Flaw::Damaged(format!("it is cut short or damaged, so install it again: {what}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Cursor;

    const PROGRAM_HEADER: usize = HEADER_BYTES;

    /// The header of a library for this machine, one program header for a segment that is all of the file, and the
    /// header of an empty section.
    pub(crate) fn image() -> Vec<u8> {
        let (machine, _) = MACHINES.iter().find(|(_, name)| *name == ARCH).expect("a machine with an NVRTC");
        let mut image = vec![0; 64 + 56 + 64];
        image[..MAGIC.len()].copy_from_slice(MAGIC);
        image[KIND] = SHARED as u8;
        image[MACHINE] = *machine as u8;
        // Where the tables are, how long an entry is, and that there is one.
        for (at, value) in [(32, 64), (40, 120), (54, 56), (56, 1), (58, 64), (60, 1)] {
            image[at] = value;
        }
        // The type of a loaded segment, and its size.
        image[PROGRAM_HEADER] = 1;
        image[PROGRAM_HEADER + 32] = 184;
        image
    }

    /// The same, cut inside the table of sections.
    pub(crate) fn cut_image() -> Vec<u8> {
        image()[..150].to_vec()
    }

    fn checked(image: &[u8]) -> Result<(), Flaw> {
        check_image(&mut Cursor::new(image))
    }

    fn changed(at: usize, value: u8) -> Result<(), Flaw> {
        let mut image = image();
        image[at] = value;
        checked(&image)
    }

    fn unfit(what: &str) -> Result<(), Flaw> {
        Err(Flaw::Unfit(format!("it is {what}; a 64-bit ELF library for {ARCH} is needed")))
    }

    fn cut(what: &str) -> Result<(), Flaw> {
        Err(Flaw::Damaged(format!("it is cut short or damaged, so install it again: {what}")))
    }

    #[test]
    fn a_library_cut_anywhere_is_damaged() {
        assert_eq!(checked(&image()), Ok(()));
        for length in CLASS..image().len() {
            let found = checked(&image()[..length]);
            assert!(matches!(found, Err(Flaw::Damaged(_))), "cut at {length}: {found:?}");
        }
        assert_eq!(checked(&cut_image()), cut("the table of sections ends at byte 184, and the file has 150 bytes"));
    }

    #[test]
    fn a_segment_beyond_the_end_is_damage() {
        let end = cut("segment 0 ends at byte 440, and the file has 184 bytes");
        assert_eq!((changed(PROGRAM_HEADER + 33, 1), changed(PROGRAM_HEADER + 9, 1)), (end.clone(), end));
        let mut image = image();
        image[PROGRAM_HEADER + 8..PROGRAM_HEADER + 16].fill(0xff);
        assert_eq!(checked(&image), cut("segment 0 has no valid offset and size"));
        assert_eq!(changed(54, 20), cut("segment 0 has no valid offset and size"));
    }

    #[test]
    fn a_table_beyond_the_end_is_damage() {
        assert_eq!(changed(56, 3), cut("the table of segments ends at byte 232, and the file has 184 bytes"));
        assert_eq!(changed(60, 2), cut("the table of sections ends at byte 248, and the file has 184 bytes"));
        let mut image = image();
        image[40..48].fill(0xff);
        assert_eq!(checked(&image), cut("the table of sections has no valid offset and size"));
    }

    #[test]
    fn a_library_for_another_machine_is_named() {
        assert_eq!(changed(CLASS, 1), unfit("not a 64-bit ELF file"));
        assert_eq!(changed(BYTE_ORDER, 2), unfit("a big-endian ELF file"));
        assert_eq!(changed(KIND, 1), unfit("an ELF file that is not a shared library"));
        assert_eq!(changed(MACHINE, 3), unfit("an ELF library for machine 3"));
        let (number, name) = MACHINES.iter().find(|(_, name)| *name != ARCH).unwrap();
        assert_eq!(changed(MACHINE, *number as u8), unfit(&format!("an ELF library for {name}")));
        for other in [&b""[..], b"INPUT(libnvrtc.so.13)", &[0; 200]] {
            assert_eq!(checked(other), unfit("not an ELF file"));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let told = "it is a folder; a regular file of at most 4096 MiB is expected";
        assert_eq!(check(folder.path()), Err(Flaw::Unfit(told.to_string())));
        let path = folder.path().join("libnvrtc.so.13");
        std::fs::write(&path, image()).unwrap();
        assert_eq!(check(&path), Ok(()));
        std::fs::write(&path, cut_image()).unwrap();
        assert!(matches!(check(&path), Err(Flaw::Damaged(_))));
    }

    /// Every library that the loader has mapped passes the check.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_libraries_of_this_process_are_whole() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let files = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
        for file in files.filter(|file| file.contains(".so") && !file.ends_with(" (deleted)")) {
            assert_eq!(check(Path::new(file)), Ok(()), "{file}");
        }
    }
}
