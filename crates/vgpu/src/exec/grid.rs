//! Runs the CTAs of a launch, several times if a race has to be known in advance.

use crate::exec::parallel::run_apart;
use crate::exec::prepared::PreparedLaunch;
use crate::exec::undefined::KnownRaces;
use crate::fault::{Fault, FaultKind};
use crate::launch::{Options, Progress};
use crate::memory::Memory;
use crate::report::Report;
use crate::timeline::Timeline;
use crate::trace::Trace;

/// Maximum number of runs of one launch; each run knows the races that the previous runs found.
const MAX_RUNS: usize = 64;

/// What observes a launch while it runs.
pub(crate) enum Observer<'a> {
    Nobody,
    Timeline(&'a mut Timeline),
    Trace(&'a mut Trace),
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
        let is_unwritten = matches!(&result, Err(fault) if fault.kind == FaultKind::UninitializedRead);
        let mut has_news = known.join(found);
        if let Some(before) = before.as_ref().filter(|_| is_unwritten && !has_news && !is_last) {
            has_news = known.join(writes_that_follow(prepared, before, &known));
        }
        if !has_news || is_last {
            return result;
        }
        if let Some(before) = &before {
            *memory = before.clone();
        }
        runs += 1;
    }
}

/// Instructions per thread of a run that is only to find what is written later.
const MOST_TO_FOLLOW: u64 = 10_000;

/// The reads that race with writes that follow a read of bytes that nobody had written: the run goes on with what the bytes
/// happen to hold.
fn writes_that_follow(prepared: &PreparedLaunch<'_>, before: &Memory, known: &KnownRaces) -> KnownRaces {
    let most = prepared.options.max_instructions_per_thread.min(MOST_TO_FOLLOW);
    let options = Options { max_instructions_per_thread: most, ..prepared.options.clone() };
    let prepared = PreparedLaunch { options: &options, ..*prepared };
    let (mut memory, mut watch) = (before.clone(), |_| ());
    let mut machine = prepared.machine(&mut memory, (known, false), &mut watch);
    machine.takes_unwritten_bytes = true;
    // What goes wrong with these bytes says nothing.
    let _ = machine.run_ctas(prepared.most_resident);
    machine.new_races
}

/// Performs one run. Also returns the reads that raced with later writes.
fn run_once(
    prepared: &PreparedLaunch<'_>,
    memory: &mut Memory,
    watch: &mut dyn FnMut(Progress),
    races: (&KnownRaces, bool),
    observer: &mut Observer<'_>,
) -> (Result<Report, Box<Fault>>, KnownRaces) {
    let mut machine = prepared.machine(memory, races, watch);
    match observer {
        Observer::Nobody => {}
        Observer::Timeline(_) => machine.recorder = Some(Box::default()),
        Observer::Trace(_) => machine.tracer = Some(Box::default()),
    }
    let result = match machine.run_ctas(prepared.most_resident) {
        // Undefined bits that have reached a result may be the cause, and say more.
        Err(fault) if fault.kind == FaultKind::Deadlock => machine.settle_undefined_bytes().and(Err(fault)),
        ended => ended.and_then(|()| machine.settle_undefined_bytes()),
    };
    match observer {
        Observer::Nobody => {}
        Observer::Timeline(timeline) => **timeline = machine.recorder.take().unwrap_or_default().timeline,
        Observer::Trace(trace) => **trace = machine.tracer.take().map(|tracer| tracer.end()).unwrap_or_default(),
    }
    let report = result.map(|()| machine.stats.report(prepared.program, machine.memory));
    (report, machine.new_races)
}
