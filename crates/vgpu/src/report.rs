//! The counts of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::banks::{LastPattern, Sectors, sectors_of};
use crate::isa::Space;
use crate::memory::Memory;
use crate::program::Program;

/// The kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes atomically.
    Atomic,
}

/// Counts of one memory instruction over the whole launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessCount {
    /// 1-based PTX line.
    pub ptx_line: u32,
    /// Line in the CUDA source, from `.loc`: that of the call, if the instruction is in an inlined function.
    pub cuda_line: Option<u32>,
    /// The state space accessed; a generic instruction has one entry for each space that it reached.
    pub space: Space,
    /// The name of the buffer in global memory that the lowest active lane accessed; an instruction has one entry for each.
    pub buffer: Option<String>,
    /// The kind of access.
    pub kind: AccessKind,
    /// Bytes that one lane accesses.
    pub bytes_per_lane: u32,
    /// Warp executions with at least one active lane.
    pub executions: u64,
    /// Shared-memory wavefronts; 0 for other spaces.
    pub wavefronts: u64,
    /// The fewest wavefronts possible for the words accessed.
    pub ideal_wavefronts: u64,
    /// Distinct 32-byte sectors, summed over executions; 0 for shared memory.
    pub sectors: u64,
    /// Sectors if the distinct bytes were contiguous: for each execution, their number divided by 32, rounded up.
    pub ideal_sectors: u64,
    /// Bytes accessed by all lanes.
    pub bytes: u64,
}

/// Counts of one of the sixteen barriers of a CTA, over all CTAs of the launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BarrierCount {
    /// The number of the barrier in its CTA, 0 to 15.
    pub id: u32,
    /// How often it completed.
    pub phases: u64,
    /// Arrivals of threads.
    pub arrivals: u64,
    /// How often a thread waited.
    pub waits: u64,
}

/// What bulk copies, tensor copies among them, moved from and to global memory, over all CTAs of the launch. A copy to several CTAs of a
/// cluster counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkCount {
    /// Copies that moved any bytes from or to global memory.
    pub copies: u64,
    /// Distinct bytes, summed over copies; those outside a tensor, which are filled, do not count.
    pub bytes: u64,
    /// Distinct 32-byte sectors, summed over copies.
    pub sectors: u64,
    /// Sectors if the bytes of each copy were contiguous.
    pub ideal_sectors: u64,
}

impl BulkCount {
    /// Adds a copy of these ranges of addresses in global memory, in any order, some of them more than once.
    pub(crate) fn add_copy(&mut self, mut ranges: Vec<Range<u64>>) {
        ranges.sort_unstable_by_key(|range| range.start);
        let Sectors { count, ideal, bytes } = sectors_of(ranges.into_iter());
        if bytes > 0 {
            self.add(BulkCount { copies: 1, bytes, sectors: count, ideal_sectors: ideal });
        }
    }

    fn add(&mut self, other: BulkCount) {
        self.copies += other.copies;
        self.bytes += other.bytes;
        self.sectors += other.sectors;
        self.ideal_sectors += other.ideal_sectors;
    }
}

/// An observation that is not a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its kind: `benign_race`, `may_contract`, `tmem_war` or `war_proxy`.
    pub name: &'static str,
    /// 1-based PTX line.
    pub ptx_line: u32,
    /// How often it happened.
    pub count: u64,
}

/// The counts of a launch that ran to completion.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Memory instructions that were executed, in program order.
    pub accesses: Vec<AccessCount>,
    /// Instructions times active lanes.
    pub thread_instructions: u64,
    /// Instructions that warps executed.
    pub warp_instructions: u64,
    /// Warp and thread executions by opcode.
    pub opcodes: BTreeMap<String, (u64, u64)>,
    /// The barriers that were used, by id.
    pub barriers: Vec<BarrierCount>,
    /// What bulk copies moved.
    pub bulk: BulkCount,
    /// Observations about the run, by kind.
    pub notes: Vec<Note>,
}

/// Counts of one memory instruction in one state space.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) space: Space,
    /// The number of the buffer in global memory.
    pub(crate) buffer: Option<usize>,
    pub(crate) kind: AccessKind,
    pub(crate) bytes_per_lane: u32,
    pub(crate) executions: u64,
    pub(crate) wavefronts: u64,
    pub(crate) ideal_wavefronts: u64,
    pub(crate) sectors: u64,
    pub(crate) ideal_sectors: u64,
    pub(crate) bytes: u64,
    pub(crate) last: Option<Box<LastPattern>>,
}

/// Counters of a run, indexed by program counter.
#[derive(Debug)]
pub(crate) struct Stats {
    /// Warp and thread executions.
    pub(crate) executed: Vec<(u64, u64)>,
    /// Counts of each memory instruction, one entry for each state space.
    pub(crate) tallies: Vec<Vec<Tally>>,
    /// Number of observations, by kind and program counter.
    pub(crate) notes: BTreeMap<(&'static str, u32), u64>,
    /// The instructions that an assembler may fuse with products before them.
    pub(crate) contractions: BTreeSet<u32>,
    /// Number of warp instructions executed so far.
    pub(crate) steps: u64,
    /// Counts of each barrier of a CTA.
    pub(crate) barriers: [BarrierCount; 16],
    /// What bulk copies moved.
    pub(crate) bulk: BulkCount,
}

impl Stats {
    /// Counters for a number of instructions, with those that an assembler may fuse.
    pub(crate) fn new(instructions: usize, contractions: impl Iterator<Item = u32>) -> Stats {
        Stats {
            executed: vec![(0, 0); instructions],
            tallies: vec![Vec::new(); instructions],
            notes: BTreeMap::new(),
            contractions: contractions.collect(),
            steps: 0,
            barriers: [BarrierCount::default(); 16],
            bulk: BulkCount::default(),
        }
    }

    /// Adds the counts of CTAs that ran elsewhere.
    pub(crate) fn add(&mut self, other: &Stats) {
        for (own, other) in self.executed.iter_mut().zip(&other.executed) {
            *own = (own.0 + other.0, own.1 + other.1);
        }
        for (pc, more) in (0..).zip(&other.tallies) {
            for more in more {
                self.tally(pc, (more.space, more.buffer), more.kind, more.bytes_per_lane).add(more);
            }
        }
        for (key, count) in &other.notes {
            *self.notes.entry(*key).or_insert(0) += count;
        }
        for (own, other) in self.barriers.iter_mut().zip(&other.barriers) {
            own.phases += other.phases;
            own.arrivals += other.arrivals;
            own.waits += other.waits;
        }
        self.bulk.add(other.bulk);
    }

    /// Notes something about the instruction at `pc`.
    pub(crate) fn note(&mut self, name: &'static str, pc: u32) {
        *self.notes.entry((name, pc)).or_insert(0) += 1;
    }

    /// The counts of the instruction at `pc` in `space`, or in a buffer of global memory.
    pub(crate) fn tally(
        &mut self,
        pc: u32,
        (space, buffer): (Space, Option<usize>),
        kind: AccessKind,
        bytes_per_lane: u32,
    ) -> &mut Tally {
        let list = &mut self.tallies[pc as usize];
        let found = list.iter().position(|tally| (tally.space, tally.buffer) == (space, buffer));
        let index = found.unwrap_or_else(|| {
            list.push(Tally {
                space,
                buffer,
                kind,
                bytes_per_lane,
                executions: 0,
                wavefronts: 0,
                ideal_wavefronts: 0,
                sectors: 0,
                ideal_sectors: 0,
                bytes: 0,
                last: None,
            });
            list.len() - 1
        });
        &mut list[index]
    }

    pub(crate) fn report(&self, program: &Program, memory: &Memory) -> Report {
        let mut report = Report { bulk: self.bulk, ..Report::default() };
        for ((warps, threads), info) in self.executed.iter().zip(&program.info) {
            report.warp_instructions += warps;
            report.thread_instructions += threads;
            if *warps > 0 {
                let entry = report.opcodes.entry(info.opcode.clone()).or_insert((0, 0));
                entry.0 += warps;
                entry.1 += threads;
            }
        }
        for (tallies, info) in self.tallies.iter().zip(&program.info) {
            let cuda_line = info.loc.map(|loc| loc.inlined_at.map_or(loc.line, |(_, line)| line));
            let mut tallies: Vec<&Tally> = tallies.iter().collect();
            tallies.sort_by_key(|tally| (tally.space, tally.buffer));
            report.accesses.extend(tallies.into_iter().map(|tally| tally.count(info.line, cuda_line, memory)));
        }
        let numbered = (0..).zip(self.barriers).map(|(id, count)| BarrierCount { id, ..count });
        report.barriers = numbered.filter(|count| count.arrivals > 0).collect();
        let executed = self.contractions.iter().map(|pc| (("may_contract", *pc), self.executed[*pc as usize].0));
        let noted = self.notes.iter().map(|(key, count)| (*key, *count));
        for ((name, pc), count) in noted.chain(executed).filter(|(_, count)| *count > 0) {
            report.notes.push(Note { name, ptx_line: program.line(pc), count });
        }
        report
    }
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.executions += other.executions;
        self.wavefronts += other.wavefronts;
        self.ideal_wavefronts += other.ideal_wavefronts;
        self.sectors += other.sectors;
        self.ideal_sectors += other.ideal_sectors;
        self.bytes += other.bytes;
    }

    fn count(&self, ptx_line: u32, cuda_line: Option<u32>, memory: &Memory) -> AccessCount {
        AccessCount {
            ptx_line,
            cuda_line,
            space: self.space,
            buffer: self.buffer.map(|at| memory.buffers[at].name.clone()),
            kind: self.kind,
            bytes_per_lane: self.bytes_per_lane,
            executions: self.executions,
            wavefronts: self.wavefronts,
            ideal_wavefronts: self.ideal_wavefronts,
            sectors: self.sectors,
            ideal_sectors: self.ideal_sectors,
            bytes: self.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_sectors_of_a_copy_count_once() {
        let mut count = BulkCount::default();
        // Two rows of 40 bytes, the first one in two parts and for two CTAs.
        count.add_copy(vec![16..40, 200..240, 0..16, 0..16, 16..40]);
        assert_eq!(count, BulkCount { copies: 1, bytes: 80, sectors: 2 + 2, ideal_sectors: 3 });
        // Nothing but what is filled.
        count.add_copy(Vec::new());
        assert_eq!(count.copies, 1);
    }
}
