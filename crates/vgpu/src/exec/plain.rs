//! Loads and stores of defined values that are ordered after all that the shadow memory knows, which most are: what the lanes
//! of a warp share is found out once for all of them.

use std::ops::Range;

use crate::exec::access::{RegionId, WarpAccess};
use crate::exec::machine::Machine;
use crate::exec::rows::Positions;
use crate::exec::warp::Warp;
use crate::isa::Space;
use crate::lanes::{FULL, IN_ORDER, LaneOrder, Lanes, lanes};
use crate::memory::{Bytes, Region, map};
use crate::op::{Load, Reg, Store};
use crate::report::AccessKind;
use crate::shadow::{Accessor, Actor, KnownStamps, Record, Shadow, Sharing};

/// Bytes of a cache line of the host, or fewer.
const LINE: u64 = 64;

/// The lanes of a warp that access one region, with the region's first address.
#[derive(Clone, Copy)]
struct PlainAccess<'a> {
    id: RegionId,
    base: u64,
    access: &'a WarpAccess<'a>,
    warp: u32,
    pc: u32,
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

/// A row of lanes that access adjacent bytes, from an offset in the region.
struct Row<'a> {
    lanes: &'a [u8],
    offset: usize,
}

impl Row<'_> {
    /// All its bytes, `len` for each lane.
    fn bytes(&self, len: usize) -> Range<usize> {
        self.offset..self.offset + len * self.lanes.len()
    }
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
            let bytes = region.bytes.in_page(row.bytes(len));
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
            let all = region.bytes.in_page(row.bytes(len));
            row.lanes.iter().zip(all.chunks(len)).for_each(|(lane, bytes)| f(usize::from(*lane), bytes));
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
            let all = row.bytes(len);
            changes |= !region.is_written(all.start, all.len());
            let bytes = region.written_bytes(all);
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
        let PlainAccess { access, warp, .. } = *plain;
        let checks = self.options.check_races;
        let alike = if checks { self.cta.clocks.alike(warp) } else { FULL };
        let is_uniform = !checks || self.cta.clocks.are_alike(warp, access.exec);
        if is_uniform && plain.is_broadcast() {
            let sharing = Sharing::Together { lanes: access.exec };
            let first = access.exec.trailing_zeros() as usize;
            return self.each_alike(plain, (&IN_ORDER, sharing), std::iter::once(first..first + 1), &mut f);
        }
        let positions = Positions::new(access, (alike, is_uniform), &mut self.memory.records);
        let by = (positions.order, Sharing::Row { bytes: access.bytes as u8, order: positions.number });
        if is_uniform {
            return self.each_alike(plain, by, positions.rows(), &mut f);
        }
        let each = |row| self.each_alike(plain, by, std::iter::once(row), &mut f);
        positions.rows().map(each).fold(0, |done, lanes| done | lanes)
    }

    /// As [`Machine::each_row`], for rows of positions whose lanes are alike.
    fn each_alike(
        &mut self,
        plain: &PlainAccess<'_>,
        (order, sharing): (&LaneOrder, Sharing),
        rows: impl Iterator<Item = Range<usize>> + Clone,
        f: &mut impl FnMut(&mut Region, &Row<'_>),
    ) -> u32 {
        let Some(first) = rows.clone().next().map(|row| order[row.start]) else { return 0 };
        let (cta, memory) = (&mut self.cta, &mut *self.memory);
        let PlainAccess { id, base, access, warp, pc } = *plain;
        let region = match id {
            RegionId::Buffer(index) => &mut memory.buffers[index].region,
            _ => &mut cta.shared,
        };
        let (len, is_write) = (access.bytes as usize, plain.is_write());
        let reach = match id {
            RegionId::Buffer(_) => region.bytes.len(),
            _ if is_write => cta.writable_shared,
            _ => region.bytes.len(),
        };
        if !region.undefined.is_empty() || !len.is_power_of_two() {
            return 0;
        }
        let thread = warp * 32 + u32::from(first);
        let clock = cta.clocks.own(thread);
        let record = Record { cta: cta.number, warp: warp as u16, scope: None, clock, pc, sharing };
        let Some(record) = cta.recent[warp as usize].number(&mut memory.records, record) else { return 0 };
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
            known: &KnownStamps::new(),
        };
        // Not before a write: a page that was read first is mapped twice.
        if !is_write && matches!(id, RegionId::Buffer(_)) {
            touch(region, rows.clone().map(|row| access.addresses[usize::from(order[row.start])].wrapping_sub(base)));
        }
        let mut done = 0;
        for row in rows {
            let (row_lanes, all) = (&order[row.clone()], len * row.len());
            let address = access.addresses[usize::from(row_lanes[0])];
            let Some(offset) = offset_in_reach(address, base, (len, all), reach) else { continue };
            if !is_write && !region.is_written(offset, all) {
                continue;
            }
            let thread = warp * 32 + u32::from(row_lanes[0]);
            let stamp = memory.records.stamp(record, row.start as u32);
            let who = Accessor { by: &actor, stamp, thread, size: all };
            if self.options.check_races && !record_plain(&mut region.shadow, offset, is_write, &who) {
                continue;
            }
            match sharing {
                Sharing::Together { lanes: together } => {
                    lanes(together).for_each(|lane| f(region, &Row { lanes: &[lane as u8], offset }));
                    done |= together;
                }
                Sharing::Row { .. } | Sharing::Alone => {
                    f(region, &Row { lanes: row_lanes, offset });
                    done = row_lanes.iter().fold(done, |done, lane| done | 1 << lane);
                }
            }
        }
        done
    }
}

/// The offset of a row of `all` bytes at an address, if it ends within `reach`, is aligned to the `len` bytes of a lane, a power
/// of two, and is in one page.
fn offset_in_reach(address: u64, base: u64, (len, all): (usize, usize), reach: usize) -> Option<usize> {
    let offset = usize::try_from(address.checked_sub(base)?).ok()?;
    let end = offset.checked_add(all).filter(|end| *end <= reach)?;
    (Bytes::are_in_one_page(&(offset..end)) && address & (len as u64 - 1) == 0).then_some(offset)
}

/// Loads what the rows at these offsets need into the host's caches, all at the same time.
fn touch(region: &Region, offsets: impl Iterator<Item = u64>) {
    let byte = |at: u64| usize::try_from(at).ok().and_then(|at| region.bytes.get(at)).unwrap_or(0);
    let all = offsets.fold(0, |all, offset| all ^ byte(offset) ^ byte(offset.wrapping_add(LINE)));
    std::hint::black_box(all);
}

/// Records an access if it is plain.
fn record_plain(shadow: &mut Shadow, offset: usize, is_write: bool, who: &Accessor<'_>) -> bool {
    let is_broadcast = matches!(who.by.sharing, Sharing::Together { .. });
    shadow.record_simple(offset, who.size, is_write, who)
        || is_broadcast && shadow.read(offset, who.size, who).conflicts.is_empty()
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

fn write_each<const SIZE: usize>(warp: &[Lanes], regs: &[Reg], lanes: &[u8], bytes: &mut [u8], compares: bool) -> bool {
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
