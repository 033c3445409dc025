//! The statements of a scan in registers.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Inst, Memory, Stmt};
use tilewright_layout::access::LANES;

use super::carry::{Carry, Rows};
use super::context::Context;
use super::runs::{Cell, Groups, Part, Place};
use super::writer::Writer;
use crate::builder::Builder;
use crate::refusal::Refusal;
use crate::threads::shuffle_from;
use crate::tuples::{Arrays, assigned, registers, values};

/// The statements so far, and what they are made from.
pub(super) struct Make<'a> {
    context: &'a Context,
    groups: &'a Groups,
    writer: Writer<'a>,
}

/// The registers of a round.
#[derive(Clone, Debug)]
struct Round {
    /// The elements of the thread's run, each combined with those before it in the run.
    prefixes: Arrays,
    /// What precedes the run; `None` if nothing can.
    before: Option<Arrays>,
    /// The elements of the thread's run and of those before it: on the last thread of a group, all of its elements.
    so_far: Arrays,
}

/// What precedes the rounds that pass their parts through shared memory.
struct Across<'p> {
    /// By row, its parts.
    parts: &'p [Vec<Part>],
    memories: Vec<Handle<Memory>>,
    /// Places for parts of each row.
    most: usize,
    /// The parts combined so far, behind the carry of the row if there is one, and the one that is combined next.
    so_far: Arrays,
    part: Arrays,
    /// The carry that the user gives.
    carry: Option<Carry>,
}

impl<'a> Make<'a> {
    pub(super) fn new(context: &'a Context, groups: &'a Groups, builder: &'a mut Builder) -> Make<'a> {
        Make { context, groups, writer: Writer::new(context, builder) }
    }

    /// Every group has whole rows: what a round leaves is what precedes the next one.
    pub(super) fn with_carry(mut self) -> Result<Vec<Stmt>, Refusal> {
        let (rounds, is_given) = (&self.groups.rounds, self.context.order.has_carry);
        // A round goes on from what precedes it in its row, or from the carry that the user gives.
        let follows = |cell: &Option<Cell>| cell.as_ref().is_some_and(|cell| is_given || cell.group.0 > 0);
        let is_carried = rounds.iter().flatten().any(follows);
        let made = if is_given { Carry::new } else { Carry::unset };
        let carry = is_carried.then(|| made(&mut self.writer));
        for (at, cells) in rounds.iter().enumerate() {
            if let Some(carry) = carry.as_ref().filter(|_| is_given) {
                carry.take(&mut self.writer, &rows(cells, |(begin, _)| begin == 0));
            }
            let mut round = self.round(cells)?;
            let follow: Vec<bool> = cells.iter().map(follows).collect();
            if let Some(carry) = carry.as_ref().filter(|_| follow.contains(&true)) {
                round.before = Some(self.carried(&carry.arrays, &round, &follow)?);
            }
            self.written(cells, &round)?;
            let is_last = rounds.get(at + 1).is_none_or(|next| !next.iter().any(follows));
            if let Some(carry) = carry.as_ref().filter(|_| is_given || !is_last) {
                self.carry_on(&carry.arrays, &round, &follow)?;
            }
            if let Some(carry) = carry.as_ref().filter(|_| is_given) {
                carry.leave(&mut self.writer, &rows(cells, |(_, end)| end == self.context.extent));
            }
        }
        Ok(self.writer.out)
    }

    /// What precedes a run, where the carry precedes the rounds of the threads that follow one.
    fn carried(&mut self, carry: &Arrays, round: &Round, follow: &[bool]) -> Result<Arrays, Refusal> {
        match &round.before {
            Some(before) => {
                let body = self.writer.preceded(before, carry)?;
                self.writer.by(follow, body);
                Ok(before.clone())
            }
            None if follow.contains(&false) => {
                let before = self.writer.neutral_arrays("before");
                self.writer.by(follow, assigned(registers(&before, 0), values(carry, 0)).collect());
                Ok(before)
            }
            None => Ok(carry.clone()),
        }
    }

    /// Adds a round to the carry, or begins it.
    fn carry_on(&mut self, carry: &Arrays, round: &Round, follow: &[bool]) -> Result<(), Refusal> {
        let total = self.total(round);
        let first: Vec<bool> = follow.iter().map(|follows| !follows).collect();
        if follow.contains(&true) {
            let body = self.writer.combined(registers(carry, 0), &values(carry, 0), &values(&total, 0))?;
            self.writer.by(follow, body);
        }
        // Threads without a part of the row leave the carry of the user's alone.
        if first.contains(&true) && !self.context.order.has_carry {
            self.writer.by(&first, assigned(registers(carry, 0), values(&total, 0)).collect());
        }
        Ok(())
    }

    /// Groups have parts of rows: one thread of each puts its total in shared memory, and every thread combines those that
    /// precede its own.
    pub(super) fn across(mut self, parts: &[Vec<Part>]) -> Result<Vec<Stmt>, Refusal> {
        let rounds: Vec<Round> =
            self.groups.rounds.iter().map(|cells| self.round(cells)).collect::<Result<_, Refusal>>()?;
        let most = parts.iter().map(Vec::len).max().unwrap_or(0);
        let memories = self.writer.scratch("totals", most * parts.len());
        let position = |row: usize, at: usize| (row * most + at) as i64;
        for (number, (cells, round)) in self.groups.rounds.iter().zip(&rounds).enumerate() {
            // The threads of a group would store to one place; the last one does.
            let place = |cell: &Cell| Some(position(cell.run.row, part_of(parts, cell)));
            let positions: Vec<Option<i64>> = cells.iter().map(|cell| cell.as_ref().and_then(place)).collect();
            let of_round = parts.iter().flatten().filter(|part| part.round == number);
            let storing: Vec<usize> = of_round.map(|part| part.thread).collect();
            let set = self.writer.set(|thread| storing.contains(&thread));
            self.writer.store(&memories, (&positions, &set), Vec::new(), registers(&round.so_far, 0));
        }
        self.writer.out.push(Stmt::from(Call::plain(Inst::SyncThreads)));
        let carry = self.context.order.has_carry.then(|| Carry::new(&mut self.writer));
        let all_begin = || self.groups.rounds.first().is_some_and(|cells| cells.iter().all(Option::is_some));
        let so_far = match &carry {
            Some(_) if all_begin() => self.writer.arrays("so_far", 1),
            _ => self.writer.neutral_arrays("so_far"),
        };
        let part = self.writer.arrays("part", 1);
        let across = Across { parts, memories, most, so_far, part, carry };
        let mut known: Vec<Option<(usize, usize)>> = vec![None; self.context.runs.len()];
        for (cells, round) in self.groups.rounds.iter().zip(rounds) {
            self.combined_before(cells, &across, &mut known)?;
            let before = match &round.before {
                Some(before) => {
                    let body = self.writer.preceded(before, &across.so_far)?;
                    self.writer.out.extend(body);
                    before.clone()
                }
                None => across.so_far.clone(),
            };
            self.written(cells, &Round { before: Some(before), ..round })?;
        }
        Ok(self.writer.out)
    }

    /// Combines the parts in shared memory that precede those of a round. Where a row begins, its carry is combined with all of
    /// them.
    fn combined_before(
        &mut self,
        cells: &[Option<Cell>],
        across: &Across,
        known: &mut [Option<(usize, usize)>],
    ) -> Result<(), Refusal> {
        let Across { parts, memories, most, so_far, part, carry } = across;
        let place = |cell: &Cell| (cell.run.row, part_of(parts, cell));
        let wanted: Vec<Option<(usize, usize)>> = cells.iter().map(|cell| cell.as_ref().map(place)).collect();
        let row = |of: Option<(usize, usize)>| of.map(|(row, _)| row);
        let begins = self.writer.set(|thread| wanted[thread].is_some() && row(wanted[thread]) != row(known[thread]));
        match carry {
            Some(carry) => {
                let begun = begins.iter().zip(&wanted).map(|(begins, of)| row(of.filter(|_| *begins))).collect();
                carry.take(&mut self.writer, &begun);
                let begin = assigned(registers(so_far, 0), values(&carry.arrays, 0)).collect();
                self.writer.by(&begins, begin);
            }
            None => {
                // The parts of another row do not count.
                let changes = self.writer.set(|thread| begins[thread] && known[thread].is_some());
                let neutral = self.writer.set_to_neutral(so_far);
                self.writer.by(&changes, neutral);
            }
        }
        let combined = |thread: usize| known[thread].filter(|_| !begins[thread]).map_or(0, |(_, combined)| combined);
        let first: Vec<usize> = (0..cells.len()).map(combined).collect();
        let missing = |thread: usize| wanted[thread].map_or(0, |(_, at)| at - first[thread].min(at));
        // How many parts a thread adds to the carry of its row.
        let all = |thread: usize| match (carry, wanted[thread]) {
            (Some(_), Some((row, _))) if begins[thread] => parts[row].len(),
            _ => 0,
        };
        for step in 0..(0..cells.len()).map(|thread| missing(thread).max(all(thread))).max().unwrap_or(0) {
            // Every thread reads, so that no warp waits for another: those that have all of theirs, the last one of their row.
            let read = |thread: usize| {
                let (row, _) = wanted[thread]?;
                Some((row * most + (first[thread] + step).min(parts[row].len() - 1)) as i64)
            };
            let positions: Vec<Option<i64>> = (0..cells.len()).map(read).collect();
            self.writer.load(memories, &positions, registers(part, 0), Vec::new());
            self.add_part(so_far, part, |thread| step < missing(thread))?;
            if let Some(carry) = carry {
                self.add_part(&carry.arrays, part, |thread| step < all(thread))?;
            }
        }
        if let Some(carry) = carry {
            let begun = begins.iter().zip(&wanted).map(|(begins, of)| row(of.filter(|_| *begins))).collect();
            carry.leave(&mut self.writer, &begun);
        }
        for (known, wanted) in known.iter_mut().zip(wanted) {
            *known = wanted.or(*known);
        }
        Ok(())
    }

    /// These threads combine what they have with a part.
    fn add_part(&mut self, to: &Arrays, part: &Arrays, adds: impl Fn(usize) -> bool) -> Result<(), Refusal> {
        let set = self.writer.set(adds);
        if set.contains(&true) {
            let body = self.writer.combined(registers(to, 0), &values(to, 0), &values(part, 0))?;
            self.writer.by(&set, body);
        }
        Ok(())
    }

    /// Every thread combines the elements of its run, and shuffles tell it what precedes it in its group.
    fn round(&mut self, cells: &[Option<Cell>]) -> Result<Round, Refusal> {
        let longest = cells.iter().flatten().map(|cell| cell.run.places.len()).max().unwrap_or(0);
        let prefixes = self.writer.arrays("prefix", longest.max(1));
        let so_far = self.writer.arrays("total", 1);
        let has_run = |cell: &Option<Cell>| cell.as_ref().is_some_and(|cell| !cell.run.places.is_empty());
        if !cells.iter().all(has_run) {
            let neutral = self.writer.set_to_neutral(&so_far);
            self.writer.out.extend(neutral);
        }
        for (places, set) in by_places(cells) {
            let mut body = Vec::with_capacity(places.len() + 1);
            for (at, place) in places.iter().enumerate() {
                let (to, element) = (registers(&prefixes, at), self.context.tuple(*place));
                match at {
                    0 => body.extend(assigned(to, element)),
                    _ => body.extend(self.writer.combined(to, &values(&prefixes, at - 1), &element)?),
                }
            }
            body.extend(assigned(registers(&so_far, 0), values(&prefixes, places.len() - 1)));
            self.writer.by(&set, body);
        }
        let before = if self.groups.bits == 0 { None } else { Some(self.shuffled(&so_far)?) };
        Ok(Round { prefixes, before, so_far })
    }

    /// Halves of groups are joined, ever greater ones: the threads of the second half combine what they have with all of the
    /// first, which its last thread has. Afterwards `so_far` has everything up to a thread's own run; what precedes that run is
    /// returned.
    fn shuffled(&mut self, so_far: &Arrays) -> Result<Arrays, Refusal> {
        let (groups, other) = (self.groups, self.writer.arrays("other", 1));
        for mask in groups.masks() {
            self.shuffle(so_far, &other, |lane| Some(groups.end_of_first(lane, mask)));
            let behind = self.writer.set(|thread| groups.is_behind(thread % LANES, mask));
            let body = self.writer.preceded(so_far, &other)?;
            self.writer.by(&behind, body);
        }
        let before = self.writer.arrays("before", 1);
        self.shuffle(so_far, &before, |lane| groups.predecessor(lane));
        let first = self.writer.set(|thread| groups.is_first(thread % LANES));
        let neutral = self.writer.set_to_neutral(&before);
        self.writer.by(&first, neutral);
        Ok(before)
    }

    /// All elements of a group, on all of its threads.
    fn total(&mut self, round: &Round) -> Arrays {
        let groups = self.groups;
        if groups.bits == 0 {
            return round.so_far.clone();
        }
        self.shuffle(&round.so_far, &round.so_far, |lane| Some(groups.last(lane)));
        round.so_far.clone()
    }

    /// Every lane gets the tuple of another one; where that is `None`, of any.
    fn shuffle(&mut self, from: &Arrays, to: &Arrays, source: impl Fn(usize) -> Option<usize>) {
        let Writer { context, builder, out, .. } = &mut self.writer;
        let pairs = registers(from, 0).into_iter().zip(registers(to, 0));
        shuffle_from(source, &context.lane, pairs, builder, out);
    }

    /// Writes the results of a round.
    fn written(&mut self, cells: &[Option<Cell>], round: &Round) -> Result<(), Refusal> {
        for (places, set) in by_places(cells) {
            let all = self.results(&places, round)?;
            self.writer.by(&set, all);
        }
        if !self.context.order.is_exclusive || self.context.order.has_carry {
            return Ok(());
        }
        let is_first = |cell: &Cell| cell.run.start == 0 && !cell.run.places.is_empty();
        let firsts: Vec<Option<Cell>> = cells.iter().map(|cell| cell.clone().filter(is_first)).collect();
        for (places, set) in by_places(&firsts) {
            let body = self.writer.written(places[0], self.writer.start());
            self.writer.by(&set, body);
        }
        Ok(())
    }

    fn results(&mut self, places: &[Place], round: &Round) -> Result<Vec<Stmt>, Refusal> {
        let mut out = Vec::new();
        for (at, place) in places.iter().enumerate() {
            let last = if self.context.order.is_exclusive { at.checked_sub(1) } else { Some(at) };
            let prefix = last.map(|at| values(&round.prefixes, at));
            match (round.before.as_ref().map(|before| values(before, 0)), prefix) {
                (Some(before), Some(prefix)) => out.extend(self.writer.written_combined(*place, &before, &prefix)?),
                (Some(only), None) | (None, Some(only)) => out.extend(self.writer.written(*place, only)),
                // The first result of an exclusive scan.
                (None, None) => {}
            }
        }
        Ok(out)
    }
}

/// Which part of its row the group of a thread has.
fn part_of(parts: &[Vec<Part>], cell: &Cell) -> usize {
    parts[cell.run.row].iter().position(|part| part.begin == cell.group.0).unwrap_or(0)
}

/// The rows of the cells whose groups begin and end so.
fn rows(cells: &[Option<Cell>], is_wanted: impl Fn((usize, usize)) -> bool) -> Rows {
    let row = |cell: &Option<Cell>| cell.as_ref().filter(|cell| is_wanted(cell.group)).map(|cell| cell.run.row);
    cells.iter().map(row).collect()
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
