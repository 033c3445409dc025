//! The bounds of tensors, which tiles and accesses may exceed.

use tilewright_expr::linear::{linear, lower_bound, normalize};
use tilewright_expr::points::Splits;
use tilewright_expr::{Expr, Node, Var};

use crate::hw_index::Dim;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::element::ElementStmt;
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

    /// `steps` is how many variables may be replaced.
    fn is_never_negative_at_ends(&self, sum: &Expr, steps: usize) -> bool {
        if sum.range().is_non_negative() || lower_bound(sum) >= 0 {
            return true;
        }
        let sum = linear(sum);
        let replaced = sum.terms.iter().filter(|(factor, _)| *factor < 0).find_map(|(_, atom)| {
            let Node::Var(var) = atom.node() else { return None };
            let ends = self.last_values(var);
            (!ends.is_empty()).then_some((atom, ends))
        });
        let Some((atom, ends)) = replaced.filter(|_| steps > 0) else { return false };
        let with = |end: Expr| {
            let terms = sum.terms.iter().map(|(factor, of)| if of == atom { &end * *factor } else { of * *factor });
            terms.fold(Expr::constant(sum.constant), |sum, term| sum + term)
        };
        ends.into_iter().all(|end| self.is_never_negative_at_ends(&normalize(&with(end)), steps - 1))
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
            Node::Var(var) => match &self.last_values(var)[..] {
                [last] if is_greatest && steps > 0 => self.extreme(last, true, steps - 1),
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

    /// The greatest value of a block index, or of the variable in each loop around ops that has it. None if a loop over
    /// elements has the same variable, of which nothing more is known than its range.
    fn last_values(&self, var: &Var) -> Vec<Expr> {
        let block = Dim::ALL.into_iter().find(|dimension| self.block(*dimension) == *var);
        match block {
            Some(dimension) => vec![normalize(&(&self.grid[dimension.index()] - 1))],
            None if self.parallels.iter().any(|(_, parallel)| counts_elements(&parallel.vars, &parallel.body, var)) => {
                Vec::new()
            }
            None => {
                let mut ends = Vec::new();
                last_values(&self.body, var, &mut ends);
                ends
            }
        }
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

/// Adds the greatest value of `var` in every loop that counts with it.
fn last_values(body: &[Stmt], var: &Var, ends: &mut Vec<Expr>) {
    for stmt in body {
        match stmt {
            Stmt::Loop(inner) => {
                let end = (inner.counter.var == *var).then(|| inner.counter.last());
                ends.extend(end.filter(|end| !ends.contains(end)));
                last_values(&inner.body, var, ends);
            }
            Stmt::If(branch) => {
                last_values(&branch.then, var, ends);
                last_values(&branch.otherwise, var, ends);
            }
            Stmt::EachThread(elements) if counts_elements(&[], elements, var) => ends.push(Expr::var(var)),
            Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) => {}
        }
    }
}

/// Whether a variable is one of `vars`, or that of a loop over elements.
fn counts_elements(vars: &[Var], body: &[ElementStmt], var: &Var) -> bool {
    let is_of_loop = |element: &ElementStmt| matches!(element, ElementStmt::For { counter, .. } if counter.var == *var);
    vars.contains(var)
        || body.iter().any(|element| {
            is_of_loop(element) || element.inner().any(|inner| counts_elements(&[], std::slice::from_ref(inner), var))
        })
}
