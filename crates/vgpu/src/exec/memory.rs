//! Loads and stores.

use crate::banks::{self, LastPattern};
use crate::exec::access::{Access, RegionId, RegionSlot, Slot, WarpAccess, resolve_spaces};
use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::isa::{Space, mask, sign_extend};
use crate::lanes::lanes;
use crate::op::{Load, Reg, Store};
use crate::report::AccessKind;
use crate::undefined::Undefined;

/// Maximum number of bytes that one lane accesses.
pub(crate) const MAX_BYTES: usize = 32;

impl Machine<'_> {
    pub(crate) fn load(&mut self, warp: &mut Warp, exec: u32, op: &Load) -> ExecResult<()> {
        let (addresses, parts) = resolve_spaces(&warp.regs, &op.at, exec);
        let size = op.size as usize;
        let len = size * op.regs.len();
        let pc = warp.pc;
        for (space, part) in parts {
            if part == 0 {
                continue;
            }
            self.must_be_defined(warp, op.at.base, part, "decide which memory is loaded")?;
            let (kind, bytes) = (AccessKind::Load, len as u32);
            let guess = &mut self.orders[pc as usize];
            let access = WarpAccess::guessed(space, kind, (&addresses, part), bytes, guess);
            self.tally(pc, &access);
            warp.loops.note_read(pc, space, (&addresses, part), len);
            let plain = match space {
                Space::Param | Space::Const => self.load_uniform(warp, op, &access)?,
                _ => self.load_plain(warp, op, &access),
            };
            for lane in lanes(part & !plain) {
                let access = Access { strong: op.strong, ..Access::new(warp, lane, addresses[lane], len, true) };
                let slot = self.locate(space, &access)?;
                let mut bytes = [0u8; MAX_BYTES];
                let undefined = self.fetch(&slot, &access, &mut bytes[..len])?;
                for (reg, chunk) in op.regs.iter().zip(bytes.chunks(size)) {
                    warp.regs[*reg as usize][lane] = extended(op, little_endian(chunk));
                }
                if warp.marks.is_some() || undefined.is_some() {
                    for (number, reg) in op.regs.iter().enumerate() {
                        let bytes = undefined.as_ref().map(|bytes| &bytes[number * size..(number + 1) * size]);
                        let marks = bytes.map_or(Undefined::default(), of_bytes);
                        warp.mark(*reg, lane, marks.with(extended(op, marks.bits)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Performs a load of parameters or constants if all lanes load the same, and returns the lanes.
    fn load_uniform(&mut self, warp: &mut Warp, op: &Load, of: &WarpAccess<'_>) -> ExecResult<u32> {
        let WarpAccess { space, addresses, exec, bytes, .. } = *of;
        let first = exec.trailing_zeros() as usize;
        if warp.marks.is_some() || lanes(exec).any(|lane| addresses[lane] != addresses[first]) {
            return Ok(0);
        }
        let access = Access::new(warp, first, addresses[first], bytes as usize, true);
        let slot = self.locate(space, &access)?;
        let mut data = [0u8; MAX_BYTES];
        self.fetch(&slot, &access, &mut data[..access.len])?;
        for (reg, chunk) in op.regs.iter().zip(data.chunks(op.size as usize)) {
            warp.fill(*reg, exec, extended(op, little_endian(chunk)));
        }
        Ok(exec)
    }

    pub(crate) fn store(&mut self, warp: &mut Warp, exec: u32, op: &Store) -> ExecResult<()> {
        let (addresses, parts) = resolve_spaces(&warp.regs, &op.at, exec);
        let size = op.size as usize;
        let len = size * op.regs.len();
        let pc = warp.pc;
        for (space, part) in parts {
            if part == 0 {
                continue;
            }
            self.must_be_defined(warp, op.at.base, part, "decide which memory is stored to")?;
            let (kind, bytes) = (AccessKind::Store, len as u32);
            let guess = &mut self.orders[pc as usize];
            let access = WarpAccess::guessed(space, kind, (&addresses, part), bytes, guess);
            self.tally(pc, &access);
            let plain = self.store_plain(warp, op, &access);
            for lane in lanes(part & !plain) {
                let access = Access { strong: op.strong, ..Access::new(warp, lane, addresses[lane], len, false) };
                self.must_be_aligned(space, &access)?;
                for run in &op.runs {
                    let regs = &op.regs[run.clone()];
                    let address = access.address + (run.start * size) as u64;
                    let access = Access { address, len: regs.len() * size, ..access };
                    let slot = self.place(space, &access)?;
                    let mut bytes = [0u8; MAX_BYTES];
                    for (reg, chunk) in regs.iter().zip(bytes.chunks_mut(size)) {
                        put_little_endian(warp.regs[*reg as usize][lane], chunk);
                    }
                    let undefined = stored_marks(warp, regs, lane, size);
                    self.put(&slot, &access, &bytes[..access.len], &undefined)?;
                }
            }
        }
        Ok(())
    }

    /// Counts one access of the instruction at `pc`.
    pub(crate) fn tally(&mut self, pc: u32, access: &WarpAccess<'_>) {
        let WarpAccess { space, kind, addresses, exec, bytes, ref order } = *access;
        let buffer = match space {
            Space::Global | Space::Generic => {
                lanes(exec).next().and_then(|lane| self.memory.at_or_below(addresses[lane]))
            }
            Space::Shared | Space::Local | Space::Param | Space::Const => None,
        };
        let tally = self.stats.tally(pc, (space, buffer), kind, bytes);
        tally.executions += 1;
        tally.bytes += u64::from(bytes) * u64::from(exec.count_ones());
        let pattern = (addresses, exec);
        match space {
            Space::Shared => {
                let (count, ideal) = LastPattern::cost(&mut tally.last, pattern, || {
                    let found = self.banks.wavefronts(addresses, exec, bytes, kind == AccessKind::Load);
                    (found.count, found.ideal)
                });
                tally.wavefronts += count;
                tally.ideal_wavefronts += ideal;
            }
            Space::Global | Space::Generic => {
                let (count, ideal) = LastPattern::cost(&mut tally.last, pattern, || {
                    let sectors = banks::sectors(addresses, order, bytes);
                    (sectors.count, sectors.ideal)
                });
                tally.sectors += count;
                tally.ideal_sectors += ideal;
            }
            Space::Local | Space::Param | Space::Const => {}
        }
    }

    /// Reads the bytes of a slot. Returns the undefined bits of each byte of the access, or `None` if all bits are
    /// defined.
    pub(crate) fn fetch(&mut self, slot: &Slot, access: &Access, out: &mut [u8]) -> ExecResult<Option<Vec<Undefined>>> {
        match slot {
            Slot::Param(bytes) => {
                out.copy_from_slice(bytes.of(self.params));
                Ok(None)
            }
            Slot::Const(bytes) => {
                out.copy_from_slice(bytes.of(self.constants));
                Ok(None)
            }
            Slot::Region(slot) => self.fetch_region(slot, access, out),
        }
    }

    fn fetch_region(
        &mut self,
        slot: &RegionSlot,
        access: &Access,
        out: &mut [u8],
    ) -> ExecResult<Option<Vec<Undefined>>> {
        let races = match slot.id {
            RegionId::Local => Vec::new(),
            RegionId::Shared | RegionId::Peer(_) | RegionId::Buffer(_) => self.races_of(slot, access)?,
        };
        if access.strong.is_some() {
            self.observe(slot, access);
        }
        let region = self.region(slot.id);
        out[..slot.len].copy_from_slice(&region.bytes.read(slot.offset..slot.end()));
        let is_written = region.is_written(slot.offset, slot.len);
        let has_marks = region.undefined.range(slot.offset..slot.end()).next().is_some();
        let is_defined = is_written && !has_marks && races.is_empty() && slot.len == access.len;
        Ok((!is_defined).then(|| self.undefined_bytes(slot, access, &races)))
    }

    /// Writes the bytes of a slot, some bits of which may be undefined: `undefined` has an entry for each byte, or none.
    pub(crate) fn put(&mut self, slot: &Slot, access: &Access, data: &[u8], undefined: &[Undefined]) -> ExecResult<()> {
        let slot = match slot {
            Slot::Param(_) => return Err(store_to_read_only_space(Space::Param, access)),
            Slot::Const(_) => return Err(store_to_read_only_space(Space::Const, access)),
            Slot::Region(slot) => slot,
        };
        match slot.id {
            RegionId::Local => {
                self.count_change(slot, data);
                self.region_mut(slot.id).store(slot.offset, data);
            }
            RegionId::Shared | RegionId::Peer(_) => self.put_checked(slot, access, data)?,
            RegionId::Buffer(index) => {
                if self.memory.buffers[index].is_read_only {
                    return Err(self.read_only(Space::Global, access));
                }
                let marked = undefined.iter().find(|byte| byte.is_some());
                if let Some(marked) = marked.filter(|_| self.options.observed.is_none()) {
                    let (name, offset) = self.location_name(Space::Global, access);
                    return Err(self.undefined_use(
                        marked.origin,
                        access.pc,
                        &format!("are stored to `{name}` + {offset}"),
                    ));
                }
                self.put_checked(slot, access, data)?;
            }
        }
        self.changes += u64::from(!undefined.is_empty());
        let marked = undefined.iter().enumerate().filter(|(_, byte)| byte.is_some());
        self.region_mut(slot.id).undefined.extend(marked.map(|(at, byte)| (slot.offset + at, *byte)));
        Ok(())
    }

    /// Counts a write of other bytes than are there. Returns whether it is one.
    pub(super) fn count_change(&mut self, slot: &RegionSlot, data: &[u8]) -> bool {
        let region = self.region(slot.id);
        let is_same = region.is_written(slot.offset, slot.len) && region.bytes.read(slot.offset..slot.end()) == data;
        self.changes += u64::from(!is_same);
        !is_same
    }
}

/// The value that a load writes for one that is in memory.
fn extended(op: &Load, value: u64) -> u64 {
    match op.extend {
        Some(width) => sign_extend(value, op.size * 8) as u64 & mask(width),
        None => value,
    }
}

fn store_to_read_only_space(space: Space, access: &Access) -> Box<RaisedFault> {
    let message = format!("a store to {} memory, which is read-only", space.as_str());
    RaisedFault::new(FaultKind::IllegalInstruction, 1 << access.lane, message)
}

/// Combines the undefined bits of the bytes of one value.
fn of_bytes(bytes: &[Undefined]) -> Undefined {
    let shifted = bytes.iter().enumerate().map(|(at, byte)| byte.with(byte.bits << (8 * at)));
    shifted.fold(Undefined::default(), Undefined::or)
}

/// The undefined bits of the registers that are stored, for each byte; empty if there are none.
fn stored_marks(warp: &Warp, regs: &[Reg], lane: usize, size: usize) -> Vec<Undefined> {
    if warp.marks.is_none() || regs.iter().all(|reg| !warp.undefined(*reg, lane).is_some()) {
        return Vec::new();
    }
    let bytes = |reg: &Reg| {
        let all = warp.undefined(*reg, lane);
        (0..size).map(move |at| all.with(all.bits >> (8 * at) & 0xff))
    };
    regs.iter().flat_map(bytes).collect()
}

/// The value of up to eight bytes.
pub(crate) fn little_endian(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    }
}

/// Writes the low bytes of a value, as many as there are in `bytes`, which are at most eight.
pub(crate) fn put_little_endian(value: u64, bytes: &mut [u8]) {
    match bytes {
        [a] => *a = value as u8,
        [a, b] => [*a, *b] = (value as u16).to_le_bytes(),
        [a, b, c, d] => [*a, *b, *c, *d] = (value as u32).to_le_bytes(),
        _ => bytes.iter_mut().zip(value.to_le_bytes()).for_each(|(slot, byte)| *slot = byte),
    }
}
