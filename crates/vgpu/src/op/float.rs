//! Floating-point functions and conversions.

use crate::float::{BF16, F16, Format, Packed};
use crate::isa::Round;
use crate::op::operand::{FloatType, NumberType, Reg};

/// Floating-point functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatFn {
    Add,
    Sub,
    Mul,
    Fma,
    /// `a * b - c`, fused.
    FmaSub,
    /// `c - a * b`, fused.
    FmaFrom,
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
    Min(MinMaxMode),
    Max(MinMaxMode),
    Min3(MinMaxMode),
    Max3(MinMaxMode),
    Neg,
    Abs,
    CopySign,
}

impl FloatFn {
    /// How many sources the function reads.
    pub(crate) fn arity(self) -> usize {
        match self {
            FloatFn::Fma | FloatFn::FmaSub | FloatFn::FmaFrom | FloatFn::Min3(_) | FloatFn::Max3(_) => 3,
            FloatFn::Add | FloatFn::Sub | FloatFn::Mul | FloatFn::Div | FloatFn::DivApprox => 2,
            FloatFn::Min(_) | FloatFn::Max(_) | FloatFn::CopySign => 2,
            FloatFn::Rcp | FloatFn::Sqrt | FloatFn::Rsqrt | FloatFn::Ex2 | FloatFn::Lg2 => 1,
            FloatFn::Sin | FloatFn::Cos | FloatFn::Tanh | FloatFn::Neg | FloatFn::Abs => 1,
        }
    }
}

/// The type, rounding and modifiers of a floating-point instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FloatMode {
    pub(crate) element: FloatType,
    /// Two elements in one register.
    pub(crate) packed: bool,
    pub(crate) round: Round,
    /// Flush subnormal sources and results to zero.
    pub(crate) ftz: bool,
    /// Clamp the result to [0, 1].
    pub(crate) sat: bool,
    /// Replace a negative result by 0.
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

/// `cvt` of one value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Convert {
    pub(crate) d: Reg,
    pub(crate) a: Reg,
    pub(crate) from: NumberType,
    pub(crate) to: NumberType,
    /// Width of the destination register in bits.
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

/// The source of a conversion to a packed pair.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PairSource {
    /// Two f32 registers; the first becomes the upper element.
    Singles(Reg, Reg),
    /// Another packed pair.
    Packed(Reg, Packed),
}

/// `cvt` to a packed pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConvertPair {
    pub(crate) d: Reg,
    pub(crate) source: PairSource,
    pub(crate) to: Packed,
    pub(crate) round: Round,
    pub(crate) sat: bool,
    pub(crate) relu: bool,
    /// Values that are too large become the largest finite value (`.satfinite`).
    pub(crate) finite: bool,
}

/// `cvt.rs`: to packed elements, each rounded by random bits.
#[derive(Clone, Debug)]
pub(crate) struct ConvertAtRandom {
    pub(crate) d: Reg,
    /// f32 registers; the first becomes the lowest element.
    pub(crate) sources: Box<[Reg]>,
    pub(crate) to: Format,
    /// The random bits, an equal share for each element, of which it uses the lowest.
    pub(crate) random: Reg,
    pub(crate) relu: bool,
    /// Values that are too large become the largest finite value (`.satfinite`).
    pub(crate) finite: bool,
}

impl ConvertAtRandom {
    /// Random bits of an element: all that are discarded of a half, 8 of those of a smaller float.
    pub(crate) fn random_bits(&self) -> u32 {
        match self.to {
            BF16 => 16,
            F16 => 13,
            _ => 8,
        }
    }
}

/// The forms of `min` and `max` (PTX ISA, section 9.7.3.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MinMaxMode {
    /// The result is NaN if a source is NaN.
    pub(crate) nan: bool,
    /// Compares the magnitudes.
    pub(crate) abs: bool,
    /// The sign of the result is the XOR of the signs of the sources.
    pub(crate) xorsign: bool,
}
