//! Expressions of a nest's variables as expressions of the thread, step by step.

use std::sync::Arc;

use tilewright_expr::linear::normalize;
use tilewright_expr::points::{Split, Splits};
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::Stmt;
use tilewright_ir::tile::vectors::{Mask, in_step};
use tilewright_layout::map::Map;

use super::active_step::ActiveStep;
use crate::builder::Builder;
use crate::threads::{Fitted, fit, looked_up};

/// An expression that was found for the numbers of one step.
struct CachedExpr {
    /// The number of each iteration.
    own: Arc<Vec<i64>>,
    step: usize,
    /// The threads for which the expression was found.
    mask: Mask,
    expr: Expr,
}

/// Converts numbers per iteration to expressions of the thread.
pub(super) struct Points<'a> {
    /// The iteration that each thread executes in each step.
    steps: &'a Map,
    /// The index of a thread in its CTA.
    thread: Expr,
    /// Splits expressions by the variables of the nest.
    pub(super) splits: Splits<'a>,
    /// The expressions found so far.
    known: Vec<CachedExpr>,
    /// Numbers of all iterations, with their digits.
    fitted: Vec<(Arc<Vec<i64>>, Option<Fitted>)>,
}

impl<'a> Points<'a> {
    pub(super) fn new(vars: &'a [Var], steps: &'a Map, thread: Expr) -> Points<'a> {
        Points { steps, thread, splits: Splits::by(vars), known: Vec::new(), fitted: Vec::new() }
    }

    pub(super) fn thread(&self) -> &Expr {
        &self.thread
    }

    /// The expression as a sum of a part that depends on the iteration and a part that does not; `None` if one term
    /// combines both.
    pub(super) fn split(&mut self, expr: &Expr) -> Option<Split> {
        self.splits.of(expr)
    }

    /// A number per iteration as an expression of the thread, for the threads of `mask` in `step`. Numbers that no
    /// digits express are looked up in a table, by a statement that is added to `out`. If `multiple` divides the
    /// numbers, it divides the expression.
    pub(super) fn numbers(
        &mut self,
        own: &Arc<Vec<i64>>,
        multiple: i64,
        place: &ActiveStep,
        builder: &mut Builder,
        out: &mut Vec<Stmt>,
    ) -> Expr {
        self.digits(own, multiple, place).unwrap_or_else(|| {
            let values: Vec<Option<i64>> = self.steps_values(own, place.step, &place.mask).collect();
            looked_up(&values, &self.thread, builder, out)
        })
    }

    /// The same, if digits of the thread express it.
    pub(super) fn digits(&mut self, own: &Arc<Vec<i64>>, multiple: i64, place: &ActiveStep) -> Option<Expr> {
        let (step, mask) = (place.step, &place.mask);
        let moved = |known: &CachedExpr| {
            distance(self.steps_values(&known.own, known.step, mask), self.steps_values(own, step, mask))
        };
        let is_known = |known: &&CachedExpr| {
            known.mask == *mask && Arc::ptr_eq(&known.own, own) && known.expr.multiple() % multiple == 0
        };
        let same = self.known.iter().filter(is_known);
        if let Some((expr, apart)) = same.into_iter().find_map(|known| Some((known.expr.clone(), moved(known)?))) {
            return Some(normalize(&(expr + apart)));
        }
        let values: Vec<Option<i64>> = self.steps_values(own, step, mask).collect();
        // Digits may give idle threads numbers that `multiple` does not divide; a table does not.
        let divides = |expr: &Expr| expr.multiple() % multiple == 0;
        let of_thread = fit(&values, &self.thread, multiple);
        let of_iteration = || self.by_iteration(own)?.expr(&self.iteration(step, mask)?, multiple);
        let expr = of_thread.or_else(of_iteration).map(|expr| normalize(&expr));
        let expr = expr.filter(divides)?;
        self.known.push(CachedExpr { own: own.clone(), step, mask: mask.clone(), expr: expr.clone() });
        Some(expr)
    }

    /// The numbers as digits of the iteration, if there are any. All iterations are looked at once, not in each step.
    fn by_iteration(&mut self, own: &Arc<Vec<i64>>) -> Option<Fitted> {
        if let Some((_, fitted)) = self.fitted.iter().find(|(known, _)| Arc::ptr_eq(known, own)) {
            return fitted.clone();
        }
        let numbers: Vec<Option<i64>> = own.iter().copied().map(Some).collect();
        let fitted = Fitted::of(&numbers);
        self.fitted.push((own.clone(), fitted.clone()));
        fitted
    }

    /// The number of the iteration, if digits of the thread express it.
    fn iteration(&self, step: usize, mask: &[bool]) -> Option<Expr> {
        let at = |thread: usize| mask[thread].then(|| self.steps.at(thread, step)).flatten();
        let numbers: Vec<Option<i64>> = (0..mask.len()).map(|thread| at(thread).map(|number| number as i64)).collect();
        fit(&numbers, &self.thread, 1)
    }

    /// The number of each thread in a step, where it takes part.
    pub(super) fn steps_values<'b>(
        &'b self,
        own: &'b [i64],
        step: usize,
        mask: &'b [bool],
    ) -> impl Iterator<Item = Option<i64>> + 'b {
        in_step(own, self.steps, step, mask)
    }

    /// An expression of the nest's variables in terms of the thread.
    pub(super) fn at(&mut self, expr: &Expr, place: &ActiveStep, builder: &mut Builder, out: &mut Vec<Stmt>) -> Expr {
        if let Some(split) = self.split(expr) {
            return normalize(&(self.numbers(&split.own, 1, place, builder, out) + split.other));
        }
        let mut values = Vec::new();
        for var in self.splits.vars() {
            if let Some(split) = self.split(&Expr::var(var)) {
                values.push((var.clone(), self.numbers(&split.own, 1, place, builder, out)));
            }
        }
        let value = |var: &Var| values.iter().find(|(known, _)| known == var).map(|(_, value)| value.clone());
        builder.simplifier.simplify(&expr.substitute(&value))
    }
}

/// By how much the numbers of all threads differ; `None` if not by the same, or if a thread has only one of the two.
fn distance(before: impl Iterator<Item = Option<i64>>, now: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    let mut distance = None;
    for (before, now) in before.zip(now) {
        match (before, now) {
            (None, None) => {}
            (Some(before), Some(now)) if *distance.get_or_insert(now - before) == now - before => {}
            (Some(_), _) | (None, Some(_)) => return None,
        }
    }
    Some(distance.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_equally_far_apart_only_where_the_same_threads_have_one() {
        let of = |before: [Option<i64>; 3], now: [Option<i64>; 3]| distance(before.into_iter(), now.into_iter());
        assert_eq!(of([Some(1), None, Some(5)], [Some(4), None, Some(8)]), Some(3));
        assert_eq!(of([Some(1), None, Some(5)], [Some(4), None, Some(9)]), None);
        assert_eq!(of([Some(1), None, Some(5)], [Some(4), Some(2), Some(8)]), None);
        assert_eq!(of([Some(1), Some(2), Some(5)], [Some(4), None, Some(8)]), None);
        assert_eq!(of([None; 3], [None; 3]), Some(0));
    }
}
