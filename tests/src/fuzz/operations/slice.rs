//! Regions of a tile.

use std::ops::Range;

use tilewright::expr::{Expr, Var};
use tilewright::layout::axis::M;
use tilewright::layout::{Layout, LayoutError, Piece, TileLayout};

use crate::fuzz::affine::is_affine;
use crate::fuzz::brute::{Places, agree, axes_of, element_at, extents_of, first_places, nest, volume};
use crate::fuzz::generate;
use crate::fuzz::judge::{Ended, Outcome, ensure, equal, judge};
use crate::rng::Rng;

/// True if every range is non-empty and in bounds.
pub(crate) fn is_inside(region: &[Range<i64>], shape: &[i64]) -> bool {
    region.iter().zip(shape).all(|(range, extent)| 0 <= range.start && range.start < range.end && range.end <= *extent)
}

/// The elements of a region, in row-major order of the region.
pub(crate) fn elements_of(region: &[Range<i64>], shape: &[i64]) -> Vec<usize> {
    let mut coordinates: Vec<Vec<i64>> = vec![Vec::new()];
    for range in region {
        let longer = |coordinate: &Vec<i64>| {
            range.clone().map(|index| coordinate.iter().copied().chain([index]).collect()).collect::<Vec<_>>()
        };
        coordinates = coordinates.iter().flat_map(longer).collect();
    }
    coordinates.iter().map(|coordinate| element_at(coordinate, shape)).collect()
}

/// Fails unless `got` has the same places as these elements of `layout`.
fn has_elements(got: &TileLayout, layout: &TileLayout, elements: &[usize]) -> Result<(), String> {
    let axes = axes_of(&[got, layout]);
    let expected = Places::of(layout, &axes).select(elements);
    agree(&Places::of(got, &axes), &expected).map_err(|what| format!("{got}: {what}"))
}

/// True if no layout has the places of these elements.
fn are_not_affine(layout: &TileLayout, elements: &[usize]) -> bool {
    let places = Places::of(layout, &axes_of(&[layout])).select(elements);
    !is_affine(&places.base)
}

/// `slice(x) = self(x + begin)` for every `x` of the region; refused only if no layout has these places.
pub(crate) fn slice(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let shape = generate::any_shape(rng, &layout);
    let region = generate::region(rng, &shape);
    let legal = is_inside(&region, &shape) && nest(&[&extents_of(&layout), &shape]);
    let call = || format!("`{layout}`.slice({shape:?}, {region:?})");
    match layout.slice(&shape, &region) {
        Err(error @ LayoutError::NotAffine { .. }) if legal => {
            ensure(are_not_affine(&layout, &elements_of(&region, &shape)), || format!("{}: {error}", call()))?;
            Ok(Ended::Refused(error.code()))
        }
        answer => judge(&call, answer, legal, |got| has_elements(&got, &layout, &elements_of(&region, &shape))),
    }
}

/// The pieces are boxes that partition the region, in order, each with the places of its elements.
pub(crate) fn pieces(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let shape = generate::any_shape(rng, &layout);
    let region = generate::region(rng, &shape);
    let legal = is_inside(&region, &shape) && nest(&[&extents_of(&layout), &shape]);
    let call = || format!("`{layout}`.pieces({shape:?}, {region:?})");
    judge(&call, layout.pieces(&shape, &region), legal, |pieces| {
        let starts: Vec<Vec<i64>> = pieces.iter().map(|p| p.region.iter().map(|range| range.start).collect()).collect();
        ensure(starts.is_sorted(), || format!("pieces begin at {starts:?}"))?;
        let mut covered: Vec<usize> = pieces.iter().flat_map(|piece| elements_of(&piece.region, &shape)).collect();
        covered.sort_unstable();
        equal(&covered, &elements_of(&region, &shape))?;
        let mut each = pieces.iter();
        each.try_for_each(|Piece { region, layout: piece }| has_elements(piece, &layout, &elements_of(region, &shape)))
    })
}

/// A tile placed at a symbolic start has, for every value of the start, the places of the region there.
pub(crate) fn place(rng: &mut Rng) -> Outcome {
    let layout = generate::memory(rng, 64);
    let shape = generate::any_shape(rng, &layout);
    let at = rng.below(shape.len());
    let mut region = generate::region(rng, &shape);
    let extent = if rng.percent(70) { generate::divisor(rng, shape[at]) } else { rng.within(1..=shape[at]) };
    let unit = if rng.percent(70) { extent } else { 1 };
    let last = (shape[at] - extent) / unit;
    let start = Var::new("start", 0, last);
    region[at] = 0..extent;
    let mut starts: Vec<Expr> = region.iter().map(|range| Expr::constant(range.start)).collect();
    starts[at] = Expr::var(&start) * unit;
    let extents: Vec<i64> = region.iter().map(|range| range.end - range.start).collect();
    let legal = is_inside(&region, &shape) && nest(&[&extents_of(&layout), &shape]);
    let call = || format!("`{layout}`.place({shape:?}, {starts:?}, {extents:?})");
    match Layout::Tile(layout.clone()).place(&shape, &starts, &extents) {
        Err(LayoutError::NotAffine { .. }) if legal => Ok(Ended::Refused("not affine")),
        answer => judge(&call, answer, legal, |placed| {
            let tile = placed.iters().ok_or("a tile of iters was listed")?;
            let positions = first_places(&layout, &[M]);
            for value in 0..=last {
                let mut moved = region.clone();
                moved[at] = value * unit..value * unit + extent;
                let expected: Vec<i64> = elements_of(&moved, &shape).iter().map(|&x| positions[x][0]).collect();
                let from = placed.start.eval(&|_| Some(value)).map_err(|error| error.to_string())?;
                let got: Vec<i64> = first_places(tile, &[M]).iter().map(|place| place[0] + from).collect();
                equal(&got, &expected)?;
            }
            equal(&volume(&extents), &tile.size())
        }),
    }
}
