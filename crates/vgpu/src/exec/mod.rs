//! Executing a decoded kernel: CTAs one after another, the warps of a CTA in turns, converged lanes together.

mod aligned;
mod atomic;
mod barrier;
mod collective;
mod compare;
mod control;
mod convert;
mod cta;
mod double_mma;
mod float;
mod int;
mod joins;
mod ldmatrix;
mod matrix;
mod memory;
mod mma;
mod place;
mod step;
mod undefined;
mod warp;

use crate::banks::Banks;
use crate::fault::{Fault, Stop};
use crate::launch::{Launch, Options, Progress};
use crate::memory::Memory;
use crate::program::{Info, Program};
use crate::report::{Report, Stats};
use cta::Cta;
use joins::Joins;
pub(crate) use undefined::UndefinedByte;
use undefined::{KnownRaces, Origins};

/// Runs of one launch at most, each with the races that the ones before found.
const MOST_RUNS: usize = 16;

/// Instructions of threads after which the watcher is told again.
const TOLD_EVERY: u64 = 10_000_000;

/// Everything a running kernel can reach.
struct Machine<'a> {
    program: &'a Program,
    launch: &'a Launch,
    options: &'a Options,
    params: &'a [u8],
    constants: &'a [u8],
    memory: &'a mut Memory,
    stats: Stats,
    banks: Banks,
    cta: Cta,
    /// By instruction, the group of stores that are said to be apart; empty where there is none.
    apart: Vec<Option<u32>>,
    /// Whether an instruction is a store of which any may win; empty where there is none.
    any_wins: Vec<bool>,
    /// Number of the launch's first CTA.
    first_cta: u32,
    /// The buffer of the last global access.
    last_buffer: usize,
    /// Loads that got undefined bits.
    origins: Origins,
    /// Where branches meet again, once that was asked.
    joins: Option<Joins>,
    /// Reads that race with later writes: those that earlier runs found, and those of this one.
    known: &'a KnownRaces,
    found: KnownRaces,
    /// Whether a race may be left to another run.
    is_last: bool,
    /// What the CTAs before this one come to.
    before: Progress,
    /// Instructions of threads when the watcher was last told.
    told: u64,
    watch: &'a mut dyn FnMut(Progress),
}

/// A kernel, and what it is launched with.
pub(crate) struct Ready<'a> {
    pub(crate) program: &'a Program,
    pub(crate) launch: &'a Launch,
    pub(crate) params: &'a [u8],
    pub(crate) constants: &'a [u8],
    pub(crate) options: &'a Options,
}

/// Runs every CTA of the launch; again with what it learns of reads that race with later writes.
pub(crate) fn run_grid(
    ready: &Ready<'_>,
    memory: &mut Memory,
    watch: &mut dyn FnMut(Progress),
) -> Result<Report, Box<Fault>> {
    let before = ready.options.check_races.then(|| memory.clone());
    let mut known = KnownRaces::default();
    let mut runs = 1;
    loop {
        let is_last = runs == MOST_RUNS || before.is_none();
        let (result, found) = run_once(ready, memory, watch, &known, is_last);
        if !known.join(found) || is_last {
            return result;
        }
        if let Some(before) = &before {
            *memory = before.clone();
        }
        runs += 1;
    }
}

/// One run, and the reads that raced with later writes.
fn run_once(
    ready: &Ready<'_>,
    memory: &mut Memory,
    watch: &mut dyn FnMut(Progress),
    known: &KnownRaces,
    is_last: bool,
) -> (Result<Report, Box<Fault>>, KnownRaces) {
    let Ready { program, launch, params, constants, options } = *ready;
    let [x, y, z] = launch.grid;
    let count = x.saturating_mul(y).saturating_mul(z);
    let lines: Vec<u32> = program.info.iter().map(|info| info.line).collect();
    let first_cta = memory.begin_launch(launch.grid, count, lines);
    let mut machine = Machine {
        program,
        launch,
        options,
        params,
        constants,
        memory,
        stats: Stats::new(program.code.len()),
        banks: Banks::new(),
        cta: Cta::new(program, launch, options, first_cta, [0; 3]),
        apart: by_line(program, |line| options.apart.get(&line).copied()),
        any_wins: by_line(program, |line| options.any_wins.contains(&line)),
        first_cta,
        last_buffer: 0,
        origins: Origins::default(),
        joins: None,
        known,
        found: KnownRaces::default(),
        is_last,
        before: Progress { ctas: count, ended: 0, thread_instructions: 0 },
        told: 0,
        watch,
    };
    let result = (0..count).try_for_each(|linear| {
        let index = [linear % x, linear / x % y, linear / x / y];
        machine.cta = Cta::new(program, launch, options, first_cta.saturating_add(linear), index);
        machine.run_cta()?;
        machine.before.ended += 1;
        machine.before.thread_instructions += machine.cta.executed;
        Ok(())
    });
    let report = result.map(|()| machine.stats.report(program));
    (report, machine.found)
}

/// What `of_line` gives for the CUDA line of each instruction. Inlined code has the line of the function that it came from,
/// which is not a line of the kernel.
fn by_line<T: Default>(program: &Program, of_line: impl Fn(u32) -> T) -> Vec<T> {
    let line = |info: &Info| info.loc.filter(|loc| loc.inlined_at.is_none()).map(|loc| loc.line);
    program.info.iter().map(|info| line(info).map(&of_line).unwrap_or_default()).collect()
}

impl Machine<'_> {
    /// Tells the watcher now and then how far the launch is.
    fn tell(&mut self) {
        let thread_instructions = self.before.thread_instructions + self.cta.executed;
        if thread_instructions - self.told >= TOLD_EVERY {
            self.told = thread_instructions;
            (self.watch)(Progress { thread_instructions, ..self.before });
        }
    }

    /// Adds the place to a fault.
    fn fault(&self, stop: Stop, pc: u32, warp: u32) -> Box<Fault> {
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
            waiting: stop.waiting,
        })
    }
}
