//! Tensor memory: 128 lanes of 512 columns of 32 bits (PTX ISA, section 9.7.16.1), its allocations, and who has accessed it.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::clock::{Far, copies_of};
use crate::undefined::Undefined;

pub(crate) const LANES: usize = 128;
pub(crate) const COLUMNS: usize = 512;
/// Fewest columns of an allocation.
const LEAST_COLUMNS: usize = 32;
/// Adjacent lanes whose accesses are recorded together: no instruction accesses fewer.
const GROUP: usize = 16;

/// The lane and the column of an address in tensor memory.
pub(crate) fn split(address: u32) -> (usize, usize) {
    ((address >> 16) as usize, (address & 0xffff) as usize)
}

/// Lanes, as groups of 16 with a bit each, and columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) groups: u8,
    pub(crate) columns: Range<usize>,
}

impl Area {
    /// All lanes of some columns.
    pub(crate) fn of_columns(first: usize, count: usize) -> Area {
        Area { groups: u8::MAX, columns: first..first + count }
    }

    /// The lanes from `first` on.
    pub(crate) fn of_lanes(first: usize, count: usize, columns: Range<usize>) -> Area {
        let groups = (first / GROUP..(first + count).div_ceil(GROUP)).fold(0, |all, group| all | 1 << group);
        Area { groups, columns }
    }
}

/// What has accessed tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// `tcgen05.ld` or `tcgen05.st`.
    Registers,
    /// `tcgen05.cp`; of one row for each quarter of the lanes, it replaces those that a shift leaves.
    Copy { is_refresh: bool },
    /// `tcgen05.shift`.
    Shift,
    /// A multiplicand or the scale factors of a product.
    Multiplicand,
    /// The accumulator at this address of a product of M x N.
    Accumulator { at: u32, m: usize, n: usize },
}

/// An access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Number of the CTA whose thread started it.
    pub(crate) cta: u32,
    /// Who made it, among the agents of that CTA.
    pub(crate) agent: u32,
    pub(crate) number: u32,
    pub(crate) pc: u32,
    pub(crate) by: By,
}

impl Mark {
    /// Whether it is ordered before someone who knows this.
    pub(crate) fn is_known(&self, known: &Far) -> bool {
        known.count(copies_of(self.cta), self.agent) >= self.number
    }

    /// Whether the tensor core itself orders `self` before `next`, which is issued by the same thread later (PTX ISA, section
    /// "Memory Consistency Model Canonical synchronization patterns": the pipelined pairs).
    fn is_pipelined(&self, next: &Mark) -> bool {
        let is_same_engine = (self.cta, self.agent) == (next.cta, next.agent);
        is_same_engine
            && match (self.by, next.by) {
                (By::Accumulator { .. }, By::Accumulator { .. }) => self.by == next.by,
                (_, By::Registers) | (By::Registers, _) => false,
                (By::Accumulator { .. }, _) => next.by == By::Shift,
                (By::Multiplicand, By::Accumulator { .. }) => false,
                (By::Multiplicand, _) => true,
                (By::Copy { .. }, _) => next.by != By::Shift,
                (By::Shift, By::Copy { is_refresh }) => is_refresh,
                (By::Shift, By::Shift) => false,
                (By::Shift, By::Multiplicand | By::Accumulator { .. }) => true,
            }
    }
}

/// The accesses of the lanes of a group in one column: the last write, and the reads since then.
#[derive(Clone, Debug, Default)]
struct Cell {
    write: Option<Mark>,
    reads: Vec<Mark>,
}

/// The tensor memory of a CTA. It has no words until some are allocated.
#[derive(Debug, Default)]
pub(crate) struct TensorMemory {
    words: Vec<u32>,
    is_written: Vec<bool>,
    /// The undefined bits of words.
    undefined: BTreeMap<usize, Undefined>,
    cells: Vec<Cell>,
    /// First column and number of columns.
    allocations: Vec<(usize, usize)>,
    pub(crate) is_relinquished: bool,
}

impl TensorMemory {
    /// Allocates columns, if there are enough adjacent ones.
    pub(crate) fn allocate(&mut self, columns: usize) -> Option<usize> {
        if self.words.is_empty() {
            self.words = vec![0; LANES * COLUMNS];
            self.is_written = vec![false; LANES * COLUMNS];
            self.cells = vec![Cell::default(); LANES / GROUP * COLUMNS];
        }
        let is_free = |first: &usize| {
            let end = first + columns;
            end <= COLUMNS && self.allocations.iter().all(|(other, count)| end <= *other || other + count <= *first)
        };
        let first = (0..COLUMNS).step_by(LEAST_COLUMNS).find(is_free)?;
        self.allocations.push((first, columns));
        Some(first)
    }

    /// Frees an allocation, whose contents are lost; false if there is none.
    pub(crate) fn free(&mut self, first: usize, columns: usize) -> bool {
        let Some(at) = self.allocations.iter().position(|found| *found == (first, columns)) else { return false };
        self.allocations.remove(at);
        for lane in 0..LANES {
            self.is_written[lane * COLUMNS + first..][..columns].fill(false);
        }
        self.undefined.retain(|word, _| !(first..first + columns).contains(&(word % COLUMNS)));
        for group in 0..LANES / GROUP {
            self.cells[group * COLUMNS + first..][..columns].fill(Cell::default());
        }
        true
    }

    /// Columns that are allocated.
    pub(crate) fn allocated(&self) -> usize {
        self.allocations.iter().map(|(_, columns)| columns).sum()
    }

    /// The allocations, as a fault lists them.
    pub(crate) fn allocations_text(&self) -> String {
        let each = |(first, columns): &(usize, usize)| format!("{columns} columns at {first:#x}");
        let all: Vec<String> = self.allocations.iter().map(each).collect();
        if all.is_empty() { "none".to_string() } else { all.join(", ") }
    }

    /// Whether one allocation has all these columns.
    pub(crate) fn has(&self, columns: &Range<usize>) -> bool {
        self.allocations.iter().any(|(first, count)| *first <= columns.start && columns.end <= first + count)
    }

    /// The word at a lane and a column, and its undefined bits; `None` if it was never written.
    pub(crate) fn get(&self, lane: usize, column: usize) -> (u32, Option<Undefined>) {
        let at = lane * COLUMNS + column;
        let undefined = self.undefined.get(&at).copied().unwrap_or_default();
        (self.words[at], self.is_written[at].then_some(undefined))
    }

    pub(crate) fn set(&mut self, lane: usize, column: usize, word: u32, undefined: Undefined) {
        let at = lane * COLUMNS + column;
        self.words[at] = word;
        self.is_written[at] = true;
        if undefined.is_some() {
            self.undefined.insert(at, undefined);
        } else if !self.undefined.is_empty() {
            self.undefined.remove(&at);
        }
    }

    /// Adjacent words of a lane, if all of them are defined.
    pub(crate) fn defined_words(&self, lane: usize, columns: Range<usize>) -> Option<&[u32]> {
        let all = lane * COLUMNS + columns.start..lane * COLUMNS + columns.end;
        let is_defined = self.undefined.is_empty() && self.is_written[all.clone()].iter().all(|is_written| *is_written);
        is_defined.then(|| &self.words[all])
    }

    /// Writes defined words from a lane and a column on.
    pub(crate) fn set_defined(&mut self, lane: usize, column: usize, words: &[u32]) {
        let all = lane * COLUMNS + column..lane * COLUMNS + column + words.len();
        self.words[all.clone()].copy_from_slice(words);
        self.is_written[all.clone()].fill(true);
        if !self.undefined.is_empty() {
            all.for_each(|at| _ = self.undefined.remove(&at));
        }
    }

    /// Whether a copy overwrites what a product that is not known to be complete reads.
    pub(crate) fn overwrites_factors(&self, area: &Area, mark: Mark, known: &Far) -> bool {
        let is_read = |read: &Mark| read.by == By::Multiplicand && read.is_pipelined(&mark) && !read.is_known(known);
        matches!(mark.by, By::Copy { .. })
            && (0..LANES / GROUP).filter(|group| area.groups >> group & 1 == 1).any(|group| {
                self.cells[group * COLUMNS..][area.columns.clone()].iter().any(|cell| cell.reads.iter().any(is_read))
            })
    }

    /// Records an access by someone who knows `known`. Returns one that it conflicts with and is not ordered after, and whether
    /// that is a write.
    pub(crate) fn access(&mut self, area: &Area, mark: Mark, writes: bool, known: &Far) -> Option<(Mark, bool)> {
        let id = |mark: &Mark| (mark.cta, mark.agent, mark.number);
        let is_before = |other: &Mark| id(other) == id(&mark) || other.is_pipelined(&mark) || other.is_known(known);
        let mut conflict = None;
        for group in (0..LANES / GROUP).filter(|group| area.groups >> group & 1 == 1) {
            for cell in &mut self.cells[group * COLUMNS..][area.columns.clone()] {
                let write = cell.write.filter(|write| !is_before(write));
                conflict = conflict.or(write.map(|write| (write, true)));
                if writes {
                    let read = cell.reads.iter().find(|read| !is_before(read));
                    conflict = conflict.or(read.map(|read| (*read, false)));
                    cell.reads.clear();
                    cell.write = Some(mark);
                } else if cell.reads.last() != Some(&mark) {
                    cell.reads.retain(|read| (read.cta, read.agent) != (mark.cta, mark.agent));
                    cell.reads.push(mark);
                }
            }
        }
        conflict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(agent: u32, number: u32, by: By) -> Mark {
        Mark { cta: 1, agent, number, pc: 0, by }
    }

    #[test]
    fn allocations_are_apart_and_free_columns_are_used_again() {
        let mut memory = TensorMemory::default();
        assert_eq!([128, 256, 128].map(|columns| memory.allocate(columns)), [Some(0), Some(128), Some(384)]);
        assert_eq!(memory.allocate(32), None);
        assert!(memory.free(128, 256) && !memory.free(128, 256));
        assert_eq!((memory.allocate(32), memory.allocated()), (Some(128), 288));
        assert!(memory.has(&(130..160)) && !memory.has(&(130..161)));
    }

    #[test]
    fn what_was_freed_was_never_written() {
        let mut memory = TensorMemory::default();
        memory.allocate(32);
        memory.set(7, 3, 5, Undefined::default());
        assert_eq!(memory.get(7, 3), (5, Some(Undefined::default())));
        memory.free(0, 32);
        memory.allocate(32);
        assert_eq!(memory.get(7, 3).1, None);
    }

    #[test]
    fn products_of_one_shape_are_ordered_by_the_tensor_core() {
        let mut memory = TensorMemory::default();
        memory.allocate(64);
        let area = Area::of_columns(0, 32);
        let sums = |number: u32, m: usize| mark(9, number, By::Accumulator { at: 0, m, n: 32 });
        let nothing = Far::default();
        let mut access = |area: &Area, mark: Mark, writes: bool| memory.access(area, mark, writes, &nothing).is_some();
        assert!(!access(&area, sums(1, 128), true) && !access(&area, sums(2, 128), true));
        assert!(access(&area, sums(3, 64), true), "another shape");
        assert!(
            access(&area, mark(9, 4, By::Multiplicand), false),
            "the accumulator is read as a multiplicand before the product is complete"
        );
        assert!(access(&Area::of_lanes(0, 32, 3..4), mark(2, 1, By::Registers), false), "nobody has waited");
        assert!(!access(&Area::of_columns(32, 32), mark(2, 1, By::Registers), true), "other columns");
    }

    #[test]
    fn a_write_conflicts_with_a_read_of_its_lanes_only() {
        let mut memory = TensorMemory::default();
        memory.allocate(32);
        let nothing = Far::default();
        let lanes = |first: usize| Area::of_lanes(first, 32, 0..1);
        assert!(memory.access(&lanes(0), mark(1, 1, By::Registers), false, &nothing).is_none());
        assert!(memory.access(&lanes(32), mark(3, 1, By::Registers), true, &nothing).is_none());
        let found = memory.access(&lanes(0), mark(3, 2, By::Registers), true, &nothing);
        assert_eq!(found, Some((mark(1, 1, By::Registers), false)));
    }
}
