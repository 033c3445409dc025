//! The arguments of `buffer.sub((..))`.

use std::ops::{Range, RangeFull};

use tilewright_expr as expr;
use tilewright_ir::Handle;
use tilewright_ir::tile::{self, Kernel, Tile};

use crate::buffer::Buffer;
use crate::expr::Expr;
use crate::size::Size;

/// The indices that are taken from one dimension.
#[derive(Clone, Copy, Debug)]
pub enum Index {
    /// All of it.
    All,
    /// `extent` indices from `start` on.
    From {
        /// The first.
        start: Expr,
        /// How many.
        extent: i64,
    },
}

/// A buffer, whole or in part: an operand of a tile op.
#[derive(Clone, Debug)]
pub struct Region {
    pub(crate) buffer: Buffer,
    /// One index per dimension; `None` for the whole buffer.
    pub(crate) indices: Option<Vec<Index>>,
}

impl Buffer {
    /// Part of it: one index per dimension, each `..`, a number, an expression, a range, or [`at`].
    /// A number or expression takes one index and keeps the dimension, with extent 1.
    #[expect(
        clippy::should_implement_trait,
        reason = "`sub` is the word for a sub-tile, and buffers are not subtracted"
    )]
    #[track_caller]
    pub fn sub(self, indices: impl IntoRegion) -> Region {
        Region { buffer: self, indices: Some(indices.into_indices()) }
    }
}

impl Region {
    /// The region with its expressions as they stand in the kernel.
    #[track_caller]
    pub(crate) fn resolved(self) -> ResolvedRegion {
        let mut indices = Vec::new();
        for index in self.indices.iter().flatten() {
            indices.push(match index {
                Index::All => None,
                Index::From { start, extent } => Some((start.resolved(), *extent)),
            });
        }
        ResolvedRegion { buffer: self.buffer.handle, indices: self.indices.map(|_| indices) }
    }
}

/// A region whose expressions are those of the kernel.
pub(crate) struct ResolvedRegion {
    buffer: Handle<tile::Buffer>,
    /// One start and extent per dimension, `None` for all of it; `None` for the whole buffer.
    indices: Option<Vec<Option<(expr::Expr, i64)>>>,
}

impl ResolvedRegion {
    /// The tile of a kernel, with `..` replaced by whole dimensions.
    pub(crate) fn tile(self, kernel: &Kernel) -> Tile {
        let shape = kernel.buffers.get(self.buffer).map(|buffer| buffer.shape.clone()).unwrap_or_default();
        let indices = self.indices.unwrap_or_else(|| vec![None; shape.len()]);
        let all = |dimension: usize| (expr::Expr::constant(0), shape.get(dimension).copied().unwrap_or(1));
        let of = |(dimension, index): (usize, Option<_>)| index.unwrap_or_else(|| all(dimension));
        let (starts, extents) = indices.into_iter().enumerate().map(of).unzip();
        Tile { buffer: self.buffer, starts, extents }
    }
}

/// What a scan goes on from: a buffer or part of one, or an array with one for each value of its tuples.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the carry of a scan",
    label = "not a buffer, part of one, or an array of these",
    note = "write `.carry(c)` for `scan`, and a carry for each value of the tuples for `scan_by`: `.carry([a, b])`"
)]
pub trait IntoCarries {
    /// One region for each value.
    fn into_carries(self) -> Vec<Region>;
}

impl IntoCarries for Buffer {
    fn into_carries(self) -> Vec<Region> {
        vec![self.into()]
    }
}

impl IntoCarries for Region {
    fn into_carries(self) -> Vec<Region> {
        vec![self]
    }
}

impl<R: Into<Region>, const N: usize> IntoCarries for [R; N] {
    fn into_carries(self) -> Vec<Region> {
        self.into_iter().map(Into::into).collect()
    }
}

impl From<Buffer> for Region {
    fn from(buffer: Buffer) -> Region {
        Region { buffer, indices: None }
    }
}

/// `extent` indices, starting at an expression: `a.sub((at(row * 32, 32), ..))`.
#[track_caller]
pub fn at(start: impl Into<Expr>, extent: i64) -> Index {
    Index::From { start: start.into(), extent }
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        Index::All
    }
}

macro_rules! from_expression {
    ($($index:ty),*) => {$(
        impl From<$index> for Index {
            #[track_caller]
            fn from(start: $index) -> Index {
                Index::From { start: Expr::from(start), extent: 1 }
            }
        }
    )*};
}

from_expression!(Expr, &Expr, Size, &Size, expr::Expr, &expr::Expr);

macro_rules! from_integer {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Index {
            fn from(start: $integer) -> Index {
                Index::From { start: Expr::from(start), extent: 1 }
            }
        }
        impl From<Range<$integer>> for Index {
            fn from(range: Range<$integer>) -> Index {
                let (start, end) = (i64::from(range.start), i64::from(range.end));
                Index::From { start: Expr::from(start), extent: end.saturating_sub(start) }
            }
        }
    )*};
}

from_integer!(i32, i64);

/// Tuples, arrays and vectors of indices.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the index of a region",
    label = "not a tuple, an array or a vector of indices",
    note = "write a tuple with one index for each dimension, also for a single one: `x.sub((at(0, 8),))`"
)]
pub trait IntoRegion {
    /// One index per dimension.
    #[track_caller]
    fn into_indices(self) -> Vec<Index>;
}

impl IntoRegion for Vec<Index> {
    fn into_indices(self) -> Vec<Index> {
        self
    }
}

impl<I: Into<Index>, const N: usize> IntoRegion for [I; N] {
    fn into_indices(self) -> Vec<Index> {
        self.into_iter().map(Into::into).collect()
    }
}

macro_rules! tuple_region {
    ($($name:ident),*) => {
        impl<$($name: Into<Index>),*> IntoRegion for ($($name,)*) {
            #[allow(non_snake_case)]
            #[track_caller]
            fn into_indices(self) -> Vec<Index> {
                let ($($name,)*) = self;
                vec![$($name.into()),*]
            }
        }
    };
}

tuple_region!(A);
tuple_region!(A, B);
tuple_region!(A, B, C);
tuple_region!(A, B, C, D);
tuple_region!(A, B, C, D, E);
tuple_region!(A, B, C, D, E, F);
