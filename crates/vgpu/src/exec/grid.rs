//! Runs the CTAs of a launch, several times if a race has to be known in advance.

use crate::banks::Banks;
use crate::clock::Flag;
use crate::contract::{Contraction, contractions};
use crate::exec::cluster::ClusterState;
use crate::exec::cta::{Cta, CtaPlace};
use crate::exec::machine::Machine;
use crate::exec::parallel::run_apart;
use crate::exec::resident::Starts;
use crate::exec::undefined::{KnownRaces, Origins};
use crate::fault::Fault;
use crate::launch::{Launch, Options, Progress};
use crate::memory::Memory;
use crate::op::ScalarOp;
use crate::program::{InstInfo, Program};
use crate::ptx::ast::Loc;
use crate::report::{Report, Stats};
use crate::timeline::Timeline;
use crate::trace::Trace;

/// Maximum number of runs of one launch; each run knows the races that the previous runs found.
const MAX_RUNS: usize = 64;

/// Who is told what a launch does while it runs.
pub(crate) enum Observer<'a> {
    Nobody,
    Timeline(&'a mut Timeline),
    Trace(&'a mut Trace),
}

/// A kernel that is prepared to run, with its parameters and options.
pub(crate) struct PreparedLaunch<'a> {
    pub(crate) program: &'a Program,
    pub(crate) launch: &'a Launch,
    /// Number of the launch's first CTA.
    pub(crate) first_cta: u32,
    /// What the CTAs with smaller numbers did is known to all threads from the start.
    pub(crate) known_from: u32,
    /// The parameter block.
    pub(crate) params: &'a [u8],
    /// The constant memory of the module.
    pub(crate) constants: &'a [u8],
    pub(crate) options: &'a Options,
    /// Most CTAs that are resident at once.
    pub(crate) most_resident: u32,
}

/// Runs every CTA of the launch, and repeats the run as long as it finds new reads that race with later writes.
pub(crate) fn run_grid(
    prepared: &PreparedLaunch<'_>,
    memory: &mut Memory,
    watch: &mut dyn FnMut(Progress),
    mut observer: Observer<'_>,
) -> Result<Report, Box<Fault>> {
    let before = prepared.options.check_races.then(|| memory.clone());
    if let Some(before) = before.as_ref().filter(|_| matches!(observer, Observer::Nobody))
        && let Some((stats, after)) = run_apart(prepared, before, watch)
    {
        *memory = after;
        return Ok(stats.report(prepared.program, memory));
    }
    let mut known = KnownRaces::default();
    let mut runs = 1;
    loop {
        let is_last = runs == MAX_RUNS || before.is_none();
        let (result, found) = run_once(prepared, memory, watch, (&known, is_last), &mut observer);
        if !known.join(found) || is_last {
            return result;
        }
        if let Some(before) = &before {
            *memory = before.clone();
        }
        runs += 1;
    }
}

/// Performs one run. Also returns the reads that raced with later writes.
fn run_once(
    prepared: &PreparedLaunch<'_>,
    memory: &mut Memory,
    watch: &mut dyn FnMut(Progress),
    races: (&KnownRaces, bool),
    observer: &mut Observer<'_>,
) -> (Result<Report, Box<Fault>>, KnownRaces) {
    let mut machine = machine(prepared, memory, races, watch);
    match observer {
        Observer::Nobody => {}
        Observer::Timeline(_) => machine.recorder = Some(Box::default()),
        Observer::Trace(_) => machine.tracer = Some(Box::default()),
    }
    let result = machine.run_ctas(prepared.most_resident).and_then(|()| machine.settle_undefined_bytes());
    match observer {
        Observer::Nobody => {}
        Observer::Timeline(timeline) => **timeline = machine.recorder.take().unwrap_or_default().timeline,
        Observer::Trace(trace) => **trace = machine.tracer.take().map(|tracer| tracer.end()).unwrap_or_default(),
    }
    let report = result.map(|()| machine.stats.report(prepared.program, machine.memory));
    (report, machine.new_races)
}

/// A machine that has not started. It is given the races that are known, and whether no other run will follow.
pub(super) fn machine<'a>(
    prepared: &PreparedLaunch<'a>,
    memory: &'a mut Memory,
    (known_races, is_last): (&'a KnownRaces, bool),
    watch: &'a mut dyn FnMut(Progress),
) -> Machine<'a> {
    let PreparedLaunch { program, launch, first_cta, known_from, params, constants, options, .. } = *prepared;
    let contractions = contractions(program);
    let [x, y, z] = launch.grid;
    let ctas = x.saturating_mul(y).saturating_mul(z);
    let place = CtaPlace { index: [0; 3], rank: 0, cluster: [first_cta].into(), known_from };
    Machine {
        program,
        launch,
        options,
        params,
        constants,
        memory,
        stats: Stats::new(program.code.len(), contractions.iter().map(|found| found.pc)),
        banks: Banks::new(),
        cta: Cta::new(program, launch, options, &place),
        peers: Vec::new(),
        cluster: ClusterState::default(),
        apart: by_line(program, |line| options.apart.get(&line).copied()),
        any_wins: by_line(program, |line| options.any_wins.contains(&line)),
        fused: contractions.iter().filter(|_| options.contract).map(fused).collect(),
        starts: Starts::default(),
        first_cta,
        known_from,
        random: None,
        effects: 0,
        changes: 0,
        fences: 0,
        sequence: Flag::default(),
        strong_reads: 0,
        last_buffer: 0,
        origins: Origins::default(),
        post_dominators: None,
        known_races,
        new_races: KnownRaces::default(),
        has_met: false,
        is_last,
        recorder: None,
        tracer: None,
        completed: Progress { ctas, ended: 0, thread_instructions: 0 },
        last_report: 0,
        watch,
    }
}

/// A fused instruction, with the program counter of the one that it replaces.
fn fused(found: &Contraction) -> (u32, ScalarOp) {
    (found.pc, ScalarOp::Float { f: found.f, mode: found.mode, d: found.d, s: found.s })
}

/// The value of `of_line` for the CUDA line of each instruction. The lines are those of the kernel's file; code from
/// another file and inlined code, whose line belongs to the inlined function, have the default.
fn by_line<T: Default>(program: &Program, of_line: impl Fn(u32) -> T) -> Vec<T> {
    let is_own = |loc: &Loc| loc.inlined_at.is_none() && Some(loc.file) == program.source_file;
    let value = |info: &InstInfo| info.loc.filter(is_own).map(|loc| of_line(loc.line)).unwrap_or_default();
    program.info.iter().map(value).collect()
}
