//! Sums, products and negatives of signed integers wrap. In C++ a signed overflow is undefined, and NVRTC relies on
//! that: it turns `a + 2147483647 < 1` into `a < -2147483646`. So an operation that may overflow is computed by a
//! function on unsigned numbers.

use tilewright_ir::Scalar;
use tilewright_ir::thread::{Program, Value};
use tilewright_ir::tile::{ElementOp, IntegerRange, Narrowing};
use tilewright_layout::DType;

/// An operation that wraps. Quotients wrap too, see `Helper::Divide`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wrapping {
    Add,
    Sub,
    Mul,
    Neg,
    Abs,
}

impl Wrapping {
    /// The operation, if it is one of signed integers of 32 or 64 bits that may overflow.
    pub(super) fn of(program: &Program, op: ElementOp, dtype: DType, operands: &[Value]) -> Option<Wrapping> {
        let wrapping = match op {
            ElementOp::Add => Wrapping::Add,
            ElementOp::Sub => Wrapping::Sub,
            ElementOp::Mul => Wrapping::Mul,
            ElementOp::Neg => Wrapping::Neg,
            ElementOp::Abs => Wrapping::Abs,
            ElementOp::Div | ElementOp::Rem | ElementOp::Max | ElementOp::Min | ElementOp::Fma => return None,
            ElementOp::Rounded | ElementOp::Function(_) => return None,
            ElementOp::And | ElementOp::Or | ElementOp::Xor | ElementOp::Not => return None,
            ElementOp::Shl | ElementOp::Shr => return None,
            ElementOp::Lt | ElementOp::Le | ElementOp::Gt | ElementOp::Ge | ElementOp::Eq | ElementOp::Ne => {
                return None;
            }
            ElementOp::Select => return None,
        };
        let held = dtype.integers().filter(|_| matches!(dtype, DType::I32 | DType::I64))?;
        // A range that is not known may be too large.
        let fits = exact(program, op, operands).is_some_and(|range| is_inside(range, held));
        (!fits).then_some(wrapping)
    }
}

pub(super) fn is_inside((least, most): IntegerRange, (lo, hi): IntegerRange) -> bool {
    lo <= least && most <= hi
}

/// The range of an operation's results before wrapping; `None` if they are not integers.
pub(super) fn exact(program: &Program, op: ElementOp, operands: &[Value]) -> Option<IntegerRange> {
    let ranges: Option<Vec<IntegerRange>> = operands.iter().map(|operand| range(program, operand)).collect();
    op.exact_range(&ranges?)
}

/// The range of an integer value; `None` for other values.
pub(super) fn range(program: &Program, value: &Value) -> Option<IntegerRange> {
    let held = value.dtype(&program.registers).and_then(DType::integers);
    let known = match value {
        Value::Const(_, Scalar::Int(value)) => Some((i128::from(*value), i128::from(*value))),
        Value::Index(_, index) => Some((i128::from(index.range().lo), i128::from(index.range().hi))),
        Value::Cast(_, Narrowing::Fits | Narrowing::Saturates, of) => range(program, of),
        Value::Op(op, operands) => exact(program, *op, operands),
        _ => None,
    };
    known.filter(|known| held.is_some_and(|held| is_inside(*known, held))).or(held)
}
