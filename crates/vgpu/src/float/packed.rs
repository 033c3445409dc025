//! The elements of packed pairs, as `cvt` reads and writes them.

use crate::float::{Format, narrow, widen};
use crate::isa::Round;

/// The type of the elements of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packed {
    Float(Format),
    /// `.ue8m0`.
    Power,
}

impl Packed {
    /// Bits from one element to the next: one of 6 bits has a byte of its own.
    pub(crate) fn stride(self) -> u32 {
        match self {
            Packed::Float(format) if format.bits() != 6 => format.bits(),
            Packed::Float(_) | Packed::Power => 8,
        }
    }

    /// Whether it is a float of at most 8 bits.
    pub(crate) fn is_small_float(self) -> bool {
        matches!(self, Packed::Float(format) if format.bits() <= 8)
    }

    /// The value of the element in the lowest bits.
    pub(crate) fn value(self, bits: u64) -> f64 {
        match self {
            Packed::Float(format) => widen(bits as u32, format),
            Packed::Power => power(bits as u8),
        }
    }

    /// The bits of a value. If `is_finite`, what is too large becomes the largest finite value.
    pub(crate) fn bits(self, value: f64, round: Round, is_finite: bool) -> u64 {
        match self {
            Packed::Float(format) => {
                let limit = if is_finite { format.largest() } else { f64::INFINITY };
                u64::from(narrow(value.clamp(-limit, limit), format, round))
            }
            Packed::Power => u64::from(to_power(value, round, is_finite)),
        }
    }
}

/// The byte of the `.ue8m0` that is NaN.
const NO_POWER: u8 = u8::MAX;

/// The value of a `.ue8m0` (PTX ISA, section 5.2.3): a power of two from 2^-127 to 2^127, or NaN.
pub(crate) fn power(byte: u8) -> f64 {
    if byte == NO_POWER { f64::NAN } else { 2f64.powi(i32::from(byte) - 127) }
}

/// The `.ue8m0` next to the magnitude of `x`: above it with [`Round::Up`], else below it. What is too large becomes NaN, or
/// the largest power if `is_finite`.
fn to_power(x: f64, round: Round, is_finite: bool) -> u8 {
    if x.is_nan() {
        return NO_POWER;
    }
    let bits = x.abs().to_bits();
    let is_between = bits & ((1 << 52) - 1) != 0;
    let exponent = (bits >> 52) as i32 - 1023 + i32::from(is_between && round == Round::Up);
    let most = if is_finite { NO_POWER - 1 } else { NO_POWER };
    (exponent + 127).clamp(0, i32::from(most)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::{E2M1, E2M3, E3M2};

    /// The bits of the finite value of a format that is nearest to `x`, the even ones of two.
    fn nearest(x: f64, format: Format) -> u64 {
        let distance = |bits: u64| (widen(bits as u32, format) - x).abs();
        let half = 1u64 << (format.bits() - 1);
        let candidates = if x.is_sign_negative() { half..2 * half } else { 0..half };
        let order = |a: &u64, b: &u64| distance(*a).total_cmp(&distance(*b)).then((a & 1).cmp(&(b & 1)));
        candidates.min_by(order).expect("there are values")
    }

    #[test]
    fn small_floats_are_the_nearest_values() {
        for format in [E2M1, E2M3, E3M2] {
            for step in -4096..=4096 {
                let x = f64::from(step) / 128.0;
                let found = Packed::Float(format).bits(x, Round::Nearest, true);
                assert_eq!(found, nearest(x, format), "{x} as {format:?}");
            }
            assert_eq!(Packed::Float(format).bits(f64::NAN, Round::Nearest, true), (1 << (format.bits() - 1)) - 1);
            assert_eq!(Packed::Float(format).bits(f64::INFINITY, Round::Nearest, true), nearest(1e9, format));
        }
    }

    /// By comparison with all powers.
    #[test]
    fn a_power_is_the_next_one_above_or_below() {
        for bits in (0..0x7f80_0000u32).step_by(40_009).chain([1, 0x0040_0000, 0x0040_0001, 0x7f00_0000, 0x7f7f_ffff]) {
            let x = f64::from(f32::from_bits(bits));
            let above = (0..=254).find(|byte| power(*byte) >= x);
            let below = (0..=254).rev().find(|byte| power(*byte) <= x).unwrap_or(0);
            for sign in [1.0, -1.0] {
                assert_eq!(to_power(sign * x, Round::Up, false), above.unwrap_or(255), "{x}");
                assert_eq!(to_power(sign * x, Round::Up, true), above.unwrap_or(254), "{x}");
                assert_eq!(to_power(sign * x, Round::Zero, true), below, "{x}");
            }
        }
        let special = |is_finite: bool| [f64::NAN, f64::INFINITY].map(|x| to_power(x, Round::Zero, is_finite));
        assert_eq!([special(false), special(true)], [[255, 255], [255, 254]]);
    }
}
