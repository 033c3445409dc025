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
    }
}

/// The neutral value: combining it with a part of this dtype changes nothing.
///
/// `max` and `min` of floats return the number where one operand is NaN, so their neutral value is NaN: an infinity
/// would be the result of a row that has only NaN, and only in the layouts that use the neutral value. For sums of
/// floats it is -0, since -0 + -0 is -0 but 0 + -0 is 0. The absolute value of the least integer is itself, so
/// `absmax` starts from it as well. Error: a dtype without numbers.
pub(super) fn neutral(kind: ReduceKind, dtype: DType) -> Result<Scalar, Refusal> {
    if dtype.is_float() {
        return Ok(Scalar::Float(match kind {
            ReduceKind::Sum | ReduceKind::AbsSum | ReduceKind::SquareSum => -0.0,
            ReduceKind::Max | ReduceKind::AbsMax | ReduceKind::Min => f64::NAN,
        }));
    }
    let (least, most) = dtype.integers().ok_or_else(|| format!("no neutral value of {dtype}"))?;
    Ok(Scalar::Int(match kind {
        ReduceKind::Sum | ReduceKind::AbsSum | ReduceKind::SquareSum => 0,
        ReduceKind::Max | ReduceKind::AbsMax => least as i64,
        // The bits of the greatest u64 are those of -1.
        ReduceKind::Min => most as i64,
    }))
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
