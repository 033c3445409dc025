//! What a product multiplies: the types of its elements, its shape and the directions of its multiplicands.

use crate::exec::product::Major;
use crate::float::Format;

/// How elements of a multiplicand are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Float(Format),
    /// A float of 4 or 6 bits: sixteen of them are packed, and padded to 16 bytes.
    Padded(Format),
    Tf32,
    Integer {
        signed: bool,
    },
}

impl Element {
    /// Elements in a unit of 16 bytes.
    pub(crate) fn in_unit(self) -> usize {
        match self {
            Element::Float(format) => 128 / format.bits() as usize,
            Element::Padded(_) | Element::Integer { .. } => 16,
            Element::Tf32 => 4,
        }
    }

    pub(crate) fn bits(self) -> usize {
        match self {
            Element::Float(format) | Element::Padded(format) => format.bits() as usize,
            Element::Integer { .. } => 8,
            Element::Tf32 => 32,
        }
    }

    /// Bytes of a unit of 16 that elements are in; the others are padding.
    pub(crate) fn used_bytes(self) -> usize {
        self.in_unit() * self.bits() / 8
    }
}

/// The type of the accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sum {
    F16,
    F32,
    S32 { saturates: bool },
}

/// The format of scale factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Ue8m0,
    Ue4m3,
}

/// A multiplicand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Multiplier {
    pub(crate) element: Element,
    pub(crate) is_negated: bool,
    pub(crate) major: Major,
    /// Which byte of a word has its first scale factor.
    pub(crate) scale_byte: u32,
}

/// What a product multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: Multiplier,
    pub(crate) b: Multiplier,
    pub(crate) sum: Sum,
    pub(crate) scale: Scale,
}
