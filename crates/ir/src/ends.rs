//! Whether sums of indices are ever negative, from where the variables in them begin and end.

use tilewright_expr::linear::{Linear, linear, lower_bound, normalize};
use tilewright_expr::{Expr, Node, Var};

use crate::counter::Counter;

/// One end of a variable: of its first values, or of its last ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The outermost value.
    value: Expr,
    /// No value lies beyond this one, which is often simpler: the end of a loop less 1, whatever its step.
    bound: Expr,
}

impl End {
    /// A variable ends exactly there.
    pub fn at(value: Expr) -> End {
        End { bound: value.clone(), value }
    }

    /// Where a loop begins.
    pub fn first_of(counter: &Counter) -> End {
        End::at(counter.begin.clone())
    }

    /// Where a loop ends.
    pub fn last_of(counter: &Counter) -> End {
        End { value: counter.last(), bound: normalize(&(&counter.end - 1)) }
    }

    /// The outermost value.
    pub fn value(&self) -> &Expr {
        &self.value
    }

    fn mentions(&self, var: &Var) -> bool {
        self.value.mentions(var) || self.bound.mentions(var)
    }
}

/// Which end of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The least values.
    First,
    /// The greatest values.
    Last,
}

/// The most variables that are replaced by their ends.
const MOST_STEPS: usize = 8;

/// The most quotients of a sum that are replaced by fractions.
const MOST_QUOTIENTS: usize = 3;

/// Whether a sum is at least 0: by ranges, or with the last values of variables that are subtracted, and the first ones of those
/// that are added. `ends` gives what is known of one: an end for each loop that counts with it, and none if nothing is known.
pub fn is_never_negative(sum: &Expr, ends: &dyn Fn(&Var, Side) -> Vec<End>) -> bool {
    match sum.node() {
        // In the canonical form of the product, quotients become remainders, of which less is known.
        Node::Mul(of, by) if by.as_const().is_some_and(|by| by > 0) => is_never_negative(of, ends),
        _ => at_ends(&normalize(sum), ends, MOST_STEPS),
    }
}

/// `steps` is how many variables may be replaced: those of inner loops first, whose ends depend on those of outer ones.
fn at_ends(sum: &Expr, ends: &dyn Fn(&Var, Side) -> Vec<End>, steps: usize) -> bool {
    let sum = linear(sum);
    if is_at_least(&sum, 0, MOST_QUOTIENTS) {
        return true;
    }
    let known = |(at, (factor, atom)): (usize, &(i64, Expr))| {
        let Node::Var(var) = atom.node() else { return None };
        let known = ends(var, if *factor < 0 { Side::Last } else { Side::First });
        // A range tells as much as the first of numbers, and a variable nothing of itself.
        let is_more = |end: &End| end.value != *atom && (*factor < 0 || end.value.as_const().is_none());
        (!known.is_empty() && known.iter().all(is_more)).then(|| (at, var.clone(), known))
    };
    let known: Vec<(usize, Var, Vec<End>)> = sum.terms.iter().enumerate().filter_map(known).collect();
    let is_inner = |(at, var, _): &&(usize, Var, Vec<End>)| {
        let mut others = known.iter().filter(|(other, ..)| other != at).flat_map(|(.., ends)| ends);
        !others.any(|end| end.mentions(var))
    };
    let Some((at, _, replaced)) = known.iter().find(is_inner).or(known.first()).filter(|_| steps > 0) else {
        return false;
    };
    // Other terms that depend on the variable keep it: their range is that of all its values.
    let with = |end: &Expr| {
        let mut rest = sum.clone();
        let (factor, _) = rest.terms.remove(*at);
        normalize(&(rest.to_expr() + end * factor))
    };
    let is_right = |end: &Expr| at_ends(&with(end), ends, steps - 1);
    replaced.iter().all(|End { value, bound }| is_right(value) || value != bound && is_right(bound))
}

/// Whether a sum is never less than `-slack`: by ranges, or after a quotient by a number has become a fraction, which exceeds it by
/// less than 1. Then the whole sum is multiplied by the divisor.
fn is_at_least(sum: &Linear, slack: i64, quotients: usize) -> bool {
    if lower_bound(&sum.to_expr()) >= -slack {
        return true;
    }
    let quotient = |(at, (factor, atom)): (usize, &(i64, Expr))| {
        let (Node::Div(..), Some((of, by))) = (atom.node(), atom.operands()) else { return None };
        Some((at, *factor, linear(of), by.as_const().filter(|by| *by > 1)?))
    };
    let found = sum.terms.iter().enumerate().find_map(quotient).filter(|_| quotients > 0);
    let multiplied = found.and_then(|(at, factor, mut of, by)| {
        let mut rest = sum.clone();
        rest.terms.remove(at);
        // The quotient is at least as much as the fraction of the least dividend that it may have.
        of.constant = if factor > 0 { of.constant.checked_sub(by - 1)? } else { of.constant };
        let sum = rest.scaled(by)?.plus(&of.scaled(factor)?)?;
        Some((sum, slack.checked_mul(by)?.checked_add(by - 1)?))
    });
    multiplied.is_some_and(|(sum, slack)| is_at_least(&linear(&sum.to_expr()), slack, quotients - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop over `begin..end`, every `step`.
    fn counter(name: &str, begin: &Expr, end: &Expr, step: i64) -> Counter {
        Counter { var: Var::new(name, 0, 1 << 20), begin: begin.clone(), end: end.clone(), step }
    }

    fn is_right(sum: &Expr, counters: &[Counter]) -> bool {
        is_never_negative(sum, &|var, side| {
            let of = counters.iter().filter(|counter| counter.var == *var);
            of.map(if side == Side::First { End::first_of } else { End::last_of }).collect()
        })
    }

    #[test]
    fn loops_end_before_what_is_subtracted_exceeds_the_rest() {
        let (n, zero) = (Expr::var(&Var::new("n", 1, 1 << 20)), Expr::constant(0));
        let tiles = n.ceil_div(32);
        for [outer, inner] in [["o", "t"], ["t", "o"]] {
            let of_outer = counter(outer, &zero, &tiles, 1);
            let o = Expr::var(&of_outer.var);
            let below = counter(inner, &zero, &(&tiles - &o), 1);
            let t = Expr::var(&below.var);
            assert!(is_right(&(tiles.clone() - o.clone() - t.clone() - 1), &[of_outer.clone(), below.clone()]));
            assert!(!is_right(&(tiles.clone() - o.clone() - t.clone() - 2), &[of_outer.clone(), below]));
            let above = counter(inner, &o, &tiles, 1);
            assert!(is_right(&(&t - &o), &[of_outer.clone(), above.clone()]));
            assert!(!is_right(&(&t - &o - 1), &[of_outer, above]));
        }
    }

    #[test]
    fn quotients_are_fractions() {
        let (n, zero) = (Expr::var(&Var::new("n", 1, 1 << 20)), Expr::constant(0));
        let tiles = n.ceil_div(32);
        let half = counter("t", &zero, &tiles.ceil_div(2), 1);
        let t = Expr::var(&half.var);
        assert!(is_right(&(tiles.clone() - (&t * 2) - 1), std::slice::from_ref(&half)));
        assert!(is_right(&(tiles.clone() - t.clone() - 1), std::slice::from_ref(&half)));
        assert!(!is_right(&(tiles.clone() - (&t * 2) - 2), &[half]));
        let second = counter("t", &zero, &tiles, 2);
        assert!(is_right(&(tiles.clone() - t.clone() - 1), &[second]));
        assert!(is_right(&(n.clone() - (&n + 2) / 2), &[]), "no variable is replaced");
        assert!(!is_right(&(n.clone() - (&n + 3) / 2), &[]), "1 - 2 for 1");
    }
}
