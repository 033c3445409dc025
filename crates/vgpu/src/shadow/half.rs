//! The record of the accesses of half a word, in 8 bytes: what single accesses of 16-bit elements leave.

use crate::shadow::cell::{Cell, Reads};
use crate::shadow::stamp::Stamp;

/// In `write`: the cell of the half is in the place in `read`.
const ELSEWHERE: u32 = u32::MAX;

/// The last write and the last read of half a word, or where its cell is, if it has more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Half {
    write: u32,
    read: u32,
}

impl Half {
    /// A half whose cell is at this place.
    pub(super) fn elsewhere(index: u32) -> Half {
        Half { write: ELSEWHERE, read: index }
    }

    /// Where its cell is, if it is not here.
    pub(super) fn place(self) -> Option<usize> {
        (self.write == ELSEWHERE).then_some(self.read as usize)
    }

    /// That of a cell, if it has no more than a half can record.
    pub(super) fn of(cell: &Cell) -> Option<Half> {
        let read = match cell.reads() {
            Reads::None => Stamp::NONE,
            Reads::One(stamp) => stamp,
            Reads::Several(_) => return None,
        };
        (!cell.is_split() && cell.is_plain()).then(|| Half { write: cell.write().bits(), read: read.bits() })
    }

    /// Its cell, if it is here.
    pub(super) fn cell(self) -> Cell {
        let mut cell = Cell::EMPTY;
        cell.set_write(Stamp::of_bits(self.write));
        if self.read != 0 {
            cell.set_reads(Reads::One(Stamp::of_bits(self.read)));
        }
        cell
    }
}
