//! Gives asynchronous copies their statements.

use std::collections::BTreeMap;

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::plan::{OpPlan, PlanFacts, Reason, VariantResult};
use tilewright_ir::thread::{BoxWay, Call, Inst, Memory, MemorySpace, Program, RegArray, Stmt, TensorMapRecipe, Value};
use tilewright_ir::tile::{BoxMove, ElementOp, Role};
use tilewright_ir::{Handle, SHARED_ALIGNMENT, Scalar};
use tilewright_layout::DType;

use super::groups::Used;
use crate::boxes::{OF_AN_ISSUE, bytes, copies, facts, no_whole_warp};
use crate::builder::{Builder, regs};
use crate::measure::measure;
use crate::pipeline::{CP_ASYNC, TMA, Team, asynchronous, barrier_call, unmet};
use crate::sync::{Block, Flight, FlightWay, OpBlock, for_each_op};

/// Asynchronous copies while they get their statements.
pub(super) struct Start<'a> {
    builder: &'a mut Builder,
    plans: &'a mut [OpPlan],
    found: &'a mut Vec<Diagnostic>,
    /// Whether there are any.
    pub(super) started: bool,
    /// How the copy engine executes those to tensors that it does, by their plans.
    pub(super) stores: BTreeMap<usize, BoxMove>,
    /// Those to shared memory that the copy engine executes.
    pub(super) loads: Vec<Load>,
    /// What copies to each shared memory for which no variant is asked for would cost.
    costs: BTreeMap<Handle<Memory>, Costs>,
}

/// The instructions of all copies to a memory, by the copy engine and by threads; `None` if it cannot, or they cannot, do all.
struct Costs {
    engine: Option<i64>,
    threads: Option<i64>,
}

impl Costs {
    /// Whether the copy engine is cheaper, or what threads cannot do. All copies to a memory are of one kind, if they can be.
    fn is_for_engine(&self) -> bool {
        match (self.engine, self.threads) {
            (Some(engine), Some(threads)) => engine < threads,
            (Some(_), None) => true,
            (None, threads) => threads.is_none(),
        }
    }
}

/// Copies to a shared memory that the copy engine executes: all that the same threads start. None starts before the others have
/// arrived.
pub(super) struct Load {
    /// The plans of the copies.
    pub(super) plans: Vec<usize>,
    fills: Handle<Memory>,
    role: Option<Handle<Role>>,
    /// The barrier at which their bytes count.
    pub(super) full: Handle<Memory>,
    /// The parity of the latest phase, if there are several.
    pub(super) phase: Option<Handle<RegArray>>,
}

/// The statements of a copy, and its plan.
type Made = (Vec<Stmt>, PlanFacts);

impl<'a> Start<'a> {
    pub(super) fn new(builder: &'a mut Builder, plans: &'a mut [OpPlan], found: &'a mut Vec<Diagnostic>) -> Start<'a> {
        let (stores, loads, costs) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        Start { builder, plans, found, started: false, stores, loads, costs }
    }

    /// Gives the asynchronous copies among blocks their statements.
    pub(super) fn all(&mut self, blocks: &mut [Block]) {
        for_each_op(blocks, &mut |op| self.add_cost(op));
        self.blocks(blocks, false);
        self.note_phases(blocks);
    }

    /// Adds what a copy to shared memory would cost.
    fn add_cost(&mut self, op: &OpBlock) {
        let Some(flight) = op.flight.as_ref().filter(|flight| flight.asked.is_none()) else { return };
        let FlightWay::Load(boxes) = &flight.way else { return };
        let Some(fills) = self.filled(op) else { return };
        let engine = boxes.as_ref().as_ref().ok().filter(|moved| self.by_engine(moved, SHARED_ALIGNMENT).is_ok());
        let engine = engine.map(|moved| facts(moved).instructions + OF_AN_ISSUE);
        let threads = self.by_threads(op).ok().map(|(_, facts)| facts.instructions);
        let known = self.costs.entry(fills).or_insert(Costs { engine: Some(0), threads: Some(0) });
        let add = |sum: &mut Option<i64>, more: Option<i64>| *sum = sum.zip(more).map(|(sum, more)| sum + more);
        add(&mut known.engine, engine);
        add(&mut known.threads, threads);
    }

    /// The shared memory that an op fills.
    fn filled(&self, op: &OpBlock) -> Option<Handle<Memory>> {
        let program = &self.builder.program;
        Used::of(program, &op.body).writes.into_iter().find(|memory| program.memories[*memory].is_shared())
    }

    /// The same for blocks that are in a loop or not.
    fn blocks(&mut self, blocks: &mut [Block], is_in_loop: bool) {
        for block in blocks {
            match block {
                Block::Op(op) => self.op(op, is_in_loop),
                Block::Loop(inner) => self.blocks(&mut inner.body, true),
                Block::If(branches) => {
                    for branch in [&mut branches.then, &mut branches.otherwise] {
                        self.blocks(&mut branch.body, is_in_loop);
                    }
                }
            }
        }
    }

    /// Gives an op its statements, if it is an asynchronous copy.
    fn op(&mut self, op: &mut OpBlock, is_in_loop: bool) {
        let Some(flight) = op.flight.take() else { return };
        let made = match &flight.way {
            FlightWay::Load(boxes) => self.load(op, &flight, boxes, is_in_loop),
            FlightWay::Store(boxes) => self.store(op, boxes),
            FlightWay::Other => self.refuse(op, CP_ASYNC, not_to_shared_memory()),
        };
        let plan = &mut self.plans[op.op];
        if let Some(asked) = flight.asked.filter(|asked| plan.considered.iter().all(|known| known.variant != *asked)) {
            let reason = if asked == TMA { not_between() } else { not_to_shared_memory() };
            plan.considered.push(VariantResult { variant: asked, answer: Err(vec![reason]) });
        }
        if let Some(body) = made {
            *op = op.with_body(body).in_flight(Flight::clone(&flight));
            self.started = true;
        }
        let plan = &self.plans[op.op];
        let asked = flight.asked.filter(|asked| plan.chosen != *asked);
        self.found.extend(asked.map(|asked| unmet(plan, asked)));
    }

    /// Notes why an asynchronous copy is none.
    fn refuse(&mut self, op: &OpBlock, variant: &'static str, reason: Reason) -> Option<Vec<Stmt>> {
        self.plans[op.op].considered.push(VariantResult { variant, answer: Err(vec![reason]) });
        None
    }

    /// A copy to a tensor.
    fn store(&mut self, op: &OpBlock, boxes: &Result<BoxMove, Reason>) -> Option<Vec<Stmt>> {
        let possible = boxes.clone().and_then(|moved| self.by_engine(&moved, 0).map(|()| moved));
        let moved = match possible {
            Ok(moved) => moved,
            Err(reason) => return self.refuse(op, TMA, reason),
        };
        self.choose(op, TMA, facts(&moved));
        let body = self.stored(op, &moved);
        self.stores.insert(op.op, moved);
        Some(body)
    }

    /// A copy to shared memory: by threads or by the copy engine, whichever is asked for or is cheaper for the memory.
    fn load(
        &mut self,
        op: &OpBlock,
        flight: &Flight,
        boxes: &Result<BoxMove, Reason>,
        is_in_loop: bool,
    ) -> Option<Vec<Stmt>> {
        let by_threads = self.by_threads(op);
        let by_engine = boxes.clone().and_then(|moved| self.by_engine(&moved, SHARED_ALIGNMENT).map(|()| moved));
        let of_engine = by_engine.as_ref().map(facts).map_err(Clone::clone);
        let is_for_engine =
            || self.filled(op).and_then(|fills| self.costs.get(&fills)).is_some_and(Costs::is_for_engine);
        let takes_engine = match flight.asked {
            Some(asked) => asked == TMA,
            None => of_engine.is_ok() && (by_threads.is_err() || is_for_engine()),
        };
        let answers =
            [(TMA, of_engine), (CP_ASYNC, by_threads.as_ref().map(|(_, facts)| facts.clone()).map_err(Clone::clone))];
        for (variant, answer) in answers {
            let answer = answer.map_err(|reason| vec![reason]);
            self.plans[op.op].considered.push(VariantResult { variant, answer });
        }
        match (takes_engine, by_engine, by_threads) {
            (true, Ok(moved), _) => {
                self.plans[op.op].chosen = TMA;
                Some(self.loaded(op, &moved, is_in_loop))
            }
            (false, _, Ok((body, _))) => {
                self.plans[op.op].chosen = CP_ASYNC;
                Some(body)
            }
            _ => None,
        }
    }

    /// Chooses a variant of an op.
    fn choose(&mut self, op: &OpBlock, variant: &'static str, facts: PlanFacts) {
        let plan = &mut self.plans[op.op];
        plan.considered.push(VariantResult { variant, answer: Ok(facts) });
        plan.chosen = variant;
    }

    /// A copy with asynchronous copies in place of loads and stores, or why that is not possible.
    fn by_threads(&self, op: &OpBlock) -> Result<Made, Reason> {
        let program = &self.builder.program;
        if self.filled(op).is_none() {
            return Err(not_to_shared_memory());
        }
        let mut body = asynchronous(program, &op.body)?;
        let summary = self.plans[op.op].facts().map(|facts| facts.summary.clone()).unwrap_or_default();
        let facts = PlanFacts { summary, ..measure(program, &body, 0, String::new(), i64::MAX) };
        body.push(Stmt::from(Call::plain(Inst::CopyAsyncCommit)));
        Ok((body, facts))
    }

    /// Whether the copy engine can move boxes, with so many bytes of shared memory beside them, or why it cannot.
    fn by_engine(&self, moved: &BoxMove, beside: i64) -> Result<(), Reason> {
        let program = &self.builder.program;
        let owner = program.owner(self.builder.memory(moved.shared));
        refused(program, self.builder.memory(moved.tensor), owner).map_or(Ok(()), Err)?;
        let memory = &program.memories[owner];
        let alignment = moved.boxes.alignment();
        let bytes = program.shared_bytes() - memory.shared_bytes() + aligned(memory, alignment).shared_bytes() + beside;
        let most = program.target.shared_bytes();
        if bytes > most {
            let text = format!("with `{}` at a multiple of {alignment} B, shared memory takes {bytes} B", memory.name);
            return Err(Reason::new(text, format!("the {most} B that a CTA of {} has", program.target)));
        }
        Ok(())
    }

    /// Lets the shared memory of boxes begin where boxes may, and gives the map of their tensor.
    fn prepare(&mut self, moved: &BoxMove) -> Handle<TensorMapRecipe> {
        let owner = self.builder.program.owner(self.builder.memory(moved.shared));
        let alignment = moved.boxes.alignment();
        let memory = &mut self.builder.program.memories[owner];
        *memory = aligned(memory, alignment);
        self.builder.align(owner, alignment);
        self.builder.tensor_map(moved)
    }

    /// One thread starts the copies of boxes to a tensor, as a group.
    fn stored(&mut self, op: &OpBlock, moved: &BoxMove) -> Vec<Stmt> {
        let map = self.prepare(moved);
        let shared = (self.builder.memory(moved.shared), &moved.place);
        let program = &self.builder.program;
        let mut body = copies(program, moved, map, shared, &BoxWay::ToTensor { adds: moved.adds });
        body.push(Stmt::from(Call::plain(Inst::BulkCommit)));
        by_one(program, op, body)
    }

    /// One thread announces the bytes of boxes, and starts their copies to shared memory.
    fn loaded(&mut self, op: &OpBlock, moved: &BoxMove, is_in_loop: bool) -> Vec<Stmt> {
        let map = self.prepare(moved);
        let shared = self.builder.memory(moved.shared);
        let barrier = (self.barrier_of(op, shared, is_in_loop), Expr::constant(0));
        let mut body = vec![barrier_call(Inst::BarrierExpect, barrier.clone(), Some(Expr::constant(bytes(moved))))];
        let program = &self.builder.program;
        body.extend(copies(program, moved, map, (shared, &moved.place), &BoxWay::ToShared { full: barrier }));
        by_one(program, op, body)
    }

    /// The barrier of a copy to a shared memory.
    fn barrier_of(&mut self, op: &OpBlock, shared: Handle<Memory>, is_in_loop: bool) -> Handle<Memory> {
        let fills = self.builder.program.owner(shared);
        let known = self.loads.iter().position(|load| (load.fills, load.role) == (fills, op.role));
        let at = known.unwrap_or_else(|| {
            let full = self.barrier(fills, op);
            self.loads.push(Load { plans: Vec::new(), fills, role: op.role, full, phase: None });
            self.loads.len() - 1
        });
        let load = &mut self.loads[at];
        load.plans.push(op.op);
        if load.phase.is_none() && (is_in_loop || load.plans.len() > 1) {
            let name = self.builder.fresh(&format!("{}_phase", self.builder.program.memories[fills].name.clone()));
            let phase = RegArray { name, dtype: DType::I32, len: 1, vector: 1 };
            load.phase = Some(self.builder.program.registers.push(phase));
        }
        load.full
    }

    /// A barrier in shared memory for the copies to another memory.
    fn barrier(&mut self, fills: Handle<Memory>, op: &OpBlock) -> Handle<Memory> {
        let name = format!("{}_full", self.builder.program.memories[fills].name);
        let memory = Memory {
            name: self.builder.fresh(&name),
            dtype: DType::U64,
            elements: 1,
            stages: 1,
            space: MemorySpace::Shared,
            values: Vec::new(),
            alignment: SHARED_ALIGNMENT,
            span: self.plans[op.op].span,
        };
        self.builder.program.memories.push(memory)
    }

    /// Lets threads note the phase of each copy, where a barrier has several.
    fn note_phases(&self, blocks: &mut [Block]) {
        for_each_op(blocks, &mut |op| {
            let load = self.loads.iter().find(|load| load.plans.contains(&op.op) && op.is_load_by_engine());
            if let Some(phase) = load.and_then(|load| load.phase) {
                op.body.insert(0, next_phase(phase));
            }
        });
    }
}

/// The first thread of an op executes statements.
fn by_one(program: &Program, op: &OpBlock, body: Vec<Stmt>) -> Vec<Stmt> {
    let team = Team::of(program, op.role);
    team.by_first_of(&team, vec![Stmt::Elect { body }])
}

/// The phase of a barrier becomes the next one.
fn next_phase(phase: Handle<RegArray>) -> Stmt {
    let one = Value::Const(DType::I32, Scalar::Int(1));
    let value = Value::Op(ElementOp::Xor, vec![Value::reg(phase, 0), one]);
    Stmt::Assign { to: regs(phase, 0, 1), value }
}

/// A memory that begins at multiples of `alignment` bytes, with as many elements as that takes.
fn aligned(memory: &Memory, alignment: i64) -> Memory {
    let unit = alignment / memory.dtype.bytes();
    Memory { elements: (memory.elements + unit - 1) / unit * unit, ..memory.clone() }
}

/// Why the copy engine does not copy between a shared memory and a tensor, if it does not.
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

/// Why the copy engine does not execute an op.
pub(crate) fn not_between() -> Reason {
    let text = "the op is not a copy between shared memory and a tensor that may stay in flight";
    let accepted = "`copy_async` between shared memory and a tensor, `atomic_add` from shared memory to a tensor, or a pipelined loop";
    Reason::new(text, accepted)
}

/// Why asynchronous copies do not execute what does not fill shared memory.
fn not_to_shared_memory() -> Reason {
    Reason::new("the copy does not fill shared memory", "copies from tensors to shared memory")
}
