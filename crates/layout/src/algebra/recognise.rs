//! Listed places read back as iters.

use crate::axis::Axis;
use crate::tile::Iter;

/// Where each of a row of elements is, relative to the first.
pub(crate) struct Walk {
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

    /// True when element `t` is where the elements `a` and `b` together lead.
    pub(crate) fn adds(&self, t: usize, a: &[i64], b: &[i64]) -> bool {
        self.at(t).iter().zip(a.iter().zip(b)).all(|(step, (a, b))| *step == a + b)
    }

    /// The iters that make this walk, each on one axis, or `None` if there are none.
    ///
    /// The extent of the last iter can only be the length of the first run of equal steps; if the walk repeats it, the
    /// elements that begin a run leave the question to the slower iters.
    pub(crate) fn iters(&self, length: usize) -> Option<Vec<Iter>> {
        let mut iters = Vec::new();
        let mut walk = self.every(1, length);
        let mut left = length;
        while left > 1 {
            let run = walk.first_run(left);
            iters.push(self.iter(run as i64, walk.at(1))?);
            let repeats = (0..left).all(|t| walk.adds(t, walk.at(t / run * run), walk.at(t % run)));
            if !left.is_multiple_of(run) || !repeats {
                return None;
            }
            left /= run;
            walk = walk.every(run, left);
        }
        iters.reverse();
        Some(iters)
    }

    fn first_run(&self, length: usize) -> usize {
        let goes_on = |t: &usize| self.at(*t).iter().zip(self.at(1)).all(|(step, unit)| *step == unit * *t as i64);
        (0..length).take_while(goes_on).count()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::M;

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
        assert_eq!(read(&[0, 1, 10, 12]), None);
    }
}
