//! Runs the warps of a CTA in turn.

use crate::exec::lanes::lanes;
use crate::exec::machine::Machine;
use crate::exec::warp::{Environment, Wait, Warp};
use crate::fault::{Fault, FaultKind, RaisedFault, Waiting};
use crate::launch::Progress;
use crate::memory::map;

/// Number of steps that a warp runs before the next warp has its turn.
const QUANTUM: u32 = 512;

impl Machine<'_> {
    /// Runs the current CTA until all its threads have exited.
    pub(crate) fn run_cta(&mut self) -> Result<(), Box<Fault>> {
        let mut warps = self.warps();
        loop {
            let mut progress = false;
            for index in 0..warps.len() {
                if warps[index].ready != 0 {
                    progress = true;
                    self.turn(&mut warps[index])?;
                }
                for release in std::mem::take(&mut self.cta.released) {
                    let warp = &mut warps[release.warp as usize];
                    release.apply(warp);
                }
            }
            if warps.iter().all(|warp| warp.alive == 0) {
                return Ok(());
            }
            if !progress {
                return Err(self.deadlock_fault(&warps));
            }
        }
    }

    fn warps(&self) -> Vec<Warp> {
        let offset = self.program.dynamic_shared_offset();
        let environment = Environment {
            grid: self.launch.grid,
            block: self.launch.block,
            cta: self.cta.index,
            warps: self.cta.alive.len() as u32,
            dynamic_shared: map::SHARED_START + offset,
            dynamic_bytes: self.launch.dynamic_shared_bytes,
            total_bytes: self.cta.shared.bytes.len() as u32,
            launch: self.first_cta,
        };
        let alive = self.cta.alive.iter().enumerate();
        alive.map(|(id, mask)| Warp::new(self.program, id as u32, *mask, &environment)).collect()
    }

    /// One turn of a warp.
    fn turn(&mut self, warp: &mut Warp) -> Result<(), Box<Fault>> {
        for _ in 0..QUANTUM {
            if warp.active == 0 && !warp.select() {
                break;
            }
            let pc = warp.pc;
            if let Err(stop) = self.step(warp) {
                return Err(self.fault(*stop, pc, warp.id));
            }
            warp.yield_to_others();
        }
        self.report_progress();
        Ok(())
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

    /// The fault of a CTA in which no thread can run.
    fn deadlock_fault(&self, warps: &[Warp]) -> Box<Fault> {
        let mut waiting = Vec::new();
        let mut aligned = None;
        for warp in warps {
            for (wait, mask) in waits_of(warp) {
                let (pc, what) = describe(wait);
                if matches!(wait, Wait::Aligned { .. }) && aligned.is_none() {
                    aligned = Some((warp.id, mask, pc));
                }
                waiting.push((pc, Waiting { warp: warp.id, lanes: mask, what, at: self.program.place(pc) }));
            }
        }
        let (kind, message) = match aligned {
            Some(_) => (
                FaultKind::DivergentAligned,
                "only part of the warp reached this `.aligned` instruction; the rest waits elsewhere",
            ),
            None => (FaultKind::Deadlock, "every thread that has not exited is waiting"),
        };
        // A lane that is alive and not ready waits, so the list has an entry.
        let (warp, mask, pc) = aligned.unwrap_or((waiting[0].1.warp, waiting[0].1.lanes, waiting[0].0));
        let mut stop = RaisedFault::new(kind, mask, message);
        stop.waiting = waiting.into_iter().map(|(_, item)| item).collect();
        self.fault(*stop, pc, warp)
    }
}

/// The waiting lanes of a warp, grouped by reason.
fn waits_of(warp: &Warp) -> Vec<(Wait, u32)> {
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

fn describe(wait: Wait) -> (u32, String) {
    match wait {
        Wait::Collective { pc, members, .. } => (pc, format!("the member lanes {members:#010x} of its warp")),
        Wait::Aligned { pc } => (pc, "the rest of its warp".to_string()),
        Wait::Barrier { pc, id } => (pc, format!("barrier {id}")),
    }
}
