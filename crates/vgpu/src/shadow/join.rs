//! Joins the shadows of two copies of a memory, on which different clusters have run.

use std::ops::Range;

use crate::clock::cta_of;
use crate::shadow::Shadow;
use crate::shadow::cell::{Cell, NEVER, Parts, Reads};
use crate::shadow::cells::Place;
use crate::shadow::level::Level;
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
        self.cells.reach(blocks.len() * Level::Block.size());
        for (index, cell) in blocks.into_iter().enumerate() {
            let joint = Joint { other: &other, newer, records };
            let span = (index * Level::Block.size(), Level::Block);
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
            self.cells.set(place, joined);
            return (!is_write).then_some(());
        }
        let own = own.parts().unwrap_or_else(|| {
            let below = cell.parts().map_or(level.below(), |parts| parts.level(level));
            self.cells.split(place, level, below, (&mut self.tables, records))
        });
        let below = own.level(level);
        if cell.parts().is_some_and(|parts| parts.level(level) != below) {
            return self.join_bytes(place, cell, joint, (offset, level), written);
        }
        for part in 0..level.parts(below) {
            let at = part * below.size();
            let theirs = match cell.parts() {
                Some(parts) => other.cells.get(parts.place(part)),
                None => cell.part(at, |stamp| records.of(newer.shift(stamp)).sharing),
            };
            self.join_cell(own.place(part), theirs, joint, (offset + at, below), written)?;
        }
        Some(())
    }

    /// Joins a unit that is split into words here and into halves of words there, or the other way round.
    fn join_bytes(
        &mut self,
        place: Place,
        cell: Cell,
        joint: &Joint<'_>,
        (offset, level): (usize, Level),
        written: &mut Ranges,
    ) -> Option<()> {
        let Joint { other, newer, records } = *joint;
        let own = self.cells.get(place);
        let words = self.cells.empty_parts(level, Level::Word);
        for word in 0..level.parts(Level::Word) {
            let bytes = self.cells.empty_parts(Level::Word, Level::Byte);
            for byte in 0..Level::Word.size() {
                let at = word * Level::Word.size() + byte;
                let (found, level) = self.cells.find_within(own, level, at);
                let copy = self.tables.copy(found);
                let part = copy.part(at % level.size(), |stamp| records.of(stamp).sharing);
                self.cells.set(bytes.place(byte), part);
            }
            self.cells.set(words.place(word), Cell::split(bytes));
            for byte in 0..Level::Word.size() {
                let at = word * Level::Word.size() + byte;
                let (found, level) = other.cells.find_within(cell, level, at);
                let theirs = found.part(at % level.size(), |stamp| records.of(newer.shift(stamp)).sharing);
                self.join_cell(bytes.place(byte), theirs, joint, (offset + at, Level::Byte), written)?;
            }
        }
        self.cells.set(place, Cell::split(words));
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
        let Joint { other, newer, .. } = *joint;
        let Some(theirs) = cell.parts() else {
            if other.has_new_write(&cell, newer) {
                written.add(offset, level.size());
            }
            let own = self.adopt(other, cell, newer);
            self.cells.set(place, own);
            return;
        };
        let below = theirs.level(level);
        let same = |parts: &Parts| parts.level(level) == below;
        let own = self.cells.get(place).parts().filter(same).unwrap_or_else(|| self.cells.empty_parts(level, below));
        for part in 0..level.parts(below) {
            let cell = other.cells.get(theirs.place(part));
            self.adopt_all(own.place(part), cell, joint, (offset + part * below.size(), below), written);
        }
        self.cells.set(place, Cell::split(own));
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
            Some(parts) => {
                let below = parts.level(level);
                (0..level.parts(below)).any(|part| self.has_news(&self.cells.get(parts.place(part)), below, newer))
            }
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
