//! The inverse of a layout: from a place to its element, with guards that say which places hold one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::axis_inverse::{Digit, Guard, Weighted};
use crate::axis::{Axis, M};
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::layout::Layout;
use crate::table::TableLayout;
use crate::tile::{Coord, TileLayout};

/// The inverse of a layout: for every place, the element there, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inverse {
    /// Computed by division, if the strides on each axis nest.
    Digits {
        /// The axes that the layout uses; on all others every element is at 0.
        axes: BTreeSet<Axis>,
        /// The digits whose weighted sum is the element.
        digits: Vec<Digit>,
        /// The places that hold an element are those that meet all of these.
        guards: Vec<Guard>,
    },
    /// Listed: the least element at every place that holds one.
    Places(BTreeMap<Coord, i64>),
}

impl TileLayout {
    /// The left inverse: `left_inverse()(p) = x` for every place `p` of every element `x`, and no element elsewhere.
    /// Error: elements that share a place (use [`TileLayout::pseudo_inverse`]).
    pub fn left_inverse(&self) -> Result<Inverse, LayoutError> {
        if !self.is_injective()? {
            let problem = "two elements share a place; the pseudo-inverse gives the lesser".to_string();
            return Err(LayoutError::Algebra { operation: "left inverse", problem });
        }
        self.pseudo_inverse()
    }

    /// The pseudo-inverse: at every place, the least element there. `self(pseudo_inverse()(p))` contains `p`
    /// wherever there is an element. Error: strides that do not nest on a tile too large to enumerate.
    pub fn pseudo_inverse(&self) -> Result<Inverse, LayoutError> {
        let canonical = self.canonicalize();
        match canonical.inverse_digits() {
            Some((digits, guards)) => Ok(Inverse::Digits { axes: canonical.axes(), digits, guards }),
            None => self.inverse_places(),
        }
    }

    /// The right inverse on the box of these axes: the layout, on `m`, of one element for every place, places counted
    /// row-major in the order of the axes. `self(right_inverse(box)(p))` contains `p`; of several elements the least is
    /// used. Errors: a place of the box without an element; a box too large to enumerate where strides do not nest.
    pub fn right_inverse(&self, extents: &[(Axis, i64)]) -> Result<Layout, LayoutError> {
        let boxed: BTreeMap<Axis, i64> = extents.iter().cloned().collect();
        if boxed.len() != extents.len() || !self.is_onto(&boxed)? {
            let sides: Vec<String> = extents.iter().map(|(axis, extent)| format!("{extent}@{axis}")).collect();
            let problem = format!("{self} does not fill the box {}", sides.join(" x "));
            return Err(LayoutError::Algebra { operation: "right inverse", problem });
        }
        if let Some(layout) = self.right_inverse_digits(extents)? {
            return Ok(Layout::Tile(layout));
        }
        let inverse = self.pseudo_inverse()?;
        let points = extents.iter().fold(1i64, |n, (_, extent)| n.saturating_mul(*extent));
        if points > crate::ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points });
        }
        let element = |flat: i64| {
            let mut rest = flat;
            let mut place = Coord::new();
            for (axis, extent) in extents.iter().rev() {
                place.insert(axis.clone(), rest % extent);
                rest /= extent;
            }
            let problem = "a place of a box that the layout fills has no element";
            inverse.element_at(&place).ok_or(LayoutError::Internal { problem })
        };
        let elements: Vec<i64> = (0..points).map(element).collect::<Result<_, _>>()?;
        TableLayout::of_positions(&M, &elements).map(Layout::Table)
    }

    /// Digits and guards of every axis, where the strides on each nest; digits of idle iters stay 0.
    fn inverse_digits(&self) -> Option<(Vec<Digit>, Vec<Guard>)> {
        let (mut digits, mut guards) = (Vec::new(), Vec::new());
        for axis in self.axes() {
            let inverse = self.inverse_of(&axis, self.moving_on(&axis))?;
            digits.extend(inverse.digits.into_iter().map(|(_, digit)| digit));
            guards.extend(inverse.guards);
        }
        Some((digits, guards))
    }

    fn inverse_places(&self) -> Result<Inverse, LayoutError> {
        let points = self.places_at_most();
        if points > crate::ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points });
        }
        let mut elements = BTreeMap::new();
        for flat in 0..self.size() {
            for place in self.apply(flat)? {
                elements.entry(place).or_insert(flat);
            }
        }
        Ok(Inverse::Places(elements))
    }

    /// The right inverse where the digits of each axis of the box fill it without gaps.
    fn right_inverse_digits(&self, extents: &[(Axis, i64)]) -> Result<Option<TileLayout>, LayoutError> {
        let boxed = |axis: &Axis| extents.iter().any(|(side, _)| side == axis);
        if self.axes().iter().any(|axis| !boxed(axis) && self.offset_on(axis) != 0) {
            return Ok(None);
        }
        let mut shard = Vec::new();
        for (axis, extent) in extents {
            let iters = self.moving_on(axis);
            let mut below = 1;
            for Weighted { iter, .. } in &iters {
                if iter.stride != below {
                    return Ok(None);
                }
                below *= iter.extent;
            }
            if below != *extent || self.offset_on(axis) != 0 {
                return Ok(None);
            }
            shard.extend(iters.iter().rev().map(|weighted| Iter::memory(weighted.iter.extent, weighted.weight)));
        }
        TileLayout::new(shard, Vec::new(), []).map(Some)
    }
}

impl Inverse {
    /// The element at a place, if there is one. Axes that the place does not name count as 0.
    pub fn element_at(&self, place: &Coord) -> Option<i64> {
        let position = |axis: &Axis| place.get(axis).copied().unwrap_or(0);
        match self {
            Inverse::Digits { axes, digits, guards } => {
                let inside = place.iter().all(|(axis, at)| *at == 0 || axes.contains(axis));
                (inside && guards.iter().all(|guard| guard.holds(position(&guard.axis))))
                    .then(|| digits.iter().map(|digit| digit.at(position(&digit.axis)) * digit.weight).sum())
            }
            Inverse::Places(elements) => {
                let axes = elements.keys().next()?.keys();
                let named: Coord = axes.map(|axis| (axis.clone(), position(axis))).collect();
                let outside = place.iter().any(|(axis, at)| *at != 0 && !named.contains_key(axis));
                if outside { None } else { elements.get(&named).copied() }
            }
        }
    }

    /// The same inverse for places inside the box `0..extent` (per axis): guards that always hold there are dropped.
    pub fn within(self, extents: &BTreeMap<Axis, i64>) -> Inverse {
        match self {
            Inverse::Digits { axes, digits, mut guards } => {
                let idle = |guard: &Guard| {
                    let inside = extents.get(&guard.axis).is_some_and(|extent| *extent <= guard.origin + guard.below);
                    guard.modulus.is_none() && guard.origin <= 0 && inside
                };
                guards.retain(|guard| !idle(guard));
                Inverse::Digits { axes, digits, guards }
            }
            Inverse::Places(elements) => Inverse::Places(elements),
        }
    }
}

/// The guards, then the element: `tx % 16 == 0, tx / 16`.
impl fmt::Display for Inverse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Inverse::Digits { digits, guards, .. } => {
                for guard in guards {
                    write!(f, "{guard}, ")?;
                }
                let mut told: Vec<&Digit> = digits.iter().filter(|digit| digit.weight != 0).collect();
                told.sort_by_key(|digit| std::cmp::Reverse(digit.weight));
                let sum: Vec<String> = told.iter().map(|digit| digit.to_string()).collect();
                f.write_str(if sum.is_empty() { "0".to_string() } else { sum.join(" + ") }.as_str())
            }
            Inverse::Places(elements) => write!(f, "a list of places, length {}", elements.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{LANEID, REG, TX};

    fn layout(text: &str) -> TileLayout {
        text.parse().unwrap()
    }

    #[test]
    fn a_sparse_map_has_an_exact_inverse_with_a_guard() {
        let inverse = layout("S[4:16@tx]").left_inverse().unwrap();
        assert_eq!(inverse.to_string(), "tx % 16 == 0, 0 <= tx < 64, tx / 16");
        let inside = inverse.within(&BTreeMap::from([(TX, 64)]));
        assert_eq!(inside.to_string(), "tx % 16 == 0, tx / 16");
    }

    #[test]
    fn a_fragment_is_inverted_digit_by_digit() {
        let fragment = layout("S[(8,4,2):(4@laneid,1@laneid,1@reg)]");
        let inverse = fragment.left_inverse().unwrap().within(&BTreeMap::from([(LANEID, 32), (REG, 2)]));
        assert_eq!(inverse.to_string(), "laneid * 2 + reg");
    }

    #[test]
    fn strides_that_do_not_nest_are_listed() {
        let inverse = layout("S[(2,2):(2,3)]").left_inverse().unwrap();
        assert_eq!(inverse.to_string(), "a list of places, length 4");
        assert_eq!(
            (0..6).map(|m| inverse.element_at(&Coord::from([(M, m)]))).collect::<Vec<_>>(),
            [Some(0), None, Some(2), Some(1), None, Some(3)]
        );
    }

    #[test]
    fn elements_that_share_a_place_have_only_a_pseudo_inverse() {
        let twice = layout("S[(2,4):(0,1)]");
        assert_eq!(twice.left_inverse().unwrap_err().code(), "L0119");
        assert_eq!(twice.pseudo_inverse().unwrap().element_at(&Coord::from([(M, 3)])), Some(3));
    }

    #[test]
    fn a_right_inverse_walks_the_places() {
        let column_major = layout("S[(4,8):(1,4)]");
        assert_eq!(column_major.right_inverse(&[(M, 32)]).unwrap().to_string(), "S[(8,4):(1@m,8@m)]");
        assert_eq!(column_major.right_inverse(&[(M, 33)]).unwrap_err().code(), "L0119");
    }
}
