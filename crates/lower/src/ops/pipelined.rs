//! Loops whose copies may run ahead.

use tilewright_diag::Diagnostic;
use tilewright_ir::plan::{OpPlan, Reason};
use tilewright_ir::tile::{BULK, EngineMove, EngineOffers, Loop, Op, OpKind, Stmt, Unroll};

use super::kernel_lowering::{KernelLowering, Substitution, substituted, substituted_expr};
use crate::in_flight::not_between;
use crate::pipeline::{CP_ASYNC, Fill, Rotation, RunsAhead, SERIAL, TMA, VARIANTS, is_asynchronous, serial};
use crate::sync::{Block, Flight, FlightWay, OpBlock};

/// The variant of `copy` whose statements asynchronous copies can take over most often.
const VECTORIZED: &str = "vectorized";

impl KernelLowering<'_> {
    /// The plan of a pipelined loop, which stands before those of its statements; `None` for other loops.
    pub(super) fn pipelined(&mut self, inner: &Loop) -> Option<RunsAhead> {
        let Unroll::Pipelined(stages) = inner.unroll else { return None };
        let title = inner.span.titled(&format!("pipelined {}", inner.counter));
        let executions = self.executions_by(self.kernel.warps());
        self.plans.push(OpPlan::new(title, inner.span, executions, SERIAL));
        let plan = self.plans.len() - 1;
        let asked = self.options.variant.as_deref().filter(|name| VARIANTS.contains(name)).map(str::to_string);
        Some(RunsAhead::new(plan, stages, inner.variant.clone().or(asked)))
    }

    /// The plan of a pipelined loop that is unrolled.
    pub(super) fn not_pipelined(&mut self, inner: &Loop) {
        if let Some(RunsAhead { plan, .. }) = self.pipelined(inner) {
            let text = format!("`{}` numbers registers, so the loop is unrolled", inner.counter.var.name());
            let reason = Reason::new(text, "fragments whose part does not depend on the loop");
            self.plans[plan].considered = serial(vec![reason]);
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
            let is_fill = fills.statements.contains(&position);
            let copy = if is_fill { self.asynchronous_copy(stmt, unrolled) } else { None };
            let by_engine = is_fill.then(|| self.engine_fill(stmt, unrolled));
            match copy {
                Some(block) => {
                    blocks.extend(by_engine.map(|by_engine| Fill { block: body.len(), by_engine }));
                    self.keep(Some(Ok(block)), &mut body);
                }
                None => {
                    let first = body.len();
                    body.extend(self.body(std::slice::from_ref(stmt), unrolled));
                    match body.get(first) {
                        Some(Block::Op(op)) if is_fill && self.plans[op.op].forced => {
                            let text = format!("`{}` has the variant that is asked for", op.title);
                            ahead.against.push(Reason::new(text, "copies without `.variant`"));
                            ahead.leave_out(&self.builder.program, op);
                        }
                        Some(_) if is_fill => {
                            blocks.extend(by_engine.map(|by_engine| Fill { block: first, by_engine }))
                        }
                        Some(_) | None => {}
                    }
                }
            }
        }
        ahead.find(&self.builder.program, &body, &blocks);
        ahead.find_producer(&body, self.kernel.has_no_producer(self.builder.program.target));
        (body, Some(ahead))
    }

    /// How the copy engine executes a statement in a copy of an unrolled loop.
    fn engine_fill(&self, stmt: &Stmt, unrolled: &Substitution) -> Result<EngineMove, Reason> {
        Ok(self.kernel.engine_fill(stmt)?.map_exprs(&|expr| substituted_expr(expr, unrolled)))
    }

    /// A copy in vectors, if no variant is asked for and asynchronous copies can take it over. The cheapest variant for
    /// loads and stores may be another one.
    fn asynchronous_copy(&mut self, stmt: &Stmt, unrolled: &Substitution) -> Option<OpBlock> {
        let Stmt::Op(handle) = stmt else { return None };
        self.vectorized_copy(self.with_variant(&substituted(&self.kernel.ops[*handle], unrolled)))
    }

    /// An atomic op on tiles, which may stay in flight until something needs it if the copy engine does it, and no other variant
    /// is asked for.
    pub(super) fn atomic(&mut self, op: &Op) -> Result<OpBlock, Diagnostic> {
        let op = self.with_variant(op);
        let asked = [BULK, TMA].into_iter().find(|name| op.variant.as_deref() == Some(name));
        let is_store = self.kernel.is_to_tensor(&op);
        if asked.is_none() && (op.variant.is_some() || !is_store) {
            return self.op(&op);
        }
        let offers = if is_store { self.kernel.engine_copy(&op) } else { EngineOffers::refused(not_between()) };
        let way = FlightWay::Store(Box::new(offers));
        let block = self.op(&Op { variant: None, ..op })?;
        self.plans[block.op].forced = asked.is_some();
        Ok(block.in_flight(Flight { asked, way }))
    }

    /// A copy that may stay in flight until something needs it, if no other variant is asked for.
    pub(super) fn copy_async(&mut self, op: &Op) -> Result<OpBlock, Diagnostic> {
        let op = self.with_variant(op);
        let asked = [CP_ASYNC, BULK, TMA].into_iter().find(|name| op.variant.as_deref() == Some(name));
        if op.variant.is_some() && asked.is_none() {
            return self.op(&op);
        }
        let op = Op { variant: None, ..op };
        let block = match self.vectorized_copy(op.clone()) {
            Some(block) => block,
            None => self.op(&op)?,
        };
        self.plans[block.op].forced = asked.is_some();
        Ok(block.in_flight(Flight { asked, way: self.flight_way(&op) }))
    }

    /// What may execute a copy that stays in flight.
    fn flight_way(&self, op: &Op) -> FlightWay {
        let offers = || Box::new(self.kernel.engine_copy(op));
        if self.kernel.is_to_tensor(op) {
            FlightWay::Store(offers())
        } else if self.kernel.is_from_tensor(op) {
            FlightWay::Load(offers())
        } else {
            FlightWay::Other
        }
    }

    /// As [`Self::asynchronous_copy`], for an op.
    pub(super) fn vectorized_copy(&mut self, op: Op) -> Option<OpBlock> {
        // Asynchronous copies of threads are from tensors only.
        if !op.kind.is_copy() || op.variant.is_some() || !self.kernel.is_from_tensor(&op) {
            return None;
        }
        let is_async = op.kind == OpKind::CopyAsync;
        let (mark, plans) = (self.builder.mark(), self.plans.len());
        let flight = is_async.then(|| Flight { asked: None, way: self.flight_way(&op) });
        let in_vectors = Op { variant: Some(VECTORIZED.to_string()), ..op };
        let made: Result<OpBlock, Diagnostic> = self.op(&in_vectors);
        let made = made.ok().filter(|block| is_asynchronous(&self.builder.program, &block.body));
        match &made {
            Some(block) => self.plans[block.op].forced = false,
            None => {
                self.plans.truncate(plans);
                self.builder.rewind(mark);
            }
        }
        made.map(|block| match flight {
            Some(flight) => block.in_flight(flight),
            None => block,
        })
    }

    /// The blocks with what may run ahead in front of what uses it.
    pub(super) fn rotated(&mut self, blocks: Vec<Block>) -> Vec<Block> {
        let KernelLowering { builder, plans, loops, found, .. } = self;
        Rotation::rotated(builder, plans, loops, found, blocks)
    }
}
