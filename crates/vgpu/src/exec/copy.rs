//! `cp.async`: a thread starts copies, commits them in groups, and waits for groups.
//!
//! A copy is checked where it starts, as an access of its own that nobody is ordered after, and moves its bytes when
//! its thread waits for it, or earlier if the schedule says so. By the wait, the thread is ordered after its copies.

use std::collections::VecDeque;

use crate::clock::{Agent, Contribution};
use crate::exec::access::{Access, RegionSlot, Slot, WarpAccess, resolve_spaces};
use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, Fault, FaultKind, RaisedFault};
use crate::isa::Space;
use crate::lanes::lanes;
use crate::op::{AsyncCopy, CopyOp};
use crate::report::AccessKind;
use crate::shadow::ConflictRange;
use crate::undefined::Undefined;

/// A copy of one lane that has not moved its bytes.
#[derive(Clone, Debug)]
struct Copy {
    lane: usize,
    /// Its number among the copies of its warp; lanes that start one together share it.
    number: u32,
    /// `None` if nothing is read.
    from: Option<RegionSlot>,
    to: RegionSlot,
    /// The read.
    access: Access,
    /// Bytes of the source that race.
    races: Vec<ConflictRange>,
}

/// What the copies of a warp do, in order.
#[derive(Clone, Debug)]
enum Pending {
    Copy(Copy),
    /// Arrives at the mbarrier at `slot` when the lane's copies up to number `last` are done.
    Arrive {
        lane: usize,
        last: u32,
        slot: RegionSlot,
        before: Contribution,
        pc: u32,
    },
}

/// The copies of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    /// Number of the last copy.
    last: u32,
    pending: VecDeque<Pending>,
    /// For each lane, the number of its last copy.
    last_of: [u32; 32],
    /// For each lane, the number of the last copy in each of its pending groups.
    groups: [VecDeque<u32>; 32],
}

impl Copies {
    /// A lane arrives at an mbarrier when its copies so far are done.
    pub(crate) fn arrive_later(&mut self, lane: usize, slot: &RegionSlot, before: Contribution, pc: u32) {
        let last = self.last_of[lane];
        self.pending.push_back(Pending::Arrive { lane, last, slot: *slot, before, pc });
    }
}

impl Machine<'_> {
    pub(crate) fn copy(&mut self, warp: &Warp, exec: u32, op: &CopyOp) -> ExecResult<()> {
        match op {
            CopyOp::Start(copy) => self.start_copies(warp, exec, copy)?,
            CopyOp::Commit => {
                let copies = &mut self.cta.copies[warp.id as usize];
                lanes(exec).for_each(|lane| copies.groups[lane].push_back(copies.last_of[lane]));
            }
            CopyOp::WaitGroup { pending } => self.wait_for_groups(warp, exec, *pending as usize)?,
            CopyOp::WaitAll => {
                for lane in lanes(exec) {
                    let copies = &mut self.cta.copies[warp.id as usize];
                    copies.groups[lane].clear();
                    let last = copies.last_of[lane];
                    self.finish_copies(warp.id, lane, last)?;
                }
            }
        }
        Ok(())
    }

    fn wait_for_groups(&mut self, warp: &Warp, exec: u32, pending: usize) -> ExecResult<()> {
        for lane in lanes(exec) {
            let groups = &mut self.cta.copies[warp.id as usize].groups[lane];
            let done = groups.len().saturating_sub(pending);
            let last = groups.drain(..done).next_back();
            if let Some(last) = last {
                self.finish_copies(warp.id, lane, last)?;
            }
        }
        Ok(())
    }

    /// Moves the bytes of a lane's copies up to number `last`; its thread is ordered after them.
    fn finish_copies(&mut self, warp: u32, lane: usize, last: u32) -> ExecResult<()> {
        let copies = &mut self.cta.copies[warp as usize];
        let (mut done, mut rest) = (Vec::new(), VecDeque::new());
        for pending in std::mem::take(&mut copies.pending) {
            let is_done = match &pending {
                Pending::Copy(copy) => copy.lane == lane && copy.number <= last,
                Pending::Arrive { lane: own, last: number, .. } => *own == lane && *number <= last,
            };
            if is_done {
                done.push(pending);
            } else {
                rest.push_back(pending);
            }
        }
        copies.pending = rest;
        done.into_iter().try_for_each(|pending| self.perform_copy(warp, pending))?;
        self.cta.clocks.finish_copies(warp * 32 + lane as u32, last);
        Ok(())
    }

    /// Performs the oldest pending copy of a warp, or arrival by copies, before a thread waits for it. Returns whether there
    /// was one.
    pub(crate) fn move_some_copy(&mut self, warp: u32) -> Result<bool, Box<Fault>> {
        let Some(pending) = self.cta.copies[warp as usize].pending.pop_front() else { return Ok(false) };
        let pc = match &pending {
            Pending::Copy(copy) => copy.access.pc,
            Pending::Arrive { pc, .. } => *pc,
        };
        match self.perform_copy(warp, pending) {
            Ok(()) => Ok(true),
            Err(stop) => Err(self.fault(*stop, pc, warp)),
        }
    }

    fn perform_copy(&mut self, warp: u32, pending: Pending) -> ExecResult<()> {
        self.changes += 1;
        match pending {
            Pending::Copy(copy) => {
                self.move_bytes(&copy);
                Ok(())
            }
            Pending::Arrive { lane, last, slot, before, pc } => {
                let known = self.cta.clocks.of_copies(warp * 32 + lane as u32, last);
                self.arrive_by_copies(lane, &slot, &known, before)
                    .map_err(|stop| Box::new(RaisedFault { pc: Some(pc), ..*stop }))
            }
        }
    }

    fn start_copies(&mut self, warp: &Warp, exec: u32, op: &AsyncCopy) -> ExecResult<()> {
        for address in [op.to.base, op.from.base].into_iter().chain(op.read_bytes) {
            self.must_be_defined(warp, address, exec, "decide what a copy moves")?;
        }
        if let Some(origin) = op.ignore.and_then(|ignore| warp.undefined_pred(ignore.index, exec)) {
            return Err(self.undefined_use(origin, warp.pc, "decide whether a copy reads"));
        }
        let (to, _) = resolve_spaces(&warp.regs, &op.to, exec);
        let (from, _) = resolve_spaces(&warp.regs, &op.from, exec);
        let ignored = op.ignore.map_or(0, |guard| warp.guard(guard));
        let reads = |lane: usize| match op.read_bytes {
            _ if ignored >> lane & 1 == 1 => 0,
            None => op.bytes,
            Some(reg) => warp.regs[reg as usize][lane] as u32,
        };
        let (pc, bytes) = (warp.pc, op.bytes);
        let read_lanes = lanes(exec).filter(|lane| reads(*lane) > 0).fold(0, |all, lane| all | 1 << lane);
        if read_lanes != 0 {
            let (space, kind) = (Space::Global, AccessKind::Load);
            self.tally(pc, &WarpAccess::new(space, kind, (&from, read_lanes), bytes));
        }
        let (space, kind) = (Space::Shared, AccessKind::Store);
        self.tally(pc, &WarpAccess::new(space, kind, (&to, exec), bytes));
        let copies = &mut self.cta.copies[warp.id as usize];
        copies.last += 1;
        let number = copies.last;
        for lane in lanes(exec) {
            let agent = Agent { thread: warp.thread(lane), number, is_engine: false };
            let write = Access { copy: Some(agent), ..Access::new(warp, lane, to[lane], bytes as usize, false) };
            self.start_copy(&write, from[lane], reads(lane) as usize)?;
        }
        Ok(())
    }

    /// Starts the copy of a lane to the bytes of `write`, of which the first `read_bytes` are read from `from`.
    fn start_copy(&mut self, write: &Access, from: u64, read_bytes: usize) -> ExecResult<()> {
        let (lane, bytes) = (write.lane, write.len);
        if read_bytes > bytes {
            let message = format!("a copy of {bytes} B reads {read_bytes} B");
            return Err(RaisedFault::new(FaultKind::IllegalInstruction, 1 << lane, message));
        }
        let to = self.copied_slot(Space::Shared, write, write)?;
        let whole = Access { address: from, is_read: true, ..*write };
        let read = Access { len: read_bytes, ..whole };
        let (mut source, mut races) = (None, Vec::new());
        if read_bytes > 0 {
            let slot = self.copied_slot(Space::Global, &whole, &read)?;
            races = self.races_of(&slot, &read)?;
            source = Some(slot);
        }
        self.must_not_hit_mbarrier(&to, write)?;
        let conflicts = self.check(&to, write, Some(&[]))?.conflicts;
        self.apply_conflicts(&to, write, &conflicts)?;
        let number = write.copy.map_or(0, |agent| agent.number);
        let copies = &mut self.cta.copies[write.thread as usize / 32];
        copies.last_of[lane] = number;
        copies.pending.push_back(Pending::Copy(Copy { lane, number, from: source, to, access: read, races }));
        Ok(())
    }

    /// The bytes of `access`, which is part of `whole`; that one must be aligned.
    fn copied_slot(&mut self, space: Space, whole: &Access, access: &Access) -> ExecResult<RegionSlot> {
        self.must_be_aligned(space, whole)?;
        match self.place(space, access)? {
            Slot::Region(slot) => Ok(slot),
            Slot::Param(_) | Slot::Const(_) => {
                Err(RaisedFault::new(FaultKind::IllegalInstruction, 1 << access.lane, "a copy of read-only memory"))
            }
        }
    }

    fn move_bytes(&mut self, copy: &Copy) {
        let mut bytes = vec![0u8; copy.to.len];
        let mut undefined: Vec<Undefined> = Vec::new();
        if let Some(from) = &copy.from {
            let region = self.region(from.id);
            bytes[..from.len].copy_from_slice(&region.bytes.read(from.offset..from.end()));
            undefined = self.undefined_bytes(from, &copy.access, &copy.races);
        }
        let region = self.region_mut(copy.to.id);
        region.store(copy.to.offset, &bytes);
        let marked = undefined.iter().enumerate().filter(|(_, byte)| byte.is_some());
        region.undefined.extend(marked.map(|(at, byte)| (copy.to.offset + at, *byte)));
    }
}
