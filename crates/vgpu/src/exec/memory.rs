//! Loads and stores.

use crate::exec::Machine;
use crate::exec::place::{Access, Slot, split};
use crate::exec::undefined::{Undefined, UndefinedByte};
use crate::exec::warp::{Lanes, Warp, lanes};
use crate::fault::Exec;
use crate::isa::{Space, mask, sign_extend};
use crate::op::{Load, Reg, Store};
use crate::report::AccessKind;
use crate::shadow::{Actor, Finding};
use crate::{banks, memory::Region};

/// Maximum number of bytes that one lane accesses.
pub(crate) const MAX_BYTES: usize = 32;

impl Machine<'_> {
    pub(crate) fn load(&mut self, warp: &mut Warp, exec: u32, op: &Load) -> Exec<()> {
        let (addresses, parts) = split(&warp.regs, &op.at, exec);
        let size = op.size as usize;
        let len = size * op.regs.len();
        let pc = warp.pc;
        for (space, part) in parts {
            if part == 0 {
                continue;
            }
            self.must_be_defined(warp, op.at.base, part, "decide which memory is loaded")?;
            self.tally(pc, space, AccessKind::Load, &addresses, part, len as u32);
            for lane in lanes(part) {
                let thread = warp.thread(lane);
                let address = addresses[lane];
                let access = Access { lane, thread, address, len, pc, strong: op.strong, is_read: true, is_load: true };
                let slot = self.locate(space, &access)?;
                let mut bytes = [0u8; MAX_BYTES];
                let undefined = self.fetch(&slot, &access, &mut bytes[..len]);
                let extended = |value: u64| match op.extend {
                    Some(width) => sign_extend(value, op.size * 8) as u64 & mask(width),
                    None => value,
                };
                for (reg, chunk) in op.regs.iter().zip(bytes.chunks(size)) {
                    warp.regs[*reg as usize][lane] = extended(little_endian(chunk));
                }
                if warp.marks.is_some() || !undefined.is_empty() {
                    for (number, reg) in op.regs.iter().enumerate() {
                        let marks = undefined.get(number * size..(number + 1) * size).map(of_bytes).unwrap_or_default();
                        warp.mark(*reg, lane, marks.with(extended(marks.bits)));
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn store(&mut self, warp: &mut Warp, exec: u32, op: &Store) -> Exec<()> {
        let (addresses, parts) = split(&warp.regs, &op.at, exec);
        let size = op.size as usize;
        let len = size * op.regs.len();
        let pc = warp.pc;
        for (space, part) in parts {
            if part == 0 {
                continue;
            }
            self.must_be_defined(warp, op.at.base, part, "decide which memory is stored to")?;
            self.tally(pc, space, AccessKind::Store, &addresses, part, len as u32);
            for lane in lanes(part) {
                let thread = warp.thread(lane);
                let address = addresses[lane];
                let access =
                    Access { lane, thread, address, len, pc, strong: op.strong, is_read: false, is_load: false };
                let slot = self.locate(space, &access)?;
                let mut bytes = [0u8; MAX_BYTES];
                for (reg, chunk) in op.regs.iter().zip(bytes.chunks_mut(size)) {
                    let value = warp.regs[*reg as usize][lane].to_le_bytes();
                    chunk.copy_from_slice(&value[..size]);
                }
                let undefined = stored_marks(warp, &op.regs, lane, size);
                self.put(&slot, &access, &bytes[..len], &undefined)?;
            }
        }
        Ok(())
    }

    /// Counts one warp access.
    pub(crate) fn tally(&mut self, pc: u32, space: Space, kind: AccessKind, addresses: &Lanes, exec: u32, bytes: u32) {
        let tally = self.stats.tally(pc, space, kind, bytes);
        tally.executions += 1;
        tally.bytes += u64::from(bytes) * u64::from(exec.count_ones());
        match space {
            Space::Shared => {
                let passes = self.banks.passes(addresses, exec, bytes, kind == AccessKind::Load);
                tally.wavefronts += passes.wavefronts;
                tally.ideal_wavefronts += passes.ideal;
            }
            Space::Global | Space::Generic => {
                let sectors = banks::sectors(addresses, exec, bytes);
                tally.sectors += sectors.touched;
                tally.ideal_sectors += sectors.ideal;
            }
            Space::Local | Space::Param | Space::Const => {}
        }
    }

    /// Reads the bytes of a slot. Returns their undefined bits, or an empty list if all bits are defined.
    pub(crate) fn fetch(&mut self, slot: &Slot, access: &Access, out: &mut [u8]) -> Vec<UndefinedByte> {
        let end = slot.offset + slot.len;
        let inside = &mut out[..slot.len];
        match slot.space {
            Space::Param => {
                inside.copy_from_slice(&self.params[slot.offset..end]);
                return Vec::new();
            }
            Space::Const => {
                inside.copy_from_slice(&self.constants[slot.offset..end]);
                return Vec::new();
            }
            Space::Local | Space::Shared | Space::Global | Space::Generic => {}
        }
        let races = if slot.space == Space::Local { Vec::new() } else { self.races_of(slot, access) };
        let region = self.region(slot);
        inside.copy_from_slice(&region.bytes[slot.offset..end]);
        let is_written = region.is_written(slot.offset, slot.len);
        let has_marks = region.undefined.range(slot.offset..end).next().is_some();
        if is_written && !has_marks && races.is_empty() && slot.len == access.len {
            return Vec::new();
        }
        self.undefined_bytes(slot, access, &races)
    }

    /// Writes the bytes of a slot, some bits of which may be undefined.
    pub(crate) fn put(&mut self, slot: &Slot, access: &Access, data: &[u8], undefined: &[UndefinedByte]) -> Exec<()> {
        match slot.space {
            Space::Param | Space::Const => {
                let kind = crate::fault::FaultKind::IllegalInstruction;
                let message = format!("a store to {} memory, which is read-only", slot.space.as_str());
                return Err(crate::fault::Stop::new(kind, 1 << access.lane, message));
            }
            Space::Local => self.region_mut(slot).store(slot.offset, data),
            Space::Shared | Space::Global | Space::Generic => {
                if slot.space != Space::Shared && self.memory.buffers[slot.buffer].is_read_only {
                    return Err(self.read_only(slot.space, access));
                }
                if slot.space != Space::Shared
                    && let Some(marked) = undefined.iter().find(|byte| byte.is_some())
                {
                    let (name, offset) = self.title(slot.space, access);
                    return Err(self.reached(marked.origin, access.pc, &format!("are stored to `{name}` + {offset}")));
                }
                let mut finding = self.check(slot, access, Some(data));
                if self.may_lose(access.pc) {
                    finding.meetings.retain(|met| !(met.conflict.other_is_write && self.may_lose(met.conflict.pc)));
                }
                if let Some(first) = finding.again.filter(|first| self.are_apart(*first, access.pc)) {
                    return Err(self.not_apart(slot.space, access, first));
                }
                if finding.benign {
                    *self.stats.benign.entry(access.pc).or_insert(0) += 1;
                }
                self.region_mut(slot).store(slot.offset, data);
                self.meet(slot, access, &finding.meetings)?;
            }
        }
        let region = self.region_mut(slot);
        let marked = undefined.iter().enumerate().filter(|(_, byte)| byte.is_some());
        region.undefined.extend(marked.map(|(at, byte)| (slot.offset + at, *byte)));
        Ok(())
    }

    /// Whether two instructions are in the same group of stores that are declared disjoint.
    fn are_apart(&self, one: u32, other: u32) -> bool {
        let group = |pc: u32| self.apart.get(pc as usize).copied().flatten();
        group(one).is_some_and(|known| group(other) == Some(known))
    }

    /// Whether an instruction is a store whose value another store may replace (`any_wins`).
    fn may_lose(&self, pc: u32) -> bool {
        self.any_wins[pc as usize]
    }

    pub(crate) fn region(&self, slot: &Slot) -> &Region {
        match slot.space {
            Space::Shared => &self.cta.shared,
            Space::Local => &self.cta.local,
            _ => &self.memory.buffers[slot.buffer].region,
        }
    }

    pub(crate) fn region_mut(&mut self, slot: &Slot) -> &mut Region {
        match slot.space {
            Space::Shared => &mut self.cta.shared,
            Space::Local => &mut self.cta.local,
            _ => &mut self.memory.buffers[slot.buffer].region,
        }
    }

    /// Records an access in the shadow memory: a write if there is `data`, otherwise a read.
    pub(crate) fn check(&mut self, slot: &Slot, access: &Access, data: Option<&[u8]>) -> Finding {
        if !self.options.check_races {
            return Finding::default();
        }
        let cta = &mut self.cta;
        let actor = Actor {
            cta: cta.number,
            first_cta: self.first_cta,
            thread: access.thread,
            clock: cta.clocks.own(access.thread),
            base: cta.clocks.base(access.thread),
            pc: access.pc,
            strong: access.strong,
        };
        let region: &mut Region = match slot.space {
            Space::Shared => &mut cta.shared,
            _ => &mut self.memory.buffers[slot.buffer].region,
        };
        match data {
            None => region.shadow.read(slot.offset, slot.len, &actor),
            Some(data) => {
                let old = &region.bytes[slot.offset..slot.offset + data.len()];
                region.shadow.write(slot.offset, old, data, &actor)
            }
        }
    }
}

/// Combines the undefined bits of the bytes of one value.
fn of_bytes(bytes: &[UndefinedByte]) -> Undefined {
    let shifted = bytes.iter().enumerate().map(|(at, byte)| byte.with(byte.bits << (8 * at)));
    shifted.fold(Undefined::default(), Undefined::or)
}

/// The undefined bits of the registers that are stored, for each byte; empty if there are none.
fn stored_marks(warp: &Warp, regs: &[Reg], lane: usize, size: usize) -> Vec<UndefinedByte> {
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
    let mut value = [0u8; 8];
    for (slot, byte) in value.iter_mut().zip(bytes) {
        *slot = *byte;
    }
    u64::from_le_bytes(value)
}
