//! Positions in a tensor with rows whose length is a size known only at launch.
//!
//! `row*n + column` with `0 <= column < n` is a place in a matrix: two of them are the same only if both parts are. So the
//! length stands for any other one that columns do not exceed, such as [`PITCH`].

use tilewright_expr::linear::{Linear, linear, normalize};
use tilewright_expr::{Expr, Node, Var};
use tilewright_ir::Counter;
use tilewright_ir::ends::{self, End, Side};
use tilewright_ir::thread::Cond;

/// The length of rows, in elements, that stands for one known at launch.
pub(super) const PITCH: i64 = 1 << 24;

/// A position in rows of one length.
pub(super) struct Place {
    pub(super) row: Expr,
    pub(super) column: Expr,
}

impl Place {
    /// The place with this position, where rows have `length` elements. `None` if no part of the position is a multiple of that.
    pub(super) fn of(position: &Expr, length: &Var) -> Option<Place> {
        let Linear { terms, constant } = linear(position);
        let (mut row, mut column) = (Expr::constant(0), Expr::constant(constant));
        for (factor, atom) in terms {
            match times(&atom, length) {
                Some(times) => row = row + times * factor,
                None => column = column + atom * factor,
            }
        }
        (row.as_const() != Some(0)).then(|| Place { row: normalize(&row), column: normalize(&column) })
    }

    /// The position in rows of [`PITCH`] elements.
    pub(super) fn position(&self) -> Expr {
        normalize(&(&self.row * PITCH + self.column.clone()))
    }
}

/// What the length is multiplied by in a term.
fn times(atom: &Expr, length: &Var) -> Option<Expr> {
    match atom.node() {
        Node::Var(var) if var == length => Some(Expr::constant(1)),
        Node::Mul(a, b) if matches!(b.node(), Node::Var(var) if var == length) => Some(a.clone()),
        Node::Mul(a, b) if matches!(a.node(), Node::Var(var) if var == length) => Some(b.clone()),
        _ => None,
    }
}

/// What is known where a statement is executed.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Sums that are not negative.
    sums: Vec<Expr>,
    /// What the loops around count through.
    counters: Vec<Counter>,
}

impl Facts {
    pub(super) fn in_loops(counters: impl Iterator<Item = Counter>) -> Facts {
        Facts { sums: Vec::new(), counters: counters.collect() }
    }

    /// The number of conditions so far.
    pub(super) fn mark(&self) -> usize {
        self.sums.len()
    }

    /// Forgets the conditions after a mark.
    pub(super) fn rewind(&mut self, mark: usize) {
        self.sums.truncate(mark);
    }

    /// A condition holds.
    pub(super) fn assume(&mut self, cond: &Cond) {
        match cond {
            Cond::Less(a, b) => {
                let difference = b - a;
                // It is positive, and so at least the number that divides it.
                let least = difference.multiple().max(1);
                self.sums.push(difference - least);
            }
            Cond::Equal(a, b) => self.sums.extend([a - b, b - a]),
        }
    }

    /// Whether `width` columns from this one on lie in a row of `length` elements.
    pub(super) fn are_in_row(&self, column: &Expr, width: i64, length: &Var) -> bool {
        let left = Expr::var(length) - width - column.clone();
        self.is_never_negative(column) && self.is_never_negative(&left)
    }

    fn is_never_negative(&self, sum: &Expr) -> bool {
        let of = |var: &Var, side: Side| {
            let counters = self.counters.iter().filter(|counter| counter.var == *var);
            counters.map(if side == Side::First { End::first_of } else { End::last_of }).collect()
        };
        let is_known = |sum: &Expr| ends::is_never_negative(sum, &of);
        is_known(sum) || self.sums.iter().any(|fact| is_known(&(sum - fact)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(name: &str, lo: i64, hi: i64) -> Expr {
        Expr::var(&Var::new(name, lo, hi))
    }

    #[test]
    fn a_position_is_a_row_and_a_column() {
        let n = Var::new("n", 1, 1 << 20);
        let (tid, t) = (v("tid", 0, 127), v("t", 0, 99));
        let place = Place::of(&((&tid / 32 + 5) * Expr::var(&n) + &t * 64 + &tid % 32), &n).expect("it has rows");
        assert_eq!([place.row.to_string(), place.column.to_string()], ["tid/32 + 5", "t*64 + tid%32"]);
        assert!(Place::of(&(&t * 64), &n).is_none());
    }

    #[test]
    fn columns_are_in_their_row_where_a_condition_or_a_loop_says_so() {
        let n = Var::multiple_of("n", 4, 1 << 20, 4);
        let (length, tid) = (Expr::var(&n), v("tid", 0, 127));
        let t = Var::new("t", 0, 1 << 14);
        let column = Expr::var(&t) * 64 + &tid % 16 * 4;
        let mut facts = Facts::default();
        assert!(!facts.are_in_row(&column, 4, &n), "nothing is known");
        facts.assume(&Cond::Less(column.clone(), length.clone()));
        assert!(facts.are_in_row(&column, 4, &n), "both are multiples of 4");
        assert!(!facts.are_in_row(&column, 5, &n));
        assert!(!facts.are_in_row(&(column.clone() - 4), 4, &n), "it may begin before the row");
        facts.rewind(0);
        assert!(!facts.are_in_row(&column, 4, &n));
        let counter = Counter { var: t.clone(), begin: Expr::constant(0), end: &length / 64, step: 1 };
        let whole = Var::multiple_of("n", 64, 1 << 20, 64);
        let counted = Counter { end: Expr::var(&whole) / 64, ..counter };
        assert!(Facts::in_loops([counted].into_iter()).are_in_row(&column, 4, &whole), "the loop ends before");
    }
}
