//! What statements touch in shared memory, whatever block indices, sizes and data are.

use std::collections::BTreeSet;

use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Call, Cond, Memory, Program, Stmt, for_each_expr};
use tilewright_ir::{Handle, HwIndex};

/// The statements without those that access global memory, and without the conditions on block indices, on `unknown`
/// variables, and on what `is_open`: they touch at least what the statements touch in shared memory.
pub(super) fn in_shared(
    program: &Program,
    body: &[Stmt],
    unknown: &BTreeSet<Var>,
    is_open: &dyn Fn(&Expr) -> bool,
) -> Vec<Stmt> {
    with_used_names(Reduction { program, unknown, is_open }.body(body))
}

struct Reduction<'a> {
    program: &'a Program,
    unknown: &'a BTreeSet<Var>,
    is_open: &'a dyn Fn(&Expr) -> bool,
}

impl Reduction<'_> {
    fn body(&self, body: &[Stmt]) -> Vec<Stmt> {
        body.iter().flat_map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&self, stmt: &Stmt) -> Vec<Stmt> {
        match stmt {
            Stmt::If { cond, body } if self.is_open(cond) => self.body(body),
            Stmt::Unless { conds, body } if conds.iter().any(|cond| self.is_open(cond)) => self.body(body),
            Stmt::Inst(call) => self.in_call(call).into_iter().collect(),
            _ if self.accesses_global_memory(stmt) => Vec::new(),
            _ => vec![stmt.clone().map_inner(|body| self.body(&body))],
        }
    }

    /// An instruction with its operands in front of the first one in global memory, unless there are none.
    fn in_call(&self, call: &Call) -> Option<Stmt> {
        let is_shared = |(memory, _): &&(Handle<Memory>, Expr)| !self.is_global(*memory);
        let memory: Vec<(Handle<Memory>, Expr)> = call.memory.iter().take_while(is_shared).cloned().collect();
        (call.memory.is_empty() || !memory.is_empty()).then(|| Stmt::from(Call { memory, ..call.clone() }))
    }

    fn is_global(&self, memory: Handle<Memory>) -> bool {
        self.program.memories[memory].is_global()
    }

    fn is_open(&self, cond: &Cond) -> bool {
        let mut found = false;
        let mut add = |var: &Var| {
            found |= self.unknown.contains(var) || matches!(HwIndex::of(var), Some(HwIndex::Block(_)));
        };
        cond.sides().into_iter().for_each(|side: &Expr| side.for_each_var(&mut add));
        found || cond.sides().into_iter().any(self.is_open)
    }

    fn accesses_global_memory(&self, stmt: &Stmt) -> bool {
        stmt.accesses().any(|access| self.is_global(access.memory))
    }
}

/// The statements without variables that nothing after them uses.
fn with_used_names(body: Vec<Stmt>) -> Vec<Stmt> {
    let mut used: BTreeSet<Var> = BTreeSet::new();
    let mut kept = Vec::with_capacity(body.len());
    for stmt in body.into_iter().rev() {
        if matches!(&stmt, Stmt::Let { var, .. } if !used.contains(var)) {
            continue;
        }
        for_each_expr(std::slice::from_ref(&stmt), &mut |expr| {
            expr.for_each_var(&mut |var| {
                used.insert(var.clone());
            });
        });
        kept.push(stmt);
    }
    kept.reverse();
    kept
}
