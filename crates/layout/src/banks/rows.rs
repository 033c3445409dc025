//! Layouts of rows in shared memory: dense, padded or swizzled.

use std::fmt;

use super::mode::MODES;
use crate::access::WAVEFRONT_BYTES;
use crate::axis::M;
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::layout::Layout;
use crate::swizzle::{ComposeLayout, SwizzleLayout};
use crate::tile::TileLayout;

/// Where the rows of a tile are in shared memory: each is contiguous, or units of its bytes are swizzled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLayout {
    /// Bytes of a row.
    pub row: i64,
    /// Bytes from one row to the next.
    pub pitch: i64,
    /// The swizzle of the addresses of bytes; rows are dense under one.
    pub swizzle: Option<SwizzleLayout>,
    /// How many bytes the odd words of each 32 bytes of a row are after the even ones, if they are apart.
    pub odd_words: Option<i64>,
    /// The bytes from one block of 128 bytes of a row to the next, if a row is in such blocks. The rows of a block follow each
    /// other.
    pub blocks: Option<i64>,
}

/// Padding of a row: bytes of a vector, an odd number of which is from one row to the next.
const PADDED_UNITS: [i64; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Bytes that a swizzle keeps together: of a vector.
const SWIZZLED_UNITS: [i64; 3] = [16, 8, 4];
/// Bytes of a bank.
const WORD: i64 = 4;
/// Words that are even, and words that are odd, in a row whose words are apart come in vectors of this many.
const WORDS_OF_A_VECTOR: i64 = WIDEST_VECTOR / WORD;
/// Bytes of the widest vector in shared memory.
const WIDEST_VECTOR: i64 = 16;
/// Rows at most a power of two apart that a swizzle spreads over the banks: lanes that hold vectors of columns are as many
/// rows apart.
const APART: [i64; 5] = [1, 2, 4, 8, 16];

impl RowLayout {
    /// Bytes of a row in which the even and the odd words are a vector each.
    pub const BYTES_OF_BOTH_WORDS: i64 = 2 * WIDEST_VECTOR;

    /// Rows one after the other.
    pub fn dense(row: i64) -> RowLayout {
        RowLayout { row, pitch: row, swizzle: None, odd_words: None, blocks: None }
    }

    /// The rows of a tile of this shape that is laid out by [`RowLayout::layout`]; `None` if it is laid out otherwise.
    pub fn of(layout: &Layout, shape: &[i64], element: i64) -> Option<RowLayout> {
        let columns = *shape.last()?;
        let (tile, swizzle) = match layout {
            Layout::Tile(tile) => (tile, None),
            Layout::Compose(compose) => (compose.tile(), Some(compose.swizzle().unpack(element).ok()?)),
            Layout::Table(_) => return None,
        };
        let pitch = if tile.size() > columns { tile.position(columns, &M) } else { columns };
        let (row, pitch) = (columns * element, pitch * element);
        let with = |odd_words| RowLayout { row, pitch, swizzle, odd_words, blocks: None };
        let blocks = Some(tile.size() / columns * pitch).filter(|_| pitch < row);
        let in_blocks = RowLayout { blocks, ..with(None) };
        let all = [None, Some(WIDEST_VECTOR), Some(row / 2)].map(with).into_iter().chain([in_blocks]);
        all.into_iter().find(|rows| rows.layout(shape, element).is_ok_and(|known| known == *layout))
    }

    /// Rows that begin at an odd multiple of `unit` bytes from each other, the least that holds a row: vectors of `unit`
    /// bytes in one column of neighbouring rows are in different banks.
    pub fn padded(row: i64, unit: i64) -> RowLayout {
        let units = (row + unit - 1) / unit;
        RowLayout { pitch: (units | 1) * unit, ..RowLayout::dense(row) }
    }

    /// Rows of several 16-byte vectors, padded to an odd number of them, so that vectors of rows and of columns are both
    /// free of conflicts; narrower ones are dense.
    pub fn in_vectors(row: i64) -> RowLayout {
        if row > WIDEST_VECTOR { RowLayout::padded(row, WIDEST_VECTOR) } else { RowLayout::dense(row) }
    }

    /// Rows of whole 32 bytes, padded as those of [`RowLayout::in_vectors`], whose even and odd words are apart: a thread
    /// writes 32 neighbouring bytes as a vector of even and one of odd words. Where 8 threads write the same row, the odd
    /// words are in its second half, so that the vectors of neighbouring threads are neighbours.
    pub fn with_odd_words_apart(row: i64) -> RowLayout {
        let odd_words = if row >= 2 * WAVEFRONT_BYTES { row / 2 } else { WIDEST_VECTOR };
        RowLayout { odd_words: Some(odd_words), ..RowLayout::in_vectors(row) }
    }

    /// Rows padded to an odd number of words, or of wider elements of `element` bytes, so that the elements of a column
    /// are free of conflicts.
    pub fn in_words(row: i64, element: i64) -> RowLayout {
        RowLayout::padded(row, element.max(WORD))
    }

    /// `count` rows with the longest swizzle of the copy engine that divides them, in blocks if rows are longer; `None` if there is
    /// none.
    pub fn of_boxes(row: i64, count: i64) -> Option<RowLayout> {
        let mode =
            MODES.into_iter().filter(|mode| row > 0 && row % mode.bytes() == 0).max_by_key(|mode| mode.bytes())?;
        let (span, swizzle) = (mode.bytes(), mode.swizzle(8).ok()?);
        let blocks = (span < row).then_some(span * count);
        let rows = RowLayout { pitch: span, swizzle: Some(swizzle), blocks, ..RowLayout::dense(row) };
        (span * count % swizzle.block() == 0).then_some(rows)
    }

    /// Layouts for `count` rows of elements of `element` bytes, the dense one first: those padded by up to half of a row
    /// or 16 bytes, and those swizzled.
    pub fn all(row: i64, count: i64, element: i64) -> Vec<RowLayout> {
        let mut found = vec![RowLayout::dense(row)];
        for unit in PADDED_UNITS.into_iter().filter(|unit| *unit >= element) {
            let padded = RowLayout::padded(row, unit);
            if padded.pitch - row <= WIDEST_VECTOR.max(row / 2) && !found.contains(&padded) {
                found.push(padded);
            }
        }
        let modes = MODES.into_iter().filter(|mode| row % mode.bytes() == 0).filter_map(|mode| mode.swizzle(8).ok());
        let spread = SWIZZLED_UNITS
            .into_iter()
            .filter(|unit| *unit >= element)
            .flat_map(|unit| APART.into_iter().filter_map(move |apart| spread(row, apart, unit)));
        for swizzle in modes.chain(spread).filter(|swizzle| row * count % swizzle.block() == 0) {
            let swizzled = RowLayout { swizzle: Some(swizzle), ..RowLayout::dense(row) };
            if !found.contains(&swizzled) {
                found.push(swizzled);
            }
        }
        found
    }

    /// The address of a byte of a row. Bytes of a row whose odd words are apart count as they are in memory.
    pub fn address(&self, row: i64, byte: i64) -> i64 {
        let address = self.unswizzled(row, byte);
        self.swizzle.map_or(address, |swizzle| swizzle.apply(address))
    }

    /// The address of a byte of a row before the swizzle.
    pub fn unswizzled(&self, row: i64, byte: i64) -> i64 {
        match self.blocks {
            None => row * self.pitch + byte,
            Some(blocks) => byte / self.pitch * blocks + row * self.pitch + byte % self.pitch,
        }
    }

    /// The row of an address, and the byte in it; the inverse of [`RowLayout::address`].
    pub fn place(&self, address: i64) -> (i64, i64) {
        // A swizzle that changes bits by others is its own inverse.
        let address = self.swizzle.map_or(address, |swizzle| swizzle.apply(address));
        match self.blocks {
            None => (address / self.pitch, address % self.pitch),
            Some(blocks) => (address % blocks / self.pitch, address / blocks * self.pitch + address % self.pitch),
        }
    }

    /// The layout of a tile of this shape, whose last dimension is a row, with elements of `element` bytes. Errors: an
    /// empty shape, a pitch that is not a whole number of elements, a tile that exceeds 64 bits.
    pub fn layout(&self, shape: &[i64], element: i64) -> Result<Layout, LayoutError> {
        let Some((_, outer)) = shape.split_last().filter(|_| self.pitch % element == 0) else {
            return Err(LayoutError::Extent { extent: self.pitch });
        };
        let mut padded = outer.to_vec();
        padded.push(self.pitch / element);
        let strides: Vec<i64> = TileLayout::row_major(&padded)?.shard().iter().map(|iter| iter.stride).collect();
        let iters = shape.iter().zip(strides).map(|(extent, stride)| Iter::memory(*extent, stride));
        let iters = match self.odd_words {
            None if self.blocks.is_some() => iters.take(outer.len()).chain(self.in_blocks(element)?).collect(),
            None => iters.collect(),
            Some(odd_words) => iters.take(outer.len()).chain(self.words_apart(odd_words, element)?).collect(),
        };
        let tile = TileLayout::new(iters, Vec::new(), [])?;
        Ok(match self.swizzle {
            None => Layout::Tile(tile),
            Some(swizzle) => Layout::Compose(ComposeLayout::new(swizzle.pack(element)?, tile)?),
        })
    }

    /// The iters of a row in blocks: the blocks, and the elements of one.
    fn in_blocks(&self, element: i64) -> Result<[Iter; 2], LayoutError> {
        let blocks = self.blocks.unwrap_or(0);
        if self.row % self.pitch != 0 || blocks % element != 0 {
            return Err(LayoutError::Extent { extent: self.row });
        }
        Ok([Iter::memory(self.row / self.pitch, blocks / element), Iter::memory(self.pitch / element, 1)])
    }

    /// The iters of a row whose odd words are apart: groups of 32 bytes, pairs of words, the words, and their elements.
    fn words_apart(&self, odd_words: i64, element: i64) -> Result<[Iter; 4], LayoutError> {
        let (group, elements) = (RowLayout::BYTES_OF_BOTH_WORDS, WORD / element);
        if self.row % group != 0 || WORD % element != 0 {
            return Err(LayoutError::Extent { extent: self.row });
        }
        let step = if odd_words == WIDEST_VECTOR { group } else { WIDEST_VECTOR };
        Ok([
            Iter::memory(self.row / group, step / element),
            Iter::memory(WORDS_OF_A_VECTOR, elements),
            Iter::memory(2, odd_words / element),
            Iter::memory(elements, 1),
        ])
    }

    /// The bytes from the first to the last of `rows` rows.
    pub fn bytes(&self, rows: i64) -> i64 {
        if self.blocks.is_some() {
            return rows * self.row;
        }
        (rows - 1) * self.pitch + self.row
    }
}

/// The swizzle that spreads units of `unit` bytes over the banks for rows that are `apart` from each other; `None` if rows
/// of `row` bytes are not a power of two, or smaller than all banks.
fn spread(row: i64, apart: i64, unit: i64) -> Option<SwizzleLayout> {
    let is_power = row & (row - 1) == 0;
    let bits = i64::from((WAVEFRONT_BYTES / unit).ilog2());
    let (low, high) = (i64::from(unit.ilog2()), i64::from((row * apart).ilog2()));
    (is_power && row >= WAVEFRONT_BYTES).then(|| SwizzleLayout::new(low, bits, high - low, true).ok()).flatten()
}

impl fmt::Display for RowLayout {
    /// `row-major`, `rows padded by 16 bytes`, `swizzled in units of 16 bytes`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.swizzle, self.pitch - self.row) {
            (Some(swizzle), _) if self.blocks.is_some() => {
                write!(f, "in blocks of {} bytes of a row, swizzled in units of {} bytes", self.pitch, swizzle.run())
            }
            (Some(swizzle), _) => write!(f, "swizzled in units of {} bytes", swizzle.run()),
            (None, 0) => f.write_str("row-major"),
            (None, 1) => f.write_str("rows padded by 1 byte"),
            (None, padding) => write!(f, "rows padded by {padding} bytes"),
        }?;
        match self.odd_words {
            None => Ok(()),
            Some(WIDEST_VECTOR) => f.write_str(", even and odd words in vectors of their own"),
            Some(_) => f.write_str(", even words before odd ones"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_padded_to_an_odd_number_of_vectors() {
        let pitch = |row| RowLayout::in_vectors(row).pitch;
        assert_eq!([8, 16, 32, 128, 136, 200, 256].map(pitch), [8, 16, 48, 144, 144, 208, 272]);
    }

    #[test]
    fn rows_are_dense_padded_or_swizzled() {
        let all = RowLayout::all(96, 64, 2);
        let titles: Vec<String> = all.iter().map(RowLayout::to_string).collect();
        let padded = [2, 4, 8, 16, 32].map(|bytes| format!("rows padded by {bytes} bytes"));
        assert_eq!(titles[0], "row-major");
        assert_eq!(titles[1..5], padded[..4]);
        assert_eq!(titles[5..], ["swizzled in units of 16 bytes"]);
    }

    #[test]
    fn swizzles_take_the_bits_of_rows_that_are_apart() {
        let swizzles: Vec<String> =
            RowLayout::all(256, 64, 4).iter().filter_map(|rows| rows.swizzle).map(|s| s.to_string()).collect();
        let modes = ["swizzle(M=4,B=1,S=3)", "swizzle(M=4,B=2,S=3)", "swizzle(M=4,B=3,S=3)"];
        assert_eq!(swizzles[..3], modes);
        assert_eq!(swizzles[3..6], ["swizzle(M=4,B=3,S=4)", "swizzle(M=4,B=3,S=5)", "swizzle(M=4,B=3,S=6)"]);
        assert!(swizzles.contains(&"swizzle(M=2,B=5,S=6)".to_string()), "{swizzles:?}");
    }

    #[test]
    fn a_narrow_row_is_padded_by_16_bytes_at_most() {
        assert_eq!(RowLayout::all(8, 100, 4).iter().map(|rows| rows.pitch).collect::<Vec<_>>(), [8, 12, 16]);
    }

    #[test]
    fn addresses_are_those_of_the_layout() {
        for rows in RowLayout::all(128, 16, 2) {
            let layout = rows.layout(&[2, 8, 64], 2).unwrap();
            for (row, column) in (0..16).flat_map(|row| (0..64).map(move |column| (row, column))) {
                let address = layout.memory_position(row * 64 + column) * 2;
                assert_eq!(rows.address(row, column * 2), address, "{rows}");
                assert_eq!(rows.place(address), (row, column * 2), "{rows}");
            }
            assert_eq!(layout.memory_span() * 2, rows.bytes(16), "{rows}");
            assert_eq!(RowLayout::of(&layout, &[2, 8, 64], 2), Some(rows));
        }
    }

    #[test]
    fn even_and_odd_words_are_apart() {
        let layout = |row: i64| RowLayout::with_odd_words_apart(row).layout(&[8, row / 2], 2).unwrap();
        assert_eq!(layout(128).to_string(), "S[(8,4,4,2,2):(72@m,16@m,2@m,8@m,1@m)]");
        assert_eq!(layout(256).to_string(), "S[(8,8,4,2,2):(136@m,8@m,2@m,64@m,1@m)]");
        for row in [32, 64, 96, 128, 256, 512] {
            let mut positions: Vec<i64> = (0..row * 4).map(|at| layout(row).memory_position(at)).collect();
            positions.sort_unstable();
            positions.dedup();
            assert_eq!(positions.len() as i64, row * 4, "no two elements share a place");
            assert_eq!(RowLayout::of(&layout(row), &[8, row / 2], 2), Some(RowLayout::with_odd_words_apart(row)));
        }
        assert_eq!(RowLayout::with_odd_words_apart(40).layout(&[8, 20], 2).unwrap_err().code(), "L0102");
        let [narrow, wide] = [128, 256].map(|row| RowLayout::with_odd_words_apart(row).to_string());
        assert_eq!(narrow, "rows padded by 16 bytes, even and odd words in vectors of their own");
        assert_eq!(wide, "rows padded by 16 bytes, even words before odd ones");
    }

    #[test]
    fn rows_for_boxes_are_as_long_as_a_swizzle_or_in_blocks_of_one() {
        let title = |row, count| RowLayout::of_boxes(row, count).map(|rows| rows.to_string());
        assert_eq!(title(64, 16), Some("swizzled in units of 16 bytes".to_string()));
        assert_eq!(title(256, 32), Some("in blocks of 128 bytes of a row, swizzled in units of 16 bytes".to_string()));
        let in_blocks = |bytes: i64| format!("in blocks of {bytes} bytes of a row, swizzled in units of 16 bytes");
        assert_eq!([title(192, 8), title(480, 128)], [64, 32].map(|bytes| Some(in_blocks(bytes))));
        assert_eq!([title(48, 16), title(128, 4), title(0, 8)], [None, None, None]);
        let rows = RowLayout::of_boxes(256, 32).unwrap();
        let layout = rows.layout(&[4, 8, 128], 2).unwrap();
        assert_eq!(layout.to_string(), "swizzle(M=3,B=3,S=3) o S[(4,8,2,64):(512@m,64@m,2048@m,1@m)]");
        assert_eq!((RowLayout::of(&layout, &[4, 8, 128], 2), rows.bytes(32)), (Some(rows), 8192));
        for (row, column) in (0..32).flat_map(|row| (0..128).map(move |column| (row, column))) {
            let address = layout.memory_position(row * 128 + column) * 2;
            assert_eq!((rows.address(row, column * 2), rows.place(address)), (address, (row, column * 2)));
        }
    }

    #[test]
    fn other_layouts_have_no_rows() {
        let rows = |layout: &str| RowLayout::of(&layout.parse().unwrap(), &[8, 64], 2);
        assert_eq!(rows("S[(8,64):(1,8)]"), None);
        assert_eq!(rows("S[(4,2,64):(200,64,1)]"), None);
        assert_eq!(rows("S[(8,64):(64@laneid,1)]"), None);
        assert_eq!(rows("S[(8,64):(72,1)]").map(|rows| rows.pitch), Some(144));
    }

    #[test]
    fn a_pitch_is_a_whole_number_of_elements() {
        assert_eq!(RowLayout::padded(32, 2).layout(&[4, 8], 4).unwrap_err().code(), "L0102");
        assert_eq!(RowLayout::dense(0).layout(&[], 4).unwrap_err().code(), "L0102");
    }
}
