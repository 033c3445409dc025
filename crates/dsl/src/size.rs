//! Sizes that are known at launch only.

use tilewright_diag::Span;
use tilewright_expr::Var;
use tilewright_ir::tile;

use crate::expr::Expr;
use crate::nodes::{self, Number};

/// The greatest value of a size for which nothing else was said.
const MOST: i64 = 1 << 20;

/// A size that is a parameter of the kernel: `k.size("m").multiple_of(4).max(1 << 20)`. What is said of it is assumed by
/// the compiler, and checked at launch. Copy it freely.
#[derive(Clone, Copy, Debug)]
pub struct Size(Option<Number>);

impl Size {
    pub(crate) fn new(name: &str, span: Span) -> Size {
        Size(nodes::add(tile::Size { var: Var::new(name, 1, MOST), span }))
    }

    /// It is a multiple of `multiple`, which widens vector accesses and drops masks.
    #[track_caller]
    pub fn multiple_of(self, multiple: i64) -> Size {
        self.known_as(|var| Var::multiple_of(var.name(), multiple, var.range().hi.max(multiple), multiple))
    }

    /// It is at most `most`, which keeps index arithmetic narrow; without, 2^20, or what divides it if that is more.
    #[track_caller]
    pub fn max(self, most: i64) -> Size {
        self.known_as(|var| Var::multiple_of(var.name(), var.range().lo, most.max(var.range().lo), var.multiple()))
    }

    /// `self / divisor`, rounded up: how many tiles of `divisor` cover it.
    #[track_caller]
    pub fn ceil_div(self, divisor: i64) -> Expr {
        Expr::from(self).ceil_div(divisor)
    }

    #[track_caller]
    fn known_as(self, with: impl FnOnce(&Var) -> Var) -> Size {
        if let Some(number) = self.0 {
            let known: tile::Size = nodes::get(number);
            nodes::set(number, tile::Size { var: with(&known.var), span: known.span });
        }
        self
    }

    #[track_caller]
    pub(crate) fn var(self) -> Var {
        self.0.map_or_else(|| Var::new("size", 1, 1), |number| nodes::get::<tile::Size>(number).var)
    }
}
