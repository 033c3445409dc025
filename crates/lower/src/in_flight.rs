//! Copies in flight: what `copy_async` starts is waited for where something needs it.
//!
//! Each copy is a group of its own (PTX ISA, "cp.async.commit_group"). Before the first statement that uses what a group fills, or
//! writes what it reads, each thread waits until that group has arrived, and a barrier follows, since every thread copies a
//! part. Groups arrive in their order, so a wait names how many later ones may be pending: `cp_async_wait<1>`.
//!
//! Which groups may be pending is followed through loops and branches. Where paths meet, their groups are joined place by place,
//! from the latest on. Of a group that may then be at several places the latest counts.
//! Threads have only the groups that they commit: for one of a role, the later groups of other roles do not count.
//! Pipelined loops commit groups too, and wait for them on their own; they are entries without memory.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_diag::{Diagnostic, counted_as};
use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::plan::{Barrier, OpPlan, PlanFacts, Reason, VariantResult};
use tilewright_ir::thread::{Call, Inst, Memory, Program, Stmt, for_each_stmt};
use tilewright_ir::tile::Role;

use crate::measure::measure;
use crate::pipeline::{CP_ASYNC, asynchronous, unmet};
use crate::sync::{Block, LoopBlock, OpBlock, for_each_op, name_in};

/// The most groups that are distinguished; earlier ones count as the last of these.
const MOST_GROUPS: usize = 8;

/// The blocks with the statements of asynchronous copies, and with waits before what needs them.
pub(crate) fn with_waits(
    program: &Program,
    plans: &mut [OpPlan],
    found: &mut Vec<Diagnostic>,
    mut blocks: Vec<Block>,
) -> Vec<Block> {
    let mut start = Start { program, plans, found, started: false };
    for_each_op(&mut blocks, &mut |op| start.op(op));
    if !start.started {
        return blocks;
    }
    let mut waits = Waits { program, plans };
    let mut pending = Pending::default();
    waits.walk(&mut blocks, &mut pending, true);
    // No copy arrives after its CTA has ended.
    blocks.extend(pending.last_copy().map(|plan| Block::Op(waits.waits(plan, vec![wait(0)]))));
    blocks
}

/// Gives asynchronous copies their statements.
struct Start<'a> {
    program: &'a Program,
    plans: &'a mut [OpPlan],
    found: &'a mut Vec<Diagnostic>,
    /// Whether there are any.
    started: bool,
}

impl Start<'_> {
    fn op(&mut self, op: &mut OpBlock) {
        if !op.is_async {
            return;
        }
        let plan = &mut self.plans[op.op];
        match copies(self.program, &op.body) {
            Ok(mut body) => {
                let summary = plan.facts().map(|facts| facts.summary.clone()).unwrap_or_default();
                let facts = PlanFacts { summary, ..measure(self.program, &body, 0, String::new(), i64::MAX) };
                plan.considered.push(VariantResult { variant: CP_ASYNC, answer: Ok(facts) });
                plan.chosen = CP_ASYNC;
                body.push(Stmt::from(Call::plain(Inst::CopyAsyncCommit)));
                *op = op.with_body(body).asynchronous();
                self.started = true;
            }
            Err(reason) => {
                plan.considered.push(VariantResult { variant: CP_ASYNC, answer: Err(vec![reason]) });
                self.found.extend(plan.forced.then(|| unmet(plan, CP_ASYNC)));
                op.is_async = false;
            }
        }
    }
}

/// The statements of a copy with asynchronous copies in place of loads and stores, or why that is not possible.
fn copies(program: &Program, body: &[Stmt]) -> Result<Vec<Stmt>, Reason> {
    let Used { writes, .. } = Used::of(program, body);
    if !writes.iter().any(|memory| program.memories[*memory].is_shared()) {
        return Err(Reason::new("the copy does not fill shared memory", "copies from tensors to shared memory"));
    }
    asynchronous(program, body)
}

/// The memories that statements read and write.
#[derive(Default)]
struct Used {
    reads: BTreeSet<Handle<Memory>>,
    writes: BTreeSet<Handle<Memory>>,
}

impl Used {
    fn of(program: &Program, body: &[Stmt]) -> Used {
        let mut used = Used::default();
        for_each_stmt(body, &mut |stmt| {
            for access in stmt.accesses() {
                let memory = program.owner(access.memory);
                used.reads.extend(access.effect.reads().then_some(memory));
                used.writes.extend(access.effect.writes().then_some(memory));
            }
        });
        used
    }
}

/// The threads that commit a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Committers {
    /// All threads of the CTA.
    #[default]
    All,
    /// The warps of a role.
    Of(Handle<Role>),
    /// One or another of these, on different paths.
    Some,
}

impl Committers {
    fn of(op: &OpBlock) -> Committers {
        op.role.map_or(Committers::All, Committers::Of)
    }

    /// Whether each thread that commits a group of `others` also commits one of these.
    fn include(self, others: Committers) -> bool {
        match self {
            Committers::All => true,
            Committers::Of(_) => self == others,
            Committers::Some => false,
        }
    }
}

/// What copies of a group may still read and fill, and the plan of the copy that does, for each memory.
#[derive(Clone, Debug, Default, PartialEq)]
struct Group {
    by: Committers,
    reads: BTreeMap<Handle<Memory>, usize>,
    fills: BTreeMap<Handle<Memory>, usize>,
}

impl Group {
    /// The group of a copy.
    fn of(program: &Program, op: &OpBlock) -> Group {
        let Used { reads, writes } = Used::of(program, &op.body);
        let of_plan = |memories: BTreeSet<_>| memories.into_iter().map(|memory| (memory, op.op)).collect();
        Group { by: Committers::of(op), reads: of_plan(reads), fills: of_plan(writes) }
    }

    fn join(&mut self, other: Group) {
        self.by = if self.by == other.by { self.by } else { Committers::Some };
        self.reads.extend(other.reads);
        self.fills.extend(other.fills);
    }

    /// A memory for which what is used has to come after the group, and the plan of the copy.
    fn met(&self, used: &Used) -> Option<(Handle<Memory>, usize)> {
        let either = used.reads.union(&used.writes).find_map(|memory| Some((*memory, *self.fills.get(memory)?)));
        either.or_else(|| used.writes.iter().find_map(|memory| Some((*memory, *self.reads.get(memory)?))))
    }
}

/// The groups that may be pending, the latest first.
#[derive(Clone, Debug, Default, PartialEq)]
struct Pending(Vec<Group>);

impl Pending {
    fn commit(&mut self, group: Group) {
        self.0.insert(0, group);
        if self.0.len() > MOST_GROUPS {
            let earliest = self.0.pop().unwrap_or_default();
            self.0[MOST_GROUPS - 1].join(earliest);
        }
    }

    /// All but the latest `pending` groups of each of these threads have arrived.
    fn wait(&mut self, threads: Committers, pending: usize) {
        let has_arrived = |at: usize| threads.include(self.0[at].by) && self.later_than(at) >= pending;
        let left = (0..self.0.len()).filter(|at| !has_arrived(*at)).map(|at| self.0[at].clone()).collect();
        self.0 = left;
    }

    /// How many groups a thread has that are later than one of its groups, at least.
    fn later_than(&self, at: usize) -> usize {
        self.0[..at].iter().filter(|group| group.by.include(self.0[at].by)).count()
    }

    /// What may be pending where another path meets this one.
    fn meet(&mut self, other: Pending) {
        let mut others = other.0.into_iter();
        self.0.iter_mut().zip(&mut others).for_each(|(group, other)| group.join(other));
        self.0.extend(others);
    }

    /// The latest group that statements have to wait for.
    fn needed(&self, used: &Used) -> Option<Needed> {
        self.0.iter().enumerate().find_map(|(at, group)| {
            let (memory, plan) = group.met(used)?;
            Some(Needed { later: self.later_than(at), memory, plan })
        })
    }

    /// The plan of the latest copy that nothing has waited for.
    fn last_copy(&self) -> Option<usize> {
        self.0.iter().find_map(|group| group.fills.values().next().copied())
    }
}

/// A group that has to have arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Needed {
    /// How many groups are later, and may be pending.
    later: usize,
    /// What the copy fills or reads, and its plan.
    memory: Handle<Memory>,
    plan: usize,
}

/// Puts waits before what needs the copies.
struct Waits<'a> {
    program: &'a Program,
    plans: &'a mut [OpPlan],
}

impl Waits<'_> {
    /// Goes through blocks before which groups may be `pending`, which becomes what may be pending after them. Puts waits
    /// between the blocks if `places`.
    fn walk(&mut self, blocks: &mut Vec<Block>, pending: &mut Pending, places: bool) {
        let mut at = 0;
        while at < blocks.len() {
            let first = match &blocks[at] {
                Block::Op(op) => Some(op),
                Block::If(branches) => Some(&branches.first),
                Block::Loop(_) => None,
            };
            if let Some((op, needed)) = first.and_then(|op| Some((op, self.settle(op, pending)?)))
                && places
            {
                let wait = self.wait_before(op, needed);
                blocks.insert(at, Block::Op(wait));
                at += 1;
            }
            match &mut blocks[at] {
                Block::Op(op) => self.pass(op, pending),
                Block::Loop(inner) => self.repeat(inner, pending, places),
                Block::If(branches) => {
                    let mut other = pending.clone();
                    self.walk(&mut branches.then.body, pending, places);
                    self.walk(&mut branches.otherwise.body, &mut other, places);
                    pending.meet(other);
                }
            }
            at += 1;
        }
    }

    fn repeat(&mut self, inner: &mut LoopBlock, pending: &mut Pending, places: bool) {
        // Where an iteration begins, what is pending is that before the loop, or that after another iteration.
        loop {
            let (before, mut after) = (pending.clone(), pending.clone());
            self.walk(&mut inner.body, &mut after, false);
            pending.meet(after);
            if *pending == before {
                break;
            }
        }
        let mut after = pending.clone();
        self.walk(&mut inner.body, &mut after, places);
        match inner.inner.counter.is_never_empty() {
            true => *pending = after,
            false => pending.meet(after),
        }
    }

    /// Waits for what an op needs.
    fn settle(&self, op: &OpBlock, pending: &mut Pending) -> Option<Needed> {
        let needed = pending.needed(&Used::of(self.program, &op.body))?;
        pending.wait(Committers::All, needed.later);
        Some(needed)
    }

    /// The groups that an op commits, and the waits among its own statements.
    fn pass(&self, op: &OpBlock, pending: &mut Pending) {
        for_each_stmt(&op.body, &mut |stmt| match stmt {
            Stmt::Inst(call) if call.inst == Inst::CopyAsyncCommit => {
                let own = if op.is_async { Group::of(self.program, op) } else { Group::default() };
                pending.commit(Group { by: Committers::of(op), ..own });
            }
            Stmt::Inst(call) if call.inst == Inst::CopyAsyncWait => {
                let later =
                    call.arguments.first().and_then(Expr::as_const).and_then(|later| usize::try_from(later).ok());
                pending.wait(Committers::of(op), later.unwrap_or(usize::MAX));
            }
            _ => {}
        });
    }

    /// The wait before an op that needs a copy.
    fn wait_before(&mut self, op: &OpBlock, Needed { later, memory, plan }: Needed) -> OpBlock {
        let (sync, what) = match self.program.threads <= 32 {
            true => (Inst::SyncWarp, "cp_async_wait, __syncwarp"),
            false => (Inst::SyncThreads, "cp_async_wait, __syncthreads"),
        };
        let name = name_in(self.program, &op.body, memory);
        let reason =
            format!("{} uses {name}; {} may be pending", op.title, counted_as(later, "later copy", "later copies"));
        self.plans[plan].barriers.push(Barrier { what, reason });
        self.waits(plan, vec![wait(later), Stmt::from(Call::plain(sync))])
    }

    /// The block of a wait for a copy.
    fn waits(&self, plan: usize, body: Vec<Stmt>) -> OpBlock {
        OpBlock::new(self.plans[plan].title.clone(), None, body, plan).part("wait")
    }
}

fn wait(later: usize) -> Stmt {
    Stmt::from(Call { arguments: vec![Expr::constant(later as i64)], ..Call::plain(Inst::CopyAsyncWait) })
}

#[cfg(test)]
mod tests;
