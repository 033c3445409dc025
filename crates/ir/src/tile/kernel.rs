use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_layout::axis::{LANEID, WARPID};
use tilewright_layout::{DType, Iter, Layout};

use crate::arena::{Arena, Handle};
use crate::tile::element::{Element, Parallel};
use crate::tile::op::Op;
use crate::tile::value::{Access, Coord, Value};

/// A kernel at tile level.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name; the entry point's name in CUDA, unless C++ or CUDA reserves it.
    pub name: String,
    /// Where it was written.
    pub span: Span,
    /// Sizes known only at launch, in the order of the parameters.
    pub sizes: Vec<Size>,
    /// CTAs along x, y and z: numbers, or expressions of the sizes.
    pub grid: [Expr; 3],
    /// Where the grid was set; where the kernel was written, if it was not.
    pub grid_span: Span,
    /// Threads of one CTA.
    pub threads: i64,
    /// Global, shared and fragment buffers, and views of them.
    pub buffers: Arena<Buffer>,
    /// All tile ops; `body` refers to them.
    pub ops: Arena<Op>,
    /// All parallel loops; `body` refers to them.
    pub parallels: Arena<Parallel>,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// Whether inference may copy fragments through shared memory where their uses do not agree on one layout.
    pub allow_conversions: bool,
    /// Whether a product and the sum around it are fused into one operation, rounded once; see
    /// [`crate::tile::contract`].
    pub contracts: bool,
    /// Mistakes found while the kernel was built; a kernel with any does not verify.
    pub mistakes: Vec<Diagnostic>,
}

/// A size known only at launch: a parameter of the kernel.
#[derive(Clone, Debug)]
pub struct Size {
    /// Its variable: the name, a divisor, and the range from 1 up. A launch checks divisor and range.
    pub var: Var,
    /// Where it was written.
    pub span: Span,
}

/// Shape and strides of a tensor, some of which are known only at launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTimeShape {
    /// Extents of its dimensions.
    pub extents: Vec<Expr>,
    /// Distance in elements from one index to the next, per dimension.
    pub strides: Vec<Expr>,
}

impl RunTimeShape {
    /// The position of the element at an index.
    pub fn position(&self, index: &[Expr]) -> Expr {
        let terms = index.iter().zip(&self.strides).map(|(index, stride)| index.clone() * stride.clone());
        normalize(&terms.fold(Expr::constant(0), |sum, term| sum + term))
    }
}

/// Where a buffer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Global memory, a parameter of the kernel.
    Global(Direction),
    /// Shared memory of the CTA.
    Shared,
    /// Registers: every thread holds its part of the buffer.
    Fragment,
}

/// What a kernel does with a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Only reads it.
    Input,
    /// Writes every element.
    Output,
}

/// A buffer, or another name for one.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its name, unchanged in CUDA unless C++ or CUDA reserves it.
    pub name: String,
    /// Type of an element.
    pub dtype: DType,
    /// Extents of its dimensions.
    pub shape: Vec<i64>,
    /// Where it lives.
    pub space: Space,
    /// Where each element is stored: memory axes for global and shared buffers, thread axes and `reg` for fragments.
    /// `None` for a fragment whose layout is to be inferred.
    pub layout: Option<Layout>,
    /// For a tensor with sizes known only at launch. `shape` and `layout` are then those of the largest allowed.
    pub run_time: Option<RunTimeShape>,
    /// The buffer whose storage this one shares, if it is a view.
    pub view_of: Option<Handle<Buffer>>,
    /// Where it was written.
    pub span: Span,
}

impl Buffer {
    /// Elements of storage: one more than the greatest position; 0 where no layout is known.
    pub fn span_elements(&self) -> i64 {
        let Some(layout) = &self.layout else { return 0 };
        match self.space {
            Space::Global(_) | Space::Shared => layout.memory_span(),
            Space::Fragment => layout.span_on(&tilewright_layout::axis::REG),
        }
    }

    /// Its layout as text for messages: `laid out as ...`.
    pub fn laid_out(&self) -> String {
        match &self.layout {
            Some(layout) => format!("laid out as {layout}"),
            None => "declared without a layout".to_string(),
        }
    }
}

/// Part of a buffer: the box of `extents` that begins at `starts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// The buffer.
    pub buffer: Handle<Buffer>,
    /// First index in each dimension.
    pub starts: Vec<Expr>,
    /// Number of indices in each dimension.
    pub extents: Vec<i64>,
}

/// The extents of a shape that are not 1. Dimensions of extent 1 are ignored where shapes are compared.
pub fn moving_extents(extents: &[i64]) -> Vec<i64> {
    extents.iter().copied().filter(|extent| *extent != 1).collect()
}

/// Every op ignores dimensions of extent 1. Taking one index keeps the dimension, so that one stage of a multi-stage
/// buffer has one dimension more than its op needs. The extents of operands are compared only with these methods.
impl Tile {
    /// The extents that are not 1: what has to agree between the operands of an op.
    pub fn moving_extents(&self) -> Vec<i64> {
        moving_extents(&self.extents)
    }

    /// [`Tile::moving_extents`] of all dimensions but one, which is numbered including those of extent 1; `None` if the
    /// tile has no such dimension.
    pub fn moving_extents_without(&self, dimension: usize) -> Option<Vec<i64>> {
        let before = self.extents.get(..dimension)?;
        let after = self.extents.get(dimension + 1..)?;
        Some(moving_extents(&[before, after].concat()))
    }

    /// Rows and columns of the tile as a matrix. If it has more than two dimensions, those of extent 1 are dropped, the
    /// first ones first, until two are left; `None` if that does not leave two. Elements keep their row-major order.
    pub fn matrix(&self) -> Option<[i64; 2]> {
        let mut extents = self.extents.clone();
        while extents.len() > 2 {
            let unit = extents.iter().position(|extent| *extent == 1)?;
            extents.remove(unit);
        }
        extents.try_into().ok()
    }

    /// An access to one element: the variables index the dimensions whose extent is not 1, in order.
    pub fn access(&self, vars: &[Var], span: Span) -> Access {
        let mut vars = vars.iter();
        let index = self.starts.iter().zip(&self.extents).map(|(start, extent)| match extent {
            1 => Coord::At(start.clone()),
            _ => Coord::At(start.clone() + vars.next().map_or(Expr::constant(0), Expr::var)),
        });
        Access { buffer: self.buffer, index: index.collect(), or_zero: false, span }
    }

    /// Number of elements.
    pub fn elements(&self) -> i64 {
        self.extents.iter().fold(1i64, |product, extent| product.saturating_mul(*extent))
    }
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// A tile op.
    Op(Handle<Op>),
    /// A loop.
    Loop(Loop),
    /// A parallel loop, whose iterations are divided among the threads.
    Parallel(Handle<Parallel>),
    /// Statements that every thread executes.
    Each(Vec<Element>),
    /// Statements under a condition that is the same for all threads.
    If(If),
}

/// `if cond { then } else { otherwise }`
#[derive(Clone, Debug)]
pub struct If {
    /// A truth value.
    pub cond: Value,
    /// What happens where it holds.
    pub then: Vec<Stmt>,
    /// What happens where it does not.
    pub otherwise: Vec<Stmt>,
    /// Where it was written.
    pub span: Span,
}

/// Whether a loop stays a loop in CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unroll {
    /// `serial`: a loop.
    No,
    /// `unroll`: one copy of the body per iteration.
    Full,
    /// `pipelined`: a loop whose loads may run this many iterations ahead. Nothing runs ahead until copies are
    /// asynchronous, so for now it is like a serial loop.
    Pipelined(i64),
}

/// `for var in begin..end`.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The loop variable; its range is the loop's.
    pub var: Var,
    /// Serial or unrolled.
    pub unroll: Unroll,
    /// What is repeated.
    pub body: Vec<Stmt>,
    /// Where it was written.
    pub span: Span,
}

impl Kernel {
    /// The buffer that owns the storage of `handle`: itself, or what it is a view of.
    pub fn storage(&self, handle: Handle<Buffer>) -> Handle<Buffer> {
        let mut owner = handle;
        while let Some(next) = self.buffers[owner].view_of {
            owner = next;
        }
        owner
    }

    /// The dimension of a fragment along which the tile is a separate slice for each warp: the tile starts at the warp
    /// index there, the layout maps the dimension to the warps of the CTA in order, and nothing else in the layout
    /// differs between warps.
    pub fn own_of_warps(&self, tile: &Tile) -> Option<usize> {
        let buffer = &self.buffers[tile.buffer];
        let Some(Layout::Tile(layout)) = buffer.layout.as_ref().filter(|_| buffer.space == Space::Fragment) else {
            return None;
        };
        let dimension = tile.starts.iter().position(|start| *start == Expr::var(&self.warp()))?;
        let each_warp = Iter { extent: self.warps(), stride: 1, axis: WARPID };
        let grouped = layout.group(&buffer.shape).ok()?;
        let is_warps = tile.extents[dimension] == 1 && *grouped.dimension(dimension) == [each_warp];
        let moves = |iter: &&Iter| iter.extent > 1 && iter.axis.is_thread() && iter.axis != LANEID;
        let moving = layout.shard().iter().chain(layout.replica()).filter(moves).count();
        (is_warps && moving == 1 && layout.offset().keys().all(|axis| !axis.is_thread() || *axis == LANEID))
            .then_some(dimension)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(extents: &[i64]) -> Tile {
        let mut buffers = Arena::new();
        let buffer = buffers.push(Buffer {
            name: "x".to_string(),
            dtype: DType::F16,
            shape: extents.to_vec(),
            space: Space::Shared,
            layout: None,
            run_time: None,
            view_of: None,
            span: Span::here(),
        });
        Tile { buffer, starts: vec![Expr::constant(0); extents.len()], extents: extents.to_vec() }
    }

    #[test]
    fn a_matrix_has_two_dimensions_beside_those_of_extent_1() {
        let tiles: [&[i64]; 5] = [&[64, 32], &[1, 64, 32], &[64, 1, 32], &[64, 32, 1], &[1, 64, 1, 32, 1]];
        for extents in tiles {
            assert_eq!(tile(extents).matrix(), Some([64, 32]), "{extents:?}");
        }
    }

    #[test]
    fn of_the_dimensions_of_extent_1_the_first_ones_are_left_out() {
        assert_eq!(tile(&[1, 32]).matrix(), Some([1, 32]));
        assert_eq!(tile(&[1, 1, 32]).matrix(), Some([1, 32]));
        assert_eq!(tile(&[32, 1, 1]).matrix(), Some([32, 1]));
    }

    #[test]
    fn neither_a_vector_nor_a_stack_is_a_matrix() {
        let tiles: [&[i64]; 3] = [&[32], &[2, 64, 32], &[1, 2, 64, 32]];
        for extents in tiles {
            assert_eq!(tile(extents).matrix(), None, "{extents:?}");
        }
    }

    #[test]
    fn the_dimension_that_goes_is_counted_with_those_of_extent_1() {
        let without = |dimension: usize| tile(&[1, 64, 32]).moving_extents_without(dimension);
        assert_eq!(without(0), Some(vec![64, 32]));
        assert_eq!(without(1), Some(vec![32]));
        assert_eq!(without(2), Some(vec![64]));
        assert_eq!(without(3), None);
    }
}
