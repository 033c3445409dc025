//! Resolves addresses: which memory, which buffer, and whether the access is in bounds.

use crate::clock::{cta_of, is_copy};
use crate::exec::access::{Access, Bytes, RegionId, RegionSlot, Slot};
use crate::exec::machine::Machine;
use crate::fault::{ExecResult, FaultKind, Location, RaisedFault};
use crate::isa::Space;
use crate::memory::map;
use crate::names::source_name;
use crate::shadow::{Conflict, Who};

impl Machine<'_> {
    /// Resolves the bytes of an access, or faults.
    pub(crate) fn locate(&mut self, space: Space, access: &Access) -> ExecResult<Slot> {
        self.must_be_aligned(space, access)?;
        self.place(space, access)
    }

    /// An address is a multiple of the bytes of its access.
    pub(crate) fn must_be_aligned(&self, space: Space, access: &Access) -> ExecResult<()> {
        let len = access.len as u64;
        if access.address.is_multiple_of(len.max(1)) {
            return Ok(());
        }
        let place = self.place_text(space, access);
        let message = format!("{len}-byte access at {place}, an address that is not a multiple of {len}");
        Err(self.at_address(FaultKind::Misaligned, space, access, message))
    }

    /// The place of an access whose alignment does not matter.
    pub(crate) fn place(&mut self, space: Space, access: &Access) -> ExecResult<Slot> {
        match space {
            Space::Global | Space::Generic => self.locate_global(access),
            Space::Shared => self.locate_shared(access),
            Space::Local => {
                let size = self.program.local_bytes as usize;
                let offset = access.thread as usize * size + self.offset_in(space, access, 0, size)?;
                Ok(Slot::Region(RegionSlot { id: RegionId::Local, offset, len: access.len }))
            }
            Space::Param => {
                let offset = self.offset_in(space, access, 0, self.params.len())?;
                Ok(Slot::Param(Bytes { offset, len: access.len }))
            }
            Space::Const => {
                let offset = self.offset_in(space, access, 0, self.constants.len())?;
                Ok(Slot::Const(Bytes { offset, len: access.len }))
            }
        }
    }

    /// The bytes of the own CTA's shared memory, or of another one's in the cluster.
    fn locate_shared(&mut self, access: &Access) -> ExecResult<Slot> {
        let (rank, inside) = map::split_rank(access.address);
        let is_own = rank == u64::from(self.cta.rank);
        if !is_own && rank >= self.peers.len() as u64 {
            let size = self.peers.len().max(1);
            if rank >= 16 || size == 1 {
                return Err(self.out_of_bounds(Space::Shared, access));
            }
            let message =
                format!("the address is in the shared memory of rank {rank}, and the cluster has {size} CTAs");
            return Err(RaisedFault::new(FaultKind::OutOfBounds, 1 << access.lane, message));
        }
        let id = if is_own { RegionId::Shared } else { RegionId::Peer(rank as u32) };
        let owner = self.owner(id);
        if owner.has_ended {
            let message =
                format!("the CTA of rank {rank} in the cluster, whose shared memory this accesses, has exited");
            return Err(RaisedFault::new(FaultKind::OutOfBounds, 1 << access.lane, message));
        }
        let size = if access.is_read { owner.shared.bytes.len() } else { owner.writable_shared };
        let offset = self.offset_in(Space::Shared, access, access.address - inside + map::SHARED_START, size)?;
        Ok(Slot::Region(RegionSlot { id, offset, len: access.len }))
    }

    fn locate_global(&mut self, access: &Access) -> ExecResult<Slot> {
        let slot = |buffer: usize, (offset, len): (usize, usize)| {
            Slot::Region(RegionSlot { id: RegionId::Buffer(buffer), offset, len })
        };
        if let Some(inside) = self.inside_buffer(self.last_buffer, access) {
            return Ok(slot(self.last_buffer, inside));
        }
        if let Some(buffer) = self.memory.at_or_below(access.address)
            && let Some(inside) = self.inside_buffer(buffer, access)
        {
            self.last_buffer = buffer;
            return Ok(slot(buffer, inside));
        }
        Err(self.out_of_bounds(Space::Global, access))
    }

    /// Offset of an access in a buffer, and how many of its bytes are in bounds: all of them, or fewer for a load that
    /// begins in bounds.
    fn inside_buffer(&self, index: usize, access: &Access) -> Option<(usize, usize)> {
        let buffer = self.memory.buffers.get(index)?;
        let offset = usize::try_from(access.address.checked_sub(buffer.base)?).ok()?;
        let inside = buffer.region.bytes.len().checked_sub(offset)?.min(access.len);
        (inside == access.len || (access.is_load && inside > 0)).then_some((offset, inside))
    }

    /// Offset of an access in a memory of `size` bytes that starts at the address `start`.
    fn offset_in(&self, space: Space, access: &Access, start: u64, size: usize) -> ExecResult<usize> {
        let offset = access.address.checked_sub(start);
        match offset.filter(|offset| offset.saturating_add(access.len as u64) <= size as u64) {
            Some(offset) => Ok(offset as usize),
            None => Err(self.out_of_bounds(space, access)),
        }
    }

    fn at_address(&self, kind: FaultKind, space: Space, access: &Access, message: String) -> Box<RaisedFault> {
        let mut stop = RaisedFault::new(kind, 1 << access.lane, message);
        stop.address = Some(access.address);
        let (name, offset, _) = self.nearest(space, access.address);
        stop.location = (!name.is_empty()).then_some(Location { space, name, offset, length: access.len as u32 });
        stop
    }

    pub(crate) fn out_of_bounds(&self, space: Space, access: &Access) -> Box<RaisedFault> {
        let (name, offset, size) = self.nearest(space, access.address);
        let message = if name.is_empty() {
            let shared = map::SHARED_START..map::SHARED_START + self.cta.shared.bytes.len() as u64;
            let hint = match shared.contains(&access.address) {
                true => {
                    "; it is one of the shared state space: the instruction lacks `.shared`, or `cvta.shared` is missing"
                }
                false => "",
            };
            format!("address {:#x} is not in any buffer{hint}", access.address)
        } else if space == Space::Shared && offset < 0 {
            let start = map::SHARED_START;
            format!(
                "address {:#x} is before the first one of shared memory, {start:#x}; is it a global address?",
                access.address
            )
        } else if offset < 0 {
            format!("the access at `{name}` - {} begins before the start", -offset)
        } else {
            let past = offset.saturating_add(access.len as i64).saturating_sub(size as i64);
            format!("the access at `{name}` + {offset} extends {past} B past the end (size {size} B)")
        };
        self.at_address(FaultKind::OutOfBounds, space, access, message)
    }

    /// The variable or buffer nearest to an address: name, offset and size.
    pub(super) fn nearest(&self, space: Space, address: u64) -> (String, i64, u64) {
        match space {
            Space::Global | Space::Generic => self.nearest_buffer(address),
            Space::Shared => {
                let (rank, inside) = map::split_rank(address);
                let is_in_cluster = rank == u64::from(self.cta.rank) || rank < self.peers.len() as u64;
                let address = if is_in_cluster { inside } else { address };
                self.nearest_shared(address.wrapping_sub(map::SHARED_START) as i64)
            }
            Space::Local => ("local memory".to_string(), address as i64, u64::from(self.program.local_bytes)),
            Space::Param => ("kernel parameters".to_string(), address as i64, self.params.len() as u64),
            Space::Const => ("constants".to_string(), address as i64, self.constants.len() as u64),
        }
    }

    fn nearest_buffer(&self, address: u64) -> (String, i64, u64) {
        let below = self.memory.at_or_below(address);
        let next = below.map_or(0, |index| index + 1);
        for index in [below, Some(next)].into_iter().flatten() {
            let Some(buffer) = self.memory.buffers.get(index) else { continue };
            let size = buffer.region.bytes.len() as u64;
            let offset = address.wrapping_sub(buffer.base) as i64;
            if offset >= -(map::GUARD as i64) / 2 && offset < (size + map::GUARD / 2) as i64 {
                return (buffer.name.clone(), offset, size);
            }
        }
        (String::new(), 0, 0)
    }

    fn nearest_shared(&self, offset: i64) -> (String, i64, u64) {
        let total = self.cta.shared.bytes.len() as u64;
        for variable in &self.program.shared {
            let start = i64::from(variable.offset);
            if offset >= start && offset < start + i64::from(variable.bytes) {
                return (source_name(&variable.name).to_string(), offset - start, u64::from(variable.bytes));
            }
        }
        let dynamic = self.program.dynamic_shared_offset() as i64;
        match &self.program.dynamic_shared_name {
            Some(name) if offset >= dynamic => {
                (name.clone(), offset - dynamic, u64::from(self.launch.dynamic_shared_bytes))
            }
            _ => match self.program.shared.last() {
                Some(last) if offset >= i64::from(last.offset) => {
                    (source_name(&last.name).to_string(), offset - i64::from(last.offset), u64::from(last.bytes))
                }
                _ => ("shared memory".to_string(), offset, total),
            },
        }
    }

    /// The variable at an offset in shared memory, and the offset in it, as text.
    pub(crate) fn shared_name(&self, offset: usize) -> String {
        let (name, offset, _) = self.nearest_shared(offset as i64);
        format!("`{name}` + {offset}")
    }

    /// The place of an access as text.
    fn place_text(&self, space: Space, access: &Access) -> String {
        match self.location_name(space, access) {
            (name, _) if name.is_empty() => format!("address {:#x}", access.address),
            (name, offset) => format!("`{name}` + {offset}"),
        }
    }

    /// The buffer or variable of an access, and the offset in it.
    pub(crate) fn location_name(&self, space: Space, access: &Access) -> (String, i64) {
        let (name, offset, _) = self.nearest(space, access.address);
        (name, offset)
    }

    /// The fault of two unordered accesses.
    pub(crate) fn race(&self, space: Space, access: &Access, conflict: &Conflict) -> Box<RaisedFault> {
        let own = if access.is_read { "read" } else { "write" };
        let other = if conflict.other_is_write { "write" } else { "read" };
        let place = self.place_text(space, access);
        let is_earlier = self.is_of_earlier_launch(conflict);
        let mut message = if is_earlier {
            let lines = self.memory.launch_of(conflict.who.cta).map(|launch| launch.lines[conflict.pc as usize]);
            let line = lines.unwrap_or_default();
            format!(
                "this {own} of {place} and the {other} at PTX line {line} in the launch before are not ordered; \
                 `griddepcontrol.wait` is missing between them"
            )
        } else {
            let line = self.program.line(conflict.pc);
            let both = format!("this {own} of {place} and the {other} at PTX line {line}");
            let Who { cta, thread, .. } = conflict.who;
            let early = |thread: &str, start: &str| {
                format!(
                    "{both} are not ordered; either {thread} has not observed that the asynchronous operation which starts {start} \
                     is complete (by its mbarrier, its commit or `wait_group`, or by a barrier after the wait of another thread), \
                     or the operation starts too early"
                )
            };
            match (is_copy(cta), conflict.other_cta) {
                (true, _) => early("this thread", "there"),
                (false, _) if conflict.other_is_later && access.copy.is_some() => early("the other thread", "here"),
                (false, true) => format!("{both} in another CTA are not ordered by a barrier or by a flag"),
                (false, false) => {
                    let (warp, lane) = (thread / 32, thread % 32);
                    format!("{both} by lane {lane} of warp {warp} are not ordered by a barrier or by a flag")
                }
            }
        };
        if access.strong.is_some() && conflict.other_is_strong {
            message += "; both are atomic or relaxed, but one is not in the scope of the other";
        }
        let mut stop = self.at_address(FaultKind::Race, space, access, message);
        stop.related = Some(conflict.pc).filter(|_| !is_earlier);
        stop.is_between_ctas = conflict.other_cta;
        stop
    }

    /// Whether the other access of a conflict is one of an earlier launch, whose kernel may be another one.
    pub(crate) fn is_of_earlier_launch(&self, conflict: &Conflict) -> bool {
        cta_of(conflict.who.cta) < self.first_cta
    }

    /// The fault of a bulk copy of bytes that a thread has written without a proxy fence.
    pub(crate) fn missing_fence(&self, space: Space, access: &Access, conflict: &Conflict) -> Box<RaisedFault> {
        let place = self.place_text(space, access);
        let own = if access.is_read { "reads" } else { "overwrites" };
        let line = self.program.line(conflict.pc);
        let message = format!(
            "the asynchronous proxy {own} {place} here, which a thread wrote at PTX line {line}; \
             `fence.proxy.async` is missing between them"
        );
        let mut stop = self.at_address(FaultKind::MissingFence, space, access, message);
        stop.related = Some(conflict.pc);
        stop
    }

    /// The fault of a write to a read-only buffer.
    pub(crate) fn read_only(&self, space: Space, access: &Access) -> Box<RaisedFault> {
        let place = self.place_text(space, access);
        let message = format!("{}-byte write at {place}, which is read-only", access.len);
        self.at_address(FaultKind::ReadOnly, space, access, message)
    }

    /// The fault of a write that overwrites one declared disjoint from it.
    pub(crate) fn not_apart(&self, space: Space, access: &Access, first: u32) -> Box<RaisedFault> {
        let place = self.place_text(space, access);
        let line = self.program.line(first);
        let message = format!(
            "this write of {place} overwrites the same thread's write at PTX line {line}; \
             they were declared disjoint"
        );
        let mut stop = self.at_address(FaultKind::NotApart, space, access, message);
        stop.related = Some(first);
        stop
    }

    /// The fault of a read of bytes that were never written.
    pub(crate) fn unwritten(&self, space: Space, access: &Access) -> Box<RaisedFault> {
        let place = self.place_text(space, access);
        let message = format!("{}-byte read at {place} includes unwritten bytes", access.len);
        self.at_address(FaultKind::UninitializedRead, space, access, message)
    }
}
