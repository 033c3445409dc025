//! How the rows of a box are permuted in shared memory (PTX ISA, section 5.5.7).

use serde::Deserialize;

/// Bytes that every swizzle keeps together.
pub(crate) const GRANULE: u64 = 8;
/// Bytes of the rows by whose number the parts of an address are exchanged.
const LINE: u64 = 128;

/// How the rows of a box are permuted in shared memory, by an exclusive or on address bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum MapSwizzle {
    /// Not at all.
    #[serde(rename = "none")]
    None,
    /// Bit 4 by bit 7.
    #[serde(rename = "32B")]
    B32,
    /// Bits 4 and 5 by bits 7 and 8.
    #[serde(rename = "64B")]
    B64,
    /// Bits 4 to 6 by bits 7 to 9.
    #[serde(rename = "128B")]
    B128,
    /// Bits 5 and 6 by bits 7 and 8: chunks of 32 bytes are kept together.
    #[serde(rename = "128B_atom_32B")]
    B128Atom32,
    /// The same, and bit 3 by bit 7: the halves of 16 bytes are exchanged in every other row. Loads only.
    #[serde(rename = "128B_atom_32B_flip_8B")]
    B128Atom32Flip8,
    /// Bit 6 by bit 7: chunks of 64 bytes are kept together.
    #[serde(rename = "128B_atom_64B")]
    B128Atom64,
}

impl MapSwizzle {
    pub(crate) const ALL: [MapSwizzle; 7] = [
        MapSwizzle::None,
        MapSwizzle::B32,
        MapSwizzle::B64,
        MapSwizzle::B128,
        MapSwizzle::B128Atom32,
        MapSwizzle::B128Atom32Flip8,
        MapSwizzle::B128Atom64,
    ];

    /// The most bytes of a row of a box; `None` without a swizzle.
    pub fn span(self) -> Option<u64> {
        match self {
            MapSwizzle::None => None,
            MapSwizzle::B32 => Some(32),
            MapSwizzle::B64 => Some(64),
            MapSwizzle::B128 | MapSwizzle::B128Atom32 | MapSwizzle::B128Atom32Flip8 | MapSwizzle::B128Atom64 => {
                Some(128)
            }
        }
    }

    /// Whether it keeps more than 16 bytes together, or permutes fewer.
    pub(crate) fn has_wide_atoms(self) -> bool {
        matches!(self, MapSwizzle::B128Atom32 | MapSwizzle::B128Atom32Flip8 | MapSwizzle::B128Atom64)
    }

    /// The address that stands for `address` in shared memory.
    pub fn apply(self, address: u64) -> u64 {
        let line = address / LINE;
        let exchanged = match self {
            MapSwizzle::None => 0,
            MapSwizzle::B32 => (line & 1) << 4,
            MapSwizzle::B64 => (line & 3) << 4,
            MapSwizzle::B128 => (line & 7) << 4,
            MapSwizzle::B128Atom32 => (line & 3) << 5,
            MapSwizzle::B128Atom32Flip8 => (line & 3) << 5 | (line & 1) << 3,
            MapSwizzle::B128Atom64 => (line & 1) << 6,
        };
        address ^ exchanged
    }

    /// The codes of its mode and of its atomicity (PTX ISA, `tensormap.replace`).
    pub(super) fn codes(self) -> (u8, u8) {
        match self {
            MapSwizzle::None => (0, 0),
            MapSwizzle::B32 => (1, 0),
            MapSwizzle::B64 => (2, 0),
            MapSwizzle::B128 => (3, 0),
            MapSwizzle::B128Atom32 => (3, 1),
            MapSwizzle::B128Atom32Flip8 => (3, 2),
            MapSwizzle::B128Atom64 => (3, 3),
        }
    }

    pub(super) fn of_codes(codes: (u8, u8)) -> Option<MapSwizzle> {
        MapSwizzle::ALL.into_iter().find(|swizzle| swizzle.codes() == codes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swizzle_is_its_own_inverse_within_lines() {
        for swizzle in MapSwizzle::ALL {
            for address in (0..4096).step_by(8) {
                assert_eq!(swizzle.apply(swizzle.apply(address)), address);
                assert_eq!(swizzle.apply(address) / LINE, address / LINE);
            }
        }
    }

    /// The tables of the PTX ISA, section 5.5.7: which chunk of a row of the tensor is at each place of 16 bytes.
    #[test]
    fn rows_are_those_of_the_tables() {
        let row =
            |swizzle: MapSwizzle, line: u64| (0..8).map(|at| swizzle.apply(line * 128 + at * 16) % 128 / 16).collect();
        let rows: [(MapSwizzle, u64, [u64; 8]); 6] = [
            (MapSwizzle::B32, 1, [1, 0, 3, 2, 5, 4, 7, 6]),
            (MapSwizzle::B64, 2, [2, 3, 0, 1, 6, 7, 4, 5]),
            (MapSwizzle::B128, 5, [5, 4, 7, 6, 1, 0, 3, 2]),
            (MapSwizzle::B128Atom32, 1, [2, 3, 0, 1, 6, 7, 4, 5]),
            (MapSwizzle::B128Atom32, 7, [6, 7, 4, 5, 2, 3, 0, 1]),
            (MapSwizzle::B128Atom64, 1, [4, 5, 6, 7, 0, 1, 2, 3]),
        ];
        for (swizzle, line, want) in rows {
            let found: Vec<u64> = row(swizzle, line);
            assert_eq!(found, want, "{swizzle:?}, line {line}");
        }
        assert_eq!(MapSwizzle::B128Atom32Flip8.apply(128), 128 + 32 + 8);
    }
}
