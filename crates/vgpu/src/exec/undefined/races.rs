//! Reads that race with a write that is executed later in the run.
//!
//! When the write is executed, the value that was read has already propagated. So the run continues, and is then
//! repeated with the races that it found: this time the read returns undefined bits. The order of execution is the same
//! in every run, up to the first such bit that has an effect, where the run ends.

use std::ops::Range;

use crate::clock::is_copy;
use crate::exec::access::{Access, RegionId, RegionSlot};
use crate::exec::machine::Machine;
use crate::exec::order::agent;
use crate::exec::undefined::known_races::{Place, Race};
use crate::fault::ExecResult;
use crate::shadow::{Conflict, ConflictRange};
use crate::undefined::Undefined;

/// Maximum number of races that are deferred to the next run.
const MAX_DEFERRED_RACES: usize = 1 << 20;

impl Machine<'_> {
    /// Records a read in the shadow memory, and returns the bytes that race with a write: an earlier write, or a later
    /// one that a previous run found.
    pub(crate) fn races_of(&mut self, slot: &RegionSlot, access: &Access) -> ExecResult<Vec<ConflictRange>> {
        if self.known_races.is_empty() {
            return Ok(self.check(slot, access, None)?.conflicts);
        }
        let reader = agent(&self.cta, access);
        let mut conflicts = Vec::new();
        // A byte that is known to race leaves no record, so that other readers of it are found.
        for offset in slot.offset..slot.end() {
            match self.known_races.of(self.place_of(slot), offset, access, reader) {
                Some(conflict) => conflicts.push(ConflictRange { offset, len: 1, conflict }),
                None => {
                    let byte = RegionSlot { offset, len: 1, ..*slot };
                    conflicts.extend(self.check(&byte, access, None)?.conflicts);
                }
            }
        }
        Ok(conflicts)
    }

    /// As [`Machine::races_of`], for a read of several ranges of a region.
    pub(crate) fn races_of_ranges(
        &mut self,
        id: RegionId,
        ranges: &[Range<usize>],
        access: &Access,
    ) -> ExecResult<Vec<ConflictRange>> {
        if self.known_races.is_empty() {
            return Ok(self.check_ranges(id, ranges, access, None)?.conflicts);
        }
        let mut conflicts = Vec::new();
        for range in ranges {
            let slot = RegionSlot { id, offset: range.start, len: range.len() };
            conflicts.extend(self.races_of(&slot, access)?);
        }
        Ok(conflicts)
    }

    /// The memory of a slot, whoever accesses it.
    fn place_of(&self, slot: &RegionSlot) -> Place {
        match slot.id {
            RegionId::Buffer(index) => Place::Buffer(index),
            RegionId::Shared | RegionId::Local | RegionId::Peer(_) => Place::Shared(self.owner(slot.id).number),
        }
    }

    /// The undefined bits of each byte of a load.
    pub(crate) fn undefined_bytes(
        &mut self,
        slot: &RegionSlot,
        access: &Access,
        races: &[ConflictRange],
    ) -> Vec<Undefined> {
        if self.takes_unwritten_bytes {
            return vec![Undefined::default(); access.len];
        }
        let warp = access.thread / 32;
        let byte = |origin: u32| Undefined::new(0xff, origin);
        let mut bytes: Vec<Undefined> = (slot.offset..slot.end())
            .map(|at| self.region(slot.id).undefined.get(&at).copied().unwrap_or_default())
            .collect();
        for range in races {
            let stop = self.race(slot.id.space(), access, &range.conflict);
            let origin = self.origins.number(warp, access.pc, *stop);
            let first = range.offset - slot.offset;
            bytes[first..first + range.len].fill(byte(origin));
        }
        // A byte that a pending copy will write, or a thread later, is unwritten because it races.
        let is_late = |at: usize| {
            let late = |range: &&ConflictRange| is_copy(range.conflict.who.cta) || range.conflict.other_is_later;
            races.iter().filter(late).any(|range| (range.offset..range.offset + range.len).contains(&at))
        };
        for (at, undefined) in (slot.offset..).zip(&mut bytes) {
            if !self.region(slot.id).is_written(at, 1) && !is_late(at) {
                let stop = self.unwritten(slot.id.space(), access);
                *undefined = byte(self.origins.number(warp, access.pc, *stop));
            }
        }
        if slot.len < access.len {
            let stop = self.out_of_bounds(slot.id.space(), access);
            let origin = self.origins.number(warp, access.pc, *stop);
            bytes.resize(access.len, byte(origin));
        }
        bytes
    }

    /// Handles a write that is not ordered after other accesses. Weak reads return undefined bits when the launch is
    /// run again; bytes of shared memory that two threads write become undefined; anything else is a fault.
    pub(crate) fn apply_conflicts(
        &mut self,
        slot: &RegionSlot,
        access: &Access,
        conflicts: &[ConflictRange],
    ) -> ExecResult<()> {
        for ConflictRange { offset, len, conflict } in conflicts {
            let stop = self.race(slot.id.space(), access, conflict);
            // Bytes that a copy writes later do not become undefined now.
            let is_now = access.strong.is_none() && access.copy.is_none() && !is_copy(conflict.who.cta);
            let is_later = !self.is_last
                && !conflict.other_is_strong
                && !self.is_of_earlier_launch(conflict)
                && self.new_races.len() < MAX_DEFERRED_RACES;
            if !conflict.other_is_write && is_later {
                let write = Conflict {
                    pc: access.pc,
                    other_is_write: true,
                    other_is_strong: access.strong.is_some(),
                    other_is_later: true,
                    who: agent(&self.cta, access),
                    ..*conflict
                };
                let place = self.place_of(slot);
                (*offset..offset + len).for_each(|at| self.new_races.insert(Race::of(place, at, conflict), write));
            } else if conflict.other_is_write && matches!(slot.id, RegionId::Shared | RegionId::Peer(_)) && is_now {
                let origin = self.origins.number(access.thread / 32, access.pc, *stop);
                let bytes = (*offset..offset + len).map(|at| (at, Undefined::new(0xff, origin)));
                self.region_mut(slot.id).undefined.extend(bytes);
            } else {
                return Err(stop);
            }
        }
        Ok(())
    }
}
