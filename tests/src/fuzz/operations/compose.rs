//! Composition of layouts.

use std::collections::BTreeSet;

use tilewright::layout::axis::M;
use tilewright::layout::{Axis, Iter, Layout, LayoutError, TileLayout};

use super::kinds::{self, Sets, sets_of};
use crate::fuzz::affine::is_layout;
use crate::fuzz::brute::{Place, axes_of, extents_of};
use crate::fuzz::generate;
use crate::fuzz::judge::{Ended, Outcome, equal, judge};
use crate::rng::Rng;

/// Flat indices into a tile with these extents: iters that step over whole digits, or anything that stays in bounds.
fn indices(rng: &mut Rng, extents: &[i64], size: i64) -> TileLayout {
    let inner = if rng.percent(75) { along_digits(rng, extents) } else { anywhere(rng, size) };
    match rng.below(25) {
        0 => inner.renamed(&M, &Axis::named("mine")).expect("small numbers"),
        1 => moved(&inner, size),
        _ => inner,
    }
}

fn along_digits(rng: &mut Rng, extents: &[i64]) -> TileLayout {
    let shape = generate::shape(rng, extents);
    let (mut shard, mut replica, mut start, mut behind) = (Vec::new(), Vec::new(), 0, 1);
    for &extent in shape.iter().rev() {
        let walk = Iter::memory(extent, behind);
        match rng.below(8) {
            0..=4 => shard.push(walk),
            5 if extent <= 4 => replica.push(walk),
            _ => start += behind * rng.within(0..=extent - 1),
        }
        behind *= extent;
    }
    if rng.percent(50) {
        shard.reverse();
    } else {
        rng.shuffle(&mut shard);
    }
    if rng.percent(15) {
        shard.push(Iter::memory(2, 0));
    }
    TileLayout::new(shard, replica, [(M, start)]).expect("small numbers")
}

fn anywhere(rng: &mut Rng, size: i64) -> TileLayout {
    let inner = generate::memory(rng, 24);
    let fits = |layout: &TileLayout| layout.span_on(&M) <= size;
    if fits(&inner) {
        return inner;
    }
    let stride = rng.within(1..=3);
    let extent = rng.within(1..=(size - 1) / stride + 1);
    let start = rng.within(0..=size - 1 - (extent - 1) * stride);
    TileLayout::new(vec![Iter::memory(extent, stride)], Vec::new(), [(M, start)]).expect("small numbers")
}

/// The same layout of indices, offset by `size`.
fn moved(layout: &TileLayout, size: i64) -> TileLayout {
    let offset = [(M, layout.offset_on(&M) + size)];
    TileLayout::new(layout.shard().to_vec(), layout.replica().to_vec(), offset).expect("small numbers")
}

/// For every element of the inner layout, the union of the outer sets at its places. `None` if some are out of bounds.
fn composed(outer: &Sets, inner: &Sets) -> Option<Sets> {
    let one = |places: &BTreeSet<Place>| -> Option<BTreeSet<Place>> {
        let sets = places.iter().map(|place| outer.get(usize::try_from(place[0]).ok()?));
        let sets: Option<Vec<&BTreeSet<Place>>> = sets.collect();
        Some(sets?.into_iter().flatten().cloned().collect())
    };
    inner.iter().map(one).collect()
}

/// True if no iter has an effect on an axis other than `m`.
fn only_memory(layout: &Layout) -> bool {
    let axes: Vec<Axis> = layout.axes().into_iter().filter(|axis| *axis != M).collect();
    sets_of(layout, &axes).iter().flatten().all(|place| place.iter().all(|position| *position == 0))
}

/// `compose(b)(x)` is the union of `self(i)` over the positions `i` of `b(x)`; refused only if no layout expresses it.
pub(crate) fn compose(rng: &mut Rng) -> Outcome {
    let outer = generate::layout(rng);
    let inner = indices(rng, &extents_of(&outer), outer.size());
    let (outer_kind, inner_kind) = (Layout::Tile(outer.clone()), Layout::Tile(inner.clone()));
    let axes = axes_of(&[&outer]);
    let expected =
        composed(&sets_of(&outer_kind, &axes), &sets_of(&inner_kind, &[M])).filter(|_| only_memory(&inner_kind));
    let call = || format!("`{outer}`.compose(`{inner}`)");
    match (outer.compose(&inner), &expected) {
        (Err(error @ LayoutError::Algebra { .. }), Some(sets)) if !is_layout(sets) => Ok(Ended::Refused(error.code())),
        (Err(LayoutError::Algebra { .. }), Some(_)) if !inner.replica().is_empty() => Ok(Ended::Refused("copies")),
        (answer, _) => {
            judge(&call, answer, expected.is_some(), |got| equal(&Some(sets_of(&Layout::Tile(got), &axes)), &expected))
        }
    }
}

/// The same for any kinds of layout; refused only if the inner one leaves the bounds of the outer one.
pub(crate) fn compose_any(rng: &mut Rng) -> Outcome {
    let outer = kinds::any(rng, 64);
    let extents = outer.tile().map_or_else(|_| vec![outer.size()], extents_of);
    let tile = indices(rng, &extents, outer.size());
    let inner = match rng.below(3) {
        0 => kinds::listed(&tile),
        _ => Layout::Tile(tile),
    };
    let axes: Vec<Axis> = outer.axes().into_iter().collect();
    let expected = composed(&sets_of(&outer, &axes), &sets_of(&inner, &[M])).filter(|_| only_memory(&inner));
    let call = || format!("{}.compose({})", kinds::layout_text(&outer), kinds::layout_text(&inner));
    judge(&call, outer.compose(&inner), expected.is_some(), |got| equal(&Some(sets_of(&got, &axes)), &expected))
}
