//! Checks the accesses of copies where they start.

use crate::clock::Agent;
use crate::exec::access::{Access, RegionId, RegionSlot, Slot, by_region};
use crate::exec::bulk::boxes::{Outside, Part};
use crate::exec::bulk::start::Route;
use crate::exec::bulk::{Move, Source};
use crate::exec::machine::Machine;
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::isa::{Scope, Space, Strong};
use crate::shadow::{CheckResult, ConflictRange};

impl Machine<'_> {
    /// Checks the accesses of parts, each with its address in shared memory. A part of which nothing is moved has no move.
    pub(super) fn checked_moves(
        &mut self,
        (read, writer): (&Access, Agent),
        route: &Route,
        parts: &[(&Part, u64)],
    ) -> ExecResult<Vec<Move>> {
        let mut moves = Vec::with_capacity(parts.len());
        for (part, shared) in parts {
            moves.extend(self.placed_move((read, writer), route, part, *shared)?);
        }
        let sources = moves.iter().filter_map(|part: &Move| part.from.slot().copied()).collect::<Vec<_>>();
        for (slot, races) in self.races_of_slots(&sources, read)? {
            let access = Access { address: self.address_of(&slot), len: slot.len, ..*read };
            self.must_be_fenced(route.from, &access, &races)?;
            let of_slot = moves.iter_mut().filter(|part| part.from.slot() == Some(&slot));
            of_slot.for_each(|part| part.races.clone_from(&races));
        }
        // A reduction is a relaxed atomic operation (PTX ISA, `cp.reduce.async.bulk`).
        let scope = if route.to == Space::Global { Scope::Gpu } else { Scope::Cluster };
        let strong = route.is_update.then_some(Strong::relaxed(scope));
        let write = Access { copy: Some(writer), is_read: false, strong, is_update: route.is_update, ..*read };
        for (id, ranges) in by_region(moves.iter().map(|part| &part.to)) {
            let CheckResult { conflicts, overwrites_read, .. } = self.check_ranges(id, &ranges, &write, Some(&[]))?;
            if overwrites_read {
                self.stats.note("war_proxy", write.pc);
            }
            if conflicts.is_empty() {
                continue;
            }
            for to in moves.iter().map(|part| part.to).filter(|to| to.id == id) {
                let conflicts = within(&conflicts, &to);
                let access = Access { address: self.address_of(&to), len: to.len, ..write };
                self.must_be_fenced(route.to, &access, &conflicts)?;
                self.apply_conflicts(&to, &access, &conflicts)?;
            }
        }
        Ok(moves)
    }

    /// Records reads of slots, and returns those that race.
    fn races_of_slots(
        &mut self,
        slots: &[RegionSlot],
        read: &Access,
    ) -> ExecResult<Vec<(RegionSlot, Vec<ConflictRange>)>> {
        let mut found = Vec::new();
        for (id, ranges) in by_region(slots.iter()) {
            let races = self.races_of_ranges(id, &ranges, read)?;
            if !races.is_empty() {
                let of_slot = |slot: &RegionSlot| (*slot, within(&races, slot));
                let slots = slots.iter().filter(|slot| slot.id == id);
                found.extend(slots.map(of_slot).filter(|(_, races)| !races.is_empty()));
            }
        }
        Ok(found)
    }

    /// Where a part, which is at `shared` in shared memory, is moved from and to; `None` if nothing is moved.
    fn placed_move(
        &mut self,
        (read, writer): (&Access, Agent),
        route: &Route,
        part: &Part,
        shared: u64,
    ) -> ExecResult<Option<Move>> {
        let Part { outside, len, permuted, .. } = part;
        let Route { from: from_space, to: to_space, .. } = *route;
        let is_load = to_space == Space::Shared;
        let (source, target) = match outside {
            Outside::At(global) if is_load => (Some(*global), shared),
            Outside::At(global) => (Some(shared), *global),
            Outside::Fill | Outside::Padding | Outside::Response if is_load => (None, shared),
            // A store writes nothing outside the tensor.
            Outside::Fill | Outside::Padding | Outside::Response => return Ok(None),
        };
        let from = match source {
            Some(address) => {
                Source::Bytes(self.bulk_slot(from_space, &Access { address, len: *len as usize, ..*read })?)
            }
            None if *outside == Outside::Padding => Source::Nothing,
            None if *outside == Outside::Response => Source::Response,
            None => Source::Fill,
        };
        let access = Access { address: target, len: *len as usize, copy: Some(writer), is_read: false, ..*read };
        let to = self.bulk_slot(to_space, &access)?;
        if let RegionId::Buffer(index) = to.id
            && self.memory.buffers[index].is_read_only
        {
            return Err(self.read_only(Space::Global, &access));
        }
        self.must_not_hit_mbarrier(&to, &access)?;
        Ok(Some(Move { from, to, races: Vec::new(), permuted: *permuted }))
    }

    fn bulk_slot(&mut self, space: Space, access: &Access) -> ExecResult<RegionSlot> {
        match self.place(space, access)? {
            Slot::Region(slot) => Ok(slot),
            Slot::Param(_) | Slot::Const(_) => {
                let message = "a bulk copy of read-only memory";
                Err(RaisedFault::new(FaultKind::IllegalInstruction, 1 << access.lane, message))
            }
        }
    }

    /// A fault if one of these conflicts is a write by a thread without a proxy fence.
    pub(crate) fn must_be_fenced(&self, space: Space, access: &Access, conflicts: &[ConflictRange]) -> ExecResult<()> {
        match conflicts.iter().find(|range| range.conflict.needs_fence) {
            None => Ok(()),
            Some(range) => Err(self.missing_fence(space, access, &range.conflict)),
        }
    }
}

/// The conflicts about bytes of a slot.
fn within(conflicts: &[ConflictRange], slot: &RegionSlot) -> Vec<ConflictRange> {
    conflicts.iter().filter_map(|range| range.within(&(slot.offset..slot.end()))).collect()
}
