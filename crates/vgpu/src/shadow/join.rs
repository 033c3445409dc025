//! Joins the shadows of two copies of a memory, on which different clusters have run.

use std::ops::Range;

use crate::clock::cta_of;
use crate::shadow::cell::{Cell, NEVER, Reads};
use crate::shadow::stamp::{Newer, Records, Stamp};
use crate::shadow::{BLOCK, Cells, Place, Shadow};

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

/// What a shadow is joined with: the other shadow, its new records, and the joined records.
#[derive(Clone, Copy)]
struct Joint<'a> {
    other: &'a Shadow,
    newer: Newer,
    records: &'a Records,
}

impl Shadow {
    /// Adds what `other` has recorded since both were equal, and returns what was written there. Returns `None` if a byte
    /// was written by one of them and accessed by the other; then this shadow is of no use any more.
    pub(crate) fn join(&mut self, mut other: Shadow, newer: Newer, records: &Records) -> Option<Vec<Range<usize>>> {
        let mut written = Ranges::default();
        let blocks = std::mem::take(&mut other.blocks);
        self.blocks.resize(self.blocks.len().max(blocks.len()), Cell::EMPTY);
        for (index, cell) in blocks.into_iter().enumerate() {
            let joint = Joint { other: &other, newer, records };
            self.join_cell(Place::Block(index), cell, &joint, (index * BLOCK, BLOCK), &mut written)?;
        }
        Some(written.0)
    }

    fn cells<'a>(&'a mut self, records: &'a Records) -> Cells<'a> {
        Cells { blocks: &mut self.blocks, quarters: &mut self.quarters, tables: &mut self.tables, records }
    }

    /// Joins the cell for `size` bytes at `offset` with one of the other shadow; `None` if a byte was written by one and accessed
    /// by the other.
    fn join_cell(
        &mut self,
        place: Place,
        cell: Cell,
        joint: &Joint<'_>,
        (offset, size): (usize, usize),
        written: &mut Ranges,
    ) -> Option<()> {
        let Joint { other, newer, records } = *joint;
        if !other.has_news(&cell, newer) {
            return Some(());
        }
        let own = self.cells(records).get(place);
        if !self.has_news(&own, newer) {
            self.adopt_all(place, cell, joint, (offset, size), written);
            return Some(());
        }
        if cell.quarters().is_none() && own.quarters().is_none() {
            let is_write = self.has_new_write(&own, newer) || other.has_new_write(&cell, newer);
            let theirs = self.adopt(other, cell, newer);
            let joined = self.join_reads(own, theirs, newer, records);
            *self.cells(records).get_mut(place).0 = joined;
            return (!is_write).then_some(());
        }
        let group = own.quarters().unwrap_or_else(|| self.cells(records).split(place, size));
        for quarter in 0..4 {
            let at = quarter * size / 4;
            let theirs = match cell.quarters() {
                Some(group) => other.quarters[group][quarter],
                None => cell.part(at, |stamp| records.of(newer.shift(stamp)).sharing),
            };
            self.join_cell(Place::Quarter(group, quarter), theirs, joint, (offset + at, size / 4), written)?;
        }
        Some(())
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

    /// Copies a cell of the other shadow, and all that it is split into, to where this shadow has nothing new.
    fn adopt_all(
        &mut self,
        place: Place,
        cell: Cell,
        joint: &Joint<'_>,
        (offset, size): (usize, usize),
        written: &mut Ranges,
    ) {
        let Joint { other, newer, records } = *joint;
        let Some(theirs) = cell.quarters() else {
            if other.has_new_write(&cell, newer) {
                written.add(offset, size);
            }
            let adopted = self.adopt(other, cell, newer);
            *self.cells(records).get_mut(place).0 = adopted;
            return;
        };
        let own = self.cells(records).get(place);
        let group = own.quarters().unwrap_or_else(|| self.cells(records).split(place, size));
        for quarter in 0..4 {
            let (place, theirs) = (Place::Quarter(group, quarter), other.quarters[theirs][quarter]);
            self.adopt_all(place, theirs, joint, (offset + quarter * size / 4, size / 4), written);
        }
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
