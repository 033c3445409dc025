//! Operands of instructions: registers, predicates and memory references.

use crate::float::Format;
use crate::isa::Space;

/// Index of a register with one 64-bit value per lane.
pub(crate) type Reg = u32;

/// A predicate, possibly negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) index: u32,
    pub(crate) negate: bool,
}

/// The element type of a floating-point instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatType {
    F32,
    F64,
    Half(Format),
}

impl FloatType {
    /// Bits of one element.
    pub(crate) fn bits(self) -> u32 {
        match self {
            FloatType::F32 => 32,
            FloatType::F64 => 64,
            FloatType::Half(_) => 16,
        }
    }
}

/// The type of a number that is compared or converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberType {
    Integer(IntegerType),
    Float(FloatType),
}

/// The type of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntegerType {
    pub(crate) signed: bool,
    pub(crate) bits: u32,
}

impl NumberType {
    /// Bits of one number.
    pub(crate) fn bits(self) -> u32 {
        match self {
            NumberType::Integer(integer) => integer.bits,
            NumberType::Float(element) => element.bits(),
        }
    }
}

/// A memory operand: `base + offset` in a state space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemRef {
    pub(crate) space: Space,
    pub(crate) base: Reg,
    pub(crate) offset: i64,
}
