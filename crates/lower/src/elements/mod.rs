//! Statements on elements as thread statements: every thread its iterations, one step after the other.
//!
//! Numbers that depend on the iteration are listed for all threads, and become expressions of the thread, or tables where
//! none fits; threads that do nothing in a step are left out by conditions, which are exact ([`crate::threads`]).
//! Neighbouring steps that are adjacent in memory are one access ([`chunk`]).

mod chunk;
mod fragments;
mod memory;
mod nest;
mod points;
mod values;
mod variant;

use std::collections::BTreeMap;
use std::rc::Rc;

use tilewright_expr::linear::{linear, normalize};
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Call, Cond, Inst, RegArray, Stmt, Value as ThreadValue};
use tilewright_ir::tile::vectors::{Mask, firsts};
use tilewright_ir::tile::{Access, Bound, Buffer, Coord, ElementOp, ElementStmt, Kernel, Space, Value};
use tilewright_ir::{Handle, Scalar};
use tilewright_layout::DType;

use crate::builder::{Builder, regs};
use crate::conditions::{merged, under};
use crate::refusal::Refusal;
use crate::threads::members;
use chunk::Moved;
pub(crate) use fragments::{Held, Slot};
use memory::{Address, inside};
pub(crate) use nest::Nest;
use points::Points;
use values::Name;
pub(crate) use variant::{ByElements, ELEMENTS, NestByElements};

/// Values of a variable that is tied to the iteration in an index of a fragment, at most.
const MOST_TIED: i64 = 16;

/// Iterations up to which an inner loop is written out.
const MOST_WRITTEN_OUT: i64 = 8;

/// Lowers a nest. Error: why it cannot be.
pub(crate) fn lower(kernel: &Kernel, builder: &mut Builder, nest: &Nest) -> Result<Vec<Stmt>, Refusal> {
    let mut lowering = Lowering::new(kernel, builder, nest);
    lowering.steps()?;
    let Lowering { declared, out, .. } = lowering;
    Ok(declared.into_iter().chain(merged(out)).collect())
}

/// A condition that every thread asks: `holds` becomes 1 or 0. Error: why it cannot be lowered.
pub(crate) fn lower_condition(
    kernel: &Kernel,
    builder: &mut Builder,
    cond: &Value,
    holds: Handle<RegArray>,
) -> Result<Vec<Stmt>, Refusal> {
    let nest = Nest::of_condition(kernel);
    let mut lowering = Lowering::new(kernel, builder, &nest);
    let place = Place { step: 0, mask: lowering.mask(0) };
    lowering.declared.push(Stmt::Declare(holds));
    lowering.keep_truth(cond, holds, &place)?;
    Ok(lowering.declared.into_iter().chain(merged(lowering.out)).collect())
}

/// Where in a nest something is: the step, and the threads for which all conditions around hold.
struct Place {
    step: usize,
    mask: Mask,
}

struct Lowering<'a> {
    kernel: &'a Kernel,
    builder: &'a mut Builder,
    nest: &'a Nest,
    points: Points<'a>,
    /// By step, the threads that are the first to do their iteration: the ones that write memory.
    firsts: Vec<Mask>,
    held: BTreeMap<Handle<Buffer>, Rc<Held>>,
    addresses: Vec<(Handle<Buffer>, Vec<Expr>, Address)>,
    names: Vec<Name>,
    /// Declarations, in front of all steps.
    declared: Vec<Stmt>,
    /// Accesses of the current steps that are done together.
    moved: Vec<Moved>,
    /// The arms of `select` around a value: it is computed, but may not be the one that is taken.
    arms: usize,
    out: Vec<Stmt>,
}

/// One of the ways an access may go: conditions, and the slot that is meant under them.
struct Way {
    conditions: Vec<Cond>,
    slot: Slot,
}

impl<'a> Lowering<'a> {
    fn new(kernel: &'a Kernel, builder: &'a mut Builder, nest: &'a Nest) -> Lowering<'a> {
        let points = Points::new(&nest.vars, &nest.steps, Expr::var(&kernel.thread()));
        let firsts = firsts(&nest.steps, &nest.steps.owners());
        Lowering {
            kernel,
            builder,
            nest,
            points,
            firsts,
            held: BTreeMap::new(),
            addresses: Vec::new(),
            names: Vec::new(),
            declared: Vec::new(),
            moved: Vec::new(),
            arms: 0,
            out: Vec::new(),
        }
    }

    /// The threads that do something in a step.
    fn mask(&self, step: usize) -> Mask {
        let steps = &self.nest.steps;
        Rc::new((0..steps.threads()).map(|thread| steps.at(thread, step).is_some()).collect())
    }

    /// Statements made by `make`, instead of added to what is made so far.
    fn aside(&mut self, make: impl FnOnce(&mut Self) -> Result<(), Refusal>) -> Result<Vec<Stmt>, Refusal> {
        let outer = std::mem::take(&mut self.out);
        let result = make(self);
        let inner = std::mem::replace(&mut self.out, outer);
        result.map(|()| inner)
    }

    /// Adds statements that only the threads of `mask` execute; `all` execute what is here.
    fn guarded(&mut self, mask: &[bool], all: &[bool], body: Vec<Stmt>) {
        if mask == all {
            self.out.extend(body);
            return;
        }
        if body.is_empty() || !mask.contains(&true) {
            return;
        }
        let conditions = self.conditions(mask);
        self.out.extend(under(&conditions, body));
    }

    /// Conditions that hold for the threads of a set only, perhaps by a table.
    fn conditions(&mut self, set: &[bool]) -> Vec<Cond> {
        let thread = self.points.thread().clone();
        members(set, &thread, self.builder, &mut self.out)
    }

    /// What is done in a step, by the threads of `place`.
    fn elements(&mut self, body: &[ElementStmt], place: &Place) -> Result<(), Refusal> {
        let names = self.names.len();
        for element in body {
            self.element(element, place)?;
        }
        self.names.truncate(names);
        Ok(())
    }

    fn element(&mut self, element: &ElementStmt, place: &Place) -> Result<(), Refusal> {
        match element {
            ElementStmt::Let { name, value, .. } => self.name(name, value, place),
            ElementStmt::Store { to, value, .. } => {
                let dtype = self.kernel.buffers[to.buffer].dtype;
                match self.kernel.buffers[to.buffer].space {
                    Space::Fragment => {
                        let value = self.value(value, Some(dtype), place)?;
                        self.write_fragment(to, place, &value)
                    }
                    Space::Global(_) | Space::Shared => {
                        let first = self.first_only(place);
                        let inner = self.aside(|this| this.store(to, value, &first))?;
                        self.guarded(&first.mask, &place.mask, inner);
                        Ok(())
                    }
                }
            }
            ElementStmt::AtomicAdd { to, value } => self.atomic_add(to, value, place),
            ElementStmt::If { cond, then, otherwise, .. } => self.branch(cond, then, otherwise, place),
            ElementStmt::For { var, body, .. } => self.repeat(var, body, place),
        }
    }

    /// The place without threads that are not the first to do their iteration.
    fn first_only(&self, place: &Place) -> Place {
        let firsts = &self.firsts[place.step];
        let mask = place.mask.iter().zip(firsts.iter()).map(|(here, first)| *here && *first).collect();
        Place { step: place.step, mask: Rc::new(mask) }
    }

    fn atomic_add(&mut self, to: &Access, value: &Value, place: &Place) -> Result<(), Refusal> {
        let dtype = self.kernel.buffers[to.buffer].dtype;
        if self.kernel.buffers[to.buffer].space == Space::Fragment {
            let sum = Value::Op(ElementOp::Add, [Value::Load(to.clone()), value.clone()].into());
            let sum = self.value(&sum, Some(dtype), place)?;
            return self.write_fragment(to, place, &sum);
        }
        let first = self.first_only(place);
        let inner = self.aside(|this| {
            let value = this.value(value, Some(dtype), &first)?;
            let from = this.in_register(value, dtype);
            let index = this.coordinates(to, &first)?;
            let limits = this.limits(to, &index);
            this.at_memory(to, (&index, &limits), &first, |memory, index| {
                let (from, memory) = (vec![from], vec![(memory, index)]);
                Stmt::Inst(Call { from, memory, ..Call::plain(Inst::AtomicAdd) })
            });
            Ok(())
        })?;
        self.guarded(&first.mask, &place.mask, inner);
        Ok(())
    }

    fn store(&mut self, to: &Access, value: &Value, place: &Place) -> Result<(), Refusal> {
        let dtype = self.kernel.buffers[to.buffer].dtype;
        if let Some((array, register)) = self.moved_register(to, place.step, true) {
            let value = self.value(value, Some(dtype), place)?;
            self.out.push(Stmt::Assign { to: regs(array, register, 1), value });
            return Ok(());
        }
        let value = self.value(value, Some(dtype), place)?;
        let from = self.in_register(value, dtype);
        let index = self.coordinates(to, place)?;
        let limits = self.limits(to, &index);
        self.at_memory(to, (&index, &limits), place, |memory, index| Stmt::Store { memory, index, from });
        Ok(())
    }

    /// A register that holds a value: the one that it is, or a new one.
    fn in_register(&mut self, value: ThreadValue, dtype: DType) -> tilewright_ir::thread::Regs {
        if let ThreadValue::Reg(array, at) = value {
            return regs(array, at, 1);
        }
        let array = self.new_registers("r", dtype, 1);
        self.out.push(Stmt::Assign { to: regs(array, 0, 1), value });
        regs(array, 0, 1)
    }

    fn new_registers(&mut self, base: &str, dtype: DType, len: i64) -> Handle<RegArray> {
        self.builder.registers(base, dtype, len, 1, &mut self.declared)
    }

    /// The index of an access, with names for what data says.
    fn coordinates(&mut self, access: &Access, place: &Place) -> Result<Vec<Expr>, Refusal> {
        let mut index = Vec::new();
        for coord in &access.index {
            index.push(match coord {
                Coord::At(expr) => expr.clone(),
                Coord::Data(value) => self.named_integer(value, place)?,
            });
        }
        Ok(index)
    }

    /// The dimensions of which an access asks whether it is inside. Of shared memory it does so in an arm of `select` alone,
    /// which is computed whatever is taken: elsewhere the conditions around it are branches, and keep it inside.
    fn limits(&mut self, access: &Access, index: &[Expr]) -> Vec<Bound> {
        let buffer = &self.kernel.buffers[access.buffer];
        if buffer.space != Space::Shared {
            return self.kernel.bounds(buffer, index, &mut self.points.splits);
        }
        if self.arms == 0 {
            return Vec::new();
        }
        // What data says stays inside by itself.
        let known = |(coord, index): (&Coord, &Expr)| match coord {
            Coord::At(_) => index.clone(),
            Coord::Data(_) => Expr::constant(0),
        };
        let index: Vec<Expr> = access.index.iter().zip(index).map(known).collect();
        self.kernel.bounds(buffer, &index, &mut self.points.splits)
    }

    /// An access of one element of memory, inside of its limits. False if it is outside of shared memory for all threads, so
    /// that it is never done, and nothing is made of it.
    fn at_memory(
        &mut self,
        access: &Access,
        (index, limits): (&[Expr], &[Bound]),
        place: &Place,
        make: impl FnOnce(Handle<tilewright_ir::thread::Memory>, Expr) -> Stmt,
    ) -> bool {
        let buffer = &self.kernel.buffers[access.buffer];
        let memory = self.builder.memory(access.buffer);
        let mut conditions = Vec::new();
        for bound in limits {
            let more = inside(bound, place.step, &place.mask, &mut self.points, self.builder, &mut self.out);
            conditions.extend(more);
        }
        let address = self.address_of(access.buffer, index);
        let mut inner = Vec::new();
        let layout = buffer.layout.as_ref();
        let at = address.at(layout, 1, (place.step, &place.mask), &mut self.points, self.builder, &mut inner);
        let elements = self.builder.program.memories[memory].elements;
        if buffer.space == Space::Shared && at.as_const().is_some_and(|at| !(0..elements).contains(&at)) {
            return false;
        }
        inner.push(make(memory, at));
        self.out.extend(under(&conditions, inner));
        true
    }

    fn address_of(&mut self, handle: Handle<Buffer>, index: &[Expr]) -> Address {
        let known = self.addresses.iter().find(|(buffer, at, _)| *buffer == handle && at == index);
        if let Some((_, _, address)) = known {
            return address.clone();
        }
        let address = Address::of(&self.kernel.buffers[handle], index, &mut self.points);
        self.addresses.push((handle, index.to_vec(), address.clone()));
        address
    }

    fn fragment(&mut self, buffer: Handle<Buffer>) -> Result<Rc<Held>, Refusal> {
        if let Some(held) = self.held.get(&buffer) {
            return Ok(held.clone());
        }
        let held = Rc::new(Held::of(self.kernel, self.builder, buffer)?);
        self.held.insert(buffer, held.clone());
        Ok(held)
    }

    /// The slots that an access of a fragment may mean, each with its conditions.
    fn ways(&mut self, access: &Access, place: &Place) -> Result<Vec<Way>, Refusal> {
        let held = self.fragment(access.buffer)?;
        let index = self.coordinates(access, place)?;
        let buffer = &self.kernel.buffers[access.buffer];
        let flat = tilewright_ir::tile::flat(&index, &buffer.shape);
        let mut ways = Vec::new();
        for (asked, flat) in self.untied(&buffer.name, flat)? {
            ways.extend(self.ways_of(&held, &flat, &asked, place));
        }
        Ok(ways)
    }

    /// The expression as sums of what depends on the iteration and what does not: where one term ties both, once for
    /// every value of the variables that are not the nest's, with the conditions for it.
    fn untied(&mut self, name: &str, flat: Expr) -> Result<Vec<(Vec<Cond>, Expr)>, Refusal> {
        let mut known = vec![(Vec::new(), flat)];
        while let Some(at) = known.iter().position(|(_, flat)| self.points.split(flat).is_none()) {
            let (asked, flat) = known.remove(at);
            let own = &self.nest.vars;
            let mut tied: Option<Var> = None;
            for (_, atom) in linear(&flat).terms {
                if own.iter().any(|var| atom.mentions(var)) {
                    atom.for_each_var(&mut |var| {
                        if tied.is_none() && !own.contains(var) {
                            tied = Some(var.clone());
                        }
                    });
                }
            }
            let var = tied.ok_or_else(|| format!("the index of `{name}` has terms that are tied to no variable"))?;
            let range = var.range();
            if range.hi - range.lo >= MOST_TIED || known.len() as i64 >= MOST_TIED {
                let var = var.name();
                return Err(Refusal::Limit {
                    text: format!(
                        "the index of `{name}` ties the variables of the loop to `{var}`, which has more than \
                         {MOST_TIED} values"
                    ),
                    help: "write the index as a sum of what depends on the loop and what does not, or keep the tile in \
                           shared memory",
                });
            }
            known.extend((range.lo..=range.hi).map(|value| {
                let more = Cond::Equal(Expr::var(&var), Expr::constant(value));
                (asked.iter().cloned().chain([more]).collect(), normalize(&flat.with(&var, value)))
            }));
        }
        Ok(known)
    }

    /// The slots of elements at a sum, each with its conditions behind those that are `asked` already.
    fn ways_of(&mut self, held: &Held, flat: &Expr, asked: &[Cond], place: &Place) -> Vec<Way> {
        let Some(split) = self.points.split(flat) else { return Vec::new() };
        let elements = held.elements();
        let own: Vec<Option<i64>> = self.points.steps_values(&split.own, place.step, &place.mask).collect();
        if let Some(other) = split.other.as_const() {
            let at = own.iter().map(|own| own.map(|own| own + other));
            return self.of_groups(held.by_slot(at), place, asked);
        }
        // Registers have no address: every place that the index may lead to is asked for.
        let (least, most) = (own.iter().flatten().min(), own.iter().flatten().max());
        let (Some(least), Some(most)) = (least, most) else { return Vec::new() };
        let range = split.other.range();
        let step = split.other.multiple().max(1);
        let first = range.lo.max(-most);
        let mut other = first + (step - first.rem_euclid(step)) % step;
        let mut ways = Vec::new();
        while other <= range.hi.min(elements - 1 - least) {
            let at = own.iter().map(|own| own.map(|own| own + other).filter(|at| (0..elements).contains(at)));
            let here = Cond::Equal(split.other.clone(), Expr::constant(other));
            let asked: Vec<Cond> = asked.iter().cloned().chain([here]).collect();
            ways.extend(self.of_groups(held.by_slot(at), place, &asked));
            other += step;
        }
        ways
    }

    fn of_groups(&mut self, groups: BTreeMap<Slot, Vec<bool>>, place: &Place, asked: &[Cond]) -> Vec<Way> {
        let mut ways = Vec::new();
        for (slot, mask) in groups {
            let mut conditions = asked.to_vec();
            if mask != *place.mask {
                conditions.extend(self.conditions(&mask));
            }
            ways.push(Way { conditions, slot });
        }
        ways
    }

    /// Whether an index of variables may lead out of the buffer, by its range.
    fn may_leave(&self, access: &Access) -> bool {
        let mut dimensions = access.index.iter().zip(&self.kernel.buffers[access.buffer].shape);
        dimensions.any(|(coord, extent)| matches!(coord, Coord::At(at) if !at.range().within(0, *extent)))
    }

    /// The value of an element of a fragment.
    fn read_fragment(&mut self, access: &Access, place: &Place) -> Result<ThreadValue, Refusal> {
        let held = self.fragment(access.buffer)?;
        let ways = self.ways(access, place)?;
        let dtype = self.kernel.buffers[access.buffer].dtype;
        match &ways[..] {
            [] => Ok(ThreadValue::Const(dtype, Scalar::Int(0))),
            [way] if way.conditions.is_empty() => Ok(held.read(way.slot)),
            _ => {
                let array = self.new_registers("r", dtype, 1);
                // In an arm that is not taken, an element may be one that no thread has.
                if self.arms > 0 && self.may_leave(access) {
                    self.out.push(Stmt::Set { to: regs(array, 0, 1), value: Scalar::Int(0) });
                }
                for way in ways {
                    let read = Stmt::Assign { to: regs(array, 0, 1), value: held.read(way.slot) };
                    self.out.extend(under(&way.conditions, vec![read]));
                }
                Ok(ThreadValue::Reg(array, 0))
            }
        }
    }

    /// An element of a fragment becomes a value.
    fn write_fragment(&mut self, access: &Access, place: &Place, value: &ThreadValue) -> Result<(), Refusal> {
        let held = self.fragment(access.buffer)?;
        for way in self.ways(access, place)? {
            let written = held.written(way.slot, value.clone());
            let assign = Stmt::Assign { to: regs(held.array, way.slot.register, 1), value: written };
            self.out.extend(under(&way.conditions, vec![assign]));
        }
        Ok(())
    }

    fn branch(
        &mut self,
        cond: &Value,
        then: &[ElementStmt],
        otherwise: &[ElementStmt],
        place: &Place,
    ) -> Result<(), Refusal> {
        if let Some(holds) = self.truths(cond, place) {
            for (branch, wanted) in [(then, true), (otherwise, false)] {
                let mask: Vec<bool> = holds.iter().map(|holds| *holds == Some(wanted)).collect();
                if mask.contains(&true) {
                    let inner = Place { step: place.step, mask: Rc::new(mask.clone()) };
                    let body = self.aside(|this| this.elements(branch, &inner))?;
                    self.guarded(&mask, &place.mask, body);
                }
            }
            return Ok(());
        }
        // Kept, so that what one branch does is not seen by the other's condition.
        let array = self.new_registers("holds", DType::I32, 1);
        self.keep_truth(cond, array, place)?;
        let number = |value: i64| ThreadValue::Const(DType::I32, Scalar::Int(value));
        for (branch, wanted) in [(then, 1), (otherwise, 0)] {
            let body = self.aside(|this| this.elements(branch, place))?;
            let compared = vec![ThreadValue::Reg(array, 0), number(wanted)];
            let cond = ThreadValue::Op(ElementOp::Eq, compared);
            if !body.is_empty() {
                self.out.push(Stmt::IfValue { cond, is_uniform: false, body });
            }
        }
        Ok(())
    }

    /// A register becomes 1 where a condition holds, else 0.
    fn keep_truth(&mut self, cond: &Value, holds: Handle<RegArray>, place: &Place) -> Result<(), Refusal> {
        let cond = self.value(cond, None, place)?;
        let number = |value: i64| ThreadValue::Const(DType::I32, Scalar::Int(value));
        let value = ThreadValue::Op(ElementOp::Select, vec![cond, number(1), number(0)]);
        self.out.push(Stmt::Assign { to: regs(holds, 0, 1), value });
        Ok(())
    }

    /// Whether a condition holds, by thread; `None` if it depends on more than the iteration.
    fn truths(&self, cond: &Value, place: &Place) -> Option<Vec<Option<bool>>> {
        let vars = &self.nest.vars;
        let extents: Vec<i64> = vars.iter().map(|var| var.range().hi + 1).collect();
        let digit = |var: &Var, iteration: usize| {
            let at = vars.iter().position(|known| known == var)?;
            let stride: i64 = extents[at + 1..].iter().product();
            Some(iteration as i64 / stride % extents[at])
        };
        let holds = |thread: usize| {
            let iteration = self.nest.steps.at(thread, place.step)?;
            cond.truth(&|var| digit(var, iteration))
        };
        let found = place.mask.iter().enumerate().map(|(thread, here)| here.then(|| holds(thread)));
        found.map(|holds| holds.map_or(Some(None), |known| known.map(Some))).collect()
    }

    fn repeat(&mut self, var: &Var, body: &[ElementStmt], place: &Place) -> Result<(), Refusal> {
        let range = var.range();
        let is_short = range.hi - range.lo < MOST_WRITTEN_OUT;
        if is_short || body.iter().any(|element| self.indexes_fragment(element, var)) {
            for value in range.lo..=range.hi {
                let written: Vec<ElementStmt> = body.iter().map(|element| substituted(element, var, value)).collect();
                self.elements(&written, place)?;
            }
            return Ok(());
        }
        let fresh = Var::new(self.builder.fresh(var.name()), range.lo, range.hi);
        let renamed: Vec<ElementStmt> = body.iter().map(|element| renamed(element, var, &fresh)).collect();
        let body = self.aside(|this| this.elements(&renamed, place))?;
        self.out.push(Stmt::For { var: fresh, is_unrolled: false, body });
        Ok(())
    }

    fn indexes_fragment(&self, element: &ElementStmt, var: &Var) -> bool {
        let mut found = false;
        element.for_each_access(&mut |access, _| {
            let mentions = access.index.iter().any(|coord| matches!(coord, Coord::At(expr) if expr.mentions(var)));
            found |= mentions && self.kernel.buffers[access.buffer].space == Space::Fragment;
        });
        found
    }
}

fn substituted(element: &ElementStmt, var: &Var, value: i64) -> ElementStmt {
    element.map_exprs(&|expr| normalize(&expr.with(var, value)))
}

fn renamed(element: &ElementStmt, var: &Var, to: &Var) -> ElementStmt {
    element.map_exprs(&|expr| expr.substitute(&|known| (known == var).then(|| Expr::var(to))))
}
