//! Comparisons and logic.

use crate::isa::CmpOp;
use crate::op::operand::{Guard, NumberType, Reg};

/// Logic on predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PredFn {
    And,
    Or,
    Xor,
}

impl PredFn {
    /// The function on masks.
    pub(crate) fn apply(self, a: u32, b: u32) -> u32 {
        match self {
            PredFn::And => a & b,
            PredFn::Or => a | b,
            PredFn::Xor => a ^ b,
        }
    }
}

/// The comparison of two values, or of the elements of two packed values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    pub(crate) cmp: CmpOp,
    /// The type of one element.
    pub(crate) number: NumberType,
    /// Two elements in one register.
    pub(crate) packed: bool,
    pub(crate) ftz: bool,
    pub(crate) a: Reg,
    pub(crate) b: Reg,
    /// Logic applied to the result and a predicate.
    pub(crate) combine: Option<(PredFn, Guard)>,
}

/// `setp`: compares, combines, and writes one or two predicates. For a packed type, `d` receives the result of the low
/// element and `q` that of the high element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setp {
    pub(crate) compare: Comparison,
    /// Destination predicate.
    pub(crate) d: u32,
    /// Second destination predicate.
    pub(crate) q: Option<u32>,
}

/// `set`: like `setp`, but writes a value: all ones, or 1.0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set {
    pub(crate) compare: Comparison,
    pub(crate) d: Reg,
    /// The value of one element if its comparison is true.
    pub(crate) true_value: u64,
}
