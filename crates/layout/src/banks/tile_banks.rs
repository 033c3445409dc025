//! A tile in shared memory under one swizzle after the other.

use super::{Case, byte_of};
use crate::access::{LANES, WarpAccess};
use crate::swizzle::SwizzleLayout;

/// A plain tile in memory, with the patterns that touch it.
pub(super) struct TileBanks<'a> {
    /// The position of each element in memory, in elements.
    pub(super) positions: &'a [i64],
    /// Bits of an element.
    pub(super) bits: i64,
    /// The patterns as instructions.
    pub(super) cases: &'a [Case<'a>],
}

impl TileBanks<'_> {
    /// The byte where an element begins under a swizzle.
    pub(super) fn byte(&self, element: i64, swizzle: Option<SwizzleLayout>) -> u64 {
        let position = self.positions[element as usize];
        byte_of(swizzle.map_or(position, |swizzle| swizzle.apply(position)), self.bits)
    }

    pub(super) fn access(
        &self,
        case: &Case<'_>,
        lanes: &[Option<i64>; LANES],
        swizzle: Option<SwizzleLayout>,
    ) -> WarpAccess {
        case.access(lanes, |element| self.byte(element, swizzle))
    }
}
