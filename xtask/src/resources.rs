//! The time and the memory that work takes.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::exit::Exit;

/// How long work takes, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// On the wall clock.
    pub(crate) wall: f64,
    /// Of the thread that works, which other processes do not slow down.
    pub(crate) cpu: f64,
}

/// The median time of `runs` runs on the wall clock, after one that is not measured.
pub(crate) fn median_milliseconds(runs: usize, work: impl FnMut() -> Result<(), Exit>) -> Result<f64, Exit> {
    Ok(median_times(runs, work)?.wall)
}

/// The median times of `runs` runs, after one that is not measured.
pub(crate) fn median_times(runs: usize, mut work: impl FnMut() -> Result<(), Exit>) -> Result<Times, Exit> {
    work()?;
    let (mut wall, mut cpu) = (Vec::with_capacity(runs), Vec::with_capacity(runs));
    for _ in 0..runs {
        let (start, start_cpu) = (Instant::now(), thread_milliseconds());
        work()?;
        wall.push(start.elapsed().as_secs_f64() * 1e3);
        cpu.push(thread_milliseconds() - start_cpu);
    }
    Ok(Times { wall: median(wall), cpu: median(cpu) })
}

/// The median of numbers, of which there is at least one.
pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// CPU time of this thread so far.
pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

fn thread_milliseconds() -> f64 {
    thread_time().as_secs_f64() * 1e3
}

/// Memory of this process in MiB, if the system reports it: `VmHWM:` is the peak, `VmRSS:` the current size.
pub(crate) fn memory(which: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(which))?;
    let kibibytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes / 1024.0)
}
