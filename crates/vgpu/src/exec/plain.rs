//! Loads and stores of defined values that are ordered after all that the shadow memory knows, which most are: what the lanes
//! of a warp share is found out once for all of them.

use crate::exec::access::RegionId;
use crate::exec::machine::Machine;
use crate::exec::memory::{MAX_BYTES, little_endian, put_little_endian};
use crate::exec::warp::Warp;
use crate::isa::Space;
use crate::lanes::{Lanes, lanes};
use crate::memory::{Region, map};
use crate::op::{Load, Store};
use crate::shadow::{Accessor, Record};

/// The lanes of a warp that access one region, with the region's first address.
#[derive(Clone, Copy)]
struct PlainAccess<'a> {
    id: RegionId,
    base: u64,
    addresses: &'a Lanes,
    exec: u32,
    /// Bytes that one lane accesses.
    len: usize,
    is_write: bool,
    pc: u32,
}

impl Machine<'_> {
    /// Performs the loads that are plain, and returns their lanes.
    pub(super) fn load_plain(
        &mut self,
        warp: &mut Warp,
        (space, exec): (Space, u32),
        op: &Load,
        addresses: &Lanes,
    ) -> u32 {
        if op.strong.is_some() || op.extend.is_some() || warp.marks.is_some() || !self.known_races.is_empty() {
            return 0;
        }
        let size = op.size as usize;
        let Some((id, base)) = self.plain_region(space, addresses, exec) else { return 0 };
        let (len, pc) = (size * op.regs.len(), warp.pc);
        let access = PlainAccess { id, base, addresses, exec, len, is_write: false, pc };
        let id = warp.id;
        self.each_plain(&access, id, |lane, region, offset| {
            for (reg, bytes) in op.regs.iter().zip(region.bytes[offset..offset + len].chunks_exact(size)) {
                warp.regs[*reg as usize][lane] = little_endian(bytes);
            }
        })
    }

    /// Performs the stores that are plain, and returns their lanes.
    pub(super) fn store_plain(
        &mut self,
        warp: &Warp,
        (space, exec): (Space, u32),
        op: &Store,
        addresses: &Lanes,
    ) -> u32 {
        let is_judged = self.apart[warp.pc as usize].is_some() || self.any_wins[warp.pc as usize];
        let is_whole = op.runs.len() == 1 && op.runs[0].len() == op.regs.len();
        if op.strong.is_some() || warp.marks.is_some() || !is_whole || is_judged {
            return 0;
        }
        let size = op.size as usize;
        let Some((id, base)) = self.plain_region(space, addresses, exec) else { return 0 };
        let is_protected = match id {
            RegionId::Buffer(index) => self.memory.buffers[index].is_read_only,
            _ => !self.cta.mbarriers.is_empty(),
        };
        if is_protected {
            return 0;
        }
        let (len, pc) = (size * op.regs.len(), warp.pc);
        let access = PlainAccess { id, base, addresses, exec, len, is_write: true, pc };
        let (mut data, mut changes) = ([0; MAX_BYTES], false);
        let data = &mut data[..len];
        let done = self.each_plain(&access, warp.id, |lane, region, offset| {
            for (reg, bytes) in op.regs.iter().zip(data.chunks_exact_mut(size)) {
                put_little_endian(warp.regs[*reg as usize][lane], bytes);
            }
            // A read of bytes that were never written would make the host map their pages twice.
            changes = changes || !region.is_written(offset, len) || region.bytes[offset..offset + len] != *data;
            region.written_bytes(offset, len).copy_from_slice(data);
        });
        self.changes += u64::from(changes);
        done
    }

    /// The region that the first lane accesses, and its first address.
    fn plain_region(&self, space: Space, addresses: &Lanes, exec: u32) -> Option<(RegionId, u64)> {
        match space {
            Space::Global | Space::Generic => {
                let index = self.memory.at_or_below(addresses[exec.trailing_zeros() as usize & 31])?;
                Some((RegionId::Buffer(index), self.memory.buffers[index].base))
            }
            Space::Shared => Some((RegionId::Shared, map::shared_start(self.cta.rank))),
            Space::Local | Space::Param | Space::Const => None,
        }
    }

    /// Records the accesses that are plain, calls `f` with the lane, the region and the offset in it, and returns their
    /// lanes.
    fn each_plain(&mut self, access: &PlainAccess<'_>, warp: u32, mut f: impl FnMut(usize, &mut Region, usize)) -> u32 {
        let PlainAccess { id, base, addresses, exec, len, is_write, pc } = *access;
        let (cta, memory) = (&mut self.cta, &mut *self.memory);
        let clock = cta.clocks.own(warp * 32 + exec.trailing_zeros() % 32);
        let record = Record { cta: cta.number, warp: warp as u16, scope: None, clock, pc };
        let Some(record) = cta.recent[warp as usize].number(&mut memory.records, record) else { return 0 };
        let region = match id {
            RegionId::Buffer(index) => &mut memory.buffers[index].region,
            _ => &mut cta.shared,
        };
        if !region.undefined.is_empty() || !len.is_power_of_two() {
            return 0;
        }
        let mut done = 0;
        for lane in lanes(exec) {
            let thread = warp * 32 + lane as u32;
            let offset = addresses[lane].wrapping_sub(base);
            let is_inside = offset.checked_add(len as u64).is_some_and(|end| end <= region.bytes.len() as u64);
            let is_aligned = addresses[lane] & (len as u64 - 1) == 0;
            let offset = offset as usize;
            if !is_inside || !is_aligned || !(is_write || region.is_written(offset, len)) {
                continue;
            }
            if self.options.check_races {
                let accessor = Accessor {
                    records: &memory.records,
                    stamp: memory.records.stamp(record, lane as u32),
                    cta: cta.number,
                    first_cta: self.first_cta,
                    cluster: &cta.cluster,
                    thread,
                    base: cta.clocks.base(thread),
                    far: cta.clocks.far(thread),
                    copies: cta.clocks.copies(thread),
                    fenced: None,
                    scope: None,
                    reads: !is_write,
                    notes_reads: false,
                };
                let is_recorded = cta.clocks.own(thread) == clock;
                if !is_recorded || !region.shadow.record_simple(offset, len, is_write, &accessor) {
                    continue;
                }
            }
            f(lane, region, offset);
            done |= 1 << lane;
        }
        done
    }
}
