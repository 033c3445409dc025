//! Elements that stay on their thread, and what it takes to put picked pieces into the words of `b`.

use crate::access::LANES;

use super::cost::Cost;
use super::job::Job;
use super::table::NONE;
use super::{Conversion, ConversionKind};

/// Where each register of `b` comes from, as a number: below [`Picks::own`] a register of the same thread in `a`; from
/// there on `own + step * elements_per_word + slot`, a slot of the word that the thread received in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picks {
    /// 1 where all warps agree and the picks are those of one warp; else the number of warps.
    pub warps: usize,
    /// Registers of a thread in `b`.
    pub registers: usize,
    /// The registers of a thread in `a`, rounded up to whole words.
    pub own: usize,
    /// The pick for each `thread * registers + register`; -1 for a register that holds nothing.
    pub from: Vec<i32>,
}

impl Picks {
    pub(crate) fn of(job: &Job, picks: Vec<i32>) -> Picks {
        let registers = job.b.registers();
        let own = job.own();
        let (first, rest) = picks.split_at(LANES * registers);
        if rest.chunks(LANES * registers).all(|warp| warp == first) {
            return Picks { warps: 1, registers, own, from: first.to_vec() };
        }
        Picks { warps: job.warps, registers, own, from: picks }
    }

    /// The pick for a register of a thread, if it holds anything.
    pub fn at(&self, thread: usize, register: usize) -> Option<usize> {
        if register >= self.registers {
            return None;
        }
        let row = if self.warps == 1 { thread % LANES } else { thread };
        self.from.get(row * self.registers + register).and_then(|pick| usize::try_from(*pick).ok())
    }
}

/// The plan that does nothing, if every register of `b` already holds its element.
pub(crate) fn in_place(job: &Job) -> Option<Conversion> {
    job.a.holds(&job.b).then(|| Conversion::new(job, ConversionKind::Nothing, Cost::default()))
}

/// The plan that renames registers, where every element stays on its thread.
pub(crate) fn plan(job: &Job) -> Option<Conversion> {
    let picks = own_picks(job);
    if picks.iter().zip(job.b.elements()).any(|(pick, element)| *pick == NONE && *element != NONE) {
        return None;
    }
    let cost = assembly(job, &picks);
    Some(Conversion::new(job, ConversionKind::Renaming(Picks::of(job, picks)), cost))
}

/// For every place of `b` the register of the same thread in `a` that holds its element; [`NONE`] where there is none.
pub(crate) fn own_picks(job: &Job) -> Vec<i32> {
    let registers = job.b.registers();
    let pick = |(place, element): (usize, &i32)| match usize::try_from(*element) {
        Ok(element) => own_register(job, place / registers, place % registers, element),
        Err(_) => NONE,
    };
    job.b.elements().iter().enumerate().map(pick).collect()
}

/// The register of `thread` in `a` that holds `element`: `wanted` if that one does, else the first.
fn own_register(job: &Job, thread: usize, wanted: usize, element: usize) -> i32 {
    if job.a.at(thread, wanted) == element as i32 {
        return wanted as i32;
    }
    let base = thread * job.a.registers();
    job.holders.between(element, base, base + job.a.registers()).first().map_or(NONE, |place| (place - base) as i32)
}

/// The selects and byte permutes that put the picked pieces into the words of `b`.
///
/// A word is put together from operands: the values that its pieces come from, in order. Each operand is chosen by the
/// thread among all values that any thread takes for it. One operand whose pieces keep their slots is the word itself;
/// else byte permutes join them, whose selectors may differ by thread at no cost. Where that would split a byte, an
/// operand is what one value contributes at one shift distance; it is shifted, if it moves, and every operand but the
/// first takes a mask that joins it to the others. Distances and masks may differ by thread as well.
pub(crate) fn assembly(job: &Job, picks: &[i32]) -> Cost {
    let mut cost = Cost::default();
    let mut operands = Operands::new(job, picks);
    let (registers, per_byte) = (job.b.registers(), job.per_byte as i32);
    for word in 0..job.targets {
        let mut threads = picks.chunks(registers).map(|picks| pieces(picks, word, job.per_word));
        operands.begin(word, per_byte > 1 && threads.any(|pieces| is_torn(pieces, per_byte)));
        for picks in picks.chunks(registers) {
            operands.add(pieces(picks, word, job.per_word));
        }
        cost.selects += operands.selects() * job.units;
        cost.permutes += operands.permutes();
    }
    cost
}

/// What one thread picks for one word.
fn pieces(picks: &[i32], word: usize, per_word: usize) -> &[i32] {
    &picks[word * per_word..picks.len().min((word + 1) * per_word)]
}

/// True if some byte of a word is not an unchanged byte of one value.
fn is_torn(pieces: &[i32], per_byte: i32) -> bool {
    pieces.chunks(per_byte as usize).any(|byte| {
        let home = byte.iter().find(|pick| **pick != NONE).map(|pick| pick / per_byte);
        let moves =
            |(slot, pick): (i32, &i32)| *pick != NONE && (home != Some(pick / per_byte) || pick % per_byte != slot);
        (0..).zip(byte).any(moves)
    })
}

/// The values that threads take for each operand of one word of `b`.
struct Operands {
    /// Elements of a 32-bit word.
    per_word: usize,
    /// How many values the picks come from: words of `a`, then received words.
    values: usize,
    /// One more than the last word for which `operand * values + value` was seen.
    seen: Vec<usize>,
    /// The current word of `b`.
    word: usize,
    /// Whether some thread puts a byte of it together from parts of bytes.
    is_torn: bool,
    /// Whether some thread's piece changes its slot.
    is_moved: bool,
    /// The number of values of each operand.
    counts: Vec<u64>,
    /// In a torn word, whether some thread shifts each operand.
    shifted: Vec<bool>,
    /// The operands of the current thread: a value, and in a torn word how far it is shifted.
    parts: Vec<(usize, i64)>,
}

impl Operands {
    fn new(job: &Job, picks: &[i32]) -> Operands {
        let per_word = job.per_word;
        let values = picks.iter().max().map_or(0, |most| (*most).max(0) as usize / per_word + 1);
        Operands {
            per_word,
            values,
            seen: vec![0; values * per_word],
            word: 0,
            is_torn: false,
            is_moved: false,
            counts: vec![0; per_word],
            shifted: vec![false; per_word],
            parts: Vec::with_capacity(per_word),
        }
    }

    fn begin(&mut self, word: usize, is_torn: bool) {
        self.word = word;
        self.is_torn = is_torn;
        self.is_moved = false;
        self.counts.fill(0);
        self.shifted.fill(false);
    }

    /// Adds what one thread takes.
    fn add(&mut self, pieces: &[i32]) {
        self.parts.clear();
        for (slot, pick) in pieces.iter().enumerate() {
            let Ok(pick) = usize::try_from(*pick) else { continue };
            let distance = slot as i64 - (pick % self.per_word) as i64;
            self.is_moved |= distance != 0;
            let part = (pick / self.per_word, if self.is_torn { distance } else { 0 });
            if !self.parts.contains(&part) {
                self.parts.push(part);
            }
        }
        self.parts.sort_unstable();
        for (operand, (value, distance)) in self.parts.iter().enumerate() {
            self.shifted[operand] |= *distance != 0;
            let seen = &mut self.seen[operand * self.values + value];
            if *seen != self.word + 1 {
                *seen = self.word + 1;
                self.counts[operand] += 1;
            }
        }
    }

    fn operands(&self) -> u64 {
        self.counts.iter().filter(|count| **count > 0).count() as u64
    }

    fn selects(&self) -> u64 {
        let chosen: u64 = self.counts.iter().map(|count| count.saturating_sub(1)).sum();
        let shifts = self.shifted.iter().filter(|shifted| **shifted).count() as u64;
        let masks = if self.is_torn { self.operands().saturating_sub(1) } else { 0 };
        chosen + shifts + masks
    }

    fn permutes(&self) -> u64 {
        let operands = self.operands();
        let joins = !self.is_torn && (self.is_moved || operands > 1);
        if joins { operands.saturating_sub(1).max(1) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(a: &str, b: &str, bits: i64) -> Conversion {
        plan(&Job::new(&a.parse().unwrap(), &b.parse().unwrap(), bits).unwrap()).unwrap()
    }

    #[test]
    fn the_same_permutation_on_all_threads_is_free() {
        let plan = renamed("S[(64,4):(1@tx,1@reg)]", "S[(64,2,2):(1@tx,1@reg,2@reg)]", 32);
        let ConversionKind::Renaming(picks) = &plan.kind else { panic!("{plan:?}") };
        assert_eq!((plan.cost.total(), picks.warps, &picks.from[..8]), (0, 1, &[0, 2, 1, 3, 0, 2, 1, 3][..]));
    }

    #[test]
    fn halves_that_change_words_take_byte_permutes() {
        let plan = renamed("S[(32,4):(1@laneid,1@reg)]", "S[(32,2,2):(1@laneid,1@reg,2@reg)]", 16);
        assert_eq!(plan.cost, Cost { permutes: 2, ..Cost::default() });
    }

    #[test]
    fn nibbles_that_change_places_in_whole_bytes_take_byte_permutes() {
        let plan = renamed("S[(32,2,2,2):(1@laneid,2@reg,4@reg,1@reg)]", "S[(32,8):(1@laneid,1@reg)]", 4);
        assert_eq!(plan.cost, Cost { permutes: 1, ..Cost::default() });
    }

    #[test]
    fn nibbles_that_leave_their_byte_take_shifts_and_masks() {
        let plan = renamed("S[(32,2,4):(1@laneid,9@reg,1@reg)]", "S[(32,8):(1@laneid,1@reg)]", 4);
        assert_eq!(plan.cost, Cost { selects: 2, ..Cost::default() });
    }

    #[test]
    fn registers_that_differ_by_thread_take_selects() {
        let plan = renamed("S[4:1@reg] + R[4:1@laneid]", "S[4:1@laneid]", 32);
        assert_eq!(plan.cost, Cost { selects: 3, ..Cost::default() });
    }
}
