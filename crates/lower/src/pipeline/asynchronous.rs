//! Statements that load from tensors and store to shared memory, as asynchronous copies.
//!
//! A store takes the place of the loads of its registers. Where the load is under further conditions, because elements lie
//! beyond the edge of a tensor, threads for which these do not hold fill the place with zeros.

use std::collections::BTreeSet;

use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Call, Cond, Inst, Memory, MemorySpace, Program, RegArray, Regs, Stmt};
use tilewright_ir::{Handle, Scalar};

use crate::conditions::merged;

/// The statements with asynchronous copies in place of all loads and stores, or why that is not possible.
pub(crate) fn asynchronous(program: &Program, body: &[Stmt]) -> Result<Vec<Stmt>, Reason> {
    let mut rewrite = Rewrite { program, held: Vec::new(), conditions: Vec::new(), ended: BTreeSet::new() };
    Ok(merged(rewrite.body(body)?))
}

/// What surrounds a statement.
#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Holds(Cond),
    /// Not all of them hold.
    Unless(Vec<Cond>),
}

/// What registers hold, and under which conditions they got it.
#[derive(Clone, Debug)]
struct Held {
    array: Handle<RegArray>,
    /// The numbers of the registers; those of a load are adjacent.
    numbers: Vec<i64>,
    source: Source,
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug)]
enum Source {
    Zeros,
    Tensor { memory: Handle<Memory>, first: Expr },
}

/// Some of the registers of a store, which got their elements together.
struct Part {
    /// The place of the first of them in the store.
    at: usize,
    numbers: Vec<i64>,
    /// Where they got them, among all that registers got.
    held: usize,
}

struct Rewrite<'a> {
    program: &'a Program,
    /// What registers got so far, the latest last.
    held: Vec<Held>,
    conditions: Vec<Condition>,
    /// The names that are defined inside of branches and loops that have ended.
    ended: BTreeSet<Var>,
}

fn reordered() -> Reason {
    Reason::new("elements change their order on the way", "layouts with the same order")
}

fn computed() -> Reason {
    Reason::new("elements are computed on the way", "elements that are only moved")
}

fn branched() -> Reason {
    Reason::new("elements are loaded in one branch and stored in another", "a load and a store in the same branch")
}

fn narrow(bytes: i64) -> Reason {
    let text = format!("a thread moves {bytes} B at a time");
    Reason::new(text, "4, 8 or 16 B, from addresses that are multiples of it")
}

impl Rewrite<'_> {
    fn body(&mut self, body: &[Stmt]) -> Result<Vec<Stmt>, Reason> {
        let mut out = Vec::new();
        for stmt in body {
            match stmt {
                Stmt::Let { .. } => out.push(stmt.clone()),
                Stmt::Declare(_) => {}
                Stmt::Set { to, value: Scalar::Int(0) } => self.hold(to, Source::Zeros)?,
                Stmt::Load { to, memory, index } => {
                    self.hold(to, Source::Tensor { memory: *memory, first: index.clone() })?;
                }
                Stmt::Store { memory, index, from } => out.extend(self.store(*memory, index, from)?),
                Stmt::If { cond, body } => {
                    let inner = self.under(Condition::Holds(cond.clone()), body)?;
                    out.extend((!inner.is_empty()).then(|| Stmt::If { cond: cond.clone(), body: inner }));
                }
                Stmt::Unless { conds, body } => {
                    let inner = self.under(Condition::Unless(conds.clone()), body)?;
                    out.extend((!inner.is_empty()).then(|| Stmt::Unless { conds: conds.clone(), body: inner }));
                }
                Stmt::For { counter, unroll, body } => {
                    let held = self.held.len();
                    let inner = self.body(body)?;
                    // What an iteration loads is stored in this iteration.
                    self.held.truncate(held);
                    self.end(body);
                    out.push(Stmt::For { counter: counter.clone(), unroll: *unroll, body: inner });
                }
                Stmt::Lookup { .. } => {
                    return Err(Reason::new("an address is looked up in a table", "indices that are expressions"));
                }
                Stmt::LetValue { .. } => {
                    return Err(Reason::new("an address depends on data", "indices that are expressions"));
                }
                Stmt::IfValue { .. } => {
                    return Err(Reason::new("elements are under a condition on values", "elements without conditions"));
                }
                Stmt::Move { .. } => return Err(reordered()),
                Stmt::Set { .. } | Stmt::Assign { .. } | Stmt::AssignPair { .. } => return Err(computed()),
                Stmt::Op { .. } | Stmt::Mma(_) | Stmt::WarpgroupMma(_) | Stmt::Inst(_) => return Err(computed()),
                Stmt::TensorMma(_) | Stmt::TensorMove(_) => return Err(computed()),
                Stmt::Role { .. } | Stmt::Elect { .. } | Stmt::TensorCopy(_) | Stmt::Advance { .. } => {
                    return Err(computed());
                }
            }
        }
        Ok(out)
    }

    fn under(&mut self, condition: Condition, body: &[Stmt]) -> Result<Vec<Stmt>, Reason> {
        self.conditions.push(condition);
        let inner = self.body(body);
        self.conditions.pop();
        self.end(body);
        let is_name = |stmt: &Stmt| matches!(stmt, Stmt::Let { .. });
        inner.map(|inner| if inner.iter().all(is_name) { Vec::new() } else { inner })
    }

    /// Notes the names of a block that has ended.
    fn end(&mut self, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.ended.extend(stmt.defines().iter().cloned()));
    }

    fn hold(&mut self, regs: &Regs, source: Source) -> Result<(), Reason> {
        let numbers = numbers(regs).ok_or_else(reordered)?;
        let is_list = numbers.windows(2).all(|pair| pair[1] == pair[0] + 1);
        if !is_list && matches!(source, Source::Tensor { .. }) {
            return Err(reordered());
        }
        self.held.push(Held { array: regs.array, numbers, source, conditions: self.conditions.clone() });
        Ok(())
    }

    /// Copies in place of a store of what was loaded: one for each part of it that comes from one load.
    fn store(&self, memory: Handle<Memory>, index: &Expr, from: &Regs) -> Result<Vec<Stmt>, Reason> {
        let [register, element] =
            [self.program.registers[from.array].dtype, self.program.memories[memory].dtype].map(|dtype| dtype.bytes());
        let numbers = numbers(from).ok_or_else(reordered)?;
        let parts = self.parts(from.array, &numbers)?;
        let mut out = Vec::new();
        for part in &parts {
            let bytes = part.numbers.len() as i64 * register;
            let offset = (part.at as i64) * register;
            let [copy, fill] = of_width(bytes).ok_or_else(|| narrow(bytes))?;
            if offset % bytes != 0 || bytes < element {
                return Err(narrow(element));
            }
            let place = (memory, normalize(&(index + offset / element)));
            out.extend(self.copied(part, place, [copy, fill])?);
        }
        Ok(out)
    }

    /// The parts of some registers that come from one load, or are zeros.
    fn parts(&self, array: Handle<RegArray>, all: &[i64]) -> Result<Vec<Part>, Reason> {
        let mut parts: Vec<Part> = Vec::new();
        for (at, number) in all.iter().enumerate() {
            let has_it = |held: &Held| held.array == array && held.numbers.contains(number);
            let held = self.held.iter().rposition(has_it).ok_or_else(computed)?;
            match parts.last_mut() {
                Some(part) if part.held == held && part.numbers.last() == Some(&(number - 1)) => {
                    part.numbers.push(*number)
                }
                Some(_) | None => parts.push(Part { at, numbers: vec![*number], held }),
            }
        }
        Ok(parts)
    }

    /// A copy of a part to a place in shared memory, or zeros where it was not loaded.
    fn copied(&self, part: &Part, place: (Handle<Memory>, Expr), [copy, fill]: [Inst; 2]) -> Result<Vec<Stmt>, Reason> {
        let zeros = || vec![Stmt::from(Call { memory: vec![place.clone()], ..Call::plain(fill) })];
        let Held { array, numbers, source, conditions } = &self.held[part.held];
        let further = self.further(conditions)?;
        let Source::Tensor { memory: tensor, first } = source else {
            return if further.is_empty() { Ok(zeros()) } else { Err(branched()) };
        };
        let from = self.place((*tensor, first), *array, part.numbers[0] - numbers[0])?;
        let is_ended = |expr: &Expr| self.ended.iter().any(|var| expr.mentions(var));
        if is_ended(&from.1) || further.iter().flat_map(Cond::sides).any(is_ended) {
            return Err(branched());
        }
        let copy = Stmt::from(Call { memory: vec![place.clone(), from], ..Call::plain(copy) });
        let mut out = further.iter().rev().fold(vec![copy], |body, cond| vec![Stmt::If { cond: cond.clone(), body }]);
        if !further.is_empty() {
            match self.before(part) {
                Some(Source::Zeros) => out.push(Stmt::Unless { conds: further, body: zeros() }),
                Some(Source::Tensor { .. }) => return Err(branched()),
                None => {}
            }
        }
        Ok(out)
    }

    /// The conditions of a load that do not hold anyway where the store is.
    fn further(&self, conditions: &[Condition]) -> Result<Vec<Cond>, Reason> {
        let open = conditions.iter().filter(|condition| !self.conditions.contains(condition));
        let holds = |condition: &Condition| match condition {
            Condition::Holds(cond) => Some(cond.clone()),
            Condition::Unless(_) => None,
        };
        open.map(holds).collect::<Option<Vec<Cond>>>().ok_or_else(branched)
    }

    /// What registers held before they got a part.
    fn before(&self, part: &Part) -> Option<&Source> {
        let array = self.held[part.held].array;
        let is_it =
            |held: &&Held| held.array == array && part.numbers.iter().any(|number| held.numbers.contains(number));
        self.held[..part.held].iter().rfind(is_it).map(|held| &held.source)
    }

    /// The place in a tensor of what was loaded `offset` registers of an array behind `first`.
    fn place(
        &self,
        (tensor, first): (Handle<Memory>, &Expr),
        array: Handle<RegArray>,
        offset: i64,
    ) -> Result<(Handle<Memory>, Expr), Reason> {
        let memory = &self.program.memories[tensor];
        match memory.space {
            MemorySpace::Global { may_alias: false, .. } => {}
            MemorySpace::Global { may_alias: true, .. } => {
                let text = format!("`{}` may share memory with a tensor that is written", memory.name);
                return Err(Reason::new(text, "tensors that are only read"));
            }
            MemorySpace::Shared
            | MemorySpace::SharedView { .. }
            | MemorySpace::SharedInside { .. }
            | MemorySpace::Table => {
                return Err(Reason::new("elements do not come from a tensor", "copies from tensors to shared memory"));
            }
        }
        let offset = offset * self.program.registers[array].dtype.bytes() / memory.dtype.bytes();
        Ok((tensor, normalize(&(first + offset))))
    }
}

/// The numbers of some registers, if they are known.
fn numbers(regs: &Regs) -> Option<Vec<i64>> {
    let first = regs.first.as_const()?;
    Some((0..regs.count).map(|at| first + at * regs.step).collect())
}

/// The instructions that copy so many bytes, and that fill them with zeros.
fn of_width(bytes: i64) -> Option<[Inst; 2]> {
    match bytes {
        4 => Some([Inst::CopyAsync4, Inst::ZeroFill4]),
        8 => Some([Inst::CopyAsync8, Inst::ZeroFill8]),
        16 => Some([Inst::CopyAsync16, Inst::ZeroFill16]),
        _ => None,
    }
}
