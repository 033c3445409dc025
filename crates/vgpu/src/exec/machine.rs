//! The state of a run.

use std::collections::BTreeMap;

use crate::banks::Banks;
use crate::clock::Flag;
use crate::exec::access::RegionId;
use crate::exec::cluster::ClusterState;
use crate::exec::control_flow::ControlFlow;
use crate::exec::cta::Cta;
use crate::exec::random::Random;
use crate::exec::recorder::Recorder;
use crate::exec::resident::Starts;
use crate::exec::tracer::Tracer;
use crate::exec::undefined::{KnownRaces, Origins};
use crate::fault::{Fault, RaisedFault};
use crate::lanes::{LaneOrder, Lanes};
use crate::launch::{Launch, Options, Progress};
use crate::memory::{Memory, Region};
use crate::op::ScalarOp;
use crate::program::Program;
use crate::report::Stats;
use crate::shadow::Shadow;

/// Number of thread instructions between two progress reports.
const REPORT_INTERVAL: u64 = 10_000_000;

/// The state of a run: everything that the executing kernel can access.
pub(super) struct Machine<'a> {
    pub(super) program: &'a Program,
    pub(super) launch: &'a Launch,
    pub(super) options: &'a Options,
    /// The parameter block of the launch.
    pub(super) params: &'a [u8],
    /// The constant memory of the module.
    pub(super) constants: &'a [u8],
    pub(super) memory: &'a mut Memory,
    pub(super) stats: Stats,
    pub(super) banks: Banks,
    /// The CTA that is running.
    pub(super) cta: Cta,
    /// The CTAs of its cluster, by rank; in its own place is another one, which nobody looks at.
    pub(super) peers: Vec<Cta>,
    /// The barrier of its cluster.
    pub(super) cluster: ClusterState,
    /// For each instruction, its group of stores that are declared disjoint, if it is in one.
    pub(super) apart: Vec<Option<u32>>,
    /// For each instruction, whether it is a store on an `any_wins` line.
    pub(super) any_wins: Vec<bool>,
    /// The instructions that are fused with products before them, by program counter.
    pub(super) fused: BTreeMap<u32, ScalarOp>,
    /// The registers of warps that have ended, for those that start.
    pub(super) spare_registers: Vec<Vec<Lanes>>,
    /// For each instruction, the order of lanes by address in which it has accessed memory last.
    pub(super) orders: Vec<LaneOrder>,
    /// Shadows of shared memory of CTAs that have ended, to be used again.
    pub(super) spare_shadows: Vec<Shadow>,
    /// The clusters that have not started.
    pub(super) starts: Starts,
    /// Number of the launch's first CTA.
    pub(super) first_cta: u32,
    /// What the CTAs with smaller numbers did is known to all threads from the start.
    pub(super) known_from: u32,
    /// The choices of the schedule of the cluster that is running; `None` without a seed.
    pub(super) random: Option<Random>,
    /// Arrivals and strong writes so far: what can end the wait of another thread.
    pub(super) effects: u64,
    /// Other changes of memory and of what is shared: stores, operations that engines start, and threads that exit.
    pub(super) changes: u64,
    /// Fences so far, at which other CTAs may have their turns.
    pub(super) fences: u64,
    /// What the `fence.sc` so far have released.
    pub(super) sequence: Flag,
    /// Strong reads in the current turn of a CTA.
    pub(super) strong_reads: u64,
    /// The buffer of the last global access.
    pub(super) last_buffer: usize,
    /// Loads that returned undefined bits.
    pub(super) origins: Origins,
    /// Where branches reconverge; computed on first use.
    pub(super) control_flow: Option<ControlFlow>,
    /// For instructions and exits of which it is known: whether the lanes that exit there went past the instruction.
    pub(super) passed: BTreeMap<(u32, u32), bool>,
    /// Reads that race with later writes: those found by earlier runs (`known_races`) and by this one (`new_races`).
    pub(super) known_races: &'a KnownRaces,
    pub(super) new_races: KnownRaces,
    /// Loads of bytes that were never written, or that race, give the bytes that are there: only to find which writes follow.
    pub(super) takes_unwritten_bytes: bool,
    /// Whether accesses of different clusters to the same bytes were not ordered.
    pub(super) has_met: bool,
    /// Whether this is the last run, so that no race can be deferred to another one.
    pub(super) is_last: bool,
    /// Records the run, if that is asked for.
    pub(super) recorder: Option<Box<Recorder>>,
    /// Records instructions, if that is asked for.
    pub(super) tracer: Option<Box<Tracer>>,
    /// The progress of the launch.
    pub(super) completed: Progress,
    /// Thread instructions at the last progress report.
    pub(super) last_report: u64,
    /// Receives progress reports.
    pub(super) watch: &'a mut dyn FnMut(Progress),
}

impl Machine<'_> {
    /// Reports the progress of the launch at intervals.
    pub(super) fn report_progress(&mut self) {
        let executed = self.completed.thread_instructions;
        if executed - self.last_report >= REPORT_INTERVAL {
            self.last_report = executed;
            (self.watch)(self.completed);
        }
    }

    /// Adds the source location, the CTA and the warp to a fault.
    pub(super) fn fault(&self, stop: RaisedFault, pc: u32, warp: u32) -> Box<Fault> {
        let at = self.program.place(stop.pc.unwrap_or(pc));
        Box::new(Fault {
            kind: stop.kind,
            at,
            cta: self.cta.index,
            warp: stop.warp.unwrap_or(warp),
            lanes: stop.lanes,
            address: stop.address,
            location: stop.location,
            message: stop.message,
            related: stop.related.map(|pc| self.program.place(pc)),
            is_between_ctas: stop.is_between_ctas,
            waiting: stop.waiting,
        })
    }

    /// The region that a slot is in.
    pub(crate) fn region(&self, id: RegionId) -> &Region {
        match id {
            RegionId::Shared => &self.cta.shared,
            RegionId::Peer(rank) => &self.peers[rank as usize].shared,
            RegionId::Local => &self.cta.local,
            RegionId::Buffer(index) => &self.memory.buffers[index].region,
        }
    }

    /// The region that a slot is in, to be written.
    pub(crate) fn region_mut(&mut self, id: RegionId) -> &mut Region {
        match id {
            RegionId::Shared => &mut self.cta.shared,
            RegionId::Peer(rank) => &mut self.peers[rank as usize].shared,
            RegionId::Local => &mut self.cta.local,
            RegionId::Buffer(index) => &mut self.memory.buffers[index].region,
        }
    }
}
