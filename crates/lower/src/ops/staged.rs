//! Statements that take stages of rings, fill them and use them.

use tilewright_diag::Diagnostic;
use tilewright_ir::Handle;
use tilewright_ir::plan::{OpPlan, PlanFacts, Reason, VariantResult};
use tilewright_ir::tile::{EngineMove, EngineOffers, Hold, Op, OpKind, Parallel, Ring, Role};

use super::kernel_lowering::KernelLowering;
use crate::engine::facts;
use crate::measure::measure;
use crate::pipeline::{BULK, CP_ASYNC, TMA, asynchronous, unmet};
use crate::rings::{FilledBy, MBARRIERS};
use crate::sync::OpBlock;

impl KernelLowering<'_> {
    /// The block in which a role waits for a stage.
    pub(super) fn begin_hold(&mut self, handle: Handle<Hold>) -> OpBlock {
        let kernel = self.kernels.whole();
        let hold = &kernel.holds[handle];
        let title = self.title_in_role(hold.role, &hold.span.titled(&kernel.hold_title(hold)));
        let warps = hold.role.map_or(kernel.warps(), |role| kernel.roles[role].warps);
        self.plans.push(OpPlan::new(title.clone(), hold.span, self.executions_by(warps), MBARRIERS));
        self.rings.begin(kernel, &self.builder, (handle, self.plans.len() - 1), &title)
    }

    /// The block in which a role gives a stage back; `None` if it holds none, which no verified kernel does.
    pub(super) fn end_hold(&mut self, handle: Handle<Hold>) -> Option<OpBlock> {
        self.rings.end(self.kernels.whole(), handle)
    }

    /// The role that produces the current stage of a ring, and that ring, if an op writes to it.
    pub(super) fn stage_filled_by(&self, op: &Op) -> Option<(Handle<Role>, Handle<Ring>)> {
        let written = op.operands.iter().enumerate().filter(|(place, _)| op.effect(*place).writes());
        let ring = written.map(|(_, tile)| tile.buffer).find_map(|buffer| self.kernel.ring_of(buffer))?;
        Some((op.role?, ring))
    }

    /// Notes that threads store to a stage, if a parallel loop does.
    pub(super) fn note_stores_to_stages(&mut self, parallel: &Parallel) {
        let mut rings = Vec::new();
        for element in &parallel.body {
            element.for_each_access(&mut |access, writes| {
                rings.extend(self.kernel.ring_of(access.buffer).filter(|_| writes));
            });
        }
        for (ring, role) in rings.into_iter().filter_map(|ring| Some((ring, parallel.role?))) {
            self.rings.fill_by_threads((role, ring), FilledBy::Stores);
        }
    }

    /// What a role does in its statements happens to the stages that it holds.
    pub(super) fn in_stages(&mut self, role: Option<Handle<Role>>, mut block: OpBlock) -> OpBlock {
        self.rings.note(self.kernels.whole(), &self.builder, role, &block.body);
        self.rings.in_stages(self.kernels.whole(), &self.builder, role, &mut block.body);
        block
    }

    /// The block of an op that fills a part of a stage; `None` if the copy engine does, which starts where the stage is published.
    pub(super) fn fill_of_stage(&mut self, op: &Op) -> Result<Option<OpBlock>, Diagnostic> {
        let Some(of) = self.stage_filled_by(op) else { return self.op(op).map(Some) };
        let op = self.with_variant(op);
        let asked = [CP_ASYNC, BULK, TMA].into_iter().find(|name| op.variant.as_deref() == Some(name));
        let kind = if op.kind == OpKind::CopyAsync { OpKind::Copy } else { op.kind };
        if !op.kind.is_copy() || op.variant.is_some() && asked.is_none() {
            self.rings.fill_by_threads(of, FilledBy::Stores);
            return self.op(&Op { kind, ..op }).map(Some);
        }
        let op = Op { kind, variant: None, ..op };
        let offers = self.stage_offers(&op);
        let considered: Vec<VariantResult> = [(BULK, &offers.run), (TMA, &offers.boxes)]
            .map(|(variant, offer)| VariantResult {
                variant,
                answer: offer.as_ref().map(facts).map_err(|reason| vec![reason.clone()]),
            })
            .to_vec();
        let engine = match asked {
            None => offers.best().ok(),
            Some(BULK) => offers.run.ok(),
            Some(TMA) => offers.boxes.ok(),
            Some(_) => None,
        };
        if let Some(moved) = engine {
            self.filled_by_engine(&op, (of, asked.is_some()), moved, considered);
            return Ok(None);
        }
        // Asynchronous copies arrive without the fence that products need.
        let is_possible = !self.copies_wait(&op) && !self.kernel.is_read_by_products(of.1);
        let by_copies = if is_possible { self.copied_by_threads(&op) } else { None };
        let (block, by) = match by_copies {
            Some(block) => (block, FilledBy::Copies),
            None => (self.op(&op)?, FilledBy::Stores),
        };
        self.rings.fill_by_threads(of, by);
        let plan = &mut self.plans[block.op];
        plan.considered.extend(considered);
        match asked.filter(|asked| plan.chosen != *asked) {
            None => Ok(Some(block)),
            Some(asked) => {
                let reason = Reason::new(
                    "asynchronous copies cannot do it",
                    "vectors of 4, 8 or 16 bytes of tensors that the kernel only reads, for stages that `gemm_async` does not read",
                );
                if asked == CP_ASYNC {
                    plan.considered.push(VariantResult { variant: CP_ASYNC, answer: Err(vec![reason]) });
                }
                Err(unmet(plan, asked))
            }
        }
    }

    /// Whether what a copy reads may change while it is in flight.
    fn copies_wait(&self, op: &Op) -> bool {
        op.source().is_none_or(|src| self.kernel.written().contains(&self.kernel.storage(src.buffer)))
    }

    /// How the copy engine may fill a part of a stage.
    fn stage_offers(&self, op: &Op) -> EngineOffers {
        if !self.kernel.is_from_tensor(op) {
            return EngineOffers::refused(Reason::new("the source is not a tensor", "copies from tensors"));
        }
        if self.copies_wait(op) {
            let text = "the kernel writes the tensor, and a copy of it may be in flight then";
            return EngineOffers::refused(Reason::new(text, "tensors that are only read"));
        }
        self.kernel.engine_copy(op)
    }

    /// The copy engine brings a tile to the current stage.
    fn filled_by_engine(
        &mut self,
        op: &Op,
        (of, is_forced): ((Handle<Role>, Handle<Ring>), bool),
        moved: EngineMove,
        considered: Vec<VariantResult>,
    ) {
        let executions = self.executions_by(1);
        let plan = OpPlan::new(self.title(op), op.span, executions, moved.variant());
        self.plans.push(OpPlan { considered, forced: is_forced, ..plan });
        self.rings.fill_by_engine(self.kernels.whole(), of, moved);
    }

    /// A copy by asynchronous copies of the threads, if these can do it.
    fn copied_by_threads(&mut self, op: &Op) -> Option<OpBlock> {
        let block = self.vectorized_copy(op.clone())?;
        let body = asynchronous(&self.builder.program, &block.body).ok()?;
        let measured = measure(&self.builder.program, &body, 0, String::new(), i64::MAX);
        let plan = &mut self.plans[block.op];
        let summary = plan.facts().map(|facts| facts.summary.clone()).unwrap_or_default();
        plan.chosen = CP_ASYNC;
        plan.considered.push(VariantResult { variant: CP_ASYNC, answer: Ok(PlanFacts { summary, ..measured }) });
        Some(block.with_body(body))
    }
}
