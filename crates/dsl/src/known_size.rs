//! What is known about a size while the kernel is being built.

use tilewright_diag::{Diagnostic, Span};
use tilewright_ir::tile;

/// What is known about a size.
#[derive(Clone, Debug)]
pub(crate) struct KnownSize {
    /// The size as it will be in the kernel, with the bounds given so far.
    pub(crate) parameter: tile::Size,
    /// Its greatest value, if that was set.
    pub(crate) most: Option<i64>,
    /// Where it was first used; after that its bounds are fixed.
    pub(crate) used: Option<Span>,
}

impl KnownSize {
    /// The mistake of a size that has no possible value, since its greatest is less than its divisor.
    pub(crate) fn mistake(&self) -> Option<Diagnostic> {
        let tile::Size { var, span } = &self.parameter;
        let (name, multiple, most) = (var.name(), var.multiple(), self.most?);
        let (message, help) = match multiple {
            1 => (format!("size `{name}` cannot be at most {most}"), "a size is at least 1: raise its max".to_string()),
            _ => (
                format!("the size `{name}` cannot be a multiple of {multiple} up to {most}"),
                format!("it is at least {multiple}: raise its max, or use a smaller multiple"),
            ),
        };
        let finding = Diagnostic::error("K0230", message).label(*span, "this size").help(help);
        (most < multiple).then_some(finding)
    }
}
