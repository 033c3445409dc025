//! Decides whether an index made of variables is in bounds of its buffer wherever the enclosing conditions hold.
//!
//! Ranges are tried first, with what the conditions say about single variables and sums. Where these do not decide, the
//! index and the conditions are evaluated for all values of their variables.

use tilewright_expr::linear::{Linear, linear, normalize};
use tilewright_expr::points::values;
use tilewright_expr::{Expr, Node, Var};

use super::conditions::{Condition, KnownFacts};
use super::races::MOST_POINTS;
use crate::tile::integers::Comparison;
use crate::tile::kernel::Kernel;
use crate::tile::value::Value;

/// The most passes in which all conditions narrow the ranges of variables.
const MOST_PASSES: usize = 4;

/// The greatest magnitude of numbers in expressions that are evaluated.
const MOST: i64 = 1 << 52;

/// How an index is out of bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outside {
    /// The least and the greatest value of the index; bounds of these where `at` is `None`.
    pub(super) least: i64,
    pub(super) most: i64,
    /// Values of variables, by name, for which the index is out of bounds; `None` where there are too many to evaluate,
    /// so that the index may be in bounds.
    pub(super) at: Option<Vec<(String, i64)>>,
}

/// How an index leaves `0..extent` where all conditions hold; `None` if it does not.
pub(super) fn outside(index: &Expr, extent: i64, conditions: &[Condition]) -> Option<Outside> {
    if index.range().within(0, extent) {
        return None;
    }
    let facts: Vec<Expr> = conditions.iter().flat_map(Condition::facts).collect();
    let narrowed = Narrowed::by(&facts)?;
    let index = narrowed.of(index);
    let facts: Vec<Expr> = facts.iter().map(|fact| narrowed.of(fact)).collect();
    let rest = normalize(&(Expr::constant(extent - 1) - index.clone()));
    if follows(&index, &facts) && follows(&rest, &facts) {
        return None;
    }
    let conditions = conditions.iter().map(|condition| narrowed.inside(condition)).collect();
    let mut found = Listing { index, conditions }.outside(extent)?;
    if let Some(at) = &mut found.at {
        let only = |(var, now): &(Var, Var)| Some((var.name().to_string(), now.range().constant()?));
        at.extend(narrowed.vars.iter().filter_map(only));
    }
    Some(found)
}

/// Sums that are not negative where a condition holds, or does not hold.
pub(in crate::tile) fn facts_under(kernel: &Kernel, cond: &Value, holds: bool) -> Vec<Expr> {
    let known = KnownFacts::new(kernel, false, &[(cond, holds)]);
    known.conditions().iter().flat_map(Condition::facts).collect()
}

impl Condition {
    /// Sums that are not negative where the condition holds.
    fn facts(&self) -> Vec<Expr> {
        let [a, b] = &self.sides;
        let comparison = if self.holds { self.comparison } else { self.comparison.opposite() };
        match comparison {
            Comparison::Lt => vec![b - a - 1],
            Comparison::Le => vec![b - a],
            Comparison::Gt => vec![a - b - 1],
            Comparison::Ge => vec![a - b],
            Comparison::Eq => vec![a - b, b - a],
            Comparison::Ne => Vec::new(),
        }
    }
}

/// Whether a sum is not negative where the sums `facts` are not. Decided by ranges: of the sum itself, or of what
/// remains after subtracting one or two of the facts.
fn follows(sum: &Expr, facts: &[Expr]) -> bool {
    let is_known = |sum: &Expr| sum.range().is_non_negative();
    let without = |sum: &Expr, fact: &Expr| normalize(&(sum - fact));
    is_known(sum)
        || facts.iter().enumerate().any(|(at, fact)| {
            let rest = without(sum, fact);
            is_known(&rest) || facts[at + 1..].iter().any(|other| is_known(&without(&rest, other)))
        })
}

/// Variables whose ranges conditions narrow: each as it was, and as it is narrowed.
struct Narrowed {
    /// Pairs of an original variable and its narrowed form.
    vars: Vec<(Var, Var)>,
}

impl Narrowed {
    /// Narrows by sums that are not negative; `None` if one of them is negative for all values.
    fn by(facts: &[Expr]) -> Option<Narrowed> {
        let mut narrowed = Narrowed { vars: Vec::new() };
        for _ in 0..MOST_PASSES {
            let mut is_narrower = false;
            for fact in facts {
                let sum = linear(&narrowed.of(fact));
                if sum.to_expr().range().hi < 0 {
                    return None;
                }
                for at in 0..sum.terms.len() {
                    is_narrower |= narrowed.narrow(&sum, at)?;
                }
            }
            if !is_narrower {
                break;
            }
        }
        Some(narrowed)
    }

    /// Narrows the variable of a term to values for which the sum may be non-negative; returns whether that removes
    /// any. `None` if no value is left.
    fn narrow(&mut self, sum: &Linear, at: usize) -> Option<bool> {
        let (factor, atom) = &sum.terms[at];
        let Node::Var(var) = atom.node() else { return Some(false) };
        let mut others = sum.clone();
        others.terms.remove(at);
        let most = others.to_expr().range().hi;
        if most == i64::MAX {
            return Some(false);
        }
        let (range, multiple) = (var.range(), var.multiple());
        let bound = most.div_euclid(factor.saturating_abs());
        let (lo, hi) = match *factor > 0 {
            true => (range.lo.max(bound.saturating_neg()), range.hi),
            false => (range.lo, range.hi.min(bound)),
        };
        let up = |number: i64| number.saturating_neg().div_euclid(multiple).saturating_mul(multiple).saturating_neg();
        let (lo, hi) = (up(lo), hi.div_euclid(multiple) * multiple);
        if lo > hi {
            return None;
        }
        if lo <= range.lo && hi >= range.hi {
            return Some(false);
        }
        let now = Var::multiple_of(var.name(), lo, hi, multiple);
        match self.vars.iter_mut().find(|(_, before)| before == var) {
            Some((_, before)) => *before = now,
            None => self.vars.push((var.clone(), now)),
        }
        Some(true)
    }

    /// The expression in terms of the narrowed variables.
    fn of(&self, expr: &Expr) -> Expr {
        let now = |var: &Var| self.vars.iter().find(|(known, _)| known == var).map(|(_, now)| Expr::var(now));
        normalize(&expr.substitute(&now))
    }

    fn inside(&self, condition: &Condition) -> Condition {
        let [a, b] = &condition.sides;
        Condition { comparison: condition.comparison, sides: [self.of(a), self.of(b)], holds: condition.holds }
    }
}

/// An index and its enclosing conditions, evaluated for all values of their variables.
struct Listing {
    index: Expr,
    conditions: Vec<Condition>,
}

impl Listing {
    fn outside(&self, extent: i64) -> Option<Outside> {
        let found = self.outside_if_it_happens(extent)?;
        (!self.never_happens()).then_some(found)
    }

    fn outside_if_it_happens(&self, extent: i64) -> Option<Outside> {
        let mut own = Vec::new();
        note_vars(&self.index, &mut own);
        let all = self.tied(own.clone());
        if self.is_in_reach(&all) {
            return self.look(extent, &all);
        }
        if self.is_in_reach(&own) && self.look(extent, &own).is_none() {
            return None;
        }
        if let Some(free) = self.free() {
            return free.outside(extent);
        }
        let range = self.index.range();
        Some(Outside { least: range.lo, most: range.hi, at: None })
    }

    /// These variables and those that conditions tie to them; conditions on other variables say nothing about the
    /// index.
    fn tied(&self, mut vars: Vec<Var>) -> Vec<Var> {
        loop {
            let before = vars.len();
            for condition in &self.conditions {
                if condition.sides.iter().any(|side| vars.iter().any(|var| side.mentions(var))) {
                    condition.sides.iter().for_each(|side| note_vars(side, &mut vars));
                }
            }
            if vars.len() == before {
                return vars;
            }
        }
    }

    /// Whether some of the conditions never hold together.
    fn never_happens(&self) -> bool {
        let anywhere = Listing { index: Expr::constant(0), conditions: self.conditions.clone() };
        anywhere.conditions.iter().any(|condition| {
            let mut vars = Vec::new();
            condition.sides.iter().for_each(|side| note_vars(side, &mut vars));
            let vars = anywhere.tied(vars);
            // Every point is outside of an extent of 0.
            anywhere.is_in_reach(&vars) && anywhere.look(0, &vars).is_none()
        })
    }

    /// The index as a sum of variables that no condition mentions, if it is one: then its ends are those of the
    /// variables.
    fn free(&self) -> Option<Free> {
        let sum = linear(&self.index);
        let is_free =
            |var: &Var| !self.conditions.iter().any(|condition| condition.sides.iter().any(|s| s.mentions(var)));
        let mut free = Free { constant: sum.constant, terms: Vec::new() };
        for (factor, atom) in sum.terms {
            match atom.node() {
                Node::Var(var) if is_free(var) => free.terms.push((factor, var.clone())),
                _ => return None,
            }
        }
        Some(free)
    }

    /// The conditions on these variables alone.
    fn conditions_on<'a>(&'a self, vars: &'a [Var]) -> impl Iterator<Item = &'a Condition> {
        self.conditions.iter().filter(move |condition| {
            let mut mentioned = Vec::new();
            condition.sides.iter().for_each(|side| note_vars(side, &mut mentioned));
            mentioned.iter().all(|var| vars.contains(var))
        })
    }

    fn is_in_reach(&self, vars: &[Var]) -> bool {
        let count = |var: &Var| var.range().hi.saturating_sub(var.range().lo).saturating_add(1);
        let points = vars.iter().map(count).fold(1, i64::saturating_mul);
        let is_small = |expr: &Expr| expr.range().within(-MOST, MOST);
        points <= MOST_POINTS
            && is_small(&self.index)
            && self.conditions_on(vars).flat_map(|condition| &condition.sides).all(is_small)
    }

    /// How the index is out of bounds among all values of these variables for which the conditions on them hold. What
    /// cannot be listed may be anywhere in its range.
    fn look(&self, extent: i64, vars: &[Var]) -> Option<Outside> {
        let range = self.index.range();
        self.listed(extent, vars).unwrap_or(Some(Outside { least: range.lo, most: range.hi, at: None }))
    }

    /// [`Listing::look`]; `None` if something cannot be listed.
    fn listed(&self, extent: i64, vars: &[Var]) -> Option<Option<Outside>> {
        let all: Vec<&Var> = vars.iter().collect();
        let listed = |expr: &Expr| values(&linear(expr), &all);
        let indices = listed(&self.index)?;
        let mut happens = vec![true; indices.len()];
        for Condition { comparison, sides: [a, b], holds } in self.conditions_on(vars) {
            for (happens, (a, b)) in happens.iter_mut().zip(listed(a)?.into_iter().zip(listed(b)?)) {
                *happens &= comparison.holds(a, b) == *holds;
            }
        }
        for var in vars.iter().filter(|var| var.multiple() > 1) {
            let numbers = listed(&Expr::var(var))?;
            happens.iter_mut().zip(numbers).for_each(|(happens, number)| *happens &= number % var.multiple() == 0);
        }
        let mut ends: Option<(usize, usize)> = None;
        for point in (0..indices.len()).filter(|point| happens[*point]) {
            let (least, most) = ends.unwrap_or((point, point));
            let least = if indices[point] < indices[least] { point } else { least };
            let most = if indices[point] > indices[most] { point } else { most };
            ends = Some((least, most));
        }
        Some(ends.filter(|(least, most)| indices[*least] < 0 || indices[*most] >= extent).map(|(least, most)| {
            let point = if indices[least] < 0 { least } else { most };
            Outside { least: indices[least], most: indices[most], at: Some(digits(vars, point)) }
        }))
    }
}

/// A sum of multiples of variables, each of which takes all of its values.
struct Free {
    constant: i64,
    /// Factors and their variables.
    terms: Vec<(i64, Var)>,
}

impl Free {
    fn outside(&self, extent: i64) -> Option<Outside> {
        let (least, most) = (self.end(false), self.end(true));
        let sum = |end: &[i64]| {
            let terms = end.iter().zip(&self.terms).map(|(value, (factor, _))| value.saturating_mul(*factor));
            terms.fold(self.constant, i64::saturating_add)
        };
        let (lo, hi) = (sum(&least), sum(&most));
        if lo >= 0 && hi < extent {
            return None;
        }
        let end = if lo < 0 { least } else { most };
        let at = self.terms.iter().zip(end).map(|((_, var), value)| (var.name().to_string(), value)).collect();
        Some(Outside { least: lo, most: hi, at: Some(at) })
    }

    /// The values for which the sum is the greatest or the least.
    fn end(&self, is_most: bool) -> Vec<i64> {
        let value = |(factor, var): &(i64, Var)| {
            let (range, multiple) = (var.range(), var.multiple());
            match is_most == (*factor > 0) {
                true => range.hi.div_euclid(multiple) * multiple,
                false => range.lo,
            }
        };
        self.terms.iter().map(value).collect()
    }
}

/// The values of variables at a point, where the last variable is the fastest.
fn digits(vars: &[Var], point: usize) -> Vec<(String, i64)> {
    let mut rest = point as i64;
    let mut found: Vec<(String, i64)> = Vec::with_capacity(vars.len());
    for var in vars.iter().rev() {
        let count = tilewright_expr::points::extent(var) as i64;
        found.push((var.name().to_string(), tilewright_expr::points::value(var, rest % count)));
        rest /= count;
    }
    found.reverse();
    found
}

fn note_vars(expr: &Expr, vars: &mut Vec<Var>) {
    expr.for_each_var(&mut |var| {
        if !vars.contains(var) {
            vars.push(var.clone());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn var(name: &str, hi: i64) -> Expr {
        Expr::var(&Var::new(name, 0, hi))
    }

    fn holds(a: &Expr, comparison: Comparison, b: impl Into<Expr>) -> Condition {
        Condition { comparison, sides: [a.clone(), b.into()], holds: true }
    }

    fn fails(a: &Expr, comparison: Comparison, b: impl Into<Expr>) -> Condition {
        Condition { holds: false, ..holds(a, comparison, b) }
    }

    fn is_inside(index: &Expr, extent: i64, conditions: &[Condition]) -> bool {
        outside(index, extent, conditions).is_none()
    }

    #[test]
    fn a_comparison_keeps_what_it_compares_inside() {
        let (j, step) = (var("j", 63), Expr::var(&Var::new("step", 1, 32)));
        let back = &j - &step;
        assert!(!is_inside(&back, 64, &[]));
        assert!(is_inside(&back, 64, &[holds(&j, Comparison::Ge, &step)]));
        assert!(is_inside(&back, 64, &[fails(&j, Comparison::Lt, &step)]));
        assert!(!is_inside(&back, 64, &[holds(&(&j + 1), Comparison::Ge, &step)]));
        assert!(is_inside(&(&j + 1), 64, &[holds(&(&j + 1), Comparison::Lt, 64)]));
        assert!(!is_inside(&(&j + 1), 64, &[holds(&j, Comparison::Lt, 64)]));
        assert!(is_inside(&(&j - 5), 1, &[holds(&j, Comparison::Eq, 5)]));
    }

    #[test]
    fn conditions_around_each_other_are_taken_together() {
        let (i, n) = (var("i", 1023), Expr::var(&Var::new("n", 1, 1 << 20)));
        let both = [holds(&i, Comparison::Lt, &n), holds(&n, Comparison::Le, 64)];
        assert!(is_inside(&i, 64, &both) && !is_inside(&i, 63, &both) && !is_inside(&i, 64, &both[..1]));
        let middle = [holds(&i, Comparison::Ge, 4), fails(&i, Comparison::Gt, 67)];
        assert!(is_inside(&(&i - 4), 64, &middle) && !is_inside(&(&i - 5), 64, &middle));
    }

    #[test]
    fn what_no_range_tells_is_listed() {
        let i = var("i", 31);
        // 3, 7, 11 and so on, without the last.
        let of_four = [holds(&(&i % 4), Comparison::Eq, 3), holds(&i, Comparison::Ne, 31)];
        assert!(is_inside(&(&i / 4), 7, &of_four) && !is_inside(&(&i / 4), 7, &of_four[..1]));
        let odd = [holds(&(&i % 2), Comparison::Ne, 0)];
        assert!(is_inside(&(&i - 1), 31, &odd));
    }

    #[test]
    fn the_point_that_is_outside_is_told() {
        let (i, j) = (var("i", 7), var("j", 7));
        let found = outside(&(&i - &j), 8, &[holds(&j, Comparison::Eq, 2), holds(&i, Comparison::Gt, 0)]);
        let at = vec![("i".to_string(), 1), ("j".to_string(), 2)];
        assert_eq!(found, Some(Outside { least: -1, most: 5, at: Some(at) }));
    }

    #[test]
    fn what_never_happens_is_nowhere_outside() {
        let i = var("i", 7);
        assert!(is_inside(&(&i + 100), 8, &[holds(&i, Comparison::Gt, 7)]));
        assert!(is_inside(&(&i + 100), 8, &[holds(&Expr::constant(0), Comparison::Ge, 1)]));
        // Of variables that the index does not mention: no number is 5 modulo 8 and even.
        let n = var("n", 63);
        let never = [holds(&(&n % 8), Comparison::Eq, 5), holds(&(&n % 2), Comparison::Eq, 0)];
        assert!(is_inside(&(&i + 100), 8, &never) && !is_inside(&(&i + 100), 8, &never[..1]));
    }

    #[test]
    fn the_ends_of_a_sum_are_those_of_its_variables() {
        let (block, i) = (var("bx", (1 << 20) - 1), var("i", 31));
        let place = &(&block * 32) + &i;
        assert!(is_inside(&place, 1 << 25, &[]));
        let at = vec![("bx".to_string(), 0), ("i".to_string(), 0)];
        let found = outside(&(&place - 1), 1 << 25, &[holds(&var("n", 7), Comparison::Ne, 3)]);
        assert_eq!(found, Some(Outside { least: -1, most: (1 << 25) - 2, at: Some(at) }));
    }

    #[test]
    fn more_points_than_are_listed_leave_it_open() {
        let (i, n) = (var("i", 1 << 20), var("n", 1 << 20));
        let found = outside(&(&i % 64 - 1), 64, &[holds(&(&i * 3 % 64), Comparison::Ne, &(&n * 5 % 64))]);
        assert_eq!(found, Some(Outside { least: -1, most: 62, at: None }));
    }
}
