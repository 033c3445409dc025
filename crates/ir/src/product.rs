//! How the warps of a CTA share a product of matrices, and what every thread then has of the three.
//!
//! `mma.sync` dictates where the elements of its operands are: `layout::hardware::mma_fragment` has the layouts of one
//! instruction, and [`Atom`] reads them. Warps share the rows and columns of the product, the rows fastest; each has
//! whole atoms, the shape of one instruction. Inference places fragments by this, and lowering loads by it what is in
//! memory.

mod atom;

use tilewright_layout::DType;
use tilewright_layout::map::Map;

pub use atom::Atom;

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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The matrices of the instruction, in the order of [`Matrix::ALL`].
    matrices: [Atom; 3],
}

/// What a warp has of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Atoms across the lines, and along them.
    pub atoms: [i64; 2],
    /// What a lane has of each.
    pub atom: &'a Atom,
}

impl Part<'_> {
    /// Elements of a lane in an atom.
    pub fn held(&self) -> i64 {
        self.atom.held()
    }

    /// Elements of a lane.
    pub fn slots(&self) -> i64 {
        self.atoms[0] * self.atoms[1] * self.held()
    }

    /// The first slot of an atom.
    pub fn slot(&self, atom: [i64; 2]) -> i64 {
        (atom[0] * self.atoms[1] + atom[1]) * self.held()
    }

    /// The line at which an atom begins, and the index along it.
    fn first(&self, atom: [i64; 2]) -> [i64; 2] {
        let [lines, along] = self.atom.extents();
        [atom[0] * lines, atom[1] * along]
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
        Product::shared_by(warps, inst, shape, gemm)
    }

    /// The product of these extents by warps along M and along N. Error: an instruction whose fragments are not known.
    fn shared_by(warps: [i64; 2], inst: MmaInst, shape: [i64; 3], gemm: Gemm) -> Result<Product, Reason> {
        let Gemm { transpose_a, transpose_b, .. } = gemm;
        let atom = |matrix: Matrix| {
            Atom::of(inst, matrix).map_err(|why| {
                let text = format!("`{}` of `{}` has no fragment: {why}", matrix.name(), inst.info().name);
                reason(text, "instructions whose fragments are known")
            })
        };
        let matrices = [atom(Matrix::C)?, atom(Matrix::A)?, atom(Matrix::B)?];
        Ok(Product { inst, shape, warps, transpose_a, transpose_b, matrices })
    }

    /// What a warp has of a matrix.
    pub fn part(&self, matrix: Matrix) -> Part<'_> {
        let [c, a, b] = &self.matrices;
        let atom = match matrix {
            Matrix::C => c,
            Matrix::A => a,
            Matrix::B => b,
        };
        let ([lines, along], [atom_lines, atom_along]) = (self.extents(matrix), atom.extents());
        let [lines_of_warps, along_of_warps] = self.warps_of(matrix);
        Part { atoms: [lines / lines_of_warps / atom_lines, along / along_of_warps / atom_along], atom }
    }

    /// Warps that share the lines of a matrix, and warps that share each line.
    fn warps_of(&self, matrix: Matrix) -> [i64; 2] {
        let [along_m, along_n] = self.warps;
        match matrix {
            Matrix::C => [along_m, along_n],
            Matrix::A => [along_m, 1],
            Matrix::B => [along_n, 1],
        }
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
        let warps = self.warps[0] * self.warps[1];
        let mut map = Map::empty((warps * 32) as usize, (lines * along) as usize);
        let lanes: Vec<[i64; 2]> = (0..32).map(|lane| part.atom.position(lane, 0)).collect();
        let atoms = (0..part.atoms[0]).flat_map(|i| (0..part.atoms[1]).map(move |j| [i, j]));
        for (atom, register) in atoms.flat_map(|atom| (0..part.held()).map(move |register| (atom, register))) {
            let first = added(part.first(atom), part.atom.position(0, register));
            for thread in 0..warps * 32 {
                let of_warp = added(first, self.first_of_warp(matrix, thread / 32));
                let [line, index] = added(of_warp, lanes[(thread % 32) as usize]);
                let element = if self.is_turned(matrix) { index * lines + line } else { line * along + index };
                map.put(thread as usize, (part.slot(atom) + register) as usize, element as usize);
            }
        }
        map
    }

    /// The line at which a warp begins, and the index along it.
    fn first_of_warp(&self, matrix: Matrix, warp: i64) -> [i64; 2] {
        let (row, column) = (warp % self.warps[0], warp / self.warps[0]);
        let [by_row, by_column] = self.steps(matrix);
        [0, 1].map(|side| row * by_row[side] + column * by_column[side])
    }
}

fn added(a: [i64; 2], b: [i64; 2]) -> [i64; 2] {
    [a[0] + b[0], a[1] + b[1]]
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
