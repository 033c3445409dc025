//! Instructions that threads execute together: barriers, shuffles, votes, reductions.

use crate::op::memory::AtomFn;
use crate::op::operand::{Guard, Reg};

/// Modes of `shfl.sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

/// Modes of `vote.sync` with a predicate result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VoteMode {
    All,
    Any,
    Uniform,
}

/// `shfl.sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shuffle {
    pub(crate) mode: ShuffleMode,
    pub(crate) d: Reg,
    /// Receives whether the source lane is in range.
    pub(crate) p: Option<u32>,
    pub(crate) a: Reg,
    /// Lane or offset.
    pub(crate) b: Reg,
    /// Segment mask and bound.
    pub(crate) c: Reg,
}

/// Functions of a warp-wide instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectiveFn {
    Shuffle(Shuffle),
    Vote {
        mode: VoteMode,
        d: u32,
        a: Guard,
    },
    Ballot {
        d: Reg,
        a: Guard,
    },
    MatchAny {
        d: Reg,
        a: Reg,
    },
    MatchAll {
        d: Reg,
        p: Option<u32>,
        a: Reg,
    },
    Reduce {
        f: AtomFn,
        nan: bool,
        abs: bool,
        d: Reg,
        a: Reg,
    },
    Elect {
        d: Option<Reg>,
        p: u32,
    },
    /// `bar.warp.sync`: orders memory among the members.
    Barrier,
}

/// What `bar.red` computes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BarrierReduce {
    Popc { d: Reg, a: Guard },
    And { d: u32, a: Guard },
    Or { d: u32, a: Guard },
}

impl BarrierReduce {
    /// The predicate that each lane contributes.
    pub(crate) fn source(self) -> Guard {
        let (BarrierReduce::Popc { a, .. } | BarrierReduce::And { a, .. } | BarrierReduce::Or { a, .. }) = self;
        a
    }
}

/// `bar`, `barrier`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarrierOp {
    /// Register with the barrier's number, 0 to 15.
    pub(crate) id: Reg,
    /// Register with the number of threads; `None` means all threads.
    pub(crate) count: Option<Reg>,
    /// False for `arrive`, which does not wait.
    pub(crate) wait: bool,
    pub(crate) aligned: bool,
    pub(crate) reduce: Option<BarrierReduce>,
}

/// `barrier.cluster`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterBarrier {
    /// `.wait`, not `.arrive`.
    pub(crate) waits: bool,
    /// Releases or acquires; a relaxed arrival does not.
    pub(crate) orders: bool,
    pub(crate) is_aligned: bool,
}
