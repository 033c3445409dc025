use std::fmt;

use tilewright_layout::DType;

use crate::byte_floats::ByteFloat;
use crate::halves::{nearest_bf16, nearest_f16, round_to_odd_f64};

/// A constant element value, such as the one that `fill` writes.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// An integer; for a floating dtype, it stands for the nearest value of that dtype.
    Int(i64),
    /// A floating-point number; only for floating dtypes.
    Float(f64),
}

/// Constants are equal if they are the same constant: 0.0 and -0.0 are not, and NaN is equal to itself.
impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        match (self, other) {
            (Scalar::Int(a), Scalar::Int(b)) => a == b,
            (Scalar::Float(a), Scalar::Float(b)) => a.to_bits() == b.to_bits(),
            (Scalar::Int(_), Scalar::Float(_)) | (Scalar::Float(_), Scalar::Int(_)) => false,
        }
    }
}

impl Scalar {
    /// The constant as an f64, to be rounded to the floating dtype. An integer that f64 does not represent exactly is
    /// rounded to odd, so that rounding it again to a narrower dtype is correct.
    pub fn real(self, dtype: DType) -> f64 {
        match self {
            Scalar::Int(value) if dtype == DType::F64 => value as f64,
            Scalar::Int(value) => round_to_odd_f64(value),
            Scalar::Float(value) => value,
        }
    }

    /// True if `dtype` accepts the constant: an integer in its range, or for a floating dtype anything that rounding
    /// does not make infinite; 8-bit floats do not accept infinities either, as conversions to them saturate. Opaque dtypes
    /// take only 0, which is all bits zero.
    pub fn fits(self, dtype: DType) -> bool {
        match (self, dtype.integers()) {
            (Scalar::Int(value), Some((least, most))) => (least..=most).contains(&i128::from(value)),
            (Scalar::Float(_), Some(_)) => false,
            (_, None) if dtype.is_opaque() => self == Scalar::Int(0),
            (Scalar::Int(_), None) => is_held(self.real(dtype), dtype),
            (Scalar::Float(value), None) if value.is_infinite() => dtype.saturation().is_none(),
            (Scalar::Float(value), None) => value.is_nan() || is_held(value, dtype),
        }
    }
}

/// Whether a floating dtype rounds the value to a finite one: its magnitude exceeds the greatest one by less than half
/// a unit in the last place.
fn is_held(value: f64, dtype: DType) -> bool {
    match dtype {
        DType::F16 => nearest_f16(value).is_finite(),
        DType::BF16 => nearest_bf16(value).is_finite(),
        DType::F32 => (value as f32).is_finite(),
        DType::F64 => true,
        DType::E4M3 | DType::E5M2 => ByteFloat::of(dtype).is_some_and(|format| format.holds(value)),
        // Integer dtypes have ranges of their own, and opaque ones hold no number.
        DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::B8
        | DType::B16
        | DType::B32
        | DType::B64
        | DType::B128 => false,
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Scalar {
        Scalar::Int(value)
    }
}

impl From<i32> for Scalar {
    fn from(value: i32) -> Scalar {
        Scalar::Int(i64::from(value))
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Scalar {
        Scalar::Float(value)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Int(value) => write!(f, "{value}"),
            Scalar::Float(value) => write!(f, "{value:?}"),
        }
    }
}
