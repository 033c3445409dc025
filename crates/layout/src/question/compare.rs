//! Equality of layouts, and the first element at which two layouts differ.

use std::collections::BTreeSet;

use crate::algebra::copies_on;
use crate::axis::{Axis, Scope};
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::layout::Layout;
use crate::tile::{TileLayout, check_size};

impl TileLayout {
    /// True when both place every element at the same set of places. Layouts of different sizes differ.
    /// Error: copies too many to compare.
    pub fn same_places(&self, other: &TileLayout) -> Result<bool, LayoutError> {
        Ok(self.size() == other.size() && self.first_difference(other)?.is_none())
    }

    /// [`TileLayout::same_places`] once the thread axes inside `scope` are one index: `1@warpid` is `32@tx` in a CTA.
    /// Error: axes that cannot be expressed in that scope.
    pub fn same_places_in(&self, other: &TileLayout, scope: Scope) -> Result<bool, LayoutError> {
        self.in_scope(scope)?.same_places(&other.in_scope(scope)?)
    }

    /// True when both place the first copy of every element alike; how often it is repeated may differ. The first copy
    /// is the one at the least offset on every axis.
    pub fn same_up_to_replicas(&self, other: &TileLayout) -> bool {
        self.canonicalize().shard_only() == other.canonicalize().shard_only()
    }

    /// The first element, in row-major order, that the two place differently, or `None`. Errors: different sizes,
    /// copies too many to compare.
    pub fn first_difference(&self, other: &TileLayout) -> Result<Option<i64>, LayoutError> {
        self.check_shape(&[other.size()])?;
        let (a, b) = (self.canonicalize(), other.canonicalize());
        if !same_offsets(a.replica(), b.replica())? || a.offset() != b.offset() {
            return Ok(Some(0));
        }
        Ok(first_step(a.shard(), b.shard()))
    }
}

/// True when the replicas make the same copies, both in normal form.
fn same_offsets(a: &[Iter], b: &[Iter]) -> Result<bool, LayoutError> {
    if a == b {
        return Ok(true);
    }
    let axes: BTreeSet<&Axis> = a.iter().chain(b).map(|iter| &iter.axis).collect();
    for axis in axes {
        let on = |iters: &[Iter]| iters.iter().filter(|iter| iter.axis == *axis).cloned().collect::<Vec<_>>();
        let (a, b) = (on(a), on(b));
        let reach = |iters: &[Iter]| iters.iter().map(|iter| (iter.extent - 1) * iter.stride).sum::<i64>();
        if a == b {
            continue;
        }
        if reach(&a) != reach(&b) {
            return Ok(false);
        }
        if copies_on(&a, axis)? != copies_on(&b, axis)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The first element at which two canonical shards differ. Their last iters are the runs with which they begin: they
/// differ where the shorter run ends, or at its first step if the steps differ. If the runs are equal, the elements
/// that begin a run decide.
fn first_step(a: &[Iter], b: &[Iter]) -> Option<i64> {
    let (mut a, mut b) = (a, b);
    let mut run = 1;
    while let (Some((last_a, outer_a)), Some((last_b, outer_b))) = (a.split_last(), b.split_last()) {
        if last_a.extent > 1 && last_b.extent > 1 && (last_a.stride, &last_a.axis) != (last_b.stride, &last_b.axis) {
            return Some(run);
        }
        if last_a.extent != last_b.extent {
            return Some(run * last_a.extent.min(last_b.extent));
        }
        run *= last_a.extent;
        (a, b) = (outer_a, outer_b);
    }
    None
}

impl Layout {
    /// True when both place every element at the same set of places.
    pub fn same_places(&self, other: &Layout) -> Result<bool, LayoutError> {
        Ok(self.size() == other.size() && self.first_difference(other)?.is_none())
    }

    /// The first element that the two place differently, or `None`. Axes on which an element is at 0 count as
    /// absent. Error: different sizes.
    pub fn first_difference(&self, other: &Layout) -> Result<Option<i64>, LayoutError> {
        if let (Layout::Tile(a), Layout::Tile(b)) = (self, other) {
            return a.first_difference(b);
        }
        check_size(&[other.size()], self.size())?;
        self.check_enumerable()?;
        for flat in 0..self.size() {
            if moved(self, flat)? != moved(other, flat)? {
                return Ok(Some(flat));
            }
        }
        Ok(None)
    }
}

/// The places of an element, without the axes on which it is at 0.
fn moved(layout: &Layout, flat: i64) -> Result<BTreeSet<Vec<(Axis, i64)>>, LayoutError> {
    let places = layout.apply(flat)?;
    Ok(places.into_iter().map(|place| place.into_iter().filter(|(_, position)| *position != 0).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(a: &str, b: &str) -> Option<i64> {
        let (a, b): (TileLayout, TileLayout) = (a.parse().unwrap(), b.parse().unwrap());
        a.first_difference(&b).unwrap()
    }

    #[test]
    fn the_same_map_written_twice_has_no_difference() {
        assert_eq!(difference("S[(8,4,2):(8,2,1)]", "S[64:1]"), None);
        assert_eq!(difference("S[4:1] + R[(3,4):(2,3)]", "S[4:1] + R[(6,2):(2,3)]"), None);
    }

    #[test]
    fn runs_part_where_the_shorter_ends() {
        assert_eq!(difference("S[(3,4):(5,1)]", "S[(4,3):(5,1)]"), Some(3));
        assert_eq!(difference("S[(4,4):(4,1)]", "S[(4,4):(1,4)]"), Some(1));
        assert_eq!(difference("S[(2,2,4):(9,4,1)]", "S[(2,8):(8,1)]"), Some(8));
    }

    #[test]
    fn other_copies_differ_from_the_first_element_on() {
        assert_eq!(difference("S[4:1] + R[2:4]", "S[4:1]"), Some(0));
        assert_eq!(difference("S[4:1] + R[2:-4] + 4", "S[4:1] + R[2:4]"), None);
    }

    #[test]
    fn a_warp_is_32_threads_of_the_cta() {
        let (a, b): (TileLayout, TileLayout) =
            ("S[(4,32):(1@warpid,1@laneid)]".parse().unwrap(), "S[128:1@tx]".parse().unwrap());
        assert_eq!((a.same_places(&b), a.same_places_in(&b, Scope::Cta)), (Ok(false), Ok(true)));
    }

    #[test]
    fn copies_may_differ_where_the_first_is_the_same() {
        let (a, b): (TileLayout, TileLayout) = ("S[4:1] + R[2:8]".parse().unwrap(), "S[4:1]".parse().unwrap());
        assert!(a.same_up_to_replicas(&b));
    }
}
