//! Reads that are known to race with a write that is executed later.

use std::collections::BTreeMap;

use crate::exec::access::Access;
use crate::shadow::{Conflict, Who};

/// A memory, whoever accesses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The shared memory of the CTA with this number.
    Shared(u32),
    /// A buffer in global memory, by its index.
    Buffer(usize),
}

/// A byte that is read, and its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Race {
    place: Place,
    /// Offset in it, in bytes.
    offset: usize,
    /// Program counter of the read.
    pc: u32,
    reader: Who,
}

/// Reads that are known to race, each with the conflicting write.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownRaces(BTreeMap<Race, Conflict>);

impl Race {
    /// The read of the byte at `offset` in a memory that `conflict` describes.
    pub(crate) fn of(place: Place, offset: usize, conflict: &Conflict) -> Race {
        Race { place, offset, pc: conflict.pc, reader: conflict.who }
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

    /// The write that the read of a byte races with.
    pub(crate) fn of(&self, place: Place, offset: usize, access: &Access, reader: Who) -> Option<Conflict> {
        self.0.get(&Race { place, offset, pc: access.pc, reader }).copied()
    }
}
