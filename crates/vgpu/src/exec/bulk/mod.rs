//! Bulk copies and tensor copies: an engine moves many bytes, and tells an mbarrier or the group of its thread.
//!
//! A copy is checked where it starts, as accesses that nobody is ordered after, and by the asynchronous proxy: bytes that
//! threads have written need a proxy fence before it. It moves its bytes when nothing else can run, when its thread waits
//! for its group, or earlier if the schedule says so.

mod boxes;
mod cancel;
mod check;
mod engine;
mod maps;
mod start;
mod store;

use std::collections::VecDeque;

use crate::clock::{Agent, Contribution};
use crate::exec::access::{Access, RegionSlot};
use crate::exec::machine::Machine;
use crate::exec::tensor;
use crate::exec::warp::Warp;
use crate::fault::ExecResult;
use crate::lanes::lanes;
use crate::op::{BulkOp, BulkReduce};
use crate::shadow::ConflictRange;
use crate::tensor_map::MapSwizzle;

/// Agents of a CTA; later copies share them.
const AGENTS: u32 = 2048;

/// Where the bytes of a move come from.
#[derive(Clone, Debug)]
enum Source {
    Bytes(RegionSlot),
    /// They are outside the tensor.
    Fill,
    /// They are between elements, and remain undefined.
    Nothing,
    /// They tell whether a cluster was canceled.
    Response,
}

impl Source {
    fn slot(&self) -> Option<&RegionSlot> {
        if let Source::Bytes(slot) = self { Some(slot) } else { None }
    }
}

/// Adjacent bytes of a copy.
#[derive(Clone, Debug)]
struct Move {
    from: Source,
    to: RegionSlot,
    /// Bytes of the source that race.
    races: Vec<ConflictRange>,
    /// They are a whole span of this swizzle, and permuted within it in shared memory.
    permuted: Option<MapSwizzle>,
}

/// A copy that has started and not moved its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    warp: u32,
    /// The access of its source; the lane and the instruction are those that started it.
    read: Access,
    /// Who writes.
    writer: Agent,
    moves: Vec<Move>,
    /// What bytes outside the tensor become, for each element.
    fill: Vec<u8>,
    reduce: Option<BulkReduce>,
    /// What was ordered before its start.
    before: Contribution,
    /// When it started, in a recorded run.
    pub(super) started_at: u64,
    /// The objects that count its bytes, and their number.
    mbarriers: Vec<(RegionSlot, i64)>,
}

/// Copies to global memory that a thread has committed.
#[derive(Clone, Debug, Default)]
struct Group {
    copies: Vec<(Agent, Agent)>,
    /// The thread has waited for its sources to be read.
    is_read: bool,
}

/// The groups of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    open: Group,
    committed: VecDeque<Group>,
}

impl Machine<'_> {
    pub(crate) fn bulk(&mut self, warp: &Warp, exec: u32, op: &BulkOp) -> ExecResult<()> {
        for lane in lanes(exec) {
            let thread = warp.thread(lane);
            match op {
                BulkOp::Start(copy) => self.start_bulk(warp, lane, copy)?,
                BulkOp::Commit => {
                    let groups = self.cta.groups.entry(thread).or_default();
                    let group = std::mem::take(&mut groups.open);
                    groups.committed.push_back(group);
                }
                BulkOp::Wait { pending, reads_only } => self.wait_for_bulk(thread, *pending as usize, *reads_only)?,
                BulkOp::FenceProxy(fence) => self.cta.clocks.fence_proxy(thread, *fence),
                BulkOp::Store { .. } => self.start_async_store(warp, lane, op)?,
                BulkOp::Cancel { at, mbarrier, is_multicast } => {
                    self.start_cancel(warp, lane, (at, mbarrier), *is_multicast)?;
                }
                BulkOp::Replace { map, field, value } => self.replace_in_map(warp, lane, map, (*field, *value))?,
                BulkOp::AcquireMap { map, scope } => self.acquire_map(warp, lane, map, *scope)?,
                BulkOp::CopyMap { to, from, scope } => self.copy_map(warp, lane, (to, from), *scope)?,
            }
        }
        Ok(())
    }

    fn wait_for_bulk(&mut self, thread: u32, pending: usize, reads_only: bool) -> ExecResult<()> {
        let groups = self.cta.groups.entry(thread).or_default();
        let waits = groups.committed.iter().filter(|group| !(reads_only && group.is_read)).count();
        let mut done = Vec::new();
        let mut left = waits.saturating_sub(pending);
        for group in groups.committed.iter_mut().filter(|group| !(reads_only && group.is_read)) {
            if left == 0 {
                break;
            }
            left -= 1;
            group.is_read = true;
            done.extend(group.copies.iter().copied());
        }
        if !reads_only {
            let kept = groups.committed.len().min(pending);
            let gone = groups.committed.len() - kept;
            groups.committed.drain(..gone);
        }
        for (reader, writer) in done {
            while let Some(at) = self.cta.engine.iter().position(|bulk| bulk.writer == writer) {
                let bulk = self.cta.engine.remove(at);
                self.perform_bulk(&bulk)?;
            }
            self.cta.clocks.learn_agent([thread].into_iter(), reader);
            if !reads_only {
                self.cta.clocks.learn_agent([thread].into_iter(), writer);
            }
        }
        Ok(())
    }

    /// Two agents, for what a copy reads and for what it writes.
    fn new_agents(&mut self) -> (Agent, Agent) {
        let threads = self.cta.alive.len() as u32 * 32 + tensor::AGENTS;
        // Those of copies that no thread has waited for are not used again.
        let waited = |groups: &Groups, thread: u32| {
            let all = groups.committed.iter().chain([&groups.open]).flat_map(|group| &group.copies);
            all.into_iter().all(|(reader, _)| reader.thread != thread)
        };
        let is_free = |next: u32| self.cta.groups.values().all(|groups| waited(groups, threads + next % AGENTS));
        let mut next = self.cta.next_agent;
        let tried = (0..AGENTS / 2).find(|at| is_free(next + 2 * at)).unwrap_or(0);
        next += 2 * tried;
        self.cta.next_agent = next + 2;
        let agent = |at: u32| Agent { thread: threads + at % AGENTS, number: at / AGENTS + 1, is_engine: true };
        (agent(next), agent(next + 1))
    }
}
