//! Matrices in shared memory as descriptors define them (PTX ISA, sections "Shared memory descriptor" and "Canonical Layouts" of
//! `tcgen05.mma`, and "Matrix-descriptor" of `wgmma`).
//!
//! A matrix has lines (rows of A, columns of B) of elements along k. Units of 16 bytes of it are adjacent in memory: along
//! k if it is K-major, along the lines if it is MN-major. Eight units that follow each other across that direction are an
//! atom of 8 rows; a swizzle exchanges the units within rows of `span` bytes.

/// The direction in which elements are adjacent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Major {
    /// Along k.
    K,
    /// Along the lines.
    Mn,
}

/// Bytes of a unit.
pub(crate) const UNIT: u64 = 16;

/// A descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedMatrix {
    /// Address of the first unit.
    start: u64,
    /// Leading and stride byte offsets.
    leading: u64,
    stride: u64,
    /// The row of 128 bytes at which the pattern of the swizzle begins.
    base: u64,
    /// Bytes of a row: 16 without a swizzle, else 32, 64 or 128.
    span: u64,
    /// Bytes that a swizzle keeps together.
    kept: u64,
}

impl SharedMatrix {
    /// The descriptor of a `tcgen05` instruction.
    pub(crate) fn of_tensor(word: u64) -> Result<SharedMatrix, String> {
        if word >> 46 & 0b111 != 0b001 {
            return Err(format!("bits 46 to 48 are {:#05b}, and must be 0b001", word >> 46 & 0b111));
        }
        if word >> 52 & 1 != 0 {
            return Err("bit 52, absolute leading offsets, is not supported on this target".to_string());
        }
        if word >> 53 & 0xff != 0 {
            return Err(format!("bits 53 to 60 are {:#x}, and must be 0", word >> 53 & 0xff));
        }
        let (span, kept) = match word >> 61 {
            0 => (16, 16),
            1 => (128, 32),
            2 => (128, 16),
            4 => (64, 16),
            6 => (32, 16),
            mode => return Err(format!("there is no swizzle with the code {mode}")),
        };
        Ok(SharedMatrix::of_fields(word, span, kept))
    }

    /// The descriptor of `wgmma`.
    pub(crate) fn of_warpgroup(word: u64) -> SharedMatrix {
        let span = match word >> 62 {
            0 => 16,
            1 => 128,
            2 => 64,
            _ => 32,
        };
        SharedMatrix::of_fields(word, span, UNIT)
    }

    fn of_fields(word: u64, span: u64, kept: u64) -> SharedMatrix {
        let field = |first: u32| (word >> first & 0x3fff) << 4;
        SharedMatrix { start: field(0), leading: field(16), stride: field(32), base: word >> 49 & 0b111, span, kept }
    }

    /// The address of a unit: `along` and `across` count units in the direction in which the elements of one are adjacent,
    /// and elements across it.
    pub(crate) fn unit(&self, major: Major, along: u64, across: u64) -> u64 {
        let Some(units) = self.units_of_row() else {
            // Atoms follow each other by the leading offset along k, and by the stride offset along the lines.
            let (by_along, by_across) = match major {
                Major::K => (self.leading, self.stride),
                Major::Mn => (self.stride, self.leading),
            };
            return self.start + along * by_along + across % 8 * UNIT + across / 8 * by_across;
        };
        // Chunks of 32 bytes repeat after 4 rows, and these are an atom of a matrix that is adjacent along its lines.
        let rows = if major == Major::Mn && self.kept > UNIT { 4 } else { 8 };
        // A K-major operand of one instruction fits in a row of the swizzle; the start address selects its part of the row.
        let next_row = if major == Major::Mn { along / units * self.leading } else { 0 };
        let inside = if major == Major::Mn { along % units } else { along };
        let linear = self.start + next_row + inside * UNIT + across % rows * self.span + across / rows * self.stride;
        self.swizzled(linear)
    }

    /// Whether its swizzle keeps 32 bytes together.
    pub(crate) fn has_wide_chunks(&self) -> bool {
        self.kept > UNIT
    }

    /// Units of a row of a swizzle, if there is one.
    fn units_of_row(&self) -> Option<u64> {
        (self.span > UNIT).then_some(self.span / UNIT)
    }

    /// The bits of the address within a row, in steps of what is kept together, are exchanged by the number of the 128 bytes
    /// that they are in.
    fn swizzled(&self, address: u64) -> u64 {
        let positions = self.span / self.kept;
        let row = (address >> 7).wrapping_sub(self.base);
        // A row of fewer bytes has a pattern of as many rows of 128 bytes as it has positions.
        address ^ (row % positions * self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(start: u64, leading: u64, stride: u64, mode: u64) -> SharedMatrix {
        let word = start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | mode << 61;
        SharedMatrix::of_tensor(word).unwrap()
    }

    #[test]
    fn without_a_swizzle_atoms_are_128_bytes() {
        let matrix = descriptor(1024, 2048, 128, 0);
        assert_eq!(matrix.unit(Major::K, 0, 9), 1024 + 128 + 16);
        assert_eq!(matrix.unit(Major::K, 1, 0), 1024 + 2048);
        assert_eq!(matrix.unit(Major::Mn, 1, 9), 1024 + 128 + 2048 + 16);
    }

    #[test]
    fn a_swizzle_exchanges_the_units_of_a_row() {
        let matrix = descriptor(1024, 0, 1024, 2);
        let row = |row: u64| (0..2).map(|unit| matrix.unit(Major::K, unit, row) - 1024).collect::<Vec<_>>();
        assert_eq!((row(0), row(1), row(9)), (vec![0, 16], vec![144, 128], vec![1024 + 144, 1024 + 128]));
        let narrow = descriptor(1024, 0, 256, 6);
        let row = |row: u64| (0..2).map(|unit| narrow.unit(Major::K, unit, row) - 1024).collect::<Vec<_>>();
        assert_eq!((row(0), row(3), row(4)), (vec![0, 16], vec![96, 112], vec![144, 128]));
    }

    #[test]
    fn lines_are_adjacent_in_an_mn_major_matrix() {
        let matrix = descriptor(1024, 4096, 1024, 2);
        assert_eq!(matrix.unit(Major::Mn, 8, 0), 1024 + 4096);
        assert_eq!(matrix.unit(Major::Mn, 0, 8), 2048);
        assert_eq!(matrix.unit(Major::Mn, 3, 2), 1024 + 256 + 16);
    }

    #[test]
    fn wide_chunks_repeat_after_four_rows() {
        let matrix = descriptor(1024, 4096, 2048, 1);
        assert_eq!(matrix.unit(Major::Mn, 0, 4), 1024 + 2048);
        assert_eq!(matrix.unit(Major::Mn, 3, 1), 1024 + 128 + 16);
        assert_eq!(matrix.unit(Major::K, 0, 8), 1024 + 2048);
    }

    #[test]
    fn descriptors_that_the_instruction_does_not_have_are_refused() {
        for word in [0, 1 << 46 | 1 << 52, 1 << 46 | 3 << 61, 1 << 46 | 7 << 61] {
            assert!(SharedMatrix::of_tensor(word).is_err(), "{word:#x}");
        }
    }
}
