use super::choice::choices;
use super::{iter, refused};
use crate::axis::{LANEID, REG};
use crate::error::LayoutError;
use crate::tile::TileLayout;

choices! {
    /// The direction in which matrices are moved.
    pub MatrixOp, "matrix instruction";
    /// From shared memory to registers.
    Load = "ldmatrix",
    /// From registers to shared memory.
    Store = "stmatrix",
}

choices! {
    /// A shape of `ldmatrix` and `stmatrix`, as PTX names it: that of the matrix in registers.
    pub MatrixShape, "ldmatrix shape";
    /// 8 rows of eight 16-bit elements.
    M8N8 = "m8n8",
    /// `ldmatrix`: 8 rows of sixteen 8-bit elements, unpacked from 4 or 6 bits on the way.
    M8N16 = "m8n16",
    /// `ldmatrix.trans`: 16 rows of sixteen 8-bit elements.
    M16N16 = "m16n16",
    /// `stmatrix.trans`: 8 rows in memory of sixteen 8-bit elements.
    M16N8 = "m16n8",
}

impl MatrixShape {
    /// Bits of one element in registers.
    pub fn bits(self) -> i64 {
        match self {
            MatrixShape::M8N8 => 16,
            MatrixShape::M8N16 | MatrixShape::M16N16 | MatrixShape::M16N8 => 8,
        }
    }

    /// Rows of one matrix in memory, each with its own address, and elements of a row.
    fn in_memory(self) -> [i64; 2] {
        match self {
            MatrixShape::M8N8 => [8, 8],
            MatrixShape::M8N16 | MatrixShape::M16N8 => [8, 16],
            MatrixShape::M16N16 => [16, 16],
        }
    }
}

/// The shape of the tensor that `.x<count>` moves: the rows in memory of all matrices, in the order of their addresses
/// (lane `i` points to row `i`), by the elements of a row.
pub fn matrix_fragment_shape(shape: MatrixShape, count: i64) -> [i64; 2] {
    let [rows, cols] = shape.in_memory();
    [rows.saturating_mul(count), cols]
}

/// What each lane and register holds of the matrices that `ldmatrix` or `stmatrix` moves, on `laneid` and `reg`.
///
/// The tensor is that of [`matrix_fragment_shape`]; with `trans` a lane holds neighbours of a column in memory
/// instead of a row. Source: PTX ISA, sections "Warp-level matrix load instruction: ldmatrix" and "Warp-level matrix
/// store instruction: stmatrix". Error: a shape, a count or a `trans` that the instruction lacks.
pub fn matrix_fragment(op: MatrixOp, shape: MatrixShape, count: i64, trans: bool) -> Result<TileLayout, LayoutError> {
    check(op, shape, count, trans)?;
    let lane = |extent, stride| iter(extent, stride, LANEID);
    let reg = |extent, stride| iter(extent, stride, REG);
    let shard = match (shape, trans) {
        (MatrixShape::M8N8, false) => vec![reg(count, 2), lane(8, 4), lane(4, 1), reg(2, 1)],
        (MatrixShape::M8N8, true) => vec![reg(count, 2), lane(4, 1), reg(2, 1), lane(8, 4)],
        (MatrixShape::M8N16, _) => vec![reg(count, 4), lane(8, 4), lane(4, 1), reg(4, 1)],
        (MatrixShape::M16N16, _) => vec![reg(count, 8), lane(4, 1), reg(4, 1), reg(2, 4), lane(8, 4)],
        (MatrixShape::M16N8, _) => vec![reg(count, 4), lane(4, 1), reg(2, 1), reg(2, 2), lane(8, 4)],
    };
    Ok(TileLayout::new(shard, Vec::new(), [])?.canonicalize())
}

fn check(op: MatrixOp, shape: MatrixShape, count: i64, trans: bool) -> Result<(), LayoutError> {
    let exists = match (op, shape) {
        (_, MatrixShape::M8N8) => matches!(count, 1 | 2 | 4),
        (MatrixOp::Load, MatrixShape::M8N16) => matches!(count, 1 | 2 | 4) && !trans,
        (MatrixOp::Load, MatrixShape::M16N16) => matches!(count, 1 | 2) && trans,
        (MatrixOp::Store, MatrixShape::M16N8) => matches!(count, 1 | 2 | 4) && trans,
        (MatrixOp::Load, MatrixShape::M16N8) | (MatrixOp::Store, MatrixShape::M8N16 | MatrixShape::M16N16) => false,
    };
    if exists {
        return Ok(());
    }
    let problem = format!("{shape} .x{count}{}", if trans { " .trans" } else { "" });
    let legal = match op {
        MatrixOp::Load => "m8n8 x1, x2, x4 with or without trans; m8n16 x1, x2, x4; m16n16 x1, x2 with trans",
        MatrixOp::Store => "m8n8 x1, x2, x4 with or without trans; m16n8 x1, x2, x4 with trans",
    };
    Err(refused(op.name(), problem, legal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::check::assert_formula;

    /// `formula(lane, element)` is row and column of a single matrix in memory.
    fn assert_matrices(
        op: MatrixOp,
        shape: MatrixShape,
        counts: &[i64],
        trans: bool,
        formula: impl Fn(i64, i64) -> [i64; 2],
    ) {
        for count in counts.iter().copied() {
            let layout = matrix_fragment(op, shape, count, trans).unwrap();
            let [rows, cols] = shape.in_memory();
            let held = rows * cols / 32;
            assert_formula(&layout, &matrix_fragment_shape(shape, count), 32, |lane, i| {
                let [row, col] = formula(lane, i % held);
                vec![i / held * rows + row, col]
            });
        }
    }

    #[test]
    fn four_lanes_hold_a_row_of_an_8_by_8_matrix() {
        for op in [MatrixOp::Load, MatrixOp::Store] {
            assert_matrices(op, MatrixShape::M8N8, &[1, 2, 4], false, |lane, i| [lane / 4, lane % 4 * 2 + i]);
        }
    }

    #[test]
    fn four_lanes_hold_a_column_of_a_transposed_8_by_8_matrix() {
        for op in [MatrixOp::Load, MatrixOp::Store] {
            assert_matrices(op, MatrixShape::M8N8, &[1, 2, 4], true, |lane, i| [lane % 4 * 2 + i, lane / 4]);
        }
    }

    #[test]
    fn four_lanes_hold_a_row_of_16_unpacked_bytes() {
        let row = |lane: i64, i: i64| [lane / 4, lane % 4 * 4 + i];
        assert_matrices(MatrixOp::Load, MatrixShape::M8N16, &[1, 2, 4], false, row);
    }

    #[test]
    fn the_two_registers_of_a_16_by_16_matrix_hold_four_rows_of_two_columns() {
        let column = |lane: i64, i: i64| [lane % 4 * 4 + i % 4, lane / 4 + i / 4 * 8];
        assert_matrices(MatrixOp::Load, MatrixShape::M16N16, &[1, 2], true, column);
    }

    #[test]
    fn the_register_of_a_stored_16_by_8_matrix_holds_two_rows_of_two_columns_of_memory() {
        let column = |lane: i64, i: i64| [lane % 4 * 2 + i % 2, lane / 4 + i / 2 * 8];
        assert_matrices(MatrixOp::Store, MatrixShape::M16N8, &[1, 2, 4], true, column);
    }

    #[test]
    fn what_the_instructions_do_not_have_is_refused() {
        let refusals = [
            (MatrixOp::Load, MatrixShape::M8N8, 3, false),
            (MatrixOp::Load, MatrixShape::M16N16, 4, true),
            (MatrixOp::Load, MatrixShape::M16N16, 1, false),
            (MatrixOp::Load, MatrixShape::M8N16, 1, true),
            (MatrixOp::Load, MatrixShape::M16N8, 1, true),
            (MatrixOp::Store, MatrixShape::M16N8, 1, false),
            (MatrixOp::Store, MatrixShape::M16N16, 1, true),
        ];
        for (op, shape, count, trans) in refusals {
            assert_eq!(matrix_fragment(op, shape, count, trans).unwrap_err().code(), "L0113", "{op} {shape} x{count}");
        }
    }
}
