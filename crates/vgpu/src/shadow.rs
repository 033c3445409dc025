//! Shadow memory: records the last write and the reads of each 4-byte word, and checks whether a new access is ordered
//! after them.
//!
//! The scheme is FastTrack's (Flanagan and Freund, 2009): one record for the last write, one for the last read, and a
//! set of reads only while several unordered threads read. A word is split into byte cells when an access covers only
//! part of it. An access is a [`Stamp`] of 32 bits, so that a cell has 16 bytes.
//!
//! Strong accesses (atomic, volatile, relaxed, ...) do not conflict with each other if each is in the scope of the other,
//! so they are recorded separately, in sets that the cells refer to: weak records are checked against every access, strong
//! records against weak accesses and those outside their scope.

mod access;
mod cell;
mod check;
mod sets;
mod stamp;

use cell::Cell;
use check::{read_cell, write_cell, written_before};
use sets::SideTables;

pub(crate) use access::{Accessor, Conflict, Who};
pub(crate) use stamp::{RecentRecords, Record, Records, Stamp};

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

    /// Records a write of `len` bytes at `offset`. `values` are the bytes before and after it, if they are known.
    pub(crate) fn write(
        &mut self,
        offset: usize,
        len: usize,
        values: Option<(&[u8], &[u8])>,
        who: &Accessor<'_>,
    ) -> CheckResult {
        let mut found = CheckResult::default();
        let end = offset + len;
        let mut at = offset;
        while at < end {
            let word = at / 4;
            let stop = end.min(word * 4 + 4);
            let (from, to) = (at - offset, stop - offset);
            let same = values.is_some_and(|(old, new)| same_bytes(&old[from..to], &new[from..to]));
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
    pub(crate) fn last_write(&self, offset: usize) -> Option<Stamp> {
        let word = offset / 4;
        let page = self.pages.get(word / PAGE_WORDS)?.as_ref()?;
        let cell = page[word % PAGE_WORDS];
        let cell = cell.byte_cells().map_or(cell, |index| self.splits[index][offset % 4]);
        let strong = self.tables.strong(&cell).map_or(Stamp::NONE, |strong| strong.last);
        [strong, cell.write()].into_iter().find(|stamp| !stamp.is_none())
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
    let page = pages[index].get_or_insert_with(|| vec![Cell::EMPTY; PAGE_WORDS].into_boxed_slice());
    let slot = word % PAGE_WORDS;
    if len < 4 && page[slot].byte_cells().is_none() {
        let whole = page[slot];
        splits.push([whole, tables.copy(whole), tables.copy(whole), tables.copy(whole)]);
        page[slot] = Cell::split((splits.len() - 1) as u32);
    }
    match page[slot].byte_cells() {
        Some(group) => &mut splits[group][first..first + len],
        None => &mut page[slot..slot + 1],
    }
}

#[cfg(test)]
mod tests;
