//! How many instructions statements become, as PTX has them.
//!
//! Counted are accesses, barriers, branches and constants, the distinct operations of indices, and for every distinct
//! index what makes it an address. NVRTC finds shorter forms of some indices, and keeps more or fewer values than this
//! model; moves between registers are not counted, since `ptxas` gives both one register.

use std::collections::BTreeSet;

use tilewright_expr::{Expr, Node, Var};
use tilewright_ir::thread::{Cond, Inst, Issue, Memory, MemorySpace, Program, Regs, Stmt};
use tilewright_ir::{Handle, Target};

use crate::trace::owner;

/// Iterations up to which NVRTC writes out a loop.
const UNROLLED: i64 = 4;

/// Instructions of a warp, by the conditions under which it issues them.
pub(crate) struct Counter<'a> {
    program: &'a Program,
    issues: Vec<Issue>,
    shuffles: i64,
    /// Distinct operations.
    arithmetic: BTreeSet<Expr>,
    /// Indices, without a last constant summand, which is part of the access.
    addresses: BTreeSet<(Handle<Memory>, Expr)>,
    memories: Vec<Handle<Memory>>,
    conditions: Vec<Cond>,
    /// The registers of every access.
    held: Vec<Regs>,
    /// The loops around the current statement, and their iterations.
    loops: Vec<(Var, i64)>,
    /// Conditions around the current statement, in terms of hardware indices, sizes and loop variables.
    guards: Vec<Cond>,
    /// Variables and their values.
    lets: Vec<(Var, Expr)>,
}

/// Instructions of one warp in `body`, with what its ops share counted once.
pub(crate) fn instructions(program: &Program, body: &[Stmt]) -> Vec<Issue> {
    let mut counter = Counter::of(program, body);
    let packing = counter.packing();
    counter.add(packing);
    counter.issues
}

impl<'a> Counter<'a> {
    pub(crate) fn of(program: &'a Program, body: &[Stmt]) -> Counter<'a> {
        let mut counter = Counter {
            program,
            issues: Vec::new(),
            shuffles: 0,
            arithmetic: BTreeSet::new(),
            addresses: BTreeSet::new(),
            memories: Vec::new(),
            conditions: Vec::new(),
            held: Vec::new(),
            loops: Vec::new(),
            guards: Vec::new(),
            lets: Vec::new(),
        };
        counter.body(body);
        counter
    }

    /// Instructions of the busiest warp, for which all conditions hold.
    pub(crate) fn total(&self) -> i64 {
        self.issues.iter().fold(self.packing(), |sum, issue| sum.saturating_add(issue.instructions))
    }

    pub(crate) fn shuffles(&self) -> i64 {
        self.shuffles
    }

    /// Counts instructions of all iterations of the loops around.
    fn add(&mut self, instructions: i64) {
        let is_named = |var: &Var| self.guards.iter().any(|guard| guard.mentions(var));
        let loops: Vec<Var> = self.loops.iter().map(|(var, _)| var).filter(|var| is_named(var)).cloned().collect();
        let known = self.issues.iter_mut().find(|known| known.guards == self.guards && known.loops == loops);
        match known {
            Some(known) => known.instructions = known.instructions.saturating_add(instructions),
            None => self.issues.push(Issue { guards: self.guards.clone(), loops, instructions }),
        }
    }

    fn body(&mut self, body: &[Stmt]) {
        let mut before: Option<&Stmt> = None;
        for stmt in body {
            self.stmt(stmt, before);
            before = Some(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, before: Option<&Stmt>) {
        let times = product(self.loops.iter().map(|(_, trips)| *trips));
        match stmt {
            Stmt::Op { body, .. } => self.body(body),
            Stmt::Let { var, value } => {
                self.expr(value);
                self.lets.push((var.clone(), self.expanded(value)));
            }
            Stmt::Declare(_) => {}
            Stmt::Load { memory, index, to: regs } | Stmt::Store { memory, index, from: regs } => {
                self.access(*memory, index, times);
                self.held.push(regs.clone());
            }
            Stmt::Lookup { table, index, .. } => self.access(*table, index, times),
            Stmt::Compute { inst, arguments, .. } => {
                self.add(times);
                self.shuffles = self.shuffles.saturating_add(if *inst == Inst::ShuffleXor { times } else { 0 });
                arguments.iter().for_each(|argument| self.expr(argument));
            }
            Stmt::Set { to, .. } => {
                let bytes = to.count * self.program.registers[to.array].dtype.bytes();
                self.add(times.saturating_mul((bytes + 3) / 4));
            }
            Stmt::Move { to, .. } => self.add(times.saturating_mul(to.count)),
            Stmt::For { var, body } => {
                let range = var.range();
                let trips = range.hi - range.lo + 1;
                // Counter, comparison and branch; short loops are unrolled.
                self.add(if trips > UNROLLED { product([3, times, trips].into_iter()) } else { 0 });
                self.loops.push((var.clone(), trips));
                self.body(body);
                self.loops.pop();
            }
            Stmt::If { cond, body } => self.branch(cond, body, times, before),
            Stmt::Inst(_) => self.add(times),
        }
    }

    /// A comparison for every distinct condition, and one branch for all of them, which neighbours under one condition
    /// share. For sm_100a NVRTC compares anew before every branch on several.
    fn branch(&mut self, cond: &Cond, body: &[Stmt], times: i64, before: Option<&Stmt>) {
        let (conds, body) = conjunction(cond, body);
        let compares_anew = conds.len() > 1 && self.program.target == Target::Sm100a;
        for cond in &conds {
            let (Cond::Less(a, b) | Cond::Equal(a, b)) = cond;
            self.expr(a);
            self.expr(b);
            if !self.conditions.contains(cond) {
                self.conditions.push((*cond).clone());
                self.add(self.trips_of(a).max(self.trips_of(b)));
            } else if compares_anew {
                self.add(times);
            }
        }
        let is_shared = matches!(before, Some(Stmt::If { cond: other, body }) if conjunction(other, body).0 == conds);
        self.add(if is_shared { 0 } else { times.saturating_mul(conds.len() as i64) });
        let outer = self.guards.len();
        for cond in conds {
            self.guards.push(match cond {
                Cond::Less(a, b) => Cond::Less(self.expanded(a), self.expanded(b)),
                Cond::Equal(a, b) => Cond::Equal(self.expanded(a), self.expanded(b)),
            });
        }
        self.body(body);
        self.guards.truncate(outer);
    }

    /// Narrow elements that move one by one on one side, and as vectors on the other: a shift and an or, or a mask, for
    /// all but one of a word.
    fn packing(&self) -> i64 {
        let bytes = |regs: &Regs| self.program.registers[regs.array].dtype.bytes();
        let single = |array| self.held.iter().any(|regs| regs.array == array && regs.count == 1);
        let vectors = self.held.iter().filter(|regs| bytes(regs) < 4 && regs.count > 1 && single(regs.array));
        vectors.map(|regs| (regs.count - regs.count * bytes(regs) / 4) * 2).sum()
    }

    /// The access itself, and its address: scaled and added to the base, in global memory 64 bits wide.
    fn access(&mut self, memory: Handle<Memory>, index: &Expr, times: i64) {
        self.add(times);
        let Memory { space, dtype, .. } = &self.program.memories[memory];
        let base = owner(self.program, memory);
        if !self.memories.contains(&base) {
            self.memories.push(base);
            // A parameter is loaded and converted; other bases are named.
            self.add(if matches!(space, MemorySpace::Global { .. }) { 2 } else { 1 });
        }
        let address = scaled(index, dtype.bytes());
        let moving = match address.node() {
            Node::Add(a, b) if b.as_const().is_some() => a,
            _ => &address,
        };
        let is_row = self.mentions_size(moving) && self.addresses.iter().any(|(other, _)| *other == base);
        if moving.as_const().is_some() || !self.addresses.insert((base, moving.clone())) {
            return;
        }
        let trips = self.trips_of(moving);
        if is_row {
            self.add(trips.saturating_mul(self.another_row(dtype.bytes())));
            return;
        }
        self.expr(moving);
        // In a written-out loop what an iteration adds is part of the access; in others it is one addition.
        let is_global = matches!(space, MemorySpace::Global { .. } | MemorySpace::Table);
        self.add(if is_global { 2 } else { 1 });
        self.add(if trips > UNROLLED { trips } else { 0 });
    }

    /// The address of a row, a stride farther than another: one addition, where NVRTC sees it. For sm_100a it scales the
    /// stride anew where an element is wider than a register, for sm_90a it widens every index of bytes, and under a
    /// condition of its own it computes an address whole.
    fn another_row(&self, bytes: i64) -> i64 {
        match (self.program.target, bytes) {
            _ if !self.guards.is_empty() => 3,
            (Target::Sm90a, 1) => 3,
            (Target::Sm100a, 8..) => 2,
            (Target::Sm90a | Target::Sm100a, _) => 1,
        }
    }

    /// An expression without variables that statements define.
    fn expanded(&self, expr: &Expr) -> Expr {
        let value = |var: &Var| self.lets.iter().rev().find(|(known, _)| known == var).map(|(_, value)| value.clone());
        expr.substitute(&value)
    }

    fn mentions_size(&self, expr: &Expr) -> bool {
        self.program.sizes.iter().any(|size| expr.mentions(size))
    }

    /// How many values there are: one for every iteration of the loops that it depends on.
    fn trips_of(&self, expr: &Expr) -> i64 {
        product(self.loops.iter().filter(|(var, _)| expr.mentions(var)).map(|(_, trips)| *trips))
    }

    /// Counts the distinct operations of an expression. A multiple of an exclusive or with a number is the exclusive or
    /// with a multiple of it.
    fn expr(&mut self, expr: &Expr) {
        let Some((a, b)) = expr.operands() else { return };
        if !self.arithmetic.insert(expr.clone()) {
            return;
        }
        self.add(operation(expr));
        match (expr.node(), a.node()) {
            (Node::Mul(..), Node::Xor(bits, value)) if b.as_const().is_some() && bits.as_const().is_some() => {
                self.expr(&scaled(value, b.as_const().unwrap_or(1)));
            }
            _ => {
                self.expr(a);
                self.expr(b);
            }
        }
    }
}

/// The conditions of branches that hold nothing but the next, and what the last holds.
fn conjunction<'a>(cond: &'a Cond, body: &'a [Stmt]) -> (Vec<&'a Cond>, &'a [Stmt]) {
    match body {
        [Stmt::If { cond: inner, body }] => {
            let (mut conds, body) = conjunction(inner, body);
            conds.insert(0, cond);
            (conds, body)
        }
        _ => (vec![cond], body),
    }
}

fn product(factors: impl Iterator<Item = i64>) -> i64 {
    factors.fold(1, i64::saturating_mul)
}

/// A sum in normal form, times a number.
fn scaled(expr: &Expr, factor: i64) -> Expr {
    match expr.node() {
        Node::Add(a, b) => scaled(a, factor) + scaled(b, factor),
        Node::Mul(a, b) => b.as_const().map_or_else(|| expr * factor, |known| a * known.saturating_mul(factor)),
        _ => expr * factor,
    }
}

/// Instructions of one operation. Division by a number that is no power of two is a multiplication, of which the upper
/// half is shifted; its remainder is multiplied back and subtracted.
fn operation(expr: &Expr) -> i64 {
    let is_shift = |divisor: &Expr| divisor.as_const().is_some_and(|c| c > 0 && c & (c - 1) == 0);
    let is_product = |e: &Expr| matches!(e.node(), Node::Mul(_, factor) if !is_shift(factor));
    match expr.node() {
        // A multiplication and the addition to it are one.
        Node::Add(a, b) if is_product(a) || is_product(b) => 0,
        Node::Div(_, divisor) if !is_shift(divisor) => 2,
        Node::Mod(_, divisor) if !is_shift(divisor) => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_and_a_sum_are_one_instruction() {
        let lane = Expr::var(&Var::new("lane", 0, 31));
        let cost = |expr: Expr| operation(&expr);
        assert_eq!((cost(&lane * 7 + 3), cost(&lane * 8 + 3), cost(&lane / 10), cost(&lane % 8)), (0, 1, 2, 1));
    }
}
