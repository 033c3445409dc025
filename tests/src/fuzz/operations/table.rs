//! Tables: a table of a tile must give the same answers as the tile.

use std::collections::BTreeMap;

use tilewright::layout::{Axis, Coord, Layout, LayoutError, TableLayout};

use super::compare;
use super::cover::some_box;
use super::kinds::{listed, sets_of, table};
use super::slice::{elements_of, is_inside};
use crate::fuzz::brute::{Places, axes_of, rows, volume};
use crate::fuzz::generate;
use crate::fuzz::judge::{Outcome, accept, answered, equal, error_text, judge};
use crate::rng::Rng;

/// A table returns the places that it was built from, and their spans.
pub(crate) fn apply(rng: &mut Rng) -> Outcome {
    let tile = generate::layout_of(rng, 64);
    let table = table(&tile);
    let axes = axes_of(&[&tile]);
    let places = Places::of(&tile, &axes);
    let element = if rng.percent(10) { tile.size() } else { rng.within(0..=tile.size() - 1) };
    let inside = element < tile.size();
    let call = || format!("the table of `{tile}`, element {element}");
    judge(&call, table.apply(element), inside, |coords| {
        equal(&table.axes().to_vec(), &axes)?;
        equal(&table.size(), &tile.size())?;
        let expected = places.set(element as usize);
        equal(&rows(&coords, &axes), &expected)?;
        for (column, axis) in axes.iter().enumerate() {
            equal(&table.position(element, axis), &expected[0][column])?;
            equal(&table.span_on(axis), &(places.greatest(column) + 1))?;
        }
        Ok(())
    })
}

/// The arguments of the queries.
#[derive(Debug)]
struct Question {
    axis: Axis,
    place: Coord,
    owner: Coord,
    sides: BTreeMap<Axis, i64>,
}

/// The answers of a layout to all queries.
fn answers(layout: &Layout, with: &Question) -> Result<String, LayoutError> {
    let Question { axis, place, owner, sides } = with;
    let cover = (layout.is_injective()?, layout.is_onto(sides)?, layout.is_bijective(sides)?);
    let sizes = (layout.size(), layout.axes(), layout.span_on(axis), layout.memory_span());
    let elements = (layout.elements_at(place)?, layout.elements_of(owner)?, layout.apply(0)?);
    let others = (layout.vector_width(axis)?, layout.replicated_over()?);
    Ok(format!("{cover:?} {sizes:?} {elements:?} {others:?}"))
}

/// All queries have the same answers for a tile and its table.
pub(crate) fn questions(rng: &mut Rng) -> Outcome {
    let tile = generate::layout_of(rng, 48);
    let (axis, sides) = (generate::axis_of(rng, &tile), some_box(rng, &tile));
    let place = tile.apply(rng.within(0..=tile.size() - 1)).map_err(error_text)?.remove(0);
    let mut owner = place.clone();
    owner.retain(|_, _| rng.percent(50));
    let question = Question { axis, place, owner, sides };
    let expected = answers(&Layout::Tile(tile.clone()), &question).map_err(error_text)?;
    let call = || format!("`{tile}` and its table, queried with {question:?}");
    answered(&call, answers(&listed(&tile), &question), &expected)
}

/// The first difference of two layouts, and whether one contains the other, do not depend on which of them is a table.
pub(crate) fn difference(rng: &mut Rng) -> Outcome {
    let (one, other) = compare::pair(rng);
    let axes = axes_of(&[&one, &other]);
    let (here, there) = (Places::of(&one, &axes), Places::of(&other, &axes));
    let (left, right) = match rng.below(3) {
        0 => (listed(&one), Layout::Tile(other.clone())),
        1 => (Layout::Tile(one.clone()), listed(&other)),
        _ => (listed(&one), listed(&other)),
    };
    let call = || format!("first_difference of `{one}` and `{other}` as tables");
    judge(&call, left.first_difference(&right), one.size() == other.size(), |found| {
        let expected = here.first_difference(&there).map(|element| element as i64);
        equal(&found, &expected)?;
        equal(&left.same_places(&right).map_err(error_text)?, &expected.is_none())?;
        equal(&left.contains(&right).map_err(error_text)?, &one.contains(&other).map_err(error_text)?)
    })
}

/// A table survives writing and parsing; some of its elements form another table.
pub(crate) fn text(rng: &mut Rng) -> Outcome {
    let tile = generate::layout_of(rng, 48);
    let table = table(&tile);
    let elements: Vec<i64> = (0..rng.within(1..=6)).map(|_| rng.within(0..=tile.size() - 1)).collect();
    let call = || format!("the table of `{tile}`, parsed again, and its elements {elements:?}");
    let check = || {
        let read = TableLayout::from_text(&table.to_text()).map_err(error_text)?;
        equal(&read, &table)?;
        equal(&read.digest(), &table.digest())?;
        let axes = axes_of(&[&tile]);
        let all = sets_of(&Layout::Table(table.clone()), &axes);
        let picked = sets_of(&Layout::Table(table.select(&elements).map_err(error_text)?), &axes);
        equal(&picked, &elements.iter().map(|&element| all[element as usize].clone()).collect())
    };
    accept(&call, check())
}

/// A slice of a table has the places of its region, for any shape.
pub(crate) fn slice(rng: &mut Rng) -> Outcome {
    let tile = generate::layout_of(rng, 64);
    let layout = listed(&tile);
    let mut shape = generate::factors(rng, tile.size());
    let region = generate::region(rng, &shape);
    if rng.percent(5) {
        shape.insert(0, 2);
    }
    let legal = volume(&shape) == tile.size() && region.len() == shape.len() && is_inside(&region, &shape);
    let call = || format!("the table of `{tile}`.slice({shape:?}, {region:?})");
    judge(&call, layout.slice(&shape, &region), legal, |got| {
        let axes = axes_of(&[&tile]);
        let all = sets_of(&layout, &axes);
        equal(&sets_of(&got, &axes), &elements_of(&region, &shape).iter().map(|&x| all[x].clone()).collect())
    })
}
