//! Composition of layouts: the inner layout selects elements of the outer one.

use crate::algebra::recognise::Walk;
use crate::axis::{Axis, M};
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::layout::Layout;
use crate::swizzle::ComposeLayout;
use crate::table::TableLayout;
use crate::tile::{Coord, TileLayout};

impl TileLayout {
    /// This layout after `inner`, whose positions on `m` are flat indices of this one.
    ///
    /// `compose(b)(x)` is the union of `self(i)` over the positions `i` of `b(x)`. Where the inner iters walk along
    /// digits of this layout, the result comes from the iters; otherwise the positions are enumerated, and the error is
    /// [`LayoutError::Algebra`] if no iters describe them together with the copies of `inner` ([`Layout::compose`] then
    /// gives a table).
    /// Errors: an inner layout on other axes than `m`, or one that leaves `0..self.size()`.
    pub fn compose(&self, inner: &TileLayout) -> Result<TileLayout, LayoutError> {
        let inner = inner.canonicalize();
        check_inner(self.size(), &Layout::Tile(inner.clone()))?;
        match self.compose_digits(&inner)? {
            Some(composed) => Ok(composed),
            None => self.compose_points(&inner),
        }
    }

    /// The composition where every inner iter walks along whole digits of this layout and nothing carries.
    fn compose_digits(&self, inner: &TileLayout) -> Result<Option<TileLayout>, LayoutError> {
        let Some((shape, dimension_of)) = shape_for(inner, self.size()) else { return Ok(None) };
        let Ok(grouped) = self.canonicalize().group(&shape) else { return Ok(None) };
        let origin = inner.offset_on(&M);
        let mut rest = origin;
        for (dimension, extent) in shape.iter().enumerate().rev() {
            let walked = dimension_of.contains(&Some(dimension));
            if walked && rest % extent != 0 {
                return Ok(None);
            }
            rest /= extent;
        }
        let walks = |at: usize, iter: &Iter| match dimension_of[at] {
            Some(dimension) => grouped.dimension(dimension).to_vec(),
            None => vec![Iter::memory(iter.extent, 0)],
        };
        let count = inner.shard().len();
        let shard = inner.shard().iter().enumerate().flat_map(|(at, iter)| walks(at, iter)).collect();
        let copies = inner.replica().iter().enumerate().flat_map(|(at, iter)| walks(count + at, iter));
        let offset = self.axes().into_iter().map(|axis| (axis.clone(), self.position(origin, &axis)));
        TileLayout::new(shard, copies.chain(self.replica().iter().cloned()).collect(), offset).map(Some)
    }

    /// The composition by enumeration of its points.
    fn compose_points(&self, inner: &TileLayout) -> Result<TileLayout, LayoutError> {
        let points = inner.places_at_most();
        if points > crate::ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points });
        }
        // Replicas are treated as digits slower than those of the shard.
        let digits = inner.replica().iter().chain(inner.shard()).cloned().collect();
        let walk = TileLayout::new(digits, Vec::new(), inner.offset().clone())?;
        let indices = walk.positions(&M);
        let axes: Vec<Axis> = self.axes().into_iter().collect();
        let found = separate(self, &axes, &indices, inner.size() as usize);
        let Some((shard, copies)) = found else {
            let problem = format!("the elements {inner} of {self} do not form one affine layout");
            return Err(LayoutError::Algebra { operation: "composition", problem });
        };
        let offset = axes.into_iter().map(|axis| (axis.clone(), self.position(indices[0], &axis)));
        TileLayout::new(shard, copies.into_iter().chain(self.replica().iter().cloned()).collect(), offset)
    }
}

impl Layout {
    /// This layout after `inner`: a tile or a swizzle over one if iters describe it, otherwise a table.
    /// Errors: an inner layout on other axes than `m`, or one that leaves `0..self.size()`; too many elements.
    pub fn compose(&self, inner: &Layout) -> Result<Layout, LayoutError> {
        let canonical = match inner {
            Layout::Tile(tile) => Layout::Tile(tile.canonicalize()),
            other => other.clone(),
        };
        let inner = &canonical;
        check_inner(self.size(), inner)?;
        let affine = match (self, inner) {
            (Layout::Tile(outer), Layout::Tile(inner)) => outer.compose(inner).map(Layout::Tile),
            (Layout::Compose(outer), Layout::Tile(inner)) => {
                let tile = outer.tile().compose(inner);
                tile.and_then(|tile| ComposeLayout::new(outer.swizzle(), tile)).map(Layout::Compose)
            }
            (_, Layout::Compose(_) | Layout::Table(_)) | (Layout::Table(_), Layout::Tile(_)) => {
                return self.compose_table(inner);
            }
        };
        match affine {
            Err(LayoutError::Algebra { .. }) => self.compose_table(inner),
            answer => answer,
        }
    }

    fn compose_table(&self, inner: &Layout) -> Result<Layout, LayoutError> {
        let points = inner.places_at_most().saturating_mul(self.places_at_most() / self.size());
        if points > crate::ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points });
        }
        let places = |flat: i64| -> Result<Vec<Coord>, LayoutError> {
            let indices = inner.apply(flat)?;
            let each = indices.iter().map(|index| self.apply(index.get(&M).copied().unwrap_or(0)));
            Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
        };
        let elements: Vec<Vec<Coord>> = (0..inner.size()).map(places).collect::<Result<_, _>>()?;
        TableLayout::new(&elements).map(Layout::Table)
    }
}

fn check_inner(size: i64, inner: &Layout) -> Result<(), LayoutError> {
    let refuse = |problem: String| Err(LayoutError::Algebra { operation: "composition", problem });
    let elsewhere =
        |axis: &Axis| refuse(format!("the inner layout must give flat indices on `m`, but it moves on `{axis}`"));
    let (least, end) = match inner {
        Layout::Tile(tile) => {
            if let Some(axis) = tile.axes().iter().find(|axis| **axis != M) {
                return elsewhere(axis);
            }
            (tile.least_on(&M), tile.span_on(&M))
        }
        Layout::Compose(_) | Layout::Table(_) => {
            inner.check_enumerable()?;
            let (mut least, mut end) = (0, 0);
            for flat in 0..inner.size() {
                for place in inner.apply(flat)? {
                    if let Some((axis, _)) = place.iter().find(|(axis, position)| **axis != M && **position != 0) {
                        return elsewhere(axis);
                    }
                    let position = place.get(&M).copied().unwrap_or(0);
                    (least, end) = (position.min(least), end.max(position + 1));
                }
            }
            (least, end)
        }
    };
    if least < 0 || end > size {
        return refuse(format!("the inner layout reaches {least}..{end}, outside the outer layout's 0..{size}"));
    }
    Ok(())
}

/// A shape of `size` elements in which every moving iter of `inner` walks one whole dimension, and that dimension for
/// each iter of the shard, then of the replica. `None` if the iters do not nest.
fn shape_for(inner: &TileLayout, size: i64) -> Option<(Vec<i64>, Vec<Option<usize>>)> {
    let iters: Vec<&Iter> = inner.shard().iter().chain(inner.replica()).collect();
    let mut order: Vec<usize> = (0..iters.len()).filter(|&at| iters[at].extent > 1 && iters[at].stride != 0).collect();
    order.sort_by_key(|&at| iters[at].stride);
    let mut shape = Vec::new();
    let mut walked = vec![None; iters.len()];
    let mut below = 1;
    for at in order {
        let Iter { extent, stride, .. } = iters[at];
        if *stride < 1 || stride % below != 0 {
            return None;
        }
        shape.push(stride / below);
        walked[at] = Some(shape.len());
        shape.push(*extent);
        below = stride.checked_mul(*extent)?;
    }
    if size % below != 0 {
        return None;
    }
    shape.push(size / below);
    shape.reverse();
    let last = shape.len() - 1;
    Some((shape, walked.into_iter().map(|at: Option<usize>| at.map(|at| last - at)).collect()))
}

/// Iters for the elements at `indices`, `size` of them per copy, and iters for the copies, if the two together give
/// every place.
fn separate(outer: &TileLayout, axes: &[Axis], indices: &[i64], size: usize) -> Option<(Vec<Iter>, Vec<Iter>)> {
    let at = |t: i64, axis: &Axis| outer.position(indices[t as usize], axis);
    let walk = Walk::new(axes.to_vec(), indices.len() as i64, at);
    let copies = walk.every(size, indices.len() / size);
    let adds = (0..indices.len()).all(|t| walk.adds(t, walk.at(t % size), copies.at(t / size)));
    if !adds {
        return None;
    }
    Some((walk.iters(size)?, copies.iters(indices.len() / size)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composed(outer: &str, inner: &str) -> String {
        let (outer, inner): (Layout, Layout) = (outer.parse().unwrap(), inner.parse().unwrap());
        outer.compose(&inner).map_or_else(|e| e.to_string(), |c| c.to_string())
    }

    #[test]
    fn every_second_element_doubles_the_stride() {
        assert_eq!(composed("S[(4,8):(1@tx,3)]", "S[(4,4):(8,2)]"), "S[(4,4):(1@tx,6@m)]");
    }

    #[test]
    fn an_offset_picks_the_digits_that_nothing_walks() {
        assert_eq!(composed("S[(4,8):(100,3)]", "S[4:8] + 5"), "S[4:100@m] + 15@m");
        assert_eq!(composed("S[(4,8):(100,3)]", "S[2:4] + 5"), "S[2:88@m] + 15@m");
    }

    #[test]
    fn inner_copies_become_copies() {
        assert_eq!(composed("S[(4,8):(1@tx,1)]", "S[8:1] + R[4:8]"), "S[8:1@m] + R[4:1@tx]");
    }

    #[test]
    fn what_no_iters_describe_is_a_table() {
        assert!(composed("S[(2,2,3):(1000,100,8)]", "S[3:1] + 5").starts_with("table(3 -> m, "));
    }

    #[test]
    fn an_inner_layout_must_stay_inside() {
        let said = "no composition: the inner layout reaches 0..9, outside the outer layout's 0..8";
        assert_eq!(composed("S[8:1]", "S[9:1]"), said);
        let said = "no composition: the inner layout must give flat indices on `m`, but it moves on `tx`";
        assert_eq!(composed("S[8:1]", "S[8:1@tx]"), said);
    }
}
