//! The kernel's body while barriers are derived.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::Barrier;
use tilewright_ir::thread::{Cond, Cursor, Inst, Memory, RegArray, Stmt, Value, for_each_stmt};
use tilewright_ir::tile::{Blocks, EngineOffers, Part, Role};
use tilewright_ir::{Counter, Handle};
use tilewright_layout::axis::Scope;

use super::touched::Touched;
use crate::pipeline::RunsAhead;

/// A loop of the kernel. Two loops may count alike, but not the same `id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopRef {
    pub(crate) id: usize,
    pub(crate) counter: Counter,
    /// What is named in each iteration, before anything else.
    pub(crate) names: Vec<(Var, Expr)>,
    /// Whether this is the name of an expression rather than a loop.
    pub(crate) is_name: bool,
    /// The register that has the next value at the end of an iteration, if it is a loop over tiles that are claimed.
    pub(crate) next: Option<Handle<RegArray>>,
    /// Which iterations the role executes, if not all.
    pub(crate) part: Option<Box<LoopPart>>,
    /// The tensors of which each iteration accesses blocks of its own.
    pub(crate) own: BTreeMap<Handle<Memory>, Blocks>,
}

/// The iterations of a loop that a role executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopPart {
    pub(crate) part: Part,
    /// It holds for those.
    pub(crate) is_own: Cond,
    /// The stages of rings that the role passes in each of the others, with the plans of the rings.
    pub(crate) passed: Vec<(Handle<Cursor>, usize, Expr)>,
}

impl LoopRef {
    /// A loop in which nothing is named.
    pub(crate) fn new(id: usize, counter: Counter) -> LoopRef {
        LoopRef { id, counter, names: Vec::new(), is_name: false, next: None, part: None, own: BTreeMap::new() }
    }

    /// Whether no iteration of this loop accesses the same elements of a tensor as one of another loop does, since roles execute them in
    /// turns.
    pub(crate) fn is_in_other_turn(&self, other: &LoopRef, memory: Handle<Memory>) -> bool {
        let part = |of: &LoopRef| of.part.as_ref().map(|part| part.part);
        let in_turns = part(self).zip(part(other)).is_some_and(|(a, b)| a.of == b.of && a.index != b.index);
        let range = |of: &LoopRef| {
            let Counter { var: _, begin, end, step } = of.counter.clone();
            (begin, end, step)
        };
        let blocks = self.own.get(&memory);
        in_turns && range(self) == range(other) && blocks.is_some() && blocks == other.own.get(&memory)
    }

    /// Whether it has an iteration that the role executes, whatever sizes and outer variables are.
    pub(crate) fn is_never_empty(&self) -> bool {
        self.part.is_none() && self.counter.is_never_empty()
    }
}

/// A tile op after lowering, before barriers are derived.
#[derive(Clone, Debug)]
pub(crate) struct OpBlock {
    pub(crate) title: String,
    /// The condition under which a thread executes the op, if not all threads do.
    pub(crate) guard: Option<Cond>,
    /// The role whose warps execute the op, if not all do. In its statements, warps and threads are counted from the first of
    /// the role, and barriers are those of the role.
    pub(crate) role: Option<Handle<Role>>,
    pub(crate) body: Vec<Stmt>,
    /// The barrier before the op.
    pub(crate) barrier: Option<RequiredBarrier>,
    /// Index of the op's plan.
    pub(crate) op: usize,
    /// How it may stay in flight until something needs it, if it is an asynchronous copy.
    pub(crate) flight: Option<Rc<Flight>>,
    /// What it does, if it is a part of what the plan is about.
    pub(crate) part: Option<&'static str>,
    /// Its parts with what they touch, once this has been asked for.
    pub(super) touched: OnceCell<Rc<Vec<OpSegment<Rc<Touched>>>>>,
}

impl OpBlock {
    /// An op before which no barrier is known to be needed.
    pub(crate) fn new(title: String, guard: Option<Cond>, body: Vec<Stmt>, op: usize) -> OpBlock {
        OpBlock {
            title,
            guard,
            role: None,
            body,
            barrier: None,
            op,
            flight: None,
            part: None,
            touched: OnceCell::new(),
        }
    }

    /// The same op as a part of what its plan is about.
    pub(crate) fn part(self, part: &'static str) -> OpBlock {
        OpBlock { part: Some(part), ..self }
    }

    /// The same op as a copy that may stay in flight until something needs it.
    pub(crate) fn in_flight(self, flight: Flight) -> OpBlock {
        OpBlock { flight: Some(Rc::new(flight)), ..self }
    }

    /// Whether it starts copies by the copy engine to shared memory, which stay in flight until who needs them has waited.
    pub(crate) fn is_load_by_engine(&self) -> bool {
        let mut fills = false;
        if self.flight.is_some() {
            let is_fill = |stmt: &Stmt| matches!(stmt, Stmt::TensorCopy(copy) if copy.full().is_some());
            for_each_stmt(&self.body, &mut |stmt| fills |= is_fill(stmt));
        }
        fills
    }

    /// The same op, executed by the warps of a role.
    pub(crate) fn of(self, role: Option<Handle<Role>>) -> OpBlock {
        OpBlock { role, ..self }
    }

    /// The same op with other statements.
    pub(crate) fn with_body(&self, body: Vec<Stmt>) -> OpBlock {
        OpBlock::new(self.title.clone(), self.guard.clone(), body, self.op).of(self.role)
    }
}

/// How a copy may stay in flight until something needs it.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    /// The variant that the user asks for.
    pub(crate) asked: Option<&'static str>,
    /// What executes it.
    pub(crate) way: FlightWay,
}

/// What executes a copy that stays in flight. With each kind that the copy engine has: how it does it.
#[derive(Clone, Debug)]
pub(crate) enum FlightWay {
    /// From a tensor to shared memory: threads, by asynchronous copies, or the copy engine.
    Load(Box<EngineOffers>),
    /// From shared memory to a tensor: the copy engine.
    Store(Box<EngineOffers>),
    /// Another copy, which nothing executes later.
    Other,
}

/// The kernel's body while barriers are derived.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Op(OpBlock),
    Loop(LoopBlock),
    If(Box<IfBlock>),
}

/// A loop around ops.
#[derive(Clone, Debug)]
pub(crate) struct LoopBlock {
    pub(crate) inner: LoopRef,
    /// The barrier before the loop, and the index of the plan of the first op that needs it.
    pub(crate) barrier: Option<(RequiredBarrier, usize)>,
    pub(crate) body: Vec<Block>,
    /// What may run ahead in it.
    pub(crate) ahead: Option<RunsAhead>,
}

/// A condition that is the same for all threads, and its two branches.
#[derive(Clone, Debug)]
pub(crate) struct IfBlock {
    /// Computes the condition.
    pub(crate) first: OpBlock,
    pub(crate) then: Branch,
    pub(crate) otherwise: Branch,
}

/// A condition, and what is executed under it.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    /// The condition: that the stored truth value is the one of this branch.
    pub(crate) cond: Value,
    pub(crate) body: Vec<Block>,
}

/// The barrier that stands before an op or a loop, and why.
#[derive(Clone, Debug)]
pub(crate) struct RequiredBarrier {
    pub(crate) scope: Scope,
    /// The role whose warps wait for each other; `None` if all of the CTA do.
    pub(crate) role: Option<Handle<Role>>,
    pub(crate) reasons: Vec<String>,
}

impl RequiredBarrier {
    pub(crate) fn inst(&self) -> Inst {
        if self.scope <= Scope::Warp { Inst::SyncWarp } else { Inst::SyncThreads }
    }

    /// The barrier in the plan of an op, before which it stands, or before the loop around which.
    pub(crate) fn plan(&self, is_before_loop: bool) -> Barrier {
        let what = match (self.scope <= Scope::Warp, self.role.is_some(), is_before_loop) {
            (true, _, false) => "__syncwarp",
            (false, false, false) => "__syncthreads",
            (false, true, false) => "barrier of the role",
            (true, _, true) => "__syncwarp before the loop",
            (false, false, true) => "__syncthreads before the loop",
            (false, true, true) => "barrier of the role before the loop",
        };
        Barrier { what: what.to_string(), reason: self.reasons.join("; ") }
    }

    /// One barrier in place of both.
    pub(super) fn and(self, other: RequiredBarrier) -> RequiredBarrier {
        let (scope, role) = (self.scope.max(other.scope), self.role.filter(|role| Some(*role) == other.role));
        RequiredBarrier { scope, role, reasons: self.reasons.into_iter().chain(other.reasons).collect() }
    }
}

/// The role whose warps alone execute blocks; `None` if others execute some of them too, or wait at a barrier in them.
pub(crate) fn role_of(blocks: &[Block]) -> Option<Handle<Role>> {
    let roles = blocks.iter().map(|block| match block {
        Block::Op(op) => op.role.filter(|_| is_of(op.role, op.barrier.as_ref())),
        Block::Loop(inner) => {
            let role = role_of(&inner.body);
            role.filter(|_| is_of(role, inner.barrier.as_ref().map(|(barrier, _)| barrier)))
        }
        Block::If(branches) => {
            let IfBlock { first, then, otherwise } = &**branches;
            let is_own = |side: &Branch| side.body.is_empty() || role_of(&side.body) == first.role;
            first.role.filter(|_| is_of(first.role, first.barrier.as_ref()) && is_own(then) && is_own(otherwise))
        }
    });
    let roles: Vec<Option<Handle<Role>>> = roles.collect();
    let first = *roles.first()?;
    first.filter(|_| roles.iter().all(|role| *role == first))
}

/// Whether a barrier, if there is one, is one of this role.
fn is_of(role: Option<Handle<Role>>, barrier: Option<&RequiredBarrier>) -> bool {
    barrier.is_none_or(|barrier| barrier.role == role)
}

/// Calls `visit` on all ops of blocks.
pub(crate) fn for_each_op(blocks: &mut [Block], visit: &mut dyn FnMut(&mut OpBlock)) {
    for block in blocks {
        match block {
            Block::Op(op) => visit(op),
            Block::Loop(inner) => for_each_op(&mut inner.body, visit),
            Block::If(branches) => {
                visit(&mut branches.first);
                for_each_op(&mut branches.then.body, visit);
                for_each_op(&mut branches.otherwise.body, visit);
            }
        }
    }
}

/// A part of an op's body, in order.
#[derive(Clone, Debug)]
pub(super) enum OpSegment<A> {
    Accesses(A),
    Barrier(Scope),
}

impl OpBlock {
    /// The op's accesses, cut at its own barriers. Each part repeats the variables defined before it, so it can be
    /// traced alone.
    pub(super) fn parts(&self) -> Vec<OpSegment<Vec<Stmt>>> {
        let mut parts = Vec::new();
        let mut names: Vec<Stmt> = Vec::new();
        let mut current: Vec<Stmt> = Vec::new();
        for stmt in &self.body {
            let scope = stmt.orders();
            if scope > Scope::Thread {
                parts.push(OpSegment::Accesses(self.guarded(std::mem::replace(&mut current, names.clone()))));
                parts.push(OpSegment::Barrier(scope));
                continue;
            }
            // The variable of a loop is not visible after the loop.
            if stmt.inner().is_empty() && !stmt.defines().is_empty() {
                names.push(stmt.clone());
            }
            current.push(stmt.clone());
        }
        parts.push(OpSegment::Accesses(self.guarded(current)));
        parts
    }

    /// Statements of the op, for all threads of the CTA.
    fn guarded(&self, body: Vec<Stmt>) -> Vec<Stmt> {
        let body = match &self.guard {
            None => body,
            Some(cond) => vec![Stmt::If { cond: cond.clone(), body }],
        };
        match self.role {
            None => body,
            Some(role) => vec![Stmt::Role { role, body }],
        }
    }
}
