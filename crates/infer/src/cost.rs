//! What a placement costs.
//!
//! The cost is a sum of whole numbers, weighed by [`WEIGHTS`]:
//!
//! - *memory*: for every access of a nest, the instructions of all warps and those of the busiest warp once more, where an
//!   instruction moves the vector of each thread of the warp; and its passes, which are wavefronts of shared memory and
//!   sectors of global memory ([`tilewright_layout::access`]);
//! - *steps*: the steps of the busiest warp, of nests and of reductions within threads;
//! - *registers*: each register of 4 bytes that fragments take of a thread;
//! - *shuffles*: for every result of a reduction of the busiest warp, and every part of a row that a thread has in a scan, each
//!   halving of the threads that share its row where these can exchange by `xor` within a warp; else the way through shared
//!   memory, after the halvings within each warp, or, where a warp has parts of several rows and cannot exchange so, with one
//!   part of each thread to be loaded; once for a loop after which alone they exchange;
//! - *copies*: what each thread does, on average, that another does too, in steps;
//! - *selections*: every slot beyond the first that threads have for what they touch in one step.
//!
//! All terms but the registers are those of all iterations of the serial loops around an op, up to 64 of them.
//!
//! A register is expensive because fragments of real kernels fill the register file; where they do not, fewer registers
//! mean that more threads take part. An instruction counts once for all warps, which share the path to memory, and once
//! more for the busiest warp, whose instructions are issued one after the other.

use std::fmt;
use std::ops::AddAssign;

use tilewright_layout::access::{LANES, SECTOR};
use tilewright_layout::map::{Map, NONE, Owners};
use tilewright_layout::weights::WEIGHTS;

use crate::ids::{MapId, PatternId};
use crate::nest::Scanned;
use crate::scene::Work;
use crate::tables::Tables;
use crate::vectors::Moves;

/// The cost of a placement, term by term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Instructions that access memory, and passes over it.
    pub memory: u64,
    /// Steps of the busiest warp.
    pub steps: u64,
    /// Registers of a thread.
    pub registers: u64,
    /// Exchanges between the threads that share a row of a reduction.
    pub shuffles: u64,
    /// Redundant iterations, which another thread does too, per thread.
    pub copies: u64,
    /// Registers whose number depends on the thread.
    pub selections: u64,
}

impl Cost {
    /// The sum.
    pub fn total(&self) -> u64 {
        self.memory + self.steps + self.registers + self.shuffles + self.copies + self.selections
    }

    fn terms(&self) -> [(&'static str, u64); 6] {
        [
            ("memory", self.memory),
            ("steps", self.steps),
            ("registers", self.registers),
            ("shuffles", self.shuffles),
            ("copies", self.copies),
            ("selections", self.selections),
        ]
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.memory += other.memory;
        self.steps += other.steps;
        self.registers += other.registers;
        self.shuffles += other.shuffles;
        self.copies += other.copies;
        self.selections += other.selections;
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.total())?;
        let paid = self.terms().into_iter().filter(|(_, term)| *term > 0);
        for (at, (name, term)) in paid.enumerate() {
            write!(f, "{} {name} {term}", if at == 0 { " =" } else { " +" })?;
        }
        Ok(())
    }
}

/// A weight beside counts, which are not negative.
fn weight(of: i64) -> u64 {
    of.unsigned_abs()
}

/// The cost of keeping a fragment in `slots` slots of `bytes` bytes each.
pub(crate) fn of_registers(slots: usize, bytes: i64) -> u64 {
    weight(WEIGHTS.held_register) * (slots as u64 * bytes as u64).div_ceil(4)
}

/// Instructions of all warps and of the busiest one, and passes.
fn of_access(issued: u64, busiest: u64, passes: u64) -> u64 {
    weight(WEIGHTS.instruction) * (issued + busiest) + passes / weight(WEIGHTS.passes_of_a_layout)
}

/// A lower bound on the cost of `slots` steps of a nest in which no thread takes more than `vector` elements at once,
/// and neighbours along dimensions other than `along` are not adjacent in memory.
pub(crate) fn least_of_steps(work: &Work, slots: usize, vector: usize, along: usize) -> u64 {
    let of_moves = |moves: &Moves| {
        let lanes = moves.most_along(work.nest, vector, along);
        let turns = (moves.turns * work.nest.turns * moves.elements) as u64;
        let issued = (work.iterations.div_ceil(LANES) as u64 * turns).div_ceil(lanes as u64);
        let sectors = if lanes > 1 { (work.iterations * moves.elements * moves.bytes) as u64 / SECTOR } else { 0 };
        of_access(issued, (slots as u64 * turns).div_ceil(lanes as u64), sectors)
    };
    work.nest.executions * (weight(WEIGHTS.step) * slots as u64 + work.moves.iter().map(of_moves).sum::<u64>())
}

impl Tables {
    /// The cost of a nest that is done in these steps.
    pub(crate) fn cost_of_nest(&mut self, work: &Work, steps: MapId) -> Cost {
        let facts = self.facts(steps);
        let copies = facts.entries.saturating_sub(work.iterations).div_ceil(self.threads());
        let step = weight(WEIGHTS.step);
        let mut cost = Cost { steps: step * facts.busiest as u64, copies: step * copies as u64, ..Cost::default() };
        for moves in &work.moves {
            let (issue, turns) = (self.issue(work.nest, moves, steps), moves.turns as u64);
            cost.memory += of_access(issue.issued * turns, issue.busiest * turns, issue.passes * turns);
        }
        if let (Some(scanned), Some(rows)) = (&work.nest.scanned, work.rows) {
            let rounds = rounds(self.owners(steps), self.threads(), scanned);
            cost.shuffles = self.cost_of_reduction(steps, rows).shuffles * rounds;
        }
        for term in [&mut cost.memory, &mut cost.steps, &mut cost.copies, &mut cost.shuffles] {
            *term *= work.nest.executions;
        }
        cost
    }

    /// The cost of selecting slots by thread where the steps touch a fragment.
    pub(crate) fn cost_of_selections(&mut self, steps: MapId, pattern: PatternId, map: MapId) -> u64 {
        weight(WEIGHTS.selection) * self.selections(steps, pattern, map)
    }

    /// The cost of a reduction of a fragment to the rows of `pattern`.
    pub(crate) fn cost_of_reduction(&mut self, source: MapId, pattern: PatternId) -> Cost {
        let steps = weight(WEIGHTS.step) * self.facts(source).busiest as u64;
        if let Some(known) = self.answers.shuffles.get(&(source, pattern)) {
            return Cost { steps, shuffles: *known, ..Cost::default() };
        }
        let rows = self.complete(source, pattern);
        let shuffles = shuffles(self.map(rows), self.owners(rows));
        self.answers.shuffles.insert((source, pattern), shuffles);
        Cost { steps, shuffles, ..Cost::default() }
    }
}

/// The most parts of a row, of elements that follow each other, that a thread has. The steps of a scan have these owners.
fn rounds(owners: &Owners, threads: usize, scanned: &Scanned) -> u64 {
    let (mut parts, mut most) = (vec![0u64; threads], 1);
    for row in scanned.in_order.chunks(scanned.extent) {
        let holders = row.iter().filter_map(|element| owners.of(*element as usize).first());
        let mut seen: Vec<u32> = holders.copied().collect();
        seen.dedup();
        for holder in &seen {
            parts[*holder as usize] += 1;
            most = most.max(parts[*holder as usize]);
        }
        seen.iter().for_each(|holder| parts[*holder as usize] = 0);
    }
    most
}

/// Exchanges of the busiest warp, where `rows` gives the rows of which each thread has a part.
fn shuffles(rows: &Map, owners: &Owners) -> u64 {
    let is_mixed = mixed(rows);
    let of_row: Vec<u64> = (0..rows.elements()).map(|row| of_threads(owners.of(row), is_mixed[row])).collect();
    let mut warps = vec![0; rows.threads().div_ceil(LANES)];
    for column in rows.columns() {
        for (sum, lanes) in warps.iter_mut().zip(column.chunks(LANES)) {
            let exchanges = lanes.iter().filter(|row| **row != NONE).map(|row| of_row[*row as usize]);
            *sum += exchanges.max().unwrap_or(0);
        }
    }
    warps.into_iter().max().unwrap_or(0)
}

/// For each row, whether a warp has parts of it and of another row in one place.
fn mixed(rows: &Map) -> Vec<bool> {
    let mut is_mixed = vec![false; rows.elements()];
    for lanes in rows.columns().flat_map(|column| column.chunks(LANES)) {
        let held = || lanes.iter().filter(|row| **row != NONE);
        let first = held().next();
        if held().any(|row| Some(row) != first) {
            held().for_each(|row| is_mixed[*row as usize] = true);
        }
    }
    is_mixed
}

/// The cost of the exchanges between the threads that share a row, with warps that have parts of other rows or not.
fn of_threads(threads: &[u32], is_mixed: bool) -> u64 {
    let [first, .., last] = threads else { return 0 };
    let is_in_warp = *first as usize / LANES == *last as usize / LANES;
    if is_in_warp && threads.len().is_power_of_two() && is_butterfly(threads) {
        return weight(WEIGHTS.halving) * u64::from(threads.len().ilog2());
    }
    let mut warps = threads.chunk_by(|a, b| *a as usize / LANES == *b as usize / LANES);
    let of_warp = threads.iter().take_while(|thread| **thread as usize / LANES == *first as usize / LANES).count();
    let exchange = |warp: &[u32]| warp.len() == of_warp && of_warp.is_power_of_two() && is_butterfly(warp);
    let parts = if !is_mixed || warps.all(exchange) {
        weight(WEIGHTS.halving) * u64::from(LANES.ilog2())
    } else {
        weight(WEIGHTS.instruction + WEIGHTS.step) * threads.len() as u64
    };
    parts + weight(WEIGHTS.staging)
}

/// Whether the threads are the first one combined by `xor` with every subset of log2(n) numbers.
fn is_butterfly(threads: &[u32]) -> bool {
    let apart = |at: usize| threads[at] ^ threads[0];
    let halvings = threads.len().ilog2();
    let sum = |at: usize| {
        let bits = (0..halvings).filter(|bit| at >> bit & 1 == 1);
        bits.fold(0, |sum, bit| sum ^ apart(1 << bit))
    };
    (0..threads.len()).all(|at| apart(at) == sum(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_names_its_terms() {
        let cost = Cost { memory: 8, registers: 40, ..Cost::default() };
        assert_eq!(cost.to_string(), "48 = memory 8 + registers 40");
    }

    #[test]
    fn registers_are_counted_in_words() {
        assert_eq!((of_registers(3, 2), of_registers(2, 8)), (40, 80));
    }

    #[test]
    fn threads_of_a_warp_exchange_by_halves_and_others_go_through_memory() {
        let of = |threads: &[u32]| [false, true].map(|is_mixed| of_threads(threads, is_mixed));
        assert_eq!((of(&[5]), of(&[4, 5, 6, 7]), of(&[0, 8, 16, 24])), ([0, 0], [2, 2], [2, 2]));
        assert_eq!((of(&[1, 2, 3, 4]), of(&[0, 1, 2]), of(&[0, 32])), ([17, 24], [17, 21], [17, 17]));
    }

    #[test]
    fn the_busiest_warp_counts() {
        let rows = Map::of_slots(64, 2, |thread, slot| (thread < 32 || slot == 0).then_some(slot), 2);
        let owners = rows.owners();
        assert_eq!((owners.of(0).len(), shuffles(&rows, &owners)), (64, 17 + 5));
    }
}
