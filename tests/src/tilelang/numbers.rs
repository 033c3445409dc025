//! The dtypes of golden programs: conversion from bits to numbers, and from numbers to bits, rounding to nearest, ties
//! to even.

use std::fmt;

use half::{bf16, f16};
use tilewright::ir::{nearest_bf16, nearest_f16};

/// The dtype of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    F64,
    F32,
    F16,
    BF16,
    E4M3,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Bool,
}

/// A number: `Whole` for integers and indices, `Real` for floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Plain {
    Whole(i64),
    Real(f64),
}

const NAMES: [(&str, Dtype); 14] = [
    ("float64", Dtype::F64),
    ("float32", Dtype::F32),
    ("float16", Dtype::F16),
    ("bfloat16", Dtype::BF16),
    ("float8_e4m3fn", Dtype::E4M3),
    ("int8", Dtype::I8),
    ("int16", Dtype::I16),
    ("int32", Dtype::I32),
    ("int64", Dtype::I64),
    ("uint8", Dtype::U8),
    ("uint16", Dtype::U16),
    ("uint32", Dtype::U32),
    ("uint64", Dtype::U64),
    ("bool", Dtype::Bool),
];

impl Dtype {
    /// The dtype by its name in the case files.
    pub(crate) fn named(name: &str) -> Result<Dtype, String> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, dtype)| *dtype).ok_or_else(|| format!("unknown dtype {name}"))
    }

    /// Bytes of an element.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Dtype::E4M3 | Dtype::I8 | Dtype::U8 | Dtype::Bool => 1,
            Dtype::F16 | Dtype::BF16 | Dtype::I16 | Dtype::U16 => 2,
            Dtype::F32 | Dtype::I32 | Dtype::U32 => 4,
            Dtype::F64 | Dtype::I64 | Dtype::U64 => 8,
        }
    }

    /// Whether it is a floating-point format.
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16 | Dtype::E4M3)
    }

    /// Whether it is a signed integer.
    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64)
    }

    /// The error bound for one correct operation on floats of this dtype: two units in the last place for 16-bit and
    /// smaller floats, and some more for wider ones. Functions such as `exp` are approximated, a product may be fused
    /// with a sum, and subnormal results may be flushed to zero.
    pub(crate) fn error(self, value: f64) -> f64 {
        let (relative, least) = match self {
            Dtype::F64 => (1e-14, f64::MIN_POSITIVE),
            Dtype::F32 => (1e-6, f64::from(f32::MIN_POSITIVE)),
            Dtype::F16 => (2e-3, power_of_two(-23)),
            Dtype::BF16 => (1.6e-2, f64::from(f32::MIN_POSITIVE)),
            Dtype::E4M3 => (0.25, power_of_two(-8)),
            _ => (0.0, 0.0),
        };
        relative * value.abs() + least
    }

    /// The number represented by the low bits.
    pub(crate) fn number(self, bits: u64) -> Plain {
        match self {
            Dtype::F64 => Plain::Real(f64::from_bits(bits)),
            Dtype::F32 => Plain::Real(f64::from(f32::from_bits(bits as u32))),
            Dtype::F16 => Plain::Real(f16::from_bits(bits as u16).to_f64()),
            Dtype::BF16 => Plain::Real(bf16::from_bits(bits as u16).to_f64()),
            Dtype::E4M3 => Plain::Real(e4m3_value(bits)),
            Dtype::I8 => Plain::Whole(i64::from(bits as i8)),
            Dtype::I16 => Plain::Whole(i64::from(bits as i16)),
            Dtype::I32 => Plain::Whole(i64::from(bits as i32)),
            Dtype::I64 | Dtype::U64 => Plain::Whole(bits as i64),
            Dtype::U8 => Plain::Whole(i64::from(bits as u8)),
            Dtype::U16 => Plain::Whole(i64::from(bits as u16)),
            Dtype::U32 => Plain::Whole(i64::from(bits as u32)),
            Dtype::Bool => Plain::Whole(i64::from(bits as u8 != 0)),
        }
    }

    /// The bits of the nearest representable number. For an integer dtype, integers wrap, and floats are truncated and
    /// clamped to the range. A value too large for a float becomes infinite; for an 8-bit float, the largest number.
    pub(crate) fn bits(self, number: Plain) -> u64 {
        let bits = match (self, number) {
            (Dtype::F64, _) => number.real().to_bits(),
            (Dtype::F32, _) => u64::from((number.real() as f32).to_bits()),
            (Dtype::F16, _) => bits_of_half(number.real(), nearest_f16(number.real()).to_bits()),
            (Dtype::BF16, _) => bits_of_half(number.real(), nearest_bf16(number.real()).to_bits()),
            (Dtype::E4M3, _) => e4m3_bits(number.real()),
            (Dtype::Bool, _) => u64::from(number.holds()),
            (_, Plain::Whole(value)) => value as u64,
            (_, Plain::Real(value)) => self.towards_zero(value) as u64,
        };
        let spare = 64 - 8 * self.bytes();
        bits << spare >> spare
    }

    fn towards_zero(self, value: f64) -> i64 {
        match self {
            Dtype::I8 => i64::from(value as i8),
            Dtype::I16 => i64::from(value as i16),
            Dtype::I32 => i64::from(value as i32),
            Dtype::U8 => i64::from(value as u8),
            Dtype::U16 => i64::from(value as u16),
            Dtype::U32 => i64::from(value as u32),
            Dtype::U64 => value as u64 as i64,
            _ => value as i64,
        }
    }
}

impl Plain {
    /// The number as a float.
    pub(crate) fn real(self) -> f64 {
        match self {
            Plain::Whole(value) => value as f64,
            Plain::Real(value) => value,
        }
    }

    /// Whether it is true when used as a condition.
    pub(crate) fn holds(self) -> bool {
        self.real() != 0.0
    }
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plain::Whole(value) => write!(f, "{value}"),
            Plain::Real(value) => write!(f, "{value}"),
        }
    }
}

/// The bits of a 16-bit float; for a NaN, those that conversions produce (PTX ISA, `cvt`).
fn bits_of_half(value: f64, nearest: u16) -> u64 {
    if value.is_nan() { 0x7fff } else { u64::from(nearest) }
}

/// Bits of the mantissa of E4M3.
const MANTISSA: i32 = 3;
/// The exponent of its least normal number.
const LEAST: i32 = -6;
/// The bits of its largest number, without the sign. There are no infinities: conversions saturate (PTX ISA,
/// `cvt.satfinite`).
const LARGEST: u64 = 0x7e;
const NAN: u64 = 0x7f;
const SIGN: u64 = 0x80;

fn e4m3_value(bits: u64) -> f64 {
    let magnitude = bits & (SIGN - 1);
    if magnitude > LARGEST {
        return f64::NAN;
    }
    let exponent = (magnitude >> MANTISSA) as i32;
    let hidden = if exponent == 0 { 0 } else { 1u64 << MANTISSA };
    let steps = (magnitude & ((1u64 << MANTISSA) - 1)) + hidden;
    let size = steps as f64 * power_of_two(exponent.max(1) - 1 + LEAST - MANTISSA);
    if bits & SIGN == 0 { size } else { -size }
}

fn e4m3_bits(value: f64) -> u64 {
    if value.is_nan() {
        return NAN;
    }
    let sign = if value.is_sign_negative() { SIGN } else { 0 };
    if value.is_infinite() {
        return sign | LARGEST;
    }
    let exponent = exponent(value).max(LEAST);
    let steps = (value.abs() / power_of_two(exponent - MANTISSA)).round_ties_even();
    // A mantissa rounded up to the next power of two carries into the exponent.
    let magnitude = (((exponent - LEAST) as u64) << MANTISSA) + steps as u64;
    sign | magnitude.min(LARGEST)
}

/// The exponent of a number; for zero and subnormal numbers, less than that of any normal number.
fn exponent(value: f64) -> i32 {
    ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

fn power_of_two(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(dtype: Dtype, values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| dtype.bits(Plain::Real(*value))).collect()
    }

    #[test]
    fn halves_round_to_even_and_overflow_to_infinity() {
        assert_eq!(real(Dtype::F16, &[1.0, -2.0, 65504.0]), [0x3c00, 0xc000, 0x7bff]);
        assert_eq!(real(Dtype::F16, &[65519.0, 65520.0, -1e30]), [0x7bff, 0x7c00, 0xfc00]);
        let least = power_of_two(-24);
        assert_eq!(real(Dtype::F16, &[least, least / 2.0, least * 1.5, -0.0]), [1, 0, 2, 0x8000]);
    }

    #[test]
    fn brain_floats_round_to_even() {
        assert_eq!(real(Dtype::BF16, &[1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0, 1e39]), [0x3f80, 0x3f82, 0x7f80]);
    }

    #[test]
    fn floats_of_8_bits_saturate() {
        assert_eq!(real(Dtype::E4M3, &[1.0, 448.0, 1e4, f64::NEG_INFINITY]), [0x38, 0x7e, 0x7e, 0xfe]);
        assert_eq!(real(Dtype::E4M3, &[f64::NAN, power_of_two(-9)]), [0x7f, 1]);
    }

    #[test]
    fn all_small_floats_come_back() {
        for (dtype, count) in [(Dtype::F16, 1u64 << 16), (Dtype::BF16, 1 << 16), (Dtype::E4M3, 1 << 8)] {
            for bits in 0..count {
                let number = dtype.number(bits);
                assert!(number.real().is_nan() || dtype.bits(number) == bits, "{dtype:?} {bits:#x}");
            }
        }
    }

    #[test]
    fn whole_numbers_wrap_and_real_ones_go_towards_zero() {
        assert_eq!(Dtype::I8.number(Dtype::I8.bits(Plain::Whole(130))), Plain::Whole(-126));
        assert_eq!(Dtype::I32.number(Dtype::I32.bits(Plain::Real(-1.9))), Plain::Whole(-1));
        assert_eq!(Dtype::U8.bits(Plain::Real(300.0)), 255);
    }

    #[test]
    fn dtypes_have_the_names_of_the_case_files() {
        assert_eq!(Dtype::named("float8_e4m3fn"), Ok(Dtype::E4M3));
        assert_eq!(Dtype::named("float4"), Err("unknown dtype float4".to_string()));
    }
}
