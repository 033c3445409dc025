//! Gives asynchronous copies their statements.

use std::collections::BTreeMap;

use tilewright_diag::Diagnostic;
use tilewright_ir::Handle;
use tilewright_ir::plan::{OpPlan, PlanFacts, Reason, VariantResult};
use tilewright_ir::thread::{BoxWay, Call, Inst, Memory, MemorySpace, Program, Stmt};
use tilewright_ir::tile::BoxMove;

use super::groups::Used;
use crate::boxes::{copies, facts, no_whole_warp};
use crate::builder::Builder;
use crate::measure::measure;
use crate::pipeline::{CP_ASYNC, TMA, Team, asynchronous, unmet};
use crate::sync::{Flight, FlightWay, OpBlock};

/// Asynchronous copies while they get their statements.
pub(super) struct Start<'a> {
    builder: &'a mut Builder,
    plans: &'a mut [OpPlan],
    found: &'a mut Vec<Diagnostic>,
    /// Whether there are any.
    pub(super) started: bool,
    /// How the copy engine executes those that it does, by their plans.
    pub(super) boxes: BTreeMap<usize, BoxMove>,
}

/// The statements of a copy, and its plan.
type Made = (Vec<Stmt>, PlanFacts);

impl<'a> Start<'a> {
    pub(super) fn new(builder: &'a mut Builder, plans: &'a mut [OpPlan], found: &'a mut Vec<Diagnostic>) -> Start<'a> {
        Start { builder, plans, found, started: false, boxes: BTreeMap::new() }
    }

    /// Gives an op its statements, if it is an asynchronous copy.
    pub(super) fn op(&mut self, op: &mut OpBlock) {
        let Some(flight) = op.flight.take() else { return };
        let moved = match &flight.way {
            FlightWay::Engine(boxes) => Some(&**boxes),
            FlightWay::Threads => None,
        };
        let (variant, made) = match moved {
            Some(Ok(moved)) => (TMA, self.by_engine(op, moved)),
            Some(Err(reason)) => (TMA, Err(reason.clone())),
            None => (CP_ASYNC, self.by_threads(op)),
        };
        let plan = &mut self.plans[op.op];
        if let Some(asked) = flight.asked.filter(|asked| *asked != variant) {
            let reason = if asked == TMA { not_to_a_tensor() } else { not_to_shared_memory() };
            plan.considered.push(VariantResult { variant: asked, answer: Err(vec![reason]) });
        }
        match made {
            Ok((body, facts)) => {
                plan.considered.push(VariantResult { variant, answer: Ok(facts) });
                plan.chosen = variant;
                self.boxes.extend(moved.and_then(|moved| Some((op.op, moved.clone().ok()?))));
                *op = op.with_body(body).in_flight(Flight::clone(&flight));
                self.started = true;
            }
            Err(reason) => plan.considered.push(VariantResult { variant, answer: Err(vec![reason]) }),
        }
        let asked = flight.asked.filter(|asked| plan.chosen != *asked);
        self.found.extend(asked.map(|asked| unmet(plan, asked)));
    }

    /// A copy with asynchronous copies in place of loads and stores, or why that is not possible.
    fn by_threads(&self, op: &OpBlock) -> Result<Made, Reason> {
        let program = &self.builder.program;
        let Used { writes, .. } = Used::of(program, &op.body);
        if !writes.iter().any(|memory| program.memories[*memory].is_shared()) {
            return Err(not_to_shared_memory());
        }
        let mut body = asynchronous(program, &op.body)?;
        let summary = self.plans[op.op].facts().map(|facts| facts.summary.clone()).unwrap_or_default();
        let facts = PlanFacts { summary, ..measure(program, &body, 0, String::new(), i64::MAX) };
        body.push(Stmt::from(Call::plain(Inst::CopyAsyncCommit)));
        Ok((body, facts))
    }

    /// A copy to a tensor by the copy engine, or why that is not possible.
    fn by_engine(&mut self, op: &OpBlock, moved: &BoxMove) -> Result<Made, Reason> {
        let shared = self.builder.memory(moved.shared);
        let program = &self.builder.program;
        let owner = program.owner(shared);
        refused(program, self.builder.memory(moved.tensor), owner).map_or(Ok(()), Err)?;
        self.make_aligned(owner, moved.boxes.alignment())?;
        let map = self.builder.tensor_map(moved);
        let program = &self.builder.program;
        let mut body = copies(program, moved, map, (shared, &moved.place), &BoxWay::ToTensor { adds: moved.adds });
        body.push(Stmt::from(Call::plain(Inst::BulkCommit)));
        let team = Team::of(program, op.role);
        Ok((team.by_first_of(&team, vec![Stmt::Elect { body }]), facts(moved)))
    }

    /// Lets a memory begin at multiples of so many bytes, if there is room for what that takes.
    fn make_aligned(&mut self, owner: Handle<Memory>, alignment: i64) -> Result<(), Reason> {
        let program = &mut self.builder.program;
        let memory = &program.memories[owner];
        let unit = alignment / memory.dtype.bytes();
        let aligned = Memory { elements: (memory.elements + unit - 1) / unit * unit, ..memory.clone() };
        let bytes = program.shared_bytes() - memory.shared_bytes() + aligned.shared_bytes();
        let most = program.target.shared_bytes();
        if bytes > most {
            let text = format!("with `{}` at a multiple of {alignment} B, shared memory takes {bytes} B", memory.name);
            return Err(Reason::new(text, format!("the {most} B that a CTA of {} has", program.target)));
        }
        program.memories[owner] = aligned;
        self.builder.align(owner, alignment);
        Ok(())
    }
}

/// Why the copy engine does not copy from a shared memory to a tensor, if it does not.
fn refused(program: &Program, tensor: Handle<Memory>, owner: Handle<Memory>) -> Option<Reason> {
    let [tensor, shared] = [tensor, owner].map(|handle| &program.memories[handle]);
    if let MemorySpace::Global { may_alias: true, .. } = tensor.space {
        let text = format!("`{}` may share memory with another tensor", tensor.name);
        return Some(Reason::new(text, "tensors of their own"));
    }
    if shared.stages > 1 {
        let text = format!("`{}` has a copy for each stage of a pipelined loop", shared.name);
        return Some(Reason::new(text, "buffers that no loop fills ahead"));
    }
    no_whole_warp(program.threads)
}

/// Why the copy engine does not execute what does not go from shared memory to a tensor.
pub(crate) fn not_to_a_tensor() -> Reason {
    let accepted = "from shared memory to a tensor, or the variant of a pipelined loop that fills shared memory";
    Reason::new("the op does not go from shared memory to a tensor", accepted)
}

/// Why asynchronous copies do not execute what does not fill shared memory.
fn not_to_shared_memory() -> Reason {
    Reason::new("the copy does not fill shared memory", "copies from tensors to shared memory")
}
