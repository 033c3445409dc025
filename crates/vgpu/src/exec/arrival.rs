//! Arrival at the barriers of the CTA, and their completion.

use crate::exec::barrier::{NO_REDUCTION, Release, Waiter};
use crate::exec::machine::Machine;
use crate::exec::warp::{Wait, Warp};
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::lanes::lanes;
use crate::op::BarrierOp;

impl Machine<'_> {
    pub(crate) fn barrier(&mut self, warp: &mut Warp, exec: u32, op: &BarrierOp) -> ExecResult<()> {
        if !op.aligned {
            return self.arrive_by_id(warp, exec, op);
        }
        match self.gather_alive(warp, exec)? {
            Some(here) => self.arrive_by_id(warp, here, op),
            None => Ok(()),
        }
    }

    /// Arrives at the barrier that each lane specifies.
    fn arrive_by_id(&mut self, warp: &mut Warp, exec: u32, op: &BarrierOp) -> ExecResult<()> {
        let reduced = op.reduce.map(|reduce| reduce.source().index);
        if let Some(origin) = reduced.and_then(|pred| warp.undefined_pred(pred, exec)) {
            return Err(self.undefined_use(origin, warp.pc, "are reduced by a barrier"));
        }
        for register in [Some(op.id), op.count].into_iter().flatten() {
            self.must_be_defined(warp, register, exec, "select a barrier or its thread count")?;
        }
        let ids = warp.regs[op.id as usize];
        let counts = op.count.map(|reg| warp.regs[reg as usize]);
        let expected = |lane: usize| counts.map(|counts| counts[lane] as u32);
        let pc = warp.pc;
        // All lanes of the group continue after the barrier, now or when it completes.
        warp.pc += 1;
        warp.park();
        let mut rest = exec;
        while rest != 0 {
            let first = rest.trailing_zeros() as usize;
            let (id, count) = (ids[first] as u32, expected(first));
            let mut group = 0;
            for lane in lanes(rest) {
                if ids[lane] as u32 == id && expected(lane) == count {
                    group |= 1 << lane;
                }
            }
            rest &= !group;
            if op.aligned && rest != 0 {
                let message = "the lanes of an `.aligned` barrier specify different barriers or thread counts";
                return Err(RaisedFault::new(FaultKind::BarrierMisuse, exec, message));
            }
            self.arrive(warp, group, (id, count), op)?;
            if op.wait {
                warp.ready &= !group;
                for lane in lanes(group) {
                    warp.waits[lane] = Some(Wait::Barrier { pc, id });
                }
            }
            self.complete(id as usize);
        }
        Ok(())
    }

    fn arrive(
        &mut self,
        warp: &Warp,
        group: u32,
        (id, expected): (u32, Option<u32>),
        op: &BarrierOp,
    ) -> ExecResult<()> {
        if let Some(message) = self.misuse(warp, group, id, expected) {
            let mut stop = RaisedFault::new(FaultKind::BarrierMisuse, group, message);
            let other = self.cta.barriers.get(id as usize).filter(|barrier| barrier.in_use);
            stop.related = other.map(|barrier| barrier.arrived_at);
            return Err(stop);
        }
        let clocks = &mut self.cta.clocks;
        let barrier = &mut self.cta.barriers[id as usize];
        barrier.in_use = true;
        barrier.expected = expected;
        // The warp goes on behind the barrier.
        barrier.arrived_at = warp.pc - 1;
        barrier.arrived[warp.id as usize] |= group;
        self.effects += 1;
        let counts = &mut self.stats.barriers[id as usize];
        counts.arrivals += u64::from(group.count_ones());
        counts.waits += if op.wait { u64::from(group.count_ones()) } else { 0 };
        for lane in lanes(group) {
            barrier.contributions.push(clocks.release(warp.thread(lane)));
        }
        if let Some(reduce) = op.reduce {
            let value = warp.guard(reduce.source()) & group;
            barrier.result.count += value.count_ones();
            barrier.result.all &= value == group;
            barrier.result.any |= value != 0;
        }
        if op.wait {
            barrier.waiters.push(Waiter { warp: warp.id, lanes: group, reduce: op.reduce });
        }
        Ok(())
    }

    fn misuse(&self, warp: &Warp, group: u32, id: u32, expected: Option<u32>) -> Option<String> {
        let Some(barrier) = self.cta.barriers.get(id as usize) else {
            return Some(format!("barrier {id} does not exist; a CTA has barriers 0 to 15"));
        };
        if let Some(count) = expected.filter(|count| *count == 0 || !count.is_multiple_of(32)) {
            return Some(format!("barrier {id}: the thread count {count} is not a positive multiple of 32"));
        }
        let total = self.cta.alive.len() as u32 * 32;
        if let Some(count) = expected.filter(|count| *count > total) {
            return Some(format!("barrier {id}: waits for {count} threads, but the CTA has only {total}"));
        }
        // A device stops with an illegal instruction, also if the count is that of all threads.
        if barrier.in_use && barrier.expected != expected {
            let name = |count: Option<u32>| {
                count.map_or("gives no thread count".to_string(), |count| format!("waits for {count} threads"))
            };
            let (own, other) = (name(expected), name(barrier.expected));
            return Some(format!("barrier {id}: the instruction {own}, and another one {other}"));
        }
        if barrier.arrived[warp.id as usize] & group != 0 {
            return Some(format!("barrier {id}: a thread arrives twice before the barrier completes"));
        }
        None
    }

    /// Completes every barrier that was waiting only for threads that have exited.
    pub(crate) fn complete_barriers(&mut self) {
        for id in 0..self.cta.barriers.len() {
            self.complete(id);
        }
    }

    fn complete(&mut self, id: usize) {
        let barrier = &mut self.cta.barriers[id];
        if !barrier.in_use || !barrier.is_complete(&self.cta.alive) {
            return;
        }
        self.stats.barriers[id].phases += 1;
        let waiters = std::mem::take(&mut barrier.waiters);
        let contributions = std::mem::take(&mut barrier.contributions);
        let result = std::mem::replace(&mut barrier.result, NO_REDUCTION);
        barrier.in_use = false;
        barrier.expected = None;
        barrier.arrived.fill(0);
        let mut receivers = Vec::new();
        for waiter in &waiters {
            receivers.extend(lanes(waiter.lanes).map(|lane| waiter.warp * 32 + lane as u32));
            let Waiter { warp, lanes, reduce } = *waiter;
            self.cta.released.push(Release { warp, lanes, reduce, result });
        }
        self.cta.clocks.acquire(&contributions, &receivers);
    }
}
