//! Instructions that access only registers, predicates and the carry flags of one warp.

use crate::isa::{Round, Space};
use crate::op::float::{Convert, ConvertAtRandom, ConvertPair, FloatFn, FloatMode, TestFn};
use crate::op::integer::{Carry, IntFn};
use crate::op::operand::{Guard, Reg};
use crate::op::predicate::{PredFn, Set, Setp};

/// An instruction on registers.
#[derive(Debug)]
pub(crate) enum ScalarOp {
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
    Carry(Carry),
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
    ConvertAtRandom(Box<ConvertAtRandom>),
    /// `cvt.rna.tf32.f32`: f32 bits with the low 13 rounded away.
    ToTf32 {
        d: Reg,
        a: Reg,
        round: Round,
        relu: bool,
        finite: bool,
    },
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
    ActiveMask {
        d: Reg,
    },
}
