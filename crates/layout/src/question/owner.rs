//! Ownership: the elements at a place, and the elements that a thread or device holds.

use std::collections::BTreeSet;

use crate::algebra::normal_form;
use crate::axis::Axis;
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::layout::Layout;
use crate::question::{Equation, Unknown};
use crate::tile::{Coord, TileLayout};

impl TileLayout {
    /// The elements at `place`, in order; axes that `place` does not name count as 0. On axes that the layout does not
    /// use, only position 0 holds elements. Error: too many elements to list.
    pub fn elements_at(&self, place: &Coord) -> Result<Vec<i64>, LayoutError> {
        let outside = place.iter().any(|(axis, position)| *position != 0 && !self.axes().contains(axis));
        if outside {
            return Ok(Vec::new());
        }
        self.elements_where(|axis| Some(place.get(axis).copied().unwrap_or(0)))
    }

    /// The elements that have a place with these positions on the axes of `owner`, at any position on the other axes:
    /// what a thread or a device holds. In order, each once. Error: too many elements to list.
    pub fn elements_of(&self, owner: &Coord) -> Result<Vec<i64>, LayoutError> {
        let outside = owner.iter().any(|(axis, position)| *position != 0 && !self.axes().contains(axis));
        if outside {
            return Ok(Vec::new());
        }
        self.elements_where(|axis| owner.get(axis).copied())
    }

    /// Solves the equation of every axis on which a position is given, and combines the digits.
    fn elements_where(&self, position: impl Fn(&Axis) -> Option<i64>) -> Result<Vec<i64>, LayoutError> {
        let mut budget = crate::ENUMERATION_LIMIT;
        let mut elements = vec![0i64];
        let weights = self.weights();
        for axis in self.axes() {
            let here: Vec<usize> = (0..self.shard().len()).filter(|&at| self.shard()[at].axis == axis).collect();
            let added = match position(&axis) {
                Some(at) => match at.checked_sub(self.offset_on(&axis)) {
                    Some(target) => self.digits_that_reach(&axis, &here, target, &weights, &mut budget)?,
                    None => Vec::new(),
                },
                None => self.all_digits(&here, &weights)?,
            };
            let count = elements.len().saturating_mul(added.len()) as i64;
            if count > crate::ENUMERATION_LIMIT {
                return Err(LayoutError::TooLarge { points: count });
            }
            elements = elements.iter().flat_map(|element| added.iter().map(move |more| element + more)).collect();
        }
        elements.sort_unstable();
        Ok(elements)
    }

    /// What each shard digit adds to the flat index.
    fn weights(&self) -> Vec<i64> {
        let mut inner_size = self.size();
        let weigh = |iter: &Iter| {
            inner_size /= iter.extent;
            inner_size
        };
        self.shard().iter().map(weigh).collect()
    }

    /// The parts of flat indices whose digits, with some replica, add to `target` on the axis.
    fn digits_that_reach(
        &self,
        axis: &Axis,
        here: &[usize],
        target: i64,
        weights: &[i64],
        budget: &mut i64,
    ) -> Result<Vec<i64>, LayoutError> {
        let shard = self.shard().len();
        let unknown = |name: usize, iter: &Iter| Unknown { stride: iter.stride, low: 0, high: iter.extent - 1, name };
        let (copies, shift) = normal_form(self.replica());
        let target = target - shift.get(axis).copied().unwrap_or(0);
        let replicas = copies.iter().enumerate().filter(|(_, iter)| iter.axis == *axis);
        let mut unknowns: Vec<Unknown> = here.iter().map(|&at| unknown(at, &self.shard()[at])).collect();
        unknowns.extend(replicas.map(|(at, iter)| unknown(shard + at, iter)));
        let mut parts = Vec::new();
        Equation::new(unknowns).solve(target, budget, &mut |digits| {
            let weigh = |(name, digit): &(usize, i64)| weights.get(*name).map_or(0, |weight| weight * digit);
            parts.push(digits.iter().map(weigh).sum());
            false
        })?;
        parts.sort_unstable();
        parts.dedup();
        Ok(parts)
    }

    fn all_digits(&self, here: &[usize], weights: &[i64]) -> Result<Vec<i64>, LayoutError> {
        let count = here.iter().fold(1i64, |n, &at| n.saturating_mul(self.shard()[at].extent));
        if count > crate::ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points: count });
        }
        Ok(here.iter().fold(vec![0], |parts, &at| {
            let digits = 0..self.shard()[at].extent;
            parts.iter().flat_map(|part| digits.clone().map(move |digit| part + digit * weights[at])).collect()
        }))
    }
}

impl Layout {
    /// The elements at `place`; see [`TileLayout::elements_at`].
    pub fn elements_at(&self, place: &Coord) -> Result<Vec<i64>, LayoutError> {
        match self {
            Layout::Tile(tile) => tile.elements_at(place),
            Layout::Compose(_) | Layout::Table(_) => {
                let all: BTreeSet<Axis> = self.axes().into_iter().chain(place.keys().cloned()).collect();
                self.elements_on(place, &all)
            }
        }
    }

    /// The elements of an owner; see [`TileLayout::elements_of`].
    pub fn elements_of(&self, owner: &Coord) -> Result<Vec<i64>, LayoutError> {
        match self {
            Layout::Tile(tile) => tile.elements_of(owner),
            Layout::Compose(_) | Layout::Table(_) => self.elements_on(owner, &owner.keys().cloned().collect()),
        }
    }

    /// The elements with a place that agrees with `wanted` on these axes, by enumeration.
    fn elements_on(&self, wanted: &Coord, axes: &BTreeSet<Axis>) -> Result<Vec<i64>, LayoutError> {
        self.check_enumerable()?;
        let on = |place: &Coord, axis: &Axis| place.get(axis).copied().unwrap_or(0);
        let agrees = |place: &Coord| axes.iter().all(|axis| on(place, axis) == on(wanted, axis));
        let mut elements = Vec::new();
        for flat in 0..self.size() {
            if self.apply(flat)?.iter().any(agrees) {
                elements.push(flat);
            }
        }
        Ok(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{LANEID, M, REG, WARPID};

    fn layout(text: &str) -> TileLayout {
        text.parse().unwrap()
    }

    #[test]
    fn a_place_knows_its_element() {
        let fragment = layout("S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1@m)] + R[2:4@warpid] + 5@warpid");
        let place = Coord::from([(LANEID, 12), (WARPID, 10), (M, 1)]);
        assert_eq!(fragment.elements_at(&place), Ok(vec![3 * 16 + 9]));
        assert_eq!(fragment.elements_at(&Coord::from([(WARPID, 7)])), Ok(vec![]));
    }

    #[test]
    fn a_lane_knows_its_elements() {
        let fragment = layout("S[(8,4,2):(4@laneid,1@laneid,1@reg)]");
        assert_eq!(fragment.elements_of(&Coord::from([(LANEID, 5)])), Ok(vec![10, 11]));
        assert_eq!(fragment.elements_of(&Coord::from([(LANEID, 5), (REG, 1)])), Ok(vec![11]));
        assert_eq!(fragment.elements_of(&Coord::from([(WARPID, 1)])), Ok(vec![]));
    }

    #[test]
    fn a_shared_place_lists_every_element() {
        assert_eq!(layout("S[(2,3):(0,1)]").elements_at(&Coord::from([(M, 1)])), Ok(vec![1, 4]));
        assert_eq!(layout("S[4:1] + R[2:1]").elements_at(&Coord::from([(M, 1)])), Ok(vec![0, 1]));
    }

    #[test]
    fn a_large_tensor_is_not_enumerated() {
        let matrix = layout("S[(8192,8192):(1,8192)]");
        assert_eq!(matrix.elements_at(&Coord::from([(M, 8192 * 7 + 5)])), Ok(vec![5 * 8192 + 7]));
    }

    #[test]
    fn a_swizzle_knows_its_elements_too() {
        let layout: Layout = "swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]".parse().unwrap();
        assert_eq!(layout.elements_at(&Coord::from([(M, 72)])), Ok(vec![64]));
        assert_eq!(layout.elements_of(&Coord::from([(M, 72), (LANEID, 1)])), Ok(vec![]));
    }
}
