//! The engine that performs products and copies in the order in which they started.

mod perform;
mod start;

use std::ops::Range;

use crate::clock::{Agent, Contribution, Far};
use crate::exec::access::{Access, RegionId, RegionSlot};
use crate::exec::machine::Machine;
use crate::exec::product::{Shape, Units};
use crate::exec::tensor::memory::{Area, By, Mark, split};
use crate::exec::tensor::operands::Datapath;
use crate::exec::tensor::{ISSUERS, threads_of};
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, Fault, FaultKind, RaisedFault};
use crate::op::TensorCopy;
use crate::timeline::Engine;

/// Lanes of a quarter.
const QUARTER: usize = 32;
/// Columns that are shifted: 32 bytes.
const SHIFTED_COLUMNS: usize = 8;
/// The groups of 16 lanes that have the first lanes of the quarters.
const FIRST_OF_QUARTERS: u8 = 0b0101_0101;

/// What the engine does next.
#[derive(Debug)]
pub(super) enum Task {
    Product(Box<Product>),
    Copy(Box<Copy>),
    Shift(Box<Shift>),
    Commit(Box<Commit>),
}

/// A thread that issues products and copies, how many it has issued, and what was ordered before the last one.
#[derive(Debug)]
pub(super) struct Issuer {
    thread: u32,
    number: u32,
    before: Contribution,
}

/// Who started something, and the columns that it uses.
#[derive(Clone, Debug)]
struct Start {
    warp: u32,
    read: Access,
    agent: Agent,
    columns: Vec<Range<usize>>,
    /// When it started, in a recorded run.
    at: u64,
}

/// The left multiplicand.
#[derive(Debug)]
enum Source {
    Shared(Units),
    Tensor(u32),
}

/// What one CTA has of a product: its rows.
#[derive(Debug)]
struct Half {
    /// Its shared memory.
    id: RegionId,
    a: Source,
    /// Lanes that are not written.
    disabled: u128,
}

#[derive(Debug)]
pub(super) struct Product {
    start: Start,
    /// The shape of the rows of one CTA.
    shape: Shape,
    path: Datapath,
    d: u32,
    /// One for each CTA.
    halves: Vec<Half>,
    /// The columns that each CTA has of B.
    b: Vec<Units>,
    /// Addresses of the scale factors, and how many each line has.
    scales: Option<(u32, u32, usize)>,
    accumulates: bool,
    shift: u32,
}

#[derive(Debug)]
pub(super) struct Copy {
    start: Start,
    first_column: usize,
    /// For each CTA, its shared memory and the units there.
    parts: Vec<(RegionId, Units)>,
    shape: TensorCopy,
}

#[derive(Debug)]
pub(super) struct Shift {
    start: Start,
    first_lane: usize,
    first_column: usize,
    /// The shared memory of each CTA.
    ids: Vec<RegionId>,
}

#[derive(Debug)]
pub(super) struct Commit {
    warp: u32,
    lane: usize,
    pc: u32,
    slot: RegionSlot,
    known: Far,
    before: Contribution,
}

impl Product {
    /// The sums in runs of adjacent columns: the number of the first sum, its lane and its column.
    fn runs(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let (Shape { m, n, .. }, path) = (self.shape, self.path);
        let (first_lane, first_column) = split(self.d);
        (0..m * n).step_by(path.columns(n)).map(move |at| {
            let (lane, column) = path.place(m, n, at / n, at % n);
            (at, first_lane + lane, first_column + column)
        })
    }
}

impl Task {
    /// Who started a product or copy and what it uses, and in how many CTAs.
    fn work(&self) -> Option<(&Start, usize)> {
        match self {
            Task::Product(product) => Some((&product.start, product.halves.len())),
            Task::Copy(copy) => Some((&copy.start, copy.parts.len())),
            Task::Shift(shift) => Some((&shift.start, shift.ids.len())),
            Task::Commit(_) => None,
        }
    }

    /// The instruction, the warp and the lane that started it.
    pub(super) fn start(&self) -> (u32, u32, usize) {
        match self {
            Task::Product(product) => product.start.place(),
            Task::Copy(copy) => copy.start.place(),
            Task::Shift(shift) => shift.start.place(),
            Task::Commit(commit) => (commit.pc, commit.warp, commit.lane),
        }
    }
}

impl Start {
    fn place(&self) -> (u32, u32, usize) {
        (self.read.pc, self.warp, self.read.lane)
    }
}

impl Machine<'_> {
    /// The agent of a thread that issues products and copies, with their number so far.
    fn issuer(&mut self, thread: u32) -> (usize, Agent) {
        let issuers = &mut self.cta.tensor.issuers;
        let found = issuers.iter().position(|issuer| issuer.thread == thread);
        let slot = found.unwrap_or_else(|| {
            if issuers.len() < ISSUERS as usize {
                let before = self.cta.clocks.started(thread);
                issuers.push(Issuer { thread, number: 0, before });
            }
            issuers.len() - 1
        });
        let number = issuers[slot].number;
        (slot, Agent { thread: threads_of(&self.cta) + slot as u32, number, is_engine: true })
    }

    /// When the product, copy or shift that is next was started, in a recorded run.
    pub(crate) fn next_tensor_start(&self) -> Option<u64> {
        self.cta.tensor.queue.front()?.work().map(|(start, _)| start.at)
    }

    pub(crate) fn is_commit_next(&self) -> bool {
        matches!(self.cta.tensor.queue.front(), Some(Task::Commit(_)))
    }

    pub(crate) fn has_tensor_work(&self) -> bool {
        !self.cta.tensor.queue.is_empty()
    }

    /// Hands a product, copy or shift to the engine.
    fn enqueue(&mut self, task: Task) {
        if let Some((start, _)) = task.work() {
            self.record_start((start.warp, start.read.pc), Engine::Tensor, start.agent);
        }
        self.cta.tensor.queue.push_back(task);
    }

    fn new_start(&self, warp: &Warp, lane: usize, agent: Agent, columns: Vec<Range<usize>>) -> Start {
        let read = self.bulk_access(warp, lane, 0, Some(agent));
        let at = self.recorder.as_ref().map_or(0, |recorder| recorder.timeline.ticks);
        Start { warp: warp.id, read, agent, columns, at }
    }

    /// The agent of a new product or copy.
    fn next_issue(&mut self, thread: u32) -> Agent {
        let (slot, agent) = self.issuer(thread);
        let before = self.cta.clocks.started(thread);
        let issuer = &mut self.cta.tensor.issuers[slot];
        issuer.number += 1;
        issuer.before = before;
        Agent { number: agent.number + 1, ..agent }
    }

    /// Records an access by the engine to the tensor memory of the CTA that has a region.
    fn engine_access(
        &mut self,
        (warp, lane): (&Warp, usize),
        agent: Agent,
        (id, area): (RegionId, &Area),
        by: By,
    ) -> ExecResult<()> {
        self.must_be_allocated(id, area, 1 << lane)?;
        if !self.options.check_races {
            return Ok(());
        }
        let mark = Mark { cta: self.cta.number, agent: agent.thread, number: agent.number, pc: warp.pc, by };
        self.tensor_access((warp.thread(lane), 1 << lane), id, area, mark, by != By::Multiplicand)
    }

    /// The shared memories of the CTAs that execute an instruction together, the one of the even rank first.
    fn group(&self, lane: usize, is_pair: bool) -> ExecResult<Vec<RegionId>> {
        if !is_pair {
            return Ok(vec![RegionId::Shared]);
        }
        let own = self.cta.rank;
        let id = |rank: u32| if rank == own { RegionId::Shared } else { RegionId::Peer(rank) };
        let illegal = |message: &str| Err(RaisedFault::new(FaultKind::IllegalInstruction, 1 << lane, message));
        match self.peers.get((own ^ 1) as usize) {
            Some(other) if !other.has_ended => Ok(vec![id(own & !1), id(own | 1)]),
            Some(_) => illegal("the other CTA of the pair has exited"),
            None => illegal("a pair of CTAs is in one cluster, and this CTA has no other one with it"),
        }
    }

    /// The PTX line of a product or copy of the CTA or of the other one of its pair that uses some of these columns and is
    /// not known to be complete.
    pub(super) fn running_task(&self, columns: Range<usize>, is_known: &dyn Fn(u32, u32, u32) -> bool) -> Option<u32> {
        let other = self.peers.get((self.cta.rank ^ 1) as usize);
        let running = [Some(&self.cta), other].into_iter().flatten().find_map(|cta| {
            let is_own = cta.number == self.cta.number;
            let overlaps = |used: &Range<usize>| used.start < columns.end && columns.start < used.end;
            cta.tensor.queue.iter().find(|task| {
                task.work().is_some_and(|(start, ctas)| {
                    (is_own || ctas > 1)
                        && start.columns.iter().any(overlaps)
                        && !is_known(cta.number, start.agent.thread, start.agent.number)
                })
            })
        });
        running.map(|task| self.program.line(task.start().0))
    }

    /// Performs what started first. Returns whether there was something.
    pub(crate) fn advance_tensor(&mut self) -> Result<bool, Box<Fault>> {
        let Some(task) = self.cta.tensor.queue.pop_front() else { return Ok(false) };
        self.effects += 1;
        let (pc, warp, _) = task.start();
        match task.work() {
            Some((start, _)) => self.record_end(start.agent),
            None => self.record_commit(),
        }
        let done = match task {
            Task::Product(product) => {
                self.perform_product(&product);
                Ok(())
            }
            Task::Copy(copy) => {
                self.perform_tensor_copy(&copy);
                Ok(())
            }
            Task::Shift(shift) => {
                self.perform_shift(&shift);
                Ok(())
            }
            Task::Commit(commit) => self.arrive_by_copies(commit.lane, &commit.slot, &commit.known, commit.before),
        };
        match done {
            Ok(()) => Ok(true),
            Err(stop) => Err(self.fault(*stop, pc, warp)),
        }
    }
}
