//! The vocabulary of the instruction set: data types, state spaces, comparisons, rounding.

/// A PTX state space (PTX ISA, section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// Generic addresses: the window of an address determines its space.
    Generic,
    /// Device memory.
    Global,
    /// Memory of one CTA.
    Shared,
    /// Memory of one thread.
    Local,
    /// Kernel parameters.
    Param,
    /// Read-only constants.
    Const,
}

impl Space {
    /// The PTX spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Space::Generic => "generic",
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Param => "param",
            Space::Const => "const",
        }
    }

    /// Reads an instruction modifier such as `shared::cta` or `param::entry`.
    pub(crate) fn parse(word: &str) -> Option<Space> {
        match word {
            "global" => Some(Space::Global),
            "shared" | "shared::cta" | "shared::cluster" => Some(Space::Shared),
            "local" => Some(Space::Local),
            "param" | "param::entry" | "param::func" => Some(Space::Param),
            "const" => Some(Space::Const),
            _ => None,
        }
    }
}

/// How the bits of a type are interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bits,
    Unsigned,
    Signed,
    Float,
    Bfloat,
    Pred,
}

/// A data type (PTX ISA, section 5.2); `count` is 2 for packed types such as `.f16x2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DType {
    pub(crate) kind: Kind,
    /// Bits of one element.
    pub(crate) bits: u32,
    /// Number of elements, 1 or 2.
    pub(crate) count: u32,
}

impl DType {
    pub(crate) const B8: DType = DType::new(Kind::Bits, 8);
    pub(crate) const B32: DType = DType::new(Kind::Bits, 32);
    pub(crate) const B64: DType = DType::new(Kind::Bits, 64);
    pub(crate) const U32: DType = DType::new(Kind::Unsigned, 32);

    pub(crate) const fn new(kind: Kind, bits: u32) -> DType {
        DType { kind, bits, count: 1 }
    }

    /// Reads a type without its leading dot.
    pub(crate) fn parse(word: &str) -> Option<DType> {
        let single = |kind: Kind, bits: u32| Some(DType::new(kind, bits));
        match word {
            "b8" => single(Kind::Bits, 8),
            "b16" => single(Kind::Bits, 16),
            "b32" => single(Kind::Bits, 32),
            "b64" => single(Kind::Bits, 64),
            "b128" => single(Kind::Bits, 128),
            "u8" => single(Kind::Unsigned, 8),
            "u16" => single(Kind::Unsigned, 16),
            "u32" => single(Kind::Unsigned, 32),
            "u64" => single(Kind::Unsigned, 64),
            "s8" => single(Kind::Signed, 8),
            "s16" => single(Kind::Signed, 16),
            "s32" => single(Kind::Signed, 32),
            "s64" => single(Kind::Signed, 64),
            "f16" => single(Kind::Float, 16),
            "f32" => single(Kind::Float, 32),
            "f64" => single(Kind::Float, 64),
            "bf16" => single(Kind::Bfloat, 16),
            "pred" => single(Kind::Pred, 1),
            "f16x2" => Some(DType { kind: Kind::Float, bits: 16, count: 2 }),
            "bf16x2" => Some(DType { kind: Kind::Bfloat, bits: 16, count: 2 }),
            "u16x2" => Some(DType { kind: Kind::Unsigned, bits: 16, count: 2 }),
            "s16x2" => Some(DType { kind: Kind::Signed, bits: 16, count: 2 }),
            "f32x2" => Some(DType { kind: Kind::Float, bits: 32, count: 2 }),
            _ => None,
        }
    }

    /// Bits of one register of this type.
    pub(crate) fn width(self) -> u32 {
        self.bits * self.count
    }

    /// Bytes in memory.
    pub(crate) fn bytes(self) -> u32 {
        self.width().div_ceil(8)
    }

    pub(crate) fn is_signed(self) -> bool {
        self.kind == Kind::Signed
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self.kind, Kind::Float | Kind::Bfloat)
    }

    /// A signed or an unsigned integer; bits are neither.
    pub(crate) fn is_integer(self) -> bool {
        matches!(self.kind, Kind::Signed | Kind::Unsigned)
    }

    /// A 16-bit floating type, packed or not.
    pub(crate) fn is_half(self) -> bool {
        self.is_float() && self.bits == 16
    }
}

/// A comparison (PTX ISA, section 9.3): the `u` forms are true when an operand is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CmpOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

impl CmpOp {
    pub(crate) fn parse(word: &str) -> Option<CmpOp> {
        Some(match word {
            "eq" => CmpOp::Eq,
            "ne" => CmpOp::Ne,
            "lt" | "lo" => CmpOp::Lt,
            "le" | "ls" => CmpOp::Le,
            "gt" | "hi" => CmpOp::Gt,
            "ge" | "hs" => CmpOp::Ge,
            "equ" => CmpOp::Equ,
            "neu" => CmpOp::Neu,
            "ltu" => CmpOp::Ltu,
            "leu" => CmpOp::Leu,
            "gtu" => CmpOp::Gtu,
            "geu" => CmpOp::Geu,
            "num" => CmpOp::Num,
            "nan" => CmpOp::Nan,
            _ => return None,
        })
    }
}

/// Rounding of an inexact result (PTX ISA, section 6.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// To nearest, ties to even.
    Nearest,
    /// Toward zero.
    Zero,
    /// Toward minus infinity.
    Down,
    /// Toward plus infinity.
    Up,
    /// To nearest, ties away from zero.
    Away,
}

impl Round {
    pub(crate) fn parse(word: &str) -> Option<Round> {
        Some(match word {
            "rn" => Round::Nearest,
            "rz" => Round::Zero,
            "rm" => Round::Down,
            "rp" => Round::Up,
            "rna" => Round::Away,
            _ => return None,
        })
    }

    /// Rounding to an integral value: `rni`, `rzi`, `rmi`, `rpi`.
    pub(crate) fn parse_integral(word: &str) -> Option<Round> {
        Some(match word {
            "rni" => Round::Nearest,
            "rzi" => Round::Zero,
            "rmi" => Round::Down,
            "rpi" => Round::Up,
            _ => return None,
        })
    }
}

/// The threads between which a strong operation synchronizes (PTX ISA, section 8.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Cta,
    Cluster,
    Gpu,
    Sys,
}

impl Scope {
    pub(crate) fn parse(word: &str) -> Option<Scope> {
        Some(match word {
            "cta" => Scope::Cta,
            "cluster" => Scope::Cluster,
            "gpu" | "gl" => Scope::Gpu,
            "sys" => Scope::Sys,
            _ => return None,
        })
    }
}

/// What orders an access that is volatile, atomic, relaxed, acquire or release (PTX ISA, section 8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strong {
    pub(crate) scope: Scope,
    /// Reads acquire.
    pub(crate) acquires: bool,
    /// Writes release.
    pub(crate) releases: bool,
}

impl Strong {
    /// Relaxed, with this scope.
    pub(crate) const fn relaxed(scope: Scope) -> Strong {
        Strong { scope, acquires: false, releases: false }
    }
}

/// Value with the low `bits` bits set.
pub(crate) fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1u64 << bits) - 1 }
}

/// Reads the low `bits` bits (1 to 64) as a two's complement number.
pub(crate) fn sign_extend(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits.clamp(1, 64);
    ((value << shift) as i64) >> shift
}

/// The smallest multiple of `align` (any positive number) that is at least `value`.
pub(crate) fn align_up(value: u64, align: u64) -> u64 {
    value.div_ceil(align.max(1)) * align.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_extension_reads_the_top_bit() {
        assert_eq!(sign_extend(0xff, 8), -1);
        assert_eq!(sign_extend(0x7f, 8), 127);
        assert_eq!(sign_extend(u64::MAX, 64), -1);
    }

    #[test]
    fn packed_types_are_as_wide_as_their_register() {
        assert_eq!(DType::parse("bf16x2").map(DType::width), Some(32));
        assert_eq!(DType::parse("f32x2").map(DType::bytes), Some(8));
    }
}
