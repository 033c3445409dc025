//! Whether a cubin is a whole ELF image.
//!
//! The driver takes a cubin as a bare pointer and finds its end by the image's own tables, so a truncated one would
//! make it read past the end of the memory.

/// Byte offsets inside a 64-bit ELF header and a section header (System V ABI, "ELF-64 Object File Format").
const HEADER_BYTES: usize = 64;
const PROGRAM_TABLE: usize = 32;
const SECTION_TABLE: usize = 40;
const PROGRAM_ENTRY_BYTES: usize = 54;
const SECTION_ENTRY_BYTES: usize = 58;
const SECTION_TYPE: usize = 4;
const SECTION_OFFSET: usize = 24;
const SECTION_SIZE: usize = 32;

/// The type of a section without bytes in the file.
const NO_BITS: u64 = 8;

/// Whether this is a little-endian 64-bit ELF image whose tables and sections all lie inside it.
pub(crate) fn is_whole(image: &[u8]) -> bool {
    image.len() >= HEADER_BYTES
        && image.starts_with(b"\x7fELF\x02\x01")
        && table(image, PROGRAM_TABLE, PROGRAM_ENTRY_BYTES).is_some()
        && table(image, SECTION_TABLE, SECTION_ENTRY_BYTES)
            .is_some_and(|sections| sections.iter().all(|section| is_inside(image, section)))
}

/// The entries of the table whose offset stands at `at`, and whose entry size and count stand at `shape`.
fn table(image: &[u8], at: usize, shape: usize) -> Option<Vec<&[u8]>> {
    let start = usize::try_from(number(image, at, 8)?).ok()?;
    let entry = usize::try_from(number(image, shape, 2)?).ok()?;
    let count = usize::try_from(number(image, shape + 2, 2)?).ok()?;
    let bytes = image.get(start..)?.get(..entry.checked_mul(count)?)?;
    Some(if entry == 0 { Vec::new() } else { bytes.chunks_exact(entry).collect() })
}

fn is_inside(image: &[u8], section: &[u8]) -> bool {
    let end = || {
        let start = number(section, SECTION_OFFSET, 8)?;
        start.checked_add(number(section, SECTION_SIZE, 8)?)
    };
    number(section, SECTION_TYPE, 4) == Some(NO_BITS) || end().is_some_and(|end| end <= image.len() as u64)
}

/// A little-endian number of `width` bytes, at most eight.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let field = bytes.get(at..at + width)?;
    Some(field.iter().rev().fold(0, |number, &byte| (number << 8) | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header, one section of eight bytes, and the table of that section.
    fn image() -> Vec<u8> {
        let mut image = vec![0; HEADER_BYTES];
        image[..6].copy_from_slice(b"\x7fELF\x02\x01");
        image[SECTION_TABLE] = 72;
        image[SECTION_ENTRY_BYTES] = 64;
        image[SECTION_ENTRY_BYTES + 2] = 1;
        image.extend_from_slice(&[1; 8]);
        let mut section = [0; 64];
        section[SECTION_TYPE] = 1;
        section[SECTION_OFFSET] = 64;
        section[SECTION_SIZE] = 8;
        image.extend_from_slice(&section);
        image
    }

    #[test]
    fn only_the_whole_image_is_whole() {
        let image = image();
        assert!(is_whole(&image));
        for length in 0..image.len() {
            assert!(!is_whole(&image[..length]), "cut at {length}");
        }
    }

    #[test]
    fn a_section_has_to_end_inside_unless_it_has_no_bytes() {
        let mut image = image();
        image[72 + SECTION_SIZE] = 200;
        assert!(!is_whole(&image));
        image[72 + SECTION_TYPE] = 8;
        assert!(is_whole(&image));
        image[72 + SECTION_TYPE] = 1;
        image[72 + SECTION_OFFSET..72 + SECTION_OFFSET + 8].fill(0xff);
        assert!(!is_whole(&image));
    }

    #[test]
    fn other_bytes_are_no_image() {
        assert!(!is_whole(b""));
        assert!(!is_whole(&[0; 200]));
    }
}
