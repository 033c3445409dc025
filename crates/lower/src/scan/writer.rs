//! What the ways to scan share: registers and shared memory of tuples, and how two tuples become one.

use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Memory, Regs, Stmt, Value};
use tilewright_ir::tile::ReduceKind;

use super::context::{Context, Operator, ScanValue};
use super::runs::Place;
use crate::builder::{Builder, regs};
use crate::combine::combined;
use crate::fragment_registers::Slot;
use crate::refusal::Refusal;
use crate::threads::{by_threads, number};
use crate::tuples::{Arrays, Function, FunctionRegisters, assigned, registers, values};

/// The statements so far, and what they are made from.
pub(super) struct Writer<'a> {
    pub(super) context: &'a Context,
    pub(super) builder: &'a mut Builder,
    combining: Combining<'a>,
    /// A tuple on its way to the registers of one that it is made of.
    next: Option<Arrays>,
    pub(super) out: Vec<Stmt>,
}

/// How two tuples become one.
enum Combining<'a> {
    Kind(ReduceKind),
    Function(&'a Function, FunctionRegisters),
}

impl<'a> Writer<'a> {
    pub(super) fn new(context: &'a Context, builder: &'a mut Builder) -> Writer<'a> {
        let mut out = Vec::new();
        let combining = match &context.operator {
            Operator::Kind(kind) => Combining::Kind(*kind),
            Operator::Function(function) => {
                let titles: Vec<&str> = context.values.iter().map(|value| value.name.as_str()).collect();
                Combining::Function(function, FunctionRegisters::declare(function, &titles, builder, &mut out))
            }
        };
        Writer { context, builder, combining, next: None, out }
    }

    /// Registers for `count` tuples.
    pub(super) fn arrays(&mut self, what: &str, count: usize) -> Arrays {
        let is_one = self.context.values.len() == 1;
        let mut of = |value: &ScanValue| {
            let name = if is_one { what.to_string() } else { format!("{}_{what}", value.name) };
            self.builder.registers(&name, value.dtype, count as i64, 1, &mut self.out)
        };
        self.context.values.iter().map(&mut of).collect()
    }

    /// Registers for a tuple, which is what changes no other so far.
    pub(super) fn neutral_arrays(&mut self, what: &str) -> Arrays {
        let arrays = self.arrays(what, 1);
        let set = self.set_to_neutral(&arrays);
        self.out.extend(set);
        arrays
    }

    /// Statements that make a tuple what changes no other.
    pub(super) fn set_to_neutral(&self, of: &Arrays) -> Vec<Stmt> {
        let set = |(to, value): (Regs, &ScanValue)| Stmt::Set { to, value: value.neutral };
        registers(of, 0).into_iter().zip(&self.context.values).map(set).collect()
    }

    /// `to = left combined with right`, where `left` may be `to`, and `right` is something else.
    pub(super) fn combined(&self, to: Vec<Regs>, left: &[Value], right: &[Value]) -> Result<Vec<Stmt>, Refusal> {
        self.combined_as(to, left, right, |_, value| value)
    }

    /// As [`Writer::combined`]; `stored` is what the registers of a value of the tuples get.
    fn combined_as(
        &self,
        to: Vec<Regs>,
        left: &[Value],
        right: &[Value],
        stored: impl Fn(usize, Value) -> Value,
    ) -> Result<Vec<Stmt>, Refusal> {
        match &self.combining {
            Combining::Kind(kind) => {
                let pairs = left.iter().zip(right).zip(&self.context.values).enumerate();
                let value = |(at, ((left, right), value)): (usize, ((&Value, &Value), &ScanValue))| {
                    stored(at, combined(*kind, value.dtype, left.clone(), right.clone()))
                };
                Ok(assigned(to, pairs.map(value).collect()).collect())
            }
            // The results have the dtypes of their registers.
            Combining::Function(function, own) => own.combined(function, &to, left, right),
        }
    }

    /// `to = first combined with to`.
    pub(super) fn preceded(&mut self, to: &Arrays, first: &Arrays) -> Result<Vec<Stmt>, Refusal> {
        let (left, right) = (values(first, 0), values(to, 0));
        if to.len() == 1 {
            return self.combined(registers(to, 0), &left, &right);
        }
        // No result may overwrite what another one is made of.
        let next = self.next.take().unwrap_or_else(|| self.arrays("next", 1));
        let mut body = self.combined(registers(&next, 0), &left, &right)?;
        body.extend(assigned(registers(to, 0), values(&next, 0)));
        self.next = Some(next);
        Ok(body)
    }

    /// Writes a tuple to the results at a place.
    pub(super) fn written(&self, place: Place, tuple: Vec<Value>) -> Vec<Stmt> {
        let slots = self.context.results(place);
        let stored = self.context.values.iter().zip(slots).zip(tuple);
        let stored = stored.map(|((value, slot), tuple)| value.written(*slot, tuple)).collect();
        assigned(self.result_registers(place), stored).collect()
    }

    /// Writes `left` combined with `right` to the results at a place.
    pub(super) fn written_combined(
        &mut self,
        place: Place,
        left: &[Value],
        right: &[Value],
    ) -> Result<Vec<Stmt>, Refusal> {
        let is_plain = self.context.values.iter().all(|value| value.result.is_plain());
        if matches!(self.combining, Combining::Function(..)) && !is_plain {
            // The registers have another dtype than the elements.
            let next = self.next.take().unwrap_or_else(|| self.arrays("next", 1));
            let mut body = self.combined(registers(&next, 0), left, right)?;
            body.extend(self.written(place, values(&next, 0)));
            self.next = Some(next);
            return Ok(body);
        }
        let slots = self.context.results(place);
        let stored = |at: usize, value: Value| self.context.values[at].written(slots[at], value);
        self.combined_as(self.result_registers(place), left, right, stored)
    }

    fn result_registers(&self, place: Place) -> Vec<Regs> {
        let register = |(value, slot): (&ScanValue, &Slot)| regs(value.result.array, slot.register, 1);
        self.context.values.iter().zip(self.context.results(place)).map(register).collect()
    }

    /// The first results of an exclusive scan.
    pub(super) fn start(&self) -> Vec<Value> {
        self.context.values.iter().map(|value| Value::Const(value.of, value.start)).collect()
    }

    /// The threads for which this holds.
    pub(super) fn set(&self, is_in: impl Fn(usize) -> bool) -> Vec<bool> {
        (0..self.context.runs.len()).map(is_in).collect()
    }

    /// Adds statements that the threads of `set` execute, if there are any.
    pub(super) fn by(&mut self, set: &[bool], body: Vec<Stmt>) {
        if !set.contains(&true) {
            return;
        }
        by_threads(set, |_| false, body, &self.context.thread, self.builder, &mut self.out);
    }

    /// The threads of a set store a tuple at their positions; `before` precedes that.
    pub(super) fn store(
        &mut self,
        memories: &[Handle<Memory>],
        (positions, set): (&[Option<i64>], &[bool]),
        before: Vec<Stmt>,
        from: Vec<Regs>,
    ) {
        self.access(positions, set, |index| {
            let stores = memories.iter().zip(from);
            let store =
                |(memory, from): (&Handle<Memory>, Regs)| Stmt::Store { memory: *memory, index: index.clone(), from };
            before.into_iter().chain(stores.map(store)).collect()
        });
    }

    /// Loads a tuple from the positions of the threads that have one; `after` follows.
    pub(super) fn load(
        &mut self,
        memories: &[Handle<Memory>],
        positions: &[Option<i64>],
        to: Vec<Regs>,
        after: Vec<Stmt>,
    ) {
        let set: Vec<bool> = positions.iter().map(Option::is_some).collect();
        self.access(positions, &set, |index| {
            let loads = memories.iter().zip(to);
            let load = |(memory, to): (&Handle<Memory>, Regs)| Stmt::Load { to, memory: *memory, index: index.clone() };
            loads.map(load).chain(after).collect()
        });
    }

    fn access(&mut self, positions: &[Option<i64>], set: &[bool], make: impl FnOnce(Expr) -> Vec<Stmt>) {
        if !set.contains(&true) {
            return;
        }
        let mut body = Vec::new();
        let index = number(positions, 1, &self.context.thread, self.builder, &mut body);
        body.extend(make(index));
        self.by(set, body);
    }

    /// Shared memory for so many tuples: one for each value.
    pub(super) fn scratch(&mut self, what: &str, elements: usize) -> Vec<Handle<Memory>> {
        let (context, is_one) = (self.context, self.context.values.len() == 1);
        let mut of = |value: &ScanValue| {
            let base = if is_one { what.to_string() } else { format!("{}_{what}", value.name) };
            self.builder.scratch(&base, value.dtype, (elements, value.dtype.bytes()), context.op.span)
        };
        context.values.iter().map(&mut of).collect()
    }
}
