//! How the warps of a CTA divide a matrix product, and which elements of the three matrices each thread then holds.
//!
//! `mma.sync` dictates where the elements of its operands are: `layout::hardware::mma_fragment` has the layouts of one
//! instruction, and [`Atom`] reads them. Warps divide the rows and columns of the product, rows fastest; each has whole
//! atoms, the shape of one instruction. Inference lays out fragments accordingly, and lowering loads operands from
//! memory accordingly.

mod atom;
mod matrix;

use tilewright_diag::counted;
use tilewright_layout::banks::RowLayout;
use tilewright_layout::map::Map;
use tilewright_layout::{DType, LayoutError, TileLayout};

pub use atom::Atom;
pub use matrix::Matrix;

use crate::plan::Reason;
use crate::thread::MmaInst;
use crate::tile::{Gemm, Kernel, Op, OpKind, Tile, WarpPolicy};

/// Elements of 16 bits that are interleaved: those of the even and the odd words of a row.
const INTERLEAVED: i64 = RowLayout::BYTES_OF_BOTH_WORDS / 2;

/// A matrix product, and how warps divide it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// The instruction.
    pub inst: MmaInst,
    /// M, N and K.
    pub shape: [i64; 3],
    /// Warps along M and along N.
    pub warps: [i64; 2],
    /// Whether A is stored as K x M.
    pub transpose_a: bool,
    /// Whether B is stored as N x K.
    pub transpose_b: bool,
    /// Whether the even and the odd words of each 32 bytes of a row of B are apart in shared memory. If rows are along N,
    /// the columns of two instructions are interleaved in pairs, and a lane holds four neighbours of a row of C instead
    /// of two pairs. If they are along K, so is the depth of each instruction, and a lane holds four neighbours of A.
    pub is_interleaved: bool,
    /// Whether the rows of instructions are dealt out to the warps in turn, so that the four warps of a warpgroup have 64
    /// adjacent rows. Otherwise each warp has adjacent ones.
    pub rows_in_turn: bool,
    /// The matrices of the instruction, in the order of [`Matrix::ALL`].
    matrices: [Atom; 3],
}

/// The part of a matrix that a warp holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpPart<'a> {
    /// Number of atoms across the lines, and along them.
    pub atoms: [i64; 2],
    /// The lines from an atom of the warp to the next one across the lines.
    pub lines_apart: i64,
    /// The distribution of each atom over the lanes.
    pub atom: &'a Atom,
}

impl WarpPart<'_> {
    /// Elements of an atom that a lane holds.
    pub fn elements_per_lane(&self) -> i64 {
        self.atom.elements_per_lane()
    }

    /// Elements of the part that a lane holds, one per slot.
    pub fn slots(&self) -> i64 {
        self.atoms[0] * self.atoms[1] * self.elements_per_lane()
    }

    /// The first slot of the atom at this position.
    pub fn slot(&self, atom: [i64; 2]) -> i64 {
        (atom[0] * self.atoms[1] + atom[1]) * self.elements_per_lane()
    }

    /// The line at which an atom begins, and the index along it.
    fn first(&self, atom: [i64; 2]) -> [i64; 2] {
        [atom[0] * self.lines_apart, atom[1] * self.atom.extents()[1]]
    }
}

impl Product {
    /// The product of a `gemm`, or the reason why the warps cannot compute it.
    pub fn of(kernel: &Kernel, op: &Op) -> Result<Product, Reason> {
        let ([c, a, b], Some(gemm)) = (&op.operands[..], op.kind.product()) else {
            return Err(reason("this is not a matrix product".to_string(), "`gemm` of three matrices"));
        };
        let rows_in_turn = matches!(op.kind, OpKind::GemmAsync(_));
        let (Some([m, n]), Some([rows, columns])) = (c.matrix(), a.matrix()) else {
            let accepted = "operands with two dimensions besides those of extent 1";
            return Err(reason("an operand is not a matrix".to_string(), accepted));
        };
        if kernel.threads % 32 != 0 {
            let text = format!("{} are not a whole number of warps", counted(kernel.threads, "thread"));
            return Err(reason(text, "multiples of 32 threads"));
        }
        let k = if gemm.transpose_a { rows } else { columns };
        let dtype = |tile: &Tile| kernel.buffers[tile.buffer].dtype;
        if dtype(a) != dtype(b) {
            let text = format!("{} and {} have different dtypes", dtype(a), dtype(b));
            return Err(reason(text, "operands `a` and `b` of one dtype"));
        }
        let policy = if rows_in_turn { WarpPolicy::FullRow } else { gemm.policy };
        let gemm = Gemm { policy, ..gemm };
        let product = Product::new([m, n, k], [dtype(a), dtype(c)], kernel.threads / 32, gemm)?;
        if rows_in_turn && product.warps[1] > 1 {
            let text = format!("{m} rows cannot be divided among {}", counted(kernel.threads / 32, "warp"));
            return Err(reason(text, "multiples of 16 rows for each warp"));
        }
        let is_interleaved = !rows_in_turn && product.can_interleave() && has_odd_words_apart(kernel, b);
        Ok(Product { is_interleaved, rows_in_turn, ..product })
    }

    /// Whether the words of rows of B can be apart: they have two elements, and each warp has whole groups of 16.
    pub fn can_interleave(&self) -> bool {
        let part = self.part(Matrix::B);
        let [columns, depth] = [0, 1].map(|side| part.atoms[side] * part.atom.extents()[side]);
        let along_rows = if self.transpose_b { part.atom.extents()[1].min(depth) } else { columns };
        self.inst.info().multiplicand.bytes() == 2 && along_rows % INTERLEAVED == 0
    }

    /// The product of these extents (M, N and K) and dtypes (of multiplicands and accumulator), divided among `warps`
    /// warps.
    fn new(shape: [i64; 3], dtypes: [DType; 2], warps: i64, gemm: Gemm) -> Result<Product, Reason> {
        let of_dtypes = |inst: &MmaInst| [inst.info().multiplicand, inst.info().sum] == dtypes;
        let known: Vec<MmaInst> = MmaInst::ALL.iter().copied().filter(of_dtypes).collect();
        if known.is_empty() {
            let [multiplicand, sum] = dtypes;
            let text = format!("`mma.sync` does not multiply {multiplicand} and accumulate in {sum}");
            return Err(reason(text, &legal_dtypes()));
        }
        let [m, n, k] = shape;
        let inst = known.iter().copied().find(|inst| {
            let (rows, columns, depth) = inst.info().shape.mnk();
            m % rows == 0 && n % columns == 0 && k % depth == 0
        });
        let Some(inst) = inst else {
            return Err(no_multiple(shape, &known));
        };
        let (rows, columns, _) = inst.info().shape.mnk();
        let Some(warps) = shared(warps, [m / rows, n / columns], [rows, columns], gemm.policy) else {
            let tiles = [m / rows, n / columns];
            let text = format!(
                "{} cannot split {} x {} instruction tiles of {rows} x {columns}",
                counted(warps, "warp"),
                tiles[0],
                tiles[1]
            );
            let is_shared = |warps: &i64| shared(*warps, tiles, [rows, columns], gemm.policy).is_some();
            let fewer = (1..warps).rev().find(is_shared).unwrap_or(1);
            let more = (warps + 1..=MOST_WARPS).find(is_shared).map(|more| format!(" or {}", more * 32));
            let threads = format!("{}{} threads", fewer * 32, more.unwrap_or_default());
            let lines = (m / rows + warps - 1) / warps * warps * rows;
            let accepted = format!(
                "numbers of warps along M and N that divide {} and {}: {threads}, or a larger tile such as {lines} x {n}",
                tiles[0], tiles[1]
            );
            return Err(reason(text, &accepted));
        };
        Product::shared_by(warps, inst, shape, gemm)
    }

    /// The product of these extents, with `warps` along M and along N. Fails for an instruction whose fragments are not
    /// known.
    fn shared_by(warps: [i64; 2], inst: MmaInst, shape: [i64; 3], gemm: Gemm) -> Result<Product, Reason> {
        let Gemm { transpose_a, transpose_b, .. } = gemm;
        let atom = |matrix: Matrix| {
            Atom::of(inst, matrix).map_err(|why| {
                let text = format!("the fragment of `{}` in `{}` is not known: {why}", matrix.name(), inst.info().name);
                reason(text, "instructions whose fragments are known")
            })
        };
        let matrices = [atom(Matrix::C)?, atom(Matrix::A)?, atom(Matrix::B)?];
        let (is_interleaved, rows_in_turn) = (false, false);
        Ok(Product { inst, shape, warps, transpose_a, transpose_b, is_interleaved, rows_in_turn, matrices })
    }

    /// The part of a matrix that a warp holds.
    pub fn part(&self, matrix: Matrix) -> WarpPart<'_> {
        let [c, a, b] = &self.matrices;
        let atom = match matrix {
            Matrix::C => c,
            Matrix::A => a,
            Matrix::B => b,
        };
        let ([lines, along], [atom_lines, atom_along]) = (self.extents(matrix), atom.extents());
        let [lines_of_warps, along_of_warps] = self.warps_of(matrix);
        let atoms = [lines / lines_of_warps / atom_lines, along / along_of_warps / atom_along];
        let lines_apart = if self.deals_out(matrix) { atom_lines * lines_of_warps } else { atom_lines };
        WarpPart { atoms, lines_apart, atom }
    }

    /// Whether lines of a matrix are dealt out to the warps in turn.
    fn deals_out(&self, matrix: Matrix) -> bool {
        match matrix {
            Matrix::C | Matrix::A => self.rows_in_turn,
            Matrix::B => false,
        }
    }

    /// Number of warps across the lines of a matrix, and along each line.
    fn warps_of(&self, matrix: Matrix) -> [i64; 2] {
        let [along_m, along_n] = self.warps;
        match matrix {
            Matrix::C => [along_m, along_n],
            Matrix::A => [along_m, 1],
            Matrix::B => [along_n, 1],
        }
    }

    /// Number of lines of a matrix, and of elements per line.
    pub fn extents(&self, matrix: Matrix) -> [i64; 2] {
        let [m, n, k] = self.shape;
        match matrix {
            Matrix::C => [m, n],
            Matrix::A => [m, k],
            Matrix::B => [n, k],
        }
    }

    /// Whether the lines of a matrix are the columns of the stored matrix.
    pub fn is_turned(&self, matrix: Matrix) -> bool {
        match matrix {
            Matrix::C => false,
            Matrix::A => self.transpose_a,
            Matrix::B => !self.transpose_b,
        }
    }

    /// By how much the line, and the index along it, increase from a warp to the next along M, and to the next along N.
    pub fn steps(&self, matrix: Matrix) -> [[i64; 2]; 2] {
        let rows = match self.rows_in_turn {
            true => self.part(Matrix::C).atom.extents()[0],
            false => self.shape[0] / self.warps[0],
        };
        let columns = self.shape[1] / self.warps[1];
        match matrix {
            Matrix::C => [[rows, 0], [0, columns]],
            Matrix::A => [[rows, 0], [0, 0]],
            Matrix::B => [[0, 0], [columns, 0]],
        }
    }

    /// Which element of the stored matrix each thread holds in which slot. Slots count atoms across the lines, then
    /// along them, then the registers of the instruction in their order. Warps that share lines hold copies of them.
    pub fn map(&self, matrix: Matrix) -> Map {
        let part = self.part(matrix);
        let [lines, along] = self.extents(matrix);
        let warps = self.warps[0] * self.warps[1];
        let mut map = Map::empty((warps * 32) as usize, (lines * along) as usize);
        let lanes: Vec<[i64; 2]> = (0..32).map(|lane| part.atom.position(lane, 0)).collect();
        let atoms = (0..part.atoms[0]).flat_map(|i| (0..part.atoms[1]).map(move |j| [i, j]));
        for (atom, register) in
            atoms.flat_map(|atom| (0..part.elements_per_lane()).map(move |register| (atom, register)))
        {
            let first = added(part.first(atom), part.atom.position(0, register));
            for thread in 0..warps * 32 {
                let of_warp = added(first, self.first_of_warp(matrix, thread / 32));
                let [line, index] = self.stored(matrix, added(of_warp, lanes[(thread % 32) as usize]));
                let element = if self.is_turned(matrix) { index * lines + line } else { line * along + index };
                map.put(thread as usize, (part.slot(atom) + register) as usize, element as usize);
            }
        }
        map
    }

    /// The line, and the index along it, of the stored matrix that the instructions have at a position.
    fn stored(&self, matrix: Matrix, [line, index]: [i64; 2]) -> [i64; 2] {
        // Digits of a position: the group, the half of it, the pair in the half, the element.
        let of = |at: i64| at - at % INTERLEAVED + at % 8 / 2 * 4 + at % INTERLEAVED / 8 * 2 + at % 2;
        match self.interleaved_side(matrix) {
            None => [line, index],
            Some(0) => [of(line), index],
            Some(_) => [line, of(index)],
        }
    }

    /// Whether lines (0) or the indices along them (1) of a matrix are interleaved.
    fn interleaved_side(&self, matrix: Matrix) -> Option<usize> {
        match (matrix, self.transpose_b) {
            (Matrix::C, false) | (Matrix::A | Matrix::B, true) => Some(1),
            (Matrix::B, false) => Some(0),
            (Matrix::C, true) | (Matrix::A, false) => None,
        }
        .filter(|_| self.is_interleaved)
    }

    /// The layout of a stored matrix with its elements in the order of the instructions. Error: a layout in which the
    /// words of rows cannot be separated.
    pub fn in_order(&self, matrix: Matrix, layout: &TileLayout) -> Result<TileLayout, LayoutError> {
        let Some(side) = self.interleaved_side(matrix) else { return Ok(layout.clone()) };
        let extents = self.extents(matrix);
        let stored = if self.is_turned(matrix) { [1, 0] } else { [0, 1] };
        let (mut shape, mut order): (Vec<i64>, Vec<usize>) = (Vec::new(), Vec::new());
        for here in stored {
            let first = shape.len();
            if here == side {
                shape.extend([extents[here] / INTERLEAVED, 4, 2, 2]);
                order.extend([0, 2, 1, 3].map(|digit| first + digit));
            } else {
                shape.push(extents[here]);
                order.push(first);
            }
        }
        let grouped = layout.group(&shape)?;
        grouped.layout.permute_groups(&grouped.separators, &order)
    }

    /// The line at which a warp's part begins, and the index along it.
    fn first_of_warp(&self, matrix: Matrix, warp: i64) -> [i64; 2] {
        let (row, column) = (warp % self.warps[0], warp / self.warps[0]);
        let [by_row, by_column] = self.steps(matrix);
        [0, 1].map(|side| row * by_row[side] + column * by_column[side])
    }
}

/// Whether a tile is whole rows of a shared buffer whose layout the compiler chose such that their even and odd words are
/// apart.
fn has_odd_words_apart(kernel: &Kernel, tile: &Tile) -> bool {
    let buffer = &kernel.buffers[tile.buffer];
    let has_whole_rows = tile.extents.last() == buffer.shape.last();
    let rows = buffer.layout.as_ref().and_then(|layout| RowLayout::of(layout, &buffer.shape, buffer.dtype.bytes()));
    buffer.is_open && has_whole_rows && rows.is_some_and(|rows| rows.odd_words.is_some())
}

fn added(a: [i64; 2], b: [i64; 2]) -> [i64; 2] {
    [a[0] + b[0], a[1] + b[1]]
}

fn reason(text: String, accepted: &str) -> Reason {
    Reason { text, accepted: accepted.to_string() }
}

/// The reason against a shape that no instruction divides: which of M, N and K the nearest one does not divide.
fn no_multiple(shape: [i64; 3], known: &[MmaInst]) -> Reason {
    let of = |inst: &MmaInst| {
        let (m, n, k) = inst.info().shape.mnk();
        let sides = ["M", "N", "K"].into_iter().zip(shape).zip([m, n, k]);
        let wrong = sides.filter(|((_, extent), divisor)| extent % divisor != 0);
        let misfits =
            wrong.map(|((name, extent), divisor)| format!("{name} = {extent} is not a multiple of {divisor}"));
        (misfits.collect::<Vec<_>>(), m * n * k, inst.info().shape.name())
    };
    let nearest = known.iter().map(of).min_by_key(|(wrong, size, _)| (wrong.len(), *size));
    let (wrong, _, name) = nearest.unwrap_or_default();
    let names: Vec<&str> = known.iter().map(|inst| inst.info().shape.name()).collect();
    let accepted = format!("M, N and K that are multiples of those of {}", names.join(" or "));
    reason(format!("{}, as {name} needs", wrong.join(", and ")), &accepted)
}

/// The supported dtypes as text: `f16 accumulated in f32, ...`.
fn legal_dtypes() -> String {
    let mut listed: Vec<String> = Vec::new();
    for info in MmaInst::ALL.iter().map(|inst| inst.info()) {
        let one = format!("{} accumulated in {}", info.multiplicand, info.sum);
        if !listed.contains(&one) {
            listed.push(one);
        }
    }
    listed.join(", ")
}

/// Warps of a CTA of 1024 threads, the most on every target.
const MOST_WARPS: i64 = 32;

/// The numbers of warps along M and along N, which must divide the numbers of atoms (`parts`); `None` if none do.
///
/// `Square` is as in TileLang: the atoms of a warp's part along M and along N should be in the ratio M : N; of two
/// splits that are equally near, the one with fewer warps along M is taken.
fn shared(warps: i64, parts: [i64; 2], atom: [i64; 2], policy: WarpPolicy) -> Option<[i64; 2]> {
    let pairs = (1..=warps).filter(|rows| warps % rows == 0).map(|rows| [rows, warps / rows]);
    let mut possible = pairs.filter(|[rows, columns]| parts[0] % rows == 0 && parts[1] % columns == 0);
    // The distance from that ratio, as numerator and denominator.
    let off = |[rows, columns]: [i64; 2]| ((atom[1] * columns - atom[0] * rows).abs(), atom[0] * rows);
    match policy {
        WarpPolicy::FullRow => possible.next_back(),
        WarpPolicy::FullCol => possible.next(),
        WarpPolicy::Square => possible.min_by(|one, other| {
            let ((a, b), (c, d)) = (off(*one), off(*other));
            (a * d).cmp(&(c * b))
        }),
    }
}

#[cfg(test)]
mod tests;
