//! What statements touch: thread statements evaluated for every thread of a CTA, without running anything.

use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Cond, Inst, Memory, MemorySpace, Program, Regs, Stmt};
use tilewright_ir::Handle;

/// One access of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) thread: i64,
    /// Position of the statement among the loads and stores, in order of execution; the same for all threads.
    pub(crate) step: usize,
    pub(crate) memory: Handle<Memory>,
    pub(crate) first_byte: i64,
    pub(crate) bytes: i64,
    pub(crate) writes: bool,
}

/// Values of the variables that are defined outside the traced statements.
pub(crate) type Env = Vec<(Var, i64)>;

pub(crate) struct Tracer<'a> {
    program: &'a Program,
    env: Env,
    thread: i64,
    step: usize,
    touches: Vec<Touch>,
}

/// The accesses of `threads` in `body`, where `outer` gives loop variables and block indices (0 if it does not).
pub(crate) fn trace(program: &Program, body: &[Stmt], threads: std::ops::Range<i64>, outer: &Env) -> Vec<Touch> {
    let mut touches = Vec::new();
    for thread in threads {
        let mut tracer = Tracer { program, env: outer.clone(), thread, step: 0, touches: std::mem::take(&mut touches) };
        tracer.body(body);
        touches = tracer.touches;
    }
    touches
}

/// The memory that owns the bytes of `memory`.
pub(crate) fn owner(program: &Program, memory: Handle<Memory>) -> Handle<Memory> {
    match program.memories[memory].space {
        MemorySpace::SharedView { of } => of,
        MemorySpace::Global { .. } | MemorySpace::Shared => memory,
    }
}

impl Tracer<'_> {
    fn body(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Op { body, .. } => self.body(body),
            Stmt::Let { var, value } => {
                let value = self.eval(value);
                self.env.push((var.clone(), value));
            }
            Stmt::Load { to, memory, index } => self.access(*memory, index, to, false),
            Stmt::Store { memory, index, from } => self.access(*memory, index, from, true),
            Stmt::For { var, body } => {
                let range = var.range();
                for value in range.lo..=range.hi {
                    self.env.push((var.clone(), value));
                    self.body(body);
                    self.env.retain(|(known, _)| known != var);
                }
            }
            Stmt::If { cond, body } => {
                let holds = match cond {
                    Cond::Less(a, b) => self.eval(a) < self.eval(b),
                    Cond::Equal(a, b) => self.eval(a) == self.eval(b),
                };
                if holds {
                    self.body(body);
                } else {
                    self.step += count_accesses(body);
                }
            }
            Stmt::Declare(_) | Stmt::Set { .. } | Stmt::Move { .. } | Stmt::Inst(Inst::SyncWarp | Inst::SyncThreads) => {}
        }
    }

    fn access(&mut self, memory: Handle<Memory>, index: &Expr, regs: &Regs, writes: bool) {
        let bytes = self.program.memories[memory].dtype.bytes();
        let first_byte = self.eval(index) * bytes;
        let touch = Touch { thread: self.thread, step: self.step, memory, first_byte, bytes: bytes * regs.count, writes };
        self.touches.push(touch);
        self.step += 1;
    }

    /// Verified statements only use defined variables; what is not in the environment is a hardware index or 0.
    fn eval(&self, expr: &Expr) -> i64 {
        expr.eval(&|var| Some(self.value(var))).unwrap_or(0)
    }

    fn value(&self, var: &Var) -> i64 {
        match var.name() {
            "lane" => self.thread % 32,
            "warp" => self.thread / 32,
            "tid" => self.thread,
            _ => self.env.iter().rev().find(|(known, _)| known == var).map_or(var.range().lo, |(_, value)| *value),
        }
    }
}

/// How many accesses one execution of `body` is, if every condition held.
fn count_accesses(body: &[Stmt]) -> usize {
    body.iter()
        .map(|stmt| match stmt {
            Stmt::Load { .. } | Stmt::Store { .. } => 1,
            Stmt::Op { body, .. } | Stmt::If { body, .. } => count_accesses(body),
            Stmt::For { var, body } => count_accesses(body) * (var.range().hi - var.range().lo + 1).max(0) as usize,
            Stmt::Let { .. } | Stmt::Declare(_) | Stmt::Set { .. } | Stmt::Move { .. } | Stmt::Inst(_) => 0,
        })
        .sum()
}
