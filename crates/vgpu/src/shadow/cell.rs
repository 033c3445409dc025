//! The record of the weak accesses of a unit, word or byte.

use crate::shadow::stamp::{Newer, Stamp};

/// In `extra`: nothing.
pub(super) const NEVER: u32 = u32::MAX;
/// In `write`: the cell is split into those of the group with the index in `read`.
const SPLIT: u32 = u32::MAX;
/// In `read`: the reads are in the set with the index in the other bits.
const SET: u32 = 1 << 31;

/// The weak accesses of a unit, word or byte, in 16 bytes.
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

impl Cell {
    pub(super) const EMPTY: Cell = Cell { write: 0, read: 0, older: Stamp::NONE, extra: NEVER };

    /// A cell that stands for those of the group with this index.
    pub(super) fn split(index: u32) -> Cell {
        Cell { write: SPLIT, read: index, ..Cell::EMPTY }
    }

    /// The index of the group of cells for its quarters.
    pub(super) fn quarters(&self) -> Option<usize> {
        (self.write == SPLIT).then_some(self.read as usize)
    }

    /// Whether there are no accesses.
    pub(super) fn is_empty(&self) -> bool {
        self.write == 0 && self.read == 0 && self.older.is_none() && self.extra == NEVER
    }

    /// Whether all its records are in the cell itself.
    pub(super) fn is_plain(&self) -> bool {
        self.write != SPLIT && self.read & SET == 0 && self.extra == NEVER
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
