//! Joins the shadows of two copies of a memory, on which different clusters have run.

use std::ops::Range;

use crate::clock::cta_of;
use crate::shadow::Shadow;
use crate::shadow::cell::{Cell, NEVER, Reads};
use crate::shadow::cells::{Level, Place};
use crate::shadow::stamp::{Newer, Records, Stamp};

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
        let blocks = std::mem::take(&mut other.cells.blocks);
        self.cells.reach(blocks.len() * Level::BLOCK.size());
        for (index, cell) in blocks.into_iter().enumerate() {
            let joint = Joint { other: &other, newer, records };
            let span = (index * Level::BLOCK.size(), Level::BLOCK);
            self.join_cell(Place::Block(index), cell, &joint, span, &mut written)?;
        }
        Some(written.0)
    }

    /// Joins the cell of a level at `offset` with one of the other shadow; `None` if a byte was written by one and accessed
    /// by the other.
    fn join_cell(
        &mut self,
        place: Place,
        cell: Cell,
        joint: &Joint<'_>,
        (offset, level): (usize, Level),
        written: &mut Ranges,
    ) -> Option<()> {
        let Joint { other, newer, records } = *joint;
        if !other.has_news(&cell, level, newer) {
            return Some(());
        }
        let own = self.cells.get(place);
        if !self.has_news(&own, level, newer) {
            self.adopt_all(place, cell, joint, (offset, level), written);
            return Some(());
        }
        if cell.parts().is_none() && own.parts().is_none() {
            let is_write = self.has_new_write(&own, newer) || other.has_new_write(&cell, newer);
            let theirs = self.adopt(other, cell, newer);
            let joined = self.join_reads(own, theirs, newer, records);
            *self.cells.get_mut(place) = joined;
            return (!is_write).then_some(());
        }
        let tables = (&mut self.tables, records);
        let first = own.parts().unwrap_or_else(|| self.cells.split(place, level, tables));
        for part in 0..level.parts() {
            let at = part * level.below().size();
            let theirs = match cell.parts() {
                Some(first) => other.cells.get(Place::Part(first + part)),
                None => cell.part(at, |stamp| records.of(newer.shift(stamp)).sharing),
            };
            self.join_cell(Place::Part(first + part), theirs, joint, (offset + at, level.below()), written)?;
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
        let others = [own.older, theirs.older, last(&earlier)].into_iter().filter(|stamp| !stamp.is_none());
        let rank = |stamp: &Stamp| (cta(*stamp) < newer.known_from, cta(*stamp));
        later.older = others.min_by_key(rank).unwrap_or(Stamp::NONE);
        later
    }

    /// Copies a cell of the other shadow, and all that it is split into, to where this shadow has nothing new.
    fn adopt_all(
        &mut self,
        place: Place,
        cell: Cell,
        joint: &Joint<'_>,
        (offset, level): (usize, Level),
        written: &mut Ranges,
    ) {
        let Joint { other, newer, records } = *joint;
        let Some(theirs) = cell.parts() else {
            if other.has_new_write(&cell, newer) {
                written.add(offset, level.size());
            }
            *self.cells.get_mut(place) = self.adopt(other, cell, newer);
            return;
        };
        let tables = (&mut self.tables, records);
        let own = self.cells.get(place).parts().unwrap_or_else(|| self.cells.split(place, level, tables));
        for part in 0..level.parts() {
            let cell = other.cells.get(Place::Part(theirs + part));
            let span = (offset + part * level.below().size(), level.below());
            self.adopt_all(Place::Part(own + part), cell, joint, span, written);
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
    fn has_news(&self, cell: &Cell, level: Level, newer: Newer) -> bool {
        match cell.parts() {
            Some(first) => (first..first + level.parts())
                .any(|part| self.has_news(&self.cells.get(Place::Part(part)), level.below(), newer)),
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
