//! Operands of instructions: registers, predicates and memory references.

use crate::float::Format;
use crate::isa::Space;

/// Index of a register with one 64-bit value per lane.
pub(crate) type Reg = u32;

/// A predicate, possibly negated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    pub(crate) index: u32,
    pub(crate) negate: bool,
}

/// The element type of a floating-point instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    F32,
    F64,
    Half(Format),
}

/// A memory operand: `base + offset` in a state space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemRef {
    pub(crate) space: Space,
    pub(crate) base: Reg,
    pub(crate) offset: i64,
}
