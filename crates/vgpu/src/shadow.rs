//! Shadow memory: records the last write and the reads of each byte, and checks whether a new access is ordered after them.
//!
//! The scheme is FastTrack's (Flanagan and Freund, 2009): one record for the last write, one for the last read, and a
//! set of reads only while several unordered threads read. A cell stands for a block of 1024 bytes; it is split into parts,
//! and these again, down to bytes, where accesses differ. An access is a [`Stamp`] of 32 bits, so that a cell has 16 bytes, and one
//! of half a word 8. One
//! stamp stands for a row of lanes that access adjacent bytes ([`Sharing`]), so that a block that warps access row by row has
//! few cells, however small the access of a lane is.
//!
//! Strong accesses (atomic, volatile, relaxed, ...) do not conflict with each other if each is in the scope of the other,
//! so they are recorded separately, in sets that the cells refer to: weak records are checked against every access, strong
//! records against weak accesses and those outside their scope.

mod access;
mod cell;
mod cells;
mod check;
mod half;
mod join;
mod level;
mod orders;
mod sets;
mod stamp;

use std::ops::Range;

use cell::{Cell, Reads};
use cells::{Cells, Visit};
use check::{is_row, is_simple, read_beside, read_cell, record, write_cell, written_before};
use sets::SideTables;

pub(crate) use access::{Accessor, Actor, Conflict, KnownStamps, Who};
pub(crate) use orders::OrderNumber;
pub(crate) use stamp::{Newer, RecentRecords, Record, Records, Sharing, Stamp};

/// Bytes of a word.
const WORD: usize = 4;

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
    /// The access overwrites bytes that threads have read, without a proxy fence.
    pub(crate) overwrites_read: bool,
    /// The access is an unordered write of the value that was already there, after this write.
    pub(crate) benign: Option<Conflict>,
    /// The instruction by which the same thread wrote a different value there since its last barrier.
    pub(crate) own_previous_write: Option<u32>,
}

impl CheckResult {
    /// Adds what was found for other bytes of the same access.
    pub(crate) fn add(&mut self, other: CheckResult) {
        self.conflicts.extend(other.conflicts);
        self.overwrites_read |= other.overwrites_read;
        self.benign = self.benign.or(other.benign);
        self.own_previous_write = self.own_previous_write.or(other.own_previous_write);
    }
}

impl ConflictRange {
    /// The part of it that is in a range of bytes.
    pub(crate) fn within(&self, bytes: &Range<usize>) -> Option<ConflictRange> {
        let (start, end) = (self.offset.max(bytes.start), (self.offset + self.len).min(bytes.end));
        (start < end).then(|| ConflictRange { offset: start, len: end - start, ..*self })
    }
}

/// The shadow of one region.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    cells: Cells,
    tables: SideTables,
}

/// A range of bytes that one cell may stand for.
#[derive(Clone, Copy, Debug)]
struct Span {
    offset: usize,
    len: usize,
}

impl Span {
    fn end(&self) -> usize {
        self.offset + self.len
    }

    /// The part of it that is in `size` bytes from `start`, which it overlaps.
    fn within(&self, start: usize, size: usize) -> Span {
        let offset = self.offset.max(start);
        Span { offset, len: self.end().min(start + size) - offset }
    }

    fn of<'a>(&self, bytes: &'a [u8], first: usize) -> &'a [u8] {
        &bytes[self.offset - first..self.offset - first + self.len]
    }
}

impl Shadow {
    /// Records a read of `len` bytes at `offset`.
    pub(crate) fn read(&mut self, offset: usize, len: usize, who: &Accessor<'_>) -> CheckResult {
        let mut found = CheckResult::default();
        self.visit(offset, len, who, |cell, tables, span, who| {
            if is_simple(cell, who) {
                record(cell, false, who);
                return Visit::Done;
            }
            if is_row(cell, who) {
                return Visit::Split;
            }
            let Span { offset, len } = span;
            let range = |conflict| ConflictRange { offset, len, conflict };
            found.conflicts.extend(read_cell(cell, tables, who).map(range));
            Visit::Done
        });
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
        let first = offset;
        self.visit(offset, len, who, |cell, tables, span, who| {
            let same = values.is_some_and(|(old, new)| span.of(old, first) == span.of(new, first));
            let is_simple = is_simple(cell, who);
            // Some of its words may be equal.
            let may_differ = !same && span.len > WORD && values.is_some();
            if !is_simple && (may_differ || is_row(cell, who)) {
                return Visit::Split;
            }
            if !same {
                found.own_previous_write = found.own_previous_write.or(written_before(cell, who));
            }
            found.overwrites_read |= matches!(cell.reads(), Reads::One(read) if who.lacks_fence_after(read));
            if is_simple {
                record(cell, true, who);
                return Visit::Done;
            }
            let Span { offset, len } = span;
            let (conflicts, benign) = write_cell(cell, tables, who, same);
            found.conflicts.extend(conflicts.into_iter().map(|conflict| ConflictRange { offset, len, conflict }));
            found.benign = found.benign.or(benign);
            Visit::Done
        });
        found
    }

    /// Records a weak access if that takes no more than a comparison of stamps; false if it takes more, for which
    /// [`Shadow::read`] or [`Shadow::write`] is to be called, by each lane if there are several.
    pub(crate) fn record_simple(&mut self, offset: usize, len: usize, is_write: bool, who: &Accessor<'_>) -> bool {
        self.visit(offset, len, who, |cell, tables, _, who| {
            if is_simple(cell, who) {
                record(cell, is_write, who);
            } else if is_write || !read_beside(cell, tables, who) {
                return Visit::Stop;
            }
            Visit::Done
        })
    }

    /// A shadow without accesses, in the place of this one.
    pub(crate) fn cleared(mut self) -> Shadow {
        self.cells.clear();
        self.tables.clear();
        self
    }

    /// Bytes that the cells take.
    pub(crate) fn bytes(&self) -> usize {
        self.cells.bytes()
    }

    /// The last write of the byte at `offset`, in this launch or an earlier one.
    pub(crate) fn last_write(&self, offset: usize, records: &Records) -> Option<Stamp> {
        let (cell, level) = self.cells.find(offset)?;
        let strong = self.tables.strong(&cell).map_or(Stamp::NONE, |strong| strong.last);
        let last = [strong, cell.write()].into_iter().find(|stamp| !stamp.is_none())?;
        Some(last.part(offset % level.size(), records.of(last).sharing))
    }

    /// Calls `f` with the cells of `len` bytes from `offset`, with the bytes that each stands for, and with the access of `who`
    /// to these. Returns whether it has visited all of them.
    fn visit(
        &mut self,
        offset: usize,
        len: usize,
        who: &Accessor<'_>,
        mut f: impl FnMut(&mut Cell, &mut SideTables, Span, &Accessor<'_>) -> Visit,
    ) -> bool {
        self.cells.visit(Span { offset, len }, (&mut self.tables, who.by.records), |cell, tables, span| {
            let part = span.offset - offset;
            match part == 0 && span.len == who.size {
                true => f(cell, tables, span, who),
                false => f(cell, tables, span, &who.at(part, span.len)),
            }
        })
    }
}

#[cfg(test)]
mod rows_tests;
#[cfg(test)]
mod tests;
