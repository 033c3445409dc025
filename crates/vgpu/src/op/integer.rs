//! Integer functions.

use crate::op::operand::Reg;

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
    Packed16(Packed16Fn),
    /// `slct`: the first value if the third is not negative, otherwise the second.
    Select {
        float: bool,
        ftz: bool,
    },
    /// `fns`: the position of the n-th set bit.
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
            IntFn::Packed16(_) | IntFn::Min { .. } | IntFn::Max { .. } | IntFn::And | IntFn::Or | IntFn::Xor => 2,
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
pub(crate) enum Packed16Fn {
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

/// An instruction that reads or writes the carry flag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carry {
    pub(crate) f: CarryFn,
    pub(crate) bits: u32,
    /// Adds the carry flag.
    pub(crate) read: bool,
    /// Sets the carry flag.
    pub(crate) write: bool,
    pub(crate) d: Reg,
    pub(crate) s: [Reg; 3],
}
