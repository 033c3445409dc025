//! Configurations that a kernel is not built for.

use tilewright_diag::{Diagnostic, Span};

use crate::builder::KernelBuilder;
use crate::nodes;

impl KernelBuilder<'_> {
    /// Refuses what the kernel is built for: compiling it is then an error at the caller's line, which says what was `found`, and
    /// what would be `legal`. The body may return, or go on and find more.
    #[track_caller]
    pub fn refuse(&mut self, found: impl Into<String>, legal: impl Into<String>) {
        let finding = Diagnostic::error("K0288", found).label(Span::here(), "refused here");
        nodes::mistake(finding.help(legal));
    }
}
