//! `gemm`: every warp computes its part of the product with `mma.sync`, atom by atom.
//!
//! Operands in fragments have the layouts that the instruction requires, and are used in place. Operands in memory go
//! through staging registers: multiplicands one step of K at a time, the accumulator as a whole. The variant `ldmatrix`
//! loads multiplicands in shared memory with the instruction of that name, `mma` each lane's elements by themselves.

mod described;
mod matrices;
mod staging;
mod tensor;
mod warpgroup;

use tilewright_diag::Diagnostic;
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::Reason;
use tilewright_ir::product::{Matrix, Product, WarpPart};
use tilewright_ir::thread::{Mma, RegArray, Regs, Stmt, Unroll};
use tilewright_ir::tile::{Kernel, Op, Space, Tile, tile_title};
use tilewright_ir::{Counter, Handle, Scalar};
use tilewright_layout::TileLayout;
use tilewright_layout::map::Map;

use crate::builder::{Builder, regs};
use crate::fragment::ThreadIndices;
use crate::operand::{MemoryTile, Operand, hangs_over, other_operands};
use crate::refusal::Refusal;
use crate::variant::{Schedule, Variant, VariantList};
use matrices::MatrixLoads;
use staging::Staged;
pub(crate) use tensor::{Issue, issue};
pub(crate) use warpgroup::WARPGROUP;

/// What the variants of `gemm` decide on.
pub(crate) struct Context {
    product: Result<Product, Reason>,
    /// The operands C, A and B, or the reason against one.
    sources: [Result<Source, Reason>; 3],
    /// Whether the accumulator starts at 0.
    clear: bool,
    indices: ThreadIndices,
}

/// Where an operand is.
#[derive(Clone)]
enum Source {
    /// In registers, with the elements that each thread holds.
    Registers(Handle<RegArray>, Map),
    /// In global or shared memory, with its layout there.
    Memory(Box<MemoryTile>, TileLayout),
}

/// A product, and where its operands are.
pub(crate) struct GemmSchedule {
    product: Product,
    /// Where C, A and B are.
    sources: [Source; 3],
    /// Whether `ldmatrix` loads A, and whether it loads B.
    by_matrices: [bool; 2],
}

pub(crate) static VARIANTS: VariantList<Context, GemmSchedule> = VariantList {
    context: Context::new,
    floor: |_| None,
    variants: &[
        Variant { name: "ldmatrix", accept: |c| Ok(vec![accept_matrices(c)?]) },
        Variant { name: "mma", accept: |c| Ok(vec![accept(c)?]) },
    ],
};

impl Context {
    /// Resolves the operands of a `gemm`. Error: one of them has no address.
    fn new(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<Context, Diagnostic> {
        let (Some(gemm), [c, a, b]) = (op.kind.product(), &op.operands[..]) else {
            return Err(other_operands(kernel, op));
        };
        let product = Product::of(kernel, op);
        let source = |tile: &Tile, matrix: Matrix| {
            let found = Source::of(builder, kernel, op, tile)?;
            Ok::<_, Diagnostic>(found.and_then(|source| match &product {
                Ok(product) => source.in_order(product, matrix),
                Err(_) => Ok(source),
            }))
        };
        let sources = [source(c, Matrix::C)?, source(a, Matrix::A)?, source(b, Matrix::B)?];
        let indices = ThreadIndices::in_cta(kernel);
        Ok(Context { product, sources, clear: gemm.clear, indices })
    }
}

impl Source {
    fn of(builder: &Builder, kernel: &Kernel, op: &Op, tile: &Tile) -> Result<Result<Source, Reason>, Diagnostic> {
        if kernel.buffers[tile.buffer].space == Space::Fragment {
            return Ok(fragment(builder, kernel, tile));
        }
        match Operand::resolve(builder, kernel, op, tile)? {
            Operand::Memory(tile) => {
                let layout = tile.iters().cloned();
                let inside = if tile.is_inside() { Ok(()) } else { Err(ragged(&tile.title)) };
                Ok(layout.and_then(|layout| inside.map(|()| Source::Memory(Box::new(tile), layout))))
            }
            Operand::Fragment(tile) => Ok(Err(reason(format!("`{}` is in registers", tile.title), "a tile in memory"))),
        }
    }

    /// The source with its columns in the order of the instructions of a product.
    fn in_order(self, product: &Product, matrix: Matrix) -> Result<Source, Reason> {
        match self {
            Source::Registers(..) => Ok(self),
            Source::Memory(tile, layout) => match product.in_order(matrix, &layout) {
                Ok(layout) => Ok(Source::Memory(tile, layout)),
                Err(why) => Err(reason(format!("the columns of `{}`: {why}", tile.title), "rows of 16 columns")),
            },
        }
    }

    /// The reason why this source cannot be the matrix of the product, if there is one.
    fn against(&self, product: &Product, matrix: Matrix) -> Option<Reason> {
        let Source::Registers(_, map) = self else { return None };
        let wanted = product.map(matrix);
        if *map == wanted {
            return None;
        }
        let text = format!("`{}` is laid out differently from what `mma.sync` requires", matrix.name());
        Some(match wanted.to_layout() {
            Some(layout) => reason(text, &layout.to_string()),
            None => reason(text, "the layout that inference chooses"),
        })
    }
}

/// A fragment whose registers hold one element each.
fn fragment(builder: &Builder, kernel: &Kernel, tile: &Tile) -> Result<Source, Reason> {
    let (buffer, title) = (&kernel.buffers[tile.buffer], tile_title(kernel, tile));
    let is_placed = kernel.buffers[kernel.storage(tile.buffer)].layout.is_some();
    let Some(layout) = buffer.layout.as_ref().filter(|_| is_placed) else {
        let (text, accepted) = match buffer.view_of {
            Some(_) => ("is a view of a fragment and has no layout", "fragments of their own; copy the view to one"),
            None => ("has no layout", "fragments with layouts"),
        };
        return Err(reason(format!("`{title}` {text}"), accepted));
    };
    if tile.extents != buffer.shape {
        return Err(reason(format!("`{title}` is a part of a fragment"), "whole fragments"));
    }
    let array = builder.fragment(tile.buffer);
    let register = builder.program.registers[array].dtype;
    if register != buffer.dtype {
        let text = format!("`{title}` is in registers of {register}");
        return Err(reason(text, "fragments that are not views of another dtype, and have no such views"));
    }
    let map = builder
        .map_of(layout)
        .map_err(|why| reason(format!("the layout of `{title}` {why}"), "the layout that inference chooses"))?;
    Ok(Source::Registers(array, (*map).clone()))
}

/// The reason against an operand that may hang over an edge.
fn ragged(title: &str) -> Reason {
    let Reason { text, accepted } = hangs_over(title);
    Reason { text, accepted: format!("{accepted}; or a tile in shared memory, since k.copy to and from it is masked") }
}

fn reason(text: String, accepted: &str) -> Reason {
    Reason { text, accepted: accepted.to_string() }
}

fn accept(context: &Context) -> Result<GemmSchedule, Vec<Reason>> {
    let product = context.product.clone().map_err(|reason| vec![reason])?;
    let mut reasons = Vec::new();
    for (matrix, source) in Matrix::ALL.into_iter().zip(&context.sources) {
        match source {
            Ok(source) => reasons.extend(source.against(&product, matrix)),
            Err(reason) => reasons.push(reason.clone()),
        }
    }
    match &context.sources {
        [Ok(c), Ok(a), Ok(b)] if reasons.is_empty() => {
            Ok(GemmSchedule { product, sources: [c.clone(), a.clone(), b.clone()], by_matrices: [false; 2] })
        }
        _ => Err(reasons),
    }
}

/// With every multiplicand that `ldmatrix` can load loaded by it.
fn accept_matrices(context: &Context) -> Result<GemmSchedule, Vec<Reason>> {
    let schedule = accept(context)?;
    let [_, a, b] = &schedule.sources;
    let (mut by_matrices, mut reasons) = ([false; 2], Vec::new());
    for (at, (matrix, source)) in [(Matrix::A, a), (Matrix::B, b)].into_iter().enumerate() {
        match source {
            Source::Registers(..) => {
                reasons.push(reason(format!("`{}` is in registers already", matrix.name()), "tiles in shared memory"))
            }
            Source::Memory(tile, layout) => {
                match MatrixLoads::of((tile, layout), &schedule.product, matrix, &context.indices) {
                    Ok(_) => by_matrices[at] = true,
                    Err(reason) => reasons.push(reason),
                }
            }
        }
    }
    if by_matrices == [false; 2] { Err(reasons) } else { Ok(GemmSchedule { by_matrices, ..schedule }) }
}

/// The registers of an operand, as the instructions take them.
struct Working<'a> {
    array: Handle<RegArray>,
    part: WarpPart<'a>,
    /// How the registers are loaded and stored, if the operand is in memory.
    staged: Option<Loads<'a>>,
}

/// How registers of an operand in memory are loaded.
enum Loads<'a> {
    /// Each lane accesses its own elements.
    ByLanes(Staged<'a>),
    /// By `ldmatrix`.
    ByMatrices(MatrixLoads<'a>),
}

impl Schedule<Context> for GemmSchedule {
    fn summary(&self, _: &Context) -> String {
        let [rows, columns] = self.product.warps;
        let [atom_rows, atom_columns] = self.product.part(Matrix::C).atoms;
        let shape = self.product.inst.info().shape;
        let loaded = [Matrix::A, Matrix::B].into_iter().zip(self.by_matrices).filter(|(_, by_matrices)| *by_matrices);
        let loads = loaded.map(|(matrix, _)| {
            let trans = if self.product.is_turned(matrix) { ".trans" } else { "" };
            format!("; `{}` by ldmatrix{trans}", matrix.name())
        });
        let product =
            format!("{rows} x {columns} warps, each {atom_rows} x {atom_columns} x {} times {shape}", self.depth());
        std::iter::once(product).chain(loads).collect()
    }

    fn build(&self, context: &Context, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        let mut body = Vec::new();
        let [c, a, b] = [Matrix::C, Matrix::A, Matrix::B];
        let sums = self.working(builder, context, c, &mut body)?;
        let factors = [self.working(builder, context, a, &mut body)?, self.working(builder, context, b, &mut body)?];
        if context.clear {
            body.push(Stmt::Set { to: regs(sums.array, 0, sums.part.slots()), value: Scalar::Int(0) });
        } else {
            body.extend(sums.moves(builder, false));
        }
        if self.depth() > 1 {
            let step = Var::new(builder.fresh("k"), 0, self.depth() - 1);
            let inner = self.step(builder, &sums, &factors, &Expr::var(&step));
            body.push(Stmt::For { counter: Counter::of(step), unroll: Unroll::Full, body: inner });
        } else {
            body.extend(self.step(builder, &sums, &factors, &Expr::constant(0)));
        }
        body.extend(sums.moves(builder, true));
        Ok(body)
    }
}

impl GemmSchedule {
    /// Steps along K.
    fn depth(&self) -> i64 {
        self.product.part(Matrix::A).atoms[1]
    }

    /// The registers of a matrix; those of multiplicands in memory hold one step of K.
    fn working<'a>(
        &'a self,
        builder: &mut Builder,
        context: &'a Context,
        matrix: Matrix,
        body: &mut Vec<Stmt>,
    ) -> Result<Working<'a>, Refusal> {
        let [c, a, b] = &self.sources;
        let (source, steps, by_matrices) = match matrix {
            Matrix::C => (c, 1, false),
            Matrix::A => (a, self.depth(), self.by_matrices[0]),
            Matrix::B => (b, self.depth(), self.by_matrices[1]),
        };
        let part = self.product.part(matrix);
        match source {
            Source::Registers(array, _) => Ok(Working { array: *array, part, staged: None }),
            Source::Memory(tile, layout) => {
                let name = format!("{}_part", matrix.name());
                let array = builder.registers(&name, tile.dtype, part.slots() / steps, 1, body);
                let loads = if by_matrices {
                    let loads = MatrixLoads::of((tile, layout), &self.product, matrix, &context.indices);
                    Loads::ByMatrices(loads.map_err(|reason| Refusal::from(reason.text))?)
                } else {
                    Loads::ByLanes(Staged::of(builder, (tile, layout), &self.product, matrix, &context.indices))
                };
                Ok(Working { array, part, staged: Some(loads) })
            }
        }
    }

    /// The statements of step `at` of K.
    fn step(&self, builder: &mut Builder, sums: &Working, factors: &[Working; 2], at: &Expr) -> Vec<Stmt> {
        let mut body = Vec::new();
        for factor in factors {
            match &factor.staged {
                None => {}
                Some(Loads::ByMatrices(loads)) => body.extend(loads.moves(builder, at, factor.array)),
                Some(Loads::ByLanes(staged)) => {
                    for line in 0..factor.part.atoms[0] {
                        let slot = line * factor.part.elements_per_lane();
                        body.extend(staged.moves(builder, [&Expr::constant(line), at], (factor.array, slot), false));
                    }
                }
            }
        }
        let [a, b] = factors;
        for row in 0..sums.part.atoms[0] {
            for column in 0..sums.part.atoms[1] {
                body.push(Stmt::from(Mma {
                    inst: self.product.inst,
                    sums: regs(sums.array, sums.part.slot([row, column]), sums.part.elements_per_lane()),
                    a: a.atom(row, at),
                    b: b.atom(column, at),
                }));
            }
        }
        body
    }
}

impl Working<'_> {
    /// The registers of a multiplicand's atom at step `at` of K.
    fn atom(&self, line: i64, at: &Expr) -> Regs {
        let count = self.part.elements_per_lane();
        let first = match self.staged {
            Some(_) => Expr::constant(line * count),
            None => normalize(&(at * count + self.part.slot([line, 0]))),
        };
        Regs { array: self.array, first, count, step: 1 }
    }

    /// Loads or stores all atoms, if they are in memory.
    fn moves(&self, builder: &mut Builder, is_store: bool) -> Vec<Stmt> {
        let Some(Loads::ByLanes(staged)) = &self.staged else { return Vec::new() };
        let mut body = Vec::new();
        for line in 0..self.part.atoms[0] {
            for along in 0..self.part.atoms[1] {
                let atom = [&Expr::constant(line), &Expr::constant(along)];
                body.extend(staged.moves(builder, atom, (self.array, self.part.slot([line, along])), is_store));
            }
        }
        body
    }
}
