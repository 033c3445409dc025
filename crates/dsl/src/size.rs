//! Sizes that are known at launch only.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::Var;
use tilewright_ir::tile;

use crate::expr::Expr;
use crate::nodes::{self, Number};

/// The greatest value of a size for which nothing else was said.
const MOST: i64 = 1 << 20;

/// What is known of a size.
#[derive(Clone, Debug)]
pub(crate) struct KnownSize {
    pub(crate) told: tile::Size,
    /// What it may be at most, if that was said.
    pub(crate) most: Option<i64>,
}

impl KnownSize {
    /// A size that may be nothing: less than what divides it.
    pub(crate) fn mistake(&self) -> Option<Diagnostic> {
        let tile::Size { var, span } = &self.told;
        let (name, multiple, most) = (var.name(), var.multiple(), self.most?);
        let message = format!("the size `{name}` is a multiple of {multiple} up to {most}");
        let finding = Diagnostic::error("K0230", message)
            .label(*span, "this size")
            .help(format!("it is at least {multiple}: raise its max, or say a smaller multiple"));
        (most < multiple).then_some(finding)
    }
}

/// A size that is a parameter of the kernel: `k.size("m").multiple_of(4).max(1 << 20)`. What is said of it is assumed by
/// the compiler, and checked at launch. Copy it freely.
#[derive(Clone, Copy, Debug)]
pub struct Size(Option<Number>);

impl Size {
    pub(crate) fn new(name: &str, span: Span) -> Size {
        Size(nodes::add(KnownSize { told: tile::Size { var: Var::new(name, 1, MOST), span }, most: None }))
    }

    /// It is a multiple of `multiple`, which widens vector accesses and drops masks.
    #[track_caller]
    pub fn multiple_of(self, multiple: i64) -> Size {
        self.known_as(|size| {
            let var = &size.told.var;
            size.told.var = Var::multiple_of(var.name(), multiple, var.range().hi.max(multiple), multiple);
        })
    }

    /// It is at most `most`, which keeps index arithmetic narrow; without, 2^20, or what divides it if that is more.
    #[track_caller]
    pub fn max(self, most: i64) -> Size {
        self.known_as(|size| {
            let var = &size.told.var;
            size.most = Some(most);
            size.told.var = Var::multiple_of(var.name(), var.range().lo, most.max(var.range().lo), var.multiple());
        })
    }

    /// `self / divisor`, rounded up: how many tiles of `divisor` cover it.
    #[track_caller]
    pub fn ceil_div(self, divisor: i64) -> Expr {
        Expr::from(self).ceil_div(divisor)
    }

    #[track_caller]
    fn known_as(self, change: impl FnOnce(&mut KnownSize)) -> Size {
        if let Some(number) = self.0 {
            let mut known: KnownSize = nodes::get(number);
            change(&mut known);
            nodes::set(number, known);
        }
        self
    }

    #[track_caller]
    pub(crate) fn var(self) -> Var {
        match self.0 {
            Some(number) => nodes::get::<KnownSize>(number).told.var,
            None => Var::new("size", 1, 1),
        }
    }
}
