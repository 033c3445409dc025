//! What threads do together: barriers, shuffles, votes, reductions.

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

/// What lanes of a warp do together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CollectiveFn {
    Shuffle {
        mode: ShuffleMode,
        d: Reg,
        p: Option<u32>,
        a: Reg,
        b: Reg,
        c: Reg,
    },
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
    /// What each lane gives.
    pub(crate) fn source(self) -> Guard {
        let (BarrierReduce::Popc { a, .. } | BarrierReduce::And { a, .. } | BarrierReduce::Or { a, .. }) = self;
        a
    }
}

/// `bar`, `barrier`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarrierOp {
    pub(crate) id: Reg,
    pub(crate) count: Option<Reg>,
    pub(crate) wait: bool,
    pub(crate) aligned: bool,
    pub(crate) reduce: Option<BarrierReduce>,
}
