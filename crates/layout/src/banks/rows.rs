//! Layouts of rows in shared memory: dense, padded or swizzled.

use std::fmt;

use super::mode::MODES;
use crate::access::WAVEFRONT_BYTES;
use crate::axis::M;
use crate::error::LayoutError;
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
}

/// Padding of a row: bytes of a vector, an odd number of which is from one row to the next.
const PADDED_UNITS: [i64; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Bytes that a swizzle keeps together: of a vector.
const SWIZZLED_UNITS: [i64; 3] = [16, 8, 4];
/// Bytes of a bank.
const WORD: i64 = 4;
/// Bytes of the widest vector in shared memory.
const WIDEST_VECTOR: i64 = 16;
/// Rows at most a power of two apart that a swizzle spreads over the banks: lanes that hold vectors of columns are as many
/// rows apart.
const APART: [i64; 5] = [1, 2, 4, 8, 16];

impl RowLayout {
    /// Rows one after the other.
    pub fn dense(row: i64) -> RowLayout {
        RowLayout { row, pitch: row, swizzle: None }
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
        let rows = RowLayout { row: columns * element, pitch: pitch * element, swizzle };
        rows.layout(shape, element).is_ok_and(|known| known == *layout).then_some(rows)
    }

    /// Rows that begin at an odd multiple of `unit` bytes from each other, the least that holds a row: vectors of `unit`
    /// bytes in one column of neighbouring rows are in different banks.
    pub fn padded(row: i64, unit: i64) -> RowLayout {
        let units = (row + unit - 1) / unit;
        RowLayout { row, pitch: (units | 1) * unit, swizzle: None }
    }

    /// Rows of several 16-byte vectors, padded to an odd number of them, so that vectors of rows and of columns are both
    /// free of conflicts; narrower ones are dense.
    pub fn in_vectors(row: i64) -> RowLayout {
        if row > WIDEST_VECTOR { RowLayout::padded(row, WIDEST_VECTOR) } else { RowLayout::dense(row) }
    }

    /// Rows padded to an odd number of words, or of wider elements of `element` bytes, so that the elements of a column
    /// are free of conflicts.
    pub fn in_words(row: i64, element: i64) -> RowLayout {
        RowLayout::padded(row, element.max(WORD))
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

    /// The address of a byte of a row.
    pub fn address(&self, row: i64, byte: i64) -> i64 {
        let address = row * self.pitch + byte;
        self.swizzle.map_or(address, |swizzle| swizzle.apply(address))
    }

    /// The row of an address, and the byte in it; the inverse of [`RowLayout::address`].
    pub fn place(&self, address: i64) -> (i64, i64) {
        // A swizzle that changes bits by others is its own inverse.
        let address = self.swizzle.map_or(address, |swizzle| swizzle.apply(address));
        (address / self.pitch, address % self.pitch)
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
        let iters = shape.iter().zip(strides).map(|(extent, stride)| crate::Iter::memory(*extent, stride)).collect();
        let tile = TileLayout::new(iters, Vec::new(), [])?;
        Ok(match self.swizzle {
            None => Layout::Tile(tile),
            Some(swizzle) => Layout::Compose(ComposeLayout::new(swizzle.pack(element)?, tile)?),
        })
    }

    /// The bytes from the first to the last of `rows` rows.
    pub fn bytes(&self, rows: i64) -> i64 {
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
            (Some(swizzle), _) => write!(f, "swizzled in units of {} bytes", swizzle.run()),
            (None, 0) => f.write_str("row-major"),
            (None, 1) => f.write_str("rows padded by 1 byte"),
            (None, padding) => write!(f, "rows padded by {padding} bytes"),
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
