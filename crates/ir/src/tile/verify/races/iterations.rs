//! Unordered iterations, of a loop, of threads or of warps.

use tilewright_diag::Span;
use tilewright_expr::Var;

use crate::tile::element::ElementStmt;

/// The most accesses that are listed.
pub(in crate::tile::verify) const MOST_POINTS: i64 = 1 << 22;

/// Unordered iterations, and what each does.
pub(in crate::tile::verify) struct Iterations<'a> {
    /// The variables that tell iterations apart; their ranges begin at 0.
    pub(in crate::tile::verify) vars: Vec<Var>,
    /// The statements of each iteration.
    pub(in crate::tile::verify) body: &'a [ElementStmt],
    /// Whether the iterations are those of a loop, threads or warps.
    pub(in crate::tile::verify) who: Who,
}

/// What the iterations are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tile::verify) enum Who {
    /// Those of a parallel loop.
    Turns,
    /// The threads of the CTA, each of which has its own copy of every fragment.
    Threads,
    /// The warps of the CTA, each of which executes the op at this line, with its own registers.
    Warps(Span),
}
