//! Ops that are spread over the serial loop around them: a reduction whose result is used only after the loop keeps
//! partial results in registers, and combines them once.

use tilewright_diag::Diagnostic;
use tilewright_ir::Handle;
use tilewright_ir::plan::{OpPlan, VariantResult};
use tilewright_ir::thread::Stmt as ThreadStmt;
use tilewright_ir::tile::{Loop, Op};

use super::kernel_lowering::{AcrossOp, KernelLowering, Substitution, substituted};
use super::variants::variants;
use crate::conditions::merged;
use crate::measure::measure;
use crate::sync::{Block, OpBlock};
use crate::variant::{AcrossLoop, Choice, choose};

impl KernelLowering<'_> {
    /// The ops that are spread over a loop, and the blocks in front of it.
    pub(super) fn before_loop(&mut self, inner: &Loop, unrolled: &Substitution) -> (Vec<AcrossOp>, Vec<Block>) {
        let (mut ops, mut blocks) = (Vec::new(), Vec::new());
        for handle in self.kernel.spread_over(inner) {
            let op = self.with_variant(&substituted(&self.kernel.ops[handle], unrolled));
            // An error is reported where the op stands in the loop.
            let Ok(Some(mut across)) = self.across(handle, op) else { continue };
            let before = std::mem::take(&mut across.stages.before);
            blocks.push(Block::Op(self.stage(&across, "before the loop", "parts of no elements", before)));
            ops.push(across);
        }
        (ops, blocks)
    }

    /// What a spread op does in each iteration; `None` for other ops.
    pub(super) fn in_loop(&mut self, handle: Handle<Op>) -> Option<OpBlock> {
        let at = self.spread_ops.iter().position(|across| across.handle == handle)?;
        let mut across = self.spread_ops.remove(at);
        let within = std::mem::take(&mut across.stages.within);
        let block = self.stage(&across, "in the loop", "each thread combines its own elements", within);
        self.spread_ops.insert(at, across);
        Some(block)
    }

    /// The blocks behind a loop.
    pub(super) fn after_loop(&mut self, count: usize) -> Vec<Block> {
        let ops = self.spread_ops.split_off(self.spread_ops.len() - count);
        let last = |mut across: AcrossOp| {
            let after = std::mem::take(&mut across.stages.after);
            let summary = across.summary.clone();
            let block = self.stage(&across, "after the loop", &summary, after);
            let others = across.considered.into_iter().filter(|one| one.variant != across.chosen);
            self.plans[block.op].considered.extend(others);
            Block::Op(block)
        };
        ops.into_iter().map(last).collect()
    }

    fn across(&mut self, handle: Handle<Op>, op: Op) -> Result<Option<AcrossOp>, Diagnostic> {
        let mark = self.builder.mark();
        let Choice { considered, chosen, candidate, .. } = choose(&variants(&op), &mut self.builder, self.kernel, &op)?;
        let Some(stages) = candidate.build_across(&mut self.builder) else {
            self.builder.rewind(mark);
            return Ok(None);
        };
        let AcrossLoop { before, within, after } =
            stages.map_err(|why| why.diagnostic(&self.kernel.op_title(&op), op.span))?;
        let stages = AcrossLoop { before, within: merged(within), after: merged(after) };
        Ok(Some(AcrossOp { handle, op, considered, chosen, summary: candidate.summary(), stages }))
    }

    /// The block of one stage of an op; its plan is added.
    fn stage(&mut self, across: &AcrossOp, place: &str, summary: &str, body: Vec<ThreadStmt>) -> OpBlock {
        let AcrossOp { op, chosen, .. } = across;
        let title = format!("{}, {place}", self.title(op));
        let facts = measure(&self.builder.program, &body, 0, summary.to_string(), i64::MAX);
        let considered = vec![VariantResult { variant: chosen, answer: Ok(facts) }];
        let plan = OpPlan::new(title.clone(), op.span, self.executions(op), chosen);
        self.plans.push(OpPlan { considered, forced: op.variant.is_some(), ..plan });
        OpBlock::new(title, None, body, self.plans.len() - 1)
    }
}
