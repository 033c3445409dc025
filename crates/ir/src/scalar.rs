use std::fmt;

use tilewright_layout::DType;

use crate::halves::{nearest_bf16, nearest_f16};

/// A constant element, as `fill` takes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// An integer; for floating dtypes, its nearest value.
    Int(i64),
    /// A floating-point number; only for floating dtypes.
    Float(f64),
}

impl Scalar {
    /// True when the constant is a value of `dtype`: an integer that it holds, or for floating dtypes what is not rounded to
    /// an infinity. Opaque dtypes take only 0, which is all bits zero.
    pub fn fits(self, dtype: DType) -> bool {
        match (self, dtype.integers()) {
            (Scalar::Int(value), Some((least, most))) => (least..=most).contains(&i128::from(value)),
            (Scalar::Float(_), Some(_)) => false,
            (_, None) if dtype.is_opaque() => self == Scalar::Int(0),
            (Scalar::Int(value), None) => is_held(value as f64, dtype),
            (Scalar::Float(value), None) => !value.is_finite() || is_held(value, dtype),
        }
    }
}

/// Whether a floating dtype rounds the value to a finite one: less than half a unit in the last place beyond its greatest.
fn is_held(value: f64, dtype: DType) -> bool {
    match dtype {
        DType::F16 => nearest_f16(value).is_finite(),
        DType::BF16 => nearest_bf16(value).is_finite(),
        DType::F32 => (value as f32).is_finite(),
        _ => true,
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
