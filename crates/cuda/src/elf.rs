//! Reads the tables of a 64-bit ELF image, and checks that a cubin is complete.
//!
//! The driver takes a cubin as a bare pointer and finds its end through the image's own tables, so a truncated one
//! would make it read past the end of the memory.

/// The first bytes of a little-endian 64-bit image.
pub(crate) const MAGIC: &[u8] = b"\x7fELF\x02\x01";
/// The size of the header at the beginning of an image, in bytes.
pub(crate) const HEADER_BYTES: usize = 64;

/// Byte offsets inside a 64-bit ELF header, a program header and a section header (System V ABI, "ELF-64 Object File
/// Format").
const PROGRAM_TABLE: usize = 32;
const SECTION_TABLE: usize = 40;
const PROGRAM_ENTRY_BYTES: usize = 54;
const SECTION_ENTRY_BYTES: usize = 58;
const SEGMENT_TYPE: usize = 0;
const SEGMENT_OFFSET: usize = 8;
const SEGMENT_SIZE: usize = 32;
const SECTION_TYPE: usize = 4;
const SECTION_OFFSET: usize = 24;
const SECTION_SIZE: usize = 32;

/// The type of an unused program header (`PT_NULL`).
const NO_SEGMENT: u64 = 0;
/// The type of a section without bytes in the file (`SHT_NOBITS`).
const NO_BITS: u64 = 8;

/// The location and shape of a table of program headers or of section headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    /// The file offset of its first byte.
    pub(crate) start: u64,
    entry_bytes: usize,
    /// The number of entries.
    entries: usize,
}

impl Table {
    /// The table of program headers, each of which describes a segment; `None` if the header is cut short.
    pub(crate) fn of_segments(header: &[u8]) -> Option<Table> {
        Table::read(header, PROGRAM_TABLE, PROGRAM_ENTRY_BYTES)
    }

    /// The table of section headers; `None` if the header is cut short.
    pub(crate) fn of_sections(header: &[u8]) -> Option<Table> {
        Table::read(header, SECTION_TABLE, SECTION_ENTRY_BYTES)
    }

    /// The table whose offset is stored at `at` in the header, and whose entry size and count are stored at `shape`.
    fn read(header: &[u8], at: usize, shape: usize) -> Option<Table> {
        let small = |at: usize| usize::try_from(number(header, at, 2)?).ok();
        Some(Table { start: number(header, at, 8)?, entry_bytes: small(shape)?, entries: small(shape + 2)? })
    }

    /// Its length in bytes: a product of two 16-bit numbers.
    pub(crate) fn size(&self) -> u64 {
        (self.entry_bytes * self.entries) as u64
    }

    /// The file offset just past its last byte; `None` if it does not fit in 64 bits.
    pub(crate) fn end(&self) -> Option<u64> {
        self.start.checked_add(self.size())
    }

    /// Splits the bytes of the table into its entries.
    pub(crate) fn split<'a>(&self, bytes: &'a [u8]) -> std::slice::ChunksExact<'a, u8> {
        bytes.chunks_exact(self.entry_bytes.max(1))
    }

    /// The bytes of the table; `None` unless all of it lies inside the image.
    fn inside<'a>(&self, image: &'a [u8]) -> Option<&'a [u8]> {
        image.get(usize::try_from(self.start).ok()?..usize::try_from(self.end()?).ok()?)
    }
}

/// The file offset just past a segment; `None` if it does not fit in 64 bits, or the header is too short.
pub(crate) fn segment_end(header: &[u8]) -> Option<u64> {
    let (start, size) = (number(header, SEGMENT_OFFSET, 8)?, number(header, SEGMENT_SIZE, 8)?);
    if number(header, SEGMENT_TYPE, 4)? == NO_SEGMENT { Some(0) } else { start.checked_add(size) }
}

/// The file offset just past a section; `None` as for [`segment_end`].
fn section_end(header: &[u8]) -> Option<u64> {
    let (start, size) = (number(header, SECTION_OFFSET, 8)?, number(header, SECTION_SIZE, 8)?);
    if number(header, SECTION_TYPE, 4)? == NO_BITS { Some(0) } else { start.checked_add(size) }
}

/// Whether this is a little-endian 64-bit ELF image whose tables, segments and sections all lie inside it.
pub(crate) fn is_whole(image: &[u8]) -> bool {
    image.len() >= HEADER_BYTES
        && image.starts_with(MAGIC)
        && are_inside(image, Table::of_segments(image), segment_end)
        && are_inside(image, Table::of_sections(image), section_end)
}

/// Whether a table, and the segments or sections that it describes, lie inside the image.
fn are_inside(image: &[u8], table: Option<Table>, end: fn(&[u8]) -> Option<u64>) -> bool {
    let is_inside = |entry: &[u8]| end(entry).is_some_and(|end| end <= image.len() as u64);
    table.is_some_and(|table| table.inside(image).is_some_and(|bytes| table.split(bytes).all(is_inside)))
}

/// A little-endian number of `width` bytes, at most eight.
pub(crate) fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let field = bytes.get(at..at + width)?;
    Some(field.iter().rev().fold(0, |number, &byte| (number << 8) | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offsets of the parts of [`image`].
    const SEGMENT: usize = HEADER_BYTES;
    const SECTION: usize = SEGMENT + 56 + 8;

    /// A header, one program header, eight bytes that are a segment and a section, and the header of that section.
    fn image() -> Vec<u8> {
        let mut image = vec![0; HEADER_BYTES];
        image[..MAGIC.len()].copy_from_slice(MAGIC);
        image[PROGRAM_TABLE] = SEGMENT as u8;
        image[PROGRAM_ENTRY_BYTES] = 56;
        image[PROGRAM_ENTRY_BYTES + 2] = 1;
        image[SECTION_TABLE] = SECTION as u8;
        image[SECTION_ENTRY_BYTES] = 64;
        image[SECTION_ENTRY_BYTES + 2] = 1;
        let mut segment = [0; 56];
        segment[SEGMENT_TYPE] = 1;
        segment[SEGMENT_OFFSET] = 120;
        segment[SEGMENT_SIZE] = 8;
        image.extend_from_slice(&segment);
        image.extend_from_slice(&[1; 8]);
        let mut section = [0; 64];
        section[SECTION_TYPE] = 1;
        section[SECTION_OFFSET] = 120;
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
        image[SECTION + SECTION_SIZE] = 200;
        assert!(!is_whole(&image));
        image[SECTION + SECTION_TYPE] = 8;
        assert!(is_whole(&image));
        image[SECTION + SECTION_TYPE] = 1;
        image[SECTION + SECTION_OFFSET..SECTION + SECTION_OFFSET + 8].fill(0xff);
        assert!(!is_whole(&image));
    }

    #[test]
    fn a_segment_has_to_end_inside_unless_it_stands_for_nothing() {
        let mut image = image();
        image[SEGMENT + SEGMENT_SIZE] = 200;
        assert!(!is_whole(&image));
        image[SEGMENT + SEGMENT_TYPE] = 0;
        assert!(is_whole(&image));
        image[SEGMENT + SEGMENT_TYPE] = 1;
        image[SEGMENT + SEGMENT_OFFSET..SEGMENT + SEGMENT_OFFSET + 8].fill(0xff);
        assert!(!is_whole(&image));
    }

    #[test]
    fn a_table_has_to_end_inside() {
        for (at, what) in [(PROGRAM_TABLE, "offset of segments"), (SECTION_TABLE, "offset of sections")] {
            let mut image = image();
            image[at..at + 8].fill(0xff);
            assert!(!is_whole(&image), "{what}");
        }
        for at in [PROGRAM_ENTRY_BYTES, SECTION_ENTRY_BYTES] {
            let mut image = image();
            image[at..at + 4].fill(0xff);
            assert!(!is_whole(&image), "entries at {at}");
        }
    }

    #[test]
    fn entries_too_short_to_be_headers_are_no_image() {
        let mut image = image();
        image[PROGRAM_ENTRY_BYTES] = 10;
        assert!(!is_whole(&image));
    }

    #[test]
    fn other_bytes_are_no_image() {
        assert!(!is_whole(b""));
        assert!(!is_whole(&[0; 200]));
    }
}
