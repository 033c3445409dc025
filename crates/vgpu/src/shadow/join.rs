//! Joins the shadows of two copies of a memory, on which different clusters have run.

use std::ops::Range;

use crate::clock::cta_of;
use crate::shadow::cell::{Cell, NEVER, Reads};
use crate::shadow::stamp::{Newer, Records, Stamp};
use crate::shadow::{PAGE_UNITS, Shadow, UNIT, split};

/// Ranges of bytes; what is adjacent to the last one becomes part of it.
#[derive(Default)]
struct Ranges(Vec<Range<usize>>);

impl Ranges {
    fn add(&mut self, offset: usize, len: usize) {
        match self.0.last_mut().filter(|last| last.end == offset) {
            Some(last) => last.end += len,
            None => self.0.push(offset..offset + len),
        }
    }
}

impl Shadow {
    /// Adds what `other` has recorded since both were equal, and returns what was written there. Returns `None` if a byte
    /// was written by one of them and accessed by the other; then this shadow is of no use any more.
    pub(crate) fn join(&mut self, mut other: Shadow, newer: Newer, records: &Records) -> Option<Vec<Range<usize>>> {
        let mut written = Ranges::default();
        for (index, page) in std::mem::take(&mut other.pages).into_iter().enumerate() {
            let Some(mut cells) = page else { continue };
            let own = self.pages.get_mut(index).and_then(Option::take);
            let own = own.as_deref().unwrap_or(&[Cell::EMPTY; PAGE_UNITS]);
            for ((unit, cell), own) in cells.iter_mut().enumerate().zip(own) {
                let offset = (index * PAGE_UNITS + unit) * UNIT;
                // Most cells are of these kinds.
                if cell.is_empty() {
                    *cell = *own;
                } else if own.is_empty() && cell.is_plain() {
                    if newer.has(cell.write()) {
                        written.add(offset, UNIT);
                    }
                    cell.shift(newer);
                } else {
                    *cell = self.join_cell(*own, (&other, *cell), (newer, records), (offset, UNIT), &mut written)?;
                }
            }
            if self.pages.len() <= index {
                self.pages.resize_with(index + 1, || None);
            }
            self.pages[index] = Some(cells);
        }
        Some(written.0)
    }

    /// The joined cell for `size` bytes at `offset`; `None` if a byte was written by one and accessed by the other.
    fn join_cell(
        &mut self,
        mut own: Cell,
        (other, cell): (&Shadow, Cell),
        (newer, records): (Newer, &Records),
        (offset, size): (usize, usize),
        written: &mut Ranges,
    ) -> Option<Cell> {
        if !other.has_news(&cell, newer) {
            return Some(own);
        }
        let is_whole = cell.quarters().is_none();
        if is_whole && !self.has_news(&own, newer) {
            if other.has_new_write(&cell, newer) {
                written.add(offset, size);
            }
            return Some(self.adopt(other, cell, newer));
        }
        if is_whole && own.quarters().is_none() {
            let is_write = self.has_new_write(&own, newer) || other.has_new_write(&cell, newer);
            let theirs = self.adopt(other, cell, newer);
            return (!is_write).then(|| self.join_reads(own, theirs, newer, records));
        }
        let group = own.quarters().unwrap_or_else(|| split(&mut own, &mut self.quarters, &mut self.tables));
        for quarter in 0..4 {
            let theirs = cell.quarters().map_or(cell, |group| other.quarters[group][quarter]);
            let bytes = (offset + quarter * size / 4, size / 4);
            let joined =
                self.join_cell(self.quarters[group][quarter], (other, theirs), (newer, records), bytes, written)?;
            self.quarters[group][quarter] = joined;
        }
        Some(own)
    }

    /// A cell with reads of both: those by the last CTA, and one by the first. So it makes no difference which reads were
    /// recorded together.
    fn join_reads(&self, own: Cell, theirs: Cell, newer: Newer, records: &Records) -> Cell {
        let last = |cell: &Cell| match cell.reads() {
            Reads::None => Stamp::NONE,
            Reads::One(stamp) => stamp,
            Reads::Several(index) => self.tables.reads.get(index).first().unwrap_or(Stamp::NONE),
        };
        let cta = |stamp: Stamp| if stamp.is_none() { 0 } else { cta_of(records.of(stamp).cta) };
        let (mut later, earlier) = if cta(last(&own)) >= cta(last(&theirs)) { (own, theirs) } else { (theirs, own) };
        let others = [own.older, theirs.older, last(&earlier)].into_iter().filter(|stamp| newer.has(*stamp));
        later.older = others.min_by_key(|stamp| cta(*stamp)).unwrap_or(Stamp::NONE);
        later
    }

    /// A copy of a cell that is not split of another shadow.
    fn adopt(&mut self, other: &Shadow, cell: Cell, newer: Newer) -> Cell {
        let mut own = cell;
        own.extra = NEVER;
        own.shift(newer);
        if let Reads::Several(index) = cell.reads() {
            let copy = self.tables.reads.create();
            *self.tables.reads.get_mut(copy) = other.tables.reads.get(index).shifted(newer);
            own.set_reads(Reads::Several(copy));
        }
        self.tables.adopt_extra(&other.tables, &cell, &mut own, newer);
        own
    }

    /// Whether a cell has records that are new.
    fn has_news(&self, cell: &Cell, newer: Newer) -> bool {
        match cell.quarters() {
            Some(group) => self.quarters[group].iter().any(|cell| self.has_news(cell, newer)),
            None => self.has_new_write(cell, newer) || !self.any_new_read(cell, newer).is_none(),
        }
    }

    /// Whether a cell that is not split has new writes. A strong access counts as one.
    fn has_new_write(&self, cell: &Cell, newer: Newer) -> bool {
        let is_new = |stamp: Stamp| newer.has(stamp);
        is_new(cell.write())
            || is_new(self.tables.earlier(cell))
            || self.tables.strong(cell).is_some_and(|strong| strong.has_news(newer))
    }

    /// A new weak read of a cell that is not split, or none.
    fn any_new_read(&self, cell: &Cell, newer: Newer) -> Stamp {
        let last = match cell.reads() {
            Reads::None => Stamp::NONE,
            Reads::One(stamp) => stamp,
            Reads::Several(index) => self.tables.reads.get(index).any_new(newer),
        };
        [last, cell.older].into_iter().find(|stamp| newer.has(*stamp)).unwrap_or(Stamp::NONE)
    }
}
