use super::choice::{choices, names};
use super::refused;
use crate::dtype::DType;
use crate::error::LayoutError;

choices! {
    /// A type of the elements of PTX's matrix instructions (PTX ISA, sections "Fundamental Types" and "Alternate
    /// Floating-Point Data Formats").
    pub MmaType, "element type";
    /// One bit.
    B1 = "b1",
    /// Unsigned 4-bit integer.
    U4 = "u4",
    /// Signed 4-bit integer.
    S4 = "s4",
    /// Unsigned 8-bit integer.
    U8 = "u8",
    /// Signed 8-bit integer.
    S8 = "s8",
    /// 4-bit float, 2 exponent bits and 1 mantissa bit.
    E2m1 = "e2m1",
    /// 6-bit float, 2 exponent bits and 3 mantissa bits.
    E2m3 = "e2m3",
    /// 6-bit float, 3 exponent bits and 2 mantissa bits.
    E3m2 = "e3m2",
    /// 8-bit float, 4 exponent bits and 3 mantissa bits.
    E4m3 = "e4m3",
    /// 8-bit float, 5 exponent bits and 2 mantissa bits.
    E5m2 = "e5m2",
    /// Scale factor: an unsigned power of two, 8 exponent bits.
    Ue8m0 = "ue8m0",
    /// Scale factor: unsigned float, 4 exponent bits and 3 mantissa bits, stored in 8 bits.
    Ue4m3 = "ue4m3",
    /// IEEE 754 half.
    F16 = "f16",
    /// bfloat16.
    Bf16 = "bf16",
    /// 32 bits of which the tensor core reads 19.
    Tf32 = "tf32",
    /// IEEE 754 single.
    F32 = "f32",
    /// Signed 32-bit integer.
    S32 = "s32",
    /// IEEE 754 double.
    F64 = "f64",
}

impl MmaType {
    /// The type that corresponds to a dtype. Error: matrix instructions do not support it.
    pub fn of_dtype(dtype: DType) -> Result<MmaType, LayoutError> {
        match dtype {
            DType::F64 => Ok(MmaType::F64),
            DType::F32 => Ok(MmaType::F32),
            DType::F16 => Ok(MmaType::F16),
            DType::BF16 => Ok(MmaType::Bf16),
            DType::E4M3 => Ok(MmaType::E4m3),
            DType::E5M2 => Ok(MmaType::E5m2),
            DType::I8 => Ok(MmaType::S8),
            DType::I32 => Ok(MmaType::S32),
            DType::U8 => Ok(MmaType::U8),
            DType::I16 | DType::I64 | DType::U16 | DType::U32 | DType::U64 => Err(no_type_of(dtype)),
            DType::B8 | DType::B16 | DType::B32 | DType::B64 | DType::B128 => Err(no_type_of(dtype)),
        }
    }

    /// The type as which instructions read factors of a dtype: that of the same name, and tf32 for f32, of which they drop the low 13
    /// bits.
    ///
    /// Error: a dtype that no instruction multiplies.
    pub fn of_factor(dtype: DType) -> Result<MmaType, LayoutError> {
        match dtype {
            DType::F32 => Ok(MmaType::Tf32),
            other => MmaType::of_dtype(other),
        }
    }

    /// Bits of one element, without the padding that some instructions require.
    pub fn bits(self) -> i64 {
        match self {
            MmaType::B1 => 1,
            MmaType::U4 | MmaType::S4 | MmaType::E2m1 => 4,
            MmaType::E2m3 | MmaType::E3m2 => 6,
            MmaType::U8 | MmaType::S8 | MmaType::E4m3 | MmaType::E5m2 | MmaType::Ue8m0 | MmaType::Ue4m3 => 8,
            MmaType::F16 | MmaType::Bf16 => 16,
            MmaType::Tf32 | MmaType::F32 | MmaType::S32 => 32,
            MmaType::F64 => 64,
        }
    }

    /// True for signed and unsigned integers and single bits.
    pub fn is_integer(self) -> bool {
        matches!(self, MmaType::B1 | MmaType::U4 | MmaType::S4 | MmaType::U8 | MmaType::S8 | MmaType::S32)
    }
}

fn no_type_of(dtype: DType) -> LayoutError {
    refused("element type", format!("matrix instructions do not support `{dtype}`"), names::<MmaType>())
}

#[cfg(test)]
mod tests {
    use super::MmaType;
    use crate::dtype::DType;

    #[test]
    fn a_dtype_is_the_type_of_its_name_and_size() {
        for dtype in DType::ALL.iter().copied() {
            let Ok(element) = MmaType::of_dtype(dtype) else { continue };
            assert_eq!((element.bits(), element.is_integer()), (dtype.bytes() * 8, dtype.is_integer()), "{dtype}");
            let name = if dtype.is_integer() { dtype.name().replace('i', "s") } else { dtype.name().to_string() };
            assert_eq!(element.name(), name);
        }
        assert_eq!(MmaType::of_dtype(DType::B32).unwrap_err().code(), "L0113");
    }

    #[test]
    fn the_name_of_a_small_float_counts_its_bits_without_the_sign() {
        let small = MmaType::ALL.iter().filter(|element| element.name().starts_with('e'));
        let digits = |name: &str| name.chars().filter_map(|c| c.to_digit(10)).map(i64::from).sum::<i64>();
        let bits: Vec<(i64, i64)> = small.map(|element| (element.bits(), 1 + digits(element.name()))).collect();
        assert_eq!((bits.len(), bits.iter().all(|(given, counted)| given == counted)), (5, true));
    }
}
