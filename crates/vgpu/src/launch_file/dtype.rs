//! The element types of buffers and of results.

use serde::Deserialize;

use crate::float::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, Format, power, widen};

/// An element type of a launch file. Floating-point types of less than 8 bits occupy a byte each, except `e2m1x2`, which
/// has two elements in a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 16 bits.
    I16,
    /// Unsigned, 16 bits.
    U16,
    /// Signed, 32 bits.
    I32,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 64 bits.
    U64,
    /// IEEE half precision.
    F16,
    /// The upper half of an f32.
    Bf16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// 4 bits of exponent, 3 of mantissa.
    E4m3,
    /// 5 bits of exponent, 2 of mantissa.
    E5m2,
    /// 2 bits of exponent, 3 of mantissa, in a byte.
    E2m3,
    /// 3 bits of exponent, 2 of mantissa, in a byte.
    E3m2,
    /// Two elements of 2 bits of exponent and 1 of mantissa; the first is in the lower bits.
    E2m1x2,
    /// A power of two: 8 bits of exponent.
    Ue8m0,
    /// `e4m3` without a sign.
    Ue4m3,
}

impl ElementType {
    /// Whether an array of elements of `other` can hold these: a floating-point type that NumPy has is stored as itself, and others
    /// as integers of their size.
    pub fn is_stored_as(self, other: ElementType) -> bool {
        let is_float = |kind: ElementType| matches!(kind, ElementType::F16 | ElementType::F32 | ElementType::F64);
        if is_float(self) || is_float(other) { self == other } else { self.bytes() == other.bytes() }
    }

    /// Bytes of an element, for `e2m1x2` of a pair.
    pub fn bytes(self) -> usize {
        use ElementType::{Bf16, E2m1x2, E2m3, E3m2, E4m3, E5m2, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
        match self {
            I8 | U8 | E4m3 | E5m2 | E2m3 | E3m2 | E2m1x2 | ElementType::Ue8m0 | ElementType::Ue4m3 => 1,
            I16 | U16 | F16 | Bf16 => 2,
            I32 | U32 | F32 => 4,
            I64 | U64 | F64 => 8,
        }
    }

    /// The name in launch files.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// The elements in the bits of one entry: one, or two of `e2m1x2`.
    pub fn elements(self, bits: u64) -> Vec<Element> {
        let float = |bits: u64, format: Format| Element::Float(widen(bits as u32, format));
        let signed = |bytes: u32| Element::Integer(i128::from(crate::isa::sign_extend(bits, 8 * bytes)));
        vec![match self {
            ElementType::I8 => signed(1),
            ElementType::I16 => signed(2),
            ElementType::I32 => signed(4),
            ElementType::I64 => signed(8),
            ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => {
                Element::Integer(i128::from(bits))
            }
            ElementType::F16 => float(bits, F16),
            ElementType::Bf16 => float(bits, BF16),
            ElementType::F32 => Element::Float(f64::from(f32::from_bits(bits as u32))),
            ElementType::F64 => Element::Float(f64::from_bits(bits)),
            ElementType::E4m3 => float(bits, E4M3),
            ElementType::E5m2 => float(bits, E5M2),
            ElementType::E2m3 => float(bits & 0x3f, E2M3),
            ElementType::E3m2 => float(bits & 0x3f, E3M2),
            ElementType::E2m1x2 => return vec![float(bits & 15, E2M1), float(bits >> 4 & 15, E2M1)],
            ElementType::Ue8m0 => Element::Float(power(bits as u8)),
            ElementType::Ue4m3 => float(bits & 0x7f, E4M3),
        }]
    }
}

/// The value of an element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Element {
    /// An integer.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
}

impl Element {
    /// Whether it differs from `expected` by at most `atol + rtol * |expected|`. NaN equals NaN.
    pub fn is_close(self, expected: Element, rtol: f64, atol: f64) -> bool {
        match (self, expected) {
            (Element::Integer(got), Element::Integer(want)) if rtol == 0.0 && atol == 0.0 => got == want,
            (got, want) => {
                let (got, want) = (got.number(), want.number());
                got == want || (got.is_nan() && want.is_nan()) || (got - want).abs() <= atol + rtol * want.abs()
            }
        }
    }

    fn number(self) -> f64 {
        match self {
            Element::Integer(value) => value as f64,
            Element::Float(value) => value,
        }
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Element::Integer(value) => write!(f, "{value}"),
            Element::Float(value) => write!(f, "{value:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_floats_have_the_values_of_their_formats() {
        let of = |dtype: ElementType, bits: u64| dtype.elements(bits);
        assert_eq!(of(ElementType::E2m1x2, 0x72), [Element::Float(1.0), Element::Float(6.0)]);
        assert_eq!(of(ElementType::E3m2, 0x1f), [Element::Float(28.0)]);
        assert_eq!(of(ElementType::E2m3, 0x3f), [Element::Float(-7.5)]);
        assert_eq!(of(ElementType::Ue8m0, 128), [Element::Float(2.0)]);
        assert_eq!(of(ElementType::Ue4m3, 0x7e), [Element::Float(448.0)]);
        assert_eq!(of(ElementType::I8, 0xff), [Element::Integer(-1)]);
    }

    #[test]
    fn tolerances_are_relative_and_absolute() {
        let close = |a: f64, b: f64, rtol: f64, atol: f64| Element::Float(a).is_close(Element::Float(b), rtol, atol);
        assert!(close(1.01, 1.0, 0.02, 0.0) && !close(1.03, 1.0, 0.02, 0.0));
        assert!(close(0.0, 1e-3, 0.0, 1e-3) && close(f64::NAN, f64::NAN, 0.0, 0.0));
        assert!(close(f64::INFINITY, f64::INFINITY, 0.1, 0.1) && !close(f64::INFINITY, 1.0, 0.1, 0.1));
    }
}
