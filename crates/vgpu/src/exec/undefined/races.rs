//! Reads that race with a write that comes later in the order of this run.
//!
//! When the write is executed, what was read is long on its way. So the run goes on, and is done again with what it found:
//! the read then gets undefined bits. The order of execution is the same in every run, up to the first such bit that
//! matters, where it ends.

use std::collections::BTreeMap;

use crate::exec::Machine;
use crate::exec::place::{Access, Slot};
use crate::exec::undefined::{Undefined, UndefinedByte};
use crate::fault::Exec;
use crate::isa::Space;
use crate::shadow::{Conflict, Meeting, Reader};

/// Races that are left to the next run, at most.
const MOST_RACES: usize = 1 << 20;

/// A byte that is read, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Race {
    is_shared: bool,
    buffer: usize,
    offset: usize,
    pc: u32,
    reader: Reader,
}

/// Reads that are known to race, each with the write.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownRaces(BTreeMap<Race, Conflict>);

impl Race {
    /// The read of a byte of `slot` at `offset` that `conflict` says.
    pub(crate) fn of(slot: &Slot, offset: usize, conflict: &Conflict) -> Race {
        let is_shared = slot.space == Space::Shared;
        Race { is_shared, buffer: slot.buffer, offset, pc: conflict.pc, reader: conflict.reader }
    }
}

impl KnownRaces {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds those of another run; false if all of them are known.
    pub(crate) fn join(&mut self, other: KnownRaces) -> bool {
        let before = self.0.len();
        self.0.extend(other.0);
        self.0.len() > before
    }

    /// The write that the read of a byte races with. Of a read by an earlier CTA, its thread is not known, so that all
    /// reads of the byte by the instruction are meant.
    pub(crate) fn of(&self, slot: &Slot, offset: usize, access: &Access, own: Reader) -> Option<Conflict> {
        let is_shared = slot.space == Space::Shared;
        let race = |reader: Reader| Race { is_shared, buffer: slot.buffer, offset, pc: access.pc, reader };
        let known = |reader: Reader| self.0.get(&race(reader)).copied();
        known(own).or_else(|| known(Reader::Unknown))
    }
}

impl Machine<'_> {
    /// Tells the shadow of a read, and gives the bytes that race with a write: with one before, or, as an earlier run found,
    /// with one to come.
    pub(crate) fn races_of(&mut self, slot: &Slot, access: &Access) -> Vec<Meeting> {
        if self.known.is_empty() {
            return self.check(slot, access, None).meetings;
        }
        let clock = self.cta.clocks.own(access.thread);
        let reader = Reader::Thread { cta: self.cta.number, thread: access.thread, clock };
        let mut meetings = Vec::new();
        // A byte that is known to race leaves no record, so that other readers of it are found.
        for offset in slot.offset..slot.offset + slot.len {
            match self.known.of(slot, offset, access, reader) {
                Some(conflict) => meetings.push(Meeting { offset, len: 1, conflict }),
                None => {
                    let byte = Slot { offset, len: 1, ..*slot };
                    meetings.extend(self.check(&byte, access, None).meetings);
                }
            }
        }
        meetings
    }

    /// What is undefined of the bytes of a load, byte by byte.
    pub(crate) fn undefined_bytes(&mut self, slot: &Slot, access: &Access, races: &[Meeting]) -> Vec<UndefinedByte> {
        let warp = access.thread / 32;
        let byte = |origin: u32| Undefined { bits: 0xff, origin };
        let mut bytes: Vec<UndefinedByte> = (slot.offset..slot.offset + slot.len)
            .map(|at| self.region(slot).undefined.get(&at).copied().unwrap_or_default())
            .collect();
        for meeting in races {
            let stop = self.race(slot.space, access, &meeting.conflict);
            let origin = self.origin(warp, access.pc, *stop);
            let first = meeting.offset - slot.offset;
            bytes[first..first + meeting.len].fill(byte(origin));
        }
        for (at, undefined) in (slot.offset..).zip(&mut bytes) {
            if !self.region(slot).is_written(at, 1) {
                let stop = self.unwritten(slot.space, access);
                *undefined = byte(self.origin(warp, access.pc, *stop));
            }
        }
        if slot.len < access.len {
            let stop = self.out_of_bounds(slot.space, access);
            let origin = self.origin(warp, access.pc, *stop);
            bytes.resize(access.len, byte(origin));
        }
        bytes
    }

    /// What becomes of a write that nothing orders after other accesses. Weak reads get undefined bits when the launch is
    /// run again; bytes of shared memory that two threads write become undefined; anything else is a fault.
    pub(crate) fn meet(&mut self, slot: &Slot, access: &Access, meetings: &[Meeting]) -> Exec<()> {
        for Meeting { offset, len, conflict } in meetings {
            let stop = self.race(slot.space, access, conflict);
            let is_later = !self.is_last && !conflict.other_is_strong && self.found.0.len() < MOST_RACES;
            if !conflict.other_is_write && is_later {
                let write = Conflict { pc: access.pc, other_is_write: true, reader: Reader::Unknown, ..*conflict };
                self.found.0.extend((*offset..offset + len).map(|at| (Race::of(slot, at, conflict), write)));
            } else if conflict.other_is_write && slot.space == Space::Shared && !access.strong {
                let origin = self.origin(access.thread / 32, access.pc, *stop);
                let bytes = (*offset..offset + len).map(|at| (at, Undefined { bits: 0xff, origin }));
                self.region_mut(slot).undefined.extend(bytes);
            } else {
                return Err(stop);
            }
        }
        Ok(())
    }
}
