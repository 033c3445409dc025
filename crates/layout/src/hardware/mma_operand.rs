//! Shapes, operands and orders of `mma.sync`, by name.

use super::choice::choices;

choices! {
    /// A shape of `mma.sync` (PTX ISA, section "Matrix multiply-accumulate operation using mma instruction").
    pub MmaShape, "mma shape";
    /// 8 x 8 x 4: f64, or four MMAs of f16.
    M8N8K4 = "m8n8k4",
    /// 16 x 8 x 4: tf32, f64.
    M16N8K4 = "m16n8k4",
    /// 16 x 8 x 8: f16, bf16, tf32, f64.
    M16N8K8 = "m16n8k8",
    /// 16 x 8 x 16: f16, bf16, f64, and 8 bits.
    M16N8K16 = "m16n8k16",
    /// 16 x 8 x 32: 8 bits, 4-bit integers, and floats of 4, 6 and 8 bits mixed.
    M16N8K32 = "m16n8k32",
    /// 16 x 8 x 64: 4 bits.
    M16N8K64 = "m16n8k64",
    /// 16 x 8 x 128: single bits.
    M16N8K128 = "m16n8k128",
    /// 16 x 8 x 256: single bits.
    M16N8K256 = "m16n8k256",
    /// 8 x 8 x 16: 8-bit integers.
    M8N8K16 = "m8n8k16",
    /// 8 x 8 x 32: 4-bit integers.
    M8N8K32 = "m8n8k32",
    /// 8 x 8 x 128: single bits.
    M8N8K128 = "m8n8k128",
}

impl MmaShape {
    /// M, N and K.
    pub fn mnk(self) -> (i64, i64, i64) {
        match self {
            MmaShape::M8N8K4 => (8, 8, 4),
            MmaShape::M16N8K4 => (16, 8, 4),
            MmaShape::M16N8K8 => (16, 8, 8),
            MmaShape::M16N8K16 => (16, 8, 16),
            MmaShape::M16N8K32 => (16, 8, 32),
            MmaShape::M16N8K64 => (16, 8, 64),
            MmaShape::M16N8K128 => (16, 8, 128),
            MmaShape::M16N8K256 => (16, 8, 256),
            MmaShape::M8N8K16 => (8, 8, 16),
            MmaShape::M8N8K32 => (8, 8, 32),
            MmaShape::M8N8K128 => (8, 8, 128),
        }
    }
}

choices! {
    /// An operand of an MMA.
    pub MmaOperand, "mma operand";
    /// The left multiplicand, (M, K).
    A = "a",
    /// The right multiplicand, (K, N).
    B = "b",
    /// The addend, (M, N).
    C = "c",
    /// The result, (M, N).
    D = "d",
}

choices! {
    /// How an operand's matrix is stored, as `.row` and `.col` of `mma` specify.
    pub MatrixOrder, "matrix order";
    /// Row by row; usual for A.
    Row = "row",
    /// Column by column; usual for B.
    Col = "col",
}
