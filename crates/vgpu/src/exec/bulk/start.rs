//! Starts copies, and checks their accesses.

use crate::clock::Agent;
use crate::decode::atomic_of_element;
use crate::exec::access::{Access, Slot, resolve_spaces};
use crate::exec::bulk::Bulk;
use crate::exec::bulk::boxes::{Outside, Part, parts_of};
use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::isa::Space;
use crate::lanes::lanes;
use crate::memory::map as address_map;
use crate::op::{BulkCopy, BulkPlace, BulkReduce, MemRef, Reduction, Reg, TensorMode};
use crate::tensor_map::{MapSwizzle, TENSOR_MAP_BYTES, TensorMap};
use crate::timeline::Engine;

/// Bytes that addresses and sizes are multiples of.
const UNIT: u64 = 16;

/// The memories that bytes are moved between.
pub(super) struct Route {
    pub(super) from: Space,
    pub(super) to: Space,
    /// They are combined with those that are there.
    pub(super) is_update: bool,
}

impl Route {
    /// To shared memory, of bytes that are in no memory.
    pub(super) const TO_SHARED: Route = Route { from: Space::Global, to: Space::Shared, is_update: false };

    fn of(copy: &BulkCopy) -> Route {
        let (from, to) = match copy.global {
            BulkPlace::Shared { .. } => (Space::Shared, Space::Shared),
            BulkPlace::Linear { .. } | BulkPlace::Tensor { .. } if copy.mbarrier.is_some() => {
                (Space::Global, Space::Shared)
            }
            BulkPlace::Linear { .. } | BulkPlace::Tensor { .. } => (Space::Shared, Space::Global),
        };
        Route { from, to, is_update: copy.reduce.is_some() }
    }
}

/// The bytes that a copy moves.
struct Extent {
    parts: Vec<Part>,
    /// What bytes outside the tensor become, for each element.
    fill: Vec<u8>,
    reduce: Option<BulkReduce>,
}

impl Machine<'_> {
    pub(super) fn start_bulk(&mut self, warp: &Warp, lane: usize, copy: &BulkCopy) -> ExecResult<()> {
        let exec = 1u32 << lane;
        let mut operands = vec![copy.shared.base];
        operands.extend(copy.mbarrier.as_ref().map(|at| at.base));
        operands.extend([copy.ranks, copy.byte_mask].into_iter().flatten());
        match &copy.global {
            BulkPlace::Linear { at, bytes } | BulkPlace::Shared { at, bytes } => operands.extend([at.base, *bytes]),
            BulkPlace::Tensor { map, coordinates, offsets, .. } => {
                operands.extend([map.base].iter().chain(coordinates.iter()).chain(offsets.iter()));
            }
        }
        for operand in operands {
            self.must_be_defined(warp, operand, exec, "decide what a bulk copy moves")?;
        }
        let shared = self.shared_address(warp, lane, &copy.shared)?;
        let extent = match &copy.global {
            BulkPlace::Linear { at, bytes } | BulkPlace::Shared { at, bytes } => {
                self.linear_extent(warp, lane, copy, (at, *bytes), shared)?
            }
            BulkPlace::Tensor { .. } => self.tensor_extent(warp, lane, copy, shared)?,
        };
        if !matches!(copy.global, BulkPlace::Shared { .. }) {
            self.count_bulk(&extent);
        }
        let Some(ranks) = copy.ranks else {
            return self.queue_bulk(warp, lane, copy, None, &extent);
        };
        let ranks = self.ranks(warp.regs[ranks as usize][lane], lane)?;
        for rank in lanes(ranks) {
            self.queue_bulk(warp, lane, copy, Some(rank as u32), &extent)?;
        }
        Ok(())
    }

    /// Counts what is moved from or to global memory, once for all CTAs that get it.
    fn count_bulk(&mut self, extent: &Extent) {
        let range = |part: &Part| match part.outside {
            Outside::At(address) => Some(address..address + part.len),
            _ => None,
        };
        self.stats.bulk.add_copy(extent.parts.iter().filter_map(range).collect());
    }

    fn linear_extent(
        &self,
        warp: &Warp,
        lane: usize,
        copy: &BulkCopy,
        (at, bytes): (&MemRef, Reg),
        shared: u64,
    ) -> ExecResult<Extent> {
        let exec = 1u32 << lane;
        let global = resolve_spaces(&warp.regs, at, exec).0[lane];
        let len = warp.regs[bytes as usize][lane] & 0xffff_ffff;
        let is_global = matches!(copy.global, BulkPlace::Linear { .. });
        let other = if is_global { "global address" } else { "address of the source" };
        for (what, value) in [("address in shared memory", shared), (other, global), ("size", len)] {
            if !value.is_multiple_of(UNIT) {
                let text = if what == "size" { value.to_string() } else { format!("{value:#x}") };
                let message = format!("the {what} of a bulk copy is not a multiple of {UNIT} bytes: {text}");
                return Err(RaisedFault::new(FaultKind::Misaligned, exec, message));
            }
        }
        let reduce = match &copy.reduce {
            Some(Reduction::Typed(reduce)) => Some(*reduce),
            Some(Reduction::OfMap(_)) | None => None,
        };
        let part =
            |(shared, global, len): (u64, u64, u64)| Part { shared, outside: Outside::At(global), len, permuted: None };
        let parts = match copy.byte_mask {
            None => vec![part((shared, global, len))],
            Some(mask) => {
                let mask = warp.regs[mask as usize][lane];
                let is_copied = |byte: &u64| mask >> (byte % UNIT) & 1 == 1;
                (0..len).filter(is_copied).map(|byte| part((shared + byte, global + byte, 1))).collect()
            }
        };
        Ok(Extent { parts, fill: Vec::new(), reduce })
    }

    fn tensor_extent(&mut self, warp: &Warp, lane: usize, copy: &BulkCopy, shared: u64) -> ExecResult<Extent> {
        let exec = 1u32 << lane;
        let BulkPlace::Tensor { map, coordinates, mode, offsets } = &copy.global else {
            return Ok(Extent { parts: Vec::new(), fill: Vec::new(), reduce: None });
        };
        let map = self.tensor_map(warp, lane, map)?;
        let wrong = |message: String| Err(RaisedFault::new(FaultKind::BadDescriptor, exec, message));
        if !shared.is_multiple_of(128) {
            let message = "the address in shared memory of a tensor copy is not a multiple of 128 bytes";
            return Err(RaisedFault::new(FaultKind::Misaligned, exec, message));
        }
        if copy.mbarrier.is_none() && (map.element.is_padded() || map.swizzle == MapSwizzle::B128Atom32Flip8) {
            let text = match map.element.is_padded() {
                true => "stores of elements that are padded in shared memory are not supported",
                false => "the swizzle `128B_atom_32B_flip_8B` is for loads only (PTX ISA, section 5.5.7)",
            };
            return wrong(text.to_string());
        }
        let rows = map.rows() * if *mode == TensorMode::Rows { 4 } else { 1 };
        let bytes = rows.saturating_sub(1) * map.row_pitch() + map.row_bytes();
        let inside = address_map::split_rank(shared).1;
        let room = (self.cta.shared.bytes.len() as u64 + address_map::SHARED_START).saturating_sub(inside);
        if bytes > room {
            let message = format!(
                "the copy takes {bytes} B of shared memory, which has {room} B from its address on (this CTA has {} B of shared memory)",
                self.cta.shared.bytes.len()
            );
            return Err(RaisedFault::new(FaultKind::OutOfBounds, exec, message));
        }
        let value = |reg: &Reg| warp.regs[*reg as usize][lane];
        let at: Vec<i64> = coordinates.iter().map(|reg| i64::from(value(reg) as u32 as i32)).collect();
        let offsets: Vec<i64> = offsets.iter().map(|reg| (value(reg) & 0xffff) as i64).collect();
        // An H200 loads what lies before the first element of a row as zeros, and does not store there.
        if let (None, TensorMode::Tile, Some(first @ ..=-1)) = (&copy.mbarrier, mode, at.first()) {
            return wrong(format!("the first coordinate of a store is {first}; it is not negative"));
        }
        let parts = match parts_of(&map, mode, shared, &at, &offsets) {
            Ok(parts) => parts,
            Err(message) => return wrong(message),
        };
        let reduce = match &copy.reduce {
            Some(Reduction::OfMap(name)) => match atomic_of_element(name, map.element) {
                Some(reduce) => Some(reduce),
                None => return wrong(format!("there is no reduction `{name}` of elements of {:?}", map.element)),
            },
            Some(Reduction::Typed(_)) | None => None,
        };
        Ok(Extent { parts, fill: map.element.fill(map.fills_nan), reduce })
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
        if !matches!(space, Space::Param | Space::Const | Space::Global | Space::Generic) {
            let place = space.as_str();
            let message =
                format!("a tensor map is in parameters, constants or global memory, and this one in {place} memory");
            return Err(RaisedFault::new(FaultKind::BadDescriptor, 1 << lane, message));
        }
        let access =
            Access { len: TENSOR_MAP_BYTES, uses_map: true, ..self.bulk_access(warp, lane, addresses[lane], None) };
        if !access.address.is_multiple_of(64) {
            let message = "the address of a tensor map is not a multiple of 64 bytes";
            return Err(RaisedFault::new(FaultKind::Misaligned, 1 << lane, message));
        }
        let mut bytes = [0; TENSOR_MAP_BYTES];
        match self.place(space, &access)? {
            Slot::Param(slot) => bytes.copy_from_slice(slot.of(self.params)),
            Slot::Const(slot) => bytes.copy_from_slice(slot.of(self.constants)),
            Slot::Region(slot) => {
                let races = self.races_of(&slot, &access)?;
                if let Some(range) = races.iter().find(|range| range.conflict.needs_fence) {
                    return Err(self.unfenced_map(space, &access, &range.conflict));
                }
                if let Some(byte) = self.undefined_bytes(&slot, &access, &races).iter().find(|byte| byte.is_some()) {
                    return Err(self.undefined_use(byte.origin, warp.pc, "are part of a tensor map"));
                }
                bytes.copy_from_slice(&self.region(slot.id).bytes.read(slot.offset..slot.end()));
            }
        }
        TensorMap::decode(&bytes).map_err(|message| RaisedFault::new(FaultKind::BadDescriptor, 1 << lane, message))
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
        extent: &Extent,
    ) -> ExecResult<()> {
        let to_rank = |address: u64| match rank {
            None => address,
            Some(rank) => address_map::with_rank(address, rank),
        };
        let (reader, writer) = self.new_agents();
        let read = self.bulk_access(warp, lane, 0, Some(reader));
        let route = Route::of(copy);
        let parts: Vec<(&Part, u64)> = extent.parts.iter().map(|part| (part, to_rank(part.shared))).collect();
        let counted = extent.parts.iter().filter(|part| part.outside != Outside::Padding);
        let bytes = counted.map(|part| part.len as i64).sum();
        let moves = self.checked_moves((&read, writer), &route, &parts)?;
        let mut mbarriers = Vec::new();
        if let Some(at) = &copy.mbarrier {
            let own = self.shared_address(warp, lane, at)?;
            let address = match rank {
                Some(rank) if copy.counts_in_pairs => address_map::with_rank(own, in_pair(rank, own)),
                Some(_) | None => to_rank(own),
            };
            mbarriers.push((self.object(warp, lane, address, false)?, bytes));
        }
        let before = self.cta.clocks.started(warp.thread(lane));
        let (fill, reduce) = (extent.fill.clone(), extent.reduce);
        let in_group = mbarriers.is_empty();
        self.start_engine(Bulk { warp: warp.id, read, writer, moves, fill, reduce, before, mbarriers, started_at: 0 });
        if in_group {
            self.cta.groups.entry(warp.thread(lane)).or_default().open.copies.push((reader, writer));
        }
        Ok(())
    }

    /// Hands a copy to the engine.
    pub(super) fn start_engine(&mut self, bulk: Bulk) {
        let started_at = self.recorder.as_ref().map_or(0, |recorder| recorder.timeline.ticks);
        self.record_start((bulk.warp, bulk.read.pc), Engine::Copies, bulk.writer);
        self.cta.engine.push(Bulk { started_at, ..bulk });
    }
}

/// The rank of the CTA in the pair of `rank` that has the same place there as the CTA of an address has in its own (PTX ISA,
/// "cp.async.bulk.tensor": with `.cta_group::2`, all CTAs of a multicast count in the even or in the odd CTA of their pair).
fn in_pair(rank: u32, address: u64) -> u32 {
    rank & !1 | address_map::split_rank(address).0 as u32 & 1
}
