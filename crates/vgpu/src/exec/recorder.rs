//! Records a run, and the schedule of a recorded run.

use std::collections::BTreeMap;

use crate::clock::Agent;
use crate::exec::machine::Machine;
use crate::exec::schedule::{Slice, waits_of};
use crate::exec::warp::{Wait, Warp};
use crate::fault::Fault;
use crate::timeline::{
    Actor, Busy, Engine, Lines, MOST_CTAS, MOST_EVENTS, MOST_TICKS, Operation, PhaseEnd, Timeline, Waited, WarpPlace,
};

/// Ticks that a copy takes.
const COPY_TICKS: u64 = 48;
/// Ticks that a product or copy of the tensor engine takes, one after another.
const TENSOR_TICKS: u64 = 12;
/// Every so many ticks, a copy of `cp.async` of each warp is complete.
const SMALL_COPY_TICKS: u64 = 4;

/// A record that grows.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) timeline: Timeline,
    /// The actor whose step is in progress.
    actor: Option<Actor>,
    /// The last stretch of each warp, by its index in the timeline.
    last_busy: BTreeMap<WarpPlace, usize>,
    /// The waits that have not ended, by warp, with their indices in the timeline.
    open: BTreeMap<WarpPlace, Vec<(Wait, usize)>>,
    /// The operations that are not complete, by the CTA and the agent that stands for them.
    running: BTreeMap<(u32, u32, u32), usize>,
    /// The tick in which each CTA's tensor engine was last done with something.
    tensor_done: BTreeMap<u32, u64>,
    /// What it was, by its index in the timeline.
    last_of_tensor: BTreeMap<u32, usize>,
    /// The record when nothing could happen any more but that waits end without success, and the machine's count of effects.
    quiet: Option<(u64, Timeline)>,
}

impl Recorder {
    /// Whether what happens now in a CTA is recorded.
    fn is_recorded(&mut self, cta: [u32; 3], warps: u32) -> bool {
        let timeline = &self.timeline;
        let events = timeline.busy.len() + timeline.waits.len() + timeline.operations.len() + timeline.phases.len();
        if timeline.ticks >= MOST_TICKS || events >= MOST_EVENTS {
            self.timeline.is_cut = true;
            return false;
        }
        let known = self.timeline.ctas.iter().any(|(index, _)| *index == cta);
        if !known && self.timeline.ctas.len() == MOST_CTAS {
            self.timeline.is_cut = true;
            return false;
        }
        if !known {
            self.timeline.ctas.push((cta, warps));
        }
        true
    }
}

impl Machine<'_> {
    /// One tick of the current CTA: each warp that can run executes one instruction, and operations that have taken long
    /// enough are completed.
    pub(super) fn run_tick(&mut self, warps: &mut [Warp]) -> Result<Slice, Box<Fault>> {
        self.apply_releases(warps);
        let mut progress = false;
        for index in 0..warps.len() {
            if warps[index].ready != 0 && !self.is_endless(&warps[index]) {
                progress = true;
                self.step_recorded(&mut warps[index])?;
                self.apply_releases(warps);
            }
        }
        progress |= self.complete_operations(warps)?;
        if warps.iter().all(|warp| warp.alive == 0) {
            return self.end_cta();
        }
        let goes_on = progress || self.wake_sleepers(warps)?;
        Ok(if goes_on { Slice::Running } else { Slice::Blocked })
    }

    fn step_recorded(&mut self, warp: &mut Warp) -> Result<(), Box<Fault>> {
        let at = self.place_of_warp(warp.id);
        if warp.active == 0 {
            warp.select();
        }
        let pc = warp.pc;
        self.record_step(at, pc);
        let before = self.cta.executed;
        if let Err(stop) = self.step(warp) {
            return Err(self.fault(*stop, pc, warp.id));
        }
        warp.yield_to_others();
        self.completed.thread_instructions += self.cta.executed - before;
        self.record_waits(warp);
        Ok(())
    }

    fn place_of_warp(&self, warp: u32) -> WarpPlace {
        WarpPlace { cta: self.cta.index, warp }
    }

    fn lines_of(&self, pc: u32) -> Lines {
        let info = &self.program.info[pc as usize];
        let cuda = info.loc.map(|loc| loc.inlined_at.map_or(loc.line, |(_, line)| line));
        Lines { ptx: (info.line, info.line), cuda: cuda.map(|line| (line, line)) }
    }

    fn record_step(&mut self, at: WarpPlace, pc: u32) {
        let (lines, warps) = (self.lines_of(pc), self.cta.alive.len() as u32);
        let Some(recorder) = &mut self.recorder else { return };
        recorder.actor = Some(Actor::Warp(at));
        if !recorder.is_recorded(at.cta, warps) {
            return;
        }
        let (tick, timeline) = (recorder.timeline.ticks, &mut recorder.timeline);
        let last = recorder.last_busy.get(&at).map(|index| &mut timeline.busy[*index]);
        if let Some(busy) = last.filter(|busy| busy.ticks.1 == tick) {
            busy.ticks.1 = tick + 1;
            busy.lines = joined(busy.lines, lines);
            return;
        }
        recorder.last_busy.insert(at, timeline.busy.len());
        timeline.busy.push(Busy { at, ticks: (tick, tick + 1), lines });
    }

    /// Records which waits of a warp have begun and ended.
    pub(super) fn record_waits(&mut self, warp: &Warp) {
        if self.recorder.is_none() {
            return;
        }
        let at = self.place_of_warp(warp.id);
        let now: Vec<(Wait, u32, String, Option<String>, Lines)> = waits_of(warp)
            .into_iter()
            .map(|(wait, lanes)| {
                let (pc, what) = self.describe(wait);
                (wait, lanes, what, self.mbarrier_of(wait), self.lines_of(pc))
            })
            .collect();
        let warps = self.cta.alive.len() as u32;
        let Some(recorder) = &mut self.recorder else { return };
        let is_recorded = recorder.is_recorded(at.cta, warps);
        let (tick, actor) = (recorder.timeline.ticks, recorder.actor.unwrap_or(Actor::Warp(at)));
        let open = recorder.open.entry(at).or_default();
        let Timeline { waits, phases, .. } = &mut recorder.timeline;
        open.retain(|(wait, index)| {
            let still = now.iter().any(|(other, ..)| other == wait);
            if !still {
                // Another CTA may have completed the phase, before this one had its turn.
                let phase = phases.iter().rev().find(|end| end.cta == at.cta && waits[*index].is_for(end));
                waits[*index].until = Some((tick, phase.map_or(actor, |end| end.by)));
            }
            still
        });
        for (wait, lanes, what, mbarrier, lines) in now {
            match open.iter().find(|(other, _)| *other == wait) {
                Some((_, index)) => recorder.timeline.waits[*index].lanes |= lanes,
                None if is_recorded => {
                    open.push((wait, recorder.timeline.waits.len()));
                    let is_for_own_warp = matches!(wait, Wait::Aligned { .. } | Wait::Collective { .. });
                    let waited = Waited { at, lanes, from: tick, until: None, what, mbarrier, is_for_own_warp, lines };
                    recorder.timeline.waits.push(waited);
                }
                None => {}
            }
        }
    }

    /// Records the start of an asynchronous operation, which an agent stands for.
    pub(crate) fn record_start(&mut self, (warp, pc): (u32, u32), engine: Engine, agent: Agent) {
        if self.recorder.is_none() {
            return;
        }
        let (by, lines) = (self.place_of_warp(warp), self.lines_of(pc));
        let opcode = self.program.info[pc as usize].opcode.clone();
        let key = (self.cta.number, agent.thread, agent.number);
        let warps = self.cta.alive.len() as u32;
        let Some(recorder) = &mut self.recorder else { return };
        if recorder.is_recorded(by.cta, warps) {
            recorder.running.insert(key, recorder.timeline.operations.len());
            let from = recorder.timeline.ticks;
            recorder.timeline.operations.push(Operation { by, engine, opcode, from, until: None, lines });
        }
    }

    /// Records that an asynchronous operation is complete, or about to tell others that it is.
    pub(crate) fn record_end(&mut self, agent: Agent) {
        let key = (self.cta.number, agent.thread, agent.number);
        let Some(recorder) = &mut self.recorder else { return };
        if let Some(index) = recorder.running.remove(&key) {
            recorder.timeline.operations[index].until = Some(recorder.timeline.ticks);
            recorder.actor = Some(Actor::Operation(index));
            if recorder.timeline.operations[index].engine == Engine::Tensor {
                recorder.last_of_tensor.insert(self.cta.number, index);
            }
        }
    }

    /// A commit tells others what the tensor engine was done with last.
    pub(crate) fn record_commit(&mut self) {
        let Some(recorder) = &mut self.recorder else { return };
        if let Some(index) = recorder.last_of_tensor.get(&self.cta.number) {
            recorder.actor = Some(Actor::Operation(*index));
        }
    }

    /// Nothing can happen any more but that waits end without success.
    pub(super) fn record_quiet(&mut self) {
        let effects = self.effects;
        if let Some(recorder) = &mut self.recorder
            && recorder.quiet.as_ref().is_none_or(|(at, _)| *at != effects)
        {
            recorder.quiet = Some((effects, recorder.timeline.clone()));
        }
    }

    /// A deadlock began when nothing could happen any more: that waits ended without success after it is not shown.
    pub(super) fn record_deadlock(&mut self) {
        let effects = self.effects;
        if let Some(recorder) = &mut self.recorder
            && let Some((_, timeline)) = recorder.quiet.take().filter(|(at, _)| *at == effects)
        {
            recorder.timeline = timeline;
        }
    }

    pub(crate) fn record_phase(&mut self, cta: [u32; 3], offset: usize, phase: u64) {
        if self.recorder.is_none() {
            return;
        }
        let name = self.shared_name(offset);
        let warps = self.cta.alive.len() as u32;
        let Some(recorder) = &mut self.recorder else { return };
        if recorder.is_recorded(cta, warps)
            && let Some(by) = recorder.actor
        {
            let tick = recorder.timeline.ticks;
            recorder.timeline.phases.push(PhaseEnd { cta, name, phase, tick, by });
        }
    }

    /// Completes the operations of the current CTA that have taken long enough. Returns whether some are running.
    fn complete_operations(&mut self, warps: &mut [Warp]) -> Result<bool, Box<Fault>> {
        let tick = self.recorder.as_ref().map_or(0, |recorder| recorder.timeline.ticks);
        let mut running = !self.cta.engine.is_empty() || self.has_tensor_work();
        while let Some(at) = self.cta.engine.iter().position(|bulk| bulk.started_at + COPY_TICKS <= tick) {
            self.complete_bulk(at)?;
            self.apply_releases(warps);
        }
        let done = self.recorder.as_ref().and_then(|recorder| recorder.tensor_done.get(&self.cta.number).copied());
        let began = self.next_tensor_start().map(|start| start.max(done.unwrap_or(0)));
        if began.is_some_and(|began| began + TENSOR_TICKS <= tick) || self.is_commit_next() {
            let is_work = !self.is_commit_next();
            self.advance_tensor()?;
            if let Some(recorder) = self.recorder.as_mut().filter(|_| is_work) {
                recorder.tensor_done.insert(self.cta.number, tick);
            }
            self.apply_releases(warps);
        }
        if tick.is_multiple_of(SMALL_COPY_TICKS) {
            for index in 0..warps.len() {
                running |= self.move_some_copy(index as u32)?;
                self.apply_releases(warps);
            }
        }
        Ok(running)
    }
}

/// The lines of both.
fn joined(a: Lines, b: Lines) -> Lines {
    let range = |a: (u32, u32), b: (u32, u32)| (a.0.min(b.0), a.1.max(b.1));
    let cuda = match (a.cuda, b.cuda) {
        (Some(a), Some(b)) => Some(range(a, b)),
        (a, b) => a.or(b),
    };
    Lines { ptx: range(a.ptx, b.ptx), cuda }
}
