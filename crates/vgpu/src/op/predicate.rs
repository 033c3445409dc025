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

/// `setp`: compare, combine, write one or two predicates. Of a packed type, `d` is that of the low element and `q` that
/// of the high one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setp {
    pub(crate) cmp: CmpOp,
    pub(crate) dtype: DType,
    pub(crate) ftz: bool,
    pub(crate) a: Reg,
    pub(crate) b: Reg,
    pub(crate) combine: Option<(PredFn, Guard)>,
    pub(crate) d: u32,
    pub(crate) q: Option<u32>,
}

/// `set`: like `setp`, but writes a value: all ones, or 1.0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set {
    pub(crate) compare: Setp,
    pub(crate) d: Reg,
    /// The value where the comparison holds, of one element.
    pub(crate) yes: u64,
}
