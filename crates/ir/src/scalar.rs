use std::fmt;

use tilewright_layout::DType;

/// A constant element, as `fill` takes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// An integer; for floating dtypes, its nearest value.
    Int(i64),
    /// A floating-point number; only for floating dtypes.
    Float(f64),
}

impl Scalar {
    /// True when the constant is a value of `dtype`. Opaque dtypes take only 0, which is all bits zero.
    pub fn fits(self, dtype: DType) -> bool {
        let unsigned = |bits: u32| matches!(self, Scalar::Int(v) if v >= 0 && (bits >= 63 || v < 1 << bits));
        let signed = |bits: u32| matches!(self, Scalar::Int(v) if bits == 64 || (-(1i64 << (bits - 1))..1 << (bits - 1)).contains(&v));
        match dtype {
            DType::F64 | DType::F32 | DType::F16 | DType::BF16 => true,
            DType::I8 => signed(8),
            DType::I16 => signed(16),
            DType::I32 => signed(32),
            DType::I64 => signed(64),
            DType::U8 => unsigned(8),
            DType::U16 => unsigned(16),
            DType::U32 => unsigned(32),
            DType::U64 => unsigned(64),
            DType::B8 | DType::B16 | DType::B32 | DType::B64 | DType::B128 => self == Scalar::Int(0),
        }
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
