//! f64 arithmetic in the directed rounding modes, by integer arithmetic: the significant bits of the exact result, the
//! last of which stands for everything below it.

use crate::isa::Round;

/// Bits of the significand of a normal f64.
const SIGNIFICANT: u32 = 53;
/// Exponent of the last bit of the smallest numbers.
const LEAST: i32 = -1074;
/// Exponent of the last bit of the largest numbers.
const LARGEST: i32 = 971;

/// The magnitude of a number: `bits * 2^exponent`. If bits were lost, the last bit is 1 (it is "sticky").
#[derive(Clone, Copy)]
struct Magnitude {
    bits: u128,
    exponent: i32,
}

impl Magnitude {
    /// The magnitude of a finite number.
    fn of(x: f64) -> Magnitude {
        let raw = (x.to_bits() >> 52 & 0x7ff) as i32;
        let fraction = u128::from(x.to_bits() & ((1 << 52) - 1));
        if raw == 0 {
            Magnitude { bits: fraction, exponent: LEAST }
        } else {
            Magnitude { bits: fraction | 1 << 52, exponent: LEAST + raw - 1 }
        }
    }

    /// The same magnitude with its highest bit at position `top`, which is above the present one.
    fn raised(self, top: u32) -> Magnitude {
        let shift = top.saturating_sub(127 - self.bits.leading_zeros());
        Magnitude { bits: self.bits << shift, exponent: self.exponent - shift as i32 }
    }

    /// The same magnitude with this exponent, which is not below the present one.
    fn at(self, exponent: i32) -> u128 {
        sticky_shift(self.bits, (exponent - self.exponent) as u32)
    }
}

fn sticky_shift(bits: u128, shift: u32) -> u128 {
    if shift == 0 {
        return bits;
    }
    let kept = bits.checked_shr(shift).unwrap_or(0);
    let lost = if shift >= 128 { bits != 0 } else { bits & ((1 << shift) - 1) != 0 };
    kept | u128::from(lost)
}

/// A magnitude with a sign, rounded to f64.
fn rounded(negative: bool, magnitude: Magnitude, round: Round) -> f64 {
    let Magnitude { bits, exponent } = magnitude;
    let width = 128 - bits.leading_zeros();
    let shift = (width as i32 - SIGNIFICANT as i32).max(LEAST - exponent);
    let (kept, rest) = if shift <= 0 {
        (bits << -shift, 0)
    } else {
        // The half of the last place, and whether anything is below it.
        let two_more = sticky_shift(bits, (shift - 2).max(0) as u32) << (2 - shift).max(0);
        (two_more >> 2, two_more & 3)
    };
    let up = match round {
        Round::Nearest => rest > 2 || (rest == 2 && kept & 1 == 1),
        Round::Away => rest >= 2,
        Round::Zero => false,
        Round::Down => negative && rest != 0,
        Round::Up => !negative && rest != 0,
    };
    let (mut kept, mut place) = (kept as u64 + u64::from(up), exponent + shift);
    if kept >> SIGNIFICANT != 0 {
        kept >>= 1;
        place += 1;
    }
    let value = if place > LARGEST { overflow(negative, round) } else { scaled(kept, place) };
    if negative { -value } else { value }
}

/// The magnitude that stands for one that is too large.
fn overflow(negative: bool, round: Round) -> f64 {
    let is_finite = match round {
        Round::Zero => true,
        Round::Down => !negative,
        Round::Up => negative,
        Round::Nearest | Round::Away => false,
    };
    if is_finite { f64::MAX } else { f64::INFINITY }
}

/// `significand * 2^place`, which is an f64.
fn scaled(significand: u64, place: i32) -> f64 {
    let raw = if significand >> 52 == 0 { 0 } else { (place - LEAST + 1) as u64 };
    f64::from_bits(raw << 52 | significand & ((1 << 52) - 1))
}

/// `a * b + c`. An exact zero is positive unless both addends are negative zeros; rounded down, it is negative unless both
/// are positive zeros (IEEE 754, section 6.3).
pub(crate) fn fma(a: f64, b: f64, c: f64, round: Round) -> f64 {
    let host = a.mul_add(b, c);
    if !(a.is_finite() && b.is_finite() && c.is_finite()) {
        return host;
    }
    if a == 0.0 || b == 0.0 {
        let is_positive = (a * b).is_sign_positive() && c.is_sign_positive();
        return if host == 0.0 && round == Round::Down && !is_positive { -0.0 } else { host };
    }
    let (x, y) = (Magnitude::of(a), Magnitude::of(b));
    let product = Magnitude { bits: x.bits * y.bits, exponent: x.exponent + y.exponent };
    let minus = a.is_sign_negative() != b.is_sign_negative();
    if c == 0.0 {
        return rounded(minus, product, round);
    }
    // One bit above remains for the carry. If bits are lost below, the other magnitude is larger by far, and the
    // difference keeps its high bits.
    let (product, addend) = (product.raised(125), Magnitude::of(c).raised(125));
    let exponent = product.exponent.max(addend.exponent);
    let (p, q) = (product.at(exponent), addend.at(exponent));
    let (negative, bits) = match (minus == c.is_sign_negative(), p >= q) {
        (true, _) => (minus, p + q),
        (false, true) => (minus, p - q),
        (false, false) => (!minus, q - p),
    };
    match bits {
        0 if round == Round::Down => -0.0,
        0 => 0.0,
        _ => rounded(negative, Magnitude { bits, exponent }, round),
    }
}

/// `a / b`.
pub(crate) fn div(a: f64, b: f64, round: Round) -> f64 {
    if !(a.is_finite() && b.is_finite()) || a == 0.0 || b == 0.0 {
        return a / b;
    }
    let (x, y) = (Magnitude::of(a).raised(126), Magnitude::of(b).raised(62));
    let quotient = (x.bits / y.bits) | u128::from(!x.bits.is_multiple_of(y.bits));
    let negative = a.is_sign_negative() != b.is_sign_negative();
    rounded(negative, Magnitude { bits: quotient, exponent: x.exponent - y.exponent }, round)
}

/// The square root.
pub(crate) fn sqrt(a: f64, round: Round) -> f64 {
    if !(a.is_finite() && a > 0.0) {
        return a.sqrt();
    }
    let x = Magnitude::of(a).raised(125);
    let x = if x.exponent % 2 == 0 { x } else { Magnitude { bits: x.bits << 1, exponent: x.exponent - 1 } };
    let root = x.bits.isqrt();
    let bits = root << 1 | u128::from(root * root != x.bits);
    rounded(false, Magnitude { bits, exponent: x.exponent / 2 - 1 }, round)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [Round; 5] = [Round::Nearest, Round::Zero, Round::Down, Round::Up, Round::Away];

    /// Numbers of every kind: all exponents, short and long significands, both signs.
    fn numbers() -> Vec<f64> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 11
        };
        let special = [0.0, -0.0, 1.0, f64::MAX, f64::MIN_POSITIVE, 5e-324, f64::INFINITY, f64::NAN];
        let random = (0..4000).map(|at| {
            let fraction = next() & ((1 << 52) - 1) & if at % 3 == 0 { !0 << 45 } else { !0 };
            let exponent = if at % 2 == 0 { 1000 + next() % 60 } else { next() % 2047 };
            f64::from_bits((next() & 1) << 63 | exponent << 52 | fraction)
        });
        special.into_iter().chain(random).collect()
    }

    fn same(x: f64, y: f64) -> bool {
        x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan())
    }

    #[test]
    fn to_nearest_it_is_the_arithmetic_of_the_host() {
        let numbers = numbers();
        for (at, a) in numbers.iter().copied().enumerate() {
            let (b, c) = (numbers[at * 7 % numbers.len()], numbers[(at * 13 + 1) % numbers.len()]);
            assert!(same(fma(a, b, c, Round::Nearest), a.mul_add(b, c)), "{a:e} {b:e} {c:e}");
            assert!(same(fma(a, b, -(a * b), Round::Nearest), a.mul_add(b, -(a * b))), "{a:e} {b:e}");
            assert!(same(div(a, b, Round::Nearest), a / b), "{a:e} {b:e}");
            assert!(same(sqrt(a, Round::Nearest), a.sqrt()), "{a:e}");
        }
    }

    /// Whether `found` is a rounding of the exact result by its definition; `exact_is` compares the exact result with a
    /// number.
    fn is_right(found: f64, round: Round, exact_is: impl Fn(f64) -> std::cmp::Ordering) -> bool {
        use std::cmp::Ordering::{Equal, Greater, Less};
        match (round, exact_is(found)) {
            (_, Equal) => true,
            (Round::Down, Greater) => exact_is(found.next_up()) == Less,
            (Round::Up, Less) => exact_is(found.next_down()) == Greater,
            (Round::Zero, Greater) => found >= 0.0 && exact_is(found.next_up()) == Less,
            (Round::Zero, Less) => found <= 0.0 && exact_is(found.next_down()) == Greater,
            (Round::Nearest | Round::Away, _) => true,
            (Round::Down, Less) | (Round::Up, Greater) => false,
        }
    }

    /// An integer of at most 30 bits.
    fn integers() -> Vec<i64> {
        (0..300).map(|at: i64| (at * 7_919_881 % 1_000_003 + 1) * if at % 2 == 0 { 1 } else { -1 }).collect()
    }

    #[test]
    fn a_directed_quotient_is_the_neighbour_of_the_exact_one() {
        for (at, a) in integers().into_iter().enumerate() {
            let b = integers()[(at * 7 + 3) % 300];
            for round in MODES {
                let found = div(a as f64, b as f64, round);
                // a / b against m * 2^e, with e < 0: a * 2^-e against m * b.
                let exact_is = |x: f64| {
                    let m = Magnitude::of(x);
                    let m128 = m.bits as i128 * if x < 0.0 { -1 } else { 1 };
                    let (left, right) = ((a as i128) << -m.exponent, m128 * b as i128);
                    if b > 0 { left.cmp(&right) } else { right.cmp(&left) }
                };
                assert!(is_right(found, round, exact_is), "{a} / {b} {round:?} {found:e}");
            }
        }
    }

    #[test]
    fn a_directed_root_is_the_neighbour_of_the_exact_one() {
        for a in integers().into_iter().map(i64::abs) {
            for round in MODES {
                let found = sqrt(a as f64, round);
                // a against (m * 2^e)^2, with e < 0: a * 2^-2e against m * m.
                let exact_is = |x: f64| {
                    let m = Magnitude::of(x);
                    ((a as u128) << (-2 * m.exponent)).cmp(&(m.bits * m.bits))
                };
                assert!(is_right(found, round, exact_is), "root of {a} {round:?} {found:e}");
            }
        }
    }

    #[test]
    fn a_directed_sum_is_the_neighbour_of_the_exact_one() {
        for (at, a) in integers().into_iter().enumerate() {
            let (b, c) = (integers()[(at * 7 + 3) % 300] << 32 | 1, integers()[(at * 11 + 5) % 300]);
            for round in MODES {
                let found = fma(a as f64, b as f64, c as f64, round);
                let exact = i128::from(a) * i128::from(b) + i128::from(c);
                assert!(is_right(found, round, |x| exact.cmp(&(x as i128))), "{a} * {b} + {c} {round:?} {found:e}");
            }
        }
    }

    #[test]
    fn what_is_too_large_or_too_small_ends_at_the_last_number() {
        assert_eq!(fma(f64::MAX, 2.0, 0.0, Round::Zero), f64::MAX);
        assert_eq!(fma(f64::MAX, 2.0, 0.0, Round::Up), f64::INFINITY);
        assert_eq!(fma(-f64::MAX, 2.0, 0.0, Round::Up), -f64::MAX);
        assert_eq!(fma(5e-324, 0.25, 0.0, Round::Up), 5e-324);
        assert_eq!(fma(5e-324, 0.25, 0.0, Round::Down).to_bits(), 0);
        assert_eq!(fma(f64::MIN_POSITIVE, 5e-324, -0.0, Round::Down).to_bits(), 0);
        assert_eq!(fma(1.0, 1.0, -1.0, Round::Down).to_bits(), (-0.0f64).to_bits());
        assert_eq!(fma(1.0, 1.0, -1.0, Round::Up).to_bits(), 0);
        assert_eq!(fma(0.0, 1.0, -0.0, Round::Down).to_bits(), (-0.0f64).to_bits());
        assert_eq!(fma(1.0, 1.0, 5e-324, Round::Up), 1.0f64.next_up());
        assert_eq!(fma(1.0, 1.0, -5e-324, Round::Zero), 1.0f64.next_down());
    }
}
