//! Sums, products and negatives of signed integers wrap. C++ does not define an overflow, and NVRTC relies on that: it
//! makes `a + 2147483647 < 1` of signed numbers `a < -2147483646`. So what may overflow is computed by a function of
//! unsigned numbers.

use tilewright_ir::Scalar;
use tilewright_ir::thread::{Program, Value};
use tilewright_ir::tile::{ElementOp, IntegerRange, Narrowing};
use tilewright_layout::DType;

/// What wraps. Quotients do too, by a function of their own.
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
            _ => return None,
        };
        let held = dtype.integers().filter(|_| matches!(dtype, DType::I32 | DType::I64))?;
        exact(program, op, operands).filter(|range| !is_inside(*range, held)).map(|_| wrapping)
    }
}

fn is_inside((least, most): IntegerRange, (lo, hi): IntegerRange) -> bool {
    lo <= least && most <= hi
}

/// The values of an operation, if they were not wrapped; `None` for one that gives no integers.
fn exact(program: &Program, op: ElementOp, operands: &[Value]) -> Option<IntegerRange> {
    let ranges: Option<Vec<IntegerRange>> = operands.iter().map(|operand| range(program, operand)).collect();
    op.exact_range(&ranges?)
}

/// The values that an integer may have; `None` for what is none.
fn range(program: &Program, value: &Value) -> Option<IntegerRange> {
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
