//! The notation as Rust operators: `S([4, 32], [32 * M, 1 * M]) + R([2], [4 * WARPID]) + 5 * WARPID`.

use std::ops::{Add, Mul};

use crate::axis::{Axis, M};
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::tile::TileLayout;

/// A stride or an offset on an axis: `4 * LANEID`. A bare number is on `m`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The number.
    pub value: i64,
    /// The axis.
    pub axis: Axis,
}

impl From<i64> for Term {
    fn from(value: i64) -> Term {
        Term { value, axis: M }
    }
}

impl From<i32> for Term {
    fn from(value: i32) -> Term {
        Term { value: i64::from(value), axis: M }
    }
}

impl Mul<Axis> for i64 {
    type Output = Term;
    fn mul(self, axis: Axis) -> Term {
        Term { value: self, axis }
    }
}

/// A layout as written, not yet checked; [`LayoutSpec::build`] checks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutSpec {
    shard: Vec<Iter>,
    replica: Vec<Iter>,
    offset: Vec<Term>,
}

/// Replicas as written; added to a [`LayoutSpec`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaSpec(Vec<Iter>);

fn iters<const N: usize, T: Into<Term>>(extents: [i64; N], strides: [T; N]) -> Vec<Iter> {
    extents
        .into_iter()
        .zip(strides)
        .map(|(extent, stride)| {
            let Term { value, axis } = stride.into();
            Iter { extent, stride: value, axis }
        })
        .collect()
}

/// The shard of a layout: place a tile of these extents with these strides. Bare strides are on `m`.
#[allow(non_snake_case)]
pub fn S<const N: usize, T: Into<Term>>(extents: [i64; N], strides: [T; N]) -> LayoutSpec {
    LayoutSpec { shard: iters(extents, strides), replica: Vec::new(), offset: Vec::new() }
}

/// The replicas of a layout: every element also lives at these multiples.
#[allow(non_snake_case)]
pub fn R<const N: usize, T: Into<Term>>(extents: [i64; N], strides: [T; N]) -> ReplicaSpec {
    ReplicaSpec(iters(extents, strides))
}

impl Add<ReplicaSpec> for LayoutSpec {
    type Output = LayoutSpec;
    fn add(mut self, replica: ReplicaSpec) -> LayoutSpec {
        self.replica.extend(replica.0);
        self
    }
}

impl Add<Term> for LayoutSpec {
    type Output = LayoutSpec;
    fn add(mut self, offset: Term) -> LayoutSpec {
        self.offset.push(offset);
        self
    }
}

impl Add<i64> for LayoutSpec {
    type Output = LayoutSpec;
    fn add(self, offset: i64) -> LayoutSpec {
        self + Term::from(offset)
    }
}

impl LayoutSpec {
    /// Builds the layout. Errors: as [`TileLayout::new`].
    pub fn build(self) -> Result<TileLayout, LayoutError> {
        TileLayout::new(self.shard, self.replica, self.offset.into_iter().map(|t| (t.axis, t.value)))
    }
}
