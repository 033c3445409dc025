//! The hardware indices of a thread; the only place that defines their names.

use tilewright_expr::{Expr, Var};
use tilewright_layout::access::LANES;
use tilewright_layout::axis::Scope;

/// A dimension of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dim {
    /// `x`, which varies fastest.
    X,
    /// `y`.
    Y,
    /// `z`, which varies slowest.
    Z,
}

impl Dim {
    /// Every dimension, the fastest-varying first.
    pub const ALL: [Dim; 3] = [Dim::X, Dim::Y, Dim::Z];

    /// Its position in [`Dim::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A hardware index of a thread. In expressions it is a variable with its name, which nothing else in a kernel or
/// program may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HwIndex {
    /// The thread in its CTA.
    Tid,
    /// The lane in its warp.
    Lane,
    /// The warp in its CTA.
    Warp,
    /// The CTA in the grid.
    Block(Dim),
}

impl HwIndex {
    /// Every index, in the order in which messages list them.
    pub const ALL: [HwIndex; 6] = [
        HwIndex::Lane,
        HwIndex::Warp,
        HwIndex::Tid,
        HwIndex::Block(Dim::X),
        HwIndex::Block(Dim::Y),
        HwIndex::Block(Dim::Z),
    ];

    /// Its name in messages and in the printed IR.
    pub fn name(self) -> &'static str {
        match self {
            HwIndex::Tid => "tid",
            HwIndex::Lane => "lane",
            HwIndex::Warp => "warp",
            HwIndex::Block(Dim::X) => "bx",
            HwIndex::Block(Dim::Y) => "by",
            HwIndex::Block(Dim::Z) => "bz",
        }
    }

    /// The index with this name.
    pub fn named(name: &str) -> Option<HwIndex> {
        HwIndex::ALL.into_iter().find(|index| index.name() == name)
    }

    /// Its value for a thread of a CTA; `None` for the indices of the CTA itself.
    pub fn of_thread(self, thread: i64) -> Option<i64> {
        let lanes = LANES as i64;
        match self {
            HwIndex::Tid => Some(thread),
            HwIndex::Lane => Some(thread % lanes),
            HwIndex::Warp => Some(thread / lanes),
            HwIndex::Block(_) => None,
        }
    }

    /// The index that a variable stands for; `None` for sizes, loop variables and named values.
    pub fn of(var: &Var) -> Option<HwIndex> {
        HwIndex::named(var.name())
    }

    /// The variable that stands for it in a launch with this grid and `threads` threads per CTA. Where the grid depends
    /// on sizes known only at launch, the variable has the range of the largest grid.
    pub fn var(self, threads: i64, grid: &[Expr; 3]) -> Var {
        let lanes = LANES as i64;
        let values = match self {
            HwIndex::Tid => threads,
            HwIndex::Lane => threads.min(lanes),
            HwIndex::Warp => (threads + lanes - 1) / lanes,
            HwIndex::Block(dim) => grid[dim.index()].range().hi,
        };
        Var::new(self.name(), 0, (values - 1).max(0))
    }

    /// The widest scope whose threads all have the same value.
    pub fn uniform_in(self) -> Scope {
        match self {
            HwIndex::Tid | HwIndex::Lane => Scope::Thread,
            HwIndex::Warp => Scope::Warp,
            HwIndex::Block(_) => Scope::Cta,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_known_by_its_name() {
        for index in HwIndex::ALL {
            assert_eq!(HwIndex::named(index.name()), Some(index));
        }
        assert_eq!(HwIndex::named("b"), None);
    }

    #[test]
    fn variables_have_the_values_of_a_launch() {
        let vars = HwIndex::ALL.map(|index| index.var(40, &[1, 2, 3].map(Expr::constant)));
        assert_eq!(vars.map(|var| var.range().hi), [31, 1, 39, 0, 1, 2]);
    }
}
