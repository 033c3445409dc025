//! The operation that combines two parts of a row, and its neutral value.

use tilewright_ir::Scalar;
use tilewright_ir::tile::{ElementOp, ReduceKind};
use tilewright_layout::DType;

use crate::refusal::Refusal;

/// The operation that combines two parts.
pub(super) fn combine(kind: ReduceKind) -> ElementOp {
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
pub(super) fn is_idempotent(kind: ReduceKind) -> bool {
    match combine(kind) {
        ElementOp::Max | ElementOp::Min | ElementOp::And | ElementOp::Or => true,
        _ => false,
    }
}

/// The [neutral value](ReduceKind::neutral). Error: a dtype without numbers.
pub(super) fn neutral(kind: ReduceKind, dtype: DType) -> Result<Scalar, Refusal> {
    kind.neutral(dtype).ok_or_else(|| Refusal::from(format!("no neutral value of {dtype}")))
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
