//! How dtypes, vectors of them and constants are written in CUDA C++, without any header.

use tilewright_diag::Diagnostic;
use tilewright_ir::{ByteFloat, Scalar, nearest_bf16, nearest_f16};
use tilewright_layout::DType;

use crate::defect::unprintable;

/// The C++ type of one element. A float of 16 or 8 bits is held as its bits; 16 opaque bytes are a `uint4`.
pub(crate) fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "double",
        DType::F32 => "float",
        DType::F16 | DType::BF16 | DType::U16 | DType::B16 => "unsigned short",
        DType::I8 => "signed char",
        DType::I16 => "short",
        DType::I32 => "int",
        DType::I64 => "long long",
        DType::E4M3 | DType::E5M2 | DType::U8 | DType::B8 => "unsigned char",
        DType::U32 | DType::B32 => "unsigned int",
        DType::U64 | DType::B64 => "unsigned long long",
        DType::B128 => "uint4",
    }
}

/// The type through which `count` adjacent elements move at once.
pub(crate) fn vector_type(dtype: DType, count: i64) -> Result<String, Diagnostic> {
    let bytes = dtype.bytes() * count;
    if count < 1 || bytes > 32 || !bytes.unsigned_abs().is_power_of_two() {
        return Err(unprintable(format!("there is no vector of {count} {dtype}")));
    }
    let base = match (dtype, count) {
        (_, 1) => return Ok(c_type(dtype).to_string()),
        _ if bytes == 32 => return Ok("ulonglong4_32a".to_string()),
        (DType::F64, _) => "double",
        (DType::F32, _) => "float",
        (DType::I32, _) => "int",
        (DType::U32 | DType::B32, _) => "uint",
        (DType::I64, _) => "longlong",
        (DType::U64 | DType::B64, _) => "ulonglong",
        (
            DType::F16
            | DType::BF16
            | DType::E4M3
            | DType::E5M2
            | DType::I8
            | DType::I16
            | DType::U8
            | DType::U16
            | DType::B8
            | DType::B16
            | DType::B128,
            _,
        ) => {
            let words = match bytes {
                2 => "unsigned short",
                4 => "unsigned int",
                8 => "uint2",
                16 => "uint4",
                _ => return Err(unprintable(format!("there is no vector of {bytes} bytes"))),
            };
            return Ok(words.to_string());
        }
    };
    Ok(format!("{base}{count}"))
}

/// A constant of this dtype.
pub(crate) fn literal(dtype: DType, value: Scalar) -> String {
    let real = value.real(dtype);
    let whole = match value {
        Scalar::Int(v) => v,
        Scalar::Float(v) => v as i64,
    };
    match dtype {
        DType::F64 if real.is_finite() => format!("{real:?}"),
        DType::F64 => format!("__longlong_as_double({:#x}ll)", real.to_bits()),
        DType::F32 if (real as f32).is_finite() => format!("{:?}f", real as f32),
        DType::F32 => format!("__int_as_float({:#x})", (real as f32).to_bits()),
        DType::F16 | DType::BF16 => format!("{:#06x}", narrow_bits(dtype, real)),
        DType::E4M3 | DType::E5M2 => format!("{:#04x}", narrow_bits(dtype, real)),
        DType::I64 => format!("{whole}ll"),
        // A number above `i64::MAX` is held as its bits.
        DType::U64 | DType::B64 => format!("{}ull", whole as u64),
        DType::U32 | DType::B32 => format!("{whole}u"),
        DType::I8 | DType::I16 | DType::I32 | DType::U8 | DType::U16 | DType::B8 | DType::B16 => whole.to_string(),
        DType::B128 => {
            let bits = whole as u64;
            format!("make_uint4({}, {}, 0, 0)", bits as u32, bits >> 32)
        }
    }
}

/// The bits of the nearest number of a floating-point dtype of 16 or 8 bits.
fn narrow_bits(dtype: DType, real: f64) -> u16 {
    match (ByteFloat::of(dtype), dtype) {
        (Some(format), _) => u16::from(format.nearest(real)),
        (None, DType::BF16) => nearest_bf16(real).to_bits(),
        (None, _) => nearest_f16(real).to_bits(),
    }
}

/// The nearest number of a floating-point dtype of 16 or 8 bits, as a constant of type `float`.
pub(crate) fn widened_literal(dtype: DType, value: Scalar) -> String {
    let real = value.real(dtype);
    let widened = match (ByteFloat::of(dtype), dtype) {
        (Some(format), _) => format.value(format.nearest(real)),
        (None, DType::BF16) => nearest_bf16(real).to_f64(),
        (None, _) => nearest_f16(real).to_f64(),
    };
    literal(DType::F32, Scalar::Float(widened))
}

/// A vector of `count` elements that all are this constant.
pub(crate) fn vector_literal(dtype: DType, count: i64, value: Scalar) -> Result<String, Diagnostic> {
    let (parts, part) = if dtype.bytes() < 4 {
        (dtype.bytes() * count / 4, word_literal(dtype, value))
    } else {
        (count, literal(dtype, value))
    };
    Ok(match parts {
        0 | 1 => part,
        _ => format!("make_{}({})", vector_type(dtype, count)?, vec![part; parts as usize].join(", ")),
    })
}

/// A 32-bit word of narrower elements that all are this constant; shorter vectors take its low bytes.
fn word_literal(dtype: DType, value: Scalar) -> String {
    let bits = match (dtype, value) {
        (dtype, _) if dtype.is_narrow_float() => narrow_bits(dtype, value.real(dtype)),
        (_, Scalar::Int(v)) => v as u16,
        (_, Scalar::Float(v)) => v as i64 as u16,
    };
    let word = if dtype.bytes() == 1 { u32::from(bits as u8) * 0x0101_0101 } else { u32::from(bits) * 0x0001_0001 };
    if word == 0 { "0".to_string() } else { format!("{word:#x}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_constants_are_rounded_to_nearest_even() {
        let f16 = |v| literal(DType::F16, Scalar::Float(v));
        let expected = ["0x3c00", "0xc000", "0x7bff", "0x7c00", "0x0001", "0x0400", "0x3c00", "0x3c02"];
        let seen = [1.0, -2.0, 65504.0, 65520.0, 2f64.powi(-24), 2f64.powi(-14), 1.00048828125, 1.00146484375].map(f16);
        assert_eq!(seen, expected);
        let bf16 = |v| literal(DType::BF16, Scalar::Float(v));
        let seen = [1.0, -0.0, f64::INFINITY, 3.0e38].map(bf16);
        assert_eq!(seen, ["0x3f80", "0x8000", "0x7f80", "0x7f62"]);
    }

    #[test]
    fn the_greatest_integers_are_written_as_they_are() {
        let seen = [(DType::U64, -1), (DType::I64, i64::MAX), (DType::U32, u32::MAX.into()), (DType::U64, 7)]
            .map(|(dtype, value)| literal(dtype, Scalar::Int(value)));
        assert_eq!(seen, ["18446744073709551615ull", "9223372036854775807ll", "4294967295u", "7ull"]);
    }

    #[test]
    fn widened_constants_are_those_of_the_narrow_format() {
        let seen = [0.1, -2.0, 65520.0, 2f64.powi(-24), -0.0].map(|v| widened_literal(DType::F16, Scalar::Float(v)));
        assert_eq!(seen, ["0.099975586f", "-2.0f", "__int_as_float(0x7f800000)", "5.9604645e-8f", "-0.0f"]);
        let seen = [0.1, 3.0].map(|v| widened_literal(DType::BF16, Scalar::Float(v)));
        assert_eq!(seen, ["0.100097656f", "3.0f"]);
    }

    #[test]
    fn a_constant_fills_every_element_of_a_vector() {
        let seen = [
            vector_literal(DType::U8, 8, Scalar::Int(3)),
            vector_literal(DType::F16, 2, Scalar::Float(1.0)),
            vector_literal(DType::F32, 2, Scalar::Int(0)),
        ];
        let seen = seen.map(Result::unwrap);
        assert_eq!(seen, ["make_uint2(0x3030303, 0x3030303)", "0x3c003c00", "make_float2(0.0f, 0.0f)"]);
    }

    #[test]
    fn the_bits_of_the_widest_type_are_words() {
        let seen = [0, 7 + (3 << 32), -1].map(|value| literal(DType::B128, Scalar::Int(value)));
        let expected = ["make_uint4(0, 0, 0, 0)", "make_uint4(7, 3, 0, 0)", "make_uint4(4294967295, 4294967295, 0, 0)"];
        assert_eq!(seen, expected);
    }

    #[test]
    fn vectors_that_cuda_does_not_have_are_errors() {
        for (dtype, count) in [(DType::B128, 4), (DType::U8, 3), (DType::F32, 16), (DType::F32, 0)] {
            assert!(vector_type(dtype, count).is_err(), "{dtype} {count}");
        }
    }

    #[test]
    fn vectors_have_the_names_that_cuda_has() {
        let seen = [
            (DType::F32, 4),
            (DType::B64, 2),
            (DType::F16, 8),
            (DType::U8, 4),
            (DType::I32, 2),
            (DType::B128, 1),
            (DType::F32, 8),
        ];
        assert_eq!(
            seen.map(|(d, n)| vector_type(d, n).unwrap()),
            ["float4", "ulonglong2", "uint4", "unsigned int", "int2", "uint4", "ulonglong4_32a"]
        );
    }
}
