//! The canonical forms in which a matrix engine reads an operand from shared memory.
//!
//! Source: PTX ISA, "Canonical layouts" (tcgen05) and "Strides" (wgmma). All forms have the same structure: runs of a
//! fixed number of elements along the major index, `rows` of them packed as a group, groups evenly spaced in both
//! directions. The forms differ in the length of a run (16 bytes, or the span of the swizzle) and in which distance is
//! the leading offset and which is the stride.

use super::pattern::SwizzlePattern;

/// Bits of K in one K-step: 16 elements of f16, 32 of 8 bits, 8 of tf32.
pub(crate) const STEP_BITS: i64 = 256;

/// Which index of an operand is contiguous in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Major {
    /// The index that is summed over: no transpose bit.
    K,
    /// The row of A or the column of B: the transpose bit is set.
    MN,
}

/// A canonical form; distances in bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// Bits of one element.
    pub(crate) bits: i64,
    /// Elements of one run along the major index.
    pub(crate) run: i64,
    /// Runs, along the other index, that are packed as one group.
    pub(crate) rows: i64,
    /// Distance from one run to the next along the major index.
    pub(crate) across: i64,
    /// Distance from one group to the next along the other index.
    pub(crate) down: i64,
}

impl Form {
    /// The form whose groups are packed without gaps.
    pub(crate) fn packed(pattern: SwizzlePattern, bits: i64) -> Form {
        let group = pattern.repeat() * 8;
        Form { bits, run: pattern.span() * 8 / bits, rows: pattern.rows(), across: group, down: group }
    }

    /// Distance of an element from the first one, before the swizzle, in bits.
    pub(crate) fn offset(&self, major: i64, minor: i64) -> i64 {
        let packed = major % self.run + minor % self.rows * self.run;
        packed * self.bits + major / self.run * self.across + minor / self.rows * self.down
    }

    /// The leading and the stride dimension offsets, in bits.
    pub(crate) fn offsets(&self, pattern: SwizzlePattern, major: Major) -> (i64, i64) {
        match (major, pattern) {
            (Major::K, SwizzlePattern::None) => (self.across, self.down),
            // A K-step lies inside one run, so the distance between runs is not used; the ISA assumes 1 (16 bytes).
            (Major::K, _) => (128, self.down),
            (Major::MN, SwizzlePattern::None) => (self.down, self.across),
            (Major::MN, _) => (self.across, self.down),
        }
    }
}
