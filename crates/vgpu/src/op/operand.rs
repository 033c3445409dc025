//! What instructions name: registers, predicates, places in memory.

use crate::float::Format;
use crate::isa::Space;

/// Index of a 64-bit register, one value a lane.
pub(crate) type Reg = u32;

/// A predicate, possibly negated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    pub(crate) index: u32,
    pub(crate) negate: bool,
}

/// The element a floating instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    F32,
    F64,
    Half(Format),
}

/// A memory operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemRef {
    pub(crate) space: Space,
    pub(crate) base: Reg,
    pub(crate) offset: i64,
}
