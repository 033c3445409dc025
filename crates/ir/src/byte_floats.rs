//! Rounding to the 8-bit floating-point formats (OCP 8-bit Floating Point Specification; PTX ISA, "Alternate
//! Floating-Point Data Formats").

use tilewright_layout::DType;

/// An 8-bit float format.
#[derive(Clone, Copy, Debug)]
pub struct ByteFloat {
    /// Bits of the mantissa.
    mantissa: u32,
    /// What is added to the exponent.
    bias: i32,
    /// The greatest finite number.
    greatest: f64,
    /// The bits of infinity; `None` if the format has none.
    infinity: Option<u8>,
}

/// The bits of a NaN that conversions produce in both formats.
const NAN: u8 = 0x7f;

impl ByteFloat {
    /// The format of a dtype; `None` if it is not an 8-bit float.
    pub fn of(dtype: DType) -> Option<ByteFloat> {
        let greatest = dtype.saturation()?;
        Some(match dtype {
            DType::E5M2 => ByteFloat { mantissa: 2, bias: 15, greatest, infinity: Some(0x7c) },
            _ => ByteFloat { mantissa: 3, bias: 7, greatest, infinity: None },
        })
    }

    /// The bits of the number nearest to a value, ties to even. Magnitudes beyond the greatest number, and infinities,
    /// become that number. A NaN keeps only its sign.
    pub fn nearest(self, value: f64) -> u8 {
        let sign = u8::from(value.is_sign_negative()) << 7;
        if value.is_nan() {
            return sign | NAN;
        }
        let magnitude = value.abs().min(self.greatest);
        let exponent = (((magnitude.to_bits() >> 52) as i32) - 1023).max(1 - self.bias);
        let count = (magnitude / self.unit(exponent)).round_ties_even() as i32;
        // Rounding up to the next power of two is a carry into the exponent.
        let bits = ((exponent + self.bias) << self.mantissa) + count - (1 << self.mantissa);
        sign | bits as u8
    }

    /// Whether a value other than NaN would be rounded to a number of the format if it had greater ones.
    pub(crate) fn holds(self, value: f64) -> bool {
        let below = self.value(self.nearest(self.greatest) - 1);
        value.abs() <= self.greatest + (self.greatest - below) / 2.0
    }

    /// The number that these bits represent.
    pub fn value(self, bits: u8) -> f64 {
        let (sign, magnitude) = (if bits >> 7 == 0 { 1.0 } else { -1.0 }, i32::from(bits & 0x7f));
        let is_infinite = self.infinity.is_some_and(|infinity| i32::from(infinity) == magnitude);
        if is_infinite {
            return sign * f64::INFINITY;
        }
        let exponent = (magnitude >> self.mantissa).max(1) - self.bias;
        let count = magnitude - ((exponent + self.bias - 1) << self.mantissa);
        let number = f64::from(count) * self.unit(exponent);
        if number > self.greatest { f64::NAN } else { sign * number }
    }

    /// The distance between neighbours whose exponent this is.
    fn unit(self, exponent: i32) -> f64 {
        2f64.powi(exponent - self.mantissa as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formats() -> [ByteFloat; 2] {
        [DType::E4M3, DType::E5M2].map(|dtype| ByteFloat::of(dtype).unwrap())
    }

    #[test]
    fn every_number_is_the_nearest_to_the_numbers_around_it() {
        for (format, greatest) in formats().into_iter().zip([0x7e, 0x7b]) {
            for bits in 0..greatest {
                let middle = (format.value(bits) + format.value(bits + 1)) / 2.0;
                let beside = |step: i64| f64::from_bits((middle.to_bits() as i64 + step) as u64);
                let even = bits + bits % 2;
                let number = format.value(bits);
                for (value, wanted) in [(beside(-1), bits), (middle, even), (beside(1), bits + 1), (number, bits)] {
                    assert_eq!((format.nearest(value), format.nearest(-value)), (wanted, wanted | 0x80), "{value:e}");
                }
            }
        }
    }

    #[test]
    fn numbers_beyond_the_greatest_one_become_it() {
        let seen = formats().map(|format| [1e9, f64::INFINITY, -f64::INFINITY].map(|value| format.nearest(value)));
        assert_eq!(seen, [[0x7e, 0x7e, 0xfe], [0x7b, 0x7b, 0xfb]]);
    }

    #[test]
    fn numbers_have_the_bits_of_the_specification() {
        let [e4m3, e5m2] = formats();
        let numbers = [1.0, -2.0, 448.0, 2f64.powi(-9), 2f64.powi(-6), 0.0];
        assert_eq!(numbers.map(|value| e4m3.nearest(value)), [0x38, 0xc0, 0x7e, 0x01, 0x08, 0x00]);
        let numbers = [1.0, -2.0, 57344.0, 2f64.powi(-16), 2f64.powi(-14), -0.0];
        assert_eq!(numbers.map(|value| e5m2.nearest(value)), [0x3c, 0xc0, 0x7b, 0x01, 0x04, 0x80]);
    }

    #[test]
    fn the_bits_beyond_the_greatest_number_are_infinity_and_nan() {
        let [e4m3, e5m2] = formats();
        assert!(e4m3.value(0x7f).is_nan() && e4m3.value(0xff).is_nan());
        assert_eq!((e5m2.value(0x7c), e5m2.value(0xfc)), (f64::INFINITY, f64::NEG_INFINITY));
        assert!([0x7d, 0x7e, 0x7f].iter().all(|bits| e5m2.value(*bits).is_nan()));
        assert!(formats().iter().all(|format| format.value(format.nearest(f64::NAN)).is_nan()));
    }
}
