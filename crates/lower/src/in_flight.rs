//! Copies in flight: what `copy_async` starts is waited for where something needs it.
//!
//! Each copy is a group of its own: of asynchronous copies, of which every thread has a part (PTX ISA,
//! "cp.async.commit_group"), or of boxes that one thread lets the copy engine move (PTX ISA, "cp.async.bulk.commit_group").
//! Before the first statement that uses what a group fills, or writes what it reads, each thread waits until that group has
//! arrived, and a barrier follows. Groups of a kind arrive in their order, so a wait names how many later ones may be pending:
//! `cp_async_wait<1>`.
//!
//! Which groups may be pending is followed through loops and branches. Where paths meet, their groups are joined place by place,
//! from the latest on. Of a group that may then be at several places the latest counts.
//! Threads have only the groups that they commit: for one of a role, the later groups of other roles do not count.
//! Pipelined loops commit groups too, and wait for them on their own; they are entries without memory.
//!
//! The copy engine sees what threads have written after a fence, and a barrier between the fence and the copy.

mod groups;
mod overlap;
mod start;
mod unseen;

use std::collections::BTreeMap;

use tilewright_diag::{Diagnostic, counted_as};
use tilewright_expr::Expr;
use tilewright_ir::Counter;
use tilewright_ir::plan::{Barrier, OpPlan};
use tilewright_ir::thread::{Call, Inst, Program, Stmt, for_each_stmt};
use tilewright_ir::tile::BoxMove;

use crate::builder::Builder;
use crate::pipeline::Team;
use crate::sync::{Block, LoopBlock, OpBlock, for_each_op, name_in};
use groups::{Committers, Group, Needed, Pending, Used};
use overlap::Stored;
use start::Start;
use unseen::{Fence, Unseen};

/// The blocks with the statements of asynchronous copies, and with waits before what needs them.
pub(crate) fn with_waits(
    builder: &mut Builder,
    plans: &mut [OpPlan],
    found: &mut Vec<Diagnostic>,
    mut blocks: Vec<Block>,
) -> Vec<Block> {
    let mut start = Start::new(builder, plans, found);
    for_each_op(&mut blocks, &mut |op| start.op(op));
    let Start { started, boxes, .. } = start;
    if !started {
        return blocks;
    }
    let mut waits = Waits { program: &builder.program, plans, boxes, stored: BTreeMap::new(), loops: Vec::new() };
    let mut state = State::default();
    waits.walk(&mut blocks, &mut state, true);
    // No copy arrives, and none reads shared memory, after its CTA has ended.
    let last = [(state.threads.last_fill(), Inst::CopyAsyncWait), (state.engine.last_read(), Inst::BulkWaitRead)];
    for (plan, inst) in last {
        blocks.extend(plan.map(|plan| Block::Op(waits.part(plan, "wait", vec![wait(inst, 0)]))));
    }
    blocks
}

/// What may be in flight.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    /// Groups of asynchronous copies.
    threads: Pending,
    /// Groups of boxes that go to tensors.
    engine: Pending,
    unseen: Unseen,
}

impl State {
    /// What may be in flight where another path meets this one.
    fn meet(&mut self, other: State) {
        self.threads.meet(other.threads);
        self.engine.meet(other.engine);
        self.unseen.meet(other.unseen);
    }
}

/// Puts waits before what needs the copies.
struct Waits<'a> {
    program: &'a Program,
    plans: &'a mut [OpPlan],
    /// How the copy engine executes the copies to tensors, by their plans.
    boxes: BTreeMap<usize, BoxMove>,
    /// Where those that the walk has seen store, by their plans.
    stored: BTreeMap<usize, Stored>,
    /// The loops around the current block.
    loops: Vec<Counter>,
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
            if let Some(before) = first.and_then(|op| self.before(op, state, places)) {
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
        self.loops.push(inner.inner.counter.clone());
        // Where an iteration begins, what is in flight is that before the loop, or that after another iteration.
        loop {
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
        match inner.inner.counter.is_never_empty() {
            true => *state = after,
            false => state.meet(after),
        }
    }

    /// The waits and the fence that an op needs before it, in one block; none are made unless `places`.
    fn before(&mut self, op: &OpBlock, state: &mut State, places: bool) -> Option<OpBlock> {
        let used = Used::of(self.program, &op.body);
        let mut waits: Vec<(Inst, Needed)> = Vec::new();
        if let Some(needed) = state.threads.needed(|group| group.met(&used)) {
            state.threads.wait(Committers::All, needed.later);
            waits.push((Inst::CopyAsyncWait, needed));
        }
        if let Some(needed) = state.engine.needed(|group| group.met_filled(&used, |plan| self.is_apart(plan, op))) {
            state.engine.wait(Committers::All, needed.later);
            waits.push((Inst::BulkWait, needed));
        }
        if let Some(needed) = state.engine.needed(|group| group.met_read(&used)) {
            state.engine.finish_reading(needed.later);
            waits.push((Inst::BulkWaitRead, needed));
        }
        let in_flight: Vec<_> = state.threads.filled().collect();
        let is_store = self.boxes.contains_key(&op.op);
        let fence = is_store.then(|| state.unseen.fence(self.program, op, &used, &in_flight)).flatten();
        places.then(|| self.block_before(op, &waits, fence)).flatten()
    }

    /// The block of waits and a fence before an op, with their reasons in the plans of the copies.
    fn block_before(&mut self, op: &OpBlock, waits: &[(Inst, Needed)], fence: Option<Fence>) -> Option<OpBlock> {
        // Copies to the same elements that one thread starts take no barrier.
        let by = self.boxes.contains_key(&op.op).then(|| Committers::of_one(op));
        let is_own = |(inst, needed): &(Inst, Needed)| *inst == Inst::BulkWait && Some(needed.by) == by;
        let needs_barrier = !waits.iter().all(is_own);
        let role = if needs_barrier { None } else { fence.as_ref().map_or(op.role, |fence| fence.role) };
        let sync = (needs_barrier || fence.is_some()).then(|| Team::of(self.program, role).sync());
        let mut body = Vec::new();
        for (inst, needed) in waits {
            self.tell_wait(op, *inst, needed, sync.filter(|_| needs_barrier));
            body.push(wait(*inst, needed.later));
        }
        if let Some(fence) = &fence {
            let barriers = &mut self.plans[op.op].barriers;
            barriers.push(fence.told(self.program, sync.map_or("", |(_, name)| name)));
            body.push(Stmt::from(Call::plain(fence.inst())));
        }
        body.extend(sync.map(|(inst, _)| Stmt::from(Call::plain(inst))));
        let (plan, part) = match (waits.first(), &fence) {
            (None, None) => return None,
            (Some((_, needed)), None) => (needed.plan, "wait"),
            (None, Some(_)) => (op.op, "fence"),
            (Some(_), Some(_)) => (op.op, "wait and fence"),
        };
        Some(self.part(plan, part, body).of(role))
    }

    /// Writes a wait before an op into the plan of the copy, with the barrier after it.
    fn tell_wait(&mut self, op: &OpBlock, inst: Inst, needed: &Needed, sync: Option<(Inst, &str)>) {
        let Needed { later, memory, plan, .. } = *needed;
        let name = match self.program.memories[memory].is_global() {
            true => format!("`{}`", self.program.memories[memory].name),
            false => name_in(self.program, &op.body, memory),
        };
        let verb = if inst == Inst::BulkWaitRead { "writes" } else { "uses" };
        let reason =
            format!("{} {verb} {name}; {} may be pending", op.title, counted_as(later, "later copy", "later copies"));
        let sync = sync.map(|(_, name)| format!(", {name}")).unwrap_or_default();
        let what = format!("{}{sync}", inst.info().name);
        self.plans[plan].barriers.push(Barrier { what, reason });
    }

    /// Whether boxes that a copy stores are others than those that an op stores, if it is such a copy.
    fn is_apart(&self, earlier: usize, op: &OpBlock) -> bool {
        let (Some(before), Some(moved)) = (self.stored.get(&earlier), self.boxes.get(&op.op)) else { return false };
        let after = Stored { moved: moved.clone(), loops: self.loops.clone() };
        if earlier == op.op { after.differs_in_each_iteration() } else { before.is_apart(&after) }
    }

    /// The groups that an op commits, and the waits among its own statements.
    fn pass(&mut self, op: &OpBlock, state: &mut State) {
        let own = || if op.flight.is_some() { Group::of(self.program, op) } else { Group::default() };
        for_each_stmt(&op.body, &mut |stmt| {
            let Stmt::Inst(call) = stmt else { return };
            match call.inst {
                Inst::CopyAsyncCommit => state.threads.commit(Group { by: Committers::of(op), ..own() }),
                Inst::BulkCommit => state.engine.commit(Group { by: Committers::of_one(op), ..own() }),
                Inst::CopyAsyncWait => {
                    let later = call.arguments.first().and_then(Expr::as_const);
                    let later = later.and_then(|later| usize::try_from(later).ok()).unwrap_or(usize::MAX);
                    state.threads.wait(Committers::of(op), later);
                }
                _ => {}
            }
        });
        match self.boxes.get(&op.op) {
            Some(moved) => _ = self.stored.insert(op.op, Stored { moved: moved.clone(), loops: self.loops.clone() }),
            None if !self.boxes.is_empty() => state.unseen.add(self.program, op),
            None => {}
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
