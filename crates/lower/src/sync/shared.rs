//! What statements touch in shared memory, whatever block indices, sizes and data are.

use std::collections::BTreeSet;

use tilewright_expr::{Expr, Var};
use tilewright_ir::HwIndex;
use tilewright_ir::thread::{Cond, MemorySpace, Program, Stmt, for_each_expr};

/// The statements without those that access global memory, and without the conditions on block indices and `unknown`
/// variables: they touch at least what the statements touch in shared memory.
pub(super) fn in_shared(program: &Program, unknown: &BTreeSet<Var>, body: &[Stmt]) -> Vec<Stmt> {
    with_used_names(Reduction { program, unknown }.body(body))
}

struct Reduction<'a> {
    program: &'a Program,
    unknown: &'a BTreeSet<Var>,
}

impl Reduction<'_> {
    fn body(&self, body: &[Stmt]) -> Vec<Stmt> {
        body.iter().flat_map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&self, stmt: &Stmt) -> Vec<Stmt> {
        match stmt {
            Stmt::If { cond, body } if self.is_open(cond) => self.body(body),
            Stmt::Unless { conds, body } if conds.iter().any(|cond| self.is_open(cond)) => self.body(body),
            _ if self.accesses_global_memory(stmt) => Vec::new(),
            _ => vec![stmt.clone().map_inner(|body| self.body(&body))],
        }
    }

    fn is_open(&self, cond: &Cond) -> bool {
        let mut found = false;
        let mut add = |var: &Var| {
            found |= self.unknown.contains(var) || matches!(HwIndex::of(var), Some(HwIndex::Block(_)));
        };
        cond.sides().into_iter().for_each(|side: &Expr| side.for_each_var(&mut add));
        found
    }

    fn accesses_global_memory(&self, stmt: &Stmt) -> bool {
        let is_global = |memory| matches!(self.program.memories[memory].space, MemorySpace::Global { .. });
        stmt.accesses().any(|access| is_global(access.memory))
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
