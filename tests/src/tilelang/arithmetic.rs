//! Arithmetic of the evaluation: every number carries a bound on how far a correct result may differ from it.

use super::expr::ValueOp;
use super::numbers::{Dtype, Plain};

/// A number with its precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number {
    pub(crate) plain: Plain,
    /// The dtype; `None` for constants, indices and truth values, which adapt to any dtype.
    pub(crate) dtype: Option<Dtype>,
    pub(crate) trust: Trust,
}

/// How precisely a number is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Trust {
    /// Only this value is correct: it was moved, is an integer, or is a maximum or minimum.
    Exact,
    /// The result of float arithmetic: values within this distance are correct, too.
    Within(f64),
    /// It depends on unwritten memory, or its error has no bound.
    Unknown,
}

impl Trust {
    /// Within a distance, or unknown if the distance is not finite.
    pub(crate) fn within(slack: f64) -> Trust {
        if slack.is_finite() { Trust::Within(slack) } else { Trust::Unknown }
    }

    /// The maximum distance of correct results, if known.
    fn slack(self) -> Option<f64> {
        match self {
            Trust::Exact => Some(0.0),
            Trust::Within(slack) => Some(slack),
            Trust::Unknown => None,
        }
    }
}

impl Number {
    /// An integer that adapts to any dtype.
    pub(crate) fn whole(value: i64) -> Number {
        Number { plain: Plain::Whole(value), dtype: None, trust: Trust::Exact }
    }

    /// A constant that adapts to any dtype, as an integer if possible.
    pub(crate) fn constant(value: f64) -> Number {
        let is_negative_zero = value == 0.0 && value.is_sign_negative();
        if value.fract() == 0.0 && value.abs() < 1e15 && !is_negative_zero {
            Number::whole(value as i64)
        } else {
            Number { plain: Plain::Real(value), dtype: None, trust: Trust::Exact }
        }
    }

    /// Rounds to the nearest number of this dtype.
    pub(crate) fn rounded(self, dtype: Dtype) -> Number {
        let plain = dtype.number(dtype.bits(self.plain));
        let trust = match self.trust {
            // Another correct number may be rounded in the other direction.
            Trust::Within(slack) if self.dtype != Some(dtype) => {
                let step = if dtype.is_float() { dtype.error(plain.real()) } else { 1.0 };
                Trust::within(slack + step)
            }
            trust => trust,
        };
        Number { plain, dtype: Some(dtype), trust }
    }

    fn unknown(dtype: Option<Dtype>) -> Number {
        Number { plain: Plain::Real(0.0), dtype, trust: Trust::Unknown }
    }

    /// The absolute value.
    pub(crate) fn abs(self) -> Number {
        let plain = match self.plain {
            Plain::Whole(value) => Plain::Whole(value.wrapping_abs()),
            Plain::Real(value) => Plain::Real(value.abs()),
        };
        Number { plain, ..self }
    }

    fn negative(self) -> Number {
        let plain = match self.plain {
            Plain::Whole(value) => Plain::Whole(value.wrapping_neg()),
            Plain::Real(value) => Plain::Real(-value),
        };
        Number { plain, ..self }
    }

    /// A result of floating-point arithmetic. A result that is not finite is known only if its operands are exact.
    fn computed(value: f64, dtype: Option<Dtype>, is_certain: bool, slack: f64) -> Number {
        let trust = match (value.is_finite(), is_certain) {
            (true, _) => Trust::within(slack),
            (false, true) => Trust::Exact,
            (false, false) => Trust::Unknown,
        };
        Number { plain: Plain::Real(value), dtype, trust }
    }
}

/// The result of an operation, after converting its operands to the widest of their dtypes. Results are not rounded
/// between operations: the slack covers that.
pub(crate) fn apply(op: ValueOp, given: &[Number]) -> Result<Number, String> {
    let common = given.iter().filter_map(|number| number.dtype).reduce(wider);
    let ready = |number: &Number| match common {
        Some(dtype) if number.dtype != common => number.rounded(dtype),
        _ => *number,
    };
    match (op, given) {
        (ValueOp::Select, [cond, a, b]) => Ok(select(*cond, ready(a), ready(b))),
        (ValueOp::Neg, [a]) => Ok(ready(a).negative()),
        (ValueOp::Abs, [a]) => Ok(ready(a).abs()),
        (_, [a]) => function(op, ready(a)),
        (_, [a, b]) => binary(op, ready(a), ready(b)),
        _ => Err(wrong(op, given.len())),
    }
}

/// The sum of numbers, accumulated in this dtype in any order.
pub(crate) fn sum(terms: impl Iterator<Item = Number>, dtype: Dtype) -> Number {
    let (mut total, mut squares, mut slack, mut count) = (Plain::Whole(0), 0.0f64, 0.0f64, 0u32);
    let mut trust = Trust::Exact;
    for term in terms {
        let Some(apart) = term.trust.slack() else { return Number::unknown(Some(dtype)) };
        total = match (total, term.plain) {
            (Plain::Whole(total), Plain::Whole(value)) => Plain::Whole(total.wrapping_add(value)),
            // The first term may be a negative zero.
            (_, value) if count == 0 => value,
            (total, value) => Plain::Real(total.real() + value.real()),
        };
        squares += term.plain.real() * term.plain.real();
        slack += apart;
        count += 1;
        trust = if apart > 0.0 { Trust::Within(slack) } else { trust };
    }
    match total {
        Plain::Real(value) if count > 1 => {
            // Partial sums of numbers with different signs are about the root of the sum of their squares, and the
            // accumulated rounding error is about the root of their count times a single error. The result may be much
            // smaller than the partial sums.
            let one = dtype.error(squares.sqrt().max(value.abs()));
            Number::computed(value, Some(dtype), trust == Trust::Exact, slack + f64::from(count).sqrt() * one)
        }
        plain => Number { plain, dtype: Some(dtype), trust },
    }
}

fn wrong(op: ValueOp, count: usize) -> String {
    format!("`{}` does not take {count} arguments", op.name())
}

/// The wider of two dtypes. A float is wider than an integer; for two different 16-bit floats, it is `float32`.
fn wider(one: Dtype, other: Dtype) -> Dtype {
    match (one.is_float(), other.is_float()) {
        (true, false) => one,
        (false, true) => other,
        (true, true) if one != other && one.bytes() == other.bytes() => Dtype::F32,
        _ if one.bytes() < other.bytes() => other,
        _ => one,
    }
}

fn select(cond: Number, a: Number, b: Number) -> Number {
    let dtype = a.dtype.or(b.dtype);
    let chosen = if cond.plain.holds() { a } else { b };
    match (cond.trust, a.trust.slack(), b.trust.slack()) {
        (Trust::Exact, ..) => Number { dtype, ..chosen },
        // Either may be correct.
        (Trust::Within(_), Some(one), Some(other)) => {
            let apart = (a.plain.real() - b.plain.real()).abs();
            Number { plain: chosen.plain, dtype, trust: Trust::within(apart + one.max(other)) }
        }
        _ => Number::unknown(dtype),
    }
}

/// A function of one float: its value, the propagated error of its argument, and its own error.
fn function(op: ValueOp, a: Number) -> Result<Number, String> {
    let Some(slack) = a.trust.slack() else { return Ok(Number::unknown(a.dtype)) };
    let x = a.plain.real();
    let error = |value: f64| a.dtype.unwrap_or(Dtype::F32).error(value);
    let (value, slack) = match op {
        // Approximations by powers of two scale the argument first, so the error depends on its magnitude.
        ValueOp::Exp => (x.exp(), x.exp() * slack + error(x.exp() * (1.0 + x.abs()))),
        ValueOp::Log => (x.ln(), slack / x.abs() + error(x.ln().abs().max(1.0))),
        ValueOp::Sqrt if x == 0.0 => (x, slack.sqrt()),
        ValueOp::Sqrt => (x.sqrt(), slack / (2.0 * x.sqrt()) + error(x.sqrt())),
        ValueOp::Rsqrt => (1.0 / x.sqrt(), slack / (2.0 * x * x.sqrt()) + error(1.0 / x.sqrt())),
        ValueOp::Tanh => (x.tanh(), slack + error(x.tanh())),
        _ => return Err(wrong(op, 1)),
    };
    Ok(Number::computed(value, a.dtype, a.trust == Trust::Exact, slack))
}

fn binary(op: ValueOp, a: Number, b: Number) -> Result<Number, String> {
    let dtype = a.dtype.or(b.dtype);
    let (Some(one), Some(other)) = (a.trust.slack(), b.trust.slack()) else { return Ok(Number::unknown(dtype)) };
    let is_certain = a.trust == Trust::Exact && b.trust == Trust::Exact;
    let (x, y) = (a.plain.real(), b.plain.real());
    if let Some(holds) = comparison(op, x, y) {
        let is_clear = is_certain || (x - y).abs() > one + other;
        let trust = if is_clear { Trust::Exact } else { Trust::Within(1.0) };
        return Ok(Number { trust, ..Number::whole(i64::from(holds)) });
    }
    if matches!(op, ValueOp::Max | ValueOp::Min) {
        let trust = if is_certain { Trust::Exact } else { Trust::within(one.max(other)) };
        return Ok(Number { plain: extreme(op, a.plain, b.plain), dtype, trust });
    }
    if let (Plain::Whole(p), Plain::Whole(q)) = (a.plain, b.plain) {
        let Some(value) = whole(op, p, q).ok_or_else(|| wrong(op, 2))? else { return Ok(Number::unknown(dtype)) };
        let apart = moved(op, (x, one), (y, other), value as f64);
        let trust = if is_certain { Trust::Exact } else { Trust::within(apart + 1.0) };
        return Ok(Number { plain: Plain::Whole(value), dtype, trust });
    }
    let value = match op {
        ValueOp::Add => x + y,
        ValueOp::Sub => x - y,
        ValueOp::Mul => x * y,
        ValueOp::Div => x / y,
        _ => return Err(wrong(op, 2)),
    };
    let slack = moved(op, (x, one), (y, other), value) + dtype.unwrap_or(Dtype::F32).error(value);
    Ok(Number::computed(value, dtype, is_certain, slack))
}

fn comparison(op: ValueOp, x: f64, y: f64) -> Option<bool> {
    match op {
        ValueOp::Lt => Some(x < y),
        ValueOp::Le => Some(x <= y),
        ValueOp::Gt => Some(x > y),
        ValueOp::Ge => Some(x >= y),
        ValueOp::Eq => Some(x == y),
        ValueOp::Ne => Some(x != y),
        _ => None,
    }
}

/// The maximum or the minimum; if one operand is a NaN, the other one.
fn extreme(op: ValueOp, a: Plain, b: Plain) -> Plain {
    match (op, a, b) {
        (ValueOp::Max, Plain::Whole(a), Plain::Whole(b)) => Plain::Whole(a.max(b)),
        (_, Plain::Whole(a), Plain::Whole(b)) => Plain::Whole(a.min(b)),
        (ValueOp::Max, ..) => Plain::Real(a.real().max(b.real())),
        _ => Plain::Real(a.real().min(b.real())),
    }
}

/// Integer arithmetic; division rounds towards zero. The inner `None` is a division by zero, whose result is unknown.
fn whole(op: ValueOp, p: i64, q: i64) -> Option<Option<i64>> {
    match op {
        ValueOp::Add => Some(Some(p.wrapping_add(q))),
        ValueOp::Sub => Some(Some(p.wrapping_sub(q))),
        ValueOp::Mul => Some(Some(p.wrapping_mul(q))),
        ValueOp::Div if q == 0 => Some(None),
        ValueOp::Div => Some(Some(p.wrapping_div(q))),
        _ => None,
    }
}

/// The error of a result caused by the errors of its operands.
fn moved(op: ValueOp, (x, one): (f64, f64), (y, other): (f64, f64), value: f64) -> f64 {
    match op {
        ValueOp::Mul => x.abs() * other + y.abs() * one + one * other,
        ValueOp::Div if one == 0.0 && other == 0.0 => 0.0,
        ValueOp::Div => (one + value.abs() * other) / y.abs(),
        _ => one + other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(dtype: Dtype, value: f64) -> Number {
        Number::constant(value).rounded(dtype)
    }

    fn rough(value: f64, slack: f64) -> Number {
        Number { trust: Trust::Within(slack), ..number(Dtype::F32, value) }
    }

    #[test]
    fn float_sums_have_slack_and_maxima_have_none() {
        let given = [number(Dtype::F32, 1.5), number(Dtype::F32, -2.0)];
        assert!(matches!(apply(ValueOp::Add, &given).unwrap().trust, Trust::Within(slack) if slack > 0.0));
        assert_eq!(apply(ValueOp::Max, &given), Ok(given[0]));
    }

    #[test]
    fn integers_are_exact_and_divide_towards_zero() {
        let quotient = apply(ValueOp::Div, &[number(Dtype::I32, -7.0), Number::constant(2.0)]).unwrap();
        assert_eq!((quotient.plain, quotient.trust), (Plain::Whole(-3), Trust::Exact));
    }

    #[test]
    fn cancellation_keeps_the_slack_of_what_was_there() {
        let difference = apply(ValueOp::Sub, &[rough(1000.0, 1e-3), rough(1000.0, 1e-3)]).unwrap();
        assert!(matches!(difference.trust, Trust::Within(slack) if slack >= 2e-3));
    }

    #[test]
    fn casts_of_exact_numbers_are_exact_and_others_may_go_to_either_side() {
        assert_eq!(number(Dtype::F32, 0.1).rounded(Dtype::F16).trust, Trust::Exact);
        assert!(matches!(rough(1.0, 1e-7).rounded(Dtype::F16).trust, Trust::Within(slack) if slack > 1e-3));
    }

    #[test]
    fn comparisons_are_certain_where_the_numbers_are_apart() {
        let less = |x, y| apply(ValueOp::Lt, &[rough(x, 0.1), rough(y, 0.1)]).unwrap();
        assert_eq!((less(1.0, 2.0).plain, less(1.0, 2.0).trust), (Plain::Whole(1), Trust::Exact));
        assert_eq!(less(1.0, 1.1).trust, Trust::Within(1.0));
    }

    #[test]
    fn sums_of_integers_are_exact_and_of_one_float_too() {
        let sum_of = |dtype, values: &[f64]| sum(values.iter().map(|value| number(dtype, *value)), dtype);
        assert_eq!(sum_of(Dtype::I8, &[100.0, 100.0]).plain, Plain::Whole(200));
        assert_eq!(sum_of(Dtype::F32, &[0.1]), number(Dtype::F32, 0.1));
        assert!(matches!(sum_of(Dtype::F32, &[3.0, -3.0]).trust, Trust::Within(slack) if slack > 1e-6));
    }
}
