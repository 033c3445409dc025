//! Which places a layout uses: spans, boxes that it fills, and how often.

use std::collections::{BTreeMap, BTreeSet};

use crate::algebra::{Progression, fuse, normal_form};
use crate::axis::Axis;
use crate::error::LayoutError;
use crate::layout::Layout;
use crate::tile::{Coord, TileLayout};

impl TileLayout {
    /// True when every place of the box `0..extent` (per axis) holds an element. Axes that are not in the box count as
    /// extent 1. Every iter moves on one axis, so each axis is decided by itself.
    pub fn is_onto(&self, extents: &BTreeMap<Axis, i64>) -> Result<bool, LayoutError> {
        if is_empty(extents) {
            return Ok(true);
        }
        let axes: BTreeSet<Axis> = self.axes().into_iter().chain(extents.keys().cloned()).collect();
        for axis in axes {
            let extent = extents.get(&axis).copied().unwrap_or(1);
            if !self.reach_on(&axis).covers(extent)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// True when every place of the box holds exactly one element, and every element is at one place of it.
    pub fn is_bijective(&self, extents: &BTreeMap<Axis, i64>) -> Result<bool, LayoutError> {
        let places = extents.values().try_fold(1i64, |n, extent| n.checked_mul(*extent));
        let inside = self
            .axes()
            .iter()
            .all(|axis| self.least_on(axis) >= 0 && self.span_on(axis) <= extents.get(axis).copied().unwrap_or(1));
        let single = normal_form(self.replica()).0.is_empty();
        Ok(inside && single && places == Some(self.size()) && self.is_injective()?)
    }

    /// The axes on which an element has more than one place.
    pub fn replicated_over(&self) -> BTreeSet<Axis> {
        normal_form(self.replica()).0.into_iter().map(|iter| iter.axis).collect()
    }

    /// What this tile reaches on one axis.
    fn reach_on(&self, axis: &Axis) -> Reach {
        let here = self
            .shard()
            .iter()
            .chain(self.replica())
            .filter(|iter| iter.axis == *axis && iter.extent > 1 && iter.stride != 0);
        let progressions = here.map(|iter| Progression { stride: iter.stride.abs(), extent: iter.extent }).collect();
        Reach { least: self.least_on(axis), steps: fuse(progressions) }
    }
}

/// The positions that a sum of progressions reaches, from the least on.
struct Reach {
    /// The least position.
    least: i64,
    /// Strides ascending.
    steps: Vec<Progression>,
}

impl Reach {
    /// True when every position of `0..extent` is reached; `extent` is at least 1. Error: too many positions to list
    /// where no single run decides.
    fn covers(&self, extent: i64) -> Result<bool, LayoutError> {
        let run = match self.steps.first() {
            Some(first) => *first,
            None => return Ok(self.least == 0 && extent == 1),
        };
        if self.least > 0 || (self.least == 0 && (extent == 1 || run.stride > 1)) {
            return Ok(self.least == 0 && extent == 1);
        }
        if run.stride == 1 && self.least + run.extent >= extent {
            return Ok(true);
        }
        let positions = extent.saturating_sub(self.least);
        if positions > crate::ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points: positions });
        }
        Ok(self.reached(positions as usize)[(-self.least) as usize..].iter().all(|reached| *reached))
    }

    /// Which of the first positions are reached. Adds one progression at a time: a position is reached if one of the
    /// last `extent` positions in steps of the stride was.
    fn reached(&self, positions: usize) -> Vec<bool> {
        let mut now = vec![false; positions];
        now[0] = true;
        for Progression { stride, extent } in &self.steps {
            let stride = usize::try_from(*stride).unwrap_or(positions).min(positions);
            let mut since = vec![*extent; stride];
            for position in 0..positions {
                let steps = &mut since[position % stride];
                *steps = if now[position] { 0 } else { steps.saturating_add(1) };
                now[position] = *steps < *extent;
            }
        }
        now
    }
}

impl Layout {
    /// True when every place of the box `0..extent` (per axis) holds an element.
    pub fn is_onto(&self, extents: &BTreeMap<Axis, i64>) -> Result<bool, LayoutError> {
        match self {
            Layout::Tile(tile) => tile.is_onto(extents),
            Layout::Compose(_) | Layout::Table(_) => {
                if is_empty(extents) {
                    return Ok(true);
                }
                let seen = self.all_places()?;
                let wanted = extents.values().try_fold(1i64, |n, extent| n.checked_mul(*extent));
                let inside = seen.iter().filter(|place| is_inside(place, extents)).count();
                Ok(i64::try_from(inside).ok() == wanted)
            }
        }
    }

    /// True when every place of the box holds exactly one element, and every element is at one place of it.
    pub fn is_bijective(&self, extents: &BTreeMap<Axis, i64>) -> Result<bool, LayoutError> {
        match self {
            Layout::Tile(tile) => tile.is_bijective(extents),
            Layout::Compose(_) | Layout::Table(_) => {
                let seen = self.all_places()?;
                let single = (0..self.size()).try_fold(true, |all, flat| Ok(all && self.apply(flat)?.len() == 1))?;
                let fits = seen.len() as i64 == self.size() && seen.iter().all(|place| is_inside(place, extents));
                Ok(single && fits && self.is_onto(extents)?)
            }
        }
    }

    /// The axes on which an element has more than one place.
    pub fn replicated_over(&self) -> Result<BTreeSet<Axis>, LayoutError> {
        match self {
            Layout::Tile(tile) => Ok(tile.replicated_over()),
            // A swizzle keeps different addresses different.
            Layout::Compose(compose) => Ok(compose.tile().replicated_over()),
            Layout::Table(table) => {
                let mut axes = BTreeSet::new();
                for flat in 0..table.size() {
                    let places = table.apply(flat)?;
                    let moves = |axis: &&Axis| places.iter().any(|place| place.get(*axis) != places[0].get(*axis));
                    axes.extend(table.axes().iter().filter(moves).cloned());
                }
                Ok(axes)
            }
        }
    }

    /// Every place of every element.
    fn all_places(&self) -> Result<BTreeSet<Coord>, LayoutError> {
        self.check_enumerable()?;
        let mut seen = BTreeSet::new();
        for flat in 0..self.size() {
            seen.extend(self.apply(flat)?);
        }
        Ok(seen)
    }
}

/// True for a box without places.
fn is_empty(extents: &BTreeMap<Axis, i64>) -> bool {
    extents.values().any(|extent| *extent < 1)
}

fn is_inside(place: &Coord, extents: &BTreeMap<Axis, i64>) -> bool {
    place.iter().all(|(axis, position)| (0..extents.get(axis).copied().unwrap_or(1)).contains(position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{M, TX};

    fn boxed(layout: &str, extents: &[(Axis, i64)]) -> (bool, bool) {
        let layout: Layout = layout.parse().unwrap();
        let extents = extents.iter().cloned().collect();
        (layout.is_onto(&extents).unwrap(), layout.is_bijective(&extents).unwrap())
    }

    #[test]
    fn a_dense_tile_fills_its_box() {
        assert_eq!(boxed("S[(8192,8192):(1,8192)]", &[(M, 8192 * 8192)]), (true, true));
        assert_eq!(boxed("S[(4,8):(8@m,1@tx)]", &[(M, 4), (TX, 8)]), (false, false));
        assert_eq!(boxed("S[(4,8):(1@m,1@tx)]", &[(M, 4), (TX, 8)]), (true, true));
    }

    #[test]
    fn strides_that_leave_holes_do_not() {
        assert_eq!(boxed("S[(4,3):(3,2)]", &[(M, 12)]), (false, false));
        assert_eq!(boxed("S[(2,3):(1,2)]", &[(M, 6)]), (true, true));
        assert_eq!(boxed("S[(4,3):(1,2)]", &[(M, 8)]), (true, false));
    }

    #[test]
    fn replicas_fill_but_are_not_one_to_one() {
        assert_eq!(boxed("S[4:1] + R[2:4]", &[(M, 8)]), (true, false));
    }

    #[test]
    fn a_pitched_tensor_fills_its_first_row_and_no_more() {
        assert!(boxed("S[(8192,8192):(16384,1)]", &[(M, 8192)]).0);
        assert!(boxed("S[(4,3):(-3,1)] + 9", &[(M, 12)]).0);
    }

    #[test]
    fn an_empty_box_is_full() {
        assert!(boxed("S[4:1@m]", &[(TX, 0)]).0 && boxed("swizzle(M=0,B=1,S=1) o S[4:1]", &[(M, 4), (TX, 0)]).0);
    }

    #[test]
    fn a_swizzle_keeps_a_full_block_full() {
        assert_eq!(boxed("swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]", &[(M, 512)]), (true, true));
        assert_eq!(boxed("swizzle(M=3,B=3,S=3) o S[(4,64):(64,1)]", &[(M, 257)]), (false, false));
    }
}
