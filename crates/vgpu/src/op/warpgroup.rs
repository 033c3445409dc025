//! Products of matrices by a warpgroup (`wgmma`).

use crate::op::matrix::{AccumulatorType, Multiplicand};
use crate::op::operand::{Guard, Reg};

/// Where the left multiplicand is.
#[derive(Clone, Debug)]
pub(crate) enum WarpgroupLeft {
    /// In shared memory, as a descriptor says.
    Shared(Reg),
    /// In four registers of each thread.
    Registers(Box<[Reg]>),
}

/// A multiplicand's type and how it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarpgroupMultiplicand {
    pub(crate) element: Multiplicand,
    pub(crate) is_negated: bool,
    /// Elements are adjacent along M or N instead of K.
    pub(crate) is_transposed: bool,
}

/// `wgmma.mma_async`: the product of 64 x K and K x `n` elements.
#[derive(Clone, Debug)]
pub(crate) struct WarpgroupMma {
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) sum: AccumulatorType,
    pub(crate) d: Box<[Reg]>,
    pub(crate) a: WarpgroupLeft,
    pub(crate) b: Reg,
    pub(crate) types: [WarpgroupMultiplicand; 2],
    /// Whether the product is added to D.
    pub(crate) accumulates: Guard,
}

/// The instructions.
#[derive(Clone, Debug)]
pub(crate) enum WarpgroupOp {
    /// Orders accesses to registers before the products that follow.
    Fence,
    Mma(WarpgroupMma),
    /// The products since the last commit become a group.
    Commit,
    /// Waits until at most `pending` groups are pending.
    Wait {
        pending: u32,
    },
}
