//! Sizes that are known at launch only.

use std::cell::RefCell;
use std::rc::Rc;

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::{Expr, Var};
use tilewright_ir::tile;

/// The sizes of a kernel, in the order in which they were asked for.
pub(crate) type Sizes = Rc<RefCell<Vec<Known>>>;

/// The greatest value of a size for which nothing else was said.
const MOST: i64 = 1 << 20;

/// What is known of a size.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) told: tile::Size,
    /// What it may be at most, if that was said.
    most: Option<i64>,
}

impl Known {
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
/// the compiler, and checked at launch.
#[derive(Clone, Debug)]
pub struct Size {
    slot: usize,
    sizes: Sizes,
}

impl Size {
    pub(crate) fn new(sizes: &Sizes, name: &str, span: Span) -> Size {
        let slot = sizes.borrow().len();
        let told = tile::Size { var: Var::new(name, 1, MOST), span };
        sizes.borrow_mut().push(Known { told, most: None });
        Size { slot, sizes: sizes.clone() }
    }

    /// It is a multiple of `multiple`, which widens vector accesses and drops masks.
    pub fn multiple_of(self, multiple: i64) -> Size {
        let var = self.var();
        self.set(Var::multiple_of(var.name(), multiple, var.range().hi.max(multiple), multiple))
    }

    /// It is at most `most`, which keeps index arithmetic narrow; without, 2^20, or what divides it if that is more.
    pub fn max(self, most: i64) -> Size {
        let var = self.var();
        self.sizes.borrow_mut()[self.slot].most = Some(most);
        self.set(Var::multiple_of(var.name(), var.range().lo, most.max(var.range().lo), var.multiple()))
    }

    /// `self / divisor`, rounded up: how many tiles of `divisor` cover it.
    pub fn ceil_div(&self, divisor: i64) -> Expr {
        Expr::from(self).ceil_div(divisor)
    }

    fn set(self, var: Var) -> Size {
        self.sizes.borrow_mut()[self.slot].told.var = var;
        self
    }

    fn var(&self) -> Var {
        self.sizes.borrow()[self.slot].told.var.clone()
    }
}

impl From<&Size> for Expr {
    fn from(size: &Size) -> Expr {
        Expr::var(&size.var())
    }
}

impl From<Size> for Expr {
    fn from(size: Size) -> Expr {
        Expr::from(&size)
    }
}
