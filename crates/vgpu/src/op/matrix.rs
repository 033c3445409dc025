//! Instructions of a whole warp on matrices that are distributed over the registers of its lanes.

use crate::float::Format;
use crate::op::operand::{MemRef, Reg};

/// The element type of a multiplicand (A or B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Multiplicand {
    /// 8 or 16 bits.
    Float(Format),
    /// f32 bits, of which the low 13 are ignored.
    Tf32,
    /// 8 bits.
    Integer { signed: bool },
}

impl Multiplicand {
    /// Bits of one element.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Multiplicand::Float(format) => format.bits(),
            Multiplicand::Tf32 => 32,
            Multiplicand::Integer { .. } => 8,
        }
    }
}

/// The type of the accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccumulatorType {
    F32,
    F16,
    S32 { saturate: bool },
}

/// `mma.sync` of m16n8: D = A * B + C.
#[derive(Clone, Debug)]
pub(crate) struct Mma {
    /// Columns of A and rows of B.
    pub(crate) k: usize,
    pub(crate) a_type: Multiplicand,
    pub(crate) b_type: Multiplicand,
    pub(crate) accumulator: AccumulatorType,
    pub(crate) a: Box<[Reg]>,
    pub(crate) b: Box<[Reg]>,
    pub(crate) c: Box<[Reg]>,
    pub(crate) d: Box<[Reg]>,
}

/// `mma.sync` of m8n8k4 in f64: D = A * B + C. A register holds one element.
#[derive(Clone, Debug)]
pub(crate) struct DoubleMma {
    pub(crate) a: Reg,
    pub(crate) b: Reg,
    /// The two adjacent elements of each lane.
    pub(crate) c: Box<[Reg]>,
    pub(crate) d: Box<[Reg]>,
}

/// `ldmatrix`, `stmatrix`: one register for each matrix of 8 x 8 halves.
#[derive(Clone, Debug)]
pub(crate) struct MatrixAccess {
    pub(crate) at: MemRef,
    pub(crate) regs: Box<[Reg]>,
    pub(crate) transposed: bool,
}

/// An instruction that all 32 lanes of a warp execute together.
#[derive(Clone, Debug)]
pub(crate) enum MatrixOp {
    Mma(Mma),
    DoubleMma(DoubleMma),
    Load(MatrixAccess),
    Store(MatrixAccess),
    /// `movmatrix`: `d` becomes the transpose of `a`.
    Transpose {
        d: Reg,
        a: Reg,
    },
}
