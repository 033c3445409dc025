//! What is known about a value without evaluating it, and how each operation derives that from its operands.
//!
//! This is the only abstract interpretation of index expressions: an [`Expr`](crate::Expr) uses it when a node is made,
//! and the e-graph when a node is added, so that both know the same.

use crate::range::{ValueRange, gcd, low_ones};

/// What is known about every value of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// An interval that holds every value.
    pub range: ValueRange,
    /// A number that divides every value; 0 if the only value is 0.
    pub multiple: i64,
}

impl Facts {
    /// The facts of values in `range` that are multiples of `multiple`: the range ends at multiples. For a single value,
    /// the multiple is its magnitude.
    pub fn new(range: ValueRange, multiple: i64) -> Facts {
        let range = if multiple > 1 { range.of_multiples(multiple) } else { range };
        Facts { range, multiple: range.constant().map_or(multiple, i64::saturating_abs) }
    }

    /// The facts of a number.
    pub fn of_number(value: i64) -> Facts {
        Facts::new(ValueRange::point(value), 1)
    }

    /// The facts that hold for any value.
    pub(crate) fn unknown() -> Facts {
        Facts::new(ValueRange::ALL, 1)
    }

    pub(crate) fn add(self, other: Facts) -> Facts {
        Facts::new(self.range.add(other.range), gcd(self.multiple, other.multiple))
    }

    pub(crate) fn mul(self, other: Facts) -> Facts {
        Facts::new(self.range.mul(other.range), self.multiple.saturating_mul(other.multiple))
    }

    pub(crate) fn div(self, other: Facts) -> Facts {
        let multiple = match other.range.constant() {
            Some(divisor) if divisor > 0 && self.multiple % divisor == 0 => self.multiple / divisor,
            Some(_) | None => 1,
        };
        Facts::new(self.range.div(other.range), multiple)
    }

    pub(crate) fn rem(self, other: Facts) -> Facts {
        Facts::new(self.range.rem(other.range), gcd(self.multiple, other.multiple).max(1))
    }

    pub(crate) fn xor(self, other: Facts) -> Facts {
        Facts::new(self.range.xor(other.range), power_of_two_part(gcd(self.multiple, other.multiple)))
    }

    pub(crate) fn and(self, other: Facts) -> Facts {
        let multiple = power_of_two_part(self.multiple).max(power_of_two_part(other.multiple));
        Facts::new(self.range.and(other.range), multiple)
    }

    pub(crate) fn min(self, other: Facts) -> Facts {
        Facts::new(self.range.min(other.range), gcd(self.multiple, other.multiple))
    }

    pub(crate) fn max(self, other: Facts) -> Facts {
        Facts::new(self.range.max(other.range), gcd(self.multiple, other.multiple))
    }

    /// The facts of values for which both hold.
    pub(crate) fn met(self, other: Facts) -> Facts {
        Facts::new(self.range.intersect(other.range), lcm(self.multiple, other.multiple))
    }

    /// The bits that may be set in a value; all bits when it may be negative.
    pub(crate) fn possible_bits(self) -> i64 {
        if !self.range.is_non_negative() {
            return -1;
        }
        let low_zeros = if self.multiple == 0 { 63 } else { self.multiple.trailing_zeros() };
        low_ones(self.range.hi) & (-1i64).checked_shl(low_zeros).unwrap_or(0)
    }
}

/// The greatest power of two that divides a number; 0 for 0.
fn power_of_two_part(value: i64) -> i64 {
    value & value.wrapping_neg()
}

/// Least common multiple where it is small enough to be of use, else the larger of the two.
fn lcm(a: i64, b: i64) -> i64 {
    match gcd(a, b) {
        0 => 0,
        g => (a / g).checked_mul(b).filter(|m| *m < 1 << 40).unwrap_or(a.max(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(lo: i64, hi: i64, multiple: i64) -> Facts {
        Facts::new(ValueRange::new(lo, hi), multiple)
    }

    #[test]
    fn possible_bits_of_a_multiple_of_8_below_32() {
        assert_eq!(known(0, 31, 8).possible_bits(), 0b11000);
    }

    #[test]
    fn the_only_value_is_its_own_divisor() {
        assert_eq!((known(-6, -6, 1).multiple, known(0, 0, 4).multiple, Facts::of_number(9).multiple), (6, 0, 9));
        assert_eq!(known(0, 31, 1).div(Facts::of_number(100)), Facts::of_number(0));
    }

    #[test]
    fn masks_keep_the_low_zeros_of_either_side() {
        assert_eq!(known(0, 100, 1).and(Facts::of_number(24)).multiple, 8);
        assert_eq!(known(0, 100, 12).xor(known(0, 100, 8)).multiple, 4);
    }
}
