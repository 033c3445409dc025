//! Decoded instructions. Immediates, special registers and symbol addresses are registers that nothing writes, so
//! every value operand is a register index.

mod matrix;

pub(crate) use matrix::{DoubleMma, MatrixAccess, MatrixOp, Mma, Multiplicand, Sums};

use crate::float::Format;
use crate::isa::{CmpOp, DType, Round, Space};

/// Index of a 64-bit register, one value a lane.
pub(crate) type Reg = u32;

/// A predicate, possibly negated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    pub(crate) index: u32,
    pub(crate) negate: bool,
}

/// Integer functions; `bits` of the instruction is the operand width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntFn {
    Add,
    Sub,
    AddSat,
    SubSat,
    Mul,
    MulHi {
        signed: bool,
    },
    MulWide {
        signed: bool,
    },
    Mad,
    MadHi {
        signed: bool,
    },
    MadHiSat,
    MadWide {
        signed: bool,
    },
    Mul24 {
        signed: bool,
        hi: bool,
    },
    Mad24 {
        signed: bool,
        hi: bool,
    },
    Div {
        signed: bool,
    },
    Rem {
        signed: bool,
    },
    Abs,
    Neg,
    Min {
        signed: bool,
    },
    Max {
        signed: bool,
    },
    And,
    Or,
    Xor,
    Not,
    Cnot,
    Shl,
    Shr {
        signed: bool,
    },
    Funnel {
        left: bool,
        wrap: bool,
    },
    Bfe {
        signed: bool,
    },
    Bfi,
    Bfind {
        signed: bool,
        shift: bool,
    },
    Brev,
    Clz,
    Popc,
    Prmt(PrmtMode),
    Lop3(u8),
    Sad {
        signed: bool,
    },
    Dp4a {
        a_signed: bool,
        b_signed: bool,
    },
    Dp2a {
        a_signed: bool,
        b_signed: bool,
        hi: bool,
    },
    Bmsk {
        wrap: bool,
    },
    /// On both 16-bit halves of a 32-bit register.
    Halves(HalvesFn),
    /// `slct`: the first value where the third is not negative, else the second.
    Select {
        float: bool,
        ftz: bool,
    },
    /// `fns`: the place of the n-th set bit.
    Fns,
}

impl IntFn {
    /// How many sources the function reads.
    pub(crate) fn arity(self) -> usize {
        match self {
            IntFn::Abs | IntFn::Neg | IntFn::Not | IntFn::Cnot => 1,
            IntFn::Bfind { .. } | IntFn::Brev | IntFn::Clz | IntFn::Popc => 1,
            IntFn::Add | IntFn::Sub | IntFn::AddSat | IntFn::SubSat | IntFn::Mul | IntFn::MulHi { .. } => 2,
            IntFn::MulWide { .. } | IntFn::Mul24 { .. } | IntFn::Div { .. } | IntFn::Rem { .. } => 2,
            IntFn::Halves(_) | IntFn::Min { .. } | IntFn::Max { .. } | IntFn::And | IntFn::Or | IntFn::Xor => 2,
            IntFn::Shl | IntFn::Shr { .. } | IntFn::Bmsk { .. } => 2,
            IntFn::Mad | IntFn::MadHi { .. } | IntFn::MadHiSat | IntFn::MadWide { .. } | IntFn::Mad24 { .. } => 3,
            IntFn::Funnel { .. } | IntFn::Prmt(_) | IntFn::Lop3(_) | IntFn::Sad { .. } => 3,
            IntFn::Dp4a { .. } | IntFn::Dp2a { .. } | IntFn::Select { .. } | IntFn::Bfe { .. } | IntFn::Fns => 3,
            IntFn::Bfi => 4,
        }
    }
}

/// Packed 16-bit integer functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HalvesFn {
    Add,
    Sub,
    Min { signed: bool },
    Max { signed: bool },
}

/// The modes of `prmt` (PTX ISA, section 9.7.9.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrmtMode {
    Index,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

/// Additions and multiplications with the carry flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarryFn {
    Add,
    Sub,
    MadLo { signed: bool },
    MadHi { signed: bool },
}

/// The forms of `min` and `max` (PTX ISA, section 9.7.3.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extreme {
    /// NaN wins over numbers.
    pub(crate) nan: bool,
    /// Of the magnitudes.
    pub(crate) abs: bool,
    /// The result is negative if one of the two sources is.
    pub(crate) xorsign: bool,
}

/// Floating functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatFn {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    /// `div.approx`, which multiplies by the reciprocal.
    DivApprox,
    Rcp,
    Sqrt,
    Rsqrt,
    Ex2,
    Lg2,
    Sin,
    Cos,
    Tanh,
    Min(Extreme),
    Max(Extreme),
    Min3(Extreme),
    Max3(Extreme),
    Neg,
    Abs,
    CopySign,
}

impl FloatFn {
    /// How many sources the function reads.
    pub(crate) fn arity(self) -> usize {
        match self {
            FloatFn::Fma | FloatFn::Min3(_) | FloatFn::Max3(_) => 3,
            FloatFn::Add | FloatFn::Sub | FloatFn::Mul | FloatFn::Div | FloatFn::DivApprox => 2,
            FloatFn::Min(_) | FloatFn::Max(_) | FloatFn::CopySign => 2,
            FloatFn::Rcp | FloatFn::Sqrt | FloatFn::Rsqrt | FloatFn::Ex2 | FloatFn::Lg2 => 1,
            FloatFn::Sin | FloatFn::Cos | FloatFn::Tanh | FloatFn::Neg | FloatFn::Abs => 1,
        }
    }
}

/// The element a floating instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    F32,
    F64,
    Half(Format),
}

/// How a floating instruction treats its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FloatMode {
    pub(crate) element: Element,
    /// Two elements in one register.
    pub(crate) packed: bool,
    pub(crate) round: Round,
    pub(crate) ftz: bool,
    pub(crate) sat: bool,
    pub(crate) relu: bool,
}

/// `testp` (PTX ISA, section 9.7.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestFn {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// Logic on predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PredFn {
    And,
    Or,
    Xor,
}

/// `setp`: compare, combine, write one or two predicates. Of a packed type, `d` is that of the low element and `q` that
/// of the high one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setp {
    pub(crate) cmp: CmpOp,
    pub(crate) dtype: DType,
    pub(crate) ftz: bool,
    pub(crate) a: Reg,
    pub(crate) b: Reg,
    pub(crate) combine: Option<(PredFn, Guard)>,
    pub(crate) d: u32,
    pub(crate) q: Option<u32>,
}

/// `set`: like `setp`, but writes a value: all ones, or 1.0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set {
    pub(crate) compare: Setp,
    pub(crate) d: Reg,
    /// The value where the comparison holds, of one element.
    pub(crate) yes: u64,
}

/// `cvt` of one value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Convert {
    pub(crate) d: Reg,
    pub(crate) a: Reg,
    pub(crate) from: DType,
    pub(crate) to: DType,
    /// Width of the destination register.
    pub(crate) width: u32,
    pub(crate) round: Round,
    /// A float result is first rounded to an integral value.
    pub(crate) integral: bool,
    pub(crate) ftz: bool,
    pub(crate) sat: bool,
    pub(crate) relu: bool,
    /// The largest magnitude of the result (`.satfinite`).
    pub(crate) limit: Option<f64>,
}

/// What a packed pair is converted from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PairSource {
    /// Two f32, that of the upper element first.
    Singles(Reg, Reg),
    /// Another packed pair.
    Packed(Reg, Format),
}

/// `cvt` to a packed pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConvertPair {
    pub(crate) d: Reg,
    pub(crate) source: PairSource,
    pub(crate) format: Format,
    pub(crate) round: Round,
    pub(crate) sat: bool,
    pub(crate) relu: bool,
    /// What is too large becomes the largest finite value (`.satfinite`).
    pub(crate) finite: bool,
}

/// A memory operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemRef {
    pub(crate) space: Space,
    pub(crate) base: Reg,
    pub(crate) offset: i64,
}

/// `ld`.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) at: MemRef,
    pub(crate) regs: Box<[Reg]>,
    /// Bytes of one element.
    pub(crate) size: u32,
    /// Width of the destination when the element is signed.
    pub(crate) extend: Option<u32>,
    /// Volatile, relaxed or acquire: never races with another strong access.
    pub(crate) strong: bool,
}

/// `st`.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) at: MemRef,
    pub(crate) regs: Box<[Reg]>,
    pub(crate) size: u32,
    pub(crate) strong: bool,
}

/// Read-modify-write functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomFn {
    Add,
    AddFloat(Element, bool),
    MinFloat(Element, bool),
    MaxFloat(Element, bool),
    Min { signed: bool },
    Max { signed: bool },
    Exch,
    Cas,
    Inc,
    Dec,
    And,
    Or,
    Xor,
}

/// `atom` or `red`, of one element or of a vector of them.
#[derive(Clone, Debug)]
pub(crate) struct Atomic {
    pub(crate) at: MemRef,
    pub(crate) f: AtomFn,
    /// Bytes of one element.
    pub(crate) size: u32,
    /// Subnormal f32 are flushed in global memory.
    pub(crate) ftz: bool,
    /// One register for each element; none for `red`.
    pub(crate) d: Box<[Reg]>,
    pub(crate) b: Box<[Reg]>,
    pub(crate) c: Reg,
}

/// Modes of `shfl.sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

/// Modes of `vote.sync` with a predicate result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VoteMode {
    All,
    Any,
    Uniform,
}

/// What lanes of a warp do together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CollectiveFn {
    Shuffle {
        mode: ShuffleMode,
        d: Reg,
        p: Option<u32>,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Vote {
        mode: VoteMode,
        d: u32,
        a: Guard,
    },
    Ballot {
        d: Reg,
        a: Guard,
    },
    MatchAny {
        d: Reg,
        a: Reg,
    },
    MatchAll {
        d: Reg,
        p: Option<u32>,
        a: Reg,
    },
    Reduce {
        f: AtomFn,
        nan: bool,
        abs: bool,
        d: Reg,
        a: Reg,
    },
    Elect {
        d: Option<Reg>,
        p: u32,
    },
    /// `bar.warp.sync`: orders memory among the members.
    Barrier,
}

/// What `bar.red` computes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BarrierReduce {
    Popc { d: Reg, a: Guard },
    And { d: u32, a: Guard },
    Or { d: u32, a: Guard },
}

impl BarrierReduce {
    /// What each lane gives.
    pub(crate) fn source(self) -> Guard {
        let (BarrierReduce::Popc { a, .. } | BarrierReduce::And { a, .. } | BarrierReduce::Or { a, .. }) = self;
        a
    }
}

/// `bar`, `barrier`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarrierOp {
    pub(crate) id: Reg,
    pub(crate) count: Option<Reg>,
    pub(crate) wait: bool,
    pub(crate) aligned: bool,
    pub(crate) reduce: Option<BarrierReduce>,
}

/// Bytes moved inside one thread's local memory: the parameters of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalCopy {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) bytes: u32,
}

/// A decoded instruction.
#[derive(Debug)]
pub(crate) enum Op {
    Nop,
    Mov {
        d: Reg,
        a: Reg,
    },
    /// Several moves at once, all sources read first.
    MovMany(Box<[(Reg, Reg)]>),
    /// Cuts `a` into parts of `bits`, lowest first; `None` is `_`.
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
        element: Element,
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
    /// What a warp does with a matrix.
    Matrix(Box<MatrixOp>),
}
