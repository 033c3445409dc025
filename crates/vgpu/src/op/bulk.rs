//! Copies of many bytes by an engine: bulk copies, and copies of boxes of a tensor.

use crate::op::memory::AtomFn;
use crate::op::operand::{MemRef, Reg};

/// The bytes in global memory, or those that are copied within a cluster.
#[derive(Clone, Debug)]
pub(crate) enum BulkPlace {
    /// Adjacent ones.
    Linear { at: MemRef, bytes: Reg },
    /// Adjacent ones in the shared memory of the own CTA, which are copied to another one's.
    Shared { at: MemRef, bytes: Reg },
    /// The box at coordinates in the tensor that a map describes.
    Tensor { map: MemRef, coordinates: Box<[Reg]> },
}

/// A reduction into global memory: the function, and bytes of an element.
pub(crate) type BulkReduce = (AtomFn, u32);

/// `cp.async.bulk`, `cp.async.bulk.tensor`, `cp.reduce.async.bulk`.
#[derive(Clone, Debug)]
pub(crate) struct BulkCopy {
    pub(crate) global: BulkPlace,
    /// The bytes in shared memory.
    pub(crate) shared: MemRef,
    /// For a copy to shared memory, the mbarrier that counts its bytes; a copy to global memory is in a group.
    pub(crate) mbarrier: Option<MemRef>,
    pub(crate) reduce: Option<BulkReduce>,
    /// The ranks of the CTAs to which a copy is multicast, one bit each.
    pub(crate) ranks: Option<Reg>,
}

/// The instructions on bulk copies.
#[derive(Clone, Debug)]
pub(crate) enum BulkOp {
    Start(BulkCopy),
    /// The copies since the last commit become a group.
    Commit,
    /// Waits until at most `pending` groups are pending, or have sources that they still read.
    Wait {
        pending: u32,
        reads_only: bool,
    },
    /// `fence.proxy.async`: what the thread knows is visible to the engine.
    FenceProxy {
        shared: bool,
        global: bool,
    },
}
