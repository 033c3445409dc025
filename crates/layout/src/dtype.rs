use std::fmt;
use std::str::FromStr;

macro_rules! dtypes {
    ($($variant:ident, $name:literal, $bytes:literal, $doc:literal;)*) => {
        /// The type of an element. `b8` to `b128` are opaque: they can be moved but not computed with.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DType {
            $(#[doc = $doc] $variant,)*
        }

        impl DType {
            /// Every dtype.
            pub const ALL: &'static [DType] = &[$(DType::$variant),*];

            /// Its name in notation, plans and the command line.
            pub fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// Bytes of one element.
            pub fn bytes(self) -> i64 {
                match self { $(DType::$variant => $bytes,)* }
            }
        }
    };
}

dtypes! {
    F64, "f64", 8, "IEEE 754 double.";
    F32, "f32", 4, "IEEE 754 single.";
    F16, "f16", 2, "IEEE 754 half.";
    BF16, "bf16", 2, "bfloat16.";
    E4M3, "e4m3", 1, "8-bit float of 4 exponent bits and 3 mantissa bits: up to 448, with NaN and without infinities.";
    E5M2, "e5m2", 1, "8-bit float of 5 exponent bits and 2 mantissa bits: up to 57344, with NaN and infinities.";
    I8, "i8", 1, "Signed 8-bit integer.";
    I16, "i16", 2, "Signed 16-bit integer.";
    I32, "i32", 4, "Signed 32-bit integer.";
    I64, "i64", 8, "Signed 64-bit integer.";
    U8, "u8", 1, "Unsigned 8-bit integer.";
    U16, "u16", 2, "Unsigned 16-bit integer.";
    U32, "u32", 4, "Unsigned 32-bit integer.";
    U64, "u64", 8, "Unsigned 64-bit integer.";
    B8, "b8", 1, "1 opaque byte.";
    B16, "b16", 2, "2 opaque bytes.";
    B32, "b32", 4, "4 opaque bytes.";
    B64, "b64", 8, "8 opaque bytes.";
    B128, "b128", 16, "16 opaque bytes.";
}

impl DType {
    /// Whether it is a floating-point format.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F64 | DType::F32) || self.is_narrow_float()
    }

    /// Whether it is a float of fewer than 32 bits: values are computed as `f32` and then rounded to it.
    pub fn is_narrow_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16) || self.saturation().is_some()
    }

    /// The greatest number of an 8-bit float, which conversions give for larger ones (PTX ISA, `cvt` with `.satfinite`);
    /// `None` for other dtypes.
    pub fn saturation(self) -> Option<f64> {
        match self {
            DType::E4M3 => Some(448.0),
            DType::E5M2 => Some(57344.0),
            DType::F64 | DType::F32 | DType::F16 | DType::BF16 => None,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => None,
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => None,
            DType::B8 | DType::B16 | DType::B32 | DType::B64 | DType::B128 => None,
        }
    }

    /// Whether it is opaque: values can be moved but not computed with.
    pub fn is_opaque(self) -> bool {
        matches!(self, DType::B8 | DType::B16 | DType::B32 | DType::B64 | DType::B128)
    }

    /// The least and the greatest integer that it can represent; `None` if it is not an integer type.
    pub fn integers(self) -> Option<(i128, i128)> {
        let bits = 8 * self.bytes();
        match self {
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => Some((-1 << (bits - 1), (1 << (bits - 1)) - 1)),
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => Some((0, (1 << bits) - 1)),
            DType::F64 | DType::F32 | DType::F16 | DType::BF16 | DType::E4M3 | DType::E5M2 => None,
            DType::B8 | DType::B16 | DType::B32 | DType::B64 | DType::B128 => None,
        }
    }

    /// Whether it is an integer type.
    pub fn is_integer(self) -> bool {
        !self.is_float() && !self.is_opaque()
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = String;

    fn from_str(text: &str) -> Result<DType, String> {
        DType::ALL.iter().copied().find(|dtype| dtype.name() == text).ok_or_else(|| {
            let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
            format!("`{text}` is not a dtype; the dtypes are {}", names.join(", "))
        })
    }
}
