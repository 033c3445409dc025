//! Loads and stores of defined values that are ordered after all that the shadow memory knows, which most are: what the lanes
//! of a warp share is found out once for all of them.

use std::ops::Range;

use crate::exec::access::{RegionId, WarpAccess};
use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::isa::Space;
use crate::lanes::{FULL, IN_ORDER, LaneOrder, Lanes, lanes};
use crate::memory::{Region, map};
use crate::op::{Load, Reg, Store};
use crate::report::AccessKind;
use crate::shadow::{Accessor, Actor, KnownStamps, OrderNumber, Record, Records, Sharing};

/// The lanes of a warp that access one region, with the region's first address.
#[derive(Clone, Copy)]
struct PlainAccess<'a> {
    id: RegionId,
    base: u64,
    access: &'a WarpAccess<'a>,
    warp: u32,
    pc: u32,
}

/// What the rows of an access have in common.
struct Memo {
    /// The number of the last record, with its clock.
    record: Option<(u32, u32)>,
    /// What lanes that are alike know.
    known: KnownStamps,
}

impl Memo {
    fn new() -> Memo {
        Memo { record: None, known: KnownStamps::new() }
    }
}

impl PlainAccess<'_> {
    fn is_write(&self) -> bool {
        self.access.kind == AccessKind::Store
    }

    /// Whether several lanes load the same bytes, and no others do.
    fn is_broadcast(&self) -> bool {
        let WarpAccess { addresses, exec, .. } = *self.access;
        let first = addresses[exec.trailing_zeros() as usize & 31];
        !self.is_write() && exec.count_ones() > 1 && lanes(exec).all(|lane| addresses[lane] == first)
    }
}

/// The lanes of an access in an order in which they form rows: of adjacent positions, at adjacent addresses.
struct Positions<'a> {
    access: &'a WarpAccess<'a>,
    order: &'a LaneOrder,
    number: OrderNumber,
    /// The positions with lanes that access memory.
    active: u32,
    /// The positions whose lane is like that at the next position.
    alike: u32,
}

impl<'a> Positions<'a> {
    fn new(access: &'a WarpAccess<'a>, (alike, is_uniform): (u32, bool), records: &mut Records) -> Positions<'a> {
        let order = &access.order;
        let is_free = !order.is_lane_order && is_uniform;
        match is_free.then(|| records.order(&order.lanes)).flatten() {
            None => Positions { access, order: &IN_ORDER, number: OrderNumber::LANES, active: access.exec, alike },
            Some(number) => {
                let active = FULL >> (32 - order.count);
                Positions { access, order: &order.lanes, number, active, alike: FULL }
            }
        }
    }

    fn address(&self, position: usize) -> u64 {
        self.access.addresses[usize::from(self.order[position])]
    }

    /// The end of the row that begins at a position.
    fn end_of_row(&self, first: usize) -> usize {
        let goes_on = |at: usize| {
            let both = self.active >> at & 1 == 1 && self.alike >> (at - 1) & 1 == 1;
            both && self.address(at) == self.address(at - 1).wrapping_add(self.access.bytes.into())
        };
        (first + 1..32).find(|at| !goes_on(*at)).unwrap_or(32)
    }

    /// Calls `f` with the first position and the end of each row.
    fn rows(&self) -> impl Iterator<Item = Range<usize>> {
        let mut rest = self.active;
        std::iter::from_fn(move || {
            let first = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            let end = self.end_of_row(first);
            rest &= FULL.checked_shl(end as u32).unwrap_or(0);
            Some(first..end)
        })
    }
}

/// A row of lanes that access adjacent bytes, from an offset in the region.
struct Row<'a> {
    lanes: &'a [u8],
    offset: usize,
}

impl Machine<'_> {
    /// Performs the loads that are plain, and returns their lanes.
    pub(super) fn load_plain(&mut self, warp: &mut Warp, op: &Load, access: &WarpAccess<'_>) -> u32 {
        if op.strong.is_some() || op.extend.is_some() || warp.marks.is_some() || !self.known_races.is_empty() {
            return 0;
        }
        let (size, len) = (op.size as usize, access.bytes as usize);
        let Some((id, base)) = self.plain_region(access) else { return 0 };
        let access = PlainAccess { id, base, access, warp: warp.id, pc: warp.pc };
        self.each_row(&access, |region, row| {
            let bytes = &region.bytes[row.offset..row.offset + len * row.lanes.len()];
            read_registers(&mut warp.regs, &op.regs, row.lanes, bytes, size);
        })
    }

    /// Calls `f` with each lane and the bytes that it reads, for the reads that are plain, and returns their lanes.
    pub(super) fn read_plain(&mut self, warp: &Warp, access: &WarpAccess<'_>, mut f: impl FnMut(usize, &[u8])) -> u32 {
        if !self.known_races.is_empty() {
            return 0;
        }
        let len = access.bytes as usize;
        let Some((id, base)) = self.plain_region(access) else { return 0 };
        let access = PlainAccess { id, base, access, warp: warp.id, pc: warp.pc };
        self.each_row(&access, |region, row| {
            let all = region.bytes[row.offset..].chunks(len);
            row.lanes.iter().zip(all).for_each(|(lane, bytes)| f(usize::from(*lane), bytes));
        })
    }

    /// Performs the stores that are plain, and returns their lanes.
    pub(super) fn store_plain(&mut self, warp: &Warp, op: &Store, access: &WarpAccess<'_>) -> u32 {
        let is_judged = self.apart[warp.pc as usize].is_some() || self.any_wins[warp.pc as usize];
        let is_whole = op.runs.len() == 1 && op.runs[0].len() == op.regs.len();
        if op.strong.is_some() || warp.marks.is_some() || !is_whole || is_judged {
            return 0;
        }
        let (size, len) = (op.size as usize, access.bytes as usize);
        let Some((id, base)) = self.plain_region(access) else { return 0 };
        let is_protected = match id {
            RegionId::Buffer(index) => self.memory.buffers[index].is_read_only,
            _ => !self.cta.mbarriers.is_empty(),
        };
        if is_protected {
            return 0;
        }
        let access = PlainAccess { id, base, access, warp: warp.id, pc: warp.pc };
        let mut changes = false;
        let done = self.each_row(&access, |region, row| {
            let all = len * row.lanes.len();
            // A read of bytes that were never written would make the host map their pages twice.
            changes |= !region.is_written(row.offset, all);
            let bytes = region.written_bytes(row.offset, all);
            changes |= write_registers(&warp.regs, &op.regs, row.lanes, bytes, (size, !changes));
        });
        self.changes += u64::from(changes);
        done
    }

    /// The region that the first lane accesses, and its first address.
    fn plain_region(&self, access: &WarpAccess<'_>) -> Option<(RegionId, u64)> {
        match access.space {
            Space::Global | Space::Generic => {
                let index = self.memory.at_or_below(access.addresses[access.exec.trailing_zeros() as usize & 31])?;
                Some((RegionId::Buffer(index), self.memory.buffers[index].base))
            }
            Space::Shared => Some((RegionId::Shared, map::shared_start(self.cta.rank))),
            Space::Local | Space::Param | Space::Const => None,
        }
    }

    /// Records the accesses that are plain, calls `f` with the region and each row of lanes, and returns the lanes.
    fn each_row(&mut self, plain: &PlainAccess<'_>, mut f: impl FnMut(&mut Region, &Row<'_>)) -> u32 {
        let PlainAccess { base, access, warp, .. } = *plain;
        let len = access.bytes as usize;
        let checks = self.options.check_races;
        let alike = if checks { self.cta.clocks.alike(warp) } else { FULL };
        let is_uniform = !checks || self.cta.clocks.are_alike(warp, access.exec);
        let positions = Positions::new(access, (alike, is_uniform), &mut self.memory.records);
        if is_uniform && plain.is_broadcast() {
            let sharing = Sharing::Together { lanes: access.exec };
            let first = access.exec.trailing_zeros();
            let offset = access.addresses[first as usize].wrapping_sub(base);
            let by = (first, first);
            let Some((region, offset)) = self.plain_bytes(plain, (offset, len), by, sharing, &mut Memo::new()) else {
                return 0;
            };
            lanes(access.exec).for_each(|lane| f(region, &Row { lanes: &[lane as u8], offset }));
            return access.exec;
        }
        let (mut done, mut memo) = (0, Memo::new());
        let sharing = Sharing::Row { bytes: len as u8, order: positions.number };
        for row in positions.rows() {
            if !is_uniform {
                memo.known = KnownStamps::new();
            }
            let (all, offset) = (len * row.len(), positions.address(row.start).wrapping_sub(base));
            let lanes = &positions.order[row.clone()];
            let by = (row.start as u32, u32::from(lanes[0]));
            let Some((region, offset)) = self.plain_bytes(plain, (offset, all), by, sharing, &mut memo) else {
                continue;
            };
            f(region, &Row { lanes, offset });
            done = lanes.iter().fold(done, |done, lane| done | 1 << lane);
        }
        done
    }

    /// The region with `len` bytes at an offset, if the access to them is plain; it is recorded as one by a lane and those
    /// that follow its position.
    fn plain_bytes(
        &mut self,
        plain: &PlainAccess<'_>,
        (offset, len): (u64, usize),
        (position, lane): (u32, u32),
        sharing: Sharing,
        memo: &mut Memo,
    ) -> Option<(&mut Region, usize)> {
        let (cta, memory) = (&mut self.cta, &mut *self.memory);
        let PlainAccess { id, access, warp, pc, .. } = *plain;
        let region = match id {
            RegionId::Buffer(index) => &mut memory.buffers[index].region,
            _ => &mut cta.shared,
        };
        let each = u64::from(access.bytes);
        let is_inside = offset.checked_add(len as u64).is_some_and(|end| end <= region.bytes.len() as u64);
        let is_aligned = each.is_power_of_two() && access.addresses[lane as usize] & (each - 1) == 0;
        let (offset, is_write) = (offset as usize, plain.is_write());
        if !region.undefined.is_empty() || !is_inside || !is_aligned || !(is_write || region.is_written(offset, len)) {
            return None;
        }
        if !self.options.check_races {
            return Some((region, offset));
        }
        let thread = warp * 32 + lane;
        let clock = cta.clocks.own(thread);
        let record = match memo.record {
            Some((record, of)) if of == clock => record,
            _ => {
                let record = Record { cta: cta.number, warp: warp as u16, scope: None, clock, pc, sharing };
                cta.recent[warp as usize].number(&mut memory.records, record)?
            }
        };
        memo.record = Some((record, clock));
        let actor = Actor {
            records: &memory.records,
            sharing,
            cta: cta.number,
            first_cta: self.first_cta,
            cluster: &cta.cluster,
            base: cta.clocks.base(thread),
            far: cta.clocks.far(thread),
            copies: cta.clocks.copies(thread),
            fenced: None,
            scope: None,
            reads: !is_write,
            notes_reads: false,
            known: &memo.known,
        };
        let stamp = memory.records.stamp(record, position);
        let accessor = Accessor { by: &actor, stamp, thread, size: len };
        let is_simple = region.shadow.record_simple(offset, len, is_write, &accessor);
        let is_recorded = is_simple || {
            let is_broadcast = matches!(sharing, Sharing::Together { .. });
            is_broadcast && region.shadow.read(offset, len, &accessor).conflicts.is_empty()
        };
        is_recorded.then_some((region, offset))
    }
}

/// Reads registers of each lane from its bytes, `size` bytes each.
fn read_registers(warp: &mut [Lanes], regs: &[Reg], lanes: &[u8], bytes: &[u8], size: usize) {
    match size {
        1 => read_each::<1>(warp, regs, lanes, bytes),
        2 => read_each::<2>(warp, regs, lanes, bytes),
        4 => read_each::<4>(warp, regs, lanes, bytes),
        _ => read_each::<8>(warp, regs, lanes, bytes),
    }
}

fn read_each<const SIZE: usize>(warp: &mut [Lanes], regs: &[Reg], lanes: &[u8], bytes: &[u8]) {
    for (lane, bytes) in lanes.iter().zip(bytes.chunks_exact(SIZE * regs.len())) {
        for (reg, value) in regs.iter().zip(bytes.as_chunks::<SIZE>().0) {
            let mut word = [0; 8];
            word[..SIZE].copy_from_slice(value);
            warp[*reg as usize][usize::from(*lane)] = u64::from_le_bytes(word);
        }
    }
}

/// Writes registers of each lane to its bytes, `size` bytes each. Returns whether a byte becomes another, if `compares`.
fn write_registers(
    warp: &[Lanes],
    regs: &[Reg],
    lanes: &[u8],
    bytes: &mut [u8],
    (size, compares): (usize, bool),
) -> bool {
    match size {
        1 => write_each::<1>(warp, regs, lanes, bytes, compares),
        2 => write_each::<2>(warp, regs, lanes, bytes, compares),
        4 => write_each::<4>(warp, regs, lanes, bytes, compares),
        _ => write_each::<8>(warp, regs, lanes, bytes, compares),
    }
}

fn write_each<const SIZE: usize>(
    warp: &[Lanes],
    regs: &[Reg],
    lanes: &[u8],
    bytes: &mut [u8],
    compares: bool,
) -> bool {
    let mut changes = false;
    for (lane, bytes) in lanes.iter().zip(bytes.chunks_exact_mut(SIZE * regs.len())) {
        for (reg, slot) in regs.iter().zip(bytes.as_chunks_mut::<SIZE>().0) {
            let mut word = [0; SIZE];
            word.copy_from_slice(&warp[*reg as usize][usize::from(*lane)].to_le_bytes()[..SIZE]);
            changes |= compares && *slot != word;
            *slot = word;
        }
    }
    changes
}
