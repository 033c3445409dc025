//! Integers that a CTA loads before all else.

use tilewright_diag::Diagnostic;
use tilewright_ir::thread::{Note, Stmt};
use tilewright_ir::tile::{LoadedIndex, value_title};

use super::derived;
use super::kernel_lowering::KernelLowering;
use crate::elements::lower_value;

/// The variant of a plan: every thread loads what it needs.
const BY_EACH_THREAD: &str = "each_thread";

impl KernelLowering<'_> {
    /// The statements with which a CTA begins: each defines a loaded integer.
    pub(super) fn load_indices(&mut self) -> Vec<Stmt> {
        let kernel = self.kernels.whole();
        let mut made = Vec::new();
        for loaded in &kernel.loaded {
            match self.load_index(loaded) {
                Ok(stmt) => made.push(stmt),
                Err(finding) => self.found.push(finding),
            }
        }
        made
    }

    fn load_index(&mut self, loaded: &LoadedIndex) -> Result<Stmt, Diagnostic> {
        let LoadedIndex { var, of, most, span } = loaded;
        let kernel = self.kernels.whole();
        let title = span.titled(&format!("index {} = {}", var.name(), value_title(kernel, of)));
        let made = lower_value(kernel, &mut self.builder, &loaded.value());
        let (mut body, value) = made.map_err(|why| why.diagnostic(&title, *span))?;
        body.push(Stmt::LetValue { var: var.clone(), value });
        let summary = format!("by every thread, from 0 to {most}");
        let plan = derived::plan(&title, *span, BY_EACH_THREAD, summary);
        self.plans.push(plan);
        let note = Note { title, details: Vec::new(), span: *span, plan: self.plans.len() - 1 };
        let note = self.builder.program.notes.push(note);
        self.builder.program.loaded.push(var.clone());
        Ok(Stmt::Op { note, body })
    }
}
