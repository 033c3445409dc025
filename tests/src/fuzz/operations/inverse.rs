//! Inverses, from places to elements, and complements.

use std::collections::BTreeMap;

use tilewright::layout::axis::M;
use tilewright::layout::{Axis, Coord, Inverse, Iter, TileLayout};

use crate::fuzz::brute::{Place, Places, axes_of, coord, digits, rows, volume};
use crate::fuzz::generate;
use crate::fuzz::judge::{Outcome, ensure, equal, error_text, judge};
use crate::rng::Rng;

/// The extent of the positions on the axis if the strides nest without overlap, starting at 0; otherwise `None`.
fn nested_end(layout: &TileLayout, axis: &Axis) -> Option<i64> {
    let layout = layout.canonicalize();
    let all = layout.shard().iter().chain(layout.replica());
    let mut iters: Vec<&Iter> = all.filter(|iter| iter.axis == *axis && iter.extent > 1 && iter.stride != 0).collect();
    iters.sort_by_key(|iter| iter.stride);
    let mut end = 1;
    for iter in iters {
        if iter.stride < 1 || iter.stride % end != 0 {
            return None;
        }
        end = iter.stride * iter.extent;
    }
    (layout.offset_on(axis) == 0).then_some(end)
}

/// Every position of `0..bound` is `p + complement(y)` for exactly one position `p` of the layout and one `y`.
pub(crate) fn complement(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let layout = if rng.percent(60) {
        TileLayout::new(layout.shard().to_vec(), Vec::new(), []).map_err(error_text)?
    } else {
        layout
    };
    let axis = generate::axis_of(rng, &layout);
    let end = nested_end(&layout, &axis);
    let bound = match end {
        Some(end) if rng.percent(85) => end * rng.within(1..=4),
        _ => rng.within(-1..=64),
    };
    let legal = end.is_some_and(|end| bound >= 1 && bound % end == 0);
    let call = || format!("`{layout}`.complement({axis}, {bound})");
    judge(&call, layout.complement(&axis, bound), legal, |free| {
        ensure(axes_of(&[&free]).iter().all(|other| *other == axis), || format!("{free} uses another axis"))?;
        let on_axis = std::slice::from_ref(&axis);
        let free = Places::of(&free, on_axis);
        let mut made: Vec<i64> = Vec::new();
        for here in Places::of(&layout, on_axis).all() {
            made.extend((0..free.base.len()).flat_map(|y| free.set(y)).map(|there| here[0] + there[0]));
        }
        made.sort_unstable();
        equal(&made, &(0..bound).collect())
    })
}

/// Places of a layout, and some places near them.
fn samples(rng: &mut Rng, places: &Places, held: &BTreeMap<Place, Vec<i64>>) -> Vec<Place> {
    let columns = places.base[0].len();
    let mut samples: Vec<Place> = held.keys().step_by(1 + held.len() / 40).cloned().collect();
    for _ in 0..20 {
        let near = |column: usize| rng.within(places.least(column) - 2..=places.greatest(column) + 2);
        samples.push((0..columns).map(near).collect());
    }
    samples
}

/// Fails unless the inverse returns the least element at each place, and none elsewhere.
fn inverts(
    inverse: &Inverse,
    samples: &[Place],
    held: &BTreeMap<Place, Vec<i64>>,
    axes: &[Axis],
) -> Result<(), String> {
    for place in samples {
        let expected = held.get(place).map(|elements| elements[0]);
        let got = inverse.element_at(&coord(place, axes));
        ensure(got == expected, || format!("{inverse}: at {place:?} got {got:?}, expected {expected:?}"))?;
        let moving: Coord = coord(place, axes).into_iter().filter(|(_, position)| *position != 0).collect();
        ensure(inverse.element_at(&moving) == expected, || format!("{inverse}: at {place:?} without axes at 0"))?;
    }
    Ok(())
}

/// The checks shared by both inverses: each place, and the box of the layout.
fn check_inverse(rng: &mut Rng, layout: &TileLayout, inverse: Inverse) -> Result<(), String> {
    let axes = axes_of(&[layout]);
    let places = Places::of(layout, &axes);
    let held = places.held();
    let samples = samples(rng, &places, &held);
    inverts(&inverse, &samples, &held, &axes)?;
    let sides: BTreeMap<Axis, i64> =
        axes.iter().enumerate().map(|(column, axis)| (axis.clone(), places.greatest(column) + 1)).collect();
    let inside = |place: &Place| place.iter().zip(&axes).all(|(position, axis)| (0..sides[axis]).contains(position));
    let samples: Vec<Place> = samples.into_iter().filter(inside).collect();
    inverts(&inverse.within(&sides), &samples, &held, &axes)
}

/// `left_inverse()(p) = x` for every place `p` of every element `x`; refused if and only if two elements share a place.
pub(crate) fn left_inverse(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let axes = axes_of(&[&layout]);
    let injective = Places::of(&layout, &axes).held().values().all(|elements| elements.len() == 1);
    let call = || format!("`{layout}`.left_inverse()");
    judge(&call, layout.left_inverse(), injective, |inverse| check_inverse(rng, &layout, inverse))
}

/// The least element at each place.
pub(crate) fn pseudo_inverse(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let call = || format!("`{layout}`.pseudo_inverse()");
    judge(&call, layout.pseudo_inverse(), true, |inverse| check_inverse(rng, &layout, inverse))
}

/// The least element at every place of a box; refused if and only if a place of the box has none.
pub(crate) fn right_inverse(rng: &mut Rng) -> Outcome {
    let layout = if rng.percent(50) { generate::dense(rng) } else { generate::layout(rng) };
    let axes = axes_of(&[&layout]);
    let places = Places::of(&layout, &axes);
    let spans: Vec<(Axis, i64)> =
        axes.iter().enumerate().map(|(column, axis)| (axis.clone(), places.greatest(column) + 1)).collect();
    let mut sides = generate::sides(rng, &spans);
    rng.shuffle(&mut sides);
    if rng.percent(4) {
        sides.extend(sides.first().cloned());
    }
    let named_once = sides.iter().enumerate().all(|(at, (axis, _))| sides[..at].iter().all(|(other, _)| other != axis));
    let shape: Vec<i64> = sides.iter().map(|(_, side)| *side).collect();
    let held = places.held();
    let least = |flat: usize| {
        let coordinate = digits(flat, &shape);
        let position = |axis: &Axis| sides.iter().position(|(other, _)| other == axis).map_or(0, |at| coordinate[at]);
        held.get(&axes.iter().map(position).collect::<Place>()).map(|elements| vec![elements[0]])
    };
    let expected: Option<Vec<Place>> = (0..volume(&shape) as usize).map(least).collect();
    let call = || format!("`{layout}`.right_inverse({sides:?})");
    judge(&call, layout.right_inverse(&sides), named_once && expected.is_some(), |inverse| {
        let element = |flat: i64| inverse.apply(flat).map(|coords| rows(&coords, &[M]).concat()).map_err(error_text);
        let got: Vec<Place> = (0..inverse.size()).map(element).collect::<Result<_, _>>()?;
        equal(&Some(got), &expected)
    })
}
