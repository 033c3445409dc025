//! Copies of many bytes by an engine: bulk copies, and copies of boxes of a tensor.

use crate::isa::Scope;
use crate::op::memory::AtomFn;
use crate::op::operand::{MemRef, Reg};
use crate::tensor_map::MapField;

/// The bytes in global memory, or those that are copied within a cluster.
#[derive(Clone, Debug)]
pub(crate) enum BulkPlace {
    /// Adjacent ones.
    Linear { at: MemRef, bytes: Reg },
    /// Adjacent ones in the shared memory of the own CTA, which are copied to another one's.
    Shared { at: MemRef, bytes: Reg },
    /// The elements at coordinates in the tensor that a map describes.
    Tensor { map: MemRef, coordinates: Box<[Reg]>, mode: TensorMode, offsets: Box<[Reg]> },
}

/// Which elements of a tensor a copy moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TensorMode {
    /// A box.
    Tile,
    /// Four rows (`tile::gather4`, `tile::scatter4`).
    Rows,
    /// Pixels.
    Im2col,
}

/// A reduction: the function, and bytes of an element.
pub(crate) type BulkReduce = (AtomFn, u32);

/// The reduction of a copy.
#[derive(Clone, Debug)]
pub(crate) enum Reduction {
    Typed(BulkReduce),
    /// The function with this name, for the elements of the tensor map.
    OfMap(Box<str>),
}

/// `cp.async.bulk`, `cp.async.bulk.tensor`, `cp.reduce.async.bulk`.
#[derive(Clone, Debug)]
pub(crate) struct BulkCopy {
    pub(crate) global: BulkPlace,
    /// The bytes in shared memory.
    pub(crate) shared: MemRef,
    /// For a copy to shared memory, the mbarrier that counts its bytes; a copy to global memory is in a group.
    pub(crate) mbarrier: Option<MemRef>,
    pub(crate) reduce: Option<Reduction>,
    /// The ranks of the CTAs to which a copy is multicast, one bit each.
    pub(crate) ranks: Option<Reg>,
    /// Whether the bytes of a multicast count in a CTA of the pair of each of these: in the one at the place of that with the mbarrier.
    pub(crate) counts_in_pairs: bool,
    /// Which bytes of every 16 are copied, one bit each.
    pub(crate) byte_mask: Option<Reg>,
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
    /// A proxy fence.
    FenceProxy(ProxyFence),
    /// `fence.proxy.tensormap::generic.acquire` for the map at an address.
    AcquireMap {
        map: MemRef,
        scope: Scope,
    },
    /// `st.async` and `red.async`: writes values to shared memory of the cluster later.
    Store {
        at: MemRef,
        values: Box<[Reg]>,
        /// Bytes of a value.
        size: u32,
        mbarrier: MemRef,
        reduce: Option<AtomFn>,
    },
    /// `clusterlaunchcontrol.try_cancel`: cancels a cluster that has not started, and writes which one it is.
    Cancel {
        at: MemRef,
        mbarrier: MemRef,
        /// To all CTAs of the cluster.
        is_multicast: bool,
    },
    /// `tensormap.replace`: changes a field of a tensor map.
    Replace {
        map: MemRef,
        field: MapField,
        value: Reg,
    },
    /// `tensormap.cp_fenceproxy`: copies a tensor map to global memory, and releases it to those that use it.
    CopyMap {
        to: MemRef,
        from: MemRef,
        scope: Scope,
    },
}

impl BulkOp {
    /// Whether all lanes of a warp execute it together.
    pub(crate) fn is_aligned(&self) -> bool {
        matches!(self, BulkOp::CopyMap { .. })
    }
}

/// What a response to `clusterlaunchcontrol.try_cancel` says.
#[derive(Clone, Debug)]
pub(crate) struct QueryCancel {
    /// The first of the two registers of the response.
    pub(crate) response: Reg,
    /// The predicate that tells whether a cluster was canceled.
    pub(crate) is_canceled: Option<u32>,
    /// The registers for the index of its first CTA.
    pub(crate) first: [Option<Reg>; 3],
}

/// What a proxy fence makes visible to another proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyFence {
    /// What the thread knows of these memories, to the asynchronous proxy.
    Async { shared: bool, global: bool },
    /// What the thread knows, to those in a scope that acquire it for tensor maps.
    ReleaseMaps(Scope),
    /// What was released in a scope, to the thread's uses of the tensor map at an address.
    AcquireMap(Scope, u64),
}
