//! Comparisons of two layouts.

use std::collections::BTreeSet;

use tilewright::layout::{Axis, TileLayout};

use crate::fuzz::brute::{Place, Places, axes_of};
use crate::fuzz::generate;
use crate::fuzz::judge::{Outcome, accept, answered, equal, judge};
use crate::fuzz::vary::{perturbed, respelled};
use crate::rng::Rng;

/// Two layouts that are equal or nearly so; a few have different sizes.
pub(crate) fn pair(rng: &mut Rng) -> (TileLayout, TileLayout) {
    let one = generate::layout(rng);
    let other = match rng.below(20) {
        0 => generate::of_size(rng, one.size() + 1),
        1..=3 => generate::of_size(rng, one.size()),
        4..=8 => respelled(rng, &one),
        9..=14 => perturbed(rng, &one),
        _ => {
            let other = perturbed(rng, &one);
            respelled(rng, &other)
        }
    };
    (one, other)
}

/// The places of both layouts, over the axes of both.
fn both(one: &TileLayout, other: &TileLayout) -> (Places, Places) {
    let axes = axes_of(&[one, other]);
    (Places::of(one, &axes), Places::of(other, &axes))
}

/// Every element has the same set of places in both.
pub(crate) fn same_places(rng: &mut Rng) -> Outcome {
    let (one, other) = pair(rng);
    let (here, there) = both(&one, &other);
    answered(&|| format!("`{one}`.same_places(`{other}`)"), one.same_places(&other), &(here == there))
}

/// The first copy of every element (at the least offset on every axis) has the same place in both.
pub(crate) fn same_up_to_replicas(rng: &mut Rng) -> Outcome {
    let (one, other) = pair(rng);
    let (here, there) = both(&one, &other);
    let call = || format!("`{one}`.same_up_to_replicas(`{other}`)");
    accept(&call, equal(&one.same_up_to_replicas(&other), &(here.base == there.base)))
}

/// The first element whose sets of places differ; refused if and only if the sizes differ.
pub(crate) fn first_difference(rng: &mut Rng) -> Outcome {
    let (one, other) = pair(rng);
    let (here, there) = both(&one, &other);
    let call = || format!("`{one}`.first_difference(`{other}`)");
    judge(&call, one.first_difference(&other), one.size() == other.size(), |found| {
        equal(&found, &here.first_difference(&there).map(|element| element as i64))
    })
}

/// Every thread that holds an element in the other layout holds it in this one; refused if and only if the sizes
/// differ.
pub(crate) fn contains(rng: &mut Rng) -> Outcome {
    let (here, there) = pair(rng);
    let here = if rng.percent(50) { respelled(rng, &there) } else { here };
    let there = match TileLayout::new(there.shard().to_vec(), Vec::new(), there.offset().clone()) {
        Ok(first) if rng.percent(50) => first,
        _ => there,
    };
    let call = || format!("`{here}`.contains(`{there}`)");
    judge(&call, here.contains(&there), here.size() == there.size(), |contains| {
        let axes: Vec<Axis> = axes_of(&[&here, &there]).into_iter().filter(Axis::is_unit).collect();
        let (holders, needed) = (Places::of(&here, &axes), Places::of(&there, &axes));
        let held = |element: usize| {
            let holders: BTreeSet<Place> = holders.set(element).into_iter().collect();
            needed.set(element).iter().all(|place| holders.contains(place))
        };
        equal(&contains, &(0..needed.base.len()).all(held))
    })
}
