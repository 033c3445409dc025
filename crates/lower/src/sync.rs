//! Barriers between dependent ops, derived from what their statements touch.
//!
//! Two accesses conflict when they touch a common byte and at least one writes. If all conflicts are within a thread,
//! program order suffices; if all are within warps, `__syncwarp` does; otherwise it takes `__syncthreads`. The weakest
//! barrier that suffices is put before the later op, unless a barrier between the two already orders them.
//!
//! The body of a loop is walked three times. First alone, then as the next iteration, so that the end of one iteration is
//! compared with the beginning of the next: of the next alone if there is a barrier in each iteration, since that orders
//! those that are further apart, else of all later ones. At last it is compared with what comes before the loop: a barrier that is
//! still missing then stands before the loop, where it is executed once. An op inside `n` loops is visited `2n + 1` times.
//! The barriers in a loop that may have no iterations do not order what comes before it with what comes after it.
//!
//! Ops of one role are ordered by barriers of the role, in which only its warps take part. Such a barrier orders nothing else.
//! Between roles, and between a role and other ops, it takes one of the CTA, which all threads reach: every loop around it is a
//! loop of all threads.
//!
//! Different parameters are assumed not to alias, as in CUDA libraries; only `permute_layout` allows its two operands
//! to be the same memory.

mod accesses;
mod block;
mod conflict;
mod names;
mod pitch;
mod shared;
mod tensors;
mod touched;

pub(crate) use block::{
    Block, Branch, Flight, FlightWay, IfBlock, LoopBlock, LoopPart, LoopRef, OpBlock, RequiredBarrier, for_each_op,
    role_of,
};

pub(crate) use names::name_in;

use std::rc::Rc;

use tilewright_ir::Handle;
use tilewright_ir::thread::Program;
use tilewright_ir::tile::Role;
use tilewright_layout::axis::Scope;

use accesses::AccessGroup;
use block::OpSegment;
use conflict::{Again, Order, conflict};
use touched::Touched;

/// Inserts the barriers that are needed before the ops of `blocks`.
pub(crate) fn derive_barriers(program: &Program, blocks: &mut [Block]) {
    let mut pass = BarrierPass { program, pending: Vec::new(), loops: Vec::new(), again: None, next: 0 };
    pass.walk(blocks, Pass::First);
}

/// Whether a loop body is walked for the first time, or again as the next iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    First,
    Again,
}

struct BarrierPass<'a> {
    program: &'a Program,
    /// Accesses that a later op may still have to be ordered after.
    pending: Vec<AccessGroup>,
    loops: Vec<LoopRef>,
    /// The loop whose next iteration is being walked.
    again: Option<Again>,
    /// The number of the next accesses that are found.
    next: usize,
}

impl BarrierPass<'_> {
    /// The widest scope of a barrier that this kernel needs: a warp if the CTA has only one, else the CTA.
    fn widest(&self) -> Scope {
        if self.program.threads <= 32 { Scope::Warp } else { Scope::Cta }
    }

    /// Whether a role has only one warp, so that its lanes are all that have to be ordered.
    fn has_one_warp(&self, role: Option<Handle<Role>>) -> bool {
        role.is_some_and(|role| self.program.roles[role].warps == 1)
    }

    fn walk(&mut self, blocks: &mut [Block], pass: Pass) {
        for block in blocks {
            match block {
                Block::Op(op) => self.op(op),
                Block::Loop(block) => self.repeat(block, pass),
                Block::If(branches) => {
                    self.op(&mut branches.first);
                    for branch in [&mut branches.then, &mut branches.otherwise] {
                        self.branch(branch, pass);
                    }
                }
            }
        }
    }

    /// Inner loops of a loop that is walked again are walked once: the barriers that their own iterations need have been
    /// found, and further barriers only order more.
    fn repeat(&mut self, block: &mut LoopBlock, pass: Pass) {
        if let Some((barrier, _)) = &block.barrier {
            self.pass(barrier.scope, barrier.role, 0);
        }
        let (outside, start) = (std::mem::take(&mut self.pending), self.next);
        self.loops.push(block.inner.clone());
        self.walk(&mut block.body, pass);
        if pass == Pass::First && block.inner.counter.repeats() {
            self.mark_earlier(start, true);
            let order = match has_barrier(&block.body, self.widest(), role_of(&block.body)) {
                _ if block.inner.next.is_some() => Order::Any,
                true if block.inner.part.is_none() => Order::Next,
                true | false => Order::Later,
            };
            let outer = self.again.replace(Again { counter: block.inner.counter.clone(), order });
            self.walk(&mut block.body, Pass::Again);
            self.again = outer;
        }
        // Seen from outside the loop, all of its iterations have finished.
        self.mark_earlier(start, false);
        let inside = std::mem::replace(&mut self.pending, outside);
        let mut missing = None;
        let before = self.pending.clone();
        self.find_missing(&block.body, &mut missing);
        if !block.inner.is_never_empty() {
            self.pending = before;
        }
        self.loops.pop();
        if let Some((needed, op)) = missing {
            self.pass(needed.scope, needed.role, 0);
            block.barrier = Some(match block.barrier.take() {
                None => (needed, op),
                Some((known, first)) => (known.and(needed), first),
            });
        }
        inside.into_iter().for_each(|accesses| self.keep(accesses));
    }

    /// Finds the barrier before a loop that orders its body after everything pending, as far as the barriers in the body do
    /// not, with the plan of the first op that needs it.
    fn find_missing(&mut self, body: &[Block], missing: &mut Option<(RequiredBarrier, usize)>) {
        for block in body {
            match block {
                Block::Op(op) => self.find_missing_before(op, missing),
                Block::Loop(inner) => {
                    if let Some((barrier, _)) = &inner.barrier {
                        self.pass(barrier.scope, barrier.role, 0);
                    }
                    self.loops.push(inner.inner.clone());
                    let before = self.pending.clone();
                    self.find_missing(&inner.body, missing);
                    if !inner.inner.is_never_empty() {
                        self.pending = before;
                    }
                    self.loops.pop();
                }
                Block::If(branches) => {
                    self.find_missing_before(&branches.first, missing);
                    for branch in [&branches.then, &branches.otherwise] {
                        let before = self.pending.clone();
                        self.find_missing(&branch.body, missing);
                        self.pending = before;
                    }
                }
            }
        }
    }

    fn find_missing_before(&mut self, op: &OpBlock, missing: &mut Option<(RequiredBarrier, usize)>) {
        if let Some(barrier) = &op.barrier {
            self.pass(barrier.scope, barrier.role, 0);
        }
        let parts = self.parts(op);
        if let Some(needed) = self.needed(&parts) {
            self.pass(needed.scope, needed.role, 0);
            *missing = Some(match missing.take() {
                None => (needed, op.op),
                Some((known, first)) => (known.and(needed), first),
            });
        }
        if op.guard.is_none() {
            let own = parts.iter().filter_map(|part| match part {
                OpSegment::Barrier(scope) => Some(*scope),
                OpSegment::Accesses(_) => None,
            });
            own.for_each(|scope| self.pass(scope, op.role, 0));
        }
    }

    /// A branch may not be taken, so its barriers do not order what comes before it with what comes after it.
    fn branch(&mut self, branch: &mut Branch, pass: Pass) {
        let (before, start) = (self.pending.clone(), self.next);
        self.walk(&mut branch.body, pass);
        let inside = self.pending.drain(..).filter(|accesses| accesses.number >= start);
        self.pending = before.into_iter().chain(inside.collect::<Vec<_>>()).collect();
    }

    /// Marks all accesses found since `start` as belonging to an earlier iteration, or not.
    fn mark_earlier(&mut self, start: usize, earlier: bool) {
        for accesses in self.pending.iter_mut().filter(|accesses| accesses.number >= start) {
            accesses.earlier = earlier;
        }
    }

    fn op(&mut self, op: &mut OpBlock) {
        if let Some(barrier) = &op.barrier {
            self.pass(barrier.scope, barrier.role, 0);
        }
        let parts = self.parts(op);
        if let Some(needed) = self.needed(&parts) {
            self.pass(needed.scope, needed.role, 0);
            op.barrier = Some(match op.barrier.take() {
                None => needed,
                Some(known) => known.and(needed),
            });
        }
        // A barrier that only some threads execute orders only the op's own accesses.
        let ordered_from = if op.guard.is_some() { self.next } else { 0 };
        let is_waited_for = op.is_load_by_engine();
        for part in parts {
            match part {
                OpSegment::Barrier(scope) => self.pass(scope, op.role, ordered_from),
                // Who uses what it fills has waited for it.
                OpSegment::Accesses(_) if is_waited_for => {}
                OpSegment::Accesses(accesses) => self.add(accesses),
            }
        }
    }

    /// The parts of an op at the current position of the walk. It stands in the same loops whenever it is visited.
    fn parts(&self, op: &OpBlock) -> Vec<OpSegment<AccessGroup>> {
        let touched = |segment| match segment {
            OpSegment::Barrier(scope) => OpSegment::Barrier(scope),
            OpSegment::Accesses(body) => OpSegment::Accesses(Rc::new(Touched::of(self.program, body, &self.loops))),
        };
        let segments = op.touched.get_or_init(|| Rc::new(op.parts().into_iter().map(touched).collect()));
        let mut number = self.next;
        let part = |segment: &OpSegment<Rc<Touched>>| match segment {
            OpSegment::Barrier(scope) => OpSegment::Barrier(*scope),
            OpSegment::Accesses(touched) => {
                number += 1;
                OpSegment::Accesses(AccessGroup {
                    title: op.title.clone(),
                    touched: Rc::clone(touched),
                    loops: self.loops.clone(),
                    role: op.role,
                    since: None,
                    since_in_role: false,
                    earlier: false,
                    number: number - 1,
                })
            }
        };
        segments.iter().map(part).collect()
    }

    /// Adds accesses to the pending ones, unless the same are pending: many ops that need no barriers between them would
    /// be compared with each other.
    fn add(&mut self, accesses: AccessGroup) {
        self.next = accesses.number + 1;
        self.keep(accesses);
    }

    fn keep(&mut self, accesses: AccessGroup) {
        if !self.pending.iter().any(|known| known.is_like(&accesses, self.program)) {
            self.pending.push(accesses);
        }
    }

    /// Applies a barrier, in a role or of all threads, to the pending accesses from number `from` on, and drops those that no
    /// later barrier could order better.
    fn pass(&mut self, scope: Scope, role: Option<Handle<Role>>, from: usize) {
        let widest = self.widest();
        let is_of_all = scope >= widest || self.has_one_warp(role);
        for accesses in self.pending.iter_mut().filter(|accesses| accesses.number >= from) {
            if role.is_none() {
                accesses.since = accesses.since.max(Some(scope));
            } else if role == accesses.role {
                accesses.since_in_role |= is_of_all;
                accesses.since = accesses.since.max(Some(Scope::Warp));
            }
        }
        self.pending.retain(|accesses| accesses.since < Some(widest));
    }

    /// The weakest barrier before the parts of an op that orders them after everything pending.
    fn needed(&self, parts: &[OpSegment<AccessGroup>]) -> Option<RequiredBarrier> {
        let mut needed: Option<RequiredBarrier> = None;
        // The strongest of the op's own barriers so far.
        let mut own: Option<Scope> = None;
        for part in parts {
            let later = match part {
                OpSegment::Barrier(scope) => {
                    own = own.max(Some(*scope));
                    continue;
                }
                OpSegment::Accesses(accesses) => accesses,
            };
            for earlier in &self.pending {
                // In one role, a barrier of the role is enough.
                let role = later.role.filter(|_| later.role == earlier.role);
                let ordered = match (later.role, role) {
                    (Some(_), Some(_)) if earlier.since_in_role => Some(self.widest()),
                    (Some(_), None) => earlier.since,
                    (None, _) | (Some(_), Some(_)) => earlier.since.max(own),
                };
                if ordered >= Some(self.widest()) {
                    continue;
                }
                let again = self.again.as_ref().filter(|_| earlier.earlier);
                let found = conflict(self.program, earlier, later, again, self.widest());
                let Some((scope, reason)) = found else { continue };
                let scope = if self.has_one_warp(role) { Scope::Warp } else { scope };
                // Lanes of a warp that the later op's role has: its warps wait for themselves.
                let role = if scope == Scope::Warp { later.role } else { role };
                if ordered < Some(scope) {
                    let reasons = vec![reason];
                    merge(&mut needed, RequiredBarrier { scope, role, reasons });
                }
            }
        }
        needed
    }
}

/// Whether all threads that execute these blocks, those of a role if there is one, execute a barrier of this scope in them,
/// whatever data and bounds of loops are.
fn has_barrier(body: &[Block], widest: Scope, role: Option<Handle<Role>>) -> bool {
    let is_widest = |known: &RequiredBarrier| known.scope >= widest && (known.role.is_none() || known.role == role);
    let in_op = |op: &OpBlock| {
        let own = |part: &OpSegment<_>| matches!(part, OpSegment::Barrier(scope) if *scope >= widest);
        let is_of_all = op.guard.is_none() && op.role == role;
        op.barrier.as_ref().is_some_and(is_widest) || (is_of_all && op.parts().iter().any(own))
    };
    body.iter().any(|block| match block {
        Block::Op(op) => in_op(op),
        Block::Loop(inner) => {
            inner.barrier.as_ref().is_some_and(|(barrier, _)| is_widest(barrier))
                || (inner.inner.is_never_empty() && has_barrier(&inner.body, widest, role))
        }
        Block::If(branches) => in_op(&branches.first),
    })
}

/// Keeps the barrier that orders most, and the reasons for it.
fn merge(needed: &mut Option<RequiredBarrier>, more: RequiredBarrier) {
    let strength = |barrier: &RequiredBarrier| (barrier.scope, barrier.role.is_none());
    match needed {
        Some(known) if strength(known) > strength(&more) => {}
        Some(known) if strength(known) == strength(&more) => {
            let new: Vec<String> = more.reasons.into_iter().filter(|reason| !known.reasons.contains(reason)).collect();
            known.reasons.extend(new);
        }
        _ => *needed = Some(more),
    }
}
