//! Parallel execution over all cores of the machine.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Runs `work` on `0..total` in chunks, on all cores. The results are in the order of the chunks; `done` is called with
/// the length of every finished chunk.
pub fn spread<T: Send>(
    total: u64,
    chunk: u64,
    work: &(dyn Fn(Range<u64>) -> T + Sync),
    done: &(dyn Fn(u64) + Sync),
) -> Vec<T> {
    let next = AtomicU64::new(0);
    let results = Mutex::new(Vec::new());
    let take_chunks = || {
        loop {
            let start = next.fetch_add(chunk, Ordering::Relaxed);
            if start >= total {
                return;
            }
            let end = total.min(start + chunk);
            let result = work(start..end);
            results.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((start, result));
            done(end - start);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(take_chunks);
        }
    });
    let mut results = results.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    results.sort_by_key(|(start, _)| *start);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The results of `work` on all of these, on all cores, in their order.
pub fn spread_over<T: Sync, R: Send>(all: &[T], work: &(dyn Fn(&T) -> R + Sync)) -> Vec<R> {
    spread(all.len() as u64, 1, &|range| work(&all[range.start as usize]), &|_| {})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_of_the_chunks() {
        let seen = AtomicU64::new(0);
        let done = |count: u64| {
            seen.fetch_add(count, Ordering::Relaxed);
        };
        let sums = spread(10, 3, &|range: Range<u64>| range.sum::<u64>(), &done);
        assert_eq!((sums, seen.into_inner()), (vec![3, 12, 21, 9], 10));
    }
}
