//! Bulk copies and tensor copies: an engine moves many bytes, and tells an mbarrier or the group of its thread.
//!
//! A copy is checked where it starts, as accesses that nobody is ordered after, and by the asynchronous proxy: bytes that
//! threads have written need a proxy fence before it. It moves its bytes when nothing else can run, when its thread waits
//! for its group, or earlier if the schedule says so.

use std::collections::VecDeque;

use crate::clock::{Agent, Contribution};
use crate::exec::access::{Access, RegionId, RegionSlot, Slot, resolve_spaces};
use crate::exec::atomic::combine;
use crate::exec::machine::Machine;
use crate::exec::memory::little_endian;
use crate::exec::tensor;
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, Fault, FaultKind, RaisedFault};
use crate::isa::{Scope, Space, Strong};
use crate::lanes::lanes;
use crate::memory::map as address_map;
use crate::op::{BulkCopy, BulkOp, BulkPlace, BulkReduce, MemRef};
use crate::shadow::ConflictRange;
use crate::tensor_map::{TENSOR_MAP_BYTES, TensorMap};
use crate::undefined::Undefined;

/// Bytes that addresses and sizes are multiples of.
const UNIT: u64 = 16;
/// Agents of a CTA; later copies share them.
const AGENTS: u32 = 2048;

/// Adjacent bytes of a copy.
#[derive(Clone, Debug)]
struct Move {
    /// `None` for bytes outside the tensor.
    from: Option<RegionSlot>,
    to: RegionSlot,
    /// Bytes of the source that race.
    races: Vec<ConflictRange>,
}

/// A copy that has started and not moved its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    warp: u32,
    /// The access of its source; the lane and the instruction are those that started it.
    read: Access,
    /// Who writes.
    writer: Agent,
    moves: Vec<Move>,
    /// What bytes outside the tensor become, for each element.
    fill: Vec<u8>,
    reduce: Option<BulkReduce>,
    /// What was ordered before its start.
    before: Contribution,
    /// The object that counts its bytes, and their number.
    mbarrier: Option<(RegionSlot, i64)>,
}

/// Copies to global memory that a thread has committed.
#[derive(Clone, Debug, Default)]
struct Group {
    copies: Vec<(Agent, Agent)>,
    /// The thread has waited for its sources to be read.
    is_read: bool,
}

/// The groups of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    open: Group,
    committed: VecDeque<Group>,
}

/// A part of a row of a box: where it goes, and where it comes from unless it is outside the tensor.
struct Part {
    shared: u64,
    global: Option<u64>,
    len: u64,
}

impl Machine<'_> {
    pub(crate) fn bulk(&mut self, warp: &Warp, exec: u32, op: &BulkOp) -> ExecResult<()> {
        for lane in lanes(exec) {
            let thread = warp.thread(lane);
            match op {
                BulkOp::Start(copy) => self.start_bulk(warp, lane, copy)?,
                BulkOp::Commit => {
                    let groups = self.cta.groups.entry(thread).or_default();
                    let group = std::mem::take(&mut groups.open);
                    groups.committed.push_back(group);
                }
                BulkOp::Wait { pending, reads_only } => self.wait_for_bulk(thread, *pending as usize, *reads_only)?,
                BulkOp::FenceProxy { shared, global } => self.cta.clocks.fence_proxy(thread, *shared, *global),
            }
        }
        Ok(())
    }

    fn wait_for_bulk(&mut self, thread: u32, pending: usize, reads_only: bool) -> ExecResult<()> {
        let groups = self.cta.groups.entry(thread).or_default();
        let waits = groups.committed.iter().filter(|group| !(reads_only && group.is_read)).count();
        let mut done = Vec::new();
        let mut left = waits.saturating_sub(pending);
        for group in groups.committed.iter_mut().filter(|group| !(reads_only && group.is_read)) {
            if left == 0 {
                break;
            }
            left -= 1;
            group.is_read = true;
            done.extend(group.copies.iter().copied());
        }
        if !reads_only {
            let kept = groups.committed.len().min(pending);
            let gone = groups.committed.len() - kept;
            groups.committed.drain(..gone);
        }
        for (reader, writer) in done {
            while let Some(at) = self.cta.engine.iter().position(|bulk| bulk.writer == writer) {
                let bulk = self.cta.engine.remove(at);
                self.perform_bulk(&bulk)?;
            }
            self.cta.clocks.learn_agent(thread, reader);
            if !reads_only {
                self.cta.clocks.learn_agent(thread, writer);
            }
        }
        Ok(())
    }

    /// Two agents, for what a copy reads and for what it writes.
    fn new_agents(&mut self) -> (Agent, Agent) {
        let threads = self.cta.alive.len() as u32 * 32 + tensor::AGENTS;
        // Those of copies that no thread has waited for are not used again.
        let waited = |groups: &Groups, thread: u32| {
            let all = groups.committed.iter().chain([&groups.open]).flat_map(|group| &group.copies);
            all.into_iter().all(|(reader, _)| reader.thread != thread)
        };
        let is_free = |next: u32| self.cta.groups.values().all(|groups| waited(groups, threads + next % AGENTS));
        let mut next = self.cta.next_agent;
        let tried = (0..AGENTS / 2).find(|at| is_free(next + 2 * at)).unwrap_or(0);
        next += 2 * tried;
        self.cta.next_agent = next + 2;
        let agent = |at: u32| Agent { thread: threads + at % AGENTS, number: at / AGENTS + 1, is_engine: true };
        (agent(next), agent(next + 1))
    }

    fn start_bulk(&mut self, warp: &Warp, lane: usize, copy: &BulkCopy) -> ExecResult<()> {
        let exec = 1u32 << lane;
        let mut operands = vec![copy.shared.base];
        operands.extend(copy.mbarrier.as_ref().map(|at| at.base));
        operands.extend(copy.ranks);
        match &copy.global {
            BulkPlace::Linear { at, bytes } | BulkPlace::Shared { at, bytes } => operands.extend([at.base, *bytes]),
            BulkPlace::Tensor { map, coordinates } => operands.extend([map.base].iter().chain(coordinates.iter())),
        }
        for operand in operands {
            self.must_be_defined(warp, operand, exec, "decide what a bulk copy moves")?;
        }
        let shared = self.shared_address(warp, lane, &copy.shared)?;
        let (parts, fill) = match &copy.global {
            BulkPlace::Linear { at, bytes } | BulkPlace::Shared { at, bytes } => {
                let global = resolve_spaces(&warp.regs, at, exec).0[lane];
                let len = warp.regs[*bytes as usize][lane] & 0xffff_ffff;
                let is_global = matches!(copy.global, BulkPlace::Linear { .. });
                let other = if is_global { "global address" } else { "address of the source" };
                for (what, value) in [("address in shared memory", shared), (other, global), ("size", len)] {
                    if !value.is_multiple_of(UNIT) {
                        let message =
                            format!("the {what} of a bulk copy is not a multiple of {UNIT} bytes: {value:#x}");
                        return Err(RaisedFault::new(FaultKind::Misaligned, exec, message));
                    }
                }
                (vec![Part { shared, global: Some(global), len }], Vec::new())
            }
            BulkPlace::Tensor { map, coordinates } => {
                let map = self.tensor_map(warp, lane, map)?;
                if !shared.is_multiple_of(128) {
                    let message = "the address in shared memory of a tensor copy is not a multiple of 128 bytes";
                    return Err(RaisedFault::new(FaultKind::Misaligned, exec, message));
                }
                let inside = address_map::split_rank(shared).1;
                let room = (self.cta.shared.bytes.len() as u64 + address_map::SHARED_START).saturating_sub(inside);
                if map.box_bytes() > room {
                    let message =
                        format!("the box has {} B, and shared memory {room} B from its address on", map.box_bytes());
                    return Err(RaisedFault::new(FaultKind::OutOfBounds, exec, message));
                }
                let at: Vec<i64> =
                    coordinates.iter().map(|reg| i64::from(warp.regs[*reg as usize][lane] as u32 as i32)).collect();
                if at.len() != map.rank() {
                    let message = format!("a copy of {} dimensions with a map of {}", at.len(), map.rank());
                    return Err(RaisedFault::new(FaultKind::BadDescriptor, exec, message));
                }
                let nan: &[u8] = match map.element_bytes {
                    2 => &[0xff, 0x7f],
                    4 => &[0xff, 0xff, 0xff, 0x7f],
                    _ => &[0xff; 8],
                };
                let size = map.element_bytes as usize;
                let fill = if map.fills_nan { nan[..size].to_vec() } else { vec![0; size] };
                (parts_of_box(&map, shared, &at), fill)
            }
        };
        let Some(ranks) = copy.ranks else {
            return self.queue_bulk(warp, lane, copy, None, &parts, fill);
        };
        let ranks = self.ranks(warp.regs[ranks as usize][lane], lane)?;
        for rank in lanes(ranks) {
            self.queue_bulk(warp, lane, copy, Some(rank as u32), &parts, fill.clone())?;
        }
        Ok(())
    }

    pub(crate) fn shared_address(&self, warp: &Warp, lane: usize, at: &MemRef) -> ExecResult<u64> {
        let (addresses, parts) = resolve_spaces(&warp.regs, at, 1 << lane);
        if parts.iter().any(|(space, lanes)| *lanes != 0 && *space != Space::Shared) {
            let message = "an address of a bulk copy is outside shared memory";
            return Err(RaisedFault::new(FaultKind::IllegalInstruction, 1 << lane, message));
        }
        Ok(addresses[lane])
    }

    /// The map at an address in parameters, constants or global memory.
    fn tensor_map(&mut self, warp: &Warp, lane: usize, at: &MemRef) -> ExecResult<TensorMap> {
        let (addresses, parts) = resolve_spaces(&warp.regs, at, 1 << lane);
        let space = parts.iter().find(|(_, lanes)| *lanes != 0).map_or(Space::Global, |(space, _)| *space);
        let access = Access { len: TENSOR_MAP_BYTES, ..self.bulk_access(warp, lane, addresses[lane], None) };
        let bytes = match self.place(space, &access)? {
            Slot::Param(bytes) => bytes.of(self.params).to_vec(),
            Slot::Const(bytes) => bytes.of(self.constants).to_vec(),
            Slot::Region(slot) => self.region(slot.id).bytes[slot.offset..slot.end()].to_vec(),
        };
        let map = <[u8; TENSOR_MAP_BYTES]>::try_from(bytes.as_slice()).ok();
        map.and_then(|bytes| TensorMap::decode(&bytes)).ok_or_else(|| {
            RaisedFault::new(FaultKind::BadDescriptor, 1 << lane, "the bytes at this address are not a tensor map")
        })
    }

    pub(crate) fn bulk_access(&self, warp: &Warp, lane: usize, address: u64, copy: Option<Agent>) -> Access {
        Access { copy, is_load: false, ..Access::new(warp, lane, address, 0, true) }
    }

    /// Checks the accesses of a copy, and hands it to the engine. With a rank, it is made to the same place in the shared
    /// memory of that CTA, and tells the mbarrier there.
    fn queue_bulk(
        &mut self,
        warp: &Warp,
        lane: usize,
        copy: &BulkCopy,
        rank: Option<u32>,
        parts: &[Part],
        fill: Vec<u8>,
    ) -> ExecResult<()> {
        let to_rank = |address: u64| match rank {
            None => address,
            Some(rank) => address_map::with_rank(address, rank),
        };
        let (reader, writer) = self.new_agents();
        let read = self.bulk_access(warp, lane, 0, Some(reader));
        let is_load = copy.mbarrier.is_some();
        let mut moves = Vec::new();
        let mut bytes = 0;
        for Part { shared, global, len } in parts {
            bytes += *len as i64;
            let shared = to_rank(*shared);
            let (source, target) = if is_load { (*global, Some(shared)) } else { (Some(shared), *global) };
            // A store writes nothing outside the tensor.
            let Some(target) = target else { continue };
            let (from_space, to_space) = match copy.global {
                BulkPlace::Shared { .. } => (Space::Shared, Space::Shared),
                BulkPlace::Linear { .. } | BulkPlace::Tensor { .. } if is_load => (Space::Global, Space::Shared),
                BulkPlace::Linear { .. } | BulkPlace::Tensor { .. } => (Space::Shared, Space::Global),
            };
            let (mut from, mut races) = (None, Vec::new());
            if let Some(address) = source {
                let access = Access { address, len: *len as usize, ..read };
                let slot = self.bulk_slot(from_space, &access)?;
                races = self.races_of(&slot, &access)?;
                self.must_be_fenced(from_space, &access, &races)?;
                from = Some(slot);
            }
            let access = Access { address: target, len: *len as usize, copy: Some(writer), is_read: false, ..read };
            let to = self.bulk_slot(to_space, &access)?;
            if let RegionId::Buffer(index) = to.id
                && self.memory.buffers[index].is_read_only
            {
                return Err(self.read_only(Space::Global, &access));
            }
            self.must_not_hit_mbarrier(&to, &access)?;
            // A reduction is a relaxed atomic operation in the scope of the device (PTX ISA, `cp.reduce.async.bulk`).
            let is_update = copy.reduce.is_some();
            let access = Access { strong: is_update.then_some(Strong::relaxed(Scope::Gpu)), is_update, ..access };
            let conflicts = self.check(&to, &access, Some(&[]))?.conflicts;
            self.must_be_fenced(to_space, &access, &conflicts)?;
            self.apply_conflicts(&to, &access, &conflicts)?;
            moves.push(Move { from, to, races });
        }
        let mbarrier = match &copy.mbarrier {
            None => None,
            Some(at) => {
                let address = to_rank(self.shared_address(warp, lane, at)?);
                Some((self.object(warp, lane, address, false)?, bytes))
            }
        };
        let (reduce, before) = (copy.reduce, self.cta.clocks.started(warp.thread(lane)));
        self.cta.engine.push(Bulk { warp: warp.id, read, writer, moves, fill, reduce, before, mbarrier });
        if mbarrier.is_none() {
            self.cta.groups.entry(warp.thread(lane)).or_default().open.copies.push((reader, writer));
        }
        Ok(())
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

    /// Performs a copy before its thread waits for it: the oldest one, or with a seed any. Returns whether there was one.
    pub(crate) fn move_some_bulk(&mut self) -> Result<bool, Box<Fault>> {
        if self.cta.engine.is_empty() {
            return Ok(false);
        }
        let count = self.cta.engine.len() as u32;
        let at = self.random.as_mut().map_or(0, |random| random.below(count));
        let bulk = self.cta.engine.remove(at as usize);
        match self.perform_bulk(&bulk) {
            Ok(()) => Ok(true),
            Err(stop) => Err(self.fault(*stop, bulk.read.pc, bulk.warp)),
        }
    }

    fn perform_bulk(&mut self, bulk: &Bulk) -> ExecResult<()> {
        self.effects += 1;
        for part in &bulk.moves {
            self.move_part(bulk, part)?;
        }
        if let Some((slot, bytes)) = &bulk.mbarrier {
            let known = self.cta.clocks.of_agents([bulk.read.copy, Some(bulk.writer)].into_iter().flatten());
            let completed = self.bytes_arrive(bulk.read.lane, slot, *bytes, &known, &bulk.before);
            return completed.map_err(|stop| Box::new(RaisedFault { pc: Some(bulk.read.pc), ..*stop }));
        }
        Ok(())
    }

    fn move_part(&mut self, bulk: &Bulk, part: &Move) -> ExecResult<()> {
        let mut bytes: Vec<u8> = bulk.fill.iter().copied().cycle().take(part.to.len).collect();
        bytes.resize(part.to.len, 0);
        let mut undefined: Vec<Undefined> = Vec::new();
        if let Some(from) = &part.from {
            let region = self.region(from.id);
            bytes.copy_from_slice(&region.bytes[from.offset..from.end()]);
            let is_defined = region.is_written(from.offset, from.len)
                && region.undefined.range(from.offset..from.end()).next().is_none()
                && part.races.is_empty();
            if !is_defined {
                let access = Access { address: self.address_of(from), len: from.len, ..bulk.read };
                undefined = self.undefined_bytes(from, &access, &part.races);
            }
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
                return Err(self.unwritten(Space::Global, &target));
            }
            let old = &region.bytes[part.to.offset..part.to.end()];
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

    /// The address of the first byte of a slot.
    fn address_of(&self, slot: &RegionSlot) -> u64 {
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
        let is_own = |bulk: &&Bulk| bulk.mbarrier.as_ref().is_some_and(|(slot, _)| slot.id == RegionId::Shared);
        let load = self.cta.engine.iter().find(is_own);
        let found = match (load, thread) {
            (Some(bulk), _) => {
                let bar = bulk.mbarrier.as_ref().map_or(0, |(slot, _)| slot.offset);
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

/// The rows of a box at coordinates, in parts that are adjacent in both memories.
fn parts_of_box(map: &TensorMap, shared: u64, at: &[i64]) -> Vec<Part> {
    let row_bytes = map.copied(0) * map.element_bytes;
    let rows: u64 = (1..map.rank()).map(|dim| map.copied(dim)).product();
    let mut parts = Vec::new();
    for row in 0..rows {
        let (mut rest, mut address, mut is_inside) = (row, map.address, true);
        for (dim, start) in at.iter().enumerate().skip(1) {
            let step = rest % map.copied(dim);
            rest /= map.copied(dim);
            let index = start + (step * map.element_strides[dim]) as i64;
            is_inside &= (0..map.dims[dim] as i64).contains(&index);
            address = address.wrapping_add((index as u64).wrapping_mul(map.strides[dim - 1]));
        }
        // The elements of the row that are inside the tensor.
        let (first, last) = (at[0], at[0] + map.box_dims[0] as i64);
        let inside = if is_inside { first.max(0)..last.min(map.dims[0] as i64) } else { 0..0 };
        let bytes_before = |element: i64| ((element - first).clamp(0, last - first) as u64) * map.element_bytes;
        let (low, high) = if inside.is_empty() {
            (row_bytes, row_bytes)
        } else {
            (bytes_before(inside.start), bytes_before(inside.end))
        };
        for (start, end, is_copied) in [(0, low, false), (low, high, true), (high, row_bytes, false)] {
            let mut place = start;
            while place < end {
                let to = shared + row * row_bytes + place;
                // A swizzle permutes units of 16 bytes.
                let stop = if map.swizzle.span().is_some() { end.min(place + UNIT - to % UNIT) } else { end };
                let offset = (first as u64).wrapping_mul(map.element_bytes).wrapping_add(place);
                let global = is_copied.then(|| address.wrapping_add(offset));
                parts.push(Part { shared: map.swizzle.apply(to), global, len: stop - place });
                place = stop;
            }
        }
    }
    parts
}
