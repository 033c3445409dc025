//! How the elements of a row are combined, in reductions and scans.

use tilewright_ir::Scalar;
use tilewright_ir::thread::Value;
use tilewright_ir::tile::{ElementOp, Narrowing, ReduceKind};
use tilewright_layout::DType;

use crate::refusal::Refusal;

/// The operation that combines two parts.
pub(crate) fn combine(kind: ReduceKind) -> ElementOp {
    match kind {
        ReduceKind::Sum | ReduceKind::AbsSum | ReduceKind::SquareSum => ElementOp::Add,
        ReduceKind::Max | ReduceKind::AbsMax => ElementOp::Max,
        ReduceKind::Min => ElementOp::Min,
        ReduceKind::Product => ElementOp::Mul,
        ReduceKind::And => ElementOp::And,
        ReduceKind::Or => ElementOp::Or,
        ReduceKind::Xor => ElementOp::Xor,
    }
}

/// Whether a part that is combined twice counts once.
pub(crate) fn is_idempotent(kind: ReduceKind) -> bool {
    matches!(combine(kind), ElementOp::Max | ElementOp::Min | ElementOp::And | ElementOp::Or)
}

/// The [neutral value](ReduceKind::neutral). Error: a dtype without numbers.
pub(crate) fn neutral(kind: ReduceKind, dtype: DType) -> Result<Scalar, Refusal> {
    kind.neutral(dtype).ok_or_else(|| Refusal::from(format!("no neutral value of {dtype}")))
}

/// The value, of dtype `from`, as one of another dtype; integers keep their low bits.
pub(crate) fn cast(dtype: DType, from: DType, value: Value) -> Value {
    if dtype == from { value } else { Value::Cast(dtype, Narrowing::Fits, Box::new(value)) }
}

/// What an element of dtype `from` contributes, in the type `made` in which parts are combined. `absmax` takes the absolute
/// value in the dtype of the element, where that of the least integer is itself; `abssum` uses only the low bits, which are
/// the same in both types.
pub(crate) fn contribution(kind: ReduceKind, made: DType, from: DType, element: Value) -> Value {
    let made = |value: Value| cast(made, from, value);
    let absolute = |value: Value| Value::Op(ElementOp::Abs, vec![value]);
    match kind {
        ReduceKind::AbsMax => made(absolute(element)),
        ReduceKind::AbsSum => absolute(made(element)),
        ReduceKind::SquareSum => Value::Op(ElementOp::Mul, vec![made(element.clone()), made(element)]),
        ReduceKind::Sum | ReduceKind::Max | ReduceKind::Min | ReduceKind::Product => made(element),
        ReduceKind::And | ReduceKind::Or | ReduceKind::Xor => made(element),
    }
}

/// Two parts as one. A square that is added to a sum of floats is not rounded first.
pub(crate) fn combined(kind: ReduceKind, made: DType, part: Value, next: Value) -> Value {
    match (kind, next) {
        (ReduceKind::SquareSum, Value::Op(ElementOp::Mul, mut factors)) if made.is_float() => {
            factors.push(part);
            Value::Op(ElementOp::Fma, factors)
        }
        (_, next) => Value::Op(combine(kind), vec![part, next]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_begin_at_the_other_end_of_their_dtype() {
        let of = |kind| [DType::I32, DType::I64, DType::U32, DType::U64].map(|dtype| neutral(kind, dtype).unwrap());
        let numbers = |all: [i64; 4]| all.map(Scalar::Int);
        assert_eq!(of(ReduceKind::Min), numbers([i32::MAX.into(), i64::MAX, u32::MAX.into(), u64::MAX as i64]));
        for kind in [ReduceKind::Max, ReduceKind::AbsMax] {
            assert_eq!(of(kind), numbers([i32::MIN.into(), i64::MIN, 0, 0]));
        }
        for kind in [ReduceKind::Sum, ReduceKind::AbsSum, ReduceKind::SquareSum] {
            assert_eq!(of(kind), numbers([0; 4]));
        }
    }

    #[test]
    fn the_neutral_value_of_floats_is_nan_or_minus_zero() {
        for dtype in [DType::F32, DType::F64] {
            for kind in [ReduceKind::Max, ReduceKind::Min, ReduceKind::AbsMax] {
                assert!(matches!(neutral(kind, dtype), Ok(Scalar::Float(value)) if value.is_nan()));
            }
            for kind in [ReduceKind::Sum, ReduceKind::AbsSum, ReduceKind::SquareSum] {
                assert!(
                    matches!(neutral(kind, dtype), Ok(Scalar::Float(value)) if value == 0.0 && value.is_sign_negative())
                );
            }
        }
    }
}
