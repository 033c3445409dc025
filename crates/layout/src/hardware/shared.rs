use super::choice::choices;
use super::{iter, refused};
use crate::axis::M;
use crate::error::{LayoutError, tuple};
use crate::layout::Layout;
use crate::swizzle::{ComposeLayout, SwizzleLayout};
use crate::tile::TileLayout;

const NAME: &str = "mma_shared_layout";

choices! {
    /// How `wgmma`, `tcgen05.mma` and TMA swizzle a tile in shared memory: 16-byte units are permuted within rows of
    /// the given length (PTX ISA, section "Shared Memory Matrix Layout").
    pub SwizzleMode, "swizzle mode";
    /// No swizzle: rows of 16 bytes.
    None = "none",
    /// Rows of 32 bytes.
    B32 = "32B",
    /// Rows of 64 bytes.
    B64 = "64B",
    /// Rows of 128 bytes.
    B128 = "128B",
}

impl SwizzleMode {
    /// Bytes of a row of the atom.
    pub fn bytes(self) -> i64 {
        16 << self.bits()
    }

    /// The swizzle of the mode over elements of `bits`: the index of a 16-byte unit within its row is XORed with the
    /// number of the 128-byte line that contains it. With [`SwizzleMode::None`] it changes nothing.
    /// Error: a width that is not a power of two up to 128 bits.
    pub fn swizzle(self, bits: i64) -> Result<SwizzleLayout, LayoutError> {
        if !(1..=128).contains(&bits) || bits & (bits - 1) != 0 {
            return Err(refused("swizzle mode", format!("elements of {bits} bits"), "a power of two up to 128 bits"));
        }
        SwizzleLayout::new(i64::from((128 / bits).trailing_zeros()), self.bits(), 3, true)
    }

    /// How many bits of the address are XORed: 0 to 3.
    fn bits(self) -> i64 {
        match self {
            SwizzleMode::None => 0,
            SwizzleMode::B32 => 1,
            SwizzleMode::B64 => 2,
            SwizzleMode::B128 => 3,
        }
    }
}

/// Rows, and elements per row, of the atom that tiles are made of: 8 rows of [`SwizzleMode::bytes`] bytes.
/// Error: an element width that is not supported.
pub fn mma_atom_shape(bits: i64, mode: SwizzleMode) -> Result<[i64; 2], LayoutError> {
    if !matches!(bits, 1 | 4 | 8 | 16 | 32 | 64) {
        let legal = "1, 4, 8, 16, 32 or 64 bits; 6-bit elements take a byte each";
        return Err(refused(NAME, format!("elements of {bits} bits"), legal));
    }
    Ok([8, mode.bytes() * 8 / bits])
}

/// A tile of shared memory for `wgmma` and `tcgen05.mma`, K-major, of elements of `bits`.
///
/// The last two dimensions are split into atoms (see [`mma_atom_shape`]), rows first, then columns; further dimensions
/// are outermost. Inside an atom, rows are consecutive, and the mode's swizzle XORs the index of a 16-byte unit within
/// its row with the number of the 128-byte line that contains it (with 128B, the row). Without a swizzle, a row that is
/// not a multiple of 16 bytes is not split: the tile is row-major. Source: PTX ISA, sections "Shared Memory Matrix
/// Layout" and "Canonical Layouts". Errors: fewer than two dimensions, a dimension below 1, rows or columns that are
/// not a whole number of atoms.
pub fn mma_shared_layout(bits: i64, mode: SwizzleMode, shape: &[i64]) -> Result<Layout, LayoutError> {
    let atom = mma_atom_shape(bits, mode)?;
    let (outer, rows, cols) = split(shape)?;
    let width = match mode {
        SwizzleMode::None if cols % atom[1] != 0 => cols,
        _ => atom[1],
    };
    if cols % width != 0 || mode != SwizzleMode::None && rows % atom[0] != 0 {
        let problem = format!("a {rows} x {cols} tile of {bits}-bit elements with swizzle {mode}");
        return Err(refused(NAME, problem, format!("multiples of {} rows and of {} elements", atom[0], atom[1])));
    }
    let product = |a: i64, b: i64| a.checked_mul(b).ok_or(LayoutError::Overflow);
    let column_of_atoms = product(rows, width)?;
    let mut shard = vec![iter(width, 1, M), iter(cols / width, column_of_atoms, M), iter(rows, width, M)];
    let mut stride = product(rows, cols)?;
    for extent in outer.iter().rev().copied() {
        shard.push(iter(extent, stride, M));
        stride = product(stride, extent)?;
    }
    shard.reverse();
    let tile = TileLayout::new(shard, Vec::new(), [])?.canonicalize();
    if mode == SwizzleMode::None {
        return Ok(tile.into());
    }
    Ok(ComposeLayout::new(mode.swizzle(bits)?, tile)?.into())
}

/// A tile of shared memory for `tcgen05.mma`, MN-major, of elements of tf32: the tile of [`mma_shared_layout`] with 128B, in which 32-byte
/// units are permuted instead of 16-byte ones, by the number of the line modulo 4. Other types and `wgmma` do not have this swizzle.
/// Source: PTX ISA, "Shared Memory Matrix Layout". Errors: those of [`mma_shared_layout`].
pub fn mma_shared_layout_of_tf32_rows(shape: &[i64]) -> Result<Layout, LayoutError> {
    let tile = mma_shared_layout(32, SwizzleMode::B128, shape)?.tile()?.clone();
    Ok(ComposeLayout::new(SwizzleLayout::new(3, 2, 2, true)?, tile)?.into())
}

/// The outer dimensions, the rows and the columns.
fn split(shape: &[i64]) -> Result<(&[i64], i64, i64), LayoutError> {
    match shape {
        [outer @ .., rows, cols] if shape.iter().all(|extent| *extent >= 1) => Ok((outer, *rows, *cols)),
        _ => Err(refused(NAME, format!("a tile of shape {}", tuple(shape)), "two or more dimensions, each at least 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bits: i64, mode: SwizzleMode, shape: &[i64]) -> String {
        mma_shared_layout(bits, mode, shape).unwrap().tile().unwrap().to_string()
    }

    /// The byte of element (row, col): atoms of 8 rows in columns of atoms, 16-byte units XORed with the 128-byte line.
    fn byte(bits: i64, mode: SwizzleMode, rows: i64, row: i64, col: i64) -> i64 {
        let (width, start) = (mode.bytes(), col * bits / 8);
        let (atom_column, within) = (start / width, start % width);
        let address = atom_column * rows * width + row * width + within;
        let units = width / 16;
        let unit = (address / 16 % units) ^ (address / 128 % units);
        address / width * width + unit * 16 + address % 16
    }

    #[test]
    fn swizzled_tiles_put_every_element_where_the_hardware_looks() {
        for (bits, mode) in [8, 16, 32].into_iter().flat_map(|b| SwizzleMode::ALL.iter().map(move |m| (b, *m))) {
            let (rows, cols) = (24, 2 * mode.bytes() * 8 / bits);
            let layout = mma_shared_layout(bits, mode, &[rows, cols]).unwrap();
            for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
                let address = layout.memory_position(row * cols + col) * bits / 8;
                assert_eq!(address, byte(bits, mode, rows, row, col), "{bits} bits, {mode}, ({row}, {col})");
            }
        }
    }

    #[test]
    fn columns_of_atoms_follow_each_other() {
        assert_eq!(text(16, SwizzleMode::B128, &[2, 32, 128]), "S[(2,32,2,64):(4096@m,64@m,2048@m,1@m)]");
    }

    #[test]
    fn without_a_swizzle_16_byte_units_of_all_rows_follow_each_other() {
        assert_eq!(text(16, SwizzleMode::None, &[16, 16]), "S[(16,2,8):(8@m,128@m,1@m)]");
        assert_eq!(text(16, SwizzleMode::None, &[3, 24, 12]), "S[864:1@m]");
    }

    #[test]
    fn tiles_that_are_not_made_of_atoms_are_refused() {
        let refusal = |bits, mode, shape: &[i64]| mma_shared_layout(bits, mode, shape).unwrap_err().code();
        let refusals = [
            refusal(16, SwizzleMode::B128, &[64, 32]),
            refusal(16, SwizzleMode::B32, &[12, 16]),
            refusal(6, SwizzleMode::B32, &[8, 32]),
            refusal(16, SwizzleMode::None, &[64]),
            refusal(16, SwizzleMode::None, &[0, 8]),
        ];
        assert_eq!(refusals, ["L0113"; 5]);
    }
}
