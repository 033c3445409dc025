//! Runs the warps of a CTA in turn.

use crate::exec::cta::Cta;
use crate::exec::machine::Machine;
use crate::exec::mbarrier::Mbarrier;
use crate::exec::warp::{Environment, Wait, Warp};
use crate::fault::{Fault, FaultKind, RaisedFault, Waiting};
use crate::lanes::lanes;
use crate::launch::Progress;
use crate::memory::map;

/// Number of steps that a warp runs before the next warp has its turn; with a seed, the most.
const QUANTUM: u32 = 512;
/// Number of steps of a CTA after which the other resident CTAs have their turns; with a seed, the most.
const SLICE: u64 = 1 << 18;
/// Steps for which a strong read counts, since it may wait for another CTA.
const STEPS_OF_STRONG_READ: u64 = 1 << 12;

/// How the turn of a CTA ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slice {
    /// All its threads have exited.
    Ended,
    /// Its turn is over.
    Running,
    /// All its threads wait.
    Blocked,
}

impl Machine<'_> {
    /// Runs the warps of the current CTA for one turn.
    pub(super) fn run_warps(&mut self, warps: &mut [Warp]) -> Result<Slice, Box<Fault>> {
        if self.recorder.is_some() {
            return self.run_tick(warps);
        }
        let start = self.stats.steps;
        let slice = self.random.as_mut().map_or(SLICE, |random| SLICE >> random.below(19));
        self.strong_reads = 0;
        // Other CTAs of the cluster may have woken threads.
        self.apply_releases(warps);
        let mut order: Vec<usize> = (0..warps.len()).collect();
        let mut has_run = false;
        loop {
            let mut progress = false;
            if let Some(random) = &mut self.random {
                random.shuffle(&mut order);
            }
            for index in &order {
                let mut hands_over = false;
                if warps[*index].ready != 0 && !self.is_endless(&warps[*index]) {
                    progress = true;
                    hands_over = self.turn(&mut warps[*index])?;
                    if self.random.as_mut().is_some_and(|random| random.below(4) == 0) {
                        self.move_some_copy(*index as u32)?;
                        self.move_some_bulk()?;
                        self.advance_tensor()?;
                    }
                }
                self.apply_releases(warps);
                if hands_over {
                    return Ok(Slice::Running);
                }
            }
            has_run |= progress;
            if warps.iter().all(|warp| warp.alive == 0) {
                return self.end_cta();
            }
            if !progress && !self.wake_sleepers(warps)? {
                return Ok(if has_run { Slice::Running } else { Slice::Blocked });
            }
            if self.stats.steps - start + self.strong_reads * STEPS_OF_STRONG_READ >= slice {
                return Ok(Slice::Running);
            }
        }
    }

    /// Ends a CTA whose threads have exited.
    pub(super) fn end_cta(&mut self) -> Result<Slice, Box<Fault>> {
        self.end_bulk()?;
        self.end_tensor()?;
        self.end_products()?;
        self.end_registers()?;
        Ok(Slice::Ended)
    }

    /// Wakes the lanes for which what they wait for has come.
    pub(super) fn apply_releases(&mut self, warps: &mut [Warp]) {
        for release in std::mem::take(&mut self.cta.released) {
            let warp = &mut warps[release.warp as usize];
            release.apply(warp);
            self.record_waits(warp);
        }
    }

    /// If no thread can run: lets the copies that they have started move on, or else those that sleep go on without
    /// success, unless they are where they were before and nothing has happened since. Returns whether a thread may run.
    pub(super) fn wake_sleepers(&mut self, warps: &mut [Warp]) -> Result<bool, Box<Fault>> {
        for index in 0..warps.len() {
            if self.move_some_copy(index as u32)? {
                self.apply_releases(warps);
                return Ok(true);
            }
        }
        if self.move_some_bulk()? || self.advance_tensor()? {
            self.apply_releases(warps);
            return Ok(true);
        }
        self.record_quiet();
        Ok(self.time_out(warps))
    }

    pub(super) fn warps_of(&mut self, cta: &Cta) -> Vec<Warp> {
        let offset = self.program.dynamic_shared_offset();
        let environment = Environment {
            grid: self.launch.grid,
            block: self.launch.block,
            cta: cta.index,
            cluster: self.launch.cluster,
            rank: cta.rank,
            warps: cta.alive.len() as u32,
            dynamic_shared: map::shared_start(cta.rank) + offset,
            dynamic_bytes: self.launch.dynamic_shared_bytes,
            total_bytes: cta.shared.bytes.len() as u32,
            launch: self.first_cta,
        };
        let alive = cta.alive.iter().enumerate();
        let warp = |(id, mask): (usize, &u32)| {
            let registers = self.spare_registers.pop().unwrap_or_default();
            Warp::new(self.program, id as u32, *mask, &environment, registers)
        };
        alive.map(warp).collect()
    }

    /// One turn of a warp. With a seed, it often ends after an access that other CTAs can observe; returns whether the turn of
    /// the CTA ends with it.
    fn turn(&mut self, warp: &mut Warp) -> Result<bool, Box<Fault>> {
        // Most quanta are short, so that warps interleave in the middle of what they do.
        let quantum = self.random.as_mut().map_or(QUANTUM, |random| {
            let most = QUANTUM >> random.below(10);
            1 + random.below(most)
        });
        let before = self.cta.executed;
        let mut hands_over = false;
        for _ in 0..quantum {
            if warp.active == 0 && !warp.select() {
                break;
            }
            let (pc, observable) = (warp.pc, self.effects + self.strong_reads + self.fences);
            if let Err(stop) = self.step(warp) {
                return Err(self.fault(*stop, pc, warp.id));
            }
            warp.yield_to_others();
            if self.is_endless(warp) {
                break;
            }
            let is_observable = self.effects + self.strong_reads + self.fences != observable;
            if let Some(random) = self.random.as_mut().filter(|_| is_observable)
                && random.below(2) == 0
            {
                hands_over = random.below(2) == 0;
                break;
            }
        }
        self.completed.thread_instructions += self.cta.executed - before;
        self.report_progress();
        Ok(hands_over)
    }

    /// The fault of a CTA that has reached its limit of instructions.
    pub(crate) fn step_limit_fault(&self, lanes: u32) -> Box<RaisedFault> {
        let (executed, each) = (self.cta.executed, self.options.max_instructions_per_thread);
        let threads: u32 = self.launch.block.iter().product();
        let Progress { ctas, ended, .. } = self.completed;
        let message = format!(
            "the CTA has not ended after {executed} thread instructions \
             (block size {threads}, limit {each} per thread); {ended} of {ctas} CTAs ended before it"
        );
        RaisedFault::new(FaultKind::StepLimit, lanes, message)
    }

    /// The instruction at which lanes wait, and what they wait for.
    pub(super) fn describe(&self, wait: Wait) -> (u32, String) {
        match wait {
            Wait::Collective { pc, members, .. } => (pc, format!("the member lanes {members:#010x} of its warp")),
            Wait::Aligned { pc } => (pc, "the rest of its warp".to_string()),
            Wait::Cluster { pc } => (pc, "the barrier of its cluster".to_string()),
            Wait::Columns { pc, columns } => (pc, format!("{columns} free columns of tensor memory")),
            Wait::Registers { pc, count } => {
                let free = self.cta.registers.free / 32;
                let what = format!(
                    "{count} registers for each of its threads (`setmaxnreg.inc`); the pool of the CTA has enough for {free} more"
                );
                (pc, what)
            }
            Wait::Barrier { pc, id } => {
                let barrier = &self.cta.barriers[id as usize];
                let arrived: u32 = barrier.arrived.iter().map(|mask| mask.count_ones()).sum();
                let all: u32 = self.cta.alive.iter().map(|mask| mask.count_ones()).sum();
                let wanted = barrier.expected.unwrap_or(all);
                (pc, format!("barrier {id}, at which {arrived} of {wanted} threads have arrived"))
            }
            Wait::Phase { pc, address } => {
                let offset = map::split_rank(address).1.wrapping_sub(map::SHARED_START) as usize;
                let lacks = self.cta.mbarriers.get(&offset).map_or("it is invalid".to_string(), Mbarrier::lacks);
                (pc, format!("the mbarrier at {}, {lacks}", self.shared_name(offset)))
            }
        }
    }

    /// The name of the mbarrier that lanes wait for.
    pub(super) fn mbarrier_of(&self, wait: Wait) -> Option<String> {
        let Wait::Phase { address, .. } = wait else { return None };
        let offset = map::split_rank(address).1.wrapping_sub(map::SHARED_START) as usize;
        Some(self.shared_name(offset))
    }

    /// The fault of the current CTA, in which no thread can run; `others` tells of other CTAs.
    pub(super) fn deadlock_fault(&mut self, warps: &[Warp], others: &str) -> Box<Fault> {
        let mut waiting = Vec::new();
        let mut aligned = None;
        for warp in warps {
            for (wait, mask) in waits_of(warp) {
                let (pc, what) = self.describe(wait);
                if matches!(wait, Wait::Aligned { .. }) && aligned.is_none() && has_diverged(warp) {
                    aligned = Some((warp.id, mask, pc));
                }
                waiting.push((pc, Waiting { warp: warp.id, lanes: mask, what, at: self.program.place(pc) }));
            }
            if warp.ready != 0 {
                // All that could run are in loops.
                let (pc, what) = self.describe_loop(warp);
                waiting.push((pc, Waiting { warp: warp.id, lanes: warp.ready, what, at: self.program.place(pc) }));
            }
        }
        let is_loop = warps.iter().any(|warp| warp.ready != 0);
        let (kind, message) = match aligned {
            Some(_) => (
                FaultKind::DivergentAligned,
                "only part of the warp reached this `.aligned` instruction; the rest waits elsewhere",
            ),
            None if is_loop => (
                FaultKind::Deadlock,
                "every thread that has not exited is waiting, or is in a loop in which nothing changes any more",
            ),
            None => (FaultKind::Deadlock, "every thread that has not exited is waiting"),
        };
        // A lane that is alive waits or is in a loop, so the list has an entry.
        let (warp, mask, pc) = aligned.unwrap_or((waiting[0].1.warp, waiting[0].1.lanes, waiting[0].0));
        self.record_deadlock();
        let mut stop = RaisedFault::new(kind, mask, format!("{message}{others}"));
        stop.waiting = waiting.into_iter().map(|(_, item)| item).collect();
        self.fault(*stop, pc, warp)
    }
}

/// Whether lanes of a warp wait for each other, at different instructions: nothing else can release them.
fn has_diverged(warp: &Warp) -> bool {
    warp.ready == 0
        && waits_of(warp).iter().all(|(wait, _)| matches!(wait, Wait::Aligned { .. } | Wait::Collective { .. }))
}

/// The waiting lanes of a warp, grouped by reason.
pub(super) fn waits_of(warp: &Warp) -> Vec<(Wait, u32)> {
    let mut found: Vec<(Wait, u32)> = Vec::new();
    for lane in lanes(warp.alive & !warp.ready) {
        let Some(wait) = warp.waits[lane] else { continue };
        match found.iter_mut().find(|(other, _)| *other == wait) {
            Some((_, mask)) => *mask |= 1 << lane,
            None => found.push((wait, 1 << lane)),
        }
    }
    found
}
