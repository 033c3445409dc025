//! Rounding to the 16-bit floating-point formats.
//!
//! `half` rounds single-precision numbers correctly. Its conversions from f64 ignore the last 32 bits, and on some
//! processors round to single precision first, so a number close to the midpoint of two floats may be rounded to the
//! wrong one, and differently on different processors. Here a number is first rounded to odd in single precision, which
//! does not change the final result.

use half::{bf16, f16};

/// The f16 nearest to a value, ties to even; magnitudes from 65520 on become infinite. A NaN keeps only its sign.
pub fn nearest_f16(value: f64) -> f16 {
    if value.is_nan() { f16::from_bits(f16::NAN.to_bits() | sign(value)) } else { f16::from_f32(round_to_odd(value)) }
}

/// The bf16 nearest to a value, ties to even; magnitudes from the midpoint between its greatest value and 2^128 on
/// become infinite. A NaN keeps only its sign.
pub fn nearest_bf16(value: f64) -> bf16 {
    if value.is_nan() {
        bf16::from_bits(bf16::NAN.to_bits() | sign(value))
    } else {
        bf16::from_f32(round_to_odd(value))
    }
}

/// The sign bit of a 16-bit float.
fn sign(value: f64) -> u16 {
    if value.is_sign_negative() { 0x8000 } else { 0 }
}

/// An integer, rounded to odd like [`round_to_odd`] does.
pub(crate) fn round_to_odd_f64(value: i64) -> f64 {
    let nearest = value as f64;
    // Every f64 from 2^53 to 2^63 is an integer, which i128 holds.
    let widened = nearest as i128;
    if widened == i128::from(value) {
        return nearest;
    }
    let away_from_zero = u64::from(widened.unsigned_abs() > u128::from(value.unsigned_abs()));
    f64::from_bits((nearest.to_bits() - away_from_zero) | 1)
}

/// A number other than NaN, rounded to odd: truncated towards zero, with its last bit set if anything was cut off.
/// Rounding it to a format with at least two digits less gives the same result as rounding the number itself (Boldo and
/// Melquiond, "Emulation of FMA and
/// correctly rounded sums: proved algorithms using rounding to odd").
fn round_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let widened = f64::from(nearest);
    if widened == value {
        return nearest;
    }
    let away_from_zero = u32::from(widened.abs() > value.abs());
    f32::from_bits((nearest.to_bits() - away_from_zero) | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the bits of values around the midpoint of every two neighbours. `infinity` has the bits of infinity,
    /// which counts as `end`.
    fn check(number: impl Fn(u16) -> f64, nearest: impl Fn(f64) -> u16, infinity: u16, end: f64) {
        for bits in 0..infinity {
            let next = if bits + 1 == infinity { end } else { number(bits + 1) };
            let middle = (number(bits) + next) / 2.0;
            let beside = |step: i64| f64::from_bits((middle.to_bits() as i64 + step) as u64);
            let even = bits + bits % 2;
            for (value, wanted) in [(beside(-1), bits), (middle, even), (beside(1), bits + 1), (number(bits), bits)] {
                assert_eq!((nearest(value), nearest(-value)), (wanted, wanted | 0x8000), "{value:e}");
            }
        }
    }

    #[test]
    fn every_f16_is_the_nearest_to_the_numbers_around_it() {
        check(|bits| f16::from_bits(bits).to_f64(), |value| nearest_f16(value).to_bits(), 0x7c00, 65536.0);
    }

    #[test]
    fn every_bf16_is_the_nearest_to_the_numbers_around_it() {
        check(|bits| bf16::from_bits(bits).to_f64(), |value| nearest_bf16(value).to_bits(), 0x7f80, 2f64.powi(128));
    }

    #[test]
    fn constants_have_the_bits_that_are_known_of_them() {
        let numbers = [1.0, -2.0, 65504.0, 65520.0, 2f64.powi(-24), 2f64.powi(-14), 1.00048828125, 1.00146484375];
        let expected = [0x3c00, 0xc000, 0x7bff, 0x7c00, 0x0001, 0x0400, 0x3c00, 0x3c02];
        assert_eq!(numbers.map(|value| nearest_f16(value).to_bits()), expected);
        let numbers = [1.0, -0.0, f64::INFINITY, 3.0e38, 1e300, 1.00390625];
        let expected = [0x3f80, 0x8000, 0x7f80, 0x7f62, 0x7f80, 0x3f80];
        assert_eq!(numbers.map(|value| nearest_bf16(value).to_bits()), expected);
    }

    #[test]
    fn a_nan_stays_one() {
        assert_eq!((nearest_f16(f64::NAN).to_bits(), nearest_bf16(-f64::NAN).to_bits()), (0x7e00, 0xffc0));
    }
}
