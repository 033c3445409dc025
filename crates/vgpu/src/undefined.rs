//! Undefined bits of values and of bytes in memory.

/// Undefined bits of a value, and the load that they come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Undefined {
    /// Mask of the undefined bits.
    pub(crate) bits: u64,
    /// Index of the load among the origins of the run; meaningful only if `bits` is not 0.
    pub(crate) origin: u32,
}

impl Undefined {
    /// The undefined bits of both; the origin is that of `self` if it has any.
    pub(crate) fn or(self, other: Undefined) -> Undefined {
        Undefined { bits: self.bits | other.bits, origin: if self.bits != 0 { self.origin } else { other.origin } }
    }

    /// Replaces the bits, and keeps the origin.
    pub(crate) fn with(self, bits: u64) -> Undefined {
        Undefined { bits, ..self }
    }

    pub(crate) fn is_some(self) -> bool {
        self.bits != 0
    }
}
