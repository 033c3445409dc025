//! The ways in which the copies of a loop may run ahead, how many stages each has, and what it costs.

use std::collections::BTreeSet;

use tilewright_diag::counted;
use tilewright_ir::plan::{PlanFacts, Reason};
use tilewright_ir::thread::Memory;
use tilewright_ir::{Counter, Handle, SHARED_ALIGNMENT};

use super::RunsAhead;
use super::by_engine::ByEngine;
use super::rotate::Rotation;

/// The most stages that are chosen.
const MOST_CHOSEN: i64 = 8;

/// How the copies of a loop may run ahead, or why not: by the copy engine, and by threads in so many stages.
pub(super) struct Ways {
    pub(super) engine: Result<ByEngine, Vec<Reason>>,
    pub(super) threads: Result<(i64, PlanFacts), Vec<Reason>>,
}

impl Ways {
    /// Whether the copy engine is asked for, or takes fewer instructions, or allows more stages.
    pub(super) fn takes_engine(&self, ahead: &RunsAhead) -> bool {
        ahead.may_be_engine()
            && match (&self.engine, &self.threads) {
                (Ok(engine), Ok((stages, facts))) => {
                    let is_cheaper = engine.facts.instructions < facts.instructions || engine.stages > *stages;
                    is_cheaper || ahead.variant.is_some()
                }
                (Ok(_), Err(_)) => true,
                (Err(_), _) => false,
            }
    }
}

impl Rotation<'_> {
    /// The ways in which the copies of a loop may run ahead.
    pub(super) fn ways(&self, ahead: &RunsAhead, counter: &Counter) -> Ways {
        Ways { engine: self.by_engine(ahead, counter), threads: self.by_threads(ahead, counter) }
    }

    /// How threads fill the stages of a loop, and how many there are. Error: why they do not.
    fn by_threads(&self, ahead: &RunsAhead, counter: &Counter) -> Result<(i64, PlanFacts), Vec<Reason>> {
        // Registers hold one iteration.
        let asked = if ahead.has_async_copies() { self.asked(ahead) } else { self.asked(ahead).min(2) };
        let stages = self.stages(ahead, counter, asked, 0, &|_| SHARED_ALIGNMENT)?;
        let in_registers = ahead.copies.iter().filter(|copy| copy.halves.is_some());
        let held: BTreeSet<Handle<Memory>> = in_registers.flat_map(|copy| copy.fills.iter().copied()).collect();
        let way = match (held.is_empty(), ahead.has_async_copies()) {
            (true, _) => String::new(),
            (false, true) => format!(", those to {} through registers", self.names(held)),
            (false, false) => ", through registers".to_string(),
        };
        // The wait, the barrier, the commit, and whether there is an iteration to copy for.
        let instructions = 5 + ahead.instructions();
        Ok((stages, PlanFacts::without_accesses(self.summary(ahead, counter, stages) + &way, instructions)))
    }

    /// The stages for which shared memory suffices, beside `beside` bytes, if each memory begins at multiples of what
    /// `aligned` gives: at most those that are asked for, and one for each iteration. Error: why there is only one.
    pub(super) fn stages(
        &self,
        ahead: &RunsAhead,
        counter: &Counter,
        asked: i64,
        beside: i64,
        aligned: &dyn Fn(Handle<Memory>) -> i64,
    ) -> Result<i64, Vec<Reason>> {
        let mut reasons = ahead.against.clone();
        if ahead.copies.is_empty() {
            if reasons.is_empty() {
                let text = "no statement of the loop copies a tile of a tensor to shared memory";
                reasons.push(Reason::new(text, "copies directly in the loop"));
            }
            return Err(reasons);
        }
        let program = &self.builder.program;
        let (most, taken) = (program.target.shared_bytes(), program.shared_bytes().saturating_add(beside));
        let more = |handle: Handle<Memory>, stages: i64| {
            let memory = &program.memories[handle];
            let all = |stages: i64, alignment: i64| stages.saturating_mul(bytes_of_stage(memory, alignment));
            (all(stages, memory.alignment.max(aligned(handle))) - all(memory.stages, memory.alignment)).max(0)
        };
        let taken_with = |stages: i64| {
            ahead.memories().into_iter().map(|memory| more(memory, stages)).fold(taken, i64::saturating_add)
        };
        let fits = |stages: &i64| taken_with(*stages) <= most;
        let needed = asked.min(counter.most_trips());
        (2..=needed).rev().find(fits).ok_or_else(|| {
            let text = format!("with 2 stages, all shared memory of the kernel takes {} B", taken_with(2));
            let accepted = format!("the {most} B that a CTA of {} has", program.target);
            reasons.push(Reason::new(text, accepted));
            reasons
        })
    }

    /// The stages that the user asks for, or with which as many bytes are on their way as the target needs.
    pub(super) fn asked(&self, ahead: &RunsAhead) -> i64 {
        let bytes = self.stage_bytes(ahead).max(1);
        let needed = self.builder.program.target.bytes_in_flight();
        ahead.stages.unwrap_or(((needed + bytes - 1) / bytes + 1).clamp(2, MOST_CHOSEN))
    }

    /// Bytes of a stage of all buffers.
    fn stage_bytes(&self, ahead: &RunsAhead) -> i64 {
        let memory = |handle: Handle<Memory>| &self.builder.program.memories[handle];
        ahead.memories().into_iter().map(memory).map(|memory| bytes_of_stage(memory, memory.alignment)).sum()
    }

    /// The names of memories, in a list.
    fn names(&self, of: BTreeSet<Handle<Memory>>) -> String {
        let name = |memory| format!("`{}`", self.builder.program.memories[memory].name);
        of.into_iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// `3 stages of `left`, `right`: 12288 B each; copies run 2 iterations ahead`
    pub(super) fn summary(&self, ahead: &RunsAhead, counter: &Counter, stages: i64) -> String {
        let asked = self.asked(ahead);
        let fewer = if stages == asked && ahead.stages.is_none() {
            format!(", for {} B on their way", self.builder.program.target.bytes_in_flight())
        } else if stages == asked {
            String::new()
        } else if stages == counter.most_trips() {
            ", as many as iterations".to_string()
        } else if !ahead.has_async_copies() {
            ", since registers hold one iteration".to_string()
        } else {
            format!(", since {asked} do not fit into shared memory")
        };
        format!(
            "{stages} stages of {}{fewer}: {} B each; copies run {} ahead",
            self.names(ahead.memories()),
            self.stage_bytes(ahead),
            counted(stages - 1, "iteration")
        )
    }
}

/// Bytes from the beginning of a stage to that of the next, if the memory begins at multiples of `alignment` bytes.
pub(super) fn bytes_of_stage(memory: &Memory, alignment: i64) -> i64 {
    let bytes = memory.stage_elements() * memory.dtype.bytes();
    (bytes + alignment - 1) / alignment * alignment
}
