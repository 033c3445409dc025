//! The 32-bit word that tells `tcgen05.mma` what it multiplies, for kinds without scale factors.
//!
//! Source: PTX ISA, "Instruction descriptor" of tcgen05, format for `tf32`, `f16`, `f8f6f4` and `i8`.

use crate::error::LayoutError;
use crate::hardware::{CtaGroup, MmaType};

use super::field::{put, take};

/// Name, in errors, of instructions that the ISA has but [`dense`] does not build.
const USUAL: &str = "tcgen05 instruction among those that CUTLASS and TVM use";

/// The 4-, 6- and 8-bit floating-point types with their codes in a descriptor.
pub(crate) const NARROW_FLOATS: &[(MmaType, u8)] =
    &[(MmaType::E4m3, 0), (MmaType::E5m2, 1), (MmaType::E2m3, 3), (MmaType::E3m2, 4), (MmaType::E2m1, 5)];

/// The sizes of one `tcgen05.mma`, over all CTAs of the group: D is `m` x `n`, and `k` is summed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionShape {
    /// The CTAs that execute it together.
    pub cta_group: CtaGroup,
    /// Rows of A and D.
    pub m: i64,
    /// Columns of B and D.
    pub n: i64,
    /// Columns of A and rows of B.
    pub k: i64,
}

/// The element types of D = A x B + D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionTypes {
    /// The accumulator.
    pub d: MmaType,
    /// The left operand.
    pub a: MmaType,
    /// The right operand.
    pub b: MmaType,
}

/// The `.kind` of a `tcgen05.mma` without scale factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DenseKind {
    /// f16 and bf16; K of 16.
    F16,
    /// tf32; K of 8.
    Tf32,
    /// Floats of 4, 6 and 8 bits, freely mixed; K of 32.
    F8f6f4,
    /// Integers of 8 bits; K of 32.
    I8,
}

impl DenseKind {
    /// Every kind.
    pub const ALL: [DenseKind; 4] = [DenseKind::F16, DenseKind::Tf32, DenseKind::F8f6f4, DenseKind::I8];

    /// Its name in PTX, after `.kind::`.
    pub fn name(self) -> &'static str {
        match self {
            DenseKind::F16 => "f16",
            DenseKind::Tf32 => "tf32",
            DenseKind::F8f6f4 => "f8f6f4",
            DenseKind::I8 => "i8",
        }
    }

    /// The types of A and B, with their codes in the descriptor.
    pub fn operands(self) -> &'static [(MmaType, u8)] {
        match self {
            DenseKind::F16 => &[(MmaType::F16, 0), (MmaType::Bf16, 1)],
            DenseKind::Tf32 => &[(MmaType::Tf32, 2)],
            DenseKind::F8f6f4 => NARROW_FLOATS,
            DenseKind::I8 => &[(MmaType::U8, 0), (MmaType::S8, 1)],
        }
    }

    /// The types of D, with their codes in the descriptor.
    pub fn accumulators(self) -> &'static [(MmaType, u8)] {
        match self {
            DenseKind::F16 | DenseKind::F8f6f4 => &[(MmaType::F16, 0), (MmaType::F32, 1)],
            DenseKind::Tf32 => &[(MmaType::F32, 1)],
            DenseKind::I8 => &[(MmaType::S32, 2)],
        }
    }

    /// K of one instruction.
    pub fn k(self) -> i64 {
        match self {
            DenseKind::F16 => 16,
            DenseKind::Tf32 => 8,
            DenseKind::F8f6f4 | DenseKind::I8 => 32,
        }
    }
}

/// The instruction descriptor for kinds without scale factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionDescriptor {
    /// Which of four metadata columns a sparse multiplication reads (bits 0 and 1).
    pub sparsity_selector: u8,
    /// Whether A is sparse (bit 2).
    pub sparse: bool,
    /// Whether integer results saturate (bit 3).
    pub saturate: bool,
    /// The code of D's type (bits 4 and 5); see [`DenseKind::accumulators`].
    pub d: u8,
    /// The code of A's type (bits 7 to 9); see [`DenseKind::operands`].
    pub a: u8,
    /// The code of B's type (bits 10 to 12).
    pub b: u8,
    /// Whether A is negated (bit 13).
    pub negate_a: bool,
    /// Whether B is negated (bit 14).
    pub negate_b: bool,
    /// Whether A is M-major (bit 15).
    pub transpose_a: bool,
    /// Whether B is N-major (bit 16).
    pub transpose_b: bool,
    /// N, a multiple of 8 (bits 17 to 22).
    pub n: u16,
    /// M, a multiple of 16 (bits 24 to 28).
    pub m: u16,
    /// How far `.ws` may shift B to reuse it: 0, or 1 to 3 for 8, 16, 32 (bits 30 and 31).
    pub maximum_shift: u8,
}

impl InstructionDescriptor {
    /// The encoded word. Bits beyond a field's width are dropped.
    pub fn encode(&self) -> u32 {
        let word = put(u64::from(self.sparsity_selector), 0, 2)
            | put(u64::from(self.sparse), 2, 1)
            | put(u64::from(self.saturate), 3, 1)
            | put(u64::from(self.d), 4, 2)
            | put(u64::from(self.a), 7, 3)
            | put(u64::from(self.b), 10, 3)
            | put(u64::from(self.negate_a), 13, 1)
            | put(u64::from(self.negate_b), 14, 1)
            | put(u64::from(self.transpose_a), 15, 1)
            | put(u64::from(self.transpose_b), 16, 1)
            | put(u64::from(self.n >> 3), 17, 6)
            | put(u64::from(self.m >> 4), 24, 5)
            | put(u64::from(self.maximum_shift), 30, 2);
        word as u32
    }

    /// Decodes a word. Error: reserved bits are set.
    pub fn decode(word: u32) -> Result<InstructionDescriptor, LayoutError> {
        let field = |at, width| take(u64::from(word), at, width);
        if field(6, 1) | field(23, 1) | field(29, 1) != 0 {
            let problem = format!("the descriptor {word:#010x} has reserved bits set");
            return Err(refuse(problem, "zeros in bits 6, 23 and 29"));
        }
        Ok(InstructionDescriptor {
            sparsity_selector: field(0, 2) as u8,
            sparse: field(2, 1) == 1,
            saturate: field(3, 1) == 1,
            d: field(4, 2) as u8,
            a: field(7, 3) as u8,
            b: field(10, 3) as u8,
            negate_a: field(13, 1) == 1,
            negate_b: field(14, 1) == 1,
            transpose_a: field(15, 1) == 1,
            transpose_b: field(16, 1) == 1,
            n: (field(17, 6) as u16) << 3,
            m: (field(24, 5) as u16) << 4,
            maximum_shift: field(30, 2) as u8,
        })
    }
}

/// The kind and the descriptor of a dense multiplication; `transpose` tells whether A and B are MN-major.
///
/// M is 64 or 128 in each CTA, and N at most 256. The PTX ISA ("Matrix shape") allows N in steps of 8 in one CTA, for M
/// of both 64 and 128, and in steps of 16 in two; for `i8` it allows 8, 16, 24 and 32, then steps of 16, and steps of
/// 32 in two CTAs. Like CUTLASS and TVM, this constructor is stricter: steps of 16 with M of 128 in one CTA (except for
/// `i8`), and of 32 in two. Descriptors of the other sizes can be built from their fields. Operands of less than 8 bits
/// are K-major, and an N-major B of 8 bits needs N in steps of 16 per CTA ("Transpose and Negate operations").
///
/// Errors: types that no kind multiplies, sizes or transposes that the kind does not support, and sizes that it
/// supports but this constructor does not build.
pub fn dense(
    shape: InstructionShape,
    types: InstructionTypes,
    transpose: [bool; 2],
) -> Result<(DenseKind, InstructionDescriptor), LayoutError> {
    let Multiplicands { kind, a, b } = multiplicands(types)?;
    let d = accumulator(kind, types)?;
    check_shape(kind, shape)?;
    check_transpose(shape, types, transpose)?;
    let descriptor = InstructionDescriptor {
        sparsity_selector: 0,
        sparse: false,
        saturate: false,
        d,
        a,
        b,
        negate_a: false,
        negate_b: false,
        transpose_a: transpose[0],
        transpose_b: transpose[1],
        n: shape.n as u16,
        m: shape.m as u16,
        maximum_shift: 0,
    };
    Ok((kind, descriptor))
}

/// The code of a type in a list of types with their codes.
pub(crate) fn code_of(codes: &[(MmaType, u8)], wanted: MmaType) -> Option<u8> {
    codes.iter().find(|(listed, _)| *listed == wanted).map(|(_, code)| *code)
}

/// An error about an instruction.
pub(crate) fn refuse(problem: String, legal: &str) -> LayoutError {
    LayoutError::Hardware { name: "tcgen05 instruction", problem, legal: legal.to_string() }
}

/// The kind that multiplies two types, and their codes.
struct Multiplicands {
    kind: DenseKind,
    a: u8,
    b: u8,
}

fn multiplicands(types: InstructionTypes) -> Result<Multiplicands, LayoutError> {
    let of_kind = |kind: DenseKind| {
        let code = |wanted: MmaType| code_of(kind.operands(), wanted);
        Some(Multiplicands { kind, a: code(types.a)?, b: code(types.b)? })
    };
    DenseKind::ALL.into_iter().find_map(of_kind).ok_or_else(|| {
        let problem = format!("no kind multiplies {} by {}", types.a.name(), types.b.name());
        refuse(problem, "f16 and bf16, tf32, floats of 4 to 8 bits, or integers of 8 bits, not mixed with each other")
    })
}

/// The code of D's type. In kind `f16`, D may be f16 only if both operands are f16.
fn accumulator(kind: DenseKind, types: InstructionTypes) -> Result<u8, LayoutError> {
    let half = kind != DenseKind::F16 || (types.a, types.b) == (MmaType::F16, MmaType::F16);
    let legal = || kind.accumulators().iter().filter(|(t, _)| half || *t != MmaType::F16);
    legal().find(|(t, _)| *t == types.d).map(|(_, number)| *number).ok_or_else(|| {
        let problem = format!("D of {} from {} and {}", types.d.name(), types.a.name(), types.b.name());
        let names: Vec<&str> = legal().map(|(t, _)| t.name()).collect();
        refuse(problem, &format!("D of {}", names.join(" or ")))
    })
}

fn check_shape(kind: DenseKind, shape: InstructionShape) -> Result<(), LayoutError> {
    let InstructionShape { cta_group, m, n, k } = shape;
    check_m(shape, if cta_group == CtaGroup::Two { &[128, 256] } else { &[64, 128] })?;
    if k != kind.k() {
        return Err(refuse(format!("K = {k} for kind {}", kind.name()), &format!("K = {}", kind.k())));
    }
    let (exists, legal) = match (kind, cta_group) {
        (DenseKind::I8, CtaGroup::One) => {
            (n % 16 == 0 || n == 8 || n == 24, "8, 16, 24, 32, then multiples of 16 up to 256")
        }
        (DenseKind::I8, CtaGroup::Two) => (n % 32 == 0, "multiples of 32 up to 256"),
        (_, CtaGroup::One) => (n % 8 == 0, "multiples of 8 up to 256"),
        (_, CtaGroup::Two) => (n % 16 == 0, "multiples of 16 up to 256"),
    };
    check_n(n, exists, legal)?;
    let steps = match (kind, cta_group, m) {
        (DenseKind::I8, _, _) | (_, CtaGroup::One, 64) => 8,
        (_, CtaGroup::One, _) => 16,
        (_, CtaGroup::Two, _) => 32,
    };
    check_usual(shape, steps)
}

/// CUTLASS and TVM use larger steps of N than the ISA requires.
fn check_usual(shape: InstructionShape, steps: i64) -> Result<(), LayoutError> {
    let InstructionShape { cta_group, m, n, .. } = shape;
    if n % steps == 0 {
        return Ok(());
    }
    Err(LayoutError::Hardware {
        name: USUAL,
        problem: format!("N = {n} with M = {m} and cta_group::{}", cta_group.ctas()),
        legal: format!(
            "multiples of {steps} up to 256; the PTX ISA also allows this N: build the descriptor from its fields"
        ),
    })
}

/// M must be one of `legal`.
pub(crate) fn check_m(shape: InstructionShape, legal: &[i64]) -> Result<(), LayoutError> {
    if !legal.contains(&shape.m) {
        let values: Vec<String> = legal.iter().map(i64::to_string).collect();
        let problem = format!("M = {} with cta_group::{}", shape.m, shape.cta_group.ctas());
        return Err(refuse(problem, &format!("M = {}", values.join(" or "))));
    }
    Ok(())
}

/// N must be 1 to 256 and one of the values that `legal` describes; `fits` tells whether it is one of those.
pub(crate) fn check_n(n: i64, fits: bool, legal: &str) -> Result<(), LayoutError> {
    if fits && (1..=256).contains(&n) { Ok(()) } else { Err(refuse(format!("N = {n}"), legal)) }
}

/// Checks that the operands may be MN-major where `transpose` says so.
pub(crate) fn check_transpose(
    shape: InstructionShape,
    types: InstructionTypes,
    transpose: [bool; 2],
) -> Result<(), LayoutError> {
    for (operand, mn_major, element) in [("A", transpose[0], types.a), ("B", transpose[1], types.b)] {
        if mn_major && element.bits() < 8 {
            let problem = format!("{operand} of {} is MN-major", element.name());
            return Err(refuse(problem, "K-major for operands of less than 8 bits"));
        }
    }
    let steps = 16 * shape.cta_group.ctas();
    if transpose[1] && types.b.bits() == 8 && shape.n % steps != 0 {
        let problem = format!("B of {} is N-major with N = {}", types.b.name(), shape.n);
        return Err(refuse(problem, &format!("N a multiple of {steps}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: InstructionTypes = InstructionTypes { d: MmaType::F32, a: MmaType::F16, b: MmaType::F16 };

    fn shape(m: i64, n: i64) -> InstructionShape {
        InstructionShape { cta_group: CtaGroup::One, m, n, k: 16 }
    }

    #[test]
    fn half_precision_128_by_256() {
        let (kind, descriptor) = dense(shape(128, 256), HALF, [false, false]).unwrap();
        assert_eq!((kind.name(), descriptor.encode()), ("f16", 0x0840_0010));
    }

    #[test]
    fn every_field_is_read_back() {
        let descriptor = InstructionDescriptor {
            sparsity_selector: 2,
            sparse: true,
            saturate: true,
            d: 2,
            a: 5,
            b: 3,
            negate_a: true,
            negate_b: false,
            transpose_a: false,
            transpose_b: true,
            n: 248,
            m: 192,
            maximum_shift: 3,
        };
        assert_eq!(InstructionDescriptor::decode(descriptor.encode()), Ok(descriptor));
        assert!(InstructionDescriptor::decode(1 << 23).is_err());
    }

    #[test]
    fn an_illegal_size_is_named() {
        let said = dense(shape(128, 20), HALF, [false, false]).unwrap_err();
        assert_eq!((said.to_string().as_str(), said.code()), ("no such tcgen05 instruction: N = 20", "L0113"));
    }

    #[test]
    fn a_size_that_only_the_isa_has_is_not_called_illegal() {
        let two = InstructionShape { cta_group: CtaGroup::Two, ..shape(256, 48) };
        for (shape, problem) in
            [(shape(128, 24), "N = 24 with M = 128 and cta_group::1"), (two, "N = 48 with M = 256 and cta_group::2")]
        {
            let said = dense(shape, HALF, [false, false]).unwrap_err();
            let expected = format!("no such tcgen05 instruction among those that CUTLASS and TVM use: {problem}");
            assert_eq!((said.to_string(), said.code()), (expected, "L0113"));
        }
    }

    /// PTX ISA, "Instruction descriptor", table for tf32, f16, f8f6f4 and i8.
    #[test]
    fn every_field_has_the_bits_of_the_isa() {
        let none = InstructionDescriptor::decode(0).unwrap();
        let words = [
            (InstructionDescriptor { sparsity_selector: 3, ..none }, 0x0000_0003),
            (InstructionDescriptor { sparse: true, ..none }, 0x0000_0004),
            (InstructionDescriptor { saturate: true, ..none }, 0x0000_0008),
            (InstructionDescriptor { d: 2, ..none }, 0x0000_0020),
            (InstructionDescriptor { a: 5, ..none }, 0x0000_0280),
            (InstructionDescriptor { b: 5, ..none }, 0x0000_1400),
            (InstructionDescriptor { negate_a: true, ..none }, 0x0000_2000),
            (InstructionDescriptor { negate_b: true, ..none }, 0x0000_4000),
            (InstructionDescriptor { transpose_a: true, ..none }, 0x0000_8000),
            (InstructionDescriptor { transpose_b: true, ..none }, 0x0001_0000),
            (InstructionDescriptor { n: 256, ..none }, 0x0040_0000),
            (InstructionDescriptor { m: 256, ..none }, 0x1000_0000),
            (InstructionDescriptor { maximum_shift: 2, ..none }, 0x8000_0000),
        ];
        for (descriptor, word) in words {
            assert_eq!((descriptor.encode(), InstructionDescriptor::decode(word)), (word, Ok(descriptor)), "{word:#x}");
        }
    }

    #[test]
    fn bf16_does_not_accumulate_in_f16() {
        let types = InstructionTypes { d: MmaType::F16, a: MmaType::Bf16, b: MmaType::F16 };
        assert!(dense(shape(128, 64), types, [false, false]).is_err());
    }

    #[test]
    fn four_bit_operands_are_k_major() {
        let types = InstructionTypes { d: MmaType::F32, a: MmaType::E2m1, b: MmaType::E4m3 };
        let shape = InstructionShape { k: 32, ..shape(128, 64) };
        assert!(dense(shape, types, [true, false]).is_err());
        assert!(dense(shape, types, [false, true]).is_ok());
    }
}
