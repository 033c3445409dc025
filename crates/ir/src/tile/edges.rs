//! The bounds of tensors, which tiles and accesses may exceed.

use tilewright_expr::linear::normalize;
use tilewright_expr::points::Splits;
use tilewright_expr::{Expr, Node, Var};

use crate::ends::{self, End, Side};
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

/// The most variables of a limit that are replaced by their last values.
const MOST_STEPS: usize = 8;

impl Kernel {
    /// Whether the `extent` indices from `start` on are inside `0..size`, whatever the sizes are, in every CTA and
    /// iteration.
    pub fn lies_inside(&self, start: &Expr, extent: i64, size: &Expr) -> bool {
        self.is_never_negative(start)
            && (start.range().hi <= size.range().lo - extent || self.is_never_negative(&(size - start - extent)))
    }

    /// Whether a sum is at least 0, whatever the sizes are, in every CTA and iteration.
    pub fn is_never_negative(&self, sum: &Expr) -> bool {
        ends::is_never_negative(sum, &|var, side| self.ends(var, side))
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
            Node::Var(var) => match &self.ends(var, Side::Last)[..] {
                [last] if is_greatest && steps > 0 => self.extreme(last.value(), true, steps - 1),
                _ => Expr::constant(end),
            },
            Node::Add(a, b) => of(a) + of(b),
            Node::Min(a, b) => of(a).at_most(of(b)),
            Node::Max(a, b) => of(a).at_least(of(b)),
            Node::Mul(a, b) => match b.as_const() {
                Some(number) => self.extreme(a, is_greatest == (number > 0), steps) * number,
                None => {
                    let [left, right] = [of(a), of(b)];
                    let is_monotone = [a, b, &left, &right].iter().all(|of| of.range().lo >= 0);
                    if is_monotone { left * right } else { Expr::constant(end) }
                }
            },
            Node::Div(a, b) => {
                let (dividend, divisor) = (of(a), self.extreme(b, !is_greatest, steps));
                let is_monotone =
                    divisor.range().lo > 0 && (b.as_const().is_some() || dividend.range().lo >= 0 && a.range().lo >= 0);
                if is_monotone { dividend / divisor } else { Expr::constant(end) }
            }
            Node::Mod(..) | Node::Xor(..) | Node::And(..) => Expr::constant(end),
        }
    }

    /// An end of a block index, or of the variable in each loop around ops that has it. None if a loop over elements has the same
    /// variable, of which nothing more is known than its range.
    fn ends(&self, var: &Var, side: Side) -> Vec<End> {
        let is_block = |dimension: &Dim| self.block(*dimension) == *var;
        if let Some(loaded) = self.loaded.iter().find(|loaded| loaded.var == *var) {
            return vec![End::at(if side == Side::First { Expr::constant(0) } else { loaded.most.clone() })];
        }
        match (Dim::ALL.into_iter().find(is_block), side) {
            (Some(_), Side::First) => vec![End::at(Expr::constant(0))],
            (Some(dimension), Side::Last) => vec![End::at(normalize(&(&self.grid[dimension.index()] - 1)))],
            (None, _) if self.parallels.iter().any(|(_, of)| counts_elements(&of.vars, &of.body, var)) => Vec::new(),
            (None, _) => {
                let mut ends = Vec::new();
                ends_in(&self.body, (var, side), &mut ends);
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

/// Adds an end of a variable in every loop that counts with it.
fn ends_in(body: &[Stmt], (var, side): (&Var, Side), ends: &mut Vec<End>) {
    for stmt in body {
        match stmt {
            Stmt::Loop(inner) => {
                let of = if side == Side::First { End::first_of } else { End::last_of };
                let end = (inner.counter.var == *var).then(|| of(&inner.counter));
                ends.extend(end.filter(|end| !ends.contains(end)));
                ends_in(&inner.body, (var, side), ends);
            }
            Stmt::If(branch) => {
                ends_in(&branch.then, (var, side), ends);
                ends_in(&branch.otherwise, (var, side), ends);
            }
            Stmt::EachThread(elements) if counts_elements(&[], elements, var) => ends.push(End::at(Expr::var(var))),
            Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) | Stmt::Begin(_) | Stmt::End(_) => {}
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
