//! How many instructions statements become, as PTX has them.
//!
//! Counted are accesses, barriers and branches, the distinct operations of indices ([`values`]), and for every distinct
//! index what makes it an address ([`addresses`]). NVRTC finds shorter forms of some indices, and keeps more or fewer
//! values than this model; moves between registers are not counted, since `ptxas` gives both one register.

mod addresses;
mod values;

use tilewright_expr::linear::Linear;
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Call, Cond, Inst, Issue, Memory, MemorySpace, Program, Regs, Stmt, Value};
use tilewright_ir::tile::ElementOp;
use tilewright_ir::{Handle, Target};

use crate::conditions::conjunction;
use crate::trace::owner;

use addresses::{Addresses, Needed, another_row, made_again};
use values::Values;

/// Iterations up to which NVRTC writes out a loop that it decides on.
const SHORT: i64 = 4;

/// Instructions of a warp, by the conditions under which it issues them.
pub(crate) struct Counter<'a> {
    program: &'a Program,
    issues: Vec<Issue>,
    shuffles: i64,
    values: Values,
    addresses: Addresses,
    conditions: Vec<Cond>,
    /// The registers of every load and every store.
    loaded: Vec<Regs>,
    stored: Vec<Regs>,
    /// The loops around the current statement.
    loops: Vec<Around>,
    /// Conditions around the current statement, in terms of hardware indices, sizes and loop variables.
    guards: Vec<Cond>,
    /// Variables and their values.
    lets: Vec<(Var, Expr)>,
}

/// A loop around a statement.
struct Around {
    var: Var,
    trips: i64,
    is_written_out: bool,
}

/// Instructions of one warp in `body`, with what its ops share counted once.
pub(crate) fn instructions(program: &Program, body: &[Stmt]) -> Vec<Issue> {
    let mut counter = Counter::of(program, body);
    let packing = counter.packing();
    // The last returns.
    counter.add(packing + 1);
    counter.issues
}

impl<'a> Counter<'a> {
    pub(crate) fn of(program: &'a Program, body: &[Stmt]) -> Counter<'a> {
        let mut counter = Counter {
            program,
            issues: Vec::new(),
            shuffles: 0,
            values: Values::before(program, body),
            addresses: Addresses::default(),
            conditions: Vec::new(),
            loaded: Vec::new(),
            stored: Vec::new(),
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
        let loops: Vec<Var> = self.loops.iter().map(|inner| &inner.var).filter(|var| is_named(var)).cloned().collect();
        let known = self.issues.iter_mut().find(|known| known.guards == self.guards && known.loops == loops);
        match known {
            Some(known) => known.instructions = known.instructions.saturating_add(instructions),
            None => self.issues.push(Issue { guards: self.guards.clone(), loops, instructions }),
        }
    }

    fn body(&mut self, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let times = product(self.loops.iter().map(|inner| inner.trips));
        match stmt {
            Stmt::Op { body, .. } => self.body(body),
            Stmt::Let { var, value } => {
                self.expr(value);
                self.lets.push((var.clone(), self.expanded(value)));
            }
            Stmt::Load { memory, index, to } => {
                self.access(*memory, index, times);
                self.loaded.push(to.clone());
            }
            Stmt::Store { memory, index, from } => {
                self.access(*memory, index, times);
                self.stored.push(from.clone());
            }
            Stmt::Lookup { table, index, .. } => self.access(*table, index, times),
            Stmt::Declare(_) | Stmt::Set { .. } => {}
            Stmt::Move { to, .. } => self.add(times.saturating_mul(to.count)),
            Stmt::For { var, is_written_out, body } => {
                let range = var.range();
                let trips = range.hi - range.lo + 1;
                // Counter, comparison and branch.
                let is_written_out = *is_written_out || trips <= SHORT;
                self.add(if is_written_out { 0 } else { product([3, times, trips].into_iter()) });
                self.loops.push(Around { var: var.clone(), trips, is_written_out });
                self.body(body);
                self.loops.pop();
            }
            Stmt::If { cond, body } => self.branch(cond, body, times),
            Stmt::When { cond, body, .. } => {
                // A branch beside the comparison.
                self.operations(cond, times);
                self.add(times);
                self.addresses.enter();
                self.body(body);
                self.addresses.leave();
            }
            Stmt::Assign { value, .. } | Stmt::Name { value, .. } => self.operations(value, times),
            Stmt::Mma { .. } => self.add(times),
            Stmt::Inst(call) => self.call(call, times),
        }
    }

    /// An instruction, for each of its words; one that accesses memory is that access.
    fn call(&mut self, call: &Call, times: i64) {
        call.memory.iter().for_each(|(memory, index)| self.access(*memory, index, times));
        call.arguments.iter().for_each(|argument| self.expr(argument));
        if call.memory.is_empty() {
            let bytes = call.to.as_ref().map_or(4, |to| self.program.registers[to.array].dtype.bytes());
            let times = times.saturating_mul((bytes / 4).max(1));
            self.add(times);
            self.shuffles = self.shuffles.saturating_add(if call.inst == Inst::ShuffleXor { times } else { 0 });
        }
    }

    /// A comparison for every distinct condition, and a branch. For sm_100a NVRTC compares anew before every branch on
    /// several.
    fn branch(&mut self, cond: &Cond, body: &[Stmt], times: i64) {
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
        self.add(times.saturating_mul(conds.len() as i64));
        let outer = self.guards.len();
        for cond in conds {
            self.guards.push(match cond {
                Cond::Less(a, b) => Cond::Less(self.expanded(a), self.expanded(b)),
                Cond::Equal(a, b) => Cond::Equal(self.expanded(a), self.expanded(b)),
            });
        }
        self.addresses.enter();
        self.body(body);
        self.addresses.leave();
        self.guards.truncate(outer);
    }

    /// Products of integers that are added: NVRTC makes one instruction of both.
    fn fused(&self, value: &Value) -> i64 {
        let is_product = |operand: &Value| {
            let is_integer = operand.dtype(&self.program.registers).is_some_and(|dtype| dtype.is_integer());
            is_integer && matches!(operand, Value::Op(ElementOp::Mul, _))
        };
        let mut products = 0;
        value.for_each(&mut |part| {
            if let Value::Op(ElementOp::Add | ElementOp::Sub, operands) = part {
                products += i64::from(operands.iter().any(is_product));
            }
        });
        products
    }

    /// The operations of a value; moves are none.
    fn operations(&mut self, value: &Value, times: i64) {
        let mut operations = -self.fused(value);
        let mut indices = Vec::new();
        value.for_each(&mut |part| match part {
            Value::Op(..) | Value::Cast(..) | Value::Part(..) | Value::With(..) => operations += 1,
            Value::Index(_, index) => indices.push(index.clone()),
            Value::Const(..) | Value::Reg(..) | Value::Bits(..) => {}
        });
        self.add(times.saturating_mul(operations));
        indices.iter().for_each(|index| self.expr(index));
    }

    /// Bytes that move one by one on one side, and as vectors on the other: all but one of a word are taken out by a byte
    /// permutation, or put in by a shift and an or. Halves of words are moves.
    fn packing(&self) -> i64 {
        let is_byte = |regs: &Regs| self.program.registers[regs.array].dtype.bytes() == 1;
        let apart = |vectors: &[Regs], others: &[Regs]| -> i64 {
            let is_met = |regs: &Regs| others.iter().any(|other| other.array == regs.array && other.count == 1);
            let vectors = vectors.iter().filter(|regs| is_byte(regs) && regs.count > 1 && is_met(regs));
            vectors.map(|regs| regs.count - regs.count / 4).sum()
        };
        apart(&self.loaded, &self.stored) + 2 * apart(&self.stored, &self.loaded)
    }

    /// The access itself, and its address: the index in bytes added to the base.
    fn access(&mut self, memory: Handle<Memory>, index: &Expr, times: i64) {
        self.add(times);
        let Memory { space, dtype, .. } = &self.program.memories[memory];
        let base = owner(self.program, memory);
        let named = self.addresses.memory(base, space);
        self.add(named);
        let moving = Linear { constant: 0, ..self.values.folded(index, &self.guards) };
        let Some(offset) = moving.clone().scaled(dtype.bytes()) else { return };
        let is_global = matches!(space, MemorySpace::Global { .. });
        let trips = self.trips_of(index);
        match self.addresses.need(base, &offset, self.mentions_size(index)) {
            Needed::Nothing => {}
            Needed::Row => {
                let row = another_row(self.program.target, dtype.bytes(), !self.guards.is_empty());
                self.add(trips.saturating_mul(row));
            }
            Needed::Again => {
                self.add(if is_global { times.saturating_mul(made_again(self.program.target)) } else { 0 })
            }
            Needed::New => {
                let is_wide = is_global || matches!(space, MemorySpace::Table);
                let scaled = if is_wide { self.widened(&moving, dtype.bytes()) } else { self.values.sum(&offset) };
                // In a written-out loop what an iteration adds is part of the access; in others it is one addition.
                let is_moved = self.loops.iter().any(|inner| index.mentions(&inner.var) && !inner.is_written_out);
                self.add(scaled + 1 + if is_moved { trips } else { 0 });
            }
        }
    }

    /// Instructions for an index in units of what divides all factors, scaled and made 64 bits wide in one.
    fn widened(&mut self, index: &Linear, bytes: i64) -> i64 {
        let unit = index.common_factor();
        let terms = index.terms.iter().map(|(factor, atom)| (factor / unit, atom.clone()));
        let index = Linear { terms: terms.collect(), constant: 0 };
        self.values.sum(&index) + self.addresses.widen(unit * bytes, index.to_expr())
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
        product(self.loops.iter().filter(|inner| expr.mentions(&inner.var)).map(|inner| inner.trips))
    }

    /// Counts what makes a value; with what an iteration adds to it, if that is all.
    fn expr(&mut self, expr: &Expr) {
        let sum = self.values.folded(expr, &self.guards);
        let added = self.values.constant(&sum).saturating_mul(self.trips_of(expr));
        let made = self.values.sum(&sum);
        self.add(made + added);
    }
}

fn product(factors: impl Iterator<Item = i64>) -> i64 {
    factors.fold(1, i64::saturating_mul)
}
