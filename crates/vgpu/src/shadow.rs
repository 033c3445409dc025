//! Shadow memory: records the last write and the reads of each byte, and checks whether a new access is ordered after them.
//!
//! The scheme is FastTrack's (Flanagan and Freund, 2009): one record for the last write, one for the last read, and a
//! set of reads only while several unordered threads read. A cell stands for a unit of 16 bytes, which is split into words
//! when an access covers only part of it, and a word into bytes. An access is a [`Stamp`] of 32 bits, so that a cell has 16
//! bytes.
//!
//! Strong accesses (atomic, volatile, relaxed, ...) do not conflict with each other if each is in the scope of the other,
//! so they are recorded separately, in sets that the cells refer to: weak records are checked against every access, strong
//! records against weak accesses and those outside their scope.

mod access;
mod cell;
mod check;
mod join;
mod sets;
mod stamp;

use cell::{Cell, Reads};
use check::{is_simple, read_cell, record, write_cell, written_before};
use sets::SideTables;

pub(crate) use access::{Accessor, Conflict, Who};
pub(crate) use stamp::{Newer, RecentRecords, Record, Records, Stamp};

/// Bytes of a unit.
const UNIT: usize = 16;
/// Bytes of a word.
const WORD: usize = 4;
const PAGE_UNITS: usize = 256;

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

/// The shadow of one region; pages are allocated on first access.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    /// Cells of [`PAGE_UNITS`] units each; `None` if not accessed yet.
    pages: Vec<Option<Box<[Cell]>>>,
    /// The cells of the quarters of what is split: words of a unit, bytes of a word.
    quarters: Vec<[Cell; 4]>,
    tables: SideTables,
}

/// A range of bytes that one cell may stand for.
#[derive(Clone, Copy, Debug)]
struct Span {
    offset: usize,
    len: usize,
}

impl Span {
    fn of<'a>(&self, bytes: &'a [u8], first: usize) -> &'a [u8] {
        &bytes[self.offset - first..self.offset - first + self.len]
    }
}

impl Shadow {
    /// Records a read of `len` bytes at `offset`.
    pub(crate) fn read(&mut self, offset: usize, len: usize, who: &Accessor<'_>) -> CheckResult {
        let mut found = CheckResult::default();
        self.visit(offset, len, |cell, tables, span| {
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
        self.visit(offset, len, |cell, tables, span| {
            let same = values.is_some_and(|(old, new)| span.of(old, first) == span.of(new, first));
            // Some of its words may be equal.
            if !same && span.len == UNIT && values.is_some() && !is_simple(cell, who) {
                return Visit::Split;
            }
            if !same {
                found.own_previous_write = found.own_previous_write.or(written_before(cell, who));
            }
            found.overwrites_read |= matches!(cell.reads(), Reads::One(read) if who.lacks_fence_after(read));
            let Span { offset, len } = span;
            let (conflicts, benign) = write_cell(cell, tables, who, same);
            found.conflicts.extend(conflicts.into_iter().map(|conflict| ConflictRange { offset, len, conflict }));
            found.benign = found.benign.or(benign);
            Visit::Done
        });
        found
    }

    /// Records a weak access if that takes no more than a comparison of stamps; false if it takes more, for which
    /// [`Shadow::read`] or [`Shadow::write`] is to be called.
    pub(crate) fn record_simple(&mut self, offset: usize, len: usize, is_write: bool, who: &Accessor<'_>) -> bool {
        self.visit(offset, len, |cell, _, _| {
            if !is_simple(cell, who) {
                return Visit::Stop;
            }
            record(cell, is_write, who);
            Visit::Done
        })
    }

    /// Bytes that the cells take.
    pub(crate) fn bytes(&self) -> usize {
        let pages = self.pages.iter().flatten().count() * PAGE_UNITS;
        (pages + self.quarters.len() * 4) * size_of::<Cell>()
    }

    /// The last write of the byte at `offset`, in this launch or an earlier one.
    pub(crate) fn last_write(&self, offset: usize) -> Option<Stamp> {
        let unit = offset / UNIT;
        let page = self.pages.get(unit / PAGE_UNITS)?.as_ref()?;
        let below = |cell: Cell, quarter: usize| cell.quarters().map_or(cell, |group| self.quarters[group][quarter]);
        let word = below(page[unit % PAGE_UNITS], offset % UNIT / WORD);
        let cell = below(word, offset % WORD);
        let strong = self.tables.strong(&cell).map_or(Stamp::NONE, |strong| strong.last);
        [strong, cell.write()].into_iter().find(|stamp| !stamp.is_none())
    }

    /// Calls `f` with the cells of `len` bytes from `offset`, and with the bytes that each stands for: units, words or bytes.
    /// What the range covers only in part is split first. Returns whether it has visited all of them.
    fn visit(
        &mut self,
        offset: usize,
        len: usize,
        mut f: impl FnMut(&mut Cell, &mut SideTables, Span) -> Visit,
    ) -> bool {
        let end = offset + len;
        let Shadow { pages, quarters, tables } = self;
        let mut at = offset;
        while at < end {
            let unit = at / UNIT;
            let span = Span { offset: at, len: end.min(unit * UNIT + UNIT) - at };
            let cell = &mut page(pages, unit / PAGE_UNITS)[unit % PAGE_UNITS];
            at += span.len;
            // Most accesses are of whole units.
            if span.len == UNIT && cell.quarters().is_none() {
                match f(cell, tables, span) {
                    Visit::Done => continue,
                    Visit::Stop => return false,
                    Visit::Split => _ = split(cell, quarters, tables),
                }
            }
            if !visit_within(cell, UNIT, span, quarters, tables, &mut f) {
                return false;
            }
        }
        true
    }
}

/// What is to follow the visit of a cell.
enum Visit {
    Done,
    /// Nothing: the visit ends here.
    Stop,
    /// The visits of the cells of its quarters, instead.
    Split,
}

/// Visits the bytes of `span` within a cell of `size` bytes.
fn visit_within(
    cell: &mut Cell,
    size: usize,
    span: Span,
    quarters: &mut Vec<[Cell; 4]>,
    tables: &mut SideTables,
    f: &mut impl FnMut(&mut Cell, &mut SideTables, Span) -> Visit,
) -> bool {
    if cell.quarters().is_none() && (span.len == size || size == 1) {
        match f(cell, tables, span) {
            Visit::Done => return true,
            Visit::Stop => return false,
            Visit::Split => {}
        }
    }
    let group = cell.quarters().unwrap_or_else(|| split(cell, quarters, tables));
    let (part, end) = (size / 4, span.offset + span.len);
    let mut at = span.offset;
    while at < end {
        let stop = end.min(at - at % part + part);
        let mut quarter = quarters[group][at % size / part];
        let inside = Span { offset: at, len: stop - at };
        let goes_on = visit_within(&mut quarter, part, inside, quarters, tables, f);
        quarters[group][at % size / part] = quarter;
        if !goes_on {
            return false;
        }
        at = stop;
    }
    true
}

/// Splits a cell into four, and returns the number of their group.
fn split(cell: &mut Cell, quarters: &mut Vec<[Cell; 4]>, tables: &mut SideTables) -> usize {
    let whole = *cell;
    quarters.push([whole, tables.copy(whole), tables.copy(whole), tables.copy(whole)]);
    let group = quarters.len() - 1;
    *cell = Cell::split(group as u32);
    group
}

/// The cells of a page.
fn page(pages: &mut Vec<Option<Box<[Cell]>>>, index: usize) -> &mut [Cell] {
    if pages.len() <= index {
        pages.resize_with(index + 1, || None);
    }
    pages[index].get_or_insert_with(|| vec![Cell::EMPTY; PAGE_UNITS].into_boxed_slice())
}

#[cfg(test)]
mod tests;
