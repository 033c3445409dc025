//! Copies in random programs: parts of fragments, larger parameters, and copies that extend past an edge.

use super::super::expr::Index;
use super::super::program::{Region, RegionRange};
use super::build::{Build, Known, ROUND, copy, whole};
use super::patterns::{named, number, times};
use super::sketch::{CopySketch, Part, Way};

/// A box of a buffer.
pub(crate) struct Window {
    ranges: Vec<(Index, i64)>,
    is_whole: bool,
}

impl Window {
    pub(crate) fn region(self, buffer: &str) -> Region {
        if self.is_whole {
            return whole(buffer);
        }
        let range = |(min, extent)| RegionRange { min, extent, point: false };
        Region { buffer: buffer.to_string(), ranges: Some(self.ranges.into_iter().map(range).collect()) }
    }

    fn extents(&self) -> Vec<i64> {
        self.ranges.iter().map(|(_, extent)| *extent).collect()
    }
}

impl Build {
    /// A part of a fragment. If it moves, it is a different part of the first dimension in each iteration of the
    /// enclosing loop.
    pub(crate) fn part(&self, of: &Known, part: &Part, is_moving: bool) -> Window {
        let mut ranges = Vec::new();
        for (dimension, size) in of.shape.iter().enumerate() {
            let rounds = self.rounds.filter(|rounds| is_moving && dimension == 0 && rounds <= size);
            ranges.push(match rounds {
                Some(rounds) => (times(named(ROUND), size / rounds), size / rounds),
                None => {
                    let extent = size - part.cut[dimension] % size;
                    (number(part.at[dimension] % (size - extent + 1)), extent)
                }
            });
        }
        let is_whole = ranges.iter().zip(&of.shape).all(|((min, extent), size)| *min == number(0) && extent == size);
        Window { ranges, is_whole }
    }

    pub(crate) fn copy(&mut self, told: &CopySketch) {
        let of = self.known(told.of);
        let other = self.known(told.other);
        let may_cross = other.name != of.name
            && other.shape.len() == of.shape.len()
            && other.kind.may_become(of.kind)
            && told.way == Way::Across;
        if may_cross { self.copy_across(told, &of, &other) } else { self.copy_memory(told, &of) }
    }

    /// From or to a parameter, which is larger or smaller than the copied part.
    fn copy_memory(&mut self, told: &CopySketch, of: &Known) {
        let part = self.part(of, &told.part, told.is_moving);
        let (mut shape, mut ranges) = (Vec::new(), Vec::new());
        if let Some(rounds) = self.rounds.filter(|_| told.is_moving) {
            shape.push(rounds);
            ranges.push(RegionRange { min: named(ROUND), extent: 1, point: true });
        }
        for extent in part.extents() {
            shape.push((told.offset + extent + told.tail).max(1));
            ranges.push(RegionRange { min: number(told.offset), extent, point: false });
        }
        let goes_out = told.way == Way::Out;
        let may_be = |kind| if goes_out { of.kind.may_become(kind) } else { kind.may_become(of.kind) };
        let kind = told.kind.filter(|kind| may_be(*kind)).unwrap_or(of.kind);
        let buffer = self.param(if goes_out { "O" } else { "I" }, kind.name(), &shape);
        let memory = Region { buffer, ranges: Some(ranges) };
        let fragment = part.region(&of.name);
        self.ops.push(if goes_out { copy(memory, fragment) } else { copy(fragment, memory) });
    }

    /// A box that fits in both, at independent positions.
    fn copy_across(&mut self, told: &CopySketch, of: &Known, from: &Known) {
        let (mut to_ranges, mut from_ranges) = (Vec::new(), Vec::new());
        for (dimension, (to, from)) in of.shape.iter().zip(&from.shape).enumerate() {
            let least = *to.min(from);
            let extent = least - told.part.cut[dimension] % least;
            to_ranges.push((number(told.part.at[dimension] % (to - extent + 1)), extent));
            from_ranges.push((number(told.offset % (from - extent + 1)), extent));
        }
        let window = |ranges: Vec<(Index, i64)>, shape: &[i64]| {
            let is_whole = ranges.iter().zip(shape).all(|((_, extent), size)| extent == size);
            Window { ranges, is_whole }
        };
        let (dst, src) = (window(to_ranges, &of.shape), window(from_ranges, &from.shape));
        self.ops.push(copy(dst.region(&of.name), src.region(&from.name)));
    }
}
