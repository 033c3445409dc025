//! Floating-point formats, rounding, and operations that the host's arithmetic does not provide.
//!
//! Directed rounding goes through `f64` rounded to odd: a value rounded to odd with at least two extra bits can then be
//! rounded correctly to the narrower format in any mode (Boldo and Melquiond, 2008).

pub(crate) mod double;
mod packed;

pub(crate) use packed::{Packed, power};

use crate::isa::Round;

/// A binary floating-point format narrower than `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    specials: Specials,
}

/// What the largest encodings stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Specials {
    /// The top exponent encodes infinities and NaN.
    Ieee,
    /// Only all ones below the sign bit is NaN; there are no infinities.
    OneNan,
    /// All encodings are numbers.
    None,
}

pub(crate) const F16: Format = Format::ieee(5, 10);
pub(crate) const BF16: Format = Format::ieee(8, 7);
pub(crate) const F32: Format = Format::ieee(8, 23);
pub(crate) const E5M2: Format = Format::ieee(5, 2);
/// `.e4m3` (PTX ISA, section 5.2.3): its largest value is 448.
pub(crate) const E4M3: Format = Format { exponent_bits: 4, mantissa_bits: 3, specials: Specials::OneNan };
pub(crate) const E2M3: Format = Format { exponent_bits: 2, mantissa_bits: 3, specials: Specials::None };
pub(crate) const E3M2: Format = Format { exponent_bits: 3, mantissa_bits: 2, specials: Specials::None };
pub(crate) const E2M1: Format = Format { exponent_bits: 2, mantissa_bits: 1, specials: Specials::None };

impl Format {
    /// Whether the product of two numbers is always zero or in the range of normal f32 numbers, which then have it exactly.
    pub(crate) fn has_exact_products(self) -> bool {
        self.exponent_bits <= 5
    }

    const fn ieee(exponent_bits: u32, mantissa_bits: u32) -> Format {
        Format { exponent_bits, mantissa_bits, specials: Specials::Ieee }
    }

    /// Bits of one element.
    pub(crate) fn bits(self) -> u32 {
        1 + self.exponent_bits + self.mantissa_bits
    }

    /// Bits of the mantissa.
    pub(crate) fn mantissa_bits(self) -> u32 {
        self.mantissa_bits
    }

    /// The largest finite value.
    pub(crate) fn largest(self) -> f64 {
        widen(self.beyond() as u32 - 1, self)
    }

    /// The smallest encoding below the sign bit that is not a finite number.
    fn beyond(self) -> u64 {
        let all = (1u64 << (self.exponent_bits + self.mantissa_bits)) - 1;
        match self.specials {
            Specials::Ieee => all >> self.mantissa_bits << self.mantissa_bits,
            Specials::OneNan => all,
            Specials::None => all + 1,
        }
    }

    /// The exponent of the smallest normal number, which is also that of subnormal ones.
    fn least_exponent(self) -> i32 {
        2 - (1i32 << (self.exponent_bits - 1))
    }

    /// Replaces a number that is subnormal in this format by a zero of the same sign.
    pub(crate) fn flush(self, x: f64) -> f64 {
        let least = power_of_two(self.least_exponent());
        if x.abs() < least { 0.0f64.copysign(x) } else { x }
    }

    /// Replaces an exact result (or one rounded to odd) by a zero of the same sign if it is subnormal when it is rounded to the
    /// precision of this format without a least exponent. This is what an H200 does for `.ftz`: a number just below the least
    /// normal one is flushed even if its subnormal rounding is that one.
    pub(crate) fn flush_result(self, x: f64, round: Round) -> f64 {
        let least = power_of_two(self.least_exponent());
        let below = |bits: u32| least * (1.0 - power_of_two(-(bits as i32)));
        let (precision, magnitude) = (self.mantissa_bits + 1, x.abs());
        let is_tiny = match (round, x.is_sign_negative()) {
            (Round::Nearest | Round::Away, _) => magnitude < below(precision + 1),
            (Round::Up, false) | (Round::Down, true) => magnitude <= below(precision),
            (Round::Zero | Round::Up | Round::Down, _) => magnitude < least,
        };
        if is_tiny { 0.0f64.copysign(x) } else { x }
    }

    /// Like [`Format::flush`], on the encoded bits.
    pub(crate) fn flush_bits(self, bits: u32) -> u32 {
        let sign = 1u32 << (self.exponent_bits + self.mantissa_bits);
        if bits & (sign - 1) < 1 << self.mantissa_bits { bits & sign } else { bits }
    }
}

/// The NaN that f32 instructions produce (PTX ISA, section 9.7.3).
const NAN32: u32 = 0x7fff_ffff;

/// Rounds `x` to `format` and returns its bits; NaN becomes the canonical quiet NaN (all ones below the sign bit). A
/// value that is too large for a format without infinities becomes NaN.
pub(crate) fn narrow(x: f64, format: Format, round: Round) -> u32 {
    let mantissa = format.mantissa_bits;
    let total = format.exponent_bits + mantissa;
    if x.is_nan() {
        return (1u32 << total).wrapping_sub(1);
    }
    let negative = x.is_sign_negative();
    let sign = u32::from(negative) << total;
    let beyond = format.beyond();
    if x.is_infinite() {
        return sign | beyond as u32;
    }
    let magnitude = round_magnitude(x, format, round, negative);
    if magnitude < beyond {
        return sign | magnitude as u32;
    }
    let clamp = match round {
        Round::Zero => true,
        Round::Down => !negative,
        Round::Up => negative,
        Round::Nearest | Round::Away => false,
    };
    sign | (beyond - u64::from(clamp)) as u32
}

/// Rounds `x` to one of its neighbours in `format`, away from zero if the sum of `random` and of as many bits below the last one
/// that is kept has a carry (PTX ISA, section 9.7.9.21, `.rs`). `random` has `bits` bits. A value that is too large becomes the
/// largest one if `is_finite`.
pub(crate) fn narrow_at_random(x: f64, format: Format, (random, bits): (u32, u32), is_finite: bool) -> u32 {
    let limit = if is_finite { format.largest() } else { f64::INFINITY };
    if !x.is_finite() {
        return narrow(x.clamp(-limit, limit), format, Round::Nearest);
    }
    let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(format.least_exponent());
    let step = power_of_two(exponent - format.mantissa_bits as i32 - bits as i32);
    let moved = x + (f64::from(random) * step).copysign(x);
    let beyond = power_of_two(1 << (format.exponent_bits - 1));
    let is_beyond = !is_finite && moved.abs() >= beyond;
    let moved = if is_beyond { f64::INFINITY.copysign(x) } else { moved.clamp(-limit, limit) };
    narrow(moved, format, Round::Zero)
}

/// The encoded magnitude, without the sign bit; it may be larger than the largest finite value.
fn round_magnitude(x: f64, format: Format, round: Round, negative: bool) -> u64 {
    let bits = x.to_bits() & (u64::MAX >> 1);
    let raw = (bits >> 52) as i32;
    let fraction = bits & ((1u64 << 52) - 1);
    let (significand, exponent) = if raw == 0 { (fraction, -1022) } else { (fraction | (1u64 << 52), raw - 1023) };
    let least = format.least_exponent();
    let kept_exponent = exponent.max(least);
    let shift = (52 - format.mantissa_bits as i32 + (kept_exponent - exponent)).clamp(1, 62) as u32;
    let kept = significand >> shift;
    let rest = significand & ((1u64 << shift) - 1);
    let half = 1u64 << (shift - 1);
    let up = match round {
        Round::Nearest => rest > half || (rest == half && kept & 1 == 1),
        Round::Away => rest >= half,
        Round::Zero => false,
        Round::Down => negative && rest != 0,
        Round::Up => !negative && rest != 0,
    };
    (((kept_exponent - least) as u64) << format.mantissa_bits) + kept + u64::from(up)
}

/// The exact value of `bits` in `format`.
pub(crate) fn widen(bits: u32, format: Format) -> f64 {
    let mantissa = format.mantissa_bits;
    let top = (1u32 << format.exponent_bits) - 1;
    let exponent = (bits >> mantissa) & top;
    let fraction = bits & ((1u32 << mantissa) - 1);
    let all = (1u32 << (format.exponent_bits + mantissa)) - 1;
    let bias = (1i32 << (format.exponent_bits - 1)) - 1;
    let magnitude = if format.specials == Specials::OneNan && bits & all == all {
        f64::NAN
    } else if exponent == top && format.specials == Specials::Ieee {
        if fraction == 0 { f64::INFINITY } else { f64::NAN }
    } else if exponent == 0 {
        f64::from(fraction) * power_of_two(1 - bias - mantissa as i32)
    } else {
        f64::from(fraction | (1 << mantissa)) * power_of_two(exponent as i32 - bias - mantissa as i32)
    };
    if (bits >> (format.exponent_bits + mantissa)) & 1 == 1 { -magnitude } else { magnitude }
}

/// Like [`widen`], as f32; every format has at most its range and precision.
pub(crate) fn widen32(bits: u32, format: Format) -> f32 {
    match format {
        BF16 => f32::from_bits(bits << 16),
        F16 => half(bits),
        _ => widen(bits, format) as f32,
    }
}

/// The value of an f16.
#[inline]
pub(crate) fn half(bits: u32) -> f32 {
    let sign = (bits & 0x8000) << 16;
    let magnitude = bits & 0x7fff;
    // The exponent has another bias and more bits; a multiplication by a power of two also normalizes subnormals.
    let number = f32::from_bits(magnitude << 13) * f32::from_bits((254 - 15) << 23);
    let special = f32::from_bits(0x7f80_0000 | magnitude << 13);
    let value = if magnitude >= 0x7c00 { special } else { number };
    f32::from_bits(value.to_bits() | sign)
}

/// 2 to the power `exponent`, for exponents of normal `f64` numbers.
pub(crate) fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023).clamp(1, 2046) as u64) << 52)
}

/// `x` rounded to f32.
pub(crate) fn to_f32(x: f64, round: Round) -> f32 {
    if round == Round::Nearest { x as f32 } else { f32::from_bits(narrow(x, F32, round)) }
}

/// Bits of an f32 result, with NaN made canonical.
pub(crate) fn bits32(x: f32) -> u64 {
    if x.is_nan() { u64::from(NAN32) } else { u64::from(x.to_bits()) }
}

/// Replaces a subnormal by a zero of the same sign.
pub(crate) fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
}

/// Clamps to [0, 1]; NaN becomes 0 (`.sat`).
pub(crate) fn saturate(x: f64) -> f64 {
    if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) + 0.0 }
}

/// Replaces negative numbers and -0 by +0; NaN is kept (`.relu`).
pub(crate) fn relu(x: f64) -> f64 {
    if x <= 0.0 { 0.0 } else { x }
}

/// Rounds the exact value `x + error` to odd: if `error` is not 0, the last bit of the result is 1.
fn to_odd(x: f64, error: f64) -> f64 {
    if error == 0.0 || error.is_nan() || !x.is_finite() || x == 0.0 || x.to_bits() & 1 == 1 {
        return x;
    }
    let away = (error > 0.0) == (x > 0.0);
    f64::from_bits(if away { x.to_bits() + 1 } else { x.to_bits() - 1 })
}

/// `a + b` rounded to odd.
pub(crate) fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    to_odd(sum, (a - (sum - part)) + (b - part))
}

/// `a * b + c` rounded to odd; `a` and `b` have at most 24 significant bits, so their product is exact.
pub(crate) fn fma_odd(a: f64, b: f64, c: f64) -> f64 {
    add_odd(a * b, c)
}

/// `a / b` rounded to odd.
pub(crate) fn div_odd(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    let rest = (-quotient).mul_add(b, a);
    to_odd(quotient, if b < 0.0 { -rest } else { rest })
}

/// The square root rounded to odd.
pub(crate) fn sqrt_odd(a: f64) -> f64 {
    let root = a.sqrt();
    to_odd(root, (-root).mul_add(root, a))
}

/// Rounds to an integral value.
pub(crate) fn round_integral(x: f64, round: Round) -> f64 {
    match round {
        Round::Nearest => x.round_ties_even(),
        Round::Away => x.round(),
        Round::Zero => x.trunc(),
        Round::Down => x.floor(),
        Round::Up => x.ceil(),
    }
}

/// Minimum as `min.f32` defines it: NaN is ignored if the other operand is a number, and -0 is less than +0.
pub(crate) fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() {
        a
    } else if a == b {
        if a.is_sign_negative() { a } else { b }
    } else if a < b {
        a
    } else {
        b
    }
}

/// Maximum as `max.f32` defines it.
pub(crate) fn maximum(a: f64, b: f64) -> f64 {
    -minimum(-a, -b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_widen_agree() {
        for format in [F16, BF16, E4M3, E5M2] {
            for bits in 0..1u32 << format.bits() {
                let (wide, narrow) = (widen(bits, format), widen32(bits, format));
                assert!(f64::from(narrow).to_bits() == wide.to_bits() || (wide.is_nan() && narrow.is_nan()));
            }
        }
    }

    #[test]
    fn every_f16_survives_a_round_trip() {
        for bits in 0..=u32::from(u16::MAX) {
            let x = widen(bits, F16);
            if !x.is_nan() {
                assert_eq!(narrow(x, F16, Round::Nearest), bits);
            }
        }
    }

    #[test]
    fn every_bf16_equals_the_top_of_an_f32() {
        for bits in 0..=u32::from(u16::MAX) {
            let x = f64::from(f32::from_bits(bits << 16));
            if !x.is_nan() {
                assert_eq!(widen(bits, BF16), x);
                assert_eq!(narrow(x, BF16, Round::Nearest), bits);
            }
        }
    }

    /// The value of `bits` by the definition of the format, apart from infinities and NaN.
    fn number(bits: u32, exponent_bits: i32, mantissa_bits: i32) -> f64 {
        let mantissa = f64::from(bits & ((1 << mantissa_bits) - 1)) / 2f64.powi(mantissa_bits);
        let exponent = (bits >> mantissa_bits & ((1 << exponent_bits) - 1)) as i32;
        let bias = (1 << (exponent_bits - 1)) - 1;
        let magnitude = match exponent {
            0 => mantissa * 2f64.powi(1 - bias),
            _ => (1.0 + mantissa) * 2f64.powi(exponent - bias),
        };
        if bits >> (exponent_bits + mantissa_bits) & 1 == 1 { -magnitude } else { magnitude }
    }

    #[test]
    fn every_bit_pattern_has_the_value_of_its_definition() {
        let all = [(F16, 5, 10), (BF16, 8, 7), (E5M2, 5, 2), (E4M3, 4, 3), (E2M3, 2, 3), (E3M2, 3, 2), (E2M1, 2, 1)];
        for (format, exponent, mantissa) in all {
            let below_sign = (1u32 << (format.bits() - 1)) - 1;
            for bits in 0..1u32 << format.bits() {
                if u64::from(bits & below_sign) >= format.beyond() {
                    assert!(!widen(bits, format).is_finite());
                } else {
                    assert_eq!(widen(bits, format), number(bits, exponent, mantissa));
                    assert_eq!(narrow(widen(bits, format), format, Round::Nearest), bits);
                }
            }
        }
        assert_eq!([F16, BF16, E5M2, E4M3].map(Format::largest), [65504.0, 255.0 * 2f64.powi(120), 57344.0, 448.0]);
        assert_eq!([E2M3, E3M2, E2M1].map(Format::largest), [7.5, 28.0, 6.0]);
    }

    #[test]
    fn between_neighbours_the_nearer_is_taken_and_the_even_one_of_two() {
        for format in [F16, BF16, E5M2, E4M3] {
            for bits in 0..format.beyond() as u32 - 1 {
                let (low, high) = (widen(bits, format), widen(bits + 1, format));
                let middle = low + (high - low) / 2.0;
                let nearest = |x: f64| narrow(x, format, Round::Nearest);
                assert_eq!(nearest(middle), bits + (bits & 1));
                assert_eq!(nearest(low + (middle - low) / 2.0), bits);
                assert_eq!(nearest(-(middle + (high - middle) / 2.0)), bits + 1 + (1 << (format.bits() - 1)));
                assert_eq!(narrow(middle, format, Round::Away), bits + 1);
                assert_eq!(narrow(middle, format, Round::Zero), bits);
                assert_eq!(narrow(middle, format, Round::Up), bits + 1);
                assert_eq!(narrow(middle, format, Round::Down), bits);
            }
        }
    }

    #[test]
    fn what_is_too_large_becomes_what_is_not_finite() {
        let nearest = |x: f64, format: Format| narrow(x, format, Round::Nearest);
        assert_eq!([nearest(65519.0, F16), nearest(65520.0, F16)], [0x7bff, 0x7c00]);
        assert_eq!([nearest(61439.0, E5M2), nearest(61440.0, E5M2)], [0x7b, 0x7c]);
        assert_eq!([nearest(464.0, E4M3), nearest(464.1, E4M3), nearest(f64::NEG_INFINITY, E4M3)], [0x7e, 0x7f, 0xff]);
    }

    #[test]
    fn subnormals_are_flushed_in_their_own_format() {
        for format in [F16, BF16] {
            for bits in 0..1u32 << 16 {
                let x = widen(bits, format);
                let exponent = bits & (format.beyond() as u32);
                let flushed = if exponent == 0 { bits & 0x8000 } else { bits };
                assert_eq!(format.flush_bits(bits), flushed);
                if !x.is_nan() {
                    assert_eq!(narrow(format.flush(x), format, Round::Nearest), flushed);
                }
            }
        }
    }

    #[test]
    fn what_is_subnormal_without_a_least_exponent_is_flushed() {
        // In units of the last place below the least normal number: how far below it a result is, and whether it stays.
        let cases = [
            (Round::Nearest, 0.5, true),
            (Round::Nearest, 0.501, false),
            (Round::Up, 0.99, true),
            (Round::Up, 1.0, false),
            (Round::Zero, 0.0, true),
            (Round::Zero, 0.01, false),
        ];
        for format in [F16, F32] {
            let least = power_of_two(format.least_exponent());
            for (round, below, stays) in cases {
                let x = least * (1.0 - below * power_of_two(-(format.mantissa_bits as i32) - 1));
                assert_eq!(format.flush_result(x, round) != 0.0, stays, "{round:?} {below}");
                let opposite = if round == Round::Up { Round::Down } else { round };
                assert_eq!(format.flush_result(-x, opposite) != 0.0, stays, "-{round:?} {below}");
            }
        }
    }

    #[test]
    fn nearest_f32_agrees_with_the_host() {
        for x in [1.0 / 3.0, 1e-40, -1e-46, 3.5e38, 16_777_217.0, -0.1] {
            assert_eq!(narrow(x, F32, Round::Nearest), (x as f32).to_bits());
        }
    }

    #[test]
    fn directed_rounding_brackets_the_value() {
        let x = 0.1f64;
        let down = f32::from_bits(narrow(x, F32, Round::Down));
        let up = f32::from_bits(narrow(x, F32, Round::Up));
        assert!(f64::from(down) < x && x < f64::from(up));
        assert_eq!(up.to_bits() - down.to_bits(), 1);
        assert_eq!(narrow(1e39, F32, Round::Zero), f32::MAX.to_bits());
    }

    #[test]
    fn odd_rounding_keeps_what_nearest_loses() {
        let sum = add_odd(1.0, 2f64.powi(-80));
        assert_eq!(narrow(sum, F32, Round::Up), 1.0f32.to_bits() + 1);
        assert_eq!(narrow(sum, F32, Round::Down), 1.0f32.to_bits());
    }

    #[test]
    fn minimum_prefers_numbers_and_negative_zero() {
        assert_eq!(minimum(f64::NAN, 2.0), 2.0);
        assert!(minimum(0.0, -0.0).is_sign_negative());
        assert!(maximum(-0.0, 0.0).is_sign_positive());
    }
}
