//! Reads that are known to race with a write that is executed later.

use std::collections::BTreeMap;

use crate::exec::access::{Access, RegionId, RegionSlot};
use crate::shadow::{Conflict, Reader};

/// A byte that is read, and its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Race {
    region: RegionId,
    /// Offset in the region, in bytes.
    offset: usize,
    /// Program counter of the read.
    pc: u32,
    reader: Reader,
}

/// Reads that are known to race, each with the conflicting write.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownRaces(BTreeMap<Race, Conflict>);

impl Race {
    /// The read of the byte at `offset` in the memory of `slot` that `conflict` describes.
    pub(crate) fn of(slot: &RegionSlot, offset: usize, conflict: &Conflict) -> Race {
        Race { region: slot.id, offset, pc: conflict.pc, reader: conflict.reader }
    }
}

impl KnownRaces {
    /// Adds a read with the write that it races with.
    pub(crate) fn insert(&mut self, read: Race, write: Conflict) {
        self.0.insert(read, write);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the races of another run. Returns false if all of them were known.
    pub(crate) fn join(&mut self, other: KnownRaces) -> bool {
        let before = self.0.len();
        self.0.extend(other.0);
        self.0.len() > before
    }

    /// The write that the read of a byte races with. For a read by an earlier CTA the thread is not known; such an
    /// entry applies to all reads of the byte by the instruction.
    pub(crate) fn of(&self, slot: &RegionSlot, offset: usize, access: &Access, own: Reader) -> Option<Conflict> {
        let race = |reader: Reader| Race { region: slot.id, offset, pc: access.pc, reader };
        let known = |reader: Reader| self.0.get(&race(reader)).copied();
        known(own).or_else(|| known(Reader::Unknown))
    }
}
