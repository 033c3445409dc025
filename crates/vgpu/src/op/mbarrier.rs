//! Instructions on mbarrier objects.

use crate::op::operand::{MemRef, Reg};

/// What is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    /// The phase of a state that an arrival returned.
    State(Reg),
    /// The phase with this parity.
    Parity(Reg),
}

/// An arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrive {
    /// Receives the state before the arrival.
    pub(crate) state: Option<Reg>,
    /// Number of arrivals; 1 if it is not given.
    pub(crate) count: Option<Reg>,
    /// Bytes that are expected before the arrival.
    pub(crate) expect: Option<Reg>,
    /// The phase must not complete by it.
    pub(crate) no_complete: bool,
    /// The thread does not arrive in later phases.
    pub(crate) drop: bool,
    /// Orders what came before; a relaxed arrival does not.
    pub(crate) releases: bool,
}

/// A wait for the completion of a phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PhaseWait {
    /// Receives whether the phase has completed.
    pub(crate) done: u32,
    pub(crate) phase: Phase,
    /// `try_wait`: the thread may sleep until it has.
    pub(crate) sleeps: bool,
    pub(crate) acquires: bool,
}

/// What an instruction does to the object at an address in shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MbarrierFn {
    Init {
        count: Reg,
    },
    Invalidate,
    Expect {
        bytes: Reg,
    },
    Complete {
        bytes: Reg,
    },
    Arrive(Arrive),
    Wait(PhaseWait),
    /// `cp.async.mbarrier.arrive`: arrives when the thread's copies so far are done; `.noinc` arrivals are expected by the
    /// count already.
    ArriveAfterCopies {
        is_counted: bool,
    },
}

/// An instruction on an mbarrier object.
#[derive(Clone, Debug)]
pub(crate) enum MbarrierOp {
    At {
        at: MemRef,
        f: MbarrierFn,
    },
    /// The arrivals that were pending in a state.
    PendingCount {
        d: Reg,
        state: Reg,
    },
}
