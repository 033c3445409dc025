//! Stores of matrices: where the words of a warp are rows of 16 bytes in shared memory, as those of the accumulators of a
//! product are, `stmatrix` stores up to four words of each lane at once.

use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_expr::points::Split;
use tilewright_ir::HwIndex;
use tilewright_ir::thread::{Call, Inst, Stmt};
use tilewright_ir::tile::Space;
use tilewright_ir::tile::vectors::{StaticAccess, Vectors};
use tilewright_layout::access::LANES;
use tilewright_layout::axis::Scope;

use super::lowering::Lowering;
use super::memory::Address;
use super::moved::VectorAccess;
use crate::builder::regs;
use crate::reorder::WORD_BYTES;
use crate::threads::fit;

/// Bytes of a row of a matrix.
const ROW_BYTES: i64 = 16;
/// Rows of a matrix.
const ROWS: usize = 8;

/// A word of every lane, as a matrix of 8 rows in memory.
struct Matrix {
    /// The iteration that accesses the first element of each row, warp by warp.
    rows: Vec<usize>,
    /// Whether a lane has two elements of a column instead of a row.
    is_transposed: bool,
}

/// The words of a store as matrices.
pub(super) struct StoredMatrices {
    /// One for each word.
    words: Vec<Matrix>,
    address: Address,
    /// Elements of a word.
    in_word: i64,
}

impl Lowering<'_> {
    /// The words of a store that all threads make, as matrices; `None` if they are none, or if `stmatrix` does not store
    /// more of them at once than lanes do.
    pub(super) fn matrices(
        &mut self,
        known: &StaticAccess,
        vectors: &Vectors,
        mask: &[bool],
    ) -> Option<StoredMatrices> {
        let buffer = &self.kernel.buffers[known.buffer];
        let (in_word, in_row) = (WORD_BYTES / buffer.dtype.bytes(), ROW_BYTES / buffer.dtype.bytes());
        let (steps, width) = (&vectors.steps, vectors.width as i64);
        let is_possible = buffer.space == Space::Shared && in_word > 0 && 2 * width <= in_row;
        let has_whole_warps = mask.len().is_multiple_of(LANES) && !mask.contains(&false);
        let has_several = steps.len() as i64 >= 2 * width.max(in_word);
        if !is_possible || !has_whole_warps || !has_several || steps.len() as i64 % in_word != 0 {
            return None;
        }
        let [index] = &known.elements[..] else { return None };
        let address = self.address_of(known.buffer, index);
        let (Address::Split(position) | Address::Swizzled { position, .. }) = &address else { return None };
        // A row's address is given by another lane than has its elements, so the rest has to be the same for both.
        if position.other.multiple() % in_row != 0 || !is_uniform_in_warps(&position.other) {
            return None;
        }
        let words = steps.chunks(in_word as usize).map(|steps| self.matrix(steps, &position.own, in_row));
        let words: Vec<Matrix> = words.collect::<Option<_>>()?;
        let is_uniform = words.iter().all(|word| word.is_transposed == words[0].is_transposed);
        is_uniform.then_some(StoredMatrices { words, address, in_word })
    }

    /// The word that lanes have of some steps, if it is a matrix: `own` are the positions of iterations.
    fn matrix(&self, steps: &[usize], own: &[i64], in_row: i64) -> Option<Matrix> {
        let by_rows = WordOfLanes {
            place: |lane, element| (lane / 4, lane % 4 * steps.len() + element),
            first: |row| (row * 4, 0),
        };
        // A lane has two elements of a column.
        let by_columns =
            WordOfLanes { place: |lane, element| (lane % 4 * 2 + element, lane / 4), first: |row| (row / 2, row % 2) };
        let rows = self.rows(&by_rows, steps, own, in_row).map(|rows| Matrix { rows, is_transposed: false });
        rows.or_else(|| {
            let rows = if steps.len() == 2 { self.rows(&by_columns, steps, own, in_row)? } else { return None };
            Some(Matrix { rows, is_transposed: true })
        })
    }

    /// The rows of a matrix whose elements lanes have as `word` says.
    fn rows(
        &self,
        word: &WordOfLanes<impl Fn(usize, usize) -> (usize, usize), impl Fn(usize) -> (usize, usize)>,
        steps: &[usize],
        own: &[i64],
        in_row: i64,
    ) -> Option<Vec<usize>> {
        let iteration = |thread: usize, element: usize| self.nest.steps.at(thread, steps[element]);
        let threads = self.nest.steps.threads();
        let row = |row: usize| {
            let (lane, element) = (word.first)(row % ROWS);
            iteration(row / ROWS * LANES + lane, element).filter(|first| own[*first] % in_row == 0)
        };
        let rows: Vec<usize> = (0..threads / LANES * ROWS).map(row).collect::<Option<_>>()?;
        let is_there = |thread: usize, element: usize| {
            let (row, column) = (word.place)(thread % LANES, element);
            let first = own[rows[thread / LANES * ROWS + row]];
            iteration(thread, element).is_some_and(|iteration| own[iteration] == first + column as i64)
        };
        (0..threads).all(|thread| (0..steps.len()).all(|element| is_there(thread, element))).then_some(rows)
    }

    /// The statements that store matrices from registers, one for each element; `None` if words that are stored together
    /// are not adjacent registers, no digits of the thread express the addresses, or lanes would store as much at once.
    pub(super) fn matrix_stores(
        &mut self,
        stored: &StoredMatrices,
        moved: &VectorAccess,
        registers: &[i64],
    ) -> Option<Vec<Stmt>> {
        let (mut body, mut word) = (Vec::new(), 0);
        let memory = self.builder.memory(moved.known.buffer);
        while word < stored.words.len() {
            let (left, held) = (&stored.words[word..], &registers[word * stored.in_word as usize..]);
            let (count, index) = [4, 2, 1].into_iter().find_map(|count| {
                let held = held.get(..count * stored.in_word as usize)?;
                let is_adjacent = held[0] % stored.in_word == 0 && held.windows(2).all(|two| two[1] == two[0] + 1);
                let index = is_adjacent.then(|| self.row_address(&stored.address, &left[..count])).flatten()?;
                Some((count, index))
            })?;
            body.push(Stmt::from(Call {
                from: vec![regs(moved.array, held[0], count as i64 * stored.in_word)],
                memory: vec![(memory, index)],
                ..Call::plain(inst(count, left[0].is_transposed))
            }));
            word += count;
        }
        (body.len() < registers.len() / moved.vectors.width).then_some(body)
    }

    /// The position of the row whose address each lane gives: lanes 0 to 7 those of the first matrix, and so on.
    fn row_address(&mut self, address: &Address, matrices: &[Matrix]) -> Option<Expr> {
        let thread = self.points.thread().clone();
        let threads = self.nest.steps.threads();
        let of_rows = |split: &Split, multiple: i64| {
            let of_thread = |thread: usize| {
                let (warp, lane) = (thread / LANES, thread % LANES);
                let matrix = matrices.get(lane / ROWS)?;
                Some(split.own[matrix.rows[warp * ROWS + lane % ROWS]])
            };
            let own: Vec<Option<i64>> = (0..threads).map(of_thread).collect();
            Some(normalize(&(fit(&own, &thread, multiple)? + split.other.clone())))
        };
        match address {
            Address::Split(position) => of_rows(position, 1),
            Address::Swizzled { position, element, layout } => of_rows(position, 1).or_else(|| {
                let position = layout.memory_expr(&of_rows(element, 1)?).ok()?;
                Some(self.builder.simplifier.simplify(&position))
            }),
            Address::Strided(_) | Address::Expr(_) | Address::Listed(..) => None,
        }
    }
}

/// Whether all lanes of a warp have the same value of an expression that is not of the iteration.
fn is_uniform_in_warps(expr: &Expr) -> bool {
    let mut is_uniform = true;
    expr.for_each_var(&mut |var| {
        is_uniform &= HwIndex::of(var).is_none_or(|index| index.uniform_in() >= Scope::Warp);
    });
    is_uniform
}

/// How the lanes of a warp have a matrix: the row and the column of a lane's element, and the lane and the element that are
/// the first of a row.
struct WordOfLanes<Place, First> {
    place: Place,
    first: First,
}

fn inst(count: usize, is_transposed: bool) -> Inst {
    match (count, is_transposed) {
        (4, false) => Inst::StoreMatrixX4,
        (2, false) => Inst::StoreMatrixX2,
        (_, false) => Inst::StoreMatrixX1,
        (4, true) => Inst::StoreMatrixTransX4,
        (2, true) => Inst::StoreMatrixTransX2,
        (_, true) => Inst::StoreMatrixTransX1,
    }
}
