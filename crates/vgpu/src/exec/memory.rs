//! Loads and stores.

use crate::clock::copies_of;
use crate::exec::access::{Access, RegionId, RegionSlot, Slot, WarpAccess, resolve_spaces};
use crate::exec::cta::Cta;
use crate::exec::lanes::lanes;
use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::isa::{Space, mask, sign_extend};
use crate::op::{Load, Reg, Store};
use crate::report::AccessKind;
use crate::shadow::{Accessor, CheckResult, Record, Who};
use crate::undefined::Undefined;
use crate::{banks, memory::Region};

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
            self.tally(pc, &WarpAccess { space, kind, addresses: &addresses, exec: part, bytes });
            for lane in lanes(part) {
                let thread = warp.thread(lane);
                let address = addresses[lane];
                let strong = op.strong;
                let access = Access {
                    lane,
                    thread,
                    address,
                    len,
                    pc,
                    strong,
                    copy: None,
                    is_update: false,
                    is_read: true,
                    is_load: true,
                };
                let slot = self.locate(space, &access)?;
                let mut bytes = [0u8; MAX_BYTES];
                let undefined = self.fetch(&slot, &access, &mut bytes[..len])?;
                let extended = |value: u64| match op.extend {
                    Some(width) => sign_extend(value, op.size * 8) as u64 & mask(width),
                    None => value,
                };
                for (reg, chunk) in op.regs.iter().zip(bytes.chunks(size)) {
                    warp.regs[*reg as usize][lane] = extended(little_endian(chunk));
                }
                if warp.marks.is_some() || undefined.is_some() {
                    for (number, reg) in op.regs.iter().enumerate() {
                        let bytes = undefined.as_ref().map(|bytes| &bytes[number * size..(number + 1) * size]);
                        let marks = bytes.map_or(Undefined::default(), of_bytes);
                        warp.mark(*reg, lane, marks.with(extended(marks.bits)));
                    }
                }
            }
        }
        Ok(())
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
            self.tally(pc, &WarpAccess { space, kind, addresses: &addresses, exec: part, bytes });
            for lane in lanes(part) {
                let thread = warp.thread(lane);
                let address = addresses[lane];
                let strong = op.strong;
                let access = Access {
                    lane,
                    thread,
                    address,
                    len,
                    pc,
                    strong,
                    copy: None,
                    is_update: false,
                    is_read: false,
                    is_load: false,
                };
                self.must_be_aligned(space, &access)?;
                for run in &op.runs {
                    let regs = &op.regs[run.clone()];
                    let address = address + (run.start * size) as u64;
                    let access = Access { address, len: regs.len() * size, ..access };
                    let slot = self.place(space, &access)?;
                    let mut bytes = [0u8; MAX_BYTES];
                    for (reg, chunk) in regs.iter().zip(bytes.chunks_mut(size)) {
                        let value = warp.regs[*reg as usize][lane].to_le_bytes();
                        chunk.copy_from_slice(&value[..size]);
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
        let WarpAccess { space, kind, addresses, exec, bytes } = *access;
        let buffer = match space {
            Space::Global | Space::Generic => {
                lanes(exec).next().and_then(|lane| self.memory.at_or_below(addresses[lane]))
            }
            Space::Shared | Space::Local | Space::Param | Space::Const => None,
        };
        let tally = self.stats.tally(pc, (space, buffer), kind, bytes);
        tally.executions += 1;
        tally.bytes += u64::from(bytes) * u64::from(exec.count_ones());
        match space {
            Space::Shared => {
                let found = self.banks.wavefronts(addresses, exec, bytes, kind == AccessKind::Load);
                tally.wavefronts += found.count;
                tally.ideal_wavefronts += found.ideal;
            }
            Space::Global | Space::Generic => {
                let sectors = banks::sectors(addresses, exec, bytes);
                tally.sectors += sectors.count;
                tally.ideal_sectors += sectors.ideal;
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
            RegionId::Shared | RegionId::Buffer(_) => self.races_of(slot, access)?,
        };
        if access.strong.is_some() {
            self.observe(slot, access);
        }
        let region = self.region(slot.id);
        out[..slot.len].copy_from_slice(&region.bytes[slot.offset..slot.end()]);
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
            RegionId::Local => self.region_mut(slot.id).store(slot.offset, data),
            RegionId::Shared => self.put_checked(slot, access, data)?,
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
        let marked = undefined.iter().enumerate().filter(|(_, byte)| byte.is_some());
        self.region_mut(slot.id).undefined.extend(marked.map(|(at, byte)| (slot.offset + at, *byte)));
        Ok(())
    }

    /// Writes bytes of memory that threads share, after it has checked how the write is ordered.
    fn put_checked(&mut self, slot: &RegionSlot, access: &Access, data: &[u8]) -> ExecResult<()> {
        self.must_not_hit_mbarrier(slot, access)?;
        let mut result = self.check(slot, access, Some(data))?;
        if self.may_lose(access.pc) {
            result.conflicts.retain(|range| !(range.conflict.other_is_write && self.may_lose(range.conflict.pc)));
        }
        if let Some(first) = result.own_previous_write.filter(|first| self.are_apart(*first, access.pc)) {
            return Err(self.not_apart(slot.id.space(), access, first));
        }
        if result.benign {
            *self.stats.benign.entry(access.pc).or_insert(0) += 1;
        }
        self.region_mut(slot.id).store(slot.offset, data);
        if access.strong.is_some() {
            self.hand_over(slot, access);
        }
        self.apply_conflicts(slot, access, &result.conflicts)
    }

    /// Whether two instructions are in the same group of stores that are declared disjoint.
    fn are_apart(&self, one: u32, other: u32) -> bool {
        let group = |pc: u32| self.apart[pc as usize];
        group(one).is_some_and(|known| group(other) == Some(known))
    }

    /// Whether an instruction is a store whose value another store may replace (`any_wins`).
    fn may_lose(&self, pc: u32) -> bool {
        self.any_wins[pc as usize]
    }

    /// Records an access in the shadow memory: a write if there is `data`, which may be empty, otherwise a read.
    pub(crate) fn check(&mut self, slot: &RegionSlot, access: &Access, data: Option<&[u8]>) -> ExecResult<CheckResult> {
        if !self.options.check_races {
            return Ok(CheckResult::default());
        }
        let cta = &mut self.cta;
        let (thread, scope) = (access.thread, access.strong.map(|strong| strong.scope));
        let Who { cta: agent, thread: by, clock } = agent(cta, access);
        let record = Record { cta: agent, warp: (by / 32) as u16, scope, clock, pc: access.pc };
        let memory = &mut *self.memory;
        let own = access.copy.is_none().then(|| &mut cta.recent[thread as usize / 32]);
        let recent = own.unwrap_or(&mut cta.recent_of_copies);
        let Some(record) = recent.number(&mut memory.records, record) else {
            return Err(RaisedFault::new(FaultKind::StepLimit, 1 << access.lane, TOO_MANY_RECORDS));
        };
        let is_engine = access.copy.is_some_and(|agent| agent.is_engine);
        let accessor = Accessor {
            records: &memory.records,
            stamp: memory.records.stamp(record, by % 32),
            cta: cta.number,
            first_cta: self.first_cta,
            thread,
            base: cta.clocks.base(thread),
            far: cta.clocks.far(thread),
            copies: cta.clocks.copies(thread),
            fenced: is_engine.then(|| cta.clocks.visible(thread).of(slot.id != RegionId::Shared)),
            scope,
            reads: access.is_read || access.is_update,
        };
        let region: &mut Region = match slot.id {
            RegionId::Shared => &mut cta.shared,
            RegionId::Local => &mut cta.local,
            RegionId::Buffer(index) => &mut memory.buffers[index].region,
        };
        Ok(match data {
            None => region.shadow.read(slot.offset, slot.len, &accessor),
            Some(data) => {
                // Without data, as for a copy that writes later, the value is not known to be equal.
                let (start, len) = (slot.offset, slot.len);
                let values = (data.len() == len).then(|| (&region.bytes[start..start + len], data));
                region.shadow.write(start, len, values, &accessor)
            }
        })
    }

    /// A strong read learns what the releases in the word hand over.
    fn observe(&mut self, slot: &RegionSlot, access: &Access) {
        let Some(strong) = access.strong.filter(|_| self.options.check_races) else { return };
        self.strong_reads += 1;
        let region: &Region = match slot.id {
            RegionId::Shared => &self.cta.shared,
            RegionId::Local => &self.cta.local,
            RegionId::Buffer(index) => &self.memory.buffers[index].region,
        };
        if let Some(flag) = region.flags.get(&slot.offset) {
            self.cta.clocks.read(access.thread, flag, strong.scope, strong.acquires);
        }
    }

    /// A strong write hands over what its thread has released. A write that reads too continues the release sequence of
    /// the word; another one ends it (PTX ISA, section 8.8).
    fn hand_over(&mut self, slot: &RegionSlot, access: &Access) {
        let Some(strong) = access.strong.filter(|_| self.options.check_races) else { return };
        self.effects += 1;
        let released = self.cta.clocks.written(access.thread, strong.scope, strong.releases);
        let flags = &mut self.region_mut(slot.id).flags;
        if !access.is_update {
            flags.remove(&slot.offset);
        }
        if let Some(released) = released {
            flags.entry(slot.offset).or_default().add(released);
        }
    }
}

/// Who makes an access, as records name it: a thread of the CTA, or one of its copies.
pub(crate) fn agent(cta: &Cta, access: &Access) -> Who {
    match access.copy {
        None => Who { cta: cta.number, thread: access.thread, clock: cta.clocks.own(access.thread) },
        Some(agent) => Who { cta: copies_of(cta.number), thread: agent.thread, clock: agent.number },
    }
}

/// The message of a run with more records of accesses than can be numbered.
const TOO_MANY_RECORDS: &str = "the run makes more accesses than its race checks can record; run it without them";

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
    let mut value = [0u8; 8];
    for (slot, byte) in value.iter_mut().zip(bytes) {
        *slot = *byte;
    }
    u64::from_le_bytes(value)
}
