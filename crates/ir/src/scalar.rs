use std::fmt;

/// A constant element, as `fill` takes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// An integer; for floating dtypes, its nearest value.
    Int(i64),
    /// A floating-point number; only for floating dtypes.
    Float(f64),
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
