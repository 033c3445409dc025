//! Floating-point formats of 4 to 16 bits, computed from their definition, with rounding by a search over their
//! values.

/// A format with `exponent` and `mantissa` bits.
#[derive(Clone, Copy)]
pub(crate) struct Small {
    exponent: i32,
    mantissa: i32,
    top: Top,
}

/// What the largest codes are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Top {
    /// Infinities and NaN.
    Infinities,
    /// One NaN: all ones below the sign bit.
    Nan,
    Numbers,
}

pub(crate) const F16: Small = Small { exponent: 5, mantissa: 10, top: Top::Infinities };
pub(crate) const BF16: Small = Small { exponent: 8, mantissa: 7, top: Top::Infinities };
pub(crate) const E5M2: Small = Small { exponent: 5, mantissa: 2, top: Top::Infinities };
pub(crate) const E4M3: Small = Small { exponent: 4, mantissa: 3, top: Top::Nan };
pub(crate) const E2M3: Small = Small { exponent: 2, mantissa: 3, top: Top::Numbers };
pub(crate) const E3M2: Small = Small { exponent: 3, mantissa: 2, top: Top::Numbers };
pub(crate) const E2M1: Small = Small { exponent: 2, mantissa: 1, top: Top::Numbers };

impl Small {
    pub(crate) fn sign(self) -> u32 {
        1 << (self.exponent + self.mantissa)
    }

    pub(crate) fn nan(self) -> u32 {
        self.sign() - 1
    }

    /// The smallest code below the sign bit that is not a finite number.
    pub(crate) fn beyond(self) -> u32 {
        match self.top {
            Top::Infinities => self.sign() - (1 << self.mantissa),
            Top::Nan => self.nan(),
            Top::Numbers => self.sign(),
        }
    }

    /// The magnitude of a code below the sign bit, as if the codes of infinity and NaN were numbers too.
    pub(crate) fn magnitude(self, code: u32) -> f64 {
        let unit = 1u32 << self.mantissa;
        let bias = (1 << (self.exponent - 1)) - 1;
        let field = (code / unit) as i32;
        let fraction = f64::from(code % unit) / f64::from(unit);
        if field == 0 { fraction * 2f64.powi(1 - bias) } else { (1.0 + fraction) * 2f64.powi(field - bias) }
    }

    pub(crate) fn value(self, bits: u32) -> f64 {
        let code = bits & self.nan();
        let magnitude = match code {
            _ if code < self.beyond() => self.magnitude(code),
            _ if code == self.beyond() && self.top == Top::Infinities => f64::INFINITY,
            _ => f64::NAN,
        };
        if bits & self.sign() == 0 { magnitude } else { -magnitude }
    }

    /// The largest code whose number is at most `x`, which is not negative.
    fn below(self, x: f64) -> u32 {
        let (mut low, mut high) = (0, self.beyond());
        while low < high {
            let middle = (low + high).div_ceil(2);
            if self.magnitude(middle) <= x {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }

    fn signed(self, x: f64, code: u32) -> u32 {
        if x.is_sign_negative() { self.sign() | code } else { code }
    }

    /// The code nearest to `x`, the even one of two.
    pub(crate) fn nearest(self, x: f64) -> u32 {
        if x.is_nan() {
            return self.nan();
        }
        let low = self.below(x.abs());
        if low == self.beyond() {
            return self.signed(x, low);
        }
        let (down, up) = (x.abs() - self.magnitude(low), self.magnitude(low + 1) - x.abs());
        let code = if down < up || (down == up && low.is_multiple_of(2)) { low } else { low + 1 };
        self.signed(x, code)
    }

    /// The code of `x` rounded toward zero.
    pub(crate) fn toward_zero(self, x: f64) -> u32 {
        match x {
            _ if x.is_nan() => self.nan(),
            _ if x.is_infinite() => self.signed(x, self.beyond()),
            _ => self.signed(x, self.below(x.abs()).min(self.beyond() - 1)),
        }
    }

    /// The finite code nearest to `x` (`.satfinite`); NaN is all ones below the sign bit.
    pub(crate) fn nearest_finite(self, x: f64) -> u32 {
        if x.is_nan() {
            return self.nan();
        }
        let most = self.magnitude(self.beyond() - 1);
        self.nearest(x.clamp(-most, most))
    }

    /// Replaces a number that is subnormal in this format by a zero of the same sign.
    pub(crate) fn flush(self, x: f64) -> f64 {
        if x.abs() < self.magnitude(1 << self.mantissa) { 0.0f64.copysign(x) } else { x }
    }
}
