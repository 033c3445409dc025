//! Swizzles: XOR of address bits of linear memory, to avoid bank conflicts.

use crate::axis::M;
use crate::error::LayoutError;
use crate::tile::{Coord, TileLayout};

/// XOR of `swizzle_len` (B) address bits with those `atom_len` (S) above; the lowest `per_element` (M) bits stay.
///
/// With `inner`, the lower bits are XORed with the higher ones (the form of TMA and wgmma); without it, the higher
/// bits with the lower ones.
/// An address counts elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwizzleLayout {
    /// M: how many low bits stay as they are.
    per_element: u32,
    /// B: how many bits are XORed.
    swizzle_len: u32,
    /// S: how far apart the two groups of bits are, in bits.
    atom_len: u32,
    /// Whether the lower group of bits is the one that changes.
    inner: bool,
}

impl SwizzleLayout {
    /// Creates a swizzle. Errors: a negative parameter, S less than B, more than 62 bits in all.
    pub fn new(per_element: i64, swizzle_len: i64, atom_len: i64, inner: bool) -> Result<SwizzleLayout, LayoutError> {
        let fits = |v: i64| (0..=62).contains(&v);
        if !(fits(per_element) && fits(swizzle_len) && fits(atom_len)) || per_element + swizzle_len + atom_len > 62 {
            let problem =
                format!("swizzle(M={per_element},B={swizzle_len},S={atom_len}) does not fit in a 62-bit address");
            return Err(LayoutError::Swizzle { problem });
        }
        if atom_len < swizzle_len {
            let problem = format!("swizzle(M={per_element},B={swizzle_len},S={atom_len}): S must be at least B");
            return Err(LayoutError::Swizzle { problem });
        }
        let narrow = |v: i64| v as u32;
        Ok(SwizzleLayout {
            per_element: narrow(per_element),
            swizzle_len: narrow(swizzle_len),
            atom_len: narrow(atom_len),
            inner,
        })
    }

    /// M: how many low bits stay as they are.
    pub fn per_element(self) -> u32 {
        self.per_element
    }

    /// B: how many bits are XORed.
    pub fn swizzle_len(self) -> u32 {
        self.swizzle_len
    }

    /// S: how far apart the two groups of bits are.
    pub fn atom_len(self) -> u32 {
        self.atom_len
    }

    /// Whether the lower group of bits is the one that changes.
    pub fn inner(self) -> bool {
        self.inner
    }

    /// How many consecutive addresses, aligned, stay consecutive: `2^M`.
    pub fn run(self) -> i64 {
        1 << self.per_element
    }

    /// The period of the swizzle, `2^(M+B+S)`: addresses stay inside their block of this size, and all blocks are
    /// alike.
    pub fn block(self) -> i64 {
        1 << (self.per_element + self.swizzle_len + self.atom_len)
    }

    /// The swizzled address.
    pub fn apply(self, address: i64) -> i64 {
        let mask = (1i64 << self.swizzle_len) - 1;
        let (low, high) = (self.per_element, self.per_element + self.atom_len);
        if self.inner {
            address ^ (((address >> high) & mask) << low)
        } else {
            address ^ (((address >> low) & mask) << high)
        }
    }
}

/// A swizzle over a tile of linear memory: `swizzle(tile(x))`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComposeLayout {
    swizzle: SwizzleLayout,
    tile: TileLayout,
}

impl ComposeLayout {
    /// A swizzle over a tile. Error: a tile on axes other than `m`, or at negative positions.
    pub fn new(swizzle: SwizzleLayout, tile: TileLayout) -> Result<ComposeLayout, LayoutError> {
        if let Some(axis) = tile.axes().into_iter().find(|axis| *axis != M) {
            let problem = format!("a swizzle acts on linear memory `m`, not on `{axis}`");
            return Err(LayoutError::Swizzle { problem });
        }
        let iters = tile.shard().iter().chain(tile.replica());
        let lowest = tile.offset_on(&M) + iters.map(|iter| ((iter.extent - 1) * iter.stride).min(0)).sum::<i64>();
        if lowest < 0 {
            let problem = format!("a swizzle needs positions that are not negative; this tile reaches {lowest}");
            return Err(LayoutError::Swizzle { problem });
        }
        Ok(ComposeLayout { swizzle, tile })
    }

    /// The same swizzle over another way to write the tile.
    pub(crate) fn over_rewritten(&self, tile: TileLayout) -> ComposeLayout {
        ComposeLayout { swizzle: self.swizzle, tile }
    }

    /// The swizzle.
    pub fn swizzle(&self) -> SwizzleLayout {
        self.swizzle
    }

    /// The tile below it.
    pub fn tile(&self) -> &TileLayout {
        &self.tile
    }

    /// The places of element `flat`, as a sorted set: the tile's places, each swizzled.
    pub fn apply(&self, flat: i64) -> Result<Vec<Coord>, LayoutError> {
        let mut places = self.tile.apply(flat)?;
        for place in &mut places {
            place.entry(M).and_modify(|address| *address = self.swizzle.apply(*address));
        }
        places.sort();
        Ok(places)
    }

    /// The end of the aligned block of the swizzle that holds the tile's last position: XOR stays inside its block.
    pub(crate) fn span(&self) -> i64 {
        let span = self.tile.span_on(&M);
        let block = self.swizzle.block();
        if span % block == 0 { span } else { span + (block - span % block) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_128_byte_swizzle_of_half_precision_rotates_chunks_of_eight_by_row() {
        let swizzle = SwizzleLayout::new(3, 3, 3, true).unwrap();
        let first_of_row: Vec<i64> = (0..8).map(|row| swizzle.apply(row * 64) - row * 64).collect();
        assert_eq!(first_of_row, [0, 8, 16, 24, 32, 40, 48, 56]);
    }

    #[test]
    fn both_directions_are_their_own_inverse() {
        for inner in [true, false] {
            let swizzle = SwizzleLayout::new(2, 3, 4, inner).unwrap();
            assert!((0..4096).all(|x| swizzle.apply(swizzle.apply(x)) == x));
        }
    }

    #[test]
    fn a_swizzle_over_lanes_is_refused() {
        let tile: TileLayout = "S[(4,8):(1@laneid,1)]".parse().unwrap();
        let swizzle = SwizzleLayout::new(0, 1, 1, true).unwrap();
        assert_eq!(ComposeLayout::new(swizzle, tile).unwrap_err().code(), "L0110");
    }
}
