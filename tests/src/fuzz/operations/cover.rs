//! Queries about the places that a layout uses.

use std::collections::{BTreeMap, BTreeSet};

use tilewright::layout::{Axis, Layout, TileLayout};

use super::kinds::{self, Sets, sets_of};
use crate::fuzz::brute::{Place, Places, axes_of};
use crate::fuzz::generate;
use crate::fuzz::judge::{Outcome, accept, answered, equal};
use crate::rng::Rng;

/// Spans, least positions and sizes, per axis and in total.
pub(crate) fn spans(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let axis = generate::axis_of(rng, &layout);
    let mut axes = axes_of(&[&layout]);
    let on_axis = std::slice::from_ref(&axis);
    let places = Places::of(&layout, on_axis);
    let (least, most) = (places.least(0), places.greatest(0));
    let extents = layout.shard().iter().filter(|iter| iter.axis == axis).map(|iter| iter.extent);
    let expected = (most + 1, least, most - least + 1, extents.product::<i64>());
    axes.retain(Axis::is_memory);
    let all = Places::of(&layout, &axes);
    let span = 1 + (0..axes.len()).map(|column| all.greatest(column)).sum::<i64>();
    let call = || format!("`{layout}`: span_on, least_on, cosize_on, size_on {axis}, span, size");
    let got = (layout.span_on(&axis), layout.least_on(&axis), layout.cosize_on(&axis), layout.size_on(&axis));
    let together = (layout.span(), layout.size());
    accept(&call, equal(&got, &expected).and_then(|()| equal(&together, &(span, all.base.len() as i64))))
}

/// Different elements never share a place.
pub(crate) fn is_injective(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let places = Places::of(&layout, &axes_of(&[&layout]));
    let single = places.held().values().all(|elements| elements.len() == 1);
    answered(&|| format!("`{layout}`.is_injective()"), layout.is_injective(), &single)
}

/// A box for a layout: sides close to its spans, on some of its axes and occasionally another.
pub(crate) fn some_box(rng: &mut Rng, layout: &TileLayout) -> BTreeMap<Axis, i64> {
    let axes = axes_of(&[layout]);
    let places = Places::of(layout, &axes);
    let mut spans: Vec<(Axis, i64)> =
        axes.iter().enumerate().map(|(column, axis)| (axis.clone(), places.greatest(column) + 1)).collect();
    if rng.percent(10) {
        let (axis, side) = (generate::axis(rng), rng.within(1..=2));
        spans.retain(|(other, _)| *other != axis);
        spans.push((axis, side));
    }
    generate::sides(rng, &spans).into_iter().collect()
}

/// The places of a box over a list of axes; axes that the box does not name are at 0.
fn places_of(sides: &BTreeMap<Axis, i64>, axes: &[Axis]) -> Vec<Place> {
    let mut places: Vec<Place> = vec![Vec::new()];
    for axis in axes {
        let side = sides.get(axis).copied().unwrap_or(1);
        let longer =
            |place: &Place| (0..side).map(|at| place.iter().copied().chain([at]).collect()).collect::<Vec<_>>();
        places = places.iter().flat_map(longer).collect();
    }
    places
}

/// The axes of a layout and of a box.
fn axes_with(layout: &Layout, sides: &BTreeMap<Axis, i64>) -> Vec<Axis> {
    layout.axes().into_iter().chain(sides.keys().cloned()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Properties of a box, by brute force.
struct Cover {
    /// Every place holds an element.
    onto: bool,
    /// Every place holds exactly one element, and every element is at exactly one place of the box.
    bijective: bool,
}

fn cover(sets: &Sets, sides: &BTreeMap<Axis, i64>, axes: &[Axis]) -> Cover {
    let places = places_of(sides, axes);
    let used: BTreeSet<&Place> = sets.iter().flatten().collect();
    let onto = places.iter().all(|place| used.contains(place));
    let single = sets.iter().all(|set| set.len() == 1) && used.len() == sets.len();
    Cover { onto, bijective: onto && single && used.len() == places.len() }
}

/// Every place of the box holds an element.
pub(crate) fn is_onto(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let sides = some_box(rng, &layout);
    let kind = Layout::Tile(layout.clone());
    let axes = axes_with(&kind, &sides);
    let expected = cover(&sets_of(&kind, &axes), &sides, &axes).onto;
    answered(&|| format!("`{layout}`.is_onto({sides:?})"), layout.is_onto(&sides), &expected)
}

/// Every place of the box holds exactly one element, and every element is at exactly one place of the box.
pub(crate) fn is_bijective(rng: &mut Rng) -> Outcome {
    let layout = if rng.percent(50) { generate::dense(rng) } else { generate::layout(rng) };
    let sides = some_box(rng, &layout);
    let kind = Layout::Tile(layout.clone());
    let axes = axes_with(&kind, &sides);
    let expected = cover(&sets_of(&kind, &axes), &sides, &axes).bijective;
    answered(&|| format!("`{layout}`.is_bijective({sides:?})"), layout.is_bijective(&sides), &expected)
}

/// The same queries for a swizzle or a table.
pub(crate) fn cover_of_any(rng: &mut Rng) -> Outcome {
    let layout = kinds::any(rng, 48);
    let bounds = match &layout {
        Layout::Tile(tile) => tile.clone(),
        Layout::Compose(compose) => compose.tile().clone(),
        Layout::Table(_) => generate::layout_of(rng, 16),
    };
    let sides = some_box(rng, &bounds);
    let axes = axes_with(&layout, &sides);
    let expected = cover(&sets_of(&layout, &axes), &sides, &axes);
    let call = || format!("{}: is_onto, is_bijective {sides:?}", kinds::layout_text(&layout));
    let got = layout.is_onto(&sides).and_then(|onto| Ok((onto, layout.is_bijective(&sides)?)));
    answered(&call, got, &(expected.onto, expected.bijective))
}

/// The axes on which an element has more than one place.
pub(crate) fn replicated_over(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let axes = axes_of(&[&layout]);
    let copies = Places::of(&layout, &axes).copies;
    let moves = |column: usize| copies.iter().any(|copy| copy[column] != 0);
    let expected: BTreeSet<Axis> = (0..axes.len()).filter(|&column| moves(column)).map(|c| axes[c].clone()).collect();
    accept(&|| format!("`{layout}`.replicated_over()"), equal(&layout.replicated_over(), &expected))
}

/// True if every aligned group of `width` elements is contiguous on an axis and begins at a multiple of `width`.
fn has_runs(sets: &Sets, column: usize, width: usize) -> bool {
    let moved = |set: &BTreeSet<Place>, step: usize| -> BTreeSet<Place> {
        let move_on = |place: &Place| {
            let mut moved = place.clone();
            moved[column] += step as i64;
            moved
        };
        set.iter().map(move_on).collect()
    };
    sets.chunks(width).all(|group| {
        let aligned = group[0].iter().all(|place| place[column] % width as i64 == 0);
        aligned && group.iter().enumerate().all(|(step, set)| *set == moved(&group[0], step))
    })
}

/// The greatest divisor of the size that is a valid vector width for all elements.
pub(crate) fn vector_width(rng: &mut Rng) -> Outcome {
    let layout = kinds::any(rng, 64);
    let mut axes: Vec<Axis> = layout.axes().into_iter().collect();
    let axis = if axes.is_empty() || rng.percent(10) { generate::axis(rng) } else { rng.pick(&axes).clone() };
    if !axes.contains(&axis) {
        axes.push(axis.clone());
    }
    let column = axes.iter().position(|other| *other == axis).unwrap_or(0);
    let sets = sets_of(&layout, &axes);
    let divides = |width: &usize| sets.len().is_multiple_of(*width);
    let expected = (1..=sets.len()).filter(divides).filter(|width| has_runs(&sets, column, *width)).max().unwrap_or(1);
    let call = || format!("{}.vector_width({axis})", kinds::layout_text(&layout));
    answered(&call, layout.vector_width(&axis), &(expected as i64))
}
