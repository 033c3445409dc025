//! What executes each asynchronous copy: threads or the copy engine.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_diag::Diagnostic;
use tilewright_ir::plan::{OpPlan, PlanFacts, Reason, VariantResult};
use tilewright_ir::thread::{Call, Inst, Memory, Stmt, for_each_stmt};
use tilewright_ir::tile::{EngineMove, EngineOffers};
use tilewright_ir::{Handle, SHARED_ALIGNMENT};

use super::by_engine::Load;
use super::groups::Used;
use crate::builder::Builder;
use crate::engine::{OF_AN_ISSUE, facts};
use crate::measure::measure;
use crate::pipeline::{BULK, CP_ASYNC, TMA, asynchronous, unmet};
use crate::sync::{Block, Flight, FlightWay, OpBlock, for_each_op};

/// Asynchronous copies while they get their statements.
pub(super) struct Start<'a> {
    pub(super) builder: &'a mut Builder,
    pub(super) plans: &'a mut [OpPlan],
    found: &'a mut Vec<Diagnostic>,
    /// Whether there are any.
    pub(super) started: bool,
    /// How the copy engine executes those to tensors that it does, by their plans.
    pub(super) stores: BTreeMap<usize, EngineMove>,
    /// Those to shared memory that the copy engine executes.
    pub(super) loads: Vec<Load>,
    /// What copies to each shared memory for which no variant is asked for would cost.
    costs: BTreeMap<Handle<Memory>, Costs>,
    /// The same copies by threads, by their plans.
    by_threads: BTreeMap<usize, Result<Made, Reason>>,
    /// The tensors that threads change by atomic operations.
    changed_by_threads: BTreeSet<Handle<Memory>>,
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

/// The statements of a copy, and its plan.
type Made = (Vec<Stmt>, PlanFacts);

impl<'a> Start<'a> {
    pub(super) fn new(builder: &'a mut Builder, plans: &'a mut [OpPlan], found: &'a mut Vec<Diagnostic>) -> Start<'a> {
        let (stores, loads) = (BTreeMap::new(), Vec::new());
        let (costs, by_threads, changed_by_threads) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Start { builder, plans, found, started: false, stores, loads, costs, by_threads, changed_by_threads }
    }

    /// Gives the asynchronous copies among blocks their statements.
    pub(super) fn all(&mut self, blocks: &mut [Block]) {
        for_each_op(blocks, &mut |op| {
            self.add_cost(op);
            self.add_changes_by_threads(op);
        });
        self.blocks(blocks, true);
        self.note_phases(blocks);
    }

    /// Adds what a copy to shared memory would cost.
    fn add_cost(&mut self, op: &OpBlock) {
        let Some(flight) = op.flight.as_ref().filter(|flight| flight.asked.is_none()) else { return };
        let FlightWay::Load(offers) = &flight.way else { return };
        let Some(fills) = self.filled(op) else { return };
        let engine = self.possible(offers, SHARED_ALIGNMENT).best().ok();
        let engine = engine.map(|moved| facts(&moved).instructions + OF_AN_ISSUE);
        let by_threads = self.by_threads(op);
        let threads = by_threads.as_ref().ok().map(|(_, facts)| facts.instructions);
        self.by_threads.insert(op.op, by_threads);
        let known = self.costs.entry(fills).or_insert(Costs { engine: Some(0), threads: Some(0) });
        let add = |sum: &mut Option<i64>, more: Option<i64>| *sum = sum.zip(more).map(|(sum, more)| sum + more);
        add(&mut known.engine, engine);
        add(&mut known.threads, threads);
    }

    /// Notes the tensors that the threads of an op change by atomic operations.
    fn add_changes_by_threads(&mut self, op: &OpBlock) {
        if let Some(flight) = &op.flight
            && let FlightWay::Store(offers) = &flight.way
            && chosen(flight.asked, self.possible(offers, 0)).is_some()
        {
            return;
        }
        let program = &self.builder.program;
        for_each_stmt(&op.body, &mut |stmt| {
            if let Stmt::Inst(call) = stmt
                && call.inst.atomic().is_some()
            {
                let tensors = call.memory.iter().map(|(memory, _)| program.owner(*memory));
                self.changed_by_threads.extend(tensors.filter(|memory| program.memories[*memory].is_global()));
            }
        });
    }

    /// The ways to combine a tile with a tensor that are right if CTAs do so at the same time: the engine's operations and those
    /// of threads do not see each other, and no fence orders CTAs.
    fn among_ctas(&self, offers: EngineOffers) -> EngineOffers {
        let program = &self.builder.program;
        let is_one = program.grid.iter().all(|ctas| ctas.range().hi <= 1);
        let is_right = |moved: EngineMove| {
            let tensor = program.owner(self.builder.memory(moved.tensor));
            if is_one || moved.combined.is_none() || !self.changed_by_threads.contains(&tensor) {
                return Ok(moved);
            }
            let name = &program.memories[tensor].name;
            let text = format!("threads of other CTAs may change `{name}` at the same time, by atomic operations");
            Err(Reason::new(text, "a tensor that only the copy engine changes, or a grid of one CTA"))
        };
        let EngineOffers { run, boxes } = offers;
        EngineOffers { run: run.and_then(is_right), boxes: boxes.and_then(is_right) }
    }

    /// The shared memory that an op fills.
    fn filled(&self, op: &OpBlock) -> Option<Handle<Memory>> {
        let program = &self.builder.program;
        Used::of(program, &op.body).writes.into_iter().find(|memory| program.memories[*memory].is_shared())
    }

    /// The same for blocks, which are executed once, or are in loops and branches.
    fn blocks(&mut self, blocks: &mut [Block], is_once: bool) {
        for block in blocks {
            match block {
                Block::Op(op) => self.op(op, is_once),
                Block::Loop(inner) => self.blocks(&mut inner.body, false),
                Block::If(branches) => {
                    for branch in [&mut branches.then, &mut branches.otherwise] {
                        self.blocks(&mut branch.body, false);
                    }
                }
            }
        }
    }

    /// Gives an op its statements, if it is an asynchronous copy.
    fn op(&mut self, op: &mut OpBlock, is_once: bool) {
        let Some(flight) = op.flight.take() else { return };
        let made = match &flight.way {
            FlightWay::Load(offers) => self.load(op, &flight, offers, is_once),
            FlightWay::Store(offers) => self.store(op, &flight, offers),
            FlightWay::Other => self.refuse(op, CP_ASYNC, not_to_shared_memory()),
        };
        let plan = &mut self.plans[op.op];
        if let Some(asked) = flight.asked.filter(|asked| plan.considered.iter().all(|known| known.variant != *asked)) {
            let reason = if [BULK, TMA].contains(&asked) { not_between() } else { not_to_shared_memory() };
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

    /// Those of the engine's ways that are possible, with so many bytes of shared memory beside the tile.
    fn possible(&self, offers: &EngineOffers, beside: i64) -> EngineOffers {
        let possible = |moved: EngineMove| self.by_engine(&moved, beside).map(|()| moved);
        let EngineOffers { run, boxes } = offers.clone();
        EngineOffers { run: run.and_then(possible), boxes: boxes.and_then(possible) }
    }

    /// The way of the engine that is asked for, or the better one, if it is possible. Writes into the plan what was considered.
    fn engine(&mut self, op: &OpBlock, flight: &Flight, offers: EngineOffers) -> Option<EngineMove> {
        let considered = &mut self.plans[op.op].considered;
        for (variant, offer) in [(BULK, &offers.run), (TMA, &offers.boxes)] {
            let answer = offer.as_ref().map(facts).map_err(|reason| vec![reason.clone()]);
            considered.push(VariantResult { variant, answer });
        }
        chosen(flight.asked, offers)
    }

    /// A copy to a tensor.
    fn store(&mut self, op: &OpBlock, flight: &Flight, offers: &EngineOffers) -> Option<Vec<Stmt>> {
        let moved = self.engine(op, flight, self.among_ctas(self.possible(offers, 0)))?;
        self.plans[op.op].chosen = moved.variant();
        let body = self.stored(op, &moved);
        self.stores.insert(op.op, moved);
        Some(body)
    }

    /// A copy to shared memory: by threads or by the copy engine, whichever is asked for or is cheaper for the memory.
    fn load(&mut self, op: &OpBlock, flight: &Flight, offers: &EngineOffers, is_once: bool) -> Option<Vec<Stmt>> {
        let by_threads = self.by_threads.remove(&op.op).unwrap_or_else(|| self.by_threads(op));
        let by_engine = self.engine(op, flight, self.possible(offers, SHARED_ALIGNMENT));
        let answer = by_threads.as_ref().map(|(_, facts)| facts.clone()).map_err(|reason| vec![reason.clone()]);
        self.plans[op.op].considered.push(VariantResult { variant: CP_ASYNC, answer });
        let is_for_engine =
            || self.filled(op).and_then(|fills| self.costs.get(&fills)).is_some_and(Costs::is_for_engine);
        let takes_engine = match flight.asked {
            Some(asked) => asked != CP_ASYNC,
            None => by_engine.is_some() && (by_threads.is_err() || is_for_engine()),
        };
        match (takes_engine, by_engine, by_threads) {
            (true, Some(moved), _) => {
                self.plans[op.op].chosen = moved.variant();
                Some(self.loaded(op, &moved, is_once))
            }
            (false, _, Ok((body, _))) => {
                self.plans[op.op].chosen = CP_ASYNC;
                Some(body)
            }
            _ => None,
        }
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
}

/// The way of the engine that is asked for, or the better one, if it is possible.
fn chosen(asked: Option<&str>, offers: EngineOffers) -> Option<EngineMove> {
    match asked {
        Some(BULK) => offers.run.ok(),
        Some(TMA) => offers.boxes.ok(),
        Some(_) => None,
        None => offers.best().ok(),
    }
}

/// Why the copy engine does not execute an op.
pub(crate) fn not_between() -> Reason {
    let text = "the op is not a copy between shared memory and a tensor that may stay in flight";
    let accepted = "`copy_async` between shared memory and a tensor, an atomic op from shared memory to a tensor, or a pipelined loop";
    Reason::new(text, accepted)
}

/// Why asynchronous copies do not execute what does not fill shared memory.
fn not_to_shared_memory() -> Reason {
    Reason::new("the copy does not fill shared memory", "copies from tensors to shared memory")
}
