//! Undefined bits of values and of bytes in memory.

/// Undefined bits of a value, and the load that they come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Undefined {
    /// Mask of the undefined bits.
    pub(crate) bits: u64,
    /// Index of the load among the origins of the run; meaningful only if `bits` is not 0.
    pub(crate) origin: u32,
    /// Whether an asynchronous operation has yet to write it; what is computed from it is not.
    pub(crate) is_late: bool,
}

impl Undefined {
    /// These bits, from one origin.
    pub(crate) fn new(bits: u64, origin: u32) -> Undefined {
        Undefined { bits, origin, is_late: false }
    }

    /// A register of 32 bits that an asynchronous operation has yet to write.
    pub(crate) fn late(origin: u32) -> Undefined {
        Undefined { is_late: true, ..Undefined::new(u64::from(u32::MAX), origin) }
    }

    /// The undefined bits of both; the origin is that of `self` if it has any.
    pub(crate) fn or(self, other: Undefined) -> Undefined {
        let origin = if self.bits != 0 { self.origin } else { other.origin };
        Undefined { bits: self.bits | other.bits, origin, is_late: false }
    }

    /// Replaces the bits, and keeps the origin.
    pub(crate) fn with(self, bits: u64) -> Undefined {
        Undefined { bits, is_late: false, ..self }
    }

    pub(crate) fn is_some(self) -> bool {
        self.bits != 0
    }
}
