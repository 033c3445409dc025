//! Tilings, and the search for their parts.

use tilewright::layout::TileLayout;

use super::parts::{Built, built, judge_part, shaped};
use crate::fuzz::brute::{Places, agree, axes_of, groups};
use crate::fuzz::generate;
use crate::fuzz::interleave::{Scaled, Shapes};
use crate::fuzz::judge::{Outcome, error_text, judge};
use crate::rng::Rng;

/// Fails unless `whole` is the tiling of the two according to the definition.
fn is_tiling(whole: &TileLayout, outer: &TileLayout, inner: &TileLayout, shapes: Shapes<'_>) -> Result<(), String> {
    let axes = axes_of(&[whole, outer, inner]);
    let expected = shapes.combined(&Places::of(outer, &axes), &Places::of(inner, &axes), Scaled::Yes);
    agree(&Places::of(whole, &axes), &expected).map_err(|what| format!("{whole}: {what}"))
}

/// `tile(x0, y0, ..) = D_outer(x) * span + r + O + inner(y)`.
pub(crate) fn tile(rng: &mut Rng) -> Outcome {
    let (axes, rank) = (generate::axes(rng), rng.within(1..=3) as usize);
    let (inner, inner_shape) = shaped(rng, &axes, rank, 24);
    let (outer, mut outer_shape) = shaped(rng, &axes, rank, 12);
    if rng.percent(4) {
        outer_shape.push(1);
    }
    let same_rank = outer_shape.len() == inner_shape.len();
    let legal = same_rank && groups(&inner, &inner_shape) && groups(&outer, &outer_shape);
    let call = || format!("`{inner}`.tile({inner_shape:?}, `{outer}`, {outer_shape:?})");
    judge(&call, inner.tile(&inner_shape, &outer, &outer_shape), legal, |whole| {
        is_tiling(&whole, &outer, &inner, Shapes { outer: &outer_shape, inner: &inner_shape })
    })
}

/// The tiling with a row-major outer layout on linear memory.
pub(crate) fn tile_to(rng: &mut Rng) -> Outcome {
    let (axes, rank) = (generate::axes(rng), rng.within(1..=3) as usize);
    let (inner, shape) = shaped(rng, &axes, rank, 24);
    let repeats: Vec<i64> = shape.iter().map(|_| rng.within(1..=3)).collect();
    let mut to_shape: Vec<i64> = shape.iter().zip(&repeats).map(|(extent, repeat)| extent * repeat).collect();
    if rng.percent(15) {
        to_shape[0] += 1;
    }
    let divides = to_shape.iter().zip(&shape).all(|(whole, part)| whole % part == 0);
    let outer_shape: Vec<i64> = to_shape.iter().zip(&shape).map(|(whole, part)| whole / part).collect();
    let outer = TileLayout::row_major(&outer_shape).map_err(error_text)?;
    let call = || format!("`{inner}`.tile_to({shape:?}, {to_shape:?})");
    judge(&call, inner.tile_to(&shape, &to_shape), divides && groups(&inner, &shape), |whole| {
        is_tiling(&whole, &outer, &inner, Shapes { outer: &outer_shape, inner: &shape })
    })
}

/// `product(o)(|self|*x + y) = D_o(x) * span + r + O + self(y)`.
pub(crate) fn product(rng: &mut Rng) -> Outcome {
    let (inner, outer) = (generate::layout_of(rng, 24), generate::layout_of(rng, 12));
    let call = || format!("`{inner}`.product(`{outer}`)");
    judge(&call, inner.product(&outer), true, |whole| {
        let shapes = Shapes { outer: &[outer.size()], inner: &[inner.size()] };
        is_tiling(&whole, &outer, &inner, shapes)
    })
}

/// The outer layout that is found makes the tiling; if one exists, it is found.
pub(crate) fn is_tile_inner(rng: &mut Rng) -> Outcome {
    let Built { inner, outer_shape, inner_shape, whole, is_true, .. } = built(rng, Scaled::Yes)?;
    let shapes = Shapes { outer: &outer_shape, inner: &inner_shape };
    let tiled_shape = shapes.whole();
    let call = || format!("`{inner}`.is_tile_inner({inner_shape:?}, `{whole}`, {tiled_shape:?})");
    let axes = axes_of(&[&whole, &inner]);
    let part = || shapes.outer_part(&Places::of(&whole, &axes), &Places::of(&inner, &axes), Scaled::Yes);
    let found = inner.is_tile_inner(&inner_shape, &whole, &tiled_shape);
    judge_part(&call, found, groups(&whole, &shapes.interleaved()), is_true, part, |outer| {
        is_tiling(&whole, outer, &inner, shapes)
    })
}

/// The inner tile that is found makes the tiling; if one exists, it is found.
pub(crate) fn is_tile_outer(rng: &mut Rng) -> Outcome {
    let Built { outer, outer_shape, inner_shape, whole, is_true, .. } = built(rng, Scaled::Yes)?;
    let shapes = Shapes { outer: &outer_shape, inner: &inner_shape };
    let tiled_shape = shapes.whole();
    let call = || format!("`{outer}`.is_tile_outer({outer_shape:?}, `{whole}`, {tiled_shape:?})");
    let axes = axes_of(&[&whole, &outer]);
    let part = || shapes.inner_part(&Places::of(&whole, &axes), &Places::of(&outer, &axes), Scaled::Yes);
    let found = outer.is_tile_outer(&outer_shape, &whole, &tiled_shape);
    judge_part(&call, found, groups(&whole, &shapes.interleaved()), is_true, part, |inner| {
        is_tiling(&whole, &outer, inner, shapes)
    })
}
