//! Random layouts, shapes and regions, chosen so that operations accept a large share of them.

use std::collections::BTreeMap;
use std::ops::Range;

use tilewright::layout::axis::{LANEID, M, REG, TCOL, TX, WARPID};
use tilewright::layout::{Axis, Coord, Iter, TileLayout};

use super::brute::{axes_of, extents_of};
use crate::rng::Rng;

/// The maximum number of places in a box.
const MOST_PLACES: i64 = 256;

/// How the strides of the shard are chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strides {
    /// Row-major: the last iter is the fastest, without gaps.
    RowMajor,
    /// In any order, without gaps.
    Dense,
    /// With gaps that are multiples of the stride: strides nest.
    Padded,
    /// With arbitrary gaps.
    Loose,
    /// Dense, but some are negative or 0.
    Signed,
    /// Arbitrary strides.
    Broken,
}

const STRIDES: [Strides; 10] = [
    Strides::RowMajor,
    Strides::RowMajor,
    Strides::Dense,
    Strides::Dense,
    Strides::Padded,
    Strides::Padded,
    Strides::Loose,
    Strides::Signed,
    Strides::Signed,
    Strides::Broken,
];

/// An axis: most often memory, otherwise threads, registers, columns of tensor memory, or a user-defined name.
pub(crate) fn axis(rng: &mut Rng) -> Axis {
    match rng.below(14) {
        0..=5 => M,
        6 | 7 => REG,
        8 | 9 => TX,
        10 => LANEID,
        11 => WARPID,
        12 => TCOL,
        _ => Axis::named("mine"),
    }
}

/// One to three axes for a layout.
pub(crate) fn axes(rng: &mut Rng) -> Vec<Axis> {
    (0..rng.within(1..=3)).map(|_| axis(rng)).collect()
}

/// One of the axes of a layout, or occasionally another.
pub(crate) fn axis_of(rng: &mut Rng, layout: &TileLayout) -> Axis {
    let own = axes_of(&[layout]);
    if own.is_empty() || rng.percent(10) { axis(rng) } else { rng.pick(&own).clone() }
}

/// The maximum number of elements of a layout: usually small, so that brute force stays cheap.
pub(crate) fn budget(rng: &mut Rng) -> i64 {
    *rng.pick(&[8, 16, 16, 24, 48, 48, 64, 200])
}

/// Extents with a product of at most `budget`.
pub(crate) fn extents(rng: &mut Rng, budget: i64) -> Vec<i64> {
    let mut left = budget;
    let mut extents = Vec::new();
    for _ in 0..rng.within(1..=4) {
        let most = left.min(*rng.pick(&[3, 4, 8, 8, 16, 32]));
        let extent = rng.within(1..=most);
        left /= extent;
        extents.push(extent);
    }
    extents
}

/// Extents with the product `size`.
pub(crate) fn factors(rng: &mut Rng, size: i64) -> Vec<i64> {
    let mut left = size;
    let mut factors = Vec::new();
    while left > 1 && factors.len() < 3 {
        let factor = divisor(rng, left);
        left /= factor;
        factors.push(factor);
    }
    factors.push(left);
    rng.shuffle(&mut factors);
    factors
}

/// One of the divisors of a number.
pub(crate) fn divisor(rng: &mut Rng, number: i64) -> i64 {
    let divisors: Vec<i64> = (1..=number).filter(|divisor| number % divisor == 0).collect();
    *rng.pick(&divisors)
}

/// A layout of any kind.
pub(crate) fn layout(rng: &mut Rng) -> TileLayout {
    let budget = budget(rng);
    layout_of(rng, budget)
}

/// A layout of at most `budget` elements.
pub(crate) fn layout_of(rng: &mut Rng, budget: i64) -> TileLayout {
    let axes = axes(rng);
    let extents = if rng.percent(1) { Vec::new() } else { extents(rng, budget) };
    with_extents(rng, &extents, &axes)
}

/// A layout with these extents, most of it on these axes.
pub(crate) fn with_extents(rng: &mut Rng, extents: &[i64], axes: &[Axis]) -> TileLayout {
    let shard = shard(rng, extents, axes);
    let replica = replica(rng, &shard, axes);
    let offset = offset(rng, axes);
    TileLayout::new(shard, replica, offset).expect("small numbers")
}

/// A layout of `size` elements.
pub(crate) fn of_size(rng: &mut Rng, size: i64) -> TileLayout {
    let (extents, axes) = (factors(rng, size), axes(rng));
    with_extents(rng, &extents, &axes)
}

/// A layout without copies that fills its box.
pub(crate) fn dense(rng: &mut Rng) -> TileLayout {
    let (budget, axes) = (budget(rng), axes(rng));
    let extents = extents(rng, budget);
    let mut next: BTreeMap<&Axis, i64> = BTreeMap::new();
    let mut shard = Vec::new();
    for &extent in &extents {
        let axis = rng.pick(&axes);
        let free = next.entry(axis).or_insert(1);
        shard.push(Iter { extent, stride: *free, axis: axis.clone() });
        *free *= extent;
    }
    rng.shuffle(&mut shard);
    TileLayout::new(shard, Vec::new(), []).expect("small numbers")
}

/// A layout of linear memory at non-negative positions.
pub(crate) fn memory(rng: &mut Rng, budget: i64) -> TileLayout {
    let extents = extents(rng, budget);
    let shard = shard(rng, &extents, &[M]);
    let replica: Vec<Iter> = replica(rng, &shard, &[M]).into_iter().filter(|iter| iter.axis == M).collect();
    let below = |iter: &Iter| ((iter.extent - 1) * iter.stride).min(0);
    let least: i64 = shard.iter().chain(&replica).map(below).sum();
    let start = rng.within(0..=9) * rng.within(0..=1);
    TileLayout::new(shard, replica, [(M, start - least)]).expect("small numbers")
}

fn shard(rng: &mut Rng, extents: &[i64], axes: &[Axis]) -> Vec<Iter> {
    let strides = *rng.pick(&STRIDES);
    let mut order: Vec<usize> = (0..extents.len()).rev().collect();
    if strides != Strides::RowMajor {
        rng.shuffle(&mut order);
    }
    let mut iters: Vec<Iter> =
        extents.iter().map(|&extent| Iter { extent, stride: 0, axis: rng.pick(axes).clone() }).collect();
    let mut free: BTreeMap<Axis, i64> = BTreeMap::new();
    for at in order {
        let iter = &mut iters[at];
        let next = free.entry(iter.axis.clone()).or_insert(1);
        let stride = match strides {
            Strides::Padded => *next * rng.within(1..=3),
            Strides::Loose => *next + rng.within(0..=5),
            Strides::RowMajor | Strides::Dense | Strides::Signed | Strides::Broken => *next,
        };
        *next = stride * iter.extent;
        iter.stride = match strides {
            Strides::Signed => stride * rng.within(-1..=1),
            Strides::Broken => rng.within(-4..=20),
            Strides::RowMajor | Strides::Dense | Strides::Padded | Strides::Loose => stride,
        };
    }
    iters
}

/// Replica iters whose copies follow the elements, overlap them, or coincide.
fn replica(rng: &mut Rng, shard: &[Iter], axes: &[Axis]) -> Vec<Iter> {
    let mut iters: Vec<Iter> = Vec::new();
    for _ in 0..*rng.pick(&[0, 0, 0, 0, 0, 1, 1, 1, 2, 3]) {
        let axis = if rng.percent(20) { axis(rng) } else { rng.pick(axes).clone() };
        let reach = |iter: &Iter| (iter.extent - 1) * iter.stride.abs();
        let behind = 1 + shard.iter().chain(&iters).filter(|iter| iter.axis == axis).map(reach).sum::<i64>();
        let stride = match rng.below(8) {
            0..=2 => behind,
            3 => behind * 2,
            4 => -behind,
            5 => 0,
            6 => rng.within(1..=6),
            _ => iters.last().map_or(2, |iter| iter.stride),
        };
        iters.push(Iter { extent: rng.within(1..=3), stride, axis });
    }
    iters
}

fn offset(rng: &mut Rng, axes: &[Axis]) -> Vec<(Axis, i64)> {
    let count = *rng.pick(&[0, 0, 0, 1, 1, 2]);
    let mut offset = Vec::new();
    for _ in 0..count {
        let axis = if rng.percent(20) { axis(rng) } else { rng.pick(axes).clone() };
        offset.push((axis, rng.within(-9..=40)));
    }
    offset
}

/// A shape made from these extents: some are split, adjacent ones are joined.
pub(crate) fn shape(rng: &mut Rng, extents: &[i64]) -> Vec<i64> {
    let mut shape: Vec<i64> = Vec::new();
    for &extent in extents {
        let inner = if rng.percent(25) { divisor(rng, extent) } else { 1 };
        for part in [extent / inner, inner] {
            match shape.last_mut() {
                Some(last) if part == 1 || rng.percent(35) => *last *= part,
                _ => shape.push(part),
            }
        }
    }
    if shape.is_empty() || rng.percent(15) {
        let at = rng.below(shape.len() + 1);
        shape.insert(at, 1);
    }
    shape
}

/// A shape of the layout's size: most can be made from its iters.
pub(crate) fn any_shape(rng: &mut Rng, layout: &TileLayout) -> Vec<i64> {
    if rng.percent(80) { shape(rng, &extents_of(layout)) } else { factors(rng, layout.size()) }
}

/// The extents joined into `rank` dimensions.
pub(crate) fn joined(rng: &mut Rng, extents: &[i64], rank: usize) -> Vec<i64> {
    let mut bounds: Vec<usize> = (1..rank).map(|_| rng.below(extents.len() + 1)).collect();
    bounds.extend([0, extents.len()]);
    bounds.sort_unstable();
    bounds.windows(2).map(|pair| extents[pair[0]..pair[1]].iter().product()).collect()
}

/// A region of a shape: most begin and end at boundaries of iters, some do not, and a few are invalid.
pub(crate) fn region(rng: &mut Rng, shape: &[i64]) -> Vec<Range<i64>> {
    let mut region: Vec<Range<i64>> = shape.iter().map(|&extent| range(rng, extent)).collect();
    if rng.percent(4) {
        let at = rng.below(region.len());
        region[at] = *rng.pick(&[-1, 0, shape[at]])..*rng.pick(&[0, shape[at] + 1]);
    }
    region
}

fn range(rng: &mut Rng, extent: i64) -> Range<i64> {
    let unit = if rng.percent(60) { divisor(rng, extent) } else { 1 };
    let start = rng.within(0..=extent / unit - 1);
    let end = rng.within(start + 1..=extent / unit);
    start * unit..end * unit
}

/// A small box over some axes on which a layout has these spans: of equal length, shorter, or slightly too long.
pub(crate) fn sides(rng: &mut Rng, spans: &[(Axis, i64)]) -> Vec<(Axis, i64)> {
    let mut sides = Vec::new();
    let mut places = 1;
    for (axis, span) in spans {
        let side = match rng.below(8) {
            0 => 1,
            1 => span + 1,
            2 => rng.within(1..=(*span).max(1)),
            _ => *span,
        };
        if side >= 1 && places * side <= MOST_PLACES {
            places *= side;
            sides.push((axis.clone(), side));
        }
    }
    sides
}

/// A permutation of `0..length`.
pub(crate) fn permutation(rng: &mut Rng, length: usize) -> Vec<usize> {
    let mut permutation: Vec<usize> = (0..length).collect();
    rng.shuffle(&mut permutation);
    permutation
}

/// A place as a user might write it: some axes at 0 are omitted, and one may be added.
pub(crate) fn named(rng: &mut Rng, mut place: Coord) -> Coord {
    place.retain(|_, position| *position != 0 || rng.percent(50));
    if rng.percent(20) {
        let axis = axis(rng);
        place.entry(axis).or_insert(0);
    }
    place
}
