//! What a schedule costs: its statements traced for one warp, its expressions counted.

use std::collections::BTreeSet;

use tilewright_expr::{Expr, Node};
use tilewright_ir::plan::{Access, Facts, Memory as PlanMemory};
use tilewright_ir::thread::{Cond, MemorySpace, Program, Stmt};
use tilewright_layout::access::{AccessKind, LANES, WarpAccess};

use crate::trace::{Touch, trace};

/// Facts of `body`, executed once by the busiest warp (the first: tails fall to the later ones).
pub(crate) fn measure(program: &Program, body: &[Stmt], warp: i64, summary: String) -> Facts {
    let touches = trace(program, body, warp..warp + 1, &Vec::new());
    let accesses = accesses(program, &touches);
    let mut counter = Counter::default();
    counter.body(body, 1);
    let registers = register_bytes(program, body);
    Facts {
        summary,
        accesses,
        instructions: counter.instructions + counter.arithmetic.len() as i64,
        registers: (registers + 3) / 4,
    }
}

fn accesses(program: &Program, touches: &[Touch]) -> Vec<Access> {
    let steps = touches.iter().map(|t| t.step + 1).max().unwrap_or(0);
    let mut by_step: Vec<Vec<&Touch>> = vec![Vec::new(); steps];
    for touch in touches {
        by_step[touch.step].push(touch);
    }
    let mut found: Vec<Access> = Vec::new();
    for lanes in by_step.iter().filter(|lanes| !lanes.is_empty()) {
        let one = access_of(program, lanes);
        match found.iter_mut().find(|a| a.what == one.what && a.width == one.width) {
            Some(sum) => {
                sum.count += 1;
                sum.passes += one.passes;
                sum.ideal += one.ideal;
                sum.bytes += one.bytes;
            }
            None => found.push(one),
        }
    }
    found
}

/// One access of one warp.
fn access_of(program: &Program, lanes: &[&Touch]) -> Access {
    let first = lanes[0];
    let memory = &program.memories[first.memory];
    let mut addresses = [None; LANES];
    for touch in lanes {
        addresses[(touch.thread % 32) as usize] = Some(touch.first_byte as u64);
    }
    let kind = if first.writes { AccessKind::Store } else { AccessKind::Load };
    let access = WarpAccess { addresses, width: first.bytes as u64, kind };
    let (memory_kind, passes, ideal) = match memory.space {
        MemorySpace::Global { .. } => (PlanMemory::Global, access.sectors(), access.ideal_sectors()),
        MemorySpace::Shared | MemorySpace::SharedView { .. } => {
            (PlanMemory::Shared, access.wavefronts(), access.ideal_wavefronts())
        }
    };
    let verb = if first.writes { "write" } else { "read" };
    Access {
        what: format!("{verb} {}", memory.name),
        memory: memory_kind,
        width: first.bytes,
        count: 1,
        passes: i64::from(passes),
        ideal: i64::from(ideal),
        bytes: lanes.iter().map(|t| t.bytes).sum(),
    }
}

/// Instructions of one lane: one per access, barrier, branch and constant, and one per distinct operation in an index.
#[derive(Default)]
struct Counter {
    instructions: i64,
    arithmetic: BTreeSet<Expr>,
}

impl Counter {
    fn body(&mut self, body: &[Stmt], times: i64) {
        for stmt in body {
            match stmt {
                Stmt::Op { body, .. } => self.body(body, times),
                Stmt::Let { value, .. } => self.expr(value),
                Stmt::Declare(_) => {}
                Stmt::Load { index, .. } | Stmt::Store { index, .. } => {
                    self.instructions += times;
                    self.expr(index);
                }
                Stmt::Set { to, .. } => self.instructions += times * to.count,
                Stmt::Move { to, .. } => self.instructions += times * to.count,
                Stmt::For { var, body } => {
                    let range = var.range();
                    let trips = range.hi - range.lo + 1;
                    // Counter, comparison and branch.
                    self.instructions += 3 * times * trips;
                    self.body(body, times * trips);
                }
                Stmt::If { cond, body } => {
                    self.instructions += 2 * times;
                    let (Cond::Less(a, b) | Cond::Equal(a, b)) = cond;
                    self.expr(a);
                    self.expr(b);
                    self.body(body, times);
                }
                Stmt::Inst(_) => self.instructions += times,
            }
        }
    }

    /// Counts the distinct operations of an index; a last constant summand is part of the address of the access.
    fn expr(&mut self, expr: &Expr) {
        if let Node::Add(a, b) = expr.node()
            && b.as_const().is_some()
        {
            return self.expr(a);
        }
        if let Some((a, b)) = expr.operands()
            && self.arithmetic.insert(expr.clone())
        {
            self.expr(a);
            self.expr(b);
        }
    }
}

/// Bytes of all register arrays that `body` declares.
fn register_bytes(program: &Program, body: &[Stmt]) -> i64 {
    let declared = |stmt: &Stmt| {
        if let Stmt::Declare(array) = stmt {
            let array = &program.registers[*array];
            return array.len * array.dtype.bytes();
        }
        0
    };
    body.iter().map(|stmt| declared(stmt) + register_bytes(program, stmt.inner())).sum()
}
