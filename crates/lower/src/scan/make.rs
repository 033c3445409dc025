//! The statements of a scan in registers.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Inst, Memory, MemorySpace, RegArray, Stmt, Value};
use tilewright_layout::DType;

use super::context::Context;
use super::runs::{Cell, Groups, Part, Place};
use crate::builder::{Builder, regs};
use crate::combine::neutral;
use crate::refusal::Refusal;
use crate::threads::{by_threads, number};

/// The statements so far, and what they are made from.
pub(super) struct Make<'a> {
    context: &'a Context,
    groups: &'a Groups,
    builder: &'a mut Builder,
    out: Vec<Stmt>,
}

/// The registers of a round.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// The elements of the thread's run, each combined with those before it in the run.
    prefixes: Handle<RegArray>,
    /// What precedes the run; `None` if nothing can.
    before: Option<Handle<RegArray>>,
    /// All elements of the group.
    total: Handle<RegArray>,
}

fn reg(array: Handle<RegArray>) -> Value {
    Value::reg(array, 0)
}

impl<'a> Make<'a> {
    pub(super) fn new(context: &'a Context, groups: &'a Groups, builder: &'a mut Builder) -> Make<'a> {
        Make { context, groups, builder, out: Vec::new() }
    }

    /// Every group has whole rows: what a round leaves is what precedes the next one.
    pub(super) fn with_carry(mut self) -> Result<Vec<Stmt>, Refusal> {
        let rounds = &self.groups.rounds;
        let carries = self.set(|thread| self.groups.rounds.iter().any(|cells| follows(&cells[thread])));
        let carry = carries.contains(&true).then(|| self.register("carry"));
        for (at, cells) in rounds.iter().enumerate() {
            let mut round = self.round(cells)?;
            let follow: Vec<bool> = cells.iter().map(follows).collect();
            if let Some(carry) = carry.filter(|_| follow.contains(&true)) {
                let before = match round.before {
                    Some(before) => {
                        let value = self.context.combined(reg(carry), reg(before));
                        self.by(&follow, vec![assign(before, value)]);
                        before
                    }
                    None if follow.contains(&false) => {
                        let before = self.neutral_register("before")?;
                        self.by(&follow, vec![assign(before, reg(carry))]);
                        before
                    }
                    None => carry,
                };
                round.before = Some(before);
            }
            self.written(cells, round)?;
            let is_last = rounds.get(at + 1).is_none_or(|next| !next.iter().any(follows));
            if let Some(carry) = carry.filter(|_| !is_last) {
                let first: Vec<bool> = follow.iter().map(|follows| !follows).collect();
                if follow.contains(&true) {
                    let value = self.context.combined(reg(carry), reg(round.total));
                    self.by(&follow, vec![assign(carry, value)]);
                }
                if first.contains(&true) {
                    self.by(&first, vec![assign(carry, reg(round.total))]);
                }
            }
        }
        Ok(self.out)
    }

    /// Groups have parts of rows: the first thread of each puts its total in shared memory, and every thread combines those
    /// that precede its own.
    pub(super) fn across(mut self, parts: &[Vec<Part>]) -> Result<Vec<Stmt>, Refusal> {
        let rounds: Vec<Round> =
            self.groups.rounds.iter().map(|cells| self.round(cells)).collect::<Result<_, Refusal>>()?;
        let most = parts.iter().map(Vec::len).max().unwrap_or(0);
        let memory = self.scratch(most * parts.len());
        let position = |row: usize, at: usize| (row * most + at) as i64;
        for (number, round) in rounds.iter().enumerate() {
            let mut stores = vec![None; self.context.runs.len()];
            for (row, of_row) in parts.iter().enumerate() {
                for (at, part) in of_row.iter().enumerate().filter(|(_, part)| part.round == number) {
                    stores[part.thread] = Some(position(row, at));
                }
            }
            let from = regs(round.total, 0, 1);
            self.access(&stores, |index| vec![Stmt::Store { memory, index, from }]);
        }
        self.out.push(Stmt::from(Call::plain(Inst::SyncThreads)));
        let carry = self.neutral_register("carry")?;
        let part = self.register("part");
        let mut known: Vec<Option<(usize, usize)>> = vec![None; self.context.runs.len()];
        for (cells, round) in self.groups.rounds.iter().zip(rounds) {
            self.combined_before(cells, parts, &mut known, (carry, part, memory, most))?;
            let before = match round.before {
                Some(before) => {
                    let value = self.context.combined(reg(carry), reg(before));
                    self.out.push(assign(before, value));
                    before
                }
                None => carry,
            };
            self.written(cells, Round { before: Some(before), ..round })?;
        }
        Ok(self.out)
    }

    /// Combines the parts in shared memory that precede those of a round; `known` is the row of each thread's last round, and
    /// how many of its parts it has combined.
    fn combined_before(
        &mut self,
        cells: &[Option<Cell>],
        parts: &[Vec<Part>],
        known: &mut [Option<(usize, usize)>],
        (carry, part, memory, most): (Handle<RegArray>, Handle<RegArray>, Handle<Memory>, usize),
    ) -> Result<(), Refusal> {
        let place = |cell: &Cell| {
            let at = parts[cell.run.row].iter().position(|part| part.begin == cell.group.0);
            (cell.run.row, at.unwrap_or(0))
        };
        let wanted: Vec<Option<(usize, usize)>> = cells.iter().map(|cell| cell.as_ref().map(place)).collect();
        // The parts of another row do not count.
        let is_new = |thread: usize| wanted[thread].map(|(row, _)| row) != known[thread].map(|(row, _)| row);
        let new = self.set(|thread| wanted[thread].is_some() && known[thread].is_some() && is_new(thread));
        if new.contains(&true) {
            let value = neutral(self.context.attributes.kind, self.context.dtype)?;
            self.by(&new, vec![Stmt::Set { to: regs(carry, 0, 1), value }]);
        }
        let first: Vec<usize> = (0..cells.len())
            .map(|thread| known[thread].filter(|_| !is_new(thread)).map_or(0, |(_, combined)| combined))
            .collect();
        let missing = |thread: usize| wanted[thread].map_or(0, |(_, at)| at - first[thread].min(at));
        for step in 0..(0..cells.len()).map(missing).max().unwrap_or(0) {
            // Every thread reads, so that no warp waits for another: those that have all of theirs, the last one of their row.
            let read = |thread: usize| {
                let (row, _) = wanted[thread]?;
                Some((row * most + (first[thread] + step).min(parts[row].len() - 1)) as i64)
            };
            let positions: Vec<Option<i64>> = (0..cells.len()).map(read).collect();
            let to = regs(part, 0, 1);
            self.access(&positions, |index| vec![Stmt::Load { to, memory, index }]);
            let set = self.set(|thread| step < missing(thread));
            let value = self.context.combined(reg(carry), reg(part));
            self.by(&set, vec![assign(carry, value)]);
        }
        for (known, wanted) in known.iter_mut().zip(wanted) {
            *known = wanted.or(*known);
        }
        Ok(())
    }

    /// Every thread combines the elements of its run, and shuffles tell it what precedes it in its group.
    fn round(&mut self, cells: &[Option<Cell>]) -> Result<Round, Refusal> {
        let longest = cells.iter().flatten().map(|cell| cell.run.places.len()).max().unwrap_or(0) as i64;
        let prefixes = self.builder.registers("prefix", self.context.dtype, longest.max(1), 1, &mut self.out);
        let total = self.register("total");
        let has_run = |cell: &Option<Cell>| cell.as_ref().is_some_and(|cell| !cell.run.places.is_empty());
        if !cells.iter().all(has_run) {
            let value = neutral(self.context.attributes.kind, self.context.dtype)?;
            self.out.push(Stmt::Set { to: regs(total, 0, 1), value });
        }
        for (places, set) in by_places(cells) {
            let mut body = Vec::with_capacity(places.len() + 1);
            for (at, place) in (0..).zip(&places[..]) {
                let element = self.context.element(*place);
                let value =
                    if at == 0 { element } else { self.context.combined(Value::reg(prefixes, at - 1), element) };
                body.push(Stmt::Assign { to: regs(prefixes, at, 1), value });
            }
            body.push(assign(total, Value::reg(prefixes, places.len() as i64 - 1)));
            self.by(&set, body);
        }
        let before = if self.groups.bits == 0 { None } else { Some(self.shuffled(total)?) };
        Ok(Round { prefixes, before, total })
    }

    /// What precedes each thread's run in its group; afterwards all of the group have its total.
    fn shuffled(&mut self, total: Handle<RegArray>) -> Result<Handle<RegArray>, Refusal> {
        let before = self.neutral_register("before")?;
        let other = self.register("other");
        for (at, mask) in self.groups.masks().enumerate() {
            self.out.push(Stmt::from(Call {
                to: Some(regs(other, 0, 1)),
                from: vec![regs(total, 0, 1)],
                arguments: vec![Expr::constant(mask as i64)],
                ..Call::plain(Inst::ShuffleXor)
            }));
            // Those behind the other half of their group.
            let is_reverse = self.context.attributes.is_reverse;
            let behind = self.set(|thread| (thread & mask != 0) != is_reverse);
            let value = if at == 0 { reg(other) } else { self.context.combined(reg(other), reg(before)) };
            self.by(&behind, vec![assign(before, value)]);
            let value = self.context.combined(reg(total), reg(other));
            self.out.push(assign(total, value));
        }
        Ok(before)
    }

    /// Writes the results of a round.
    fn written(&mut self, cells: &[Option<Cell>], round: Round) -> Result<(), Refusal> {
        for (places, set) in by_places(cells) {
            let all = self.results(&places, round);
            self.by(&set, all);
        }
        if !self.context.attributes.is_exclusive {
            return Ok(());
        }
        let start = self.context.attributes.kind.start(self.context.of);
        let start = start.ok_or_else(|| Refusal::from(format!("no first result of {}", self.context.of)))?;
        let is_first = |cell: &Cell| cell.run.start == 0 && !cell.run.places.is_empty();
        let firsts: Vec<Option<Cell>> = cells.iter().map(|cell| cell.clone().filter(is_first)).collect();
        for (places, set) in by_places(&firsts) {
            let slot = places[0].result;
            let value = self.context.result.written(slot, Value::Const(self.context.of, start));
            self.by(&set, vec![Stmt::Assign { to: regs(self.context.result.array, slot.register, 1), value }]);
        }
        Ok(())
    }

    fn results(&self, places: &[Place], round: Round) -> Vec<Stmt> {
        let context = self.context;
        let result = |(at, place): (i64, &Place)| {
            let prefix = match (context.attributes.is_exclusive, at) {
                (false, at) => Some(Value::reg(round.prefixes, at)),
                (true, 0) => None,
                (true, at) => Some(Value::reg(round.prefixes, at - 1)),
            };
            let value = match (round.before, prefix) {
                (Some(before), Some(prefix)) => context.combined(reg(before), prefix),
                (Some(before), None) => reg(before),
                (None, prefix) => prefix?,
            };
            let value = context.result.written(place.result, context.rounded(value));
            Some(Stmt::Assign { to: regs(context.result.array, place.result.register, 1), value })
        };
        (0..).zip(places).filter_map(result).collect()
    }

    fn register(&mut self, name: &str) -> Handle<RegArray> {
        self.builder.registers(name, self.context.dtype, 1, 1, &mut self.out)
    }

    fn neutral_register(&mut self, name: &str) -> Result<Handle<RegArray>, Refusal> {
        let array = self.register(name);
        let value = neutral(self.context.attributes.kind, self.context.dtype)?;
        self.out.push(Stmt::Set { to: regs(array, 0, 1), value });
        Ok(array)
    }

    fn set(&self, is_in: impl Fn(usize) -> bool) -> Vec<bool> {
        (0..self.context.runs.len()).map(is_in).collect()
    }

    /// Adds statements that the threads of `set` execute.
    fn by(&mut self, set: &[bool], body: Vec<Stmt>) {
        by_threads(set, |_| false, body, &self.context.thread, self.builder, &mut self.out);
    }

    fn access(&mut self, positions: &[Option<i64>], make: impl FnOnce(Expr) -> Vec<Stmt>) {
        access(self.context, self.builder, positions, &mut self.out, make);
    }

    fn scratch(&mut self, elements: usize) -> Handle<Memory> {
        scratch(self.context, self.builder, "totals", self.context.dtype, elements)
    }
}

/// Shared memory of a scan.
pub(super) fn scratch(
    context: &Context,
    builder: &mut Builder,
    name: &str,
    dtype: DType,
    elements: usize,
) -> Handle<Memory> {
    let name = builder.fresh(name);
    builder.program.memories.push(Memory {
        name,
        dtype,
        elements: elements as i64,
        stages: 1,
        space: MemorySpace::Shared,
        values: Vec::new(),
        alignment: dtype.bytes(),
        span: context.op.span,
    })
}

/// Adds statements that access the positions of the threads that have one.
pub(super) fn access(
    context: &Context,
    builder: &mut Builder,
    positions: &[Option<i64>],
    out: &mut Vec<Stmt>,
    make: impl FnOnce(Expr) -> Vec<Stmt>,
) {
    if positions.iter().all(Option::is_none) {
        return;
    }
    let mut body = Vec::new();
    let index = number(positions, 1, &context.thread, builder, &mut body);
    body.extend(make(index));
    let set: Vec<bool> = positions.iter().map(Option::is_some).collect();
    by_threads(&set, |_| false, body, &context.thread, builder, out);
}

fn assign(to: Handle<RegArray>, value: Value) -> Stmt {
    Stmt::Assign { to: regs(to, 0, 1), value }
}

/// Whether a round of a thread continues the row of the one before.
fn follows(cell: &Option<Cell>) -> bool {
    cell.as_ref().is_some_and(|cell| cell.group.0 > 0)
}

/// The threads that have their runs at the same places.
fn by_places(cells: &[Option<Cell>]) -> BTreeMap<Arc<[Place]>, Vec<bool>> {
    let mut found: BTreeMap<Arc<[Place]>, Vec<bool>> = BTreeMap::new();
    for (thread, cell) in cells.iter().enumerate() {
        if let Some(cell) = cell.as_ref().filter(|cell| !cell.run.places.is_empty()) {
            found.entry(Arc::clone(&cell.run.places)).or_insert_with(|| vec![false; cells.len()])[thread] = true;
        }
    }
    found
}
