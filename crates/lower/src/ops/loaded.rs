//! Integers that a CTA loads before all else.

use tilewright_diag::Diagnostic;
use tilewright_ir::thread::Stmt;
use tilewright_ir::tile::{LoadedIndex, value_title};

use super::kernel_lowering::KernelLowering;
use crate::elements::lower_value;
use crate::measure::measure;
use crate::sync::OpBlock;

impl KernelLowering<'_> {
    /// The statements with which a CTA begins: each block defines a loaded integer.
    pub(super) fn load_indices(&mut self) -> Vec<OpBlock> {
        let kernel = self.kernels.whole();
        let mut made = Vec::new();
        for loaded in &kernel.loaded {
            match self.load_index(loaded) {
                Ok(block) => made.push(block),
                Err(finding) => self.found.push(finding),
            }
        }
        made
    }

    fn load_index(&mut self, loaded: &LoadedIndex) -> Result<OpBlock, Diagnostic> {
        let LoadedIndex { var, of, most, span } = loaded;
        let kernel = self.kernels.whole();
        let title = format!("index {} = {}", var.name(), value_title(kernel, of));
        let made = lower_value(kernel, &mut self.builder, &loaded.value(kernel));
        let (mut body, value) = made.map_err(|why| why.diagnostic(&title, *span))?;
        body.push(Stmt::LetValue { var: var.clone(), value });
        self.builder.program.loaded.push(var.clone());
        let is_end = kernel.buffers.iter().any(|(_, buffer)| kernel.ends_at(buffer, var));
        self.builder.program.ends.extend(is_end.then(|| var.clone()));
        let summary = format!("by every thread, from 0 to {most}");
        let facts = measure(&self.builder.program, &body, 0, summary, i64::MAX);
        Ok(self.planned(&title, *span, facts, body))
    }
}
