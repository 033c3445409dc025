//! Comparisons and logic.

use crate::isa::{CmpOp, DType};
use crate::op::operand::{Guard, Reg};

/// Logic on predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PredFn {
    And,
    Or,
    Xor,
}

/// `setp`: compares, combines, and writes one or two predicates. For a packed type, `d` receives the result of the low
/// element and `q` that of the high element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setp {
    pub(crate) cmp: CmpOp,
    pub(crate) dtype: DType,
    pub(crate) ftz: bool,
    pub(crate) a: Reg,
    pub(crate) b: Reg,
    /// Logic applied to the result and a predicate.
    pub(crate) combine: Option<(PredFn, Guard)>,
    /// Destination predicate; unused by `set`.
    pub(crate) d: u32,
    /// Second destination predicate.
    pub(crate) q: Option<u32>,
}

/// `set`: like `setp`, but writes a value: all ones, or 1.0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set {
    pub(crate) compare: Setp,
    pub(crate) d: Reg,
    /// The value of one element if its comparison is true.
    pub(crate) yes: u64,
}
