//! The statements of a reduction of tuples.

use std::collections::BTreeMap;

use tilewright_expr::Expr;
use tilewright_ir::thread::{Call, Inst, Regs, Stmt, Value};

use super::context::{TupleContext, TupleValue};
use crate::builder::{Builder, regs};
use crate::fragment_registers::Slot;
use crate::reduce::rows::{Rows, ShuffleMask};
use crate::refusal::Refusal;
use crate::threads::{by_threads, shuffle_from};
use crate::tuples::{Arrays, FunctionRegisters, assigned, registers, values};
use crate::variant::AcrossLoop;

/// The most chains in which a thread combines its tuples of a row, so that not every step waits for the one before.
const MOST_CHAINS: usize = 4;

/// The statements so far, and what they are made from.
pub(in crate::reduce) struct MakeTuples<'a> {
    pub(super) context: &'a TupleContext,
    /// The parts that are combined.
    pub(super) rows: &'a Rows,
    pub(super) builder: &'a mut Builder,
    function: FunctionRegisters,
    /// Registers that all rows use in turn, by what they are for.
    shared: BTreeMap<&'static str, Arrays>,
    pub(super) out: Vec<Stmt>,
}

/// A tuple that threads combine with one of their parts.
struct Source {
    slots: Vec<Slot>,
    /// The threads that have it there.
    set: Vec<bool>,
}

impl<'a> MakeTuples<'a> {
    pub(in crate::reduce) fn new(context: &'a TupleContext, rows: &'a Rows, builder: &'a mut Builder) -> Self {
        let titles: Vec<&str> = context.values.iter().map(|value| value.name.as_str()).collect();
        let mut out = Vec::new();
        let function = FunctionRegisters::declare(&context.function, &titles, builder, &mut out);
        MakeTuples { context, rows, builder, function, shared: BTreeMap::new(), out }
    }

    /// All statements.
    pub(in crate::reduce) fn whole(
        mut self,
        exchange: ShuffleMask,
        leaders: Option<&[Vec<usize>]>,
    ) -> Result<Vec<Stmt>, Refusal> {
        let parts = self.arrays("part", self.rows.most_parts().max(1));
        for place in 0..self.rows.most_parts() {
            self.add_up(&parts, place)?;
        }
        self.completed(&parts, exchange, leaders)?;
        Ok(self.out)
    }

    /// Every thread combines its tuples of all iterations; the parts of all threads are combined after the loop.
    pub(in crate::reduce) fn across_loop(
        mut self,
        exchange: ShuffleMask,
        leaders: Option<&[Vec<usize>]>,
    ) -> Result<AcrossLoop, Refusal> {
        let most = self.rows.most_parts();
        let parts = self.arrays("part", most);
        self.set_to_identity(&parts, 0, most);
        let before = std::mem::take(&mut self.out);
        for place in 0..most {
            for source in self.sources(place) {
                self.add(&parts, place, &source)?;
            }
        }
        let within = std::mem::take(&mut self.out);
        self.completed(&parts, exchange, leaders)?;
        Ok(AcrossLoop { before, within, after: self.out })
    }

    /// Registers for `count` tuples.
    pub(super) fn arrays(&mut self, what: &str, count: usize) -> Arrays {
        let mut of = |value: &TupleValue| {
            let name = format!("{}_{what}", value.name);
            self.builder.registers(&name, value.dtype, count as i64, 1, &mut self.out)
        };
        self.context.values.iter().map(&mut of).collect()
    }

    /// Registers for `count` tuples that are used again for the next row.
    pub(super) fn shared_arrays(&mut self, what: &'static str, count: usize) -> Arrays {
        if let Some(known) = self.shared.get(what) {
            return known.clone();
        }
        let made = self.arrays(what, count);
        self.shared.insert(what, made.clone());
        made
    }

    fn set_to_identity(&mut self, to: &Arrays, first: usize, count: usize) {
        for (array, value) in to.iter().zip(&self.context.values) {
            self.out.push(Stmt::Set { to: regs(*array, first as i64, count as i64), value: value.identity });
        }
    }

    /// Adds statements that the threads of `set` execute, and that threads for which `may` is true may execute as
    /// well.
    pub(super) fn by(&mut self, set: &[bool], may: impl Fn(usize) -> bool, body: Vec<Stmt>) {
        by_threads(set, may, body, &self.context.thread, self.builder, &mut self.out);
    }

    /// As [`FunctionRegisters::combined`].
    pub(super) fn combined(&self, to: &[Regs], left: &[Value], right: &[Value]) -> Result<Vec<Stmt>, Refusal> {
        self.function.combined(&self.context.function, to, left, right)
    }

    /// The tuples of the threads' rows at `place`, each with the threads that have one there.
    fn sources(&self, place: usize) -> Vec<Source> {
        let (context, threads) = (self.context, self.rows.threads());
        let mut found: BTreeMap<(usize, Vec<Slot>), Vec<bool>> = BTreeMap::new();
        for thread in 0..threads {
            let Some((_, part)) = self.rows.at(thread, place) else { continue };
            for slot in part {
                let Some(slots) = context.slots(thread, *slot) else { continue };
                found.entry((*slot, slots)).or_insert_with(|| vec![false; threads])[thread] = true;
            }
        }
        found.into_iter().map(|((_, slots), set)| Source { slots, set }).collect()
    }

    fn tuple(&self, source: &Source) -> Vec<Value> {
        self.context.values.iter().zip(&source.slots).map(|(value, slot)| value.source.read(*slot)).collect()
    }

    /// The threads that have a tuple combine it with their part.
    fn add(&mut self, parts: &Arrays, place: usize, source: &Source) -> Result<(), Refusal> {
        let body = self.combined(&registers(parts, place), &values(parts, place), &self.tuple(source))?;
        self.by(&source.set, |_| false, body);
        Ok(())
    }

    fn set_to(&self, to: &Arrays, at: usize, source: &Source) -> Vec<Stmt> {
        assigned(registers(to, at), self.tuple(source)).collect()
    }

    /// Combines the tuples of each thread's row at `place`: in chains of neighbours if all threads have all of them.
    fn add_up(&mut self, parts: &Arrays, place: usize) -> Result<(), Refusal> {
        let sources = self.sources(place);
        let everyone = sources.iter().all(|source| !source.set.contains(&false));
        let chains = match sources.len() {
            8.. if everyone => MOST_CHAINS,
            4.. if everyone => 2,
            _ => 1,
        };
        if chains == 1 {
            return self.add_in_order(parts, place, &sources);
        }
        let arrays = self.shared_arrays("chain", MOST_CHAINS);
        let size = sources.len().div_ceil(chains);
        // The first tuple of each chain, then the second of each, and so on.
        for at in 0..size {
            for (chain, group) in sources.chunks(size).enumerate() {
                let Some(source) = group.get(at) else { continue };
                if at == 0 {
                    let body = self.set_to(&arrays, chain, source);
                    self.out.extend(body);
                } else {
                    self.add(&arrays, chain, source)?;
                }
            }
        }
        let mut left = sources.len().div_ceil(size);
        while left > 1 {
            let half = left.div_ceil(2);
            for chain in 0..left / 2 {
                let (one, other) = (values(&arrays, 2 * chain), values(&arrays, 2 * chain + 1));
                let to = if left == 2 { registers(parts, place) } else { registers(&arrays, chain) };
                let body = self.combined(&to, &one, &other)?;
                self.out.extend(body);
            }
            if left % 2 == 1 {
                self.out.extend(assigned(registers(&arrays, half - 1), values(&arrays, left - 1)));
            }
            left = half;
        }
        Ok(())
    }

    /// Combines the tuples of a place one after the other.
    fn add_in_order(&mut self, parts: &Arrays, place: usize, sources: &[Source]) -> Result<(), Refusal> {
        let Some((first, rest)) = sources.split_first() else { return Ok(()) };
        // The value so far of threads without the first tuple; threads without part in this row never read it.
        if first.set.contains(&false) {
            self.set_to_identity(parts, place, 1);
        }
        let body = self.set_to(parts, place, first);
        self.by(&first.set, |_| false, body);
        rest.iter().try_for_each(|source| self.add(parts, place, source))
    }

    /// Shuffles, after which the threads that need them have the parts of their results, and stores the results.
    fn completed(
        &mut self,
        parts: &Arrays,
        exchange: ShuffleMask,
        leaders: Option<&[Vec<usize>]>,
    ) -> Result<(), Refusal> {
        for place in 0..self.rows.most_parts() {
            self.exchanged(parts, place, exchange, leaders.is_none())?;
        }
        match leaders {
            None => self.held(parts),
            Some(leaders) => self.across(parts, leaders),
        }
    }

    /// Combines the parts of a row that lanes have. Every lane has the whole then, if `everyone` is set; otherwise the first
    /// lane of each group does. If exchanging two tuples may change a result, they are combined in the order of the lanes, on
    /// the first lane, which the others then read: copies of a result have the same bits.
    fn exchanged(
        &mut self,
        parts: &Arrays,
        place: usize,
        exchange: ShuffleMask,
        everyone: bool,
    ) -> Result<(), Refusal> {
        if exchange.bits == 0 {
            return Ok(());
        }
        let other = self.shared_arrays("other", 1);
        let part = registers(parts, place);
        for mask in exchange.masks() {
            for (from, other) in part.iter().zip(registers(&other, 0)) {
                let (from, arguments) = (vec![from.clone()], vec![Expr::constant(mask as i64)]);
                let call = Call { to: Some(other), from, arguments, ..Call::plain(Inst::ShuffleXor) };
                self.out.push(Stmt::from(call));
            }
            let body = self.combined(&part, &values(parts, place), &values(&other, 0))?;
            self.out.extend(body);
        }
        if everyone && !self.context.function.is_symmetric {
            // The first lane of a group is the one without the bits of the exchange.
            let first = |lane: usize| Some(lane & !exchange.bits);
            let pairs = part.into_iter().map(|part| (part.clone(), part));
            shuffle_from(first, &self.context.lane, pairs, self.builder, &mut self.out);
        }
        Ok(())
    }

    /// Writes the results of all places of the threads' parts; their rows are complete.
    fn held(&mut self, parts: &Arrays) -> Result<(), Refusal> {
        for place in 0..self.rows.most_parts() {
            let row_of = |thread: usize| self.rows.at(thread, place).map(|(row, _)| row);
            let rows: Vec<Option<usize>> = (0..self.rows.threads()).map(row_of).collect();
            self.write_rows(&rows, parts, place)?;
        }
        Ok(())
    }

    /// Writes the results of the row that each thread has, if it has one: its part at `place` is the whole row.
    pub(super) fn write_rows(&mut self, rows: &[Option<usize>], parts: &Arrays, place: usize) -> Result<(), Refusal> {
        let mut wanted: BTreeMap<Vec<Option<Slot>>, Vec<bool>> = BTreeMap::new();
        for (thread, row) in rows.iter().enumerate() {
            let Some(row) = row else { continue };
            let none = || vec![false; rows.len()];
            wanted.entry(self.context.results(thread, *row)).or_insert_with(none)[thread] = true;
        }
        wanted.iter().try_for_each(|(slots, set)| self.write(slots, parts, place, set))
    }

    /// The threads of `set` write results to these slots, combined with the old ones unless these are cleared.
    fn write(&mut self, slots: &[Option<Slot>], parts: &Arrays, place: usize, set: &[bool]) -> Result<(), Refusal> {
        let context = self.context;
        if slots.iter().all(Option::is_none) {
            return Ok(());
        }
        let (mut body, mut new) = (Vec::new(), values(parts, place));
        if !context.by.clear {
            let read = |(value, slot): (&TupleValue, &Option<Slot>)| slot.map(|slot| value.result.read(slot));
            let old: Option<Vec<Value>> = context.values.iter().zip(slots).map(read).collect();
            let old =
                old.ok_or_else(|| Refusal::from("a thread holds only some of the old results of a row".to_string()))?;
            let total = self.shared_arrays("total", 1);
            body.extend(self.combined(&registers(&total, 0), &old, &new)?);
            new = values(&total, 0);
        }
        for ((value, slot), part) in context.values.iter().zip(slots).zip(new) {
            let Some(slot) = slot else { continue };
            let to = regs(value.result.array, slot.register, 1);
            body.push(Stmt::Assign { to, value: value.result.written(*slot, part) });
        }
        self.by(set, |thread| context.may_write(thread, slots), body);
        Ok(())
    }
}
