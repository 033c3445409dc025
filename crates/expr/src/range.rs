//! Intervals of values, and arithmetic on them.

/// The values from `lo` to `hi`, both included; none if `lo` is greater. Arithmetic saturates, so a range never leaves out a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueRange {
    /// Least value.
    pub lo: i64,
    /// Greatest value.
    pub hi: i64,
}

impl ValueRange {
    /// The range of every `i64`.
    pub const ALL: ValueRange = ValueRange { lo: i64::MIN, hi: i64::MAX };

    /// From `lo` to `hi`, both included; no value if `lo` is greater.
    pub fn new(lo: i64, hi: i64) -> ValueRange {
        ValueRange { lo, hi }
    }

    /// Exactly one value.
    pub fn point(value: i64) -> ValueRange {
        ValueRange { lo: value, hi: value }
    }

    /// The value, when there is only one.
    pub fn constant(self) -> Option<i64> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// True when every value lies in `lo..hi` (`hi` excluded).
    pub fn within(self, lo: i64, hi: i64) -> bool {
        self.lo >= lo && self.hi < hi
    }

    /// True when no value is negative.
    pub fn is_non_negative(self) -> bool {
        self.lo >= 0
    }

    /// The least range with the same multiples of a positive number; itself if there are none.
    pub(crate) fn of_multiples(self, of: i64) -> ValueRange {
        let up = self.lo.checked_add((-self.lo.rem_euclid(of)).rem_euclid(of)).unwrap_or(self.lo);
        let down = self.hi.checked_sub(self.hi.rem_euclid(of)).unwrap_or(self.hi);
        if up <= down { ValueRange { lo: up, hi: down } } else { self }
    }

    pub(crate) fn intersect(self, other: ValueRange) -> ValueRange {
        ValueRange { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) }
    }

    pub(crate) fn add(self, other: ValueRange) -> ValueRange {
        ValueRange { lo: self.lo.saturating_add(other.lo), hi: self.hi.saturating_add(other.hi) }
    }

    pub(crate) fn mul(self, other: ValueRange) -> ValueRange {
        let corners = [
            self.lo.saturating_mul(other.lo),
            self.lo.saturating_mul(other.hi),
            self.hi.saturating_mul(other.lo),
            self.hi.saturating_mul(other.hi),
        ];
        hull(corners)
    }

    /// Floor division; every value if the divisor may be zero or negative.
    pub(crate) fn div(self, other: ValueRange) -> ValueRange {
        if other.lo <= 0 {
            return ValueRange::ALL;
        }
        hull([
            self.lo.div_euclid(other.lo),
            self.lo.div_euclid(other.hi),
            self.hi.div_euclid(other.lo),
            self.hi.div_euclid(other.hi),
        ])
    }

    /// Remainder of floor division; every value if the divisor may be zero or negative.
    pub(crate) fn rem(self, other: ValueRange) -> ValueRange {
        if other.lo <= 0 {
            return ValueRange::ALL;
        }
        if self.within(0, other.lo) {
            return self;
        }
        if let Some(divisor) = other.constant()
            && self.lo.div_euclid(divisor) == self.hi.div_euclid(divisor)
        {
            return ValueRange::new(self.lo.rem_euclid(divisor), self.hi.rem_euclid(divisor));
        }
        ValueRange { lo: 0, hi: other.hi - 1 }
    }

    pub(crate) fn xor(self, other: ValueRange) -> ValueRange {
        if let (Some(a), Some(b)) = (self.constant(), other.constant()) {
            return ValueRange::point(a ^ b);
        }
        match self.is_non_negative() && other.is_non_negative() {
            true => ValueRange { lo: 0, hi: low_ones(self.hi | other.hi) },
            false => self.signed_bits(other),
        }
    }

    pub(crate) fn and(self, other: ValueRange) -> ValueRange {
        if let (Some(a), Some(b)) = (self.constant(), other.constant()) {
            return ValueRange::point(a & b);
        }
        match (self.is_non_negative(), other.is_non_negative()) {
            (true, true) => ValueRange { lo: 0, hi: self.hi.min(other.hi) },
            (true, false) => ValueRange { lo: 0, hi: self.hi },
            (false, true) => ValueRange { lo: 0, hi: other.hi },
            (false, false) => self.signed_bits(other),
        }
    }

    pub(crate) fn min(self, other: ValueRange) -> ValueRange {
        ValueRange { lo: self.lo.min(other.lo), hi: self.hi.min(other.hi) }
    }

    pub(crate) fn max(self, other: ValueRange) -> ValueRange {
        ValueRange { lo: self.lo.max(other.lo), hi: self.hi.max(other.hi) }
    }

    /// The values whose bits above those of both are all equal to the sign, as those of bitwise operations are.
    fn signed_bits(self, other: ValueRange) -> ValueRange {
        // The complement of a negative number has its bits, without the sign.
        let greatest = self.hi.max(!self.lo).max(other.hi).max(!other.lo);
        ValueRange { lo: !low_ones(greatest), hi: low_ones(greatest) }
    }
}

/// The least number of the form `2^n - 1` that is at least `value` (not negative).
pub(crate) fn low_ones(value: i64) -> i64 {
    if value <= 0 { 0 } else { i64::MAX >> (value.leading_zeros() - 1) }
}

fn hull(corners: [i64; 4]) -> ValueRange {
    corners[1..]
        .iter()
        .fold(ValueRange::point(corners[0]), |range, &c| ValueRange { lo: range.lo.min(c), hi: range.hi.max(c) })
}

/// Greatest common divisor, not negative; `gcd(0, a) = |a|`.
pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_ones_covers_the_value() {
        for (value, ones) in [(0, 0), (1, 1), (2, 3), (3, 3), (4, 7), (127, 127), (128, 255), (i64::MAX, i64::MAX)] {
            assert_eq!(low_ones(value), ones, "low_ones({value})");
        }
    }
}
