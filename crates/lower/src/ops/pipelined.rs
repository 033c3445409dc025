//! Loops whose copies may run ahead.

use tilewright_ir::plan::{OpPlan, Reason};
use tilewright_ir::tile::{Loop, Unroll};

use super::kernel_lowering::{KernelLowering, Substitution};
use crate::pipeline::{Rotation, RunsAhead, SERIAL, rotated, serial};
use crate::sync::Block;

impl KernelLowering<'_> {
    /// The plan of a pipelined loop, which stands before those of its statements; `None` for other loops.
    pub(super) fn pipelined(&mut self, inner: &Loop) -> Option<RunsAhead> {
        let Unroll::Pipelined(stages) = inner.unroll else { return None };
        self.plans.push(OpPlan {
            title: inner.span.titled(&format!("pipelined {}", inner.counter)),
            span: inner.span,
            executions: self.executions_by(self.kernel.warps()),
            considered: Vec::new(),
            chosen: SERIAL,
            forced: false,
            floor: None,
            barriers: Vec::new(),
        });
        let plan = self.plans.len() - 1;
        Some(RunsAhead { plan, stages, copies: Vec::new(), against: Vec::new() })
    }

    /// The plan of a pipelined loop that is unrolled.
    pub(super) fn not_pipelined(&mut self, inner: &Loop) {
        if let Some(RunsAhead { plan, .. }) = self.pipelined(inner) {
            let text = format!("`{}` numbers registers, so the loop is unrolled", inner.counter.var.name());
            let accepted = "fragments whose part does not depend on the loop".to_string();
            self.plans[plan].considered = serial(vec![Reason { text, accepted }]);
        }
    }

    /// The body of a loop, and what may run ahead in it.
    pub(super) fn loop_body(
        &mut self,
        inner: &Loop,
        ahead: Option<RunsAhead>,
        unrolled: &Substitution,
    ) -> (Vec<Block>, Option<RunsAhead>) {
        let Some(mut ahead) = ahead else { return (self.body(&inner.body, unrolled), None) };
        let fills = self.kernel.fills(inner);
        ahead.against = fills.against;
        let (mut body, mut blocks) = (Vec::new(), Vec::new());
        for (position, stmt) in inner.body.iter().enumerate() {
            if fills.statements.contains(&position) {
                blocks.push(body.len());
            }
            body.extend(self.body(std::slice::from_ref(stmt), unrolled));
        }
        ahead.find(&self.builder.program, &body, &blocks);
        (body, Some(ahead))
    }

    /// The blocks with what may run ahead in front of what uses it.
    pub(super) fn rotated(&mut self, blocks: Vec<Block>) -> Vec<Block> {
        let KernelLowering { builder, plans, loops, .. } = self;
        rotated(blocks, &mut Rotation { builder, plans, loops })
    }
}
