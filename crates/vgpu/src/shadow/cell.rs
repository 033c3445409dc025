//! The record of the weak accesses of a block, or of a part of it.

use crate::shadow::stamp::{Newer, Sharing, Stamp};

/// In `extra`: nothing.
pub(super) const NEVER: u32 = u32::MAX;
/// In `write`: the cell is split into those from the place in `read` on.
const SPLIT: u32 = u32::MAX;
/// In `read`: the reads are in the set with the index in the other bits.
const SET: u32 = 1 << 31;
/// In `extra` of a cell that is split: its parts are halves of words.
const HALVES: u32 = 0;

/// The weak accesses of a block, or of a part of it, in 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    /// The last write, or `SPLIT`.
    write: u32,
    /// The last read, or several unordered ones of one CTA.
    read: u32,
    /// A read by another CTA.
    pub(super) older: Stamp,
    /// Index of further records, or `NEVER`.
    pub(super) extra: u32,
}

/// The weak reads of a cell by one CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    None,
    /// The last one: all others are ordered before it.
    One(Stamp),
    /// The set with this index.
    Several(u32),
}

/// The places of the parts of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    /// Cells, from this one on.
    Cells(usize),
    /// Halves of words, from this one on.
    Halves(usize),
}

impl Cell {
    pub(super) const EMPTY: Cell = Cell { write: 0, read: 0, older: Stamp::NONE, extra: NEVER };

    /// A cell that is split into parts.
    pub(super) fn split(parts: Parts) -> Cell {
        let (read, extra) = match parts {
            Parts::Cells(first) => (first as u32, NEVER),
            Parts::Halves(first) => (first as u32, HALVES),
        };
        Cell { write: SPLIT, read, extra, ..Cell::EMPTY }
    }

    pub(super) fn is_split(&self) -> bool {
        self.write == SPLIT
    }

    /// The places of its parts, if it is split.
    pub(super) fn parts(&self) -> Option<Parts> {
        let first = self.read as usize;
        self.is_split().then_some(if self.extra == HALVES { Parts::Halves(first) } else { Parts::Cells(first) })
    }

    /// Whether it records weak accesses only, and no read beside the last ones.
    pub(super) fn is_plain(&self) -> bool {
        self.extra == NEVER && self.older.is_none()
    }

    /// The cell for the part that begins `offset` bytes after it; `sharing` is that of the record of a stamp.
    pub(super) fn part(mut self, offset: usize, sharing: impl Fn(Stamp) -> Sharing) -> Cell {
        let part = |stamp: Stamp| if stamp.is_none() { stamp } else { stamp.part(offset, sharing(stamp)) };
        self.write = part(self.write()).bits();
        self.older = part(self.older);
        if let Reads::One(read) = self.reads() {
            self.read = part(read).bits();
        }
        self
    }

    /// Renumbers the records in the cell itself.
    pub(super) fn shift(&mut self, newer: Newer) {
        self.write = newer.shift(self.write()).bits();
        self.older = newer.shift(self.older);
        if self.read & SET == 0 {
            self.read = newer.shift(Stamp::of_bits(self.read)).bits();
        }
    }

    /// The last write.
    pub(super) fn write(&self) -> Stamp {
        Stamp::of_bits(self.write)
    }

    pub(super) fn set_write(&mut self, stamp: Stamp) {
        self.write = stamp.bits();
    }

    pub(super) fn reads(&self) -> Reads {
        match self.read {
            0 => Reads::None,
            read if read & SET != 0 => Reads::Several(read & !SET),
            read => Reads::One(Stamp::of_bits(read)),
        }
    }

    pub(super) fn set_reads(&mut self, reads: Reads) {
        self.read = match reads {
            Reads::None => 0,
            Reads::One(stamp) => stamp.bits(),
            Reads::Several(index) => index | SET,
        };
    }
}
