//! Fits one number per thread to an expression of the thread: mixed-radix digits are found and checked.

use num_integer::Integer;
use tilewright_expr::Expr;
use tilewright_layout::{PlaceDigit, digits_of_list};

/// Numbers that digits of their index express.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    /// The digits; none if all numbers are the same.
    digits: Vec<PlaceDigit>,
    sampled: SampledThreads,
}

/// The threads whose numbers matter: at most `places` threads, `distance` apart, the first of them `first`.
#[derive(Clone, Debug)]
struct SampledThreads {
    /// Number of evenly spaced threads, up to the last that matters.
    places: i64,
    /// The first thread.
    first: i64,
    /// Distance between neighbouring places, in threads.
    distance: i64,
    /// The number of the first thread.
    base: i64,
}

/// An expression of `thread` that has these values; where the value is `None`, it may have any. `None` if no digits
/// produce the values, or none that `multiple` divides.
pub(crate) fn fit(values: &[Option<i64>], thread: &Expr, multiple: i64) -> Option<Expr> {
    Fitted::of(values)?.expr(thread, multiple)
}

impl Fitted {
    /// The digits that produce the values, if there are any.
    pub(crate) fn of(values: &[Option<i64>]) -> Option<Fitted> {
        let known: Vec<(i64, i64)> =
            values.iter().enumerate().filter_map(|(at, value)| Some((at as i64, (*value)?))).collect();
        let (first, base) = *known.first()?;
        let last = known.last()?.0;
        if known.iter().all(|(_, value)| *value == base) {
            let sampled = SampledThreads { places: 1, first, distance: 1, base };
            return Some(Fitted { digits: Vec::new(), sampled });
        }
        let distance = known.iter().fold(0, |distance: i64, (at, _)| distance.gcd(&(at - first)));
        let places: Vec<Option<i64>> =
            (first..=last).step_by(distance as usize).map(|at| values[at as usize].map(|value| value - base)).collect();
        let digits = digits_of_list(&places)?;
        Some(Fitted { digits, sampled: SampledThreads { places: places.len() as i64, first, distance, base } })
    }

    /// The numbers as an expression of `thread`; `None` if `multiple` does not divide it.
    pub(crate) fn expr(&self, thread: &Expr, multiple: i64) -> Option<Expr> {
        if self.digits.is_empty() {
            return Some(Expr::constant(self.sampled.base));
        }
        Some(expression(&self.digits, &self.sampled, thread, multiple)).filter(|expr| expr.multiple() % multiple == 0)
    }
}

fn expression(digits: &[PlaceDigit], known: &SampledThreads, thread: &Expr, multiple: i64) -> Expr {
    let SampledThreads { places, first, distance, base } = *known;
    // A single digit needs no division: the thread itself is scaled, if the scaled thread is visibly a multiple of
    // `multiple`.
    if let [digit] = digits
        && digit.stride % (distance * multiple) == 0
    {
        let stride = digit.stride / distance;
        return thread * stride + (base - first * stride);
    }
    let place = match (first % distance, distance) {
        (0, 1) => thread - first,
        (0, _) => thread / distance - first / distance,
        _ => (thread - first) / distance,
    };
    let digit = |digit: &PlaceDigit| {
        let quotient = if digit.period == 1 { place.clone() } else { &place / digit.period };
        let is_last = digit.period * digit.extent >= places;
        // Threads beyond the last place do not matter.
        let value = if is_last { quotient } else { quotient % digit.extent };
        value * digit.stride
    };
    let moving = digits.iter().rev().filter(|digit| digit.stride != 0).map(digit);
    moving.fold(Expr::constant(base), |sum, term| sum + term)
}

#[cfg(test)]
mod tests {
    use tilewright_expr::Var;

    use super::*;

    fn text(values: impl Iterator<Item = Option<i64>>) -> Option<String> {
        let values: Vec<_> = values.collect();
        let thread = Expr::var(&Var::new("tid", 0, values.len() as i64 - 1));
        let expr = fit(&values, &thread, 1)?;
        for (at, value) in values.iter().enumerate().filter_map(|(at, value)| Some((at as i64, (*value)?))) {
            assert_eq!(expr.eval(&|_| Some(at)), Ok(value), "{expr}");
        }
        Some(expr.to_string())
    }

    #[test]
    fn a_straight_line_is_a_product() {
        assert_eq!(text((0..64).map(|t| Some(t * 4 + 3))), Some("tid*4 + 3".to_string()));
    }

    #[test]
    fn rows_of_groups_are_two_digits() {
        assert_eq!(text((0..64).map(|t| Some(t / 16 * 100 + t % 16))), Some("tid/16*100 + tid%16".to_string()));
    }

    #[test]
    fn threads_that_do_not_count_may_have_any_value() {
        assert_eq!(text((0..64).map(|t| (t % 16 == 0).then_some(t / 16))), Some("tid/16".to_string()));
        assert_eq!(
            text((0..32).map(|t| (t % 8 < 5).then_some(t / 8 * 5 + t % 8))),
            Some("tid/8*5 + tid%8".to_string())
        );
    }

    #[test]
    fn what_divides_the_values_divides_the_expression() {
        let values: Vec<_> = (0..64).map(|t| (t % 4 == 0).then_some(t)).collect();
        let thread = Expr::var(&Var::new("tid", 0, 63));
        let text = |multiple| fit(&values, &thread, multiple).map(|expr| expr.to_string());
        assert_eq!((text(1), text(4)), (Some("tid".to_string()), Some("tid/4*4".to_string())));
    }

    #[test]
    fn digits_that_break_a_multiple_are_not_used() {
        let values: Vec<_> = (0..10).map(|t| (t % 5 % 2 == 0).then_some(t % 5)).collect();
        let thread = Expr::var(&Var::new("tid", 0, 9));
        let text = |multiple| fit(&values, &thread, multiple).map(|expr| expr.to_string());
        assert_eq!((text(1), text(2)), (Some("tid%5".to_string()), None));
    }

    #[test]
    fn replicas_are_remainders() {
        assert_eq!(text((0..64).map(|t| Some(t % 8))), Some("tid%8".to_string()));
    }

    #[test]
    fn threads_may_begin_anywhere() {
        assert_eq!(text((0..64).map(|t| (t >= 40).then_some((t - 40) / 8))), Some("(tid - 40)/8".to_string()));
    }

    #[test]
    fn values_without_digits_give_none() {
        assert_eq!(text([0, 1, 3, 2, 7].into_iter().map(Some)), None);
    }
}
