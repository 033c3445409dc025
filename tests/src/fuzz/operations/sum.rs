//! Direct sums of layouts, and the search for their addends.

use tilewright::layout::TileLayout;

use super::parts::{Built, built, judge_part, shaped};
use crate::fuzz::brute::{Places, agree, axes_of, groups};
use crate::fuzz::generate;
use crate::fuzz::interleave::{Scaled, Shapes};
use crate::fuzz::judge::{Outcome, judge};
use crate::rng::Rng;

/// Fails unless `whole` is the sum of the two according to the definition.
fn is_sum(whole: &TileLayout, left: &TileLayout, right: &TileLayout, shapes: Shapes<'_>) -> Result<(), String> {
    let axes = axes_of(&[whole, left, right]);
    let expected = shapes.combined(&Places::of(left, &axes), &Places::of(right, &axes), Scaled::No);
    agree(&Places::of(whole, &axes), &expected).map_err(|what| format!("{whole}: {what}"))
}

/// `sum(x0, y0, x1, y1, ..) = left(x) + right(y)`.
pub(crate) fn direct_sum(rng: &mut Rng) -> Outcome {
    let (axes, rank) = (generate::axes(rng), rng.within(1..=3) as usize);
    let (right, right_shape) = shaped(rng, &axes, rank, 24);
    let (left, mut left_shape) = shaped(rng, &axes, rank, 12);
    if rng.percent(4) {
        left_shape.insert(0, 1);
    }
    let same_rank = left_shape.len() == right_shape.len();
    let legal = same_rank && groups(&left, &left_shape) && groups(&right, &right_shape);
    let call = || format!("`{right}`.direct_sum({right_shape:?}, `{left}`, {left_shape:?})");
    judge(&call, right.direct_sum(&right_shape, &left, &left_shape), legal, |whole| {
        is_sum(&whole, &left, &right, Shapes { outer: &left_shape, inner: &right_shape })
    })
}

/// `concatenate(b)(|b|*x + y) = self(x) + b(y)`.
pub(crate) fn concatenate(rng: &mut Rng) -> Outcome {
    let (left, right) = (generate::layout_of(rng, 16), generate::layout_of(rng, 16));
    let call = || format!("`{left}`.concatenate(`{right}`)");
    judge(&call, left.concatenate(&right), true, |whole| {
        let shapes = Shapes { outer: &[left.size()], inner: &[right.size()] };
        is_sum(&whole, &left, &right, shapes)
    })
}

/// The left addend that is found makes the sum; if one exists, it is found.
pub(crate) fn is_direct_sum_right(rng: &mut Rng) -> Outcome {
    let Built { inner: right, outer_shape, inner_shape, whole, is_true, .. } = built(rng, Scaled::No)?;
    let shapes = Shapes { outer: &outer_shape, inner: &inner_shape };
    let interleaved = shapes.interleaved();
    let call = || format!("`{right}`.is_direct_sum_right({inner_shape:?}, `{whole}`, {interleaved:?})");
    let axes = axes_of(&[&whole, &right]);
    let part = || shapes.outer_part(&Places::of(&whole, &axes), &Places::of(&right, &axes), Scaled::No);
    let found = right.is_direct_sum_right(&inner_shape, &whole, &interleaved);
    judge_part(&call, found, groups(&whole, &interleaved), is_true, part, |left| is_sum(&whole, left, &right, shapes))
}

/// The right addend that is found makes the sum; if one exists, it is found.
pub(crate) fn is_direct_sum_left(rng: &mut Rng) -> Outcome {
    let Built { outer: left, outer_shape, inner_shape, whole, is_true, .. } = built(rng, Scaled::No)?;
    let shapes = Shapes { outer: &outer_shape, inner: &inner_shape };
    let interleaved = shapes.interleaved();
    let call = || format!("`{left}`.is_direct_sum_left({outer_shape:?}, `{whole}`, {interleaved:?})");
    let axes = axes_of(&[&whole, &left]);
    let part = || shapes.inner_part(&Places::of(&whole, &axes), &Places::of(&left, &axes), Scaled::No);
    let found = left.is_direct_sum_left(&outer_shape, &whole, &interleaved);
    judge_part(&call, found, groups(&whole, &interleaved), is_true, part, |right| is_sum(&whole, &left, right, shapes))
}
