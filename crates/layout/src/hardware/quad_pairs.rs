//! `mma.m8n8k4` of half precision: four MMAs in one instruction, one for each pair of quads.

use super::iter;
use super::mma_operand::{MatrixOrder, MmaOperand};
use crate::axis::{LANEID, REG};
use crate::iter::Iter;

/// MMA `q` of 0..4 is held by lanes `4q..4q+4` and `16+4q..16+4q+4`; tensors are (4, M, K), (4, K, N) and (4, M, N).
///
/// Source: PTX ISA, section "Matrix Fragments for mma.m8n8k4 with .f16 floating point type".
pub(super) fn quad_pair_iters(operand: MmaOperand, order: MatrixOrder, wide_accumulator: bool) -> Vec<Iter> {
    let lane = |extent, stride| iter(extent, stride, LANEID);
    let reg = |extent, stride| iter(extent, stride, REG);
    let mma = lane(4, 4);
    let upper = lane(2, 16);
    match (operand, order) {
        (MmaOperand::A, MatrixOrder::Row) => vec![mma, upper, lane(4, 1), reg(4, 1)],
        (MmaOperand::A, MatrixOrder::Col) => vec![mma, upper, reg(4, 1), lane(4, 1)],
        (MmaOperand::B, MatrixOrder::Col) => vec![mma, reg(4, 1), upper, lane(4, 1)],
        (MmaOperand::B, MatrixOrder::Row) => vec![mma, lane(4, 1), upper, reg(4, 1)],
        (MmaOperand::C | MmaOperand::D, _) if wide_accumulator => {
            vec![mma, upper, reg(2, 2), lane(2, 1), reg(2, 4), lane(2, 2), reg(2, 1)]
        }
        (MmaOperand::C | MmaOperand::D, _) => vec![mma, upper, lane(4, 1), reg(8, 1)],
    }
}

#[cfg(test)]
mod tests {
    use crate::hardware::check::assert_formula;
    use crate::hardware::{MatrixOrder, MmaOperand, MmaShape, MmaType, mma_fragment, mma_fragment_shape};

    /// The ISA's formula, for the MMA of the lane's quads: `(lane, i)` to row and column.
    fn assert_quad_pairs(
        operand: MmaOperand,
        element: MmaType,
        order: Option<MatrixOrder>,
        formula: impl Fn(i64, i64) -> [i64; 2],
    ) {
        let layout = mma_fragment(MmaShape::M8N8K4, operand, element, order).unwrap();
        let shape = mma_fragment_shape(MmaShape::M8N8K4, operand, element);
        assert_formula(&layout, &shape, 32, |lane, i| {
            let [row, col] = formula(lane, i);
            vec![lane % 16 / 4, row, col]
        });
    }

    fn upper(lane: i64) -> i64 {
        if lane < 16 { 0 } else { 4 }
    }

    #[test]
    fn multiplicands_in_either_order_are_as_in_the_isa() {
        let (row, col) = (Some(MatrixOrder::Row), Some(MatrixOrder::Col));
        assert_quad_pairs(MmaOperand::A, MmaType::F16, row, |lane, i| [lane % 4 + upper(lane), i]);
        assert_quad_pairs(MmaOperand::A, MmaType::F16, col, |lane, i| [i + upper(lane), lane % 4]);
        assert_quad_pairs(MmaOperand::B, MmaType::F16, row, |lane, i| [lane % 4, i + upper(lane)]);
        assert_quad_pairs(MmaOperand::B, MmaType::F16, col, |lane, i| [i, lane % 4 + upper(lane)]);
    }

    #[test]
    fn an_accumulator_of_half_precision_is_as_in_the_isa() {
        assert_quad_pairs(MmaOperand::C, MmaType::F16, None, |lane, i| [lane % 4 + upper(lane), i]);
    }

    #[test]
    fn an_accumulator_of_single_precision_is_as_in_the_isa() {
        assert_quad_pairs(MmaOperand::D, MmaType::F32, None, |lane, i| {
            [(lane & 1) + (i & 2) + upper(lane), (i & 4) + (lane & 2) + (i & 1)]
        });
    }
}
