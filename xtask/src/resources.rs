//! The time and the memory that work takes.

use std::time::Instant;

use crate::exit::Exit;

/// The median time of `runs` runs, after one that is not measured.
pub(crate) fn median_milliseconds(runs: usize, mut work: impl FnMut() -> Result<(), Exit>) -> Result<f64, Exit> {
    work()?;
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[runs / 2])
}

/// Memory of this process in MiB, if the system reports it: `VmHWM:` is the peak, `VmRSS:` the current size.
pub(crate) fn memory(which: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(which))?;
    let kibibytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes / 1024.0)
}
