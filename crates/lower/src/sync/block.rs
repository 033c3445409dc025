//! The kernel's body while barriers are derived.

use tilewright_expr::Var;
use tilewright_ir::plan::Barrier;
use tilewright_ir::thread::{Cond, Inst, Stmt, Value};
use tilewright_layout::axis::Scope;

/// A loop of the kernel. Two loops may have the same variable, but not the same `id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopRef {
    pub(crate) id: usize,
    pub(crate) var: Var,
}

/// A tile op after lowering, before barriers are derived.
#[derive(Clone, Debug)]
pub(crate) struct OpBlock {
    pub(crate) title: String,
    /// The condition under which a thread executes the op, if not all threads do.
    pub(crate) guard: Option<Cond>,
    pub(crate) body: Vec<Stmt>,
    /// The barrier before the op.
    pub(crate) barrier: Option<RequiredBarrier>,
    /// Index of the op's plan.
    pub(crate) op: usize,
}

/// The kernel's body while barriers are derived.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Op(OpBlock),
    Loop { inner: LoopRef, body: Vec<Block> },
    If(Box<IfBlock>),
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

/// The barrier that stands before an op, and why.
#[derive(Clone, Debug)]
pub(crate) struct RequiredBarrier {
    pub(crate) scope: Scope,
    pub(crate) reasons: Vec<String>,
}

impl RequiredBarrier {
    pub(crate) fn inst(&self) -> Inst {
        if self.scope <= Scope::Warp { Inst::SyncWarp } else { Inst::SyncThreads }
    }

    pub(crate) fn plan(&self) -> Barrier {
        let what = if self.scope <= Scope::Warp { "__syncwarp" } else { "__syncthreads" };
        Barrier { what, reason: self.reasons.join("; ") }
    }
}

/// A part of an op's body, in order.
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

    fn guarded(&self, body: Vec<Stmt>) -> Vec<Stmt> {
        match &self.guard {
            None => body,
            Some(cond) => vec![Stmt::If { cond: cond.clone(), body }],
        }
    }
}
