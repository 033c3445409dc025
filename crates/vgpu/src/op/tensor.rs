//! Instructions on tensor memory, and products of matrices whose results are there (`tcgen05`).

use crate::op::operand::{Guard, MemRef, Reg};

/// Lanes of tensor memory and bits of each that one repetition of `tcgen05.ld` or `tcgen05.st` moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TensorShape {
    /// 32 lanes of 32 bits.
    S32x32b,
    /// 16 lanes of 64 bits.
    S16x64b,
    /// 16 lanes of 128 bits.
    S16x128b,
    /// 16 lanes of 256 bits.
    S16x256b,
    /// 16 lanes of 32 bits, twice: the second time from `second` columns further on.
    S16x32bx2 { second: u32 },
}

/// `tcgen05.ld`, `tcgen05.st`.
#[derive(Clone, Debug)]
pub(crate) struct TensorMove {
    pub(crate) at: MemRef,
    pub(crate) shape: TensorShape,
    /// Repetitions along the columns.
    pub(crate) count: u32,
    /// A register holds the lower halves of two adjacent columns.
    pub(crate) packs: bool,
    pub(crate) regs: Box<[Reg]>,
}

/// What kind of numbers a product multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProductKind {
    F16,
    Tf32,
    F8f6f4,
    I8,
    /// Blocks of `block` elements along k have one scale factor in each row.
    Scaled {
        is_four_bit: bool,
        block: u32,
    },
}

/// Where the left multiplicand is.
#[derive(Clone, Debug)]
pub(crate) enum Left {
    /// In shared memory, as a descriptor says.
    Shared(Reg),
    Tensor(MemRef),
}

/// `tcgen05.mma`.
#[derive(Clone, Debug)]
pub(crate) struct TensorMma {
    /// `.cta_group::2`: a pair of CTAs, each with half of the rows.
    pub(crate) is_pair: bool,
    pub(crate) kind: ProductKind,
    /// `.ws`: other numbers of rows, which may be side by side on the lanes.
    pub(crate) is_stationary: bool,
    pub(crate) d: MemRef,
    pub(crate) a: Left,
    pub(crate) b: Reg,
    /// The instruction descriptor.
    pub(crate) descriptor: Reg,
    /// The scale factors of A and B.
    pub(crate) scales: Option<(MemRef, MemRef)>,
    /// Masks of the lanes that are not written, 32 each; none, or four registers for each CTA.
    pub(crate) disabled: Box<[Reg]>,
    /// Whether the product is added to D.
    pub(crate) accumulates: Guard,
    /// D is divided by this power of two before the product is added.
    pub(crate) shift: u32,
}

/// Rows and bytes of a row that `tcgen05.cp` copies, and to which quarters of the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorCopy {
    pub(crate) rows: u32,
    /// 16 or 32.
    pub(crate) bytes: u32,
    /// `.cta_group::2`: each CTA of a pair copies its own.
    pub(crate) is_pair: bool,
    /// For each of the four quarters of the lanes, the first row that goes there.
    pub(crate) quarters: [u32; 4],
    /// Lanes of a quarter that are written: 32, or the first one.
    pub(crate) lanes: usize,
}

/// The instructions.
#[derive(Clone, Debug)]
pub(crate) enum TensorOp {
    /// Writes the address of new columns to shared memory.
    Allocate {
        at: MemRef,
        columns: Reg,
    },
    Free {
        address: Reg,
        columns: Reg,
    },
    /// The CTA allocates no more.
    Relinquish,
    Load(TensorMove),
    Store(TensorMove),
    WaitLoads,
    WaitStores,
    FenceBefore,
    FenceAfter,
    Mma(TensorMma),
    Copy {
        at: MemRef,
        from: Reg,
        shape: TensorCopy,
    },
    /// `tcgen05.shift`: the rows of a quarter of the lanes, but the last, move to the next lane.
    Shift {
        at: MemRef,
        is_pair: bool,
    },
    /// Arrives at an mbarrier when everything that the thread has started is complete, or at one in each CTA of a mask of
    /// ranks.
    Commit {
        at: MemRef,
        ranks: Option<Reg>,
    },
}

impl TensorOp {
    /// Whether all lanes of a warp execute it together.
    pub(crate) fn is_aligned(&self) -> bool {
        match self {
            TensorOp::Allocate { .. } | TensorOp::Free { .. } | TensorOp::Relinquish => true,
            TensorOp::Load(_) | TensorOp::Store(_) | TensorOp::WaitLoads | TensorOp::WaitStores => true,
            TensorOp::FenceBefore | TensorOp::FenceAfter | TensorOp::Mma(_) => false,
            TensorOp::Copy { .. } | TensorOp::Shift { .. } | TensorOp::Commit { .. } => false,
        }
    }
}
