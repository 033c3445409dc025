//! Sizes known only at launch.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::Var;
use tilewright_ir::tile;

use crate::expr::Expr;
use crate::known_size::KnownSize;
use crate::nodes::{self, BodyId, NodeId};

/// The greatest value of a size by default.
const DEFAULT_MAX: i64 = 1 << 20;

/// A size that is a parameter of the kernel: `k.size("m").multiple_of(4).max(1 << 20)`. The compiler assumes its bounds,
/// and a launch checks them. Copy it freely.
#[derive(Clone, Copy, Debug)]
pub struct Size(Option<NodeId>);

impl Size {
    pub(crate) fn new(name: &str, span: Span) -> Size {
        let parameter = tile::Size { var: Var::new(name, 1, DEFAULT_MAX), span };
        Size(nodes::add(KnownSize { parameter, most: None, used: None }, BodyId::KERNEL))
    }

    /// Declares that it is a multiple of `multiple`, which allows wider vector accesses and fewer masks.
    #[track_caller]
    pub fn multiple_of(self, multiple: i64) -> Size {
        let span = Span::here();
        self.known_as(|size| {
            let var = &size.parameter.var;
            if multiple < 1 {
                let message = format!("the size `{}` cannot be a multiple of {multiple}", var.name());
                let finding = Diagnostic::error("K0230", message).label(span, "called here");
                nodes::mistake(finding.help("a size is a multiple of 1 or of a greater number"));
                return;
            }
            size.parameter.var = Var::multiple_of(var.name(), multiple, var.range().hi.max(multiple), multiple);
        })
    }

    /// Declares that it is at most `most`, which keeps index arithmetic narrow; the default is 2^20, or its divisor if
    /// that is more. Call it before the size is used.
    #[track_caller]
    pub fn max(self, most: i64) -> Size {
        self.known_as(|size| {
            let var = &size.parameter.var;
            size.most = Some(most);
            size.parameter.var = Var::multiple_of(var.name(), var.range().lo, most.max(var.range().lo), var.multiple());
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
            if let Some(used) = known.used {
                let name = known.parameter.var.name();
                let finding = Diagnostic::error("K0217", format!("the bounds of `{name}` changed after it was used"))
                    .label(Span::here(), "changed here")
                    .label(used, "first used here");
                nodes::mistake(finding.help(format!(
                    "give all bounds where the size is made, as in k.size(\"{name}\").multiple_of(4).max(4096)"
                )));
                return self;
            }
            change(&mut known);
            nodes::set(number, known);
        }
        self
    }

    #[track_caller]
    pub(crate) fn var(self) -> Var {
        match self.0 {
            Some(number) => {
                let known: KnownSize = nodes::get(number);
                let var = known.parameter.var.clone();
                if known.used.is_none() {
                    nodes::set(number, KnownSize { used: Some(Span::here()), ..known });
                }
                var
            }
            None => nodes::unknown(),
        }
    }
}

impl From<Size> for Expr {
    #[track_caller]
    fn from(size: Size) -> Expr {
        Expr::from(&size.var())
    }
}

impl From<&Size> for Expr {
    #[track_caller]
    fn from(size: &Size) -> Expr {
        Expr::from(*size)
    }
}
