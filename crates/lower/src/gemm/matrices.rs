//! Operands of a product in shared memory, loaded by `ldmatrix`: every lane gives the address of 16 bytes, a row of a
//! matrix of 8 rows, and the instruction distributes up to four matrices over the registers of the warp.

use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::plan::{MemoryKind, Reason};
use tilewright_ir::product::{Matrix, Product, WarpPart};
use tilewright_ir::thread::{Call, Inst, RegArray, Stmt};
use tilewright_layout::axis::{LANEID, M, REG};
use tilewright_layout::hardware::{MatrixOp, MatrixShape, matrix_fragment};
use tilewright_layout::{Layout, TileLayout};

use super::staging::flat_index;
use crate::builder::{Builder, regs};
use crate::fragment::ThreadIndices;
use crate::operand::MemoryTile;
use crate::reorder::WORD_BYTES;

/// Bytes of a row of a matrix.
const ROW_BYTES: i64 = 16;

/// An operand whose registers matrices fill.
pub(super) struct MatrixLoads<'a> {
    tile: &'a MemoryTile,
    layout: &'a TileLayout,
    product: &'a Product,
    matrix: Matrix,
    part: WarpPart<'a>,
    indices: &'a ThreadIndices,
    /// Whether the rows of matrices, which are contiguous, are columns of the registers' matrices: they run across lines.
    is_transposed: bool,
}

/// Matrices that one instruction loads.
struct Group {
    /// The position of the first one: the line, and the index along it.
    first: [i64; 2],
    /// What bits 0 and 1 of the number of a matrix add to it.
    steps: [[i64; 2]; 2],
    /// How many: 1, 2 or 4.
    count: i64,
}

/// How many elements of a column of the stored matrix are contiguous and aligned.
fn width_of_columns(layout: &TileLayout, product: &Product, matrix: Matrix) -> i64 {
    let [lines, length] = product.extents(matrix);
    let stored = if product.is_turned(matrix) { [length, lines] } else { [lines, length] };
    let columns = Layout::Tile(layout.clone()).reorder(&stored, &[1, 0]);
    columns.and_then(|columns| columns.vector_width(&M)).unwrap_or(1)
}

impl<'a> MatrixLoads<'a> {
    /// Error: why `ldmatrix` cannot load the operand.
    pub(super) fn of(
        (tile, layout): (&'a MemoryTile, &'a TileLayout),
        product: &'a Product,
        matrix: Matrix,
        indices: &'a ThreadIndices,
    ) -> Result<MatrixLoads<'a>, Reason> {
        let part = product.part(matrix);
        let (title, bytes) = (&tile.title, tile.dtype.bytes());
        let row = ROW_BYTES / bytes;
        let is_turned = product.is_turned(matrix);
        let is_along_columns =
            layout.vector_width(&M) % row != 0 && width_of_columns(layout, product, matrix) % row == 0;
        let is_transposed = is_turned != is_along_columns;
        let loads = MatrixLoads { tile, layout, product, matrix, part, indices, is_transposed };
        let against = |text: String, accepted: &str| Err(Reason { text, accepted: accepted.to_string() });
        if tile.memory_kind != MemoryKind::Shared {
            return against(format!("`{title}` is not in shared memory"), "tiles in shared memory");
        }
        if bytes > WORD_BYTES {
            return against(format!("`ldmatrix` does not load elements of {}", tile.dtype), "elements of 8 to 32 bits");
        }
        if bytes != 2 && is_transposed {
            let text = format!("`ldmatrix` does not transpose elements of {}", tile.dtype);
            return against(text, "elements of 16 bits, or lines along K that are contiguous");
        }
        let kept = tile.placed.swizzle.map_or(row, |swizzle| 1 << swizzle.per_element());
        let has_rows = is_along_columns || layout.vector_width(&M) % row == 0;
        let is_whole = has_rows && tile.placed.start.multiple() % row == 0;
        if !is_whole || kept % row != 0 || tile.alignment % ROW_BYTES != 0 {
            let text = format!("rows of 16 bytes of `{title}` are not contiguous and aligned");
            return against(text, "lines of whole 16 bytes, padded or swizzled by multiples of 16 bytes");
        }
        if (0..loads.words_of_atom()).any(|word| !loads.is_matrix(word)) {
            return against(format!("the registers of `{title}` are not matrices of `ldmatrix`"), "other dtypes");
        }
        Ok(loads)
    }

    /// Loads the registers of all lines of a step along K; they fill `array`.
    pub(super) fn moves(&self, builder: &mut Builder, step: &Expr, array: Handle<RegArray>) -> Vec<Stmt> {
        let per_word = WORD_BYTES / self.tile.dtype.bytes();
        let words = self.part.atoms[0] * self.words_of_atom();
        let (mut body, mut word) = (Vec::new(), 0);
        while word < words {
            let group = self.group(word, words);
            let index = self.index(builder, &group, step);
            body.push(Stmt::from(Call {
                to: Some(regs(array, word * per_word, group.count * per_word)),
                memory: vec![(self.tile.memory, index)],
                ..Call::plain(self.inst(group.count))
            }));
            word += group.count;
        }
        body
    }

    fn inst(&self, count: i64) -> Inst {
        match (count, self.is_transposed) {
            (4, false) => Inst::LoadMatrixX4,
            (2, false) => Inst::LoadMatrixX2,
            (_, false) => Inst::LoadMatrixX1,
            (4, true) => Inst::LoadMatrixTransX4,
            (2, true) => Inst::LoadMatrixTransX2,
            (_, true) => Inst::LoadMatrixTransX1,
        }
    }

    fn words_of_atom(&self) -> i64 {
        self.part.elements_per_lane() * self.tile.dtype.bytes() / WORD_BYTES
    }

    /// The position of the first element of a word, of lane 0.
    fn first(&self, word: i64) -> [i64; 2] {
        let (atom, own) = (word / self.words_of_atom(), word % self.words_of_atom());
        let [line, place] = self.part.atom.position(0, own * WORD_BYTES / self.tile.dtype.bytes());
        [atom * self.part.lines_apart + line, place]
    }

    /// Whether a word of all lanes is a matrix as `ldmatrix` distributes it. A transposed one is distributed in the same
    /// way, since its rows in memory are columns of the registers' matrix.
    fn is_matrix(&self, word: i64) -> bool {
        let bytes = self.tile.dtype.bytes();
        let Ok(fragment) = matrix_fragment(MatrixOp::Load, MatrixShape::M8N8, 1, false) else { return false };
        let [line, place] = self.first(word);
        let is_in_place = |row: i64, byte: i64| {
            let Ok(coords) = fragment.apply(row * (ROW_BYTES / 2) + byte / 2) else { return false };
            let on = |axis| coords.first().and_then(|coord| coord.get(axis).copied()).unwrap_or(0);
            let register = (word * WORD_BYTES + on(&REG) * 2 + byte % 2) / bytes;
            self.part.atom.position(on(&LANEID), register) == [line + row, place + byte / bytes]
        };
        (0..8).all(|row| (0..ROW_BYTES).step_by(bytes as usize).all(|byte| is_in_place(row, byte)))
    }

    /// The longest group of matrices from `word` on whose positions are linear in the bits of their numbers.
    fn group(&self, word: i64, words: i64) -> Group {
        let first = self.first(word);
        let to = |other: i64| [0, 1].map(|side| self.first(word + other)[side] - first[side]);
        let added = |a: [i64; 2], b: [i64; 2]| [a[0] + b[0], a[1] + b[1]];
        let left = words - word;
        if left >= 4 && to(3) == added(to(1), to(2)) {
            return Group { first, steps: [to(1), to(2)], count: 4 };
        }
        if left >= 2 {
            return Group { first, steps: [to(1), [0, 0]], count: 2 };
        }
        Group { first, steps: [[0, 0]; 2], count: 1 }
    }

    /// The address of a lane's row.
    fn index(&self, builder: &mut Builder, group: &Group, step: &Expr) -> Expr {
        let lane = Expr::var(&self.indices.lane);
        let (row, bits) = (&lane % 8, [&lane / 8 % 2, &lane / 16]);
        let row_side = usize::from(self.is_transposed);
        let [across, along] = [0, 1].map(|side| {
            let own = if side == row_side { row.clone() } else { Expr::constant(0) };
            let moved = bits.iter().zip(group.steps).fold(own, |sum, (bit, step)| sum + bit * step[side]);
            moved + group.first[side]
        });
        let along = along + step * self.part.atom.extents()[1];
        let flat = flat_index(self.product, self.matrix, self.indices, [across, along]);
        // With the fewest iters, the index shows that it is a multiple of a row.
        self.tile.index_of(builder, &self.layout.canonicalize(), &flat)
    }
}
