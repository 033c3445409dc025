//! From a place back to its element, with the guards that say which places hold one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tilewright_expr::Expr;

use crate::axis::{Axis, M};
use crate::error::LayoutError;
use crate::layout::Layout;
use crate::table::TableLayout;
use crate::tile::{Coord, Iter, TileLayout};

/// A digit of the element's index, read off a position: `(position - origin) / divisor % extent`, times `weight`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digit {
    /// The axis of the position.
    pub axis: Axis,
    /// The least position on the axis.
    pub origin: i64,
    /// Positions per step of the digit.
    pub divisor: i64,
    /// How many values it has.
    pub extent: i64,
    /// What one step adds to the flat index; 0 for the digit of a copy.
    pub weight: i64,
    /// True for the digit of the longest stride on its axis: the guards bound it, so it needs no remainder.
    pub is_last: bool,
}

/// A condition that a position must meet to hold an element: `(position - origin) % modulus < below`; without a
/// modulus, `origin <= position < origin + below`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The axis of the position.
    pub axis: Axis,
    /// The least position on the axis.
    pub origin: i64,
    /// Positions per repetition, if the condition repeats.
    pub modulus: Option<i64>,
    /// How many positions of a repetition hold elements.
    pub below: i64,
}

/// The inverse of a layout: for every place, the element there, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inverse {
    /// By division: the strides on each axis nest.
    Digits {
        /// The axes on which elements move or are shifted; on all others they stand at 0.
        axes: BTreeSet<Axis>,
        /// The digits whose weighted sum is the element.
        digits: Vec<Digit>,
        /// The places that hold an element are those that meet all of these.
        guards: Vec<Guard>,
    },
    /// By listing: the least element at every place that holds one.
    Places(BTreeMap<Coord, i64>),
}

impl TileLayout {
    /// The left inverse: `left_inverse()(p) = x` for every place `p` of every element `x`, and no element elsewhere.
    /// Error: elements that share a place (then there is only a [`TileLayout::pseudo_inverse`]).
    pub fn left_inverse(&self) -> Result<Inverse, LayoutError> {
        if !self.is_injective()? {
            let problem = "two elements share a place; the pseudo-inverse gives the lesser".to_string();
            return Err(LayoutError::Algebra { operation: "left inverse", problem });
        }
        self.pseudo_inverse()
    }

    /// The pseudo-inverse: at every place the least element that is there. `self(pseudo_inverse()(p))` contains `p`
    /// wherever there is an element. Error: strides that do not nest on a tile too large to enumerate.
    pub fn pseudo_inverse(&self) -> Result<Inverse, LayoutError> {
        let canonical = self.canonicalize();
        match canonical.inverse_digits() {
            Some((digits, guards)) => Ok(Inverse::Digits { axes: canonical.axes(), digits, guards }),
            None => self.inverse_places(),
        }
    }

    /// The right inverse on the box of these axes: the layout, on `m`, of one element for every place, places counted
    /// row-major in the order of the axes. `self(right_inverse(box)(p))` contains `p`; of several the least is taken.
    /// Errors: a place of the box without an element; a box too large to enumerate where strides do not nest.
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
            inverse.element_at(&place).unwrap_or(0)
        };
        let elements: Vec<i64> = (0..points).map(element).collect();
        TableLayout::of_positions(&M, &elements).map(Layout::Table)
    }

    /// Digits and guards of every axis, where the strides on each nest; digits of idle iters stay 0.
    fn inverse_digits(&self) -> Option<(Vec<Digit>, Vec<Guard>)> {
        let (mut digits, mut guards) = (Vec::new(), Vec::new());
        for axis in self.axes() {
            self.invert_axis(&axis, &mut digits, &mut guards)?;
        }
        Some((digits, guards))
    }

    fn invert_axis(&self, axis: &Axis, digits: &mut Vec<Digit>, guards: &mut Vec<Guard>) -> Option<()> {
        let origin = self.offset_on(axis);
        let guard = |modulus, below| Guard { axis: axis.clone(), origin, modulus, below };
        let mut below = 1;
        let iters = self.weighted_on(axis);
        for (at, (iter, weight)) in iters.iter().enumerate() {
            if iter.stride < 1 || iter.stride % below != 0 {
                return None;
            }
            if iter.stride > below {
                guards.push(guard(Some(iter.stride), below));
            }
            let is_last = at + 1 == iters.len();
            let (divisor, extent, weight) = (iter.stride, iter.extent, *weight);
            digits.push(Digit { axis: axis.clone(), origin, divisor, extent, weight, is_last });
            below = iter.stride.checked_mul(iter.extent)?;
        }
        guards.push(guard(None, below));
        Some(())
    }

    /// The moving iters on an axis with the weights of their digits, shortest stride first; copies weigh 0.
    fn weighted_on(&self, axis: &Axis) -> Vec<(&Iter, i64)> {
        let mut behind = self.size();
        let weigh = |iter| {
            let iter: &Iter = iter;
            behind /= iter.extent;
            (iter, behind)
        };
        let mut iters: Vec<(&Iter, i64)> = self.shard().iter().map(weigh).collect();
        iters.extend(self.replica().iter().map(|iter| (iter, 0)));
        iters.retain(|(iter, _)| iter.axis == *axis && iter.extent > 1 && iter.stride != 0);
        iters.sort_by_key(|(iter, _)| iter.stride);
        iters
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
            let iters = self.weighted_on(axis);
            let mut below = 1;
            for (iter, _) in &iters {
                if iter.stride != below {
                    return Ok(None);
                }
                below *= iter.extent;
            }
            if below != *extent || self.offset_on(axis) != 0 {
                return Ok(None);
            }
            shard.extend(iters.iter().rev().map(|(iter, weight)| Iter::memory(iter.extent, *weight)));
        }
        TileLayout::new(shard, Vec::new(), []).map(Some)
    }
}

impl Digit {
    /// The digit at a position that meets the guards.
    pub fn at(&self, position: i64) -> i64 {
        let quotient = position.saturating_sub(self.origin).div_euclid(self.divisor);
        if self.is_last { quotient } else { quotient.rem_euclid(self.extent) }
    }

    /// The digit as an expression; `position` must meet the guards.
    pub fn expr(&self, position: &Expr) -> Expr {
        let quotient = (position.clone() - self.origin) / self.divisor;
        if self.is_last { quotient } else { quotient % self.extent }
    }
}

impl Guard {
    /// True where the position meets the condition.
    pub fn holds(&self, position: i64) -> bool {
        match (position.checked_sub(self.origin), self.modulus) {
            (None, _) => false,
            (Some(steps), Some(modulus)) => steps.rem_euclid(modulus) < self.below,
            (Some(steps), None) => (0..self.below).contains(&steps),
        }
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

    /// The same inverse for places inside the box `0..extent` (per axis): guards that always hold there go.
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

fn shifted(axis: &Axis, origin: i64) -> String {
    match origin {
        0 => axis.to_string(),
        _ if origin > 0 => format!("({axis} - {origin})"),
        _ => format!("({axis} + {})", -origin),
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Guard { axis, origin, modulus, below } = self;
        match modulus {
            Some(modulus) if *below == 1 => write!(f, "{} % {modulus} == 0", shifted(axis, *origin)),
            Some(modulus) => write!(f, "{} % {modulus} < {below}", shifted(axis, *origin)),
            None if *below == 1 => write!(f, "{axis} == {origin}"),
            None => write!(f, "{origin} <= {axis} < {}", origin + below),
        }
    }
}

impl fmt::Display for Digit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Digit { axis, origin, divisor, extent, weight, is_last } = self;
        write!(f, "{}", shifted(axis, *origin))?;
        if *divisor != 1 {
            write!(f, " / {divisor}")?;
        }
        if !is_last {
            write!(f, " % {extent}")?;
        }
        if *weight == 1 { Ok(()) } else { write!(f, " * {weight}") }
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
            Inverse::Places(elements) => write!(f, "a list of {} places", elements.len()),
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
        assert_eq!(inverse.to_string(), "a list of 4 places");
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
