//! The sixteen barriers of a CTA (PTX ISA, section 9.7.13.1).

use crate::clock::Contribution;
use crate::exec::warp::Warp;
use crate::op::BarrierReduce;

/// Lanes that wait at a barrier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) warp: u32,
    /// Mask of the waiting lanes.
    pub(super) lanes: u32,
    /// The reduction whose result the lanes receive.
    pub(super) reduce: Option<BarrierReduce>,
}

/// The state of one barrier between two completions.
#[derive(Debug)]
pub(crate) struct Barrier {
    /// Whether a thread has arrived since the last completion.
    pub(super) in_use: bool,
    /// Number of threads that it waits for; `None` means all that have not exited.
    pub(super) expected: Option<u32>,
    /// The program counter of an arrival.
    pub(super) arrived_at: u32,
    /// Lanes that arrived, by warp.
    pub(super) arrived: Vec<u32>,
    pub(super) waiters: Vec<Waiter>,
    /// Clocks of the threads that arrived.
    pub(super) contributions: Vec<Contribution>,
    pub(super) result: Reduction,
}

/// The partial results of `bar.red`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    /// Number of threads whose predicate is true.
    pub(super) count: u32,
    /// Whether the predicate is true for all threads so far.
    pub(super) all: bool,
    /// Whether the predicate is true for any thread so far.
    pub(super) any: bool,
}

pub(super) const NO_REDUCTION: Reduction = Reduction { count: 0, all: true, any: false };

/// Lanes to wake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    pub(crate) warp: u32,
    /// Mask of the lanes to wake.
    pub(super) lanes: u32,
    pub(super) reduce: Option<BarrierReduce>,
    pub(super) result: Reduction,
}

impl Barrier {
    pub(crate) fn new(warps: u32) -> Barrier {
        Barrier {
            in_use: false,
            expected: None,
            arrived_at: 0,
            arrived: vec![0; warps as usize],
            waiters: Vec::new(),
            contributions: Vec::new(),
            result: NO_REDUCTION,
        }
    }

    /// Number of threads that count as arrived: a complete warp counts as 32, even if it has fewer lanes.
    fn count(&self, alive: &[u32]) -> u32 {
        let pairs = self.arrived.iter().zip(alive);
        pairs.map(|(mask, alive)| if *mask != 0 && alive & !mask == 0 { 32 } else { mask.count_ones() }).sum()
    }

    pub(super) fn is_complete(&self, alive: &[u32]) -> bool {
        match self.expected {
            Some(expected) => self.count(alive) >= expected,
            None => self.arrived.iter().zip(alive).all(|(mask, alive)| alive & !mask == 0),
        }
    }
}

impl Release {
    /// Wakes lanes that sleep.
    pub(super) fn wake(warp: u32, lanes: u32) -> Release {
        Release { warp, lanes, reduce: None, result: NO_REDUCTION }
    }

    /// Writes the result of the reduction, if there is one, and wakes the lanes.
    pub(crate) fn apply(&self, warp: &mut Warp) {
        match self.reduce {
            None => {}
            Some(BarrierReduce::Popc { d, .. }) => warp.fill(d, self.lanes, u64::from(self.result.count)),
            Some(BarrierReduce::And { d, .. }) => warp.set_pred(d, self.lanes, spread(self.result.all)),
            Some(BarrierReduce::Or { d, .. }) => warp.set_pred(d, self.lanes, spread(self.result.any)),
        }
        warp.unblock(self.lanes);
    }
}

fn spread(value: bool) -> u32 {
    if value { u32::MAX } else { 0 }
}
