//! The bounds of tensors, which tiles and accesses may exceed.

use tilewright_expr::linear::{Linear, linear, lower_bound, normalize};
use tilewright_expr::points::Splits;
use tilewright_expr::{Expr, Node, Var};

use crate::hw_index::Dim;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::element::{ElementStmt, Parallel};
use crate::tile::kernel::{Kernel, Stmt};

/// An index that may lie outside of its dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The index.
    pub index: Expr,
    /// The extent of the dimension.
    pub extent: Expr,
}

/// The most variables that are replaced by their last values.
const MOST_STEPS: usize = 8;

impl Kernel {
    /// Whether the `extent` indices from `start` on are inside `0..size`, whatever the sizes are, in every CTA and
    /// iteration.
    pub fn lies_inside(&self, start: &Expr, extent: i64, size: &Expr) -> bool {
        self.is_never_negative(start)
            && (start.range().hi <= size.range().lo - extent || self.is_never_negative(&(size - start - extent)))
    }

    /// Whether a sum is at least 0, whatever the sizes are, in every CTA and iteration: by ranges, or with the last value of
    /// block indices and of variables of loops that are subtracted.
    pub fn is_never_negative(&self, sum: &Expr) -> bool {
        self.is_never_negative_at_ends(&normalize(sum), MOST_STEPS)
    }

    /// `steps` is how many variables may be replaced: those of inner loops first, whose ends depend on those of outer ones.
    fn is_never_negative_at_ends(&self, sum: &Expr, steps: usize) -> bool {
        if sum.range().is_non_negative() || is_at_least(&linear(sum), 0, MOST_QUOTIENTS) {
            return true;
        }
        let sum = linear(sum);
        let ends: Vec<(usize, Vec<End>)> =
            (0..sum.terms.len()).filter_map(|at| self.least_of(&sum.terms[at], at)).collect();
        let is_inner = |(at, _): &&(usize, Vec<End>)| {
            let mut others = ends.iter().filter(|(other, _)| other != at).flat_map(|(_, ends)| ends);
            let Node::Var(var) = sum.terms[*at].1.node() else { return false };
            !others.any(|end| end.last.mentions(var) || end.bound.mentions(var))
        };
        let Some((at, ends)) = ends.iter().find(is_inner).or(ends.first()).filter(|_| steps > 0) else { return false };
        let with = |end: &Expr| {
            let terms = sum.terms.iter().enumerate();
            let terms = terms.map(|(place, (factor, of))| if place == *at { end * *factor } else { of * *factor });
            terms.fold(Expr::constant(sum.constant), |sum, term| sum + term)
        };
        let is_right = |end: &Expr| self.is_never_negative_at_ends(&normalize(&with(end)), steps - 1);
        ends.iter().all(|End { last, bound }| is_right(last) || last != bound && is_right(bound))
    }

    /// Where a term of a sum is least: at the end of a variable that is subtracted, and at the begin of one that is added, if that
    /// depends on others.
    fn least_of(&self, (factor, atom): &(i64, Expr), at: usize) -> Option<(usize, Vec<End>)> {
        let Node::Var(var) = atom.node() else { return None };
        let ends = if *factor < 0 { self.ends(var) } else { self.begins(var) };
        (!ends.is_empty()).then_some((at, ends))
    }

    /// An expression of sizes that is at least as great as `expr` in every CTA and iteration.
    pub fn greatest(&self, expr: &Expr) -> Expr {
        self.extreme(expr, true, MOST_STEPS)
    }

    /// An expression of sizes that is at least as great as `expr`, or at most as great.
    fn extreme(&self, expr: &Expr, is_greatest: bool, steps: usize) -> Expr {
        let of = |operand: &Expr| self.extreme(operand, is_greatest, steps);
        let end = if is_greatest { expr.range().hi } else { expr.range().lo };
        match expr.node() {
            Node::Const(_) => expr.clone(),
            Node::Var(var) if self.sizes.iter().any(|size| size.var == *var) => expr.clone(),
            Node::Var(var) => match &self.ends(var)[..] {
                [End { last, .. }] if is_greatest && steps > 0 => self.extreme(last, true, steps - 1),
                _ => Expr::constant(end),
            },
            Node::Add(a, b) => of(a) + of(b),
            Node::Min(a, b) => of(a).at_most(of(b)),
            Node::Max(a, b) => of(a).at_least(of(b)),
            Node::Mul(a, b) | Node::Div(a, b) => {
                let Some(number) = b.as_const().filter(|number| *number != 0) else { return Expr::constant(end) };
                match matches!(expr.node(), Node::Div(..)) {
                    true => of(a) / number,
                    false => self.extreme(a, is_greatest == (number > 0), steps) * number,
                }
            }
            Node::Mod(..) | Node::Xor(..) | Node::And(..) => Expr::constant(end),
        }
    }

    /// The ends of a block index, or of the variable in each loop around ops that has it. None if a loop over elements has the
    /// same variable, of which nothing more is known than its range.
    fn ends(&self, var: &Var) -> Vec<End> {
        let block = Dim::ALL.into_iter().find(|dimension| self.block(*dimension) == *var);
        match block {
            Some(dimension) => vec![End::at(normalize(&(&self.grid[dimension.index()] - 1)))],
            None if self.parallels.iter().any(|(_, parallel)| counts_elements(&parallel.vars, &parallel.body, var)) => {
                Vec::new()
            }
            None => {
                let mut ends = Vec::new();
                ends_in(&self.body, var, &mut ends);
                ends
            }
        }
    }

    /// The first values of the variable in each loop around ops that has it, if none of them is a number.
    fn begins(&self, var: &Var) -> Vec<End> {
        let mut begins = Vec::new();
        let is_counted = |(_, parallel): (_, &Parallel)| counts_elements(&parallel.vars, &parallel.body, var);
        if !self.parallels.iter().any(is_counted) {
            begins_in(&self.body, var, &mut begins);
        }
        if begins.iter().any(|begin: &End| begin.last.as_const().is_some()) { Vec::new() } else { begins }
    }

    /// The dimensions of a buffer in memory in which an access may be out of bounds, in terms of the variables of its
    /// nest. In shared memory that happens only where a condition prevents the access, or its value is not used.
    pub fn bounds(&self, buffer: &Buffer, index: &[Expr], splits: &mut Splits<'_>) -> Vec<Bound> {
        if buffer.space == Space::Fragment {
            return Vec::new();
        }
        let bound = |(at, index): (usize, &Expr)| Bound { index: index.clone(), extent: buffer.extent(at) };
        let all = index.iter().enumerate().map(bound);
        all.filter(|bound| !self.is_inside(bound, splits)).collect()
    }

    fn is_inside(&self, bound: &Bound, splits: &mut Splits<'_>) -> bool {
        self.lies_inside(&bound.index, 1, &bound.extent)
            || splits.of(&bound.index).is_some_and(|split| {
                let is_inside = |own: i64| self.lies_inside(&normalize(&(&split.other + own)), 1, &bound.extent);
                split.ends.is_some_and(|ends| ends.into_iter().all(is_inside))
            })
    }
}

/// Where a variable ends.
#[derive(Clone, Debug, PartialEq, Eq)]
struct End {
    /// The greatest value.
    last: Expr,
    /// No less than that, and often simpler: the end of a loop less 1, whatever its step.
    bound: Expr,
}

impl End {
    fn at(last: Expr) -> End {
        End { bound: last.clone(), last }
    }
}

/// Adds the end of `var` in every loop that counts with it.
fn ends_in(body: &[Stmt], var: &Var, ends: &mut Vec<End>) {
    for stmt in body {
        match stmt {
            Stmt::Loop(inner) => {
                let end = || End { last: inner.counter.last(), bound: normalize(&(&inner.counter.end - 1)) };
                let end = (inner.counter.var == *var).then(end);
                ends.extend(end.filter(|end| !ends.contains(end)));
                ends_in(&inner.body, var, ends);
            }
            Stmt::If(branch) => {
                ends_in(&branch.then, var, ends);
                ends_in(&branch.otherwise, var, ends);
            }
            Stmt::EachThread(elements) if counts_elements(&[], elements, var) => ends.push(End::at(Expr::var(var))),
            Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) => {}
        }
    }
}

/// Adds the first value of `var` in every loop that counts with it.
fn begins_in(body: &[Stmt], var: &Var, begins: &mut Vec<End>) {
    for stmt in body {
        match stmt {
            Stmt::Loop(inner) => {
                let begin = (inner.counter.var == *var).then(|| End::at(inner.counter.begin.clone()));
                begins.extend(begin.filter(|begin| !begins.contains(begin)));
                begins_in(&inner.body, var, begins);
            }
            Stmt::If(branch) => {
                begins_in(&branch.then, var, begins);
                begins_in(&branch.otherwise, var, begins);
            }
            Stmt::EachThread(elements) if counts_elements(&[], elements, var) => {
                begins.push(End::at(Expr::constant(0)))
            }
            Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) => {}
        }
    }
}

/// The most quotients of a sum that are replaced by fractions.
const MOST_QUOTIENTS: usize = 3;

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

/// Whether a variable is one of `vars`, or that of a loop over elements.
fn counts_elements(vars: &[Var], body: &[ElementStmt], var: &Var) -> bool {
    let is_of_loop = |element: &ElementStmt| matches!(element, ElementStmt::For { counter, .. } if counter.var == *var);
    vars.contains(var)
        || body.iter().any(|element| {
            is_of_loop(element) || element.inner().any(|inner| counts_elements(&[], std::slice::from_ref(inner), var))
        })
}
