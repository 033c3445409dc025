//! Runs a launch on several cores of the host, if its clusters do not meet in global memory.
//!
//! Each worker has a copy of the memory, on which it runs one cluster after another. As long as no cluster accesses what
//! another one has written, each of them does what it would do alone, and the copies can be joined: which worker has run
//! which cluster makes no difference. Otherwise, and after any fault or race, the launch starts again on one core, with
//! all its clusters on one memory. Whether that happens depends on the launch only, so that a run has the same result
//! whatever the number of workers.

use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::exec::prepared::PreparedLaunch;
use crate::exec::undefined::KnownRaces;
use crate::launch::Progress;
use crate::memory::Memory;
use crate::report::Stats;

/// For each worker, the number of parts into which the clusters that no worker has started are divided whenever one takes a part:
/// parts are of adjacent clusters, which often access adjacent memory, and become smaller, so that all workers end together.
const PARTS_PER_WORKER: u32 = 2;

/// The clusters that no worker has started.
struct Work {
    clusters: u32,
    workers: u32,
    next: AtomicU32,
    /// The clusters are to be run together instead.
    is_over: AtomicBool,
}

impl Work {
    /// The clusters of the next part; none if there is no more to do.
    fn next(&self) -> Range<u32> {
        if self.is_over.load(Ordering::Relaxed) {
            return 0..0;
        }
        let end = |start: u32| start + (self.clusters - start).div_ceil(self.workers * PARTS_PER_WORKER);
        let start = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |start| Some(end(start)));
        let start = start.unwrap_or(self.clusters);
        start..end(start)
    }
}

/// Runs the clusters of a launch apart from each other. Returns the counts and the memory, or `None` if that is not
/// possible.
pub(super) fn run_apart(
    prepared: &PreparedLaunch<'_>,
    before: &Memory,
    watch: &mut dyn FnMut(Progress),
) -> Option<(Stats, Memory)> {
    let clusters = prepared.launch.grid.iter().product::<u32>() / prepared.launch.cluster_size();
    if clusters < 2 || prepared.program.code.iter().any(|inst| inst.op.may_connect_clusters()) {
        return None;
    }
    let cores = || thread::available_parallelism().map_or(1, NonZero::get);
    let most = prepared.options.host_threads.map_or_else(cores, NonZero::get);
    let workers = most.min(clusters as usize) as u32;
    let work = Work { clusters, workers, next: AtomicU32::new(0), is_over: AtomicBool::new(false) };
    let of_others: Vec<Mutex<Progress>> = (1..workers).map(|_| Mutex::default()).collect();
    let mut of_all = |own: Progress| {
        let others = of_others.iter().map(|told| *told.lock().unwrap_or_else(PoisonError::into_inner));
        watch(others.fold(own, |all, other| Progress {
            ended: all.ended + other.ended,
            thread_instructions: all.thread_instructions + other.thread_instructions,
            ..all
        }));
    };
    let work = &work;
    let done: Vec<Option<(Stats, Memory)>> = thread::scope(|scope| {
        let others = of_others.iter().filter_map(|told| {
            let mut tell = move |now| *told.lock().unwrap_or_else(PoisonError::into_inner) = now;
            let run = move || run_parts(prepared, before, work, &mut tell);
            // Where a thread cannot be started, the others do its work.
            thread::Builder::new().spawn_scoped(scope, run).ok()
        });
        let others: Vec<_> = others.collect();
        let own = run_parts(prepared, before, work, &mut of_all);
        let joined = others.into_iter().map(|other| other.join().unwrap_or_else(|cause| resume_unwind(cause)));
        std::iter::once(own).chain(joined).collect()
    });
    let records = before.records.len();
    done.into_iter().reduce(|all, part| {
        let ((mut stats, mut memory), (more, others)) = (all?, part?);
        stats.add(&more);
        memory.join(others, records).then_some((stats, memory))
    })?
}

/// Runs parts on a copy of the memory until none is left. Returns `None` if a cluster has met another one, or has a fault
/// or a race.
fn run_parts(
    prepared: &PreparedLaunch<'_>,
    before: &Memory,
    work: &Work,
    watch: &mut dyn FnMut(Progress),
) -> Option<(Stats, Memory)> {
    let mut memory = before.clone();
    let known = KnownRaces::default();
    let mut machine = prepared.machine(&mut memory, (&known, false), watch);
    let mut part = work.next();
    while !part.is_empty() {
        for linear in part {
            let has_ended = machine.run_alone(linear).is_ok();
            if !has_ended || machine.has_met || !machine.new_races.is_empty() {
                work.is_over.store(true, Ordering::Relaxed);
                return None;
            }
        }
        part = work.next();
    }
    machine.settle_undefined_bytes().ok()?;
    Some((machine.stats, memory))
}
