//! Copies in flight: what `copy_async` starts is waited for where something needs it.
//!
//! Boxes that the copy engine brings to shared memory count at a barrier of their copy, and who needs them waits for its latest
//! phase; see [`arriving`].
//!
//! Each other copy is a group of its own: of asynchronous copies, of which every thread has a part (PTX ISA,
//! "cp.async.commit_group"), or of tiles that one thread lets the copy engine move to a tensor (PTX ISA,
//! "cp.async.bulk.commit_group").
//! Before the first statement that uses what a group fills, or writes what it reads, each thread waits until that group has
//! arrived, and a barrier follows. Groups of a kind arrive in their order, so a wait names how many later ones may be pending:
//! `cp_async_wait<1>`.
//!
//! Which groups may be pending is followed through loops and branches. Where paths meet, their groups are joined place by place,
//! from the latest on. A group that may be at several places counts as the latest of them.
//! Threads have only the groups that they commit: for one of a role, the later groups of other roles do not count.
//! Pipelined loops commit groups too, and wait for them on their own; they are entries without memory.
//!
//! The copy engine sees what threads have written after a fence, and a barrier between the fence and the copy.

mod arriving;
mod by_engine;
mod groups;
mod overlap;
mod start;
mod unseen;

use std::collections::BTreeMap;

use tilewright_diag::{Diagnostic, counted_as};
use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::{Barrier, OpPlan};
use tilewright_ir::thread::{Call, Inst, Memory, Stmt, Value, for_each_stmt};
use tilewright_ir::tile::EngineMove;
use tilewright_ir::{Handle, Scalar};

use crate::builder::{Builder, regs};
use crate::engine::barrier_call;
use crate::pipeline::Team;
use crate::sync::{Block, LoopBlock, LoopRef, OpBlock, name_in};
use arriving::{Arriving, Awaited};
use by_engine::Load;
use groups::{Group, Needed, Pending, Threads, Used};
use overlap::Stored;
use start::Start;
pub(crate) use start::not_between;
use unseen::{Fence, Unseen};

/// The blocks with the statements of asynchronous copies, and with waits before what needs them.
pub(crate) fn with_waits(
    builder: &mut Builder,
    plans: &mut [OpPlan],
    found: &mut Vec<Diagnostic>,
    mut blocks: Vec<Block>,
) -> Vec<Block> {
    let mut start = Start::new(builder, plans, found);
    start.all(&mut blocks);
    let Start { started, stores, loads, .. } = start;
    let has_products = has_products(&blocks);
    if !started && !has_products {
        return blocks;
    }
    let mut waits = Waits { builder, plans, stores, loads, has_products, around: BTreeMap::new(), loops: Vec::new() };
    let mut state = State::default();
    waits.walk(&mut blocks, &mut state, true);
    // No copy arrives, and none reads shared memory, after its CTA has ended.
    let last = [(state.threads.last_fill(), Inst::CopyAsyncWait), (state.engine.last_read(), Inst::BulkWaitRead)];
    for (plan, inst) in last {
        blocks.extend(plan.map(|plan| Block::Op(waits.part(plan, "wait", vec![wait(inst, 0)]))));
    }
    for (full, plan, role) in state.arriving.left() {
        let body = waits.wait_for(full);
        blocks.push(Block::Op(waits.part(plan, "wait", body).of(role)));
    }
    waits.begin().into_iter().map(Block::Op).chain(blocks).collect()
}

/// Whether an op has asynchronous products, which see what threads wrote to shared memory only after a fence.
fn multiplies(op: &OpBlock) -> bool {
    let mut found = false;
    for_each_stmt(&op.body, &mut |stmt| found |= matches!(stmt, Stmt::WarpgroupMma(_) | Stmt::TensorMma(_)));
    found
}

/// Whether there are asynchronous products among blocks.
fn has_products(blocks: &[Block]) -> bool {
    blocks.iter().any(|block| match block {
        Block::Op(op) => multiplies(op),
        Block::Loop(inner) => has_products(&inner.body),
        Block::If(branches) => has_products(&branches.then.body) || has_products(&branches.otherwise.body),
    })
}

/// What may be in flight.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    /// Groups of asynchronous copies.
    threads: Pending,
    /// Groups of tiles that go to tensors.
    engine: Pending,
    /// Boxes that come to shared memory.
    arriving: Arriving,
    unseen: Unseen,
}

impl State {
    /// All threads have waited until at most `later` groups are pending, and for each other.
    fn wait(&mut self, inst: Inst, later: usize) {
        match inst {
            Inst::BulkWait => self.engine.wait(Threads::All, later),
            Inst::BulkWaitRead => self.engine.finish_reading(later),
            _ => self.threads.wait(Threads::All, later),
        }
    }

    /// Some threads have waited, those that have these names.
    fn wait_of(&mut self, threads: &[Threads], inst: Inst, later: usize) {
        match inst {
            Inst::BulkWait => self.engine.wait_of(threads, later, false),
            Inst::BulkWaitRead => self.engine.wait_of(threads, later, true),
            _ => self.threads.wait_of(threads, later, false),
        }
    }

    /// What may be in flight where another path meets this one.
    fn meet(&mut self, other: State) {
        self.threads.meet(other.threads);
        self.engine.meet(other.engine);
        self.arriving.meet(other.arriving);
        self.unseen.meet(other.unseen);
    }
}

/// The barrier that follows waits before an op. After one of a role, or none, only some threads have waited: for the others, the
/// same copies are still in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BarrierAfter {
    None,
    OfRole,
    OfCta,
}

/// Puts waits before what needs the copies.
struct Waits<'a> {
    builder: &'a mut Builder,
    plans: &'a mut [OpPlan],
    /// How the copy engine executes the copies to tensors, by their plans.
    stores: BTreeMap<usize, EngineMove>,
    /// The copies to shared memory that it executes.
    loads: Vec<Load>,
    /// Whether there are asynchronous products.
    has_products: bool,
    /// The loops around those that the walk has seen, by their plans.
    around: BTreeMap<usize, Vec<LoopRef>>,
    /// The loops around the current block.
    loops: Vec<LoopRef>,
}

impl Waits<'_> {
    /// Goes through blocks before which copies may be in flight, as `state` says, which becomes what may be in flight after
    /// them. Puts waits between the blocks if `places`.
    fn walk(&mut self, blocks: &mut Vec<Block>, state: &mut State, places: bool) {
        let mut at = 0;
        while at < blocks.len() {
            let first = match &blocks[at] {
                Block::Op(op) => Some(op),
                Block::If(branches) => Some(&branches.first),
                Block::Loop(_) => None,
            };
            for before in first.map(|op| self.before(op, state, places)).unwrap_or_default() {
                blocks.insert(at, Block::Op(before));
                at += 1;
            }
            match &mut blocks[at] {
                Block::Op(op) => self.pass(op, state),
                Block::Loop(inner) => self.repeat(inner, state, places),
                Block::If(branches) => {
                    self.pass(&branches.first, state);
                    let mut other = state.clone();
                    self.walk(&mut branches.then.body, state, places);
                    self.walk(&mut branches.otherwise.body, &mut other, places);
                    state.meet(other);
                }
            }
            at += 1;
        }
    }

    fn repeat(&mut self, inner: &mut LoopBlock, state: &mut State, places: bool) {
        self.loops.push(inner.inner.clone());
        // Where an iteration begins, what is in flight is that before the loop, or that after another iteration.
        while inner.inner.counter.repeats() {
            let (before, mut after) = (state.clone(), state.clone());
            self.walk(&mut inner.body, &mut after, false);
            state.meet(after);
            if *state == before {
                break;
            }
        }
        let mut after = state.clone();
        self.walk(&mut inner.body, &mut after, places);
        self.loops.pop();
        match inner.inner.is_never_empty() {
            true => *state = after,
            false => state.meet(after),
        }
    }

    /// The waits and the fence that an op needs before it; none are made unless `places`.
    fn before(&mut self, op: &OpBlock, state: &mut State, places: bool) -> Vec<OpBlock> {
        let program = &self.builder.program;
        let used = Used::of(program, &op.body);
        let awaited = state.arriving.needed(op, &used);
        let waits = self.needed(op, &used, state);
        let sees_late = self.is_by_engine(op) || multiplies(op);
        let fence = sees_late.then(|| state.unseen.fence(program, op, &used)).flatten();
        let is_of_others = awaited.iter().any(|awaited| awaited.for_others);
        let barrier = match &fence {
            _ if is_of_others => BarrierAfter::OfCta,
            // One barrier is for both.
            Some(Fence { role: None, .. }) => BarrierAfter::OfCta,
            Some(_) | None => self.barrier_after(op, &waits),
        };
        awaited.iter().for_each(|awaited| state.arriving.wait(awaited));
        for (inst, needed) in &waits {
            match barrier {
                BarrierAfter::OfCta => state.wait(*inst, needed.later),
                BarrierAfter::OfRole => state.wait_of(&[Threads::of(op), Threads::of_one(op)], *inst, needed.later),
                BarrierAfter::None => state.wait_of(&[Threads::of_one(op)], *inst, needed.later),
            }
        }
        if let Some(fence) = &fence {
            let in_flight: Vec<_> = state.threads.used().collect();
            state.unseen.pass(program, fence, &in_flight);
        }
        if !places {
            return Vec::new();
        }
        let mut all: Vec<OpBlock> = awaited.iter().map(|awaited| self.arrival_before(op, awaited)).collect();
        all.extend(self.block_before(op, &waits, barrier, fence, awaited.first()));
        all
    }

    /// Whether the copy engine executes an op.
    fn is_by_engine(&self, op: &OpBlock) -> bool {
        self.stores.contains_key(&op.op) || self.load(op.op).is_some()
    }

    /// The copy to shared memory of a plan that the copy engine executes.
    fn load(&self, plan: usize) -> Option<&Load> {
        self.loads.iter().find(|load| load.plans.contains(&plan))
    }

    /// The waits that an op needs.
    fn needed(&self, op: &OpBlock, used: &Used, state: &State) -> Vec<(Inst, Needed)> {
        let of_one = self.is_by_engine(op).then(|| Threads::of_one(op));
        let by: Vec<Threads> = std::iter::once(Threads::of(op)).chain(of_one).collect();
        let arrived = state.engine.needed(|group| group.met_filled(used, &by, |plan| self.is_apart(plan, op)));
        let has_read = state.engine.needed(|group| group.met_read(used, &by));
        // Those that have arrived have read.
        let has_read = has_read.filter(|read| arrived.is_none_or(|arrived| read.later < arrived.later));
        let copied = state.threads.needed(|group| group.met(used, &by));
        let all = [(Inst::CopyAsyncWait, copied), (Inst::BulkWait, arrived), (Inst::BulkWaitRead, has_read)];
        all.into_iter().filter_map(|(inst, needed)| Some((inst, needed?))).collect()
    }

    /// The barrier that waits before an op take.
    fn barrier_after(&self, op: &OpBlock, waits: &[(Inst, Needed)]) -> BarrierAfter {
        // Copies to the same elements that one thread starts are in order when it has waited.
        let by_engine = self.is_by_engine(op).then(|| Threads::of_one(op));
        let is_own = |(inst, needed): &(Inst, Needed)| *inst != Inst::CopyAsyncWait && Some(needed.by) == by_engine;
        let of_team = [Threads::of(op), Threads::of_one(op)];
        if waits.iter().all(is_own) {
            BarrierAfter::None
        } else if op.role.is_some() && waits.iter().all(|(_, needed)| of_team.contains(&needed.by)) {
            BarrierAfter::OfRole
        } else {
            BarrierAfter::OfCta
        }
    }

    /// The block of waits and a fence before an op, with their reasons in the plans of the copies.
    fn block_before(
        &mut self,
        op: &OpBlock,
        waits: &[(Inst, Needed)],
        barrier: BarrierAfter,
        fence: Option<Fence>,
        awaited: Option<&Awaited>,
    ) -> Option<OpBlock> {
        let of_fence = fence.as_ref().map(|fence| fence.role);
        let role = match barrier {
            BarrierAfter::OfCta => None,
            BarrierAfter::OfRole | BarrierAfter::None => of_fence.unwrap_or(op.role),
        };
        let follows = barrier != BarrierAfter::None;
        let sync = (follows || fence.is_some()).then(|| Team::of(&self.builder.program, role).sync());
        let mut body = Vec::new();
        for (inst, needed) in waits {
            self.tell_wait(op, *inst, needed, sync.filter(|_| follows));
            body.push(wait(*inst, needed.later));
        }
        if let Some(fence) = &fence {
            let told = fence.told(&self.builder.program, op, sync.map_or("", |(_, name)| name));
            self.plans[op.op].barriers.push(told);
            body.push(Stmt::from(Call::plain(fence.inst())));
        }
        body.extend(sync.map(|(inst, _)| Stmt::from(Call::plain(inst))));
        let (plan, part) = match (waits.first(), &fence) {
            (None, None) if barrier == BarrierAfter::OfCta => (awaited?.plan, "wait for each other"),
            (None, None) => return None,
            (Some((_, needed)), None) => (needed.plan, "wait"),
            (None, Some(_)) => (op.op, "fence"),
            (Some(_), Some(_)) => (op.op, "wait and fence"),
        };
        Some(self.part(plan, part, body).of(role))
    }

    /// The block that waits for a copy to shared memory before an op, with its reason in the plan of the copy.
    fn arrival_before(&mut self, op: &OpBlock, awaited: &Awaited) -> OpBlock {
        let Awaited { full, plan, memory, role, for_others } = *awaited;
        let name = name_in(&self.builder.program, &op.body, memory);
        let sync = if for_others { ", __syncthreads" } else { "" };
        let what = format!("{}{sync}", Inst::BarrierWait.info().name);
        self.plans[plan].barriers.push(Barrier { what, reason: format!("{} uses {name}", op.title) });
        let body = self.wait_for(full);
        self.part(plan, "wait", body).of(role)
    }

    /// Waits for the latest phase of a barrier.
    fn wait_for(&mut self, full: Handle<Memory>) -> Vec<Stmt> {
        let phase = self.loads.iter().find(|load| load.full == full).and_then(|load| load.phase);
        let named = phase.map(|phase| {
            let parity = Var::new(self.builder.fresh("parity"), 0, 1);
            (Expr::var(&parity), Stmt::LetValue { var: parity, value: Value::reg(phase, 0) })
        });
        let (parity, named) = named.unzip();
        let parity = parity.unwrap_or(Expr::constant(0));
        named.into_iter().chain([barrier_call(Inst::BarrierWait, (full, Expr::constant(0)), Some(parity))]).collect()
    }

    /// What stands at the beginning of the kernel: one thread initialises the barriers of copies to shared memory.
    /// The barrier after which others see them is derived.
    fn begin(&mut self) -> Option<OpBlock> {
        let plan = *self.loads.first()?.plans.first()?;
        let team = Team::of(&self.builder.program, None);
        let mut all = Vec::new();
        for phase in self.loads.iter().filter_map(|load| load.phase) {
            // No phase has begun: the parity of the one before the first.
            all.extend([Stmt::Declare(phase), Stmt::Set { to: regs(phase, 0, 1), value: Scalar::Int(1) }]);
        }
        let place = |load: &Load| (load.full, Expr::constant(0));
        let init = |load: &Load| barrier_call(Inst::BarrierInit, place(load), Some(Expr::constant(1)));
        let fence = Stmt::from(Call::plain(Inst::BarrierInitFence));
        let inits = self.loads.iter().map(init).chain([fence]).collect();
        all.extend(team.by_first_of(&team, vec![Stmt::Elect { body: inits }]));
        Some(self.part(plan, "the barriers begin", all))
    }

    /// Writes a wait before an op into the plan of the copy, with the barrier after it.
    fn tell_wait(&mut self, op: &OpBlock, inst: Inst, needed: &Needed, sync: Option<(Inst, &str)>) {
        let Needed { later, memory, plan, .. } = *needed;
        let name = name_in(&self.builder.program, &op.body, memory);
        let verb = if inst == Inst::BulkWaitRead { "writes" } else { "uses" };
        let reason =
            format!("{} {verb} {name}; {} may be pending", op.title, counted_as(later, "later copy", "later copies"));
        let sync = sync.map(|(_, name)| format!(", {name}")).unwrap_or_default();
        let what = format!("{}{sync}", inst.info().name);
        self.plans[plan].barriers.push(Barrier { what, reason });
    }

    /// Whether what an earlier copy stores needs no order with what an op stores, if both are copies to tensors.
    fn is_apart(&self, earlier: usize, op: &OpBlock) -> bool {
        let stored = |plan, loops| {
            let moved = self.stores.get(&plan)?;
            Some(Stored { plan, moved, memory: self.builder.memory(moved.tensor), loops })
        };
        let before = self.around.get(&earlier).and_then(|loops| stored(earlier, loops));
        let both = before.zip(stored(op.op, &self.loops));
        both.is_some_and(|(before, after)| before.is_apart(&after))
    }

    /// The groups that an op commits, and the waits among its own statements.
    fn pass(&mut self, op: &OpBlock, state: &mut State) {
        let program = &self.builder.program;
        let group = |by| if op.flight.is_some() { Group::of(program, op, by) } else { Group::without_memory(by) };
        for_each_stmt(&op.body, &mut |stmt| {
            let Stmt::Inst(call) = stmt else { return };
            match call.inst {
                Inst::CopyAsyncCommit => state.threads.commit(group(Threads::of(op))),
                Inst::BulkCommit => state.engine.commit(group(Threads::of_one(op))),
                Inst::CopyAsyncWait => {
                    let later = call.arguments.first().and_then(Expr::as_const);
                    let later = later.and_then(|later| usize::try_from(later).ok()).unwrap_or(usize::MAX);
                    state.threads.wait(Threads::of(op), later);
                }
                _ => {}
            }
        });
        if self.stores.contains_key(&op.op) {
            self.around.insert(op.op, self.loops.clone());
        } else if let Some(load) = self.load(op.op) {
            state.arriving.start(program, op, load.full);
        } else if self.has_products || !(self.stores.is_empty() && self.loads.is_empty()) {
            state.unseen.add(program, op);
        }
    }

    /// A part of what a plan is about.
    fn part(&self, plan: usize, part: &'static str, body: Vec<Stmt>) -> OpBlock {
        OpBlock::new(self.plans[plan].title.clone(), None, body, plan).part(part)
    }
}

fn wait(inst: Inst, later: usize) -> Stmt {
    Stmt::from(Call { arguments: vec![Expr::constant(later as i64)], ..Call::plain(inst) })
}
