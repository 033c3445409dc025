//! Recognises digits in a list of positions: each position as a sum of digits of its index, as iters if all matter.

use crate::axis::Axis;
use crate::iter::Iter;

/// The positions of a sequence of elements, relative to the first.
pub(crate) struct Walk {
    /// The axes of the positions, in the order in which `steps` has them.
    axes: Vec<Axis>,
    /// One position per axis and element.
    steps: Vec<i64>,
}

impl Walk {
    /// The walk whose element `t` of `length` is at `at(t, axis)`.
    pub(crate) fn new(axes: Vec<Axis>, length: i64, at: impl Fn(i64, &Axis) -> i64) -> Walk {
        let origin: Vec<i64> = axes.iter().map(|axis| at(0, axis)).collect();
        let step = |t: i64| axes.iter().zip(&origin).map(move |(axis, origin)| (axis, origin, t));
        let steps = (0..length).flat_map(step).map(|(axis, origin, t)| at(t, axis) - origin).collect();
        Walk { axes, steps }
    }

    /// Every `stride`-th element from the first on, `count` of them.
    pub(crate) fn every(&self, stride: usize, count: usize) -> Walk {
        let steps = (0..count).flat_map(|t| self.at(t * stride).iter().copied()).collect();
        Walk { axes: self.axes.clone(), steps }
    }

    /// Where element `t` is, one position per axis.
    pub(crate) fn at(&self, t: usize) -> &[i64] {
        let width = self.axes.len();
        &self.steps[t * width..(t + 1) * width]
    }

    /// True when the position of element `t` is the sum of `a` and `b`.
    pub(crate) fn adds(&self, t: usize, a: &[i64], b: &[i64]) -> bool {
        self.at(t).iter().zip(a.iter().zip(b)).all(|(step, (a, b))| *step == a + b)
    }

    /// The iters that make the first `length` elements, each on one axis; `None` if there are none of exactly this
    /// size.
    pub(crate) fn iters(&self, length: usize) -> Option<Vec<Iter>> {
        let list = List { places: length, width: self.axes.len(), positions: &self.steps, matters: &|_| true };
        let digits = list.digits()?;
        let is_whole = digits.iter().map(|digit| digit.extent).product::<usize>() == length;
        if !is_whole {
            return None;
        }
        digits.iter().rev().map(|digit| self.iter(digit.extent as i64, &digit.strides)).collect()
    }

    fn iter(&self, extent: i64, step: &[i64]) -> Option<Iter> {
        let moving: Vec<usize> = (0..step.len()).filter(|&axis| step[axis] != 0).collect();
        match moving[..] {
            [] => Some(Iter::memory(extent, 0)),
            [axis] => Some(Iter { extent, stride: step[axis], axis: self.axes[axis].clone() }),
            _ => None,
        }
    }
}

/// A digit of an index into a list, and what it adds: `index / period % extent * stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceDigit {
    /// Entries per step of the digit: the product of the extents of all faster digits.
    pub period: i64,
    /// How many values it has.
    pub extent: i64,
    /// What one step adds.
    pub stride: i64,
}

/// The digits, fastest first, that give the value at each index of a list, where there is one. The first value, if
/// any, must be 0. The list may end before the last digit does. `None` if no digits give these values.
pub fn digits_of_list(values: &[Option<i64>]) -> Option<Vec<PlaceDigit>> {
    let positions: Vec<i64> = values.iter().map(|value| value.unwrap_or(0)).collect();
    let matters = |place: usize| values[place].is_some();
    let list = List { places: values.len(), width: 1, positions: &positions, matters: &matters };
    let mut period = 1;
    let mut found = Vec::new();
    for Steps { extent, strides } in list.digits()? {
        found.extend(strides.iter().map(|stride| PlaceDigit { period, extent: extent as i64, stride: *stride }));
        period *= extent as i64;
    }
    Some(found)
}

/// A digit of an index into a list, and what one step of it adds to each coordinate of the position.
struct Steps {
    /// How many values the digit has.
    extent: usize,
    /// What one step adds to each coordinate of the position.
    strides: Vec<i64>,
}

/// A list of positions. The first is 0 if it matters.
struct List<'a> {
    /// How many positions there are.
    places: usize,
    /// Coordinates of each position.
    width: usize,
    /// The coordinates, position by position.
    positions: &'a [i64],
    /// Whether the digits must give the position at an index.
    matters: &'a dyn Fn(usize) -> bool,
}

impl List<'_> {
    /// The digits, fastest first, that give the position at each index that matters.
    fn digits(&self) -> Option<Vec<Steps>> {
        if self.at(0).is_some_and(|first| first.iter().any(|number| *number != 0)) {
            return None;
        }
        let mut found = Vec::new();
        // The positions that the digits found so far give at the first `period` indices.
        let (mut period, mut reached) = (1, vec![0; self.width]);
        while period < self.places {
            let digit = self.next_digit(period, &reached)?;
            if period * digit.extent < self.places {
                let in_turn = |turn: usize| moved(&reached, &digit.strides, turn as i64);
                reached = (0..digit.extent).flat_map(in_turn).collect();
            }
            period *= digit.extent;
            found.push(digit);
        }
        Some(found)
    }

    /// The position at an index, if it matters.
    fn at(&self, place: usize) -> Option<&[i64]> {
        let is_there = place < self.places && (self.matters)(place);
        is_there.then(|| &self.positions[place * self.width..(place + 1) * self.width])
    }

    /// The digit that counts turns of `period` indices; the faster digits give the positions `reached` within a turn.
    ///
    /// If all indices matter and iters describe the list, its extent is where the first run of equal steps ends.
    /// Otherwise it may be shorter, if it divides the number of turns.
    fn next_digit(&self, period: usize, reached: &[i64]) -> Option<Steps> {
        let turns = self.places.div_ceil(period);
        let step = |turn: usize| quotients(self.at(turn * period)?, turn as i64);
        let strides = (1..turns).find_map(step).unwrap_or_else(|| vec![0; self.width]);
        let goes_on = |turn: &usize| {
            let is_there =
                |at: &[i64]| at.iter().zip(&strides).all(|(number, stride)| *number == *turn as i64 * stride);
            self.at(turn * period).is_none_or(is_there)
        };
        let run = (1..turns).take_while(goes_on).count() + 1;
        let leads = |extent: &usize| {
            let last = (period * extent).min(self.places);
            (period..last).all(|place| self.is_reached(place, period, reached, &strides))
        };
        let extent = (2..=run).rev().filter(|extent| turns.is_multiple_of(*extent) || *extent == run).find(leads)?;
        Some(Steps { extent, strides })
    }

    /// Whether the position at `place` is what the faster digits reach plus one step for every whole period before it.
    fn is_reached(&self, place: usize, period: usize, reached: &[i64], strides: &[i64]) -> bool {
        let (turn, first) = ((place / period) as i64, place % period * self.width);
        let is_there = |((number, low), stride): ((&i64, &i64), &i64)| *number == low + turn * stride;
        self.at(place).is_none_or(|at| at.iter().zip(&reached[first..]).zip(strides).all(is_there))
    }
}

/// The positions, each moved on by `steps` steps.
fn moved(positions: &[i64], strides: &[i64], steps: i64) -> Vec<i64> {
    let each = positions.chunks(strides.len().max(1));
    each.flat_map(|at| at.iter().zip(strides).map(move |(number, stride)| number + steps * stride)).collect()
}

/// The coordinates of a position divided by `divisor`, if all are multiples of it.
fn quotients(at: &[i64], divisor: i64) -> Option<Vec<i64>> {
    at.iter().map(|number| (number % divisor == 0).then_some(number / divisor)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{M, REG};

    fn read(positions: &[i64]) -> Option<Vec<(i64, i64)>> {
        let walk = Walk::new(vec![M], positions.len() as i64, |t, _| positions[t as usize]);
        Some(walk.iters(positions.len())?.into_iter().map(|iter| (iter.extent, iter.stride)).collect())
    }

    #[test]
    fn runs_of_runs_are_iters() {
        assert_eq!(read(&[7, 9, 11, 0, 2, 4]), Some(vec![(2, -7), (3, 2)]));
        assert_eq!(read(&[5, 5, 5]), Some(vec![(3, 0)]));
        assert_eq!(read(&[5]), Some(vec![]));
    }

    #[test]
    fn an_uneven_walk_has_none() {
        assert_eq!(read(&[0, 1, 10, 11, 20]), None);
        assert_eq!(read(&[0, 1, 2, 10, 11]), None);
        assert_eq!(read(&[0, 1, 10, 12]), None);
    }

    /// Period, extent and stride of each digit.
    fn digits(values: &[Option<i64>]) -> Option<Vec<(i64, i64, i64)>> {
        let told = |digit: PlaceDigit| (digit.period, digit.extent, digit.stride);
        Some(digits_of_list(values)?.into_iter().map(told).collect())
    }

    #[test]
    fn a_step_leads_along_one_axis() {
        let read = |places: &[(i64, i64)]| {
            let at = |t: i64, axis: &Axis| if *axis == M { places[t as usize].0 } else { places[t as usize].1 };
            let walk = Walk::new(vec![M, REG], places.len() as i64, at);
            let iters = walk.iters(places.len())?;
            Some(iters.into_iter().map(|iter| (iter.extent, iter.stride, iter.axis)).collect::<Vec<_>>())
        };
        assert_eq!(read(&[(5, 1), (7, 1), (5, 4), (7, 4)]), Some(vec![(2, 3, REG), (2, 2, M)]));
        assert_eq!(read(&[(0, 0), (1, 1)]), None);
    }

    #[test]
    fn a_list_may_end_inside_its_last_digit() {
        let values = [0, 1, 2, 10, 11].map(Some);
        assert_eq!(digits(&values), Some(vec![(1, 3, 1), (3, 2, 10)]));
        assert_eq!(digits(&[0, 1, 3, 2, 7].map(Some)), None);
        assert_eq!(digits(&[Some(1)]), None);
        assert_eq!(digits(&[Some(0)]), Some(vec![]));
    }

    #[test]
    fn places_without_a_value_may_have_any() {
        let fifths: Vec<_> = (0..32).map(|t| (t % 8 < 5).then_some(t / 8 * 5 + t % 8)).collect();
        assert_eq!(digits(&fifths), Some(vec![(1, 8, 1), (8, 4, 5)]));
        assert_eq!(digits(&[Some(0), None, Some(6), None, None]), Some(vec![(1, 5, 3)]));
    }
}
