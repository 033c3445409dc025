//! Barriers between dependent ops, derived from what their statements touch.
//!
//! Two accesses conflict when they touch a common byte and at least one writes. If one thread does both, program order
//! suffices; if all such pairs are within warps, `__syncwarp` does; else `__syncthreads`. The weakest that suffices is
//! put before the later op, unless a barrier between the two already orders them. The body of a loop is walked once more
//! behind itself, so that the end of one iteration meets the beginning of the next: an op inside of `n` loops is visited
//! `n + 1` times.
//!
//! Different parameters are taken to be different memory, as in CUDA libraries; only `permute_layout` allows its two
//! operands to be the same.

mod conflict;

use tilewright_expr::Var;
use tilewright_ir::plan::Barrier;
use tilewright_ir::thread::{Cond, Inst, Program, Stmt, Value};
use tilewright_layout::axis::Scope;

use conflict::conflict;

/// A tile op after lowering, before it is put in order with the others.
#[derive(Clone, Debug)]
pub(crate) struct OpBlock {
    pub(crate) title: String,
    /// Holds for the threads that do the op, if not all do.
    pub(crate) guard: Option<Cond>,
    pub(crate) body: Vec<Stmt>,
    /// The barrier before it.
    pub(crate) barrier: Option<Needed>,
    /// Position of its plan and note.
    pub(crate) op: usize,
}

/// The kernel's body while barriers are derived.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Op(OpBlock),
    Loop { inner: LoopRef, body: Vec<Block> },
    If(Box<IfBlock>),
}

/// A condition that is the same for all threads, and what happens where it holds and where it does not.
#[derive(Clone, Debug)]
pub(crate) struct IfBlock {
    /// What the condition is made of.
    pub(crate) first: OpBlock,
    pub(crate) then: Branch,
    pub(crate) otherwise: Branch,
}

/// What happens under a condition.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) cond: Value,
    pub(crate) body: Vec<Block>,
}

/// A loop of the kernel: two loops may have the same variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopRef {
    pub(crate) id: usize,
    pub(crate) var: Var,
}

/// The barrier that stands before an op, and why.
#[derive(Clone, Debug)]
pub(crate) struct Needed {
    pub(crate) scope: Scope,
    pub(crate) reasons: Vec<String>,
}

impl Needed {
    pub(crate) fn inst(&self) -> Inst {
        if self.scope <= Scope::Warp { Inst::SyncWarp } else { Inst::SyncThreads }
    }

    pub(crate) fn plan(&self) -> Barrier {
        let what = if self.scope <= Scope::Warp { "__syncwarp" } else { "__syncthreads" };
        Barrier { what, reason: self.reasons.join("; ") }
    }
}

/// Puts the barriers that are needed before the ops of `blocks`.
pub(crate) fn derive_barriers(program: &Program, blocks: &mut [Block]) {
    let mut order = Order { program, pending: Vec::new(), loops: Vec::new(), next: 0 };
    order.walk(blocks, Pass::First);
}

/// Accesses of an op between two barriers of its own.
#[derive(Clone, Debug)]
struct Accesses {
    title: String,
    body: Vec<Stmt>,
    /// Loops around the op.
    loops: Vec<LoopRef>,
    /// The strongest barrier that has come since.
    since: Option<Scope>,
    /// It belongs to an earlier iteration of a loop that is being walked again.
    earlier: bool,
    /// Its place in the order in which accesses were found.
    number: usize,
}

/// Whether a body is walked for the first time, or after itself as the next iteration of a loop around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    First,
    Again,
}

struct Order<'a> {
    program: &'a Program,
    pending: Vec<Accesses>,
    loops: Vec<LoopRef>,
    /// The number of the next accesses that are found.
    next: usize,
}

/// What an op does, in order.
enum Part {
    Accesses(Vec<Stmt>),
    Barrier(Scope),
}

impl OpBlock {
    /// Its accesses, cut at its own barriers. Each part carries the names defined before it, so it can be traced alone.
    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut names: Vec<Stmt> = Vec::new();
        let mut current: Vec<Stmt> = Vec::new();
        for stmt in &self.body {
            let scope = stmt.orders();
            if scope > Scope::Thread {
                parts.push(Part::Accesses(self.guarded(std::mem::replace(&mut current, names.clone()))));
                parts.push(Part::Barrier(scope));
                continue;
            }
            // A loop keeps the name of its variable to itself.
            if stmt.inner().is_empty() && !stmt.defines().is_empty() {
                names.push(stmt.clone());
            }
            current.push(stmt.clone());
        }
        parts.push(Part::Accesses(self.guarded(current)));
        parts
    }

    fn guarded(&self, body: Vec<Stmt>) -> Vec<Stmt> {
        match &self.guard {
            None => body,
            Some(cond) => vec![Stmt::If { cond: cond.clone(), body }],
        }
    }
}

impl Order<'_> {
    /// The scope beyond which no barrier of a CTA goes.
    fn widest(&self) -> Scope {
        if self.program.threads <= 32 { Scope::Warp } else { Scope::Cta }
    }

    /// Loops are walked a second time, so that the end of an iteration meets the beginning of the next. In that pass the
    /// loops inside are walked once: what their own iterations need has been found, and more barriers order more.
    fn walk(&mut self, blocks: &mut [Block], pass: Pass) {
        for block in blocks {
            match block {
                Block::Op(op) => self.op(op),
                Block::Loop { inner, body } => {
                    let start = self.next;
                    self.loops.push(inner.clone());
                    self.walk(body, pass);
                    if pass == Pass::First && inner.var.range().lo < inner.var.range().hi {
                        self.mark_earlier(start, true);
                        self.walk(body, Pass::Again);
                    }
                    self.loops.pop();
                    // Seen from outside the loop, all of its iterations are over.
                    self.mark_earlier(start, false);
                }
                Block::If(branches) => {
                    self.op(&mut branches.first);
                    for branch in [&mut branches.then, &mut branches.otherwise] {
                        self.branch(branch, pass);
                    }
                }
            }
        }
    }

    /// A branch may not be taken: its barriers order nothing that comes from before it for what comes after it.
    fn branch(&mut self, branch: &mut Branch, pass: Pass) {
        let (before, start) = (self.pending.clone(), self.next);
        self.walk(&mut branch.body, pass);
        let inside = self.pending.drain(..).filter(|accesses| accesses.number >= start);
        self.pending = before.into_iter().chain(inside.collect::<Vec<_>>()).collect();
    }

    /// Says of everything found since `start` whether it belongs to an earlier iteration of what is walked next.
    fn mark_earlier(&mut self, start: usize, earlier: bool) {
        for accesses in self.pending.iter_mut().filter(|accesses| accesses.number >= start) {
            accesses.earlier = earlier;
        }
    }

    fn op(&mut self, op: &mut OpBlock) {
        if let Some(barrier) = &op.barrier {
            self.pass(barrier.scope, 0);
        }
        if let Some(needed) = self.needed(op) {
            self.pass(needed.scope, 0);
            op.barrier = Some(match op.barrier.take() {
                None => needed,
                Some(known) => Needed {
                    scope: known.scope.max(needed.scope),
                    reasons: known.reasons.into_iter().chain(needed.reasons).collect(),
                },
            });
        }
        // A barrier that only some threads execute orders nothing but the op's own accesses.
        let ordered_from = if op.guard.is_some() { self.next } else { 0 };
        for part in op.parts() {
            match part {
                Part::Barrier(scope) => self.pass(scope, ordered_from),
                Part::Accesses(body) => {
                    let accesses = self.accesses(&op.title, body);
                    self.pending.push(accesses);
                    self.next += 1;
                }
            }
        }
    }

    /// Accesses at the current place of the walk.
    fn accesses(&self, title: &str, body: Vec<Stmt>) -> Accesses {
        let loops = self.loops.clone();
        Accesses { title: title.to_string(), body, loops, since: None, earlier: false, number: self.next }
    }

    /// A barrier follows what is pending from number `from` on; what no later barrier could order better is done with.
    fn pass(&mut self, scope: Scope, from: usize) {
        let widest = self.widest();
        for accesses in self.pending.iter_mut().filter(|accesses| accesses.number >= from) {
            accesses.since = accesses.since.max(Some(scope));
        }
        self.pending.retain(|accesses| accesses.since < Some(widest));
    }

    /// The weakest barrier before `op` that orders it after everything pending.
    fn needed(&self, op: &OpBlock) -> Option<Needed> {
        let mut needed: Option<Needed> = None;
        let mut own: Option<Scope> = None;
        for part in op.parts() {
            let body = match part {
                Part::Barrier(scope) => {
                    own = own.max(Some(scope));
                    continue;
                }
                Part::Accesses(body) => body,
            };
            let later = self.accesses(&op.title, body);
            for earlier in &self.pending {
                let ordered = earlier.since.max(own);
                if ordered >= Some(self.widest()) {
                    continue;
                }
                let Some((scope, reason)) = conflict(self.program, earlier, &later, self.widest()) else { continue };
                if ordered < Some(scope) {
                    merge(&mut needed, scope, reason);
                }
            }
        }
        needed
    }
}

/// Keeps the widest scope and the reasons for it.
fn merge(needed: &mut Option<Needed>, scope: Scope, reason: String) {
    match needed {
        Some(known) if known.scope > scope => {}
        Some(known) if known.scope == scope => {
            if !known.reasons.contains(&reason) {
                known.reasons.push(reason);
            }
        }
        _ => *needed = Some(Needed { scope, reasons: vec![reason] }),
    }
}
