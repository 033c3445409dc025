//! Counts the instructions that statements become, on the IR, to compare variants with each other.
//!
//! The count includes accesses, instructions of the table, branches, operations on data, and every distinct operation
//! of an index once. It does not model what NVRTC makes of them: `run-kernel` shows what was executed. Moves between
//! registers are counted, although `ptxas` may assign both the same register.

use std::collections::BTreeSet;

use tilewright_expr::linear::linear;
use tilewright_expr::{Expr, Node, Var};
use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Cond, Inst, Memory, Program, Stmt, Unroll, Value, conjunction, is_word};

/// Instructions of one lane for which all conditions hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// All of them.
    pub(crate) instructions: i64,
    /// Those that are shuffles.
    pub(crate) shuffles: i64,
}

/// The instructions of `body`.
pub(crate) fn count(program: &Program, body: &[Stmt]) -> Counts {
    let mut counter = Tally::new(program);
    counter.body(body);
    counter.counts
}

struct Tally<'a> {
    program: &'a Program,
    counts: Counts,
    /// Index operations that were counted already.
    known: BTreeSet<Expr>,
    /// Addresses that were counted already: a memory, and an index without its constant, which is part of the access.
    addresses: BTreeSet<(Handle<Memory>, Expr)>,
    /// Conditions that were counted already.
    conditions: BTreeSet<Cond>,
    /// The loops around the current statement, outermost first.
    loops: Vec<Around>,
}

/// A loop around a statement.
struct Around {
    var: Var,
    /// Number of iterations.
    trips: i64,
    /// Whether the loop is unrolled, so that its variable is a constant in each iteration.
    is_unrolled: bool,
}

impl<'a> Tally<'a> {
    fn new(program: &'a Program) -> Tally<'a> {
        Tally {
            program,
            counts: Counts::default(),
            known: BTreeSet::new(),
            addresses: BTreeSet::new(),
            conditions: BTreeSet::new(),
            loops: Vec::new(),
        }
    }

    fn add(&mut self, instructions: i64) {
        self.counts.instructions = self.counts.instructions.saturating_add(instructions);
    }

    fn body(&mut self, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let times = product(self.loops.iter().map(|inner| inner.trips));
        for access in stmt.accesses() {
            self.add(times);
            self.address(access.memory, access.index);
        }
        match stmt {
            Stmt::Op { body, .. } => self.body(body),
            Stmt::Let { value, .. } => self.value(value),
            Stmt::Load { .. } | Stmt::Store { .. } | Stmt::Lookup { .. } | Stmt::Declare(_) | Stmt::Set { .. } => {}
            Stmt::Move { to, from } if is_word(&self.program.registers, [to, from]) => self.add(times),
            Stmt::Move { to, .. } => self.add(times.saturating_mul(to.count)),
            Stmt::For { counter, unroll, body } => {
                let trips = counter.assumed_trips();
                let is_unrolled = *unroll == Unroll::Full;
                // The counter, a comparison and a branch.
                self.add(if is_unrolled { 0 } else { product([3, times, trips].into_iter()) });
                self.loops.push(Around { var: counter.var.clone(), trips, is_unrolled });
                self.body(body);
                self.loops.pop();
            }
            Stmt::If { cond, body } => self.branch(cond, body, times),
            // Counts are those of a tile that lies inside its tensor.
            Stmt::Unless { .. } => {}
            Stmt::IfValue { cond, body, .. } => {
                // The branch, in addition to the comparison.
                self.operations(cond, times);
                self.add(times);
                self.body(body);
            }
            Stmt::Assign { .. } | Stmt::AssignPair { .. } | Stmt::LetValue { .. } => {
                stmt.values().iter().for_each(|value| self.operations(value, times));
            }
            // The instruction, and the addresses in its descriptors.
            Stmt::WarpgroupMma(product) => {
                product.shared().for_each(|part| self.value(&part.offset));
                self.add(times);
            }
            Stmt::TensorMma(product) => {
                product.shared().for_each(|part| self.value(&part.offset));
                self.add(times);
            }
            Stmt::TensorMove(moved) => {
                self.value(&moved.address);
                self.add(times);
            }
            Stmt::Mma(_) | Stmt::Advance { .. } => self.add(times),
            Stmt::Role { body, .. } | Stmt::Elect { body } => {
                self.add(times);
                self.body(body);
            }
            Stmt::TensorCopy(copy) => copy.part.exprs().iter().for_each(|at| self.value(at)),
            Stmt::Inst(call) => self.call(call, times),
        }
    }

    /// Counts an instruction of the table, once for each word of its result. One that accesses memory was counted as
    /// an access.
    fn call(&mut self, call: &Call, times: i64) {
        call.arguments.iter().for_each(|argument| self.value(argument));
        if !call.memory.is_empty() || call.inst == Inst::WarpgroupSettle {
            return;
        }
        let bytes = call.to.as_ref().map_or(4, |to| self.program.registers[to.array].dtype.bytes());
        let times = times.saturating_mul((bytes / 4).max(1));
        self.add(times);
        if matches!(call.inst, Inst::ShuffleXor | Inst::Shuffle | Inst::ShuffleWithin) {
            self.counts.shuffles = self.counts.shuffles.saturating_add(times);
        }
    }

    /// Counts a comparison for every distinct condition, and a branch for each condition.
    fn branch(&mut self, cond: &Cond, body: &[Stmt], times: i64) {
        let (conds, body) = conjunction(cond, body);
        self.add(times.saturating_mul(conds.len() as i64));
        for cond in conds {
            let [a, b] = cond.sides();
            self.value(a);
            self.value(b);
            if !self.conditions.contains(cond) {
                self.conditions.insert(cond.clone());
                self.add(self.trips_of(a).max(self.trips_of(b)));
            }
        }
        self.body(body);
    }

    /// Counts the operations of a value; reading a register or a constant is not an operation.
    fn operations(&mut self, value: &Value, times: i64) {
        let mut indices = Vec::new();
        let mut operations = 0;
        value.for_each(&mut |part| match part {
            Value::Op(..) | Value::Cast(..) | Value::Part(..) | Value::With(..) => operations += 1,
            Value::Index(_, index) => indices.push(index.clone()),
            Value::Const(..) | Value::Reg(..) | Value::Bits(..) => {}
        });
        self.add(times.saturating_mul(operations));
        indices.iter().for_each(|index| self.value(index));
    }

    /// Counts an address: the index, added to the start of the memory. Constants are part of the access.
    fn address(&mut self, memory: Handle<Memory>, index: &Expr) {
        let key = (self.program.owner(memory), self.moving(index));
        if self.addresses.contains(&key) {
            return;
        }
        if key.1.as_const().is_none() {
            self.moving_value(&key.1);
            self.add(self.trips_of(&key.1));
        }
        self.addresses.insert(key);
    }

    /// An index without the terms that are constant in each iteration.
    fn moving(&self, index: &Expr) -> Expr {
        let sum = linear(index);
        let moving = sum.terms.iter().filter(|(_, atom)| !self.is_number(atom));
        moving.fold(Expr::constant(0), |sum, (factor, atom)| sum + atom * *factor)
    }

    fn is_number(&self, atom: &Expr) -> bool {
        let Node::Var(var) = atom.node() else { return false };
        self.loops.iter().any(|inner| inner.is_unrolled && inner.var == *var)
    }

    /// Counts every operation of an index that was not counted yet, once for each iteration in which it has a
    /// different value.
    fn value(&mut self, expr: &Expr) {
        let moving = self.moving(expr);
        self.moving_value(&moving);
    }

    /// As [`Tally::value`], of an index without the terms that are constant in each iteration.
    fn moving_value(&mut self, moving: &Expr) {
        let Some((a, b)) = moving.operands() else { return };
        if self.known.insert(moving.clone()) {
            self.value(a);
            self.value(b);
            self.add(instructions_of(moving).saturating_mul(self.trips_of(moving)));
        }
    }

    /// How many values an expression takes: one for every iteration of the loops that it depends on.
    fn trips_of(&self, expr: &Expr) -> i64 {
        product(self.loops.iter().filter(|inner| expr.mentions(&inner.var)).map(|inner| inner.trips))
    }
}

/// Instructions of an operation on integers. A division by a constant that is not a power of two is a multiplication
/// whose upper half is shifted; its remainder is computed by multiplying back and subtracting.
fn instructions_of(expr: &Expr) -> i64 {
    let is_power = |divisor: &Expr| divisor.as_const().is_some_and(|n| n > 0 && n & (n - 1) == 0);
    match expr.node() {
        Node::Div(_, divisor) if !is_power(divisor) => 2,
        Node::Mod(_, divisor) if !is_power(divisor) => 4,
        _ => 1,
    }
}

fn product(factors: impl Iterator<Item = i64>) -> i64 {
    factors.fold(1, i64::saturating_mul)
}
