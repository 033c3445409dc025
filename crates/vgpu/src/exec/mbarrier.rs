//! mbarrier objects (PTX ISA, section 9.7.13.15): a phase completes when all arrivals and all expected bytes have come.

use std::collections::BTreeMap;

use crate::clock::{Contribution, Far, Known};
use crate::exec::access::{Access, RegionId, RegionSlot, Slot, resolve_spaces};
use crate::exec::barrier::Release;
use crate::exec::machine::Machine;
use crate::exec::warp::{Wait, Warp};
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::isa::{Scope, Space, Strong};
use crate::lanes::{Lanes, lanes};
use crate::op::{Arrive, MbarrierFn, MbarrierOp, Phase, PhaseWait};
use crate::shadow::CheckResult;

/// Bytes of an object.
const BYTES: usize = 8;
/// Largest count, and largest number of pending bytes (PTX ISA, section 9.7.13.15.4).
const MOST: i64 = (1 << 20) - 1;

/// An object that is initialized.
#[derive(Debug)]
pub(crate) struct Mbarrier {
    /// The most arrivals that a phase has expected.
    most_pending: i64,
    /// Arrivals that each phase expects.
    count: i64,
    /// Arrivals that the current phase still expects.
    pending: i64,
    /// Bytes that it still expects; negative if they came before they were expected.
    bytes: i64,
    /// Number of phases that have completed.
    phases: u64,
    /// What arrivals and copies in the current phase bring.
    arrived: Vec<Contribution>,
    copied: Far,
    /// What is ordered before those who wait for the last completed phase.
    known: Known,
    /// Lanes that wait for the current phase, by warp.
    sleepers: Vec<(u32, u32)>,
}

impl Mbarrier {
    fn new(count: i64) -> Mbarrier {
        Mbarrier {
            most_pending: count,
            count,
            pending: count,
            bytes: 0,
            phases: 0,
            arrived: Vec::new(),
            copied: Far::default(),
            known: Known::default(),
            sleepers: Vec::new(),
        }
    }

    /// The opaque state that an arrival returns.
    fn state(&self) -> u64 {
        self.phases << 20 | self.pending as u64
    }

    fn has_completed(&self, phase: u64, is_parity: bool) -> bool {
        if is_parity { self.phases & 1 != phase & 1 } else { self.phases > phase >> 20 }
    }

    /// Whether an arrival may have returned the state.
    fn may_return(&self, state: u64) -> bool {
        let (phase, pending) = (state >> 20, (state & MOST as u64) as i64);
        phase <= self.phases && (1..=self.most_pending).contains(&pending)
    }

    /// What the current phase lacks.
    pub(crate) fn lacks(&self) -> String {
        let (phase, parity) = (self.phases, self.phases & 1);
        let bytes = |count: i64| format!("{count} {}", if count == 1 { "byte" } else { "bytes" });
        let arrivals = (self.pending != 0).then(|| format!("{} of {} arrivals", self.pending, self.count));
        let lacks: Vec<String> = arrivals.into_iter().chain((self.bytes > 0).then(|| bytes(self.bytes))).collect();
        let lacks = (!lacks.is_empty()).then(|| format!(", which lacks {}", lacks.join(" and ")));
        let early =
            (self.bytes < 0).then(|| format!(", for which {} have come that were not expected", bytes(-self.bytes)));
        format!("phase {phase} (parity {parity}){}{}", lacks.unwrap_or_default(), early.unwrap_or_default())
    }
}

impl Machine<'_> {
    pub(crate) fn mbarrier(&mut self, warp: &mut Warp, exec: u32, op: &MbarrierOp) -> ExecResult<()> {
        match op {
            MbarrierOp::PendingCount { d, state } => {
                let states = warp.regs[*state as usize];
                lanes(exec).for_each(|lane| warp.regs[*d as usize][lane] = states[lane] & MOST as u64);
                warp.pc += 1;
                Ok(())
            }
            MbarrierOp::At { at, f } => {
                self.must_be_defined(warp, at.base, exec, "decide which mbarrier is meant")?;
                let (addresses, parts) = resolve_spaces(&warp.regs, at, exec);
                let outside =
                    parts.iter().filter(|(space, _)| *space != Space::Shared).fold(0, |all, part| all | part.1);
                if outside != 0 {
                    let message = "an mbarrier is in shared memory; this address is not";
                    return Err(RaisedFault::new(FaultKind::IllegalInstruction, outside, message));
                }
                if let MbarrierFn::Wait(wait) = f {
                    return self.wait_for_phase(warp, exec, &addresses, wait);
                }
                for lane in lanes(exec) {
                    let is_init = matches!(f, MbarrierFn::Init { .. });
                    let slot = self.object(warp, lane, addresses[lane], is_init)?;
                    self.apply(warp, lane, &slot, f)?;
                }
                warp.pc += 1;
                Ok(())
            }
        }
    }

    /// The bytes of an object, after the access of a lane to it was checked.
    pub(crate) fn object(&mut self, warp: &Warp, lane: usize, address: u64, is_init: bool) -> ExecResult<RegionSlot> {
        let strong = (!is_init).then_some(Strong::relaxed(Scope::Cluster));
        let access = Access { strong, is_update: !is_init, ..Access::new(warp, lane, address, BYTES, false) };
        self.checked_object(&access, Some(&[]))
    }

    /// As [`Machine::object`], for a wait, which reads the object.
    fn waited_object(&mut self, warp: &Warp, lane: usize, address: u64) -> ExecResult<RegionSlot> {
        self.checked_object(&wait_access(warp, lane, address), None)
    }

    fn checked_object(&mut self, access: &Access, data: Option<&[u8]>) -> ExecResult<RegionSlot> {
        let Slot::Region(slot) = self.locate(Space::Shared, access)? else {
            let message = "an mbarrier is in shared memory";
            return Err(RaisedFault::new(FaultKind::IllegalInstruction, 1 << access.lane, message));
        };
        let CheckResult { conflicts, .. } = self.check(&slot, access, data)?;
        match conflicts.first() {
            Some(range) => Err(self.race(Space::Shared, access, &range.conflict)),
            None => Ok(slot),
        }
    }

    /// The bytes of an object, after a wait of several lanes for it was checked at once; `None` if the lanes are to be looked at
    /// one by one.
    fn object_together(&mut self, warp: &Warp, exec: u32, address: u64) -> ExecResult<Option<RegionSlot>> {
        let access = Access { together: Some(exec), ..wait_access(warp, exec.trailing_zeros() as usize, address) };
        let Slot::Region(slot) = self.locate(Space::Shared, &access)? else { return Ok(None) };
        let CheckResult { conflicts, .. } = self.check(&slot, &access, None)?;
        Ok(conflicts.is_empty().then_some(slot))
    }

    /// Whether lanes access the same address, and their accesses are ordered alike.
    fn are_together(&mut self, warp: &Warp, exec: u32, addresses: &Lanes) -> bool {
        let first = addresses[exec.trailing_zeros() as usize & 31];
        exec.count_ones() > 1
            && lanes(exec).all(|lane| addresses[lane] == first)
            && self.cta.clocks.are_alike(warp.id, exec)
    }

    fn name_of(&self, slot: &RegionSlot) -> String {
        self.shared_name(slot.offset)
    }

    fn misused(&self, lane: usize, slot: &RegionSlot, what: &str) -> Box<RaisedFault> {
        let message = format!("the mbarrier at {}: {what}", self.name_of(slot));
        RaisedFault::new(FaultKind::BarrierMisuse, 1 << lane, message)
    }

    /// The object at a slot; a fault if there is none.
    fn live(&mut self, lane: usize, slot: &RegionSlot) -> ExecResult<&mut Mbarrier> {
        if !self.owner(slot.id).mbarriers.contains_key(&slot.offset) {
            return Err(self.misused(lane, slot, "it is not initialized"));
        }
        Ok(self.owner_mut(slot.id).mbarriers.entry(slot.offset).or_insert_with(|| Mbarrier::new(1)))
    }

    fn apply(&mut self, warp: &mut Warp, lane: usize, slot: &RegionSlot, f: &MbarrierFn) -> ExecResult<()> {
        let value = |warp: &Warp, reg: u32| warp.regs[reg as usize][lane] as u32;
        for operand in operands(f) {
            self.must_be_defined(warp, operand, 1 << lane, "are an operand of an mbarrier instruction")?;
        }
        match *f {
            MbarrierFn::Init { count } => {
                let count = i64::from(value(warp, count));
                if !(1..=MOST).contains(&count) {
                    return Err(self.misused(lane, slot, &format!("a count is from 1 to {MOST}; this one is {count}")));
                }
                if self.owner(slot.id).mbarriers.contains_key(&slot.offset) {
                    return Err(self.misused(lane, slot, "it is initialized again without `mbarrier.inval`"));
                }
                self.owner_mut(slot.id).mbarriers.insert(slot.offset, Mbarrier::new(count));
                self.region_mut(slot.id).store(slot.offset, &[0; BYTES]);
            }
            MbarrierFn::Invalidate => {
                self.live(lane, slot)?;
                self.owner_mut(slot.id).mbarriers.remove(&slot.offset);
            }
            MbarrierFn::Expect { bytes } => {
                let bytes = i64::from(value(warp, bytes));
                self.add_bytes(lane, slot, bytes)?;
            }
            MbarrierFn::Complete { bytes } => {
                let bytes = i64::from(value(warp, bytes));
                self.add_bytes(lane, slot, -bytes)?;
                self.complete_phase(slot);
            }
            MbarrierFn::Arrive(arrive) => self.arrive_at(warp, lane, slot, &arrive)?,
            MbarrierFn::ArriveAfterCopies { is_counted } => {
                let object = self.live(lane, slot)?;
                object.pending += i64::from(!is_counted);
                object.most_pending = object.most_pending.max(object.pending);
                let before = self.cta.clocks.started(warp.thread(lane));
                self.cta.copies[warp.id as usize].arrive_later(lane, slot, before, warp.pc);
            }
            // Handled for all lanes at once.
            MbarrierFn::Wait(_) => {}
        }
        Ok(())
    }

    /// Changes the bytes that the current phase expects.
    pub(crate) fn add_bytes(&mut self, lane: usize, slot: &RegionSlot, bytes: i64) -> ExecResult<()> {
        let object = self.live(lane, slot)?;
        object.bytes += bytes;
        let pending = object.bytes;
        if pending.abs() > MOST {
            return Err(self.misused(lane, slot, &format!("{pending} bytes are pending; at most {MOST} may be")));
        }
        Ok(())
    }

    fn arrive_at(&mut self, warp: &mut Warp, lane: usize, slot: &RegionSlot, arrive: &Arrive) -> ExecResult<()> {
        let value = |reg: u32| i64::from(warp.regs[reg as usize][lane] as u32);
        if let Some(bytes) = arrive.expect {
            self.add_bytes(lane, slot, value(bytes))?;
        }
        let count = arrive.count.map_or(1, value);
        let object = self.live(lane, slot)?;
        let (state, pending) = (object.state(), object.pending);
        if count < 1 || count > pending {
            let lacks = object.lacks();
            let what = format!(
                "an arrival that counts {count} is too many for {lacks}; a wait before it is missing, or has the wrong parity"
            );
            return Err(self.misused(lane, slot, &what));
        }
        object.pending -= count;
        object.count -= if arrive.drop { count } else { 0 };
        if arrive.no_complete && object.pending == 0 && object.bytes == 0 {
            return Err(self.misused(lane, slot, "a `.noComplete` arrival completes the phase"));
        }
        if arrive.releases && self.options.check_races {
            let contribution = self.cta.clocks.release(warp.thread(lane));
            self.live(lane, slot)?.arrived.push(contribution);
        } else if let Some(fenced) = self.cta.clocks.written(warp.thread(lane), Scope::Cluster, false) {
            let object = self.live(lane, slot)?;
            object.copied = object.copied.join(fenced.known());
        }
        self.complete_phase(slot);
        if let Some(d) = arrive.state {
            warp.regs[d as usize][lane] = state;
        }
        Ok(())
    }

    /// An arrival by what a thread has started: `known`, and what was ordered before its start, is known to those who wait
    /// for the phase.
    pub(crate) fn arrive_by_copies(
        &mut self,
        lane: usize,
        slot: &RegionSlot,
        known: &Far,
        before: Contribution,
    ) -> ExecResult<()> {
        let object = self.live(lane, slot)?;
        if object.pending == 0 {
            return Err(self.misused(lane, slot, "copies arrive, but the current phase expects no more arrivals"));
        }
        object.pending -= 1;
        object.copied = object.copied.join(known);
        object.arrived.push(before);
        self.complete_phase(slot);
        Ok(())
    }

    /// Bytes of a copy have come, which brings `known`, and what was ordered before its start.
    pub(crate) fn bytes_arrive(
        &mut self,
        lane: usize,
        slot: &RegionSlot,
        bytes: i64,
        known: &Far,
        before: &Contribution,
    ) -> ExecResult<()> {
        self.add_bytes(lane, slot, -bytes)?;
        let object = self.live(lane, slot)?;
        object.copied = object.copied.join(known);
        object.arrived.push(before.clone());
        self.complete_phase(slot);
        Ok(())
    }

    /// Completes the current phase if nothing is missing.
    fn complete_phase(&mut self, slot: &RegionSlot) {
        self.effects += 1;
        let owner = self.owner_mut(slot.id);
        let Some(object) = owner.mbarriers.get_mut(&slot.offset) else { return };
        if object.pending != 0 || object.bytes != 0 {
            return;
        }
        object.phases += 1;
        let (cta, offset, phase) = (owner.index, slot.offset, object.phases - 1);
        object.pending = object.count;
        object.known = owner.clocks.known(&std::mem::take(&mut object.arrived));
        object.known.add(&std::mem::take(&mut object.copied));
        for (warp, lanes) in std::mem::take(&mut object.sleepers) {
            owner.released.push(Release::wake(warp, lanes));
        }
        self.record_phase(cta, offset, phase);
    }

    /// `test_wait` and `try_wait`. Lanes whose phase has not completed sleep in `try_wait`, and try again when it has, or
    /// go on if nothing else can happen.
    fn wait_for_phase(
        &mut self,
        warp: &mut Warp,
        exec: u32,
        addresses: &[u64; 32],
        wait: &PhaseWait,
    ) -> ExecResult<()> {
        let (reg, is_parity) = match wait.phase {
            Phase::State(reg) => (reg, false),
            Phase::Parity(reg) => (reg, true),
        };
        self.must_be_defined(warp, reg, exec, "decide which phase is waited for")?;
        warp.loops.note_read(warp.pc, Space::Shared, (addresses, exec), BYTES);
        let (mut done, mut asleep) = (0, Vec::new());
        let mut sleeping = 0;
        let together = match self.are_together(warp, exec, addresses) {
            true => self.object_together(warp, exec, addresses[exec.trailing_zeros() as usize])?,
            false => None,
        };
        // The threads that observe the end of the last phase of an object.
        let mut observers: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for lane in lanes(exec) {
            let slot = match together {
                Some(slot) => slot,
                None => self.waited_object(warp, lane, addresses[lane])?,
            };
            if slot.id != RegionId::Shared {
                let message = "a thread can only wait for an mbarrier of its own CTA";
                return Err(RaisedFault::new(FaultKind::IllegalInstruction, 1 << lane, message));
            }
            let phase = warp.regs[reg as usize][lane];
            let object = self.live(lane, &slot)?;
            let wrong = match is_parity {
                true if phase as u32 > 1 => {
                    Some(format!("the parity of a phase is 0 or 1; this one is {}", phase as u32))
                }
                false if !object.may_return(phase) => {
                    Some(format!("no arrival at it has returned the state {phase:#x}"))
                }
                false if object.phases > (phase >> 20) + 1 => {
                    Some("the state is of an earlier phase than the preceding one".to_string())
                }
                _ => None,
            };
            if let Some(wrong) = wrong {
                return Err(self.misused(lane, &slot, &wrong));
            }
            let object = self.live(lane, &slot)?;
            if object.has_completed(phase, is_parity) {
                done |= 1 << lane;
                observers.entry(slot.offset).or_default().push(warp.thread(lane));
            } else if wait.sleeps && warp.timed_out >> lane & 1 == 0 && !self.gives_up() {
                sleeping |= 1 << lane;
                asleep.push((slot.offset, lane));
            }
        }
        for (offset, threads) in observers {
            if let Some(object) = self.cta.mbarriers.get(&offset) {
                self.cta.clocks.observe_phase(&threads, &object.known, wait.acquires);
            }
        }
        warp.timed_out &= !exec;
        self.strong_reads += u64::from((done | sleeping) != exec);
        let pc = warp.pc;
        let answered = exec & !sleeping;
        warp.set_pred(wait.done, answered, done);
        for (offset, lane) in asleep {
            if let Some(object) = self.cta.mbarriers.get_mut(&offset) {
                object.sleepers.push((warp.id, 1 << lane));
            }
        }
        if sleeping == 0 {
            warp.pc += 1;
        } else {
            warp.block(sleeping, pc, |lane| Wait::Phase { pc, address: addresses[lane] });
        }
        Ok(())
    }

    /// Whether a `try_wait` ends before the phase has completed, which it may at any time.
    fn gives_up(&mut self) -> bool {
        self.random.as_mut().is_some_and(|random| random.below(8) == 0)
    }

    /// A store or a copy does not touch an object.
    pub(crate) fn must_not_hit_mbarrier(&self, slot: &RegionSlot, access: &Access) -> ExecResult<()> {
        if !matches!(slot.id, RegionId::Shared | RegionId::Peer(_)) {
            return Ok(());
        }
        let first = (slot.offset + 1).saturating_sub(BYTES);
        match self.owner(slot.id).mbarriers.range(first..slot.end()).next() {
            None => Ok(()),
            Some((offset, _)) => {
                let hit = RegionSlot { offset: *offset, len: BYTES, ..*slot };
                let what = if access.copy.is_some() { "a copy overwrites it" } else { "a store overwrites it" };
                Err(self.misused(access.lane, &hit, what))
            }
        }
    }

    /// Lets lanes that sleep in `try_wait` go on without success, except those of warps that would only sleep again. Returns
    /// whether there were any.
    pub(crate) fn time_out(&mut self, warps: &mut [Warp]) -> bool {
        let mut any = false;
        for warp in warps {
            let is_asleep = |lane: &usize| matches!(warp.waits[*lane], Some(Wait::Phase { .. }));
            let asleep = lanes(warp.alive & !warp.ready).filter(is_asleep).fold(0, |all, lane| all | 1 << lane);
            if asleep != 0 && !self.sleeps_forever(warp) {
                any = true;
                warp.timed_out |= asleep;
                warp.unblock(asleep);
                let of_others = |(id, _): &(u32, u32)| *id != warp.id;
                self.cta.mbarriers.values_mut().for_each(|object| object.sleepers.retain(of_others));
            }
        }
        any
    }
}

/// The access of a wait to an object.
fn wait_access(warp: &Warp, lane: usize, address: u64) -> Access {
    let strong = Some(Strong::relaxed(Scope::Cluster));
    Access { strong, is_load: false, ..Access::new(warp, lane, address, BYTES, true) }
}

/// The registers that an instruction reads, apart from waits.
fn operands(f: &MbarrierFn) -> impl Iterator<Item = u32> {
    let both = match *f {
        MbarrierFn::Init { count } => [Some(count), None],
        MbarrierFn::Expect { bytes } | MbarrierFn::Complete { bytes } => [Some(bytes), None],
        MbarrierFn::Arrive(arrive) => [arrive.count, arrive.expect],
        MbarrierFn::Invalidate | MbarrierFn::Wait(_) | MbarrierFn::ArriveAfterCopies { .. } => [None, None],
    };
    both.into_iter().flatten()
}
