//! The 32-bit word that tells `tcgen05.mma` what it multiplies, for kinds with scale factors.
//!
//! Source: PTX ISA, "Instruction descriptor" of tcgen05, formats for `mxf8f6f4`, `mxf4` and `mxf4nvf4`.

use crate::error::LayoutError;
use crate::hardware::{CtaGroup, MmaType, ScaleVec};

use super::field::{put, take};
use super::instruction::{
    InstructionShape, InstructionTypes, NARROW_FLOATS, check_m, check_n, check_transpose, code_of, refuse,
};

/// The `.kind` of a block-scaled `tcgen05.mma`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaledKind {
    /// Floats of 4, 6 and 8 bits, freely mixed, with one ue8m0 scale per 32 elements; K of 32.
    Mxf8f6f4,
    /// e2m1 with one ue8m0 scale per 32 elements; K of 64 (96 on `sm_103a`).
    Mxf4,
    /// e2m1 with one ue4m3 or ue8m0 scale per 16 elements, or one ue8m0 scale per 32; K of 64 (96 on `sm_103a`).
    Mxf4nvf4,
}

/// The scale factors of both operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleFormat {
    /// Their type: ue8m0 or ue4m3.
    pub element: MmaType,
    /// How many factors an MMA reads per row, which decides how many elements share one: with K of 32, `1X` is one
    /// factor per 32 elements; with K of 64, `2X` is one per 32 and `4X` one per 16. With K of 96, `2X` and `4X` stand
    /// for `.block32` and `.block16`, which are 3 and 6 factors.
    pub vec: ScaleVec,
}

impl ScaledKind {
    /// Its name in PTX, after `.kind::`.
    pub fn name(self) -> &'static str {
        match self {
            ScaledKind::Mxf8f6f4 => "mxf8f6f4",
            ScaledKind::Mxf4 => "mxf4",
            ScaledKind::Mxf4nvf4 => "mxf4nvf4",
        }
    }

    /// The types of A and B, with their codes in the descriptor.
    pub fn operands(self) -> &'static [(MmaType, u8)] {
        match self {
            ScaledKind::Mxf8f6f4 => NARROW_FLOATS,
            ScaledKind::Mxf4 | ScaledKind::Mxf4nvf4 => &[(MmaType::E2m1, 1)],
        }
    }
}

/// The instruction descriptor for kinds with scale factors. D is f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockScaledInstructionDescriptor {
    /// Whether A is sparse (bit 2).
    pub sparse: bool,
    /// Which byte of a tensor-memory column holds B's scale factors (bits 4 and 5).
    pub b_scale_id: u8,
    /// The code of A's type (bits 7 to 9); see [`ScaledKind::operands`].
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
    /// Whether scale factors are ue8m0 instead of ue4m3 (bit 23).
    pub scale_ue8m0: bool,
    /// M, a multiple of 128 (bits 27 and 28).
    pub m: u16,
    /// Which byte of a tensor-memory column holds A's scale factors (bits 29 and 30).
    pub a_scale_id: u8,
    /// Whether K is 96 instead of 64 (bit 31).
    pub k96: bool,
}

impl BlockScaledInstructionDescriptor {
    /// The encoded word. Bits beyond a field's width are dropped.
    pub fn encode(&self) -> u32 {
        let word = put(u64::from(self.sparse), 2, 1)
            | put(u64::from(self.b_scale_id), 4, 2)
            | put(u64::from(self.a), 7, 3)
            | put(u64::from(self.b), 10, 3)
            | put(u64::from(self.negate_a), 13, 1)
            | put(u64::from(self.negate_b), 14, 1)
            | put(u64::from(self.transpose_a), 15, 1)
            | put(u64::from(self.transpose_b), 16, 1)
            | put(u64::from(self.n >> 3), 17, 6)
            | put(u64::from(self.scale_ue8m0), 23, 1)
            | put(u64::from(self.m >> 7), 27, 2)
            | put(u64::from(self.a_scale_id), 29, 2)
            | put(u64::from(self.k96), 31, 1);
        word as u32
    }

    /// Decodes a word. Error: reserved bits are set.
    pub fn decode(word: u32) -> Result<BlockScaledInstructionDescriptor, LayoutError> {
        let field = |at, width| take(u64::from(word), at, width);
        if field(0, 2) | field(3, 1) | field(6, 1) | field(24, 3) != 0 {
            let problem = format!("the descriptor {word:#010x} has reserved bits set");
            return Err(refuse(problem, "zeros in bits 0, 1, 3, 6 and 24 to 26"));
        }
        Ok(BlockScaledInstructionDescriptor {
            sparse: field(2, 1) == 1,
            b_scale_id: field(4, 2) as u8,
            a: field(7, 3) as u8,
            b: field(10, 3) as u8,
            negate_a: field(13, 1) == 1,
            negate_b: field(14, 1) == 1,
            transpose_a: field(15, 1) == 1,
            transpose_b: field(16, 1) == 1,
            n: (field(17, 6) as u16) << 3,
            scale_ue8m0: field(23, 1) == 1,
            m: (field(27, 2) as u16) << 7,
            a_scale_id: field(29, 2) as u8,
            k96: field(31, 1) == 1,
        })
    }
}

/// The kind and the descriptor of a block-scaled multiplication with scale factors of the format `scale`; `transpose`
/// tells whether A and B are MN-major. The scale factor ids are 0.
///
/// e2m1 with one ue8m0 factor per 32 elements is supported by both `mxf4` and `mxf4nvf4`, with the same word; the kind
/// returned is `mxf4`. (For `mxf4nvf4` the ISA's table of the word lists only ue4m3; CUTLASS sets the ue8m0 bit there
/// as in the other kinds.)
///
/// Legal: M of 128 (two CTAs: 128 or 256), N up to 256 in steps of 8 per CTA, D of f32 (PTX ISA, "Matrix shape" and
/// "Valid combinations of scale_vectorsize with types and MMA-Kind"); for `mxf4` and `mxf4nvf4` both operands K-major.
///
/// Errors: types that no kind multiplies, and sizes or transposes that the kind does not support.
pub fn block_scaled(
    shape: InstructionShape,
    types: InstructionTypes,
    scale: ScaleFormat,
    transpose: [bool; 2],
) -> Result<(ScaledKind, BlockScaledInstructionDescriptor), LayoutError> {
    let kind = kind_of(shape.k, scale)?;
    let [a, b] = codes(kind, shape.k, types)?;
    check_m(shape, if shape.cta_group == CtaGroup::Two { &[128, 256] } else { &[128] })?;
    let steps = 8 * shape.cta_group.ctas();
    check_n(shape.n, shape.n % steps == 0, &format!("multiples of {steps} up to 256"))?;
    check_transpose(shape, types, transpose)?;
    let descriptor = BlockScaledInstructionDescriptor {
        sparse: false,
        b_scale_id: 0,
        a,
        b,
        negate_a: false,
        negate_b: false,
        transpose_a: transpose[0],
        transpose_b: transpose[1],
        n: shape.n as u16,
        scale_ue8m0: scale.element == MmaType::Ue8m0,
        m: shape.m as u16,
        a_scale_id: 0,
        k96: shape.k == 96,
    };
    Ok((kind, descriptor))
}

fn kind_of(k: i64, scale: ScaleFormat) -> Result<ScaledKind, LayoutError> {
    match (k, scale.element, scale.vec) {
        (32, MmaType::Ue8m0, ScaleVec::X1) => Ok(ScaledKind::Mxf8f6f4),
        (64 | 96, MmaType::Ue8m0, ScaleVec::X2) => Ok(ScaledKind::Mxf4),
        (64 | 96, MmaType::Ue8m0 | MmaType::Ue4m3, ScaleVec::X4) => Ok(ScaledKind::Mxf4nvf4),
        _ => {
            let problem = format!("K = {k} with scale factors of {}, scale_vec::{}", scale.element, scale.vec);
            let legal = "K = 32 with ue8m0 and 1X; K = 64 or 96 with ue8m0 and 2X, or with ue8m0 or ue4m3 and 4X";
            Err(refuse(problem, legal))
        }
    }
}

/// The codes of A's and B's types. Error: types that the kind does not multiply.
fn codes(kind: ScaledKind, k: i64, types: InstructionTypes) -> Result<[u8; 2], LayoutError> {
    let [a, b] = [types.a, types.b].map(|wanted| code_of(kind.operands(), wanted));
    if let (MmaType::F32, Some(a), Some(b)) = (types.d, a, b) {
        return Ok([a, b]);
    }
    let problem = format!("{} from {} and {} with K = {k}", types.d.name(), types.a.name(), types.b.name());
    Err(refuse(problem, "f32 from e2m1 with K = 64 or 96, or from floats of 4 to 8 bits with K = 32"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR_BITS: InstructionTypes = InstructionTypes { d: MmaType::F32, a: MmaType::E2m1, b: MmaType::E2m1 };

    fn shape(k: i64) -> InstructionShape {
        InstructionShape { cta_group: CtaGroup::One, m: 128, n: 128, k }
    }

    /// Kind and word of e2m1 by e2m1 with K of 64.
    fn four_bits(element: MmaType, vec: ScaleVec) -> Result<(&'static str, u32), LayoutError> {
        let (kind, descriptor) = block_scaled(shape(64), FOUR_BITS, ScaleFormat { element, vec }, [false, false])?;
        Ok((kind.name(), descriptor.encode()))
    }

    #[test]
    fn nvfp4_with_k_of_96() {
        let scale = ScaleFormat { element: MmaType::Ue4m3, vec: ScaleVec::X4 };
        let (kind, descriptor) = block_scaled(shape(96), FOUR_BITS, scale, [false, false]).unwrap();
        assert_eq!((kind.name(), descriptor.encode()), ("mxf4nvf4", 2_283_799_680));
    }

    #[test]
    fn four_bits_take_ue8m0_for_16_elements_too() {
        let word = 0x0820_0480;
        assert_eq!(four_bits(MmaType::Ue4m3, ScaleVec::X4), Ok(("mxf4nvf4", word)));
        assert_eq!(four_bits(MmaType::Ue8m0, ScaleVec::X4), Ok(("mxf4nvf4", word | (1 << 23))));
        assert_eq!(four_bits(MmaType::Ue8m0, ScaleVec::X2), Ok(("mxf4", word | (1 << 23))));
    }

    #[test]
    fn ue4m3_is_never_for_32_elements() {
        for vec in [ScaleVec::X1, ScaleVec::X2] {
            assert_eq!(four_bits(MmaType::Ue4m3, vec).unwrap_err().code(), "L0113");
        }
    }

    /// PTX ISA, "Instruction descriptor", tables for mxf8f6f4, mxf4 and mxf4nvf4.
    #[test]
    fn every_field_has_the_bits_of_the_isa() {
        let none = BlockScaledInstructionDescriptor::decode(0).unwrap();
        let words = [
            (BlockScaledInstructionDescriptor { sparse: true, ..none }, 0x0000_0004),
            (BlockScaledInstructionDescriptor { b_scale_id: 2, ..none }, 0x0000_0020),
            (BlockScaledInstructionDescriptor { a: 5, ..none }, 0x0000_0280),
            (BlockScaledInstructionDescriptor { b: 5, ..none }, 0x0000_1400),
            (BlockScaledInstructionDescriptor { negate_a: true, ..none }, 0x0000_2000),
            (BlockScaledInstructionDescriptor { negate_b: true, ..none }, 0x0000_4000),
            (BlockScaledInstructionDescriptor { transpose_a: true, ..none }, 0x0000_8000),
            (BlockScaledInstructionDescriptor { transpose_b: true, ..none }, 0x0001_0000),
            (BlockScaledInstructionDescriptor { n: 256, ..none }, 0x0040_0000),
            (BlockScaledInstructionDescriptor { scale_ue8m0: true, ..none }, 0x0080_0000),
            (BlockScaledInstructionDescriptor { m: 256, ..none }, 0x1000_0000),
            (BlockScaledInstructionDescriptor { a_scale_id: 2, ..none }, 0x4000_0000),
            (BlockScaledInstructionDescriptor { k96: true, ..none }, 0x8000_0000),
        ];
        for (descriptor, word) in words {
            let read = BlockScaledInstructionDescriptor::decode(word);
            assert_eq!((descriptor.encode(), read), (word, Ok(descriptor)), "{word:#x}");
        }
    }

    #[test]
    fn every_field_is_read_back() {
        let descriptor = BlockScaledInstructionDescriptor {
            sparse: true,
            b_scale_id: 2,
            a: 4,
            b: 3,
            negate_a: false,
            negate_b: true,
            transpose_a: true,
            transpose_b: false,
            n: 136,
            scale_ue8m0: true,
            m: 256,
            a_scale_id: 1,
            k96: true,
        };
        assert_eq!(BlockScaledInstructionDescriptor::decode(descriptor.encode()), Ok(descriptor));
        assert!(BlockScaledInstructionDescriptor::decode(1).is_err());
    }

    #[test]
    fn eight_bit_operands_take_no_ue4m3_scales() {
        let types = InstructionTypes { a: MmaType::E4m3, b: MmaType::E4m3, ..FOUR_BITS };
        let scale = ScaleFormat { element: MmaType::Ue4m3, vec: ScaleVec::X1 };
        let said = block_scaled(shape(32), types, scale, [false, false]).unwrap_err().to_string();
        assert_eq!(said, "no such tcgen05 instruction: K = 32 with scale factors of ue4m3, scale_vec::1X");
    }
}
