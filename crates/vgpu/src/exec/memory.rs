//! Loads and stores.

use crate::exec::Machine;
use crate::exec::place::{Access, Slot, split};
use crate::exec::warp::{Lanes, Warp, lanes};
use crate::fault::Exec;
use crate::isa::{Space, mask, sign_extend};
use crate::op::{Load, Store};
use crate::report::AccessKind;
use crate::shadow::{Actor, Finding};
use crate::{banks, memory::Region};

/// Most bytes that one lane moves.
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
            self.tally(pc, space, AccessKind::Load, &addresses, part, len as u32);
            for lane in lanes(part) {
                let thread = warp.thread(lane);
                let address = addresses[lane];
                let access = Access { lane, thread, address, len, pc, strong: op.strong, is_read: true };
                let slot = self.locate(space, &access)?;
                let mut bytes = [0u8; MAX_BYTES];
                self.fetch(&slot, &access, &mut bytes[..len])?;
                for (reg, chunk) in op.regs.iter().zip(bytes.chunks(size)) {
                    let value = little_endian(chunk);
                    warp.regs[*reg as usize][lane] = match op.extend {
                        Some(width) => sign_extend(value, op.size * 8) as u64 & mask(width),
                        None => value,
                    };
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
            self.tally(pc, space, AccessKind::Store, &addresses, part, len as u32);
            for lane in lanes(part) {
                let thread = warp.thread(lane);
                let address = addresses[lane];
                let access = Access { lane, thread, address, len, pc, strong: op.strong, is_read: false };
                let slot = self.locate(space, &access)?;
                let mut bytes = [0u8; MAX_BYTES];
                for (reg, chunk) in op.regs.iter().zip(bytes.chunks_mut(size)) {
                    let value = warp.regs[*reg as usize][lane].to_le_bytes();
                    chunk.copy_from_slice(&value[..size]);
                }
                self.put(&slot, &access, &bytes[..len])?;
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

    /// Reads the bytes of a slot.
    pub(crate) fn fetch(&mut self, slot: &Slot, access: &Access, out: &mut [u8]) -> Exec<()> {
        let end = slot.offset + out.len();
        match slot.space {
            Space::Param => out.copy_from_slice(&self.params[slot.offset..end]),
            Space::Const => out.copy_from_slice(&self.constants[slot.offset..end]),
            Space::Local => {
                let written = self.cta.local.is_written(slot.offset, out.len());
                self.judge(slot.space, access, written, None)?;
                out.copy_from_slice(&self.cta.local.bytes[slot.offset..end]);
            }
            Space::Shared | Space::Global | Space::Generic => {
                let finding = self.check(slot, access, None);
                let region = self.region(slot);
                let written = region.is_written(slot.offset, out.len());
                out.copy_from_slice(&region.bytes[slot.offset..end]);
                self.judge(slot.space, access, written, finding.conflict)?;
            }
        }
        Ok(())
    }

    /// Writes the bytes of a slot.
    pub(crate) fn put(&mut self, slot: &Slot, access: &Access, data: &[u8]) -> Exec<()> {
        match slot.space {
            Space::Param | Space::Const => {
                let kind = crate::fault::FaultKind::IllegalInstruction;
                let message = format!("a store to {} memory", slot.space.as_str());
                return Err(crate::fault::Stop::new(kind, 1 << access.lane, message));
            }
            Space::Local => self.cta.local.store(slot.offset, data),
            Space::Shared | Space::Global | Space::Generic => {
                let finding = self.check(slot, access, Some(data));
                self.judge(slot.space, access, true, finding.conflict)?;
                if finding.benign {
                    *self.stats.benign.entry(access.pc).or_insert(0) += 1;
                }
                self.region_mut(slot).store(slot.offset, data);
            }
        }
        Ok(())
    }

    fn region(&self, slot: &Slot) -> &Region {
        match slot.space {
            Space::Shared => &self.cta.shared,
            _ => &self.memory.buffers[slot.buffer].region,
        }
    }

    fn region_mut(&mut self, slot: &Slot) -> &mut Region {
        match slot.space {
            Space::Shared => &mut self.cta.shared,
            _ => &mut self.memory.buffers[slot.buffer].region,
        }
    }

    /// Tells the shadow of an access, a write if there is `data`.
    fn check(&mut self, slot: &Slot, access: &Access, data: Option<&[u8]>) -> Finding {
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
            None => region.shadow.read(slot.offset, access.len, &actor),
            Some(data) => {
                let old = &region.bytes[slot.offset..slot.offset + data.len()];
                region.shadow.write(slot.offset, old, data, &actor)
            }
        }
    }
}

/// The value of up to eight bytes.
pub(crate) fn little_endian(bytes: &[u8]) -> u64 {
    let mut value = [0u8; 8];
    for (slot, byte) in value.iter_mut().zip(bytes) {
        *slot = *byte;
    }
    u64::from_le_bytes(value)
}
