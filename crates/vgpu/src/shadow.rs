//! Shadow memory: records the last write and the reads of each 4-byte word, and checks whether a new access is ordered
//! after them.
//!
//! The scheme is FastTrack's (Flanagan and Freund, 2009): one record for the last write, one for the last read, and a
//! set of reads only while several unordered threads read. A word is split into byte cells when an access covers only
//! part of it. CTAs are never ordered with each other, so that records of another CTA conflict regardless of their
//! clocks.
//!
//! Strong accesses (atomic, volatile, relaxed, ...) do not conflict with each other, so they are recorded separately,
//! in sets that the cells refer to: weak records are checked against every access, strong records only against weak
//! accesses.

mod access;
mod cell;
mod check;
mod side_tables;

use cell::{Cell, EMPTY, NONE, SPLIT};
use check::{read_cell, write_cell, written_before};
use side_tables::SideTables;

pub(crate) use access::{Accessor, Conflict, LastWrite, Reader};

const PAGE_WORDS: usize = 1024;

/// A conflict, and the bytes that it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConflictRange {
    /// Offset of the bytes in the region.
    pub(crate) offset: usize,
    /// Number of bytes.
    pub(crate) len: usize,
    pub(crate) conflict: Conflict,
}

/// What the shadow memory found out about an access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckResult {
    /// The conflicts with other accesses.
    pub(crate) conflicts: Vec<ConflictRange>,
    /// The access is an unordered write of the value that was already there.
    pub(crate) benign: bool,
    /// The instruction by which the same thread wrote a different value there since its last barrier.
    pub(crate) own_previous_write: Option<u32>,
}

/// The shadow of one region; pages are allocated on first access.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    /// Cells of [`PAGE_WORDS`] words each; `None` if not accessed yet.
    pages: Vec<Option<Box<[Cell]>>>,
    /// Byte cells of the words that are split.
    splits: Vec<[Cell; 4]>,
    tables: SideTables,
}

impl Shadow {
    /// Records a read of `len` bytes at `offset`.
    pub(crate) fn read(&mut self, offset: usize, len: usize, who: &Accessor<'_>) -> CheckResult {
        let mut found = CheckResult::default();
        let end = offset + len;
        let mut at = offset;
        while at < end {
            let word = at / 4;
            let stop = end.min(word * 4 + 4);
            let Shadow { pages, splits, tables } = self;
            let cells = cells(pages, splits, tables, word, at % 4, stop - at);
            let len = (stop - at) / cells.len();
            for (number, cell) in cells.iter_mut().enumerate() {
                let range = |conflict| ConflictRange { offset: at + number * len, len, conflict };
                found.conflicts.extend(read_cell(cell, tables, who).map(range));
            }
            at = stop;
        }
        found
    }

    /// Records a write of `new` at `offset`, which replaces `old`.
    pub(crate) fn write(&mut self, offset: usize, old: &[u8], new: &[u8], who: &Accessor<'_>) -> CheckResult {
        let mut found = CheckResult::default();
        let end = offset + new.len();
        let mut at = offset;
        while at < end {
            let word = at / 4;
            let stop = end.min(word * 4 + 4);
            let (from, to) = (at - offset, stop - offset);
            let same = same_bytes(&old[from..to], &new[from..to]);
            let Shadow { pages, splits, tables } = self;
            let cells = cells(pages, splits, tables, word, at % 4, stop - at);
            let len = (stop - at) / cells.len();
            for (number, cell) in cells.iter_mut().enumerate() {
                let range = |conflict| ConflictRange { offset: at + number * len, len, conflict };
                if !same {
                    found.own_previous_write = found.own_previous_write.or(written_before(cell, who));
                }
                let (conflicts, benign) = write_cell(cell, tables, who, same);
                found.conflicts.extend(conflicts.into_iter().map(range));
                found.benign |= benign;
            }
            at = stop;
        }
        found
    }

    /// The last write of the byte at `offset`, in this launch or an earlier one.
    pub(crate) fn last_write(&self, offset: usize) -> Option<LastWrite> {
        let word = offset / 4;
        let page = self.pages.get(word / PAGE_WORDS)?.as_ref()?;
        let mut cell = page[word % PAGE_WORDS];
        if cell.write_cta == SPLIT {
            cell = self.splits[cell.write_thread as usize][offset % 4];
        }
        let strong = self.tables.strong.get(cell.strong as usize).and_then(|strong| strong.last);
        let weak = LastWrite { cta: cell.write_cta, thread: cell.write_thread, pc: cell.write_pc };
        strong.or((weak.pc != NONE).then_some(weak))
    }
}

/// Whether the bytes are equal. Whole words, the common case, are compared as integers.
fn same_bytes(old: &[u8], new: &[u8]) -> bool {
    match (old.first_chunk::<4>(), new.first_chunk::<4>()) {
        (Some(a), Some(b)) if old.len() == 4 => u32::from_ne_bytes(*a) == u32::from_ne_bytes(*b),
        _ => old == new,
    }
}

/// The cells of `len` bytes from `first` in a word, which is split if these are only part of it.
fn cells<'a>(
    pages: &'a mut Vec<Option<Box<[Cell]>>>,
    splits: &'a mut Vec<[Cell; 4]>,
    tables: &mut SideTables,
    word: usize,
    first: usize,
    len: usize,
) -> &'a mut [Cell] {
    let index = word / PAGE_WORDS;
    if pages.len() <= index {
        pages.resize_with(index + 1, || None);
    }
    let page = pages[index].get_or_insert_with(|| vec![EMPTY; PAGE_WORDS].into_boxed_slice());
    let slot = word % PAGE_WORDS;
    if len < 4 && page[slot].write_cta != SPLIT {
        let whole = page[slot];
        splits.push([whole, tables.copy(whole), tables.copy(whole), tables.copy(whole)]);
        page[slot] = Cell { write_cta: SPLIT, write_thread: (splits.len() - 1) as u32, ..EMPTY };
    }
    if page[slot].write_cta == SPLIT {
        let group = page[slot].write_thread as usize;
        return &mut splits[group][first..first + len];
    }
    &mut page[slot..slot + 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accessor(thread: u32, clock: u32, base: &[u32]) -> Accessor<'_> {
        Accessor { cta: 1, first_cta: 1, thread, clock, base, pc: thread, strong: false }
    }

    fn strong(thread: u32, clock: u32, base: &[u32]) -> Accessor<'_> {
        Accessor { strong: true, ..accessor(thread, clock, base) }
    }

    fn conflict(pc: u32, other_is_write: bool) -> Conflict {
        Conflict { pc, other_is_write, other_is_strong: false, other_cta: false, reader: Reader::Unknown }
    }

    impl CheckResult {
        /// The first conflict, without the reader.
        fn conflict(&self) -> Option<Conflict> {
            self.conflicts.first().map(|range| Conflict { reader: Reader::Unknown, ..range.conflict })
        }
    }

    #[test]
    fn an_unordered_read_after_a_write_conflicts() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        assert_eq!(shadow.write(8, &[0; 4], &[1; 4], &accessor(0, 1, &base)), CheckResult::default());
        let found = shadow.read(8, 4, &accessor(1, 1, &base));
        assert_eq!(found.conflict(), Some(conflict(0, true)));
        let known = [1, 0];
        assert_eq!(shadow.read(8, 4, &accessor(1, 2, &known)).conflict(), None);
    }

    #[test]
    fn a_write_conflicts_with_any_of_several_reads() {
        let mut shadow = Shadow::default();
        let base = [0, 0, 0];
        shadow.read(0, 4, &accessor(0, 1, &base));
        shadow.read(0, 4, &accessor(1, 1, &base));
        let known = [1, 0, 0];
        let found = shadow.write(0, &[0; 4], &[1; 4], &accessor(2, 1, &known));
        assert_eq!(found.conflict(), Some(conflict(1, false)));
    }

    #[test]
    fn neighbouring_bytes_do_not_conflict() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.write(0, &[0], &[1], &accessor(0, 1, &base));
        assert_eq!(shadow.write(1, &[0], &[1], &accessor(1, 1, &base)), CheckResult::default());
        assert!(shadow.read(0, 4, &accessor(1, 1, &base)).conflict().is_some());
    }

    #[test]
    fn equal_values_are_benign() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.write(0, &[0; 4], &[7; 4], &accessor(0, 1, &base));
        let found = shadow.write(0, &[7; 4], &[7; 4], &accessor(1, 1, &base));
        assert_eq!(found, CheckResult { benign: true, ..CheckResult::default() });
        assert_eq!(shadow.last_write(2), Some(LastWrite { cta: 1, thread: 1, pc: 1 }));
    }

    /// The last writer is ordered before its own next write, but the other writer of the same value is not.
    #[test]
    fn an_equal_value_does_not_hide_an_earlier_write() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.write(0, &[0; 4], &[7; 4], &accessor(0, 1, &base));
        assert!(shadow.write(0, &[7; 4], &[7; 4], &accessor(1, 1, &base)).benign);
        let found = shadow.write(0, &[7; 4], &[8; 4], &accessor(1, 1, &base));
        assert_eq!(found.conflict(), Some(conflict(0, true)));
        assert_eq!(shadow.write(0, &[8; 4], &[9; 4], &accessor(1, 1, &base)).conflict(), None);
    }

    #[test]
    fn a_write_after_a_barrier_is_ordered_after_all_writers_of_an_equal_value() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.write(0, &[0; 4], &[7; 4], &accessor(0, 1, &base));
        shadow.write(0, &[7; 4], &[7; 4], &accessor(1, 1, &base));
        let known = [1, 1];
        assert_eq!(shadow.write(0, &[7; 4], &[8; 4], &accessor(1, 2, &known)).conflict(), None);
    }

    #[test]
    fn an_equal_value_of_another_cta_is_remembered_through_several() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        let of_cta = |cta: u32, pc: u32| Accessor { cta, pc, ..accessor(0, 1, &base) };
        shadow.write(0, &[0; 4], &[1; 4], &of_cta(1, 5));
        assert!(shadow.write(0, &[1; 4], &[1; 4], &of_cta(2, 5)).benign);
        assert!(shadow.write(0, &[1; 4], &[1; 4], &of_cta(3, 5)).benign);
        let found = shadow.write(0, &[1; 4], &[2; 4], &of_cta(3, 6));
        assert_eq!(found.conflict(), Some(Conflict { other_cta: true, ..conflict(5, true) }));
    }

    #[test]
    fn a_thread_writes_another_value_again_until_its_next_barrier() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        let write = |shadow: &mut Shadow, pc: u32, clock: u32, old: u8, new: u8| {
            shadow.write(0, &[old; 2], &[new; 2], &Accessor { pc, ..accessor(1, clock, &base) })
        };
        assert_eq!(write(&mut shadow, 7, 1, 0, 1), CheckResult::default());
        assert_eq!(write(&mut shadow, 8, 1, 1, 1), CheckResult::default());
        assert_eq!(
            write(&mut shadow, 9, 1, 1, 2),
            CheckResult { own_previous_write: Some(8), ..CheckResult::default() }
        );
        assert_eq!(write(&mut shadow, 7, 2, 2, 3), CheckResult::default());
    }

    #[test]
    fn a_strong_write_does_not_hide_a_weak_one() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.write(0, &[0; 4], &[1; 4], &accessor(0, 1, &base));
        assert_eq!(shadow.write(0, &[1; 4], &[2; 4], &strong(0, 1, &base)), CheckResult::default());
        let found = shadow.write(0, &[2; 4], &[3; 4], &strong(1, 1, &base));
        assert_eq!(found.conflict(), Some(conflict(0, true)));
        assert_eq!(shadow.last_write(0), Some(LastWrite { cta: 1, thread: 1, pc: 1 }));
    }

    #[test]
    fn a_weak_read_conflicts_with_any_of_several_strong_writes() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.write(0, &[0; 4], &[1; 4], &strong(0, 1, &base));
        assert_eq!(shadow.write(0, &[1; 4], &[2; 4], &strong(1, 1, &base)), CheckResult::default());
        let found = shadow.read(0, 4, &accessor(1, 1, &base));
        assert_eq!(found.conflict(), Some(Conflict { other_is_strong: true, ..conflict(0, true) }));
        let known = [1, 1];
        let mut shadow = Shadow::default();
        shadow.write(0, &[0; 4], &[1; 4], &strong(0, 1, &base));
        shadow.write(0, &[1; 4], &[2; 4], &strong(1, 1, &base));
        assert_eq!(shadow.read(0, 4, &accessor(1, 2, &known)).conflict(), None);
        assert_eq!(shadow.write(0, &[2; 4], &[3; 4], &accessor(1, 2, &known)), CheckResult::default());
        assert_eq!(shadow.last_write(0), Some(LastWrite { cta: 1, thread: 1, pc: 1 }));
    }

    #[test]
    fn a_strong_read_does_not_hide_a_weak_one() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.read(0, 4, &accessor(0, 1, &base));
        shadow.read(0, 4, &strong(0, 1, &base));
        let found = shadow.write(0, &[0; 4], &[1; 4], &strong(1, 1, &base));
        assert_eq!(found.conflict(), Some(conflict(0, false)));
        let mut shadow = Shadow::default();
        shadow.read(0, 4, &strong(0, 1, &base));
        assert_eq!(shadow.write(0, &[0; 4], &[1; 4], &strong(1, 1, &base)), CheckResult::default());
        let found = shadow.write(0, &[1; 4], &[2; 4], &accessor(1, 1, &base));
        assert_eq!(found.conflict(), Some(Conflict { other_is_strong: true, ..conflict(0, false) }));
    }

    #[test]
    fn strong_accesses_of_other_ctas_conflict_with_weak_ones() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.write(0, &[0; 4], &[1; 4], &strong(0, 1, &base));
        let second = Accessor { cta: 2, ..accessor(0, 1, &base) };
        let strong_second = Accessor { strong: true, ..second };
        assert_eq!(shadow.write(0, &[1; 4], &[2; 4], &strong_second), CheckResult::default());
        let found = shadow.read(0, 4, &second);
        assert_eq!(found.conflict(), Some(Conflict { other_is_strong: true, other_cta: true, ..conflict(0, true) }));
        let next_launch = Accessor { cta: 3, first_cta: 3, ..second };
        assert_eq!(shadow.read(0, 4, &next_launch).conflict(), None);
    }
}
