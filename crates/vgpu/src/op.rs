//! Decoded instructions. Immediates, special registers and symbol addresses are registers that nothing writes, so
//! every value operand is a register index.

mod float;
mod integer;
mod matrix;
mod memory;
mod operand;
mod predicate;
mod together;

pub(crate) use float::{Convert, ConvertPair, FloatFn, FloatMode, PairSource, TestFn};
pub(crate) use integer::{CarryFn, Extreme, HalvesFn, IntFn, PrmtMode};
pub(crate) use matrix::{DoubleMma, MatrixAccess, MatrixOp, Mma, Multiplicand, Sums};
pub(crate) use memory::{AtomFn, Atomic, Load, LocalCopy, Store};
pub(crate) use operand::{Element, Guard, MemRef, Reg};
pub(crate) use predicate::{PredFn, Set, Setp};
pub(crate) use together::{BarrierOp, BarrierReduce, CollectiveFn, ShuffleMode, VoteMode};

use crate::isa::{Round, Space};

/// A decoded instruction.
#[derive(Debug)]
pub(crate) enum Op {
    Nop,
    Mov {
        d: Reg,
        a: Reg,
    },
    /// Several moves in parallel: all sources are read first.
    MovMany(Box<[(Reg, Reg)]>),
    /// Splits `a` into parts of `bits` bits, lowest first; `None` is `_`.
    Unpack {
        a: Reg,
        bits: u32,
        parts: Box<[Option<Reg>]>,
    },
    Pack {
        d: Reg,
        bits: u32,
        parts: Box<[Reg]>,
    },
    Clock {
        d: Reg,
        bits: u32,
        shift: u32,
    },
    Int {
        f: IntFn,
        bits: u32,
        d: Reg,
        s: [Reg; 4],
    },
    /// `selp`: `d = p ? a : b`.
    Selp {
        d: Reg,
        a: Reg,
        b: Reg,
        p: Guard,
    },
    Carry {
        f: CarryFn,
        bits: u32,
        read: bool,
        write: bool,
        d: Reg,
        s: [Reg; 3],
    },
    Pred {
        f: PredFn,
        d: u32,
        a: Guard,
        b: Guard,
    },
    MovPred {
        d: u32,
        a: Guard,
    },
    Setp(Box<Setp>),
    Set(Box<Set>),
    Float {
        f: FloatFn,
        mode: FloatMode,
        d: Reg,
        s: [Reg; 3],
    },
    Testp {
        f: TestFn,
        /// The source is an f64 rather than an f32.
        double: bool,
        d: u32,
        a: Reg,
    },
    Convert(Box<Convert>),
    ConvertPair(Box<ConvertPair>),
    /// `cvt.rna.tf32.f32`: f32 bits with the low 13 rounded away.
    ToTf32 {
        d: Reg,
        a: Reg,
        round: Round,
        relu: bool,
        finite: bool,
    },
    Load(Box<Load>),
    Store(Box<Store>),
    Atomic(Box<Atomic>),
    IsSpace {
        d: u32,
        a: Reg,
        space: Space,
    },
    /// Adds (`to_generic`) or removes the window of a space.
    Cvta {
        d: Reg,
        a: Reg,
        space: Space,
        to_generic: bool,
        bits: u32,
    },
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
    ActiveMask {
        d: Reg,
    },
    Barrier(Box<BarrierOp>),
    /// A warp-wide matrix instruction.
    Matrix(Box<MatrixOp>),
}
