//! The engine that moves the bytes of copies.

use crate::exec::access::{Access, RegionId, RegionSlot};
use crate::exec::atomic::{combine, undefined_result};
use crate::exec::bulk::boxes::permute;
use crate::exec::bulk::cancel::RESPONSE_BYTES;
use crate::exec::bulk::{Bulk, BulkReduce, Groups, Move, Source};
use crate::exec::machine::Machine;
use crate::exec::memory::little_endian;
use crate::fault::{ExecResult, Fault, FaultKind, RaisedFault};
use crate::isa::Space;
use crate::memory::map as address_map;
use crate::undefined::Undefined;

impl Machine<'_> {
    /// Performs a copy before its thread waits for it: the oldest one, or with a seed any. Returns whether there was one.
    pub(crate) fn move_some_bulk(&mut self) -> Result<bool, Box<Fault>> {
        if self.cta.engine.is_empty() {
            return Ok(false);
        }
        let count = self.cta.engine.len() as u32;
        let at = self.random.as_mut().map_or(0, |random| random.below(count));
        self.complete_bulk(at as usize)?;
        Ok(true)
    }

    /// Performs the copy at an index.
    pub(crate) fn complete_bulk(&mut self, at: usize) -> Result<(), Box<Fault>> {
        let bulk = self.cta.engine.remove(at);
        self.perform_bulk(&bulk).map_err(|stop| self.fault(*stop, bulk.read.pc, bulk.warp))
    }

    pub(super) fn perform_bulk(&mut self, bulk: &Bulk) -> ExecResult<()> {
        self.effects += 1;
        self.record_end(bulk.writer);
        let cancels = bulk.moves.iter().any(|part| matches!(part.from, Source::Response));
        let response = if cancels { self.cancel_cluster(bulk) } else { [0; RESPONSE_BYTES] };
        for part in &bulk.moves {
            self.move_part(bulk, part, &response)?;
        }
        for (slot, bytes) in &bulk.mbarriers {
            let known = self.cta.clocks.of_agents([bulk.read.copy, Some(bulk.writer)].into_iter().flatten());
            let completed = self.bytes_arrive(bulk.read.lane, slot, *bytes, &known, &bulk.before);
            completed.map_err(|stop| Box::new(RaisedFault { pc: Some(bulk.read.pc), ..*stop }))?;
        }
        Ok(())
    }

    fn move_part(&mut self, bulk: &Bulk, part: &Move, response: &[u8; RESPONSE_BYTES]) -> ExecResult<()> {
        let (mut bytes, mut is_permuted) = (Vec::with_capacity(part.to.len), false);
        let mut undefined: Vec<Undefined> = Vec::new();
        match &part.from {
            Source::Response => bytes.extend(response),
            Source::Fill => bytes.extend(bulk.fill.iter().cycle().take(part.to.len)),
            Source::Nothing => {
                self.region_mut(part.to.id).forget(part.to.offset, part.to.len);
                return Ok(());
            }
            Source::Bytes(from) => {
                let region = self.region(from.id);
                let is_defined = region.is_written(from.offset, from.len)
                    && region.undefined.range(from.offset..from.end()).next().is_none()
                    && part.races.is_empty();
                let source = region.bytes.read(from.offset..from.end());
                match part.permuted.filter(|_| is_defined) {
                    Some(swizzle) => bytes = permute(swizzle, self.shared_start(part), &source),
                    None => bytes.extend_from_slice(&source),
                }
                is_permuted = is_defined;
                if !is_defined {
                    let access = Access { address: self.address_of(from), len: from.len, ..bulk.read };
                    undefined = self.undefined_bytes(from, &access, &part.races);
                }
            }
        }
        if let Some(swizzle) = part.permuted.filter(|_| !is_permuted) {
            let start = self.shared_start(part);
            bytes = permute(swizzle, start, &bytes);
            undefined = if undefined.is_empty() { undefined } else { permute(swizzle, start, &undefined) };
        }
        if let Some(reduce) = bulk.reduce {
            undefined = self.undefined_sums(part, &undefined, reduce);
        }
        let marked = undefined.iter().find(|byte| byte.is_some());
        let is_compared = self.options.observed.is_none() && matches!(part.to.id, RegionId::Buffer(_));
        if let Some(byte) = marked.filter(|_| is_compared) {
            let place = self.address_of(&part.to);
            let (name, offset) = self.location_name(Space::Global, &Access { address: place, ..bulk.read });
            let effect = format!("are stored to `{name}` + {offset}");
            return Err(self.undefined_use(byte.origin, bulk.read.pc, &effect));
        }
        if let Some((f, size)) = bulk.reduce {
            let target = Access { address: self.address_of(&part.to), len: part.to.len, ..bulk.read };
            let region = self.region(part.to.id);
            if !region.is_written(part.to.offset, part.to.len) {
                return Err(self.unwritten(part.to.id.space(), &target));
            }
            let old = region.bytes.read(part.to.offset..part.to.end());
            for (new, old) in bytes.chunks_mut(size as usize).zip(old.chunks(size as usize)) {
                let sum = combine(f, little_endian(old), little_endian(new), 0, size * 8).to_le_bytes();
                new.copy_from_slice(&sum[..size as usize]);
            }
        }
        let region = self.region_mut(part.to.id);
        region.store(part.to.offset, &bytes);
        let marked = undefined.iter().enumerate().filter(|(_, byte)| byte.is_some());
        region.undefined.extend(marked.map(|(at, byte)| (part.to.offset + at, *byte)));
        Ok(())
    }

    /// The undefined bits of the elements that are reduced, from those of the source: for each byte, or nothing if there are none.
    fn undefined_sums(&self, part: &Move, source: &[Undefined], (f, size): BulkReduce) -> Vec<Undefined> {
        let held = &self.region(part.to.id).undefined;
        let (start, size) = (part.to.offset, size as usize);
        if source.is_empty() && held.range(start..part.to.end()).next().is_none() {
            return Vec::new();
        }
        let of_byte = |at: usize| {
            let own = held.get(&(start + at)).copied().unwrap_or_default();
            own.or(source.get(at).copied().unwrap_or_default())
        };
        let mut found = Vec::with_capacity(part.to.len);
        for first in (0..part.to.len).step_by(size) {
            let place = |all: Undefined, at: usize| {
                let byte = of_byte(first + at);
                all.or(byte.with(byte.bits << (8 * at)))
            };
            let bytes = 0..size.min(part.to.len - first);
            let operands = bytes.clone().fold(Undefined::default(), place);
            let result = undefined_result(f, operands, 8 * size as u32);
            found.extend(bytes.map(|at| result.with(result.bits >> (8 * at) & 0xff)));
        }
        found
    }

    /// Where a part begins in shared memory.
    fn shared_start(&self, part: &Move) -> u64 {
        let shared = [Some(&part.to), part.from.slot()].into_iter().flatten().find(|slot| !slot.is_global());
        shared.map_or(0, |slot| self.address_of(slot))
    }

    /// The address of the first byte of a slot.
    pub(super) fn address_of(&self, slot: &RegionSlot) -> u64 {
        match slot.id {
            RegionId::Shared => address_map::shared_start(self.cta.rank) + slot.offset as u64,
            RegionId::Peer(rank) => address_map::shared_start(rank) + slot.offset as u64,
            RegionId::Local => slot.offset as u64,
            RegionId::Buffer(index) => self.memory.buffers[index].base + slot.offset as u64,
        }
    }

    /// At the end of the CTA: copies to global memory are performed; those that still read or write its shared memory must
    /// have been waited for.
    pub(crate) fn end_bulk(&mut self) -> Result<(), Box<Fault>> {
        let unread = |groups: &Groups| {
            let all = groups.committed.iter().chain([&groups.open]);
            all.filter(|group| !group.is_read).any(|group| !group.copies.is_empty())
        };
        let thread = self.cta.groups.iter().find(|(_, groups)| unread(groups)).map(|(thread, _)| *thread);
        // What is written to other CTAs arrives without this one.
        let is_own = |bulk: &&Bulk| bulk.mbarriers.iter().any(|(slot, _)| slot.id == RegionId::Shared);
        let load = self.cta.engine.iter().find(is_own);
        let found = match (load, thread) {
            (Some(bulk), _) => {
                let bar = bulk.mbarriers.first().map_or(0, |(slot, _)| slot.offset);
                let name = self.shared_name(bar);
                let missing = format!("no thread has waited for the phase of the mbarrier at {name} that it completes");
                Some((bulk.warp, bulk.read.lane, bulk.read.pc, "writes", missing))
            }
            (None, Some(thread)) => {
                let pc = self.cta.engine.iter().find(|bulk| bulk.read.thread == thread).map_or(0, |bulk| bulk.read.pc);
                let missing = "its thread has not waited for its group".to_string();
                Some((thread / 32, thread as usize % 32, pc, "reads", missing))
            }
            (None, None) => None,
        };
        if let Some((warp, lane, pc, does, missing)) = found {
            let message = format!("the CTA exits while a bulk copy still {does} its shared memory; {missing}");
            return Err(self.fault(*RaisedFault::new(FaultKind::BarrierMisuse, 1 << lane, message), pc, warp));
        }
        while self.move_some_bulk()? {}
        Ok(())
    }
}
