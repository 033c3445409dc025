//! How the warps of a CTA share a product of matrices, and what every thread then has of the three.
//!
//! `mma.sync` dictates where the elements of its operands are. Warps share the rows and columns of the product, the
//! rows fastest; each has whole atoms, the shape of one instruction. Inference places fragments by this, and lowering
//! loads by it what is in memory.

use tilewright_layout::DType;
use tilewright_layout::map::Map;

use crate::plan::Reason;
use crate::thread::MmaInst;
use crate::tile::{Gemm, Kernel, Op, OpKind, Tile, WarpPolicy};

/// One of the matrices of a product. What this module calls its lines are the rows of C and A, and the columns of B:
/// along a line of A and B runs K, along one of C runs N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// The sums, M x N.
    C,
    /// The left multiplicand, M x K.
    A,
    /// The right multiplicand, K x N.
    B,
}

impl Matrix {
    /// All three, in the order of the op's operands.
    pub const ALL: [Matrix; 3] = [Matrix::C, Matrix::A, Matrix::B];

    /// What the op calls it.
    pub fn name(self) -> &'static str {
        match self {
            Matrix::C => "c",
            Matrix::A => "a",
            Matrix::B => "b",
        }
    }
}

/// A product, and how it is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// The instruction.
    pub inst: MmaInst,
    /// M, N and K.
    pub shape: [i64; 3],
    /// Warps along M and along N.
    pub warps: [i64; 2],
    /// A is stored as K x M.
    pub transpose_a: bool,
    /// B is stored as N x K.
    pub transpose_b: bool,
}

/// What a warp has of a matrix. Lane `l` has of every eight lines line `l / 4`, and of every stretch of four runs the run
/// `l % 4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Atoms across the lines, and along them.
    pub atoms: [i64; 2],
    /// Eights of lines in an atom.
    pub eights: i64,
    /// Stretches of a line in an atom.
    pub stretches: i64,
    /// Neighbours that a lane has together.
    pub run: i64,
}

impl Part {
    /// Elements of a lane in an atom.
    pub fn held(&self) -> i64 {
        self.eights * self.stretches * self.run
    }

    /// Elements of a lane.
    pub fn slots(&self) -> i64 {
        self.atoms[0] * self.atoms[1] * self.held()
    }

    /// The first slot of an atom.
    pub fn slot(&self, atom: [i64; 2]) -> i64 {
        (atom[0] * self.atoms[1] + atom[1]) * self.held()
    }

    /// Of the `at`th element that a lane has of an atom: which of its eights of lines, stretches and neighbours it is in.
    pub fn digits(&self, at: i64) -> [i64; 3] {
        [at / self.run % self.eights, at / (self.run * self.eights), at % self.run]
    }
}

impl Product {
    /// The product of a `gemm`, or why the warps cannot do it.
    pub fn of(kernel: &Kernel, op: &Op) -> Result<Product, Reason> {
        let ([c, a, b], OpKind::Gemm(gemm)) = (&op.operands[..], op.kind) else {
            return Err(reason("this is not a product".to_string(), "`gemm` of three matrices"));
        };
        let (Some([m, n]), Some([rows, columns])) = (c.matrix(), a.matrix()) else {
            let accepted = "operands of two dimensions, beside those of extent 1";
            return Err(reason("an operand is not a matrix".to_string(), accepted));
        };
        if kernel.threads % 32 != 0 {
            let text = format!("{} threads are not whole warps", kernel.threads);
            return Err(reason(text, "multiples of 32 threads"));
        }
        let k = if gemm.transpose_a { rows } else { columns };
        let dtype = |tile: &Tile| kernel.buffers[tile.buffer].dtype;
        if dtype(a) != dtype(b) {
            let text = format!("{} and {} have different dtypes", dtype(a), dtype(b));
            return Err(reason(text, "multiplicands of one dtype"));
        }
        Product::new([m, n, k], [dtype(a), dtype(c)], kernel.threads / 32, gemm)
    }

    /// The product of these extents (M, N and K) and dtypes (of multiplicands and sums), by so many warps.
    fn new(shape: [i64; 3], dtypes: [DType; 2], warps: i64, gemm: Gemm) -> Result<Product, Reason> {
        let of_dtypes = |inst: &MmaInst| [inst.info().multiplicand, inst.info().sum] == dtypes;
        let known: Vec<MmaInst> = MmaInst::ALL.iter().copied().filter(of_dtypes).collect();
        if known.is_empty() {
            let [multiplicand, sum] = dtypes;
            let text = format!("`mma.sync` has no products of {multiplicand} with sums in {sum}");
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
            let text = format!("{warps} warps cannot share {} x {} parts of {rows} x {columns}", m / rows, n / columns);
            return Err(reason(text, "warps along M and N whose numbers divide those of the parts"));
        };
        let Gemm { transpose_a, transpose_b, .. } = gemm;
        Ok(Product { inst, shape, warps, transpose_a, transpose_b })
    }

    /// What a warp has of a matrix.
    pub fn part(&self, matrix: Matrix) -> Part {
        let info = self.inst.info();
        let (m, n, k) = info.shape.mnk();
        let packed = (4 / info.multiplicand.bytes()).max(1);
        let rows = self.shape[0] / m / self.warps[0];
        let columns = self.shape[1] / n / self.warps[1];
        let depth = self.shape[2] / k;
        let (lines, along, run, atoms) = match matrix {
            Matrix::C => (m, n, 2, [rows, columns]),
            Matrix::A => (m, k, packed, [rows, depth]),
            Matrix::B => (n, k, packed, [columns, depth]),
        };
        Part { atoms, eights: lines / 8, stretches: along / (4 * run), run }
    }

    /// How many lines a matrix has, and how many elements a line.
    pub fn extents(&self, matrix: Matrix) -> [i64; 2] {
        let [m, n, k] = self.shape;
        match matrix {
            Matrix::C => [m, n],
            Matrix::A => [m, k],
            Matrix::B => [n, k],
        }
    }

    /// Whether the lines of a matrix are the columns of what is stored.
    pub fn is_turned(&self, matrix: Matrix) -> bool {
        match matrix {
            Matrix::C => false,
            Matrix::A => self.transpose_a,
            Matrix::B => !self.transpose_b,
        }
    }

    /// What the next warp along M, and the next along N, adds to the line and to the place in the line.
    pub fn steps(&self, matrix: Matrix) -> [[i64; 2]; 2] {
        let rows = self.shape[0] / self.warps[0];
        let columns = self.shape[1] / self.warps[1];
        match matrix {
            Matrix::C => [[rows, 0], [0, columns]],
            Matrix::A => [[rows, 0], [0, 0]],
            Matrix::B => [[0, 0], [columns, 0]],
        }
    }

    /// Which element of the stored matrix every thread has in which slot: atoms across the lines, then along them, then
    /// the registers of the instruction in their order. Warps that share lines have copies of them.
    pub fn map(&self, matrix: Matrix) -> Map {
        let part = self.part(matrix);
        let [lines, along] = self.extents(matrix);
        let [by_row, by_column] = self.steps(matrix);
        let warps = self.warps[0] * self.warps[1];
        let mut map = Map::empty((warps * 32) as usize, (lines * along) as usize);
        let slots = (0..part.atoms[0]).flat_map(|i| (0..part.atoms[1]).map(move |j| [i, j]));
        for (atom, at) in slots.flat_map(|atom| (0..part.held()).map(move |at| (atom, at))) {
            let [eight, stretch, neighbour] = part.digits(at);
            let first_line = (atom[0] * part.eights + eight) * 8;
            let first_stretch = atom[1] * part.stretches + stretch;
            for thread in 0..warps * 32 {
                let (warp, lane) = (thread / 32, thread % 32);
                let (row, column) = (warp % self.warps[0], warp / self.warps[0]);
                let line = row * by_row[0] + column * by_column[0] + first_line + lane / 4;
                let run = (first_stretch * 4 + lane % 4) * part.run;
                let place = row * by_row[1] + column * by_column[1] + run + neighbour;
                let element = if self.is_turned(matrix) { place * lines + line } else { line * along + place };
                map.put(thread as usize, (part.slot(atom) + at) as usize, element as usize);
            }
        }
        map
    }
}

fn reason(text: String, accepted: &str) -> Reason {
    Reason { text, accepted: accepted.to_string() }
}

/// Which of M, N and K the instruction that comes nearest does not divide.
fn no_multiple(shape: [i64; 3], known: &[MmaInst]) -> Reason {
    let of = |inst: &MmaInst| {
        let (m, n, k) = inst.info().shape.mnk();
        let sides = ["M", "N", "K"].into_iter().zip(shape).zip([m, n, k]);
        let wrong = sides.filter(|((_, extent), divisor)| extent % divisor != 0);
        let told = wrong.map(|((name, extent), divisor)| format!("{name} = {extent} is not a multiple of {divisor}"));
        (told.collect::<Vec<_>>(), m * n * k, inst.info().shape.name())
    };
    let nearest = known.iter().map(of).min_by_key(|(wrong, size, _)| (wrong.len(), *size));
    let (wrong, _, name) = nearest.unwrap_or_default();
    let names: Vec<&str> = known.iter().map(|inst| inst.info().shape.name()).collect();
    let accepted = format!("M, N and K that are multiples of those of {}", names.join(" or "));
    reason(format!("{}, as {name} needs", wrong.join(", and ")), &accepted)
}

/// `f16 with sums in f32, ...`
fn legal_dtypes() -> String {
    let mut listed: Vec<String> = Vec::new();
    for info in MmaInst::ALL.iter().map(|inst| inst.info()) {
        let one = format!("{} with sums in {}", info.multiplicand, info.sum);
        if !listed.contains(&one) {
            listed.push(one);
        }
    }
    listed.join(", ")
}

/// Warps along M and along N, so that each has as many parts (of `atom`) as the others; `None` if they cannot.
///
/// Square is what TileLang takes for it: the parts of a warp are to be as long to wide as the whole, counted in atoms;
/// of two that are equally near, fewer warps along M.
fn shared(warps: i64, parts: [i64; 2], atom: [i64; 2], policy: WarpPolicy) -> Option<[i64; 2]> {
    let pairs = (1..=warps).filter(|rows| warps % rows == 0).map(|rows| [rows, warps / rows]);
    let mut possible = pairs.filter(|[rows, columns]| parts[0] % rows == 0 && parts[1] % columns == 0);
    // How far off, as a fraction.
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
