//! The inverse on one axis: the digits of an element's index, read off a position, and the guards that say which
//! positions hold an element.

use std::fmt;

use tilewright_expr::Expr;

use crate::axis::Axis;
use crate::iter::Iter;
use crate::tile::TileLayout;

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
    /// What one step adds to the flat index; 0 for the digit of a replica.
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

/// The inverse of a layout on one axis, for its iters as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisInverse {
    /// The digits of the iters on the axis with extent above 1, shortest stride first, each with the index of its iter
    /// in the shard; `None` for a replica.
    pub digits: Vec<(Option<usize>, Digit)>,
    /// The positions that hold an element are those that meet all of these.
    pub guards: Vec<Guard>,
}

/// An iter on an axis, with extent above 1.
pub(super) struct Weighted<'a> {
    /// Its index in the shard; `None` for a replica.
    at: Option<usize>,
    pub(super) iter: &'a Iter,
    /// What a step adds to the flat index; 0 for a replica.
    pub(super) weight: i64,
}

impl TileLayout {
    /// The inverse on one axis, for every iter there as it is written. `None` if the strides do not nest or are not
    /// positive.
    pub fn inverse_on(&self, axis: &Axis) -> Option<AxisInverse> {
        self.inverse_of(axis, self.weighted_on(axis))
    }

    /// The inverse on one axis, for the given iters there.
    pub(super) fn inverse_of(&self, axis: &Axis, iters: Vec<Weighted<'_>>) -> Option<AxisInverse> {
        let origin = self.offset_on(axis);
        let guard = |modulus, below| Guard { axis: axis.clone(), origin, modulus, below };
        let (mut digits, mut guards, mut below) = (Vec::new(), Vec::new(), 1);
        for (number, Weighted { at, iter, weight }) in iters.iter().enumerate() {
            if iter.stride < 1 || iter.stride % below != 0 {
                return None;
            }
            if iter.stride > below {
                guards.push(guard(Some(iter.stride), below));
            }
            let is_last = number + 1 == iters.len();
            let (divisor, extent, weight) = (iter.stride, iter.extent, *weight);
            digits.push((*at, Digit { axis: axis.clone(), origin, divisor, extent, weight, is_last }));
            below = iter.stride.checked_mul(iter.extent)?;
        }
        guards.push(guard(None, below));
        Some(AxisInverse { digits, guards })
    }

    /// The iters on an axis, shortest stride first.
    fn weighted_on(&self, axis: &Axis) -> Vec<Weighted<'_>> {
        let mut inner_size = self.size();
        let mut iters = Vec::new();
        for (at, iter) in self.shard().iter().enumerate() {
            inner_size /= iter.extent;
            iters.push(Weighted { at: Some(at), iter, weight: inner_size });
        }
        iters.extend(self.replica().iter().map(|iter| Weighted { at: None, iter, weight: 0 }));
        iters.retain(|weighted| weighted.iter.axis == *axis && weighted.iter.extent > 1);
        iters.sort_by_key(|weighted| weighted.iter.stride);
        iters
    }

    /// The iters on an axis, shortest stride first, without those of stride 0.
    pub(super) fn moving_on(&self, axis: &Axis) -> Vec<Weighted<'_>> {
        let mut iters = self.weighted_on(axis);
        iters.retain(|weighted| weighted.iter.stride != 0);
        iters
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

    /// The digit as an expression for any position: it is less than the extent even where the guards are not met.
    pub fn expr_anywhere(&self, position: &Expr) -> Expr {
        let steps = position.clone() - self.origin;
        let is_bound = self.is_last && steps.range().within(0, self.divisor.saturating_mul(self.extent));
        let quotient = steps / self.divisor;
        if is_bound { quotient } else { quotient % self.extent }
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

#[cfg(test)]
mod tests {
    use tilewright_expr::Var;

    use super::*;
    use crate::axis::TX;

    fn layout(text: &str) -> TileLayout {
        text.parse().unwrap()
    }

    #[test]
    fn the_inverse_on_an_axis_keeps_the_iters() {
        let parted = layout("S[(2,2,8):(8@tx,1@reg,1@tx)] + R[2:16@tx] + 32@tx").inverse_on(&TX).unwrap();
        let told: Vec<_> = parted.digits.iter().map(|(at, digit)| (*at, digit.to_string())).collect();
        let digit = |at, text: &str| (at, text.to_string());
        let last = digit(None, "(tx - 32) / 16 * 0");
        assert_eq!(told, [digit(Some(2), "(tx - 32) % 8"), digit(Some(0), "(tx - 32) / 8 % 2 * 16"), last]);
        assert_eq!(parted.guards.iter().map(Guard::to_string).collect::<Vec<_>>(), ["32 <= tx < 64"]);
    }

    #[test]
    fn iters_that_do_not_nest_or_move_nothing_have_no_inverse() {
        assert_eq!(layout("S[(2,4):(0@tx,1@tx)]").inverse_on(&TX), None);
        assert_eq!(layout("S[(2,4):(3@tx,1@tx)]").inverse_on(&TX), None);
    }

    #[test]
    fn digits_of_positions_without_an_element_are_digits_too() {
        let inverse = layout("S[4:16@tx] + 64@tx").inverse_on(&TX).unwrap();
        let [(_, digit)] = &inverse.digits[..] else { panic!("not one digit") };
        let thread = Expr::var(&Var::new("tx", 0, 255));
        assert_eq!(digit.expr(&thread).to_string(), "(tx - 64)/16");
        assert_eq!(digit.expr_anywhere(&thread).to_string(), "(tx - 64)/16%4");
    }
}
