//! How accesses to memory that threads share are ordered: each is checked against the shadow of its bytes, and strong ones
//! hand over what their threads have released.

use std::ops::Range;

use crate::clock::{copies_of, cta_of};
use crate::exec::access::{Access, RegionId, RegionSlot};
use crate::exec::cta::Cta;
use crate::exec::machine::Machine;
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::launch::Lint;
use crate::memory::Region;
use crate::shadow::{Accessor, Actor, CheckResult, KnownStamps, Record, Sharing, Who};

impl Machine<'_> {
    /// Writes bytes of memory that threads share, after it has checked how the write is ordered.
    pub(crate) fn put_checked(&mut self, slot: &RegionSlot, access: &Access, data: &[u8]) -> ExecResult<()> {
        self.must_not_hit_mbarrier(slot, access)?;
        let mut result = self.check(slot, access, Some(data))?;
        if self.may_lose(access.pc) {
            result.conflicts.retain(|range| !(range.conflict.other_is_write && self.may_lose(range.conflict.pc)));
        }
        if let Some(first) = result.own_previous_write.filter(|first| self.are_apart(*first, access.pc)) {
            return Err(self.not_apart(slot.id.space(), access, first));
        }
        if result.benign.is_some() {
            self.stats.note("benign_race", access.pc);
        }
        // A write of the same value ends no wait.
        let is_change = self.count_change(slot, data);
        if access.strong.is_some() {
            self.effects += u64::from(is_change);
            self.hand_over(slot, access);
        }
        self.region_mut(slot.id).store(slot.offset, data);
        self.apply_conflicts(slot, access, &result.conflicts)
    }

    /// Whether two instructions are in the same group of stores that are declared disjoint.
    fn are_apart(&self, one: u32, other: u32) -> bool {
        let group = |pc: u32| self.apart[pc as usize];
        group(one).is_some_and(|known| group(other) == Some(known))
    }

    /// Whether an instruction is a store whose value another store may replace (`any_wins`).
    fn may_lose(&self, pc: u32) -> bool {
        self.any_wins.get(pc as usize).is_some_and(|wins| *wins)
    }

    /// Records an access in the shadow memory: a write if there is `data`, which may be empty, otherwise a read.
    pub(crate) fn check(&mut self, slot: &RegionSlot, access: &Access, data: Option<&[u8]>) -> ExecResult<CheckResult> {
        let range = slot.offset..slot.end();
        self.check_ranges(slot.id, std::slice::from_ref(&range), access, data)
    }

    /// As [`Machine::check`], an access to several ranges of a region.
    pub(crate) fn check_ranges(
        &mut self,
        id: RegionId,
        ranges: &[Range<usize>],
        access: &Access,
        data: Option<&[u8]>,
    ) -> ExecResult<CheckResult> {
        if !self.options.check_races {
            return Ok(CheckResult::default());
        }
        let cta = &mut self.cta;
        let (thread, scope) = (access.thread, access.strong.map(|strong| strong.scope));
        let Who { cta: agent, thread: by, clock } = agent(cta, access);
        let sharing = access.together.map_or(Sharing::Alone, |lanes| Sharing::Together { lanes });
        let record = Record { cta: agent, warp: (by / 32) as u16, scope, clock, pc: access.pc, sharing };
        let memory = &mut *self.memory;
        let own = access.copy.is_none().then(|| &mut cta.recent[thread as usize / 32]);
        let recent = own.unwrap_or(&mut cta.recent_of_copies);
        let Some(record) = recent.number(&mut memory.records, record) else {
            return Err(RaisedFault::new(FaultKind::StepLimit, 1 << access.lane, TOO_MANY_RECORDS));
        };
        let is_engine = access.copy.is_some_and(|agent| agent.is_engine);
        let visible = cta.clocks.visible(thread);
        let fenced = match id {
            _ if access.uses_map => Some(visible.of_map(access.address)),
            RegionId::Buffer(_) if is_engine => Some(visible.global()),
            _ if is_engine => Some(visible.shared()),
            _ => None,
        };
        let actor = Actor {
            records: &memory.records,
            sharing,
            cta: cta.number,
            first_cta: self.first_cta,
            cluster: &cta.cluster,
            base: cta.clocks.base(thread),
            far: cta.clocks.far(thread),
            copies: cta.clocks.copies(thread),
            fenced,
            scope,
            reads: access.is_read || access.is_update,
            notes_reads: fenced.is_some() && self.options.lints.contains(&Lint::WarProxy),
            known: &KnownStamps::new(),
        };
        let stamp = memory.records.stamp(record, by % 32);
        let accessor = Accessor { by: &actor, stamp, thread, size: access.len };
        let region: &mut Region = match id {
            RegionId::Shared => &mut cta.shared,
            RegionId::Peer(rank) => &mut self.peers[rank as usize].shared,
            RegionId::Local => &mut cta.local,
            RegionId::Buffer(index) => &mut memory.buffers[index].region,
        };
        let mut found = CheckResult::default();
        for range in ranges {
            let (start, len) = (range.start, range.len());
            found.add(match data {
                None => region.shadow.read(start, len, &accessor),
                Some(data) => {
                    // Without data, as for a copy that writes later, the value is not known to be equal.
                    let old = (data.len() == len).then(|| region.bytes.read(range.clone()));
                    let values = old.as_deref().map(|old| (old, data));
                    region.shadow.write(start, len, values, &accessor)
                }
            });
        }
        let others = found.conflicts.iter().map(|range| &range.conflict).chain(&found.benign);
        self.has_met |= others
            .map(|conflict| cta_of(conflict.who.cta))
            .any(|cta| cta >= self.first_cta && !self.cta.cluster.contains(&cta));
        Ok(found)
    }

    /// A strong read learns what the releases in the word hand over.
    pub(crate) fn observe(&mut self, slot: &RegionSlot, access: &Access) {
        self.strong_reads += 1;
        let Some(strong) = access.strong.filter(|_| self.options.check_races) else { return };
        let region: &Region = match slot.id {
            RegionId::Shared => &self.cta.shared,
            RegionId::Peer(rank) => &self.peers[rank as usize].shared,
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
