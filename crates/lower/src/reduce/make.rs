//! The statements of a reduction.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Inst, Memory, RegArray, Regs, Stmt, Value};
use tilewright_ir::tile::ElementOp;
use tilewright_layout::DType;

use super::context::Context;
use super::rows::{Rows, ShuffleMask};
use super::staging::{SlotLoads, Staging};
use crate::builder::{Builder, regs};
use crate::combine::{cast, combine, neutral};
use crate::fragment_registers::Slot;
use crate::refusal::Refusal;
use crate::threads::{by_threads, number};
use crate::variant::AcrossLoop;

/// The statements so far, and what they are made from.
pub(super) struct Make<'a> {
    pub(super) context: &'a Context,
    /// The parts that are combined.
    pub(super) rows: &'a Rows,
    pub(super) builder: &'a mut Builder,
    pub(super) out: Vec<Stmt>,
}

/// The most chains in which a thread combines its elements of a row.
const MOST_CHAINS: usize = 4;

/// An element that threads combine with one of their parts.
struct Source {
    /// The place of the part among those of a thread.
    place: usize,
    /// How many elements precede it in its part.
    at: usize,
    /// The slot of the element.
    slot: usize,
    /// The threads that have it.
    set: Vec<bool>,
}

impl Make<'_> {
    fn combined(&self, a: Value, b: Value) -> Value {
        Value::Op(combine(self.context.attributes.kind), vec![a, b])
    }

    /// Adds statements that the threads of `set` execute, and that threads for which `may` is true may execute as
    /// well.
    fn by(&mut self, set: &[bool], may: impl Fn(usize) -> bool, body: Vec<Stmt>) {
        by_threads(set, may, body, &self.context.thread, self.builder, &mut self.out);
    }

    fn set(&self, is_in: impl Fn(usize) -> bool) -> Vec<bool> {
        (0..self.rows.threads()).map(is_in).collect()
    }

    /// Every thread combines its parts of all iterations; the parts of all threads are combined after the loop.
    pub(super) fn across_loop(
        mut self,
        exchange: ShuffleMask,
        leaders: Option<&[Vec<usize>]>,
    ) -> Result<AcrossLoop, Refusal> {
        let (dtype, most) = (self.context.dtype, self.rows.most_parts() as i64);
        let array = self.builder.registers("part", dtype, most, 1, &mut self.out);
        self.out.push(Stmt::Set { to: regs(array, 0, most), value: neutral(self.context.attributes.kind, dtype)? });
        let before = std::mem::take(&mut self.out);
        for Source { place, slot, set, .. } in self.sources_in_order() {
            self.add(array, place, slot, &set);
        }
        let within = std::mem::take(&mut self.out);
        self.completed(array, exchange, leaders)?;
        Ok(AcrossLoop { before, within, after: self.out })
    }

    /// All statements. Each row is finished before the next one begins, if threads have the parts of their results after
    /// shuffles and no other row is read from where results are written.
    pub(super) fn whole(mut self, exchange: ShuffleMask, leaders: Option<&[Vec<usize>]>) -> Result<Vec<Stmt>, Refusal> {
        let most = self.rows.most_parts();
        let parts = self.builder.registers("part", self.context.dtype, most.max(1) as i64, 1, &mut self.out);
        let sources = self.sources_in_order();
        let chains = self.chains(&sources);
        if chains == 1 {
            self.add_up(parts, sources)?;
            self.completed(parts, exchange, leaders)?;
            return Ok(self.out);
        }
        let is_by_row = leaders.is_none() && self.context.is_apart();
        let results = if is_by_row { self.results()? } else { Vec::new() };
        for row in sources.chunk_by(|source, next| source.place == next.place) {
            let place = row[0].place;
            let own = results.get(place).and_then(|results| self.own_register(results));
            let to = own.clone().unwrap_or(regs(parts, place as i64, 1));
            self.chained(&to, row, chains);
            if is_by_row {
                self.exchanged(&to, exchange);
            }
            if is_by_row && own.is_none() {
                self.write(parts, place, &results[place]);
            }
        }
        if !is_by_row {
            self.completed(parts, exchange, leaders)?;
        }
        Ok(self.out)
    }

    /// The register of the only result of a part, if all threads may combine the part there.
    fn own_register(&self, results: &BTreeMap<Slot, Vec<bool>>) -> Option<Regs> {
        let context = self.context;
        let (slot, set) = results.iter().next().filter(|_| results.len() == 1)?;
        let may_write = |(thread, has_result): (usize, &bool)| *has_result || context.may_write(thread, *slot);
        let is_possible = context.attributes.clear
            && context.result.is_plain()
            && context.dtype == context.dtypes[0]
            && set.iter().enumerate().all(may_write);
        is_possible.then(|| regs(context.result.array, slot.register, 1))
    }

    /// Shuffles, after which every thread has the parts of its results, and stores the results.
    fn completed(
        &mut self,
        parts: Handle<RegArray>,
        exchange: ShuffleMask,
        leaders: Option<&[Vec<usize>]>,
    ) -> Result<(), Refusal> {
        (0..self.rows.most_parts()).for_each(|place| self.exchanged(&regs(parts, place as i64, 1), exchange));
        match leaders {
            None => {
                let results = self.results()?;
                results.iter().enumerate().for_each(|(place, results)| self.write(parts, place, results));
                Ok(())
            }
            Some(leaders) => self.across(parts, leaders),
        }
    }

    /// The slots of the elements in the threads' rows at `place`, each with the threads that have one there.
    fn sources(&self, place: usize) -> Vec<(usize, Vec<bool>)> {
        let rows = self.rows;
        let parts = (0..rows.threads()).filter_map(|thread| rows.at(thread, place));
        let slots: BTreeSet<usize> = parts.flat_map(|(_, part)| part.iter().copied()).collect();
        let has = |thread: usize, slot: usize| rows.at(thread, place).is_some_and(|(_, part)| part.contains(&slot));
        slots.into_iter().map(|slot| (slot, self.set(|thread| has(thread, slot)))).collect()
    }

    /// The elements of all places: place by place, or the first of each place, then the second of each, where those of
    /// neighbouring places are adjacent.
    fn sources_in_order(&self) -> Vec<Source> {
        let source = |place: usize| {
            let sources = self.sources(place).into_iter().enumerate();
            sources.map(move |(at, (slot, set))| Source { place, at, slot, set })
        };
        let mut all: Vec<Source> = (0..self.rows.most_parts()).flat_map(source).collect();
        let starts = all.iter().position(|source| source.place == 1);
        let is_beside = starts.is_some_and(|next| all[next].slot == all[0].slot + 1);
        if is_beside {
            all.sort_by_key(|source| (source.at, source.place));
        }
        all
    }

    /// The threads of `set` combine an element with their part.
    fn add(&mut self, parts: Handle<RegArray>, place: usize, slot: usize, set: &[bool]) {
        let value = self.context.with_element(Value::reg(parts, place as i64), slot);
        self.by(set, |_| false, vec![Stmt::Assign { to: regs(parts, place as i64, 1), value }]);
    }

    /// Combines the elements of each thread's rows one after the other.
    fn add_up(&mut self, array: Handle<RegArray>, sources: Vec<Source>) -> Result<(), Refusal> {
        let context = self.context;
        for Source { place, at, slot, set } in sources {
            if at > 0 {
                self.add(array, place, slot, &set);
                continue;
            }
            let to = regs(array, place as i64, 1);
            // The value so far of threads without the first slot; threads without part in this row never read it.
            if set.contains(&false) {
                let value = neutral(context.attributes.kind, context.dtype)?;
                self.out.push(Stmt::Set { to: to.clone(), value });
            }
            self.by(&set, |_| false, vec![Stmt::Assign { to, value: context.element(slot) }]);
        }
        Ok(())
    }

    /// In how many chains a thread combines its elements of a row, so that not every operation waits for the one
    /// before: 1 if threads have different numbers of elements, or several rows whose elements alternate.
    fn chains(&self, sources: &[Source]) -> usize {
        let alternate = !sources.is_sorted_by_key(|source| source.place);
        let least = sources.chunk_by(|source, next| source.place == next.place).map(<[Source]>::len).min();
        let everyone = sources.iter().all(|source| !source.set.contains(&false));
        match least.filter(|_| everyone && !alternate) {
            Some(8..) if !self.combines_three() => MOST_CHAINS,
            Some(4..) => 2,
            Some(_) | None => 1,
        }
    }

    /// Whether one instruction combines three elements.
    fn combines_three(&self) -> bool {
        let is_extreme = matches!(combine(self.context.attributes.kind), ElementOp::Max | ElementOp::Min);
        is_extreme && self.context.dtype == DType::F32 && self.builder.program.target.has_max_of_three()
    }

    /// Combines the elements of a row, which all threads have, in `chains` chains, and these in pairs.
    fn chained(&mut self, to: &Regs, row: &[Source], chains: usize) {
        let array = self.builder.registers("chain", self.context.dtype, chains as i64, 1, &mut self.out);
        // Elements that one instruction combines with a chain.
        let at_once = if self.combines_three() { 2 } else { 1 };
        for (at, group) in row.chunks(at_once).enumerate() {
            let chain = (at % chains) as i64;
            let with = |part: Option<Value>, source: &Source| match part {
                Some(part) => Some(self.context.with_element(part, source.slot)),
                None => Some(self.context.element(source.slot)),
            };
            let value = group.iter().fold((at >= chains).then(|| Value::reg(array, chain)), with);
            self.out.extend(value.map(|value| Stmt::Assign { to: regs(array, chain, 1), value }));
        }
        let mut left = chains as i64;
        while left > 2 {
            left /= 2;
            for chain in 0..left {
                let value = self.combined(Value::reg(array, chain), Value::reg(array, chain + left));
                self.out.push(Stmt::Assign { to: regs(array, chain, 1), value });
            }
        }
        let value = self.combined(Value::reg(array, 0), Value::reg(array, 1));
        self.out.push(Stmt::Assign { to: to.clone(), value });
    }

    /// Combines the parts of a row that lanes have in a register, so that each of them has the whole.
    fn exchanged(&mut self, part: &Regs, exchange: ShuffleMask) {
        if exchange.bits == 0 {
            return;
        }
        let other = self.builder.registers("other", self.context.dtype, 1, 1, &mut self.out);
        for mask in exchange.masks() {
            self.out.push(Stmt::from(Call {
                to: Some(regs(other, 0, 1)),
                from: vec![part.clone()],
                arguments: vec![Expr::constant(mask as i64)],
                ..Call::plain(Inst::ShuffleXor)
            }));
            let value = self.combined(Value::Reg(part.array, part.first.clone()), Value::reg(other, 0));
            self.out.push(Stmt::Assign { to: part.clone(), value });
        }
    }

    /// The results that each thread must hold: for each part of a thread, the slots that it goes to, with the threads for
    /// which it does. Error: a thread must hold a result, but has no part of its row.
    fn results(&self) -> Result<Vec<BTreeMap<Slot, Vec<bool>>>, Refusal> {
        let mut results = vec![BTreeMap::new(); self.rows.most_parts()];
        for (thread, rows) in self.context.owned().iter().enumerate() {
            for (row, slot) in rows {
                let place = self.rows.place(thread, *row);
                let place =
                    place.ok_or_else(|| format!("thread {thread} has no part of row {row}, whose result it holds"))?;
                let none = || vec![false; self.context.owned().len()];
                results[place].entry(*slot).or_insert_with(none)[thread] = true;
            }
        }
        Ok(results)
    }

    /// Writes the results of a place among a thread's parts; its rows are complete.
    fn write(&mut self, parts: Handle<RegArray>, place: usize, results: &BTreeMap<Slot, Vec<bool>>) {
        let context = self.context;
        for (slot, set) in results {
            let statement = self.result(*slot, Value::reg(parts, place as i64));
            let may = |thread: usize| context.may_write(thread, *slot);
            self.by(set, may, vec![statement]);
        }
    }

    /// Writes a result, combined with the old one unless that is cleared.
    fn result(&self, slot: Slot, value: Value) -> Stmt {
        let context = self.context;
        let known = cast(context.dtype, context.dtypes[0], context.result.read(slot));
        let value = if context.attributes.clear { value } else { self.combined(known, value) };
        let value = context.result.written(slot, cast(context.dtypes[0], context.dtype, value));
        Stmt::Assign { to: regs(context.result.array, slot.register, 1), value }
    }

    /// Passes the leaders' parts through shared memory to the threads that must hold results. Parts of neighbouring
    /// rows are adjacent.
    fn across(&mut self, parts: Handle<RegArray>, leaders: &[Vec<usize>]) -> Result<(), Refusal> {
        let staging = Staging::of(self.context, self.rows, leaders);
        let width = staging.width(self.context.dtype.bytes());
        let memory = self.scratch(staging.elements, width);
        for (first, positions) in staging.stores.iter().enumerate().step_by(width as usize) {
            let from = regs(parts, first as i64, width);
            self.access(positions, width, |index| vec![Stmt::Store { memory, index, from }]);
        }
        self.out.push(Stmt::from(Call::plain(Inst::SyncThreads)));
        staging.loads.chunks(width as usize).try_for_each(|loads| self.gathered(loads, memory))
    }

    /// Statements that access the positions of the threads that have one, in elements; they are multiples of `width`.
    fn access(&mut self, positions: &[Option<i64>], width: i64, make: impl FnOnce(Expr) -> Vec<Stmt>) {
        if positions.iter().all(Option::is_none) {
            return;
        }
        let mut body = Vec::new();
        let index = number(positions, width, &self.context.thread, self.builder, &mut body);
        body.extend(make(index));
        let set: Vec<bool> = positions.iter().map(Option::is_some).collect();
        self.by(&set, |_| false, body);
    }

    fn scratch(&mut self, elements: usize, width: i64) -> Handle<Memory> {
        // Not aligned any further: NVRTC would combine loads, and read more parts than there are.
        let (dtype, span) = (self.context.dtype, self.context.op.span);
        self.builder.scratch("parts", dtype, (elements, width * dtype.bytes()), span)
    }

    /// Combines the parts of some rows, which are adjacent, into slots of the result. Every row has at least one part.
    fn gathered(&mut self, slots: &[SlotLoads], memory: Handle<Memory>) -> Result<(), Refusal> {
        let (context, width) = (self.context, slots.len() as i64);
        let [SlotLoads { parts: all, .. }, ..] = slots else { return Ok(()) };
        let [first, ..] = &all[..] else { return Ok(()) };
        let has_row: Vec<bool> = first.iter().map(Option::is_some).collect();
        let sum = self.builder.registers("sum", context.dtype, width, 1, &mut self.out);
        let part =
            if all.len() > 1 { self.builder.registers("part", context.dtype, width, 1, &mut self.out) } else { sum };
        if has_row.contains(&false) {
            self.out
                .push(Stmt::Set { to: regs(sum, 0, width), value: neutral(context.attributes.kind, context.dtype)? });
        }
        for (at, positions) in all.iter().enumerate() {
            let to = regs(if at == 0 { sum } else { part }, 0, width);
            let combined = |place| Stmt::Assign {
                to: regs(sum, place, 1),
                value: self.combined(Value::reg(sum, place), Value::reg(part, place)),
            };
            let sums: Vec<Stmt> = (0..if at == 0 { 0 } else { width }).map(combined).collect();
            let load = |index| std::iter::once(Stmt::Load { to, memory, index }).chain(sums).collect();
            self.access(positions, width, load);
        }
        for (place, SlotLoads { slot, .. }) in (0..).zip(slots) {
            let statement = self.result(*slot, Value::reg(sum, place));
            self.by(&has_row, |thread| context.may_write(thread, *slot), vec![statement]);
        }
        Ok(())
    }
}
