//! Accesses to memory, of a lane and of a warp, and the bytes that they refer to.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::clock::Agent;
use crate::exec::warp::Warp;
use crate::isa::{Space, Strong, mask};
use crate::lanes::{ByAddress, IN_ORDER, LaneOrder, Lanes, lanes};
use crate::memory::map;
use crate::op::MemRef;
use crate::report::AccessKind;

/// The bytes that an access refers to, after its bounds were checked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    /// Bytes of the parameter block.
    Param(Bytes),
    /// Bytes of the constant memory.
    Const(Bytes),
    /// Bytes that a kernel can write.
    Region(RegionSlot),
}

/// A range of bytes, as `offset` and `len`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes {
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

impl Bytes {
    /// These bytes of a memory.
    pub(crate) fn of(self, memory: &[u8]) -> &[u8] {
        &memory[self.offset..self.offset + self.len]
    }
}

/// Bytes of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionSlot {
    pub(crate) id: RegionId,
    /// Bytes from the start of the region.
    pub(crate) offset: usize,
    /// Bytes of the access that are in bounds: fewer than its size if an aligned load extends past the end of a buffer.
    pub(crate) len: usize,
}

impl RegionSlot {
    pub(crate) fn is_global(&self) -> bool {
        self.id.space() == Space::Global
    }

    /// Offset of the first byte after the slot.
    pub(crate) fn end(&self) -> usize {
        self.offset + self.len
    }
}

/// The ranges of slots, by region; what is adjacent is one range.
pub(crate) fn by_region<'a>(slots: impl Iterator<Item = &'a RegionSlot>) -> BTreeMap<RegionId, Vec<Range<usize>>> {
    let mut found: BTreeMap<RegionId, Vec<Range<usize>>> = BTreeMap::new();
    for slot in slots {
        let ranges = found.entry(slot.id).or_default();
        match ranges.last_mut().filter(|last| last.end == slot.offset) {
            Some(last) => last.end = slot.end(),
            None => ranges.push(slot.offset..slot.end()),
        }
    }
    found
}

/// A region that a kernel can access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RegionId {
    /// The shared memory of the running CTA.
    Shared,
    /// The shared memory of another CTA of its cluster, by rank.
    Peer(u32),
    /// The local memory of the threads of the running CTA.
    Local,
    /// A buffer in global memory, by its index.
    Buffer(usize),
}

impl RegionId {
    /// The state space of the region.
    pub(crate) fn space(self) -> Space {
        match self {
            RegionId::Shared | RegionId::Peer(_) => Space::Shared,
            RegionId::Local => Space::Local,
            RegionId::Buffer(_) => Space::Global,
        }
    }
}

/// One lane's access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) lane: usize,
    /// Linear index of the thread in its CTA.
    pub(crate) thread: u32,
    /// Address in the accessed state space.
    pub(crate) address: u64,
    /// Size of the access in bytes.
    pub(crate) len: usize,
    pub(crate) pc: u32,
    /// The ordering of an access that is atomic, volatile, relaxed, acquire or release.
    pub(crate) strong: Option<Strong>,
    /// Who makes the access, if the thread only starts it.
    pub(crate) copy: Option<Agent>,
    /// A write of an atomic operation, which has read before.
    pub(crate) is_update: bool,
    /// Whether this is a read; an atomic operation is a read and then a write.
    pub(crate) is_read: bool,
    /// A load to registers, not an atomic operation.
    pub(crate) is_load: bool,
    /// A read of a tensor map by a copy that uses it.
    pub(crate) uses_map: bool,
    /// The lanes that make the access, if it is not one; they are alike.
    pub(crate) together: Option<u32>,
}

impl Access {
    /// A weak access of a lane by the instruction that its warp executes, to `len` bytes; a read is a load to registers.
    pub(crate) fn new(warp: &Warp, lane: usize, address: u64, len: usize, is_read: bool) -> Access {
        Access {
            lane,
            thread: warp.thread(lane),
            address,
            len,
            pc: warp.pc,
            strong: None,
            copy: None,
            is_update: false,
            is_read,
            is_load: is_read,
            uses_map: false,
            together: None,
        }
    }
}

/// One access of the lanes of a warp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarpAccess<'a> {
    /// The resolved state space.
    pub(crate) space: Space,
    pub(crate) kind: AccessKind,
    /// Address of each lane.
    pub(crate) addresses: &'a Lanes,
    /// Mask of the lanes that access memory.
    pub(crate) exec: u32,
    /// Bytes that one lane accesses.
    pub(crate) bytes: u32,
    pub(crate) order: ByAddress,
}

impl<'a> WarpAccess<'a> {
    /// An access of `bytes` bytes by each lane of `exec`.
    pub(crate) fn new(space: Space, kind: AccessKind, lanes: (&'a Lanes, u32), bytes: u32) -> WarpAccess<'a> {
        WarpAccess::guessed(space, kind, lanes, bytes, &mut IN_ORDER.clone())
    }

    /// As [`WarpAccess::new`]; `guess` is an order of all lanes by address that may be the one, and becomes it.
    pub(crate) fn guessed(
        space: Space,
        kind: AccessKind,
        (addresses, exec): (&'a Lanes, u32),
        bytes: u32,
        guess: &mut LaneOrder,
    ) -> WarpAccess<'a> {
        WarpAccess { space, kind, addresses, exec, bytes, order: ByAddress::new(addresses, exec, guess) }
    }
}

/// The state spaces that an instruction accesses, each with its mask of lanes.
pub(crate) type LanesBySpace = [(Space, u32); 5];

/// Resolves the address of each lane, and groups the lanes by state space.
pub(crate) fn resolve_spaces(regs: &[Lanes], at: &MemRef, exec: u32) -> (Lanes, LanesBySpace) {
    let parts = [(Space::Global, 0), (Space::Shared, 0), (Space::Local, 0), (Space::Param, 0), (Space::Const, 0)];
    let mut resolved: (Lanes, LanesBySpace) = (regs[at.base as usize], parts);
    let (addresses, parts) = &mut resolved;
    let keep = if matches!(at.space, Space::Generic | Space::Global) { u64::MAX } else { mask(32) };
    for address in addresses.iter_mut() {
        *address = address.wrapping_add(at.offset as u64) & keep;
    }
    if at.space != Space::Generic {
        parts[0] = (at.space, exec);
        return resolved;
    }
    for lane in lanes(exec) {
        let (space, inside) = map::resolve(addresses[lane]);
        addresses[lane] = inside;
        for (other, lanes) in parts.iter_mut() {
            if *other == space {
                *lanes |= 1 << lane;
            }
        }
    }
    resolved
}
