//! Tensor maps that threads change: `tensormap.replace` and `tensormap.cp_fenceproxy` (PTX ISA, sections 9.7.9.26 and 9.7.13.4).

use crate::exec::access::{Access, Slot, resolve_spaces};
use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::isa::{Scope, Space};
use crate::op::{MemRef, ProxyFence, Reg};
use crate::shadow::Conflict;
use crate::tensor_map::{MapField, TENSOR_MAP_BYTES};
use crate::undefined::Undefined;

impl Machine<'_> {
    /// Changes a field of a map in shared or global memory, as a thread that reads and writes it.
    pub(super) fn replace_in_map(
        &mut self,
        warp: &Warp,
        lane: usize,
        map: &MemRef,
        (field, value): (MapField, Reg),
    ) -> ExecResult<()> {
        for reg in [map.base, value] {
            self.must_be_defined(warp, reg, 1 << lane, "decide how a tensor map is changed")?;
        }
        let (slot, write) = self.map_slot(warp, lane, map, false)?;
        let mut bytes = [0; TENSOR_MAP_BYTES];
        let mut undefined = self.fetch(&slot, &Access { is_read: true, ..write }, &mut bytes)?.unwrap_or_default();
        let changed = field.replace(&mut bytes, warp.regs[value as usize][lane]);
        undefined.iter_mut().take(changed.end).skip(changed.start).for_each(|byte| *byte = Undefined::default());
        self.put(&slot, &write, &bytes, &undefined)
    }

    /// Copies a map from shared to global memory. The warp executes it together: all lanes read and release, and the first one
    /// writes.
    pub(super) fn copy_map(
        &mut self,
        warp: &Warp,
        lane: usize,
        (to, from): (&MemRef, &MemRef),
        scope: Scope,
    ) -> ExecResult<()> {
        let (from, read) = self.map_slot(warp, lane, from, true)?;
        let mut bytes = [0; TENSOR_MAP_BYTES];
        let undefined = self.fetch(&from, &read, &mut bytes)?.unwrap_or_default();
        if let Some(byte) = undefined.iter().find(|byte| byte.is_some()) {
            return Err(self.undefined_use(byte.origin, warp.pc, "are part of a tensor map"));
        }
        if lane == warp.active.trailing_zeros() as usize {
            let (to, write) = self.map_slot(warp, lane, to, false)?;
            self.put(&to, &write, &bytes, &[])?;
        }
        self.cta.clocks.fence_proxy(warp.thread(lane), ProxyFence::ReleaseMaps(scope));
        Ok(())
    }

    pub(super) fn acquire_map(&mut self, warp: &Warp, lane: usize, map: &MemRef, scope: Scope) -> ExecResult<()> {
        self.must_be_defined(warp, map.base, 1 << lane, "decide which tensor map is meant")?;
        let (addresses, _) = resolve_spaces(&warp.regs, map, 1 << lane);
        self.cta.clocks.fence_proxy(warp.thread(lane), ProxyFence::AcquireMap(scope, addresses[lane]));
        Ok(())
    }

    fn map_slot(&mut self, warp: &Warp, lane: usize, at: &MemRef, is_read: bool) -> ExecResult<(Slot, Access)> {
        let (addresses, parts) = resolve_spaces(&warp.regs, at, 1 << lane);
        let space = parts.iter().find(|(_, lanes)| *lanes != 0).map_or(Space::Global, |(space, _)| *space);
        let access = Access { is_load: false, ..Access::new(warp, lane, addresses[lane], TENSOR_MAP_BYTES, is_read) };
        if !access.address.is_multiple_of(TENSOR_MAP_BYTES as u64) {
            let message = "the address of a tensor map that is changed is not a multiple of 128 bytes";
            return Err(RaisedFault::new(FaultKind::Misaligned, 1 << lane, message));
        }
        Ok((self.place(space, &access)?, access))
    }

    /// The fault of a tensor map that a thread has changed, and that is used without proxy fences after that.
    pub(super) fn unfenced_map(&self, space: Space, access: &Access, conflict: &Conflict) -> Box<RaisedFault> {
        let (name, offset) = self.location_name(space, access);
        let line = self.program.line(conflict.pc);
        let message = format!(
            "the tensor map at `{name}` + {offset} is used here, and a thread changed it at PTX line {line}; \
             `fence.proxy.tensormap::generic.release` after the change, or `.acquire` of this address before the use, is missing, \
             or its scope is too narrow"
        );
        let mut stop = RaisedFault::new(FaultKind::MissingFence, 1 << access.lane, message);
        stop.address = Some(access.address);
        stop.related = Some(conflict.pc);
        stop
    }
}
