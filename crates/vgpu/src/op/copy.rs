//! Copies to shared memory that a thread starts and waits for later.

use crate::op::operand::{Guard, MemRef, Reg};

/// `cp.async`.
#[derive(Clone, Debug)]
pub(crate) struct AsyncCopy {
    /// In shared memory.
    pub(crate) to: MemRef,
    /// In global memory.
    pub(crate) from: MemRef,
    /// Bytes that are written: 4, 8 or 16.
    pub(crate) bytes: u32,
    /// Bytes that are read; the rest is filled with zeros.
    pub(crate) read_bytes: Option<Reg>,
    /// Where this is true, nothing is read.
    pub(crate) ignore: Option<Guard>,
}

/// The instructions of `cp.async`.
#[derive(Clone, Debug)]
pub(crate) enum CopyOp {
    Start(AsyncCopy),
    /// The copies since the last commit become a group.
    Commit,
    /// Waits until at most this many groups are pending.
    WaitGroup {
        pending: u32,
    },
    WaitAll,
}
