//! The elements at a place, and the elements that an owner holds.

use std::collections::BTreeSet;

use tilewright::layout::{Axis, ComposeLayout, Coord, Layout, TileLayout};

use super::kinds::{self, sets_of};
use crate::fuzz::brute::{Place, Places, axes_of, coord, rows};
use crate::fuzz::generate;
use crate::fuzz::judge::{Outcome, answered};
use crate::rng::Rng;

/// A place, usually one that holds an element.
fn some_place(rng: &mut Rng, layout: &TileLayout) -> Coord {
    let axes = axes_of(&[layout]);
    let places = Places::of(layout, &axes);
    let element = rng.below(places.base.len());
    let mut place: Place = rng.pick(&places.set(element)).clone();
    if !place.is_empty() && rng.percent(25) {
        let at = rng.below(place.len());
        place[at] += rng.within(-2..=2);
    }
    let mut place = generate::named(rng, coord(&place, &axes));
    if rng.percent(4) {
        let axis = generate::axis(rng);
        place.insert(axis, rng.within(0..=3));
    }
    place
}

/// The elements at a place, in order; axes that it does not name count as 0.
pub(crate) fn elements_at(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let place = some_place(rng, &layout);
    let axes = axes_of(&[&layout]);
    let outside = place.iter().any(|(axis, position)| *position != 0 && !axes.contains(axis));
    let wanted = rows(std::slice::from_ref(&place), &axes).concat();
    let held = Places::of(&layout, &axes).held();
    let expected = held.get(&wanted).filter(|_| !outside).cloned().unwrap_or_default();
    answered(&|| format!("`{layout}`.elements_at({place:?})"), layout.elements_at(&place), &expected)
}

/// The same for a swizzle or a table, for a place and for an owner.
pub(crate) fn elements_of_any(rng: &mut Rng) -> Outcome {
    let tile = generate::memory(rng, 48);
    let layout = match rng.below(2) {
        0 => kinds::listed(&tile),
        _ => Layout::Compose(ComposeLayout::new(kinds::swizzle(rng), tile.clone()).expect("positions from 0 on")),
    };
    let place = some_place(rng, &tile);
    let mut owner = place.clone();
    owner.retain(|_, _| rng.percent(50));
    let axes: BTreeSet<Axis> = layout.axes().into_iter().chain(place.keys().cloned()).collect();
    let axes: Vec<Axis> = axes.into_iter().collect();
    let sets = sets_of(&layout, &axes);
    let wanted = rows(std::slice::from_ref(&place), &axes).concat();
    let is_owned = |at: &Place| axes.iter().zip(at).all(|(axis, at)| owner.get(axis).is_none_or(|wanted| wanted == at));
    let here = |element: &i64| sets[*element as usize].contains(&wanted);
    let owned = |element: &i64| sets[*element as usize].iter().any(is_owned);
    let all = 0..layout.size();
    let expected: (Vec<i64>, Vec<i64>) = (all.clone().filter(here).collect(), all.filter(owned).collect());
    let call = || format!("{}: elements_at({place:?}), elements_of({owner:?})", kinds::layout_text(&layout));
    let got = layout.elements_at(&place).and_then(|at| Ok((at, layout.elements_of(&owner)?)));
    answered(&call, got, &expected)
}

/// The elements with a place at these positions on the owner's axes, at any position on the other axes.
pub(crate) fn elements_of(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let mut owner = some_place(rng, &layout);
    owner.retain(|_, _| rng.percent(60));
    let axes = axes_of(&[&layout]);
    let outside = owner.iter().any(|(axis, position)| *position != 0 && !axes.contains(axis));
    let held_by =
        |place: &Place| axes.iter().zip(place).all(|(axis, at)| owner.get(axis).is_none_or(|wanted| wanted == at));
    let places = Places::of(&layout, &axes);
    let holds = |element: &i64| !outside && places.set(*element as usize).iter().any(held_by);
    let expected: Vec<i64> = (0..layout.size()).filter(holds).collect();
    answered(&|| format!("`{layout}`.elements_of({owner:?})"), layout.elements_of(&owner), &expected)
}
