//! Containment: whether a fragment already holds every element on the threads where another fragment needs it.

use std::collections::{BTreeMap, BTreeSet};

use crate::algebra::{Progression, added, copies_on};
use crate::axis::Axis;
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::layout::Layout;
use crate::tile::{Coord, TileLayout, check_size};

impl TileLayout {
    /// True when every thread that holds an element in `other` holds it in this layout too. Only axes that count
    /// threads or groups of them matter; write both layouts in the same axes first ([`TileLayout::in_scope`]).
    ///
    /// Decided per axis: an element's owners in `other` lie among those here exactly if, for every difference `d` of
    /// the two placements, `d` plus the copies of `other` are copies here. Where the iters of the two do not nest, the
    /// elements are enumerated. Errors: different sizes, or a tile too large to enumerate.
    pub fn contains(&self, other: &TileLayout) -> Result<bool, LayoutError> {
        self.check_shape(&[other.size()])?;
        let (here, there) = (self.owners().canonicalize(), other.owners().canonicalize());
        let axes: BTreeSet<Axis> = here.axes().into_iter().chain(there.axes()).filter(Axis::is_unit).collect();
        let copies: BTreeMap<&Axis, BTreeSet<i64>> =
            axes.iter().map(|axis| Ok((axis, copies_on(here.replica(), axis)?))).collect::<Result<_, LayoutError>>()?;
        for axis in &axes {
            let differences = Differences { here: &here, there: &there, axis, held: &copies[axis] };
            if !differences.are_held()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The layout of the owning threads alone: without memory and register axes, of the same size.
    fn owners(&self) -> TileLayout {
        let idle = |iter: &Iter| if iter.axis.is_unit() { iter.clone() } else { Iter { stride: 0, ..iter.clone() } };
        let shard = self.shard().iter().map(idle).collect();
        let replica = self.replica().iter().filter(|iter| iter.axis.is_unit()).cloned().collect();
        let offset = self.offset().iter().filter(|(axis, _)| axis.is_unit()).map(|(axis, v)| (axis.clone(), *v));
        TileLayout::from_valid_parts(shard, replica, offset)
    }
}

impl Layout {
    /// True when every thread that holds an element in `other` holds it here too; see [`TileLayout::contains`].
    pub fn contains(&self, other: &Layout) -> Result<bool, LayoutError> {
        if let (Layout::Tile(here), Layout::Tile(there)) = (self, other) {
            return here.contains(there);
        }
        check_size(&[other.size()], self.size())?;
        self.check_enumerable()?;
        for flat in 0..self.size() {
            if !threads(other, flat)?.is_subset(&threads(self, flat)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The threads that hold an element: its places on the axes that count threads, CTAs or devices, 0 left out.
fn threads(layout: &Layout, flat: i64) -> Result<BTreeSet<Coord>, LayoutError> {
    let thread = |place: Coord| place.into_iter().filter(|(axis, at)| axis.is_unit() && *at != 0).collect();
    Ok(layout.apply(flat)?.into_iter().map(thread).collect())
}

/// What the placement of an element in `there` adds, on one axis, to its placement in `here`.
struct Differences<'a> {
    here: &'a TileLayout,
    there: &'a TileLayout,
    axis: &'a Axis,
    /// The offsets of the copies in `here` on this axis.
    held: &'a BTreeSet<i64>,
}

impl Differences<'_> {
    fn are_held(&self) -> Result<bool, LayoutError> {
        let start = self.there.offset_on(self.axis) - self.here.offset_on(self.axis);
        let copies = copies_on(self.there.replica(), self.axis)?;
        let wanted: BTreeSet<i64> = copies.into_iter().map(|copy| start + copy).collect();
        match crate::refine_together(&[self.here, self.there]) {
            Ok(refined) => Ok(self.by_digits(wanted, &refined[0], &refined[1])),
            Err(_) => self.by_element(&wanted),
        }
    }

    /// Adds the differences digit by digit; stops as soon as a sum is not held, or there are more sums
    /// than held copies.
    fn by_digits(&self, mut sums: BTreeSet<i64>, here: &TileLayout, there: &TileLayout) -> bool {
        let on_axis = |iter: &Iter| if iter.axis == *self.axis { iter.stride } else { 0 };
        for (a, b) in here.shard().iter().zip(there.shard()) {
            let step = on_axis(b) - on_axis(a);
            if step == 0 {
                continue;
            }
            // Backwards steps start at the far end. More sums than are held cannot all be held.
            let extent = a.extent;
            let least = if step < 0 { (extent - 1) * step } else { 0 };
            let shifted = sums.iter().map(|sum| sum + least).collect();
            let steps = Progression { stride: step.abs(), extent };
            let Some(all) = added(&shifted, steps, self.held.len() as i64) else { return false };
            sums = all;
            if !sums.is_subset(self.held) {
                return false;
            }
        }
        sums.is_subset(self.held)
    }

    fn by_element(&self, wanted: &BTreeSet<i64>) -> Result<bool, LayoutError> {
        if self.here.size() > crate::ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points: self.here.size() });
        }
        let base = self.there.offset_on(self.axis) - self.here.offset_on(self.axis);
        let pairs = self.here.positions(self.axis).into_iter().zip(self.there.positions(self.axis));
        let differences: BTreeSet<i64> = pairs.map(|(here, there)| there - here - base).collect();
        let points = (differences.len() as i64).saturating_mul(wanted.len() as i64);
        if points > crate::ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points });
        }
        Ok(differences.iter().all(|d| wanted.iter().all(|copy| self.held.contains(&(copy + d)))))
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::TileLayout;

    fn contains(a: &str, b: &str) -> bool {
        a.parse::<TileLayout>().unwrap().contains(&b.parse().unwrap()).unwrap()
    }

    #[test]
    fn registers_do_not_matter() {
        assert!(contains("S[(8,4,2):(4@laneid,1@laneid,1@reg)]", "S[(8,4,2):(4@laneid,1@laneid,5@reg)] + 7@reg"));
    }

    #[test]
    fn a_copy_on_every_thread_contains_all() {
        assert!(contains("S[64:1@reg] + R[32:1@laneid]", "S[(8,4,2):(4@laneid,1@laneid,1@reg)]"));
        assert!(!contains("S[(8,4,2):(4@laneid,1@laneid,1@reg)]", "S[64:1@reg] + R[32:1@laneid]"));
    }

    #[test]
    fn another_order_of_threads_is_not_contained() {
        assert!(!contains("S[(8,4,2):(4@laneid,1@laneid,1@reg)]", "S[(8,4,2):(1@laneid,8@laneid,1@reg)]"));
    }

    #[test]
    fn iters_that_do_not_nest_are_enumerated() {
        assert!(contains("S[(3,4):(1@reg,1@reg)] + R[4:1@tx]", "S[(4,3):(1@tx,1@reg)]"));
        assert!(!contains("S[(3,4):(1@reg,1@reg)] + R[3:1@tx]", "S[(4,3):(1@tx,1@reg)]"));
    }

    #[test]
    fn copies_must_be_there_too() {
        assert!(contains("S[4:1@tx] + R[4:8@tx]", "S[4:1@tx] + R[2:16@tx]"));
        assert!(!contains("S[4:1@tx] + R[4:8@tx]", "S[4:1@tx] + R[2:4@tx]"));
    }
}
