//! What loops count through: `0..4`, `..n.ceil_div(64)`, `(row, n)`, `(..n).step(64)`.

use std::ops::{Range, RangeTo};

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr as expr;
use tilewright_ir::Counter;

use crate::expr::Expr;
use crate::nodes;
use crate::size::Size;

/// The bounds of a loop.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    begin: Expr,
    end: Expr,
    step: i64,
}

/// What a loop counts through: a range of numbers, `0..4`; up to an expression, `..n.ceil_div(64)`; from one expression to
/// another, `(first, n)` or `first..last`. The end is not included. With [`step`](LoopRange::step), some of these.
pub trait LoopRange: Sized {
    /// Beginning, end and step.
    #[track_caller]
    fn bounds(self) -> Bounds;

    /// Every `step`-th of them, from the first on: `(..n).step(64)` is 0, 64, 128 and so on.
    #[track_caller]
    fn step(self, step: i64) -> Bounds {
        let bounds = self.bounds();
        Bounds { step: bounds.step.saturating_mul(step), ..bounds }
    }
}

impl LoopRange for Bounds {
    fn bounds(self) -> Bounds {
        self
    }
}

impl<A: Into<Expr>, B: Into<Expr>> LoopRange for (A, B) {
    #[track_caller]
    fn bounds(self) -> Bounds {
        Bounds { begin: self.0.into(), end: self.1.into(), step: 1 }
    }
}

macro_rules! ranges {
    ($($bound:ty),*) => {$(
        impl LoopRange for Range<$bound> {
            #[track_caller]
            fn bounds(self) -> Bounds {
                (self.start, self.end).bounds()
            }
        }

        impl LoopRange for RangeTo<$bound> {
            #[track_caller]
            fn bounds(self) -> Bounds {
                (0, self.end).bounds()
            }
        }
    )*};
}

ranges!(i64, Expr, Size);

impl Bounds {
    /// The counter of the loop `name`, and what is added to its variable; `None` for a loop without iterations.
    #[track_caller]
    pub(crate) fn counter(self, name: &str, span: Span) -> Option<(Counter, Expr)> {
        if self.step < 1 {
            let message = format!("the loop `{name}` cannot have the step {}", self.step);
            let finding = Diagnostic::error("K0228", message).label(span, "this loop");
            nodes::mistake(
                finding.help("a step is 1 or more; to count down, subtract the variable from the last index"),
            );
            return None;
        }
        let (begin, end) = (self.begin.resolved(), self.end.resolved());
        reversed(name, &begin, &end, span).into_iter().for_each(nodes::mistake);
        let is_empty = expr::linear::upper_bound(&(&end - &begin)) <= 0;
        let (counter, first) = Counter::new(name, begin, end, self.step);
        (!is_empty).then_some((counter, Expr::from(first)))
    }
}

/// A range of numbers whose end is before its start is a mistake, not a loop without iterations.
fn reversed(name: &str, begin: &expr::Expr, end: &expr::Expr, span: Span) -> Option<Diagnostic> {
    let (start, end) = (begin.as_const()?, end.as_const()?);
    let message = format!("the range {start}..{end} of the loop `{name}` is empty: it ends before it begins");
    let finding = Diagnostic::error("K0222", message).label(span, "this loop");
    let help = format!("write the smaller number first: {end}..{start}; 3..3 stands for a loop that does nothing");
    (end < start).then(|| finding.help(help))
}
