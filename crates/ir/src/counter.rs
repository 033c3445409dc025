//! What a loop counts through.

use std::fmt;

use tilewright_expr::linear::{lower_bound, normalize};
use tilewright_expr::{Expr, Var};

/// A loop's variable, and the values that it takes: from `begin` to below `end`, every `step`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The variable. Its range includes every value that it takes, whatever the sizes and outer variables are.
    pub var: Var,
    /// The first value.
    pub begin: Expr,
    /// The values are less than this. There is none if it is not greater than `begin`.
    pub end: Expr,
    /// The distance from one value to the next, at least 1.
    pub step: i64,
}

/// The most iterations that costs assume for a loop whose length is known only when the kernel runs.
const ASSUMED_TRIPS: i64 = 64;

/// `t in 0..n step 64`.
impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counter { var, begin, end, step } = self;
        let bound = |of: &Expr| if of.operands().is_some() { format!("({of})") } else { of.to_string() };
        write!(f, "{} in {}..{}", var.name(), bound(begin), bound(end))?;
        if *step == 1 { Ok(()) } else { write!(f, " step {step}") }
    }
}

impl Counter {
    /// Counts through all values of a variable.
    pub fn of(var: Var) -> Counter {
        let (range, step) = (var.range(), var.multiple());
        let [begin, end] = [range.lo, range.hi.saturating_add(1)].map(Expr::constant);
        Counter { var, begin, end, step }
    }

    /// Counts from `begin` to below `end`, every `step`, with a variable of this name. If `begin` is not a multiple of
    /// `step`, the variable counts from 0, and the second part of the result is what has to be added to it.
    pub fn new(name: &str, begin: Expr, end: Expr, step: i64) -> (Counter, Expr) {
        if begin.multiple() % step == 0 {
            let last = end.range().hi.saturating_sub(1);
            let most = last.div_euclid(step).saturating_mul(step);
            let var = Var::multiple_of(name, begin.range().lo, most, step);
            return (Counter { var, begin, end, step }, Expr::constant(0));
        }
        let (counter, _) = Counter::new(name, Expr::constant(0), normalize(&(end - begin.clone())), step);
        (counter, begin)
    }

    /// Takes one value: it names an expression.
    pub fn named(name: &str, value: Expr) -> Counter {
        let range = value.range();
        let var = Var::multiple_of(name, range.lo, range.hi, 1);
        Counter { var, end: value.clone() + 1, begin: value, step: 1 }
    }

    /// Whether it takes exactly one value, whatever sizes and outer variables are.
    pub fn is_once(&self) -> bool {
        normalize(&(&self.end - &self.begin)).as_const().is_some_and(|distance| 0 < distance && distance <= self.step)
    }

    /// Whether it may take several values.
    pub fn repeats(&self) -> bool {
        self.most_trips() > 1 && !self.is_once()
    }

    /// The values, if they depend on nothing.
    pub fn values(&self) -> Option<impl Iterator<Item = i64> + Clone> {
        let (begin, end) = (self.begin.as_const()?, self.end.as_const()?);
        let step = usize::try_from(self.step).ok().filter(|step| *step > 0)?;
        Some((begin..end).step_by(step))
    }

    /// The values that it can take, whatever its bounds are.
    pub fn possible(&self) -> impl Iterator<Item = i64> + Clone + use<> {
        let range = self.var.range();
        (range.lo..=range.hi).step_by(usize::try_from(self.step).unwrap_or(1).max(1))
    }

    /// The most values that it takes.
    pub fn most_trips(&self) -> i64 {
        let range = self.var.range();
        let distance = range.hi.saturating_sub(range.lo).max(-1);
        distance.div_euclid(self.step.max(1)).saturating_add(1)
    }

    /// The number of values that costs assume: their number, or at most 64 where the kernel alone does not determine it.
    pub fn assumed_trips(&self) -> i64 {
        let most = if self.is_once() { 1 } else { self.most_trips() };
        if self.values().is_some() { most } else { most.clamp(0, ASSUMED_TRIPS) }
    }

    /// How many values it takes.
    pub fn trips(&self) -> Expr {
        normalize(&(&self.end - &self.begin)).at_least(0).ceil_div(self.step)
    }

    /// Whether it takes at least one value, whatever sizes and outer variables are.
    pub fn is_never_empty(&self) -> bool {
        lower_bound(&(&self.end - &self.begin)) > 0
    }

    /// The greatest value, where there is one.
    pub fn last(&self) -> Expr {
        let Counter { begin, end, step, .. } = self;
        if begin.multiple() % step == 0 && end.multiple() % step == 0 {
            return normalize(&(end - *step));
        }
        normalize(&(normalize(&(end - begin - 1)) / *step * *step + begin.clone()))
    }

    /// The counter with its bounds replaced.
    pub fn map_bounds(&self, change: &dyn Fn(&Expr) -> Expr) -> Counter {
        Counter { begin: change(&self.begin), end: change(&self.end), ..self.clone() }
    }
}
