//! Decoded instructions. Immediates, special registers and symbol addresses are registers that nothing writes, so
//! every value operand is a register index.

use crate::isa::{Scope, Space};

mod bulk;
mod collective;
mod copy;
mod float;
mod integer;
mod matrix;
mod mbarrier;
mod memory;
mod operand;
mod predicate;
mod scalar;
mod tensor;
mod warpgroup;

pub(crate) use bulk::{BulkCopy, BulkOp, BulkPlace, BulkReduce, ProxyFence, QueryCancel, Reduction, TensorMode};
pub(crate) use collective::{BarrierOp, BarrierReduce, ClusterBarrier, CollectiveFn, Shuffle, ShuffleMode, VoteMode};
pub(crate) use copy::{AsyncCopy, CopyOp};
pub(crate) use float::{Convert, ConvertAtRandom, ConvertPair, FloatFn, FloatMode, MinMaxMode, PairSource, TestFn};
pub(crate) use integer::{Carry, CarryFn, IntFn, Packed16Fn, PrmtMode};
pub(crate) use matrix::{AccumulatorType, DoubleMma, MatrixAccess, MatrixOp, Mma, Multiplicand};
pub(crate) use mbarrier::{Arrive, MbarrierFn, MbarrierOp, Phase, PhaseWait};
pub(crate) use memory::{AtomFn, Atomic, Load, LocalCopy, Store};
pub(crate) use operand::{FloatType, Guard, IntegerType, MemRef, NumberType, Reg};
pub(crate) use predicate::{Comparison, PredFn, Set, Setp};
pub(crate) use scalar::ScalarOp;
pub(crate) use tensor::{Left, ProductKind, TensorCopy, TensorMma, TensorMove, TensorOp, TensorShape};
pub(crate) use warpgroup::{WarpgroupLeft, WarpgroupMma, WarpgroupMultiplicand, WarpgroupOp};

/// What a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FenceOrder {
    Acquire,
    Release,
    AcquireRelease,
    /// All fences of this kind are in one order.
    Sequential,
}

/// A decoded instruction. The targets of branches and calls are program counters; until the labels are resolved, they
/// are numbers of labels.
#[derive(Debug)]
pub(crate) enum Op {
    Nop,
    /// An instruction that accesses only registers of the warp.
    Scalar(ScalarOp),
    Clock {
        d: Reg,
        bits: u32,
        shift: u32,
    },
    Load(Box<Load>),
    Store(Box<Store>),
    Atomic(Box<Atomic>),
    Copy(Box<CopyOp>),
    Bulk(Box<BulkOp>),
    Mbarrier(Box<MbarrierOp>),
    Bra {
        target: u32,
    },
    BranchIndex {
        index: Reg,
        targets: Box<[u32]>,
    },
    Call {
        target: u32,
        copies: Box<[LocalCopy]>,
    },
    CopyBack(Box<[LocalCopy]>),
    Ret,
    Exit,
    Trap,
    Collective {
        f: CollectiveFn,
        members: Reg,
    },
    /// `setmaxnreg`: the registers of a thread.
    SetRegisters {
        count: u32,
        grows: bool,
    },
    /// `griddepcontrol.wait`.
    WaitForLaunches,
    /// `clusterlaunchcontrol.query_cancel`.
    QueryCancel(Box<QueryCancel>),
    Barrier(Box<BarrierOp>),
    ClusterBarrier(ClusterBarrier),
    /// `fence`, `membar`.
    Fence {
        scope: Scope,
        order: FenceOrder,
    },
    /// A warp-wide matrix instruction.
    Matrix(Box<MatrixOp>),
    /// `tcgen05`.
    Tensor(Box<TensorOp>),
    /// `wgmma`.
    Warpgroup(Box<WarpgroupOp>),
}

impl Op {
    /// The targets of a branch or call.
    pub(crate) fn targets_mut(&mut self) -> &mut [u32] {
        match self {
            Op::Bra { target } | Op::Call { target, .. } => std::slice::from_mut(target),
            Op::BranchIndex { targets, .. } => targets,
            Op::Nop | Op::Scalar(_) | Op::Clock { .. } | Op::Load(_) | Op::Store(_) | Op::Atomic(_) => &mut [],
            Op::QueryCancel(_) | Op::SetRegisters { .. } | Op::WaitForLaunches => &mut [],
            Op::Copy(_) | Op::Bulk(_) | Op::Mbarrier(_) | Op::CopyBack(_) | Op::Ret | Op::Exit | Op::Trap => &mut [],
            Op::Collective { .. } | Op::Barrier(_) | Op::Fence { .. } | Op::Matrix(_) => &mut [],
            Op::Tensor(_) | Op::Warpgroup(_) | Op::ClusterBarrier(_) => &mut [],
        }
    }

    /// Whether it may change something beside the registers of its warp, other than by a store, an atomic
    /// operation or an exit, which tell.
    pub(crate) fn may_change_others(&self) -> bool {
        match self {
            Op::Nop | Op::Scalar(_) | Op::Clock { .. } | Op::Load(_) | Op::Atomic(_) | Op::Bra { .. } => false,
            Op::BranchIndex { .. } | Op::Call { .. } | Op::Ret | Op::Collective { .. } | Op::Fence { .. } => false,
            Op::Exit | Op::Trap | Op::WaitForLaunches | Op::QueryCancel(_) => false,
            Op::Mbarrier(op) => match **op {
                MbarrierOp::At { f, .. } => !matches!(f, MbarrierFn::Wait(_)),
                MbarrierOp::PendingCount { .. } => false,
            },
            Op::Store(_) => false,
            Op::Copy(_) | Op::Bulk(_) | Op::CopyBack(_) => true,
            Op::SetRegisters { .. } | Op::Barrier(_) | Op::ClusterBarrier(_) => true,
            Op::Matrix(_) | Op::Tensor(_) | Op::Warpgroup(_) => true,
        }
    }

    /// Whether what one cluster does may be ordered by it with what another one does: a strong access to global memory, or
    /// one that takes over another cluster's work.
    pub(crate) fn may_connect_clusters(&self) -> bool {
        let is_global = |at: &MemRef| matches!(at.space, Space::Global | Space::Generic);
        match self {
            Op::Load(load) => load.strong.is_some() && is_global(&load.at),
            Op::Store(store) => store.strong.is_some() && is_global(&store.at),
            Op::Atomic(atomic) => is_global(&atomic.at),
            Op::Bulk(bulk) => match &**bulk {
                BulkOp::Start(copy) => copy.reduce.is_some() && !matches!(copy.global, BulkPlace::Shared { .. }),
                BulkOp::Cancel { .. } => true,
                BulkOp::Commit | BulkOp::Wait { .. } | BulkOp::FenceProxy(_) | BulkOp::AcquireMap { .. } => false,
                BulkOp::Store { .. } | BulkOp::Replace { .. } | BulkOp::CopyMap { .. } => false,
            },
            Op::Nop | Op::Scalar(_) | Op::Clock { .. } | Op::Copy(_) | Op::Mbarrier(_) | Op::Bra { .. } => false,
            Op::BranchIndex { .. } | Op::Call { .. } | Op::CopyBack(_) | Op::Ret | Op::Exit | Op::Trap => false,
            Op::Collective { .. } | Op::SetRegisters { .. } | Op::WaitForLaunches | Op::QueryCancel(_) => false,
            Op::Barrier(_) | Op::ClusterBarrier(_) | Op::Fence { .. } | Op::Matrix(_) => false,
            Op::Tensor(_) | Op::Warpgroup(_) => false,
        }
    }

    /// Where the lanes that execute the instruction at `pc` continue within its function, whose end is `end`.
    pub(crate) fn successors(&self, pc: u32, end: u32) -> Vec<u32> {
        match self {
            Op::Bra { target } => vec![*target],
            Op::BranchIndex { targets, .. } => targets.to_vec(),
            Op::Ret | Op::Exit | Op::Trap => vec![end],
            Op::Nop | Op::Scalar(_) | Op::Clock { .. } | Op::Load(_) | Op::Store(_) | Op::Atomic(_) => vec![pc + 1],
            Op::QueryCancel(_) | Op::SetRegisters { .. } | Op::WaitForLaunches => vec![pc + 1],
            Op::Call { .. } | Op::CopyBack(_) | Op::Copy(_) | Op::Bulk(_) | Op::Mbarrier(_) => vec![pc + 1],
            Op::Collective { .. } | Op::Barrier(_) | Op::Fence { .. } | Op::Matrix(_) => vec![pc + 1],
            Op::Tensor(_) | Op::Warpgroup(_) | Op::ClusterBarrier(_) => vec![pc + 1],
        }
    }
}
