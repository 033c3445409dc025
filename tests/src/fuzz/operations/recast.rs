//! The same bytes as elements of a different width.

use tilewright::layout::axis::{M, REG, TCOL};
use tilewright::layout::{Axis, Iter, TileLayout};

use crate::fuzz::brute::{Place, Places, agree, axes_of};
use crate::fuzz::generate;
use crate::fuzz::judge::{Outcome, judge};
use crate::rng::Rng;

/// Scales positions on axes that count elements to elements `count` times narrower.
pub(crate) fn narrower(places: &Places, axes: &[Axis], count: i64) -> Places {
    let scale = |axis: &Axis| if axis.counts_elements() { count } else { 1 };
    places.mapped(|place| place.iter().zip(axes).map(|(position, axis)| position * scale(axis)).collect())
}

/// The axis on which an element is split: that of the last shard iter that counts elements, or `m`.
fn element_axis(layout: &TileLayout) -> Axis {
    let counting = layout.shard().iter().rev().find(|iter| iter.axis.counts_elements());
    counting.map_or(M, |iter| iter.axis.clone())
}

/// The places of the `count` narrower elements into which every element is split, adjacent on `axis`.
fn unpacked(layout: &TileLayout, axes: &[Axis], count: i64, axis: &Axis) -> Places {
    let wide = narrower(&Places::of(layout, axes), axes, count);
    let part = |place: &Place, k: i64| -> Place {
        place.iter().zip(axes).map(|(position, on)| if on == axis { position + k } else { *position }).collect()
    };
    let base = wide.base.iter().flat_map(|place| (0..count).map(move |k| part(place, k))).collect();
    Places { base, copies: wide.copies.clone() }
}

/// `unpack(n)(n*x + k) = n * self(x) + k` on axes that count elements.
pub(crate) fn unpack(rng: &mut Rng) -> Outcome {
    let layout = generate::layout_of(rng, 64);
    let count = *rng.pick(&[1, 2, 2, 3, 4, 4, 8, 0, -2]);
    let call = || format!("`{layout}`.unpack({count})");
    judge(&call, layout.unpack(count), count >= 1, |got| {
        let axis = element_axis(&layout);
        let axes = axes_of(&[&layout, &got, &TileLayout::one()]);
        agree(&Places::of(&got, &axes), &unpacked(&layout, &axes, count, &axis))
            .map_err(|what| format!("{got}: {what}"))
    })
}

/// A layout in which groups of `count` adjacent elements can be joined; all other strides are multiples of `count`.
pub(crate) fn packable(rng: &mut Rng, layout: &TileLayout, count: i64, axis: Axis) -> TileLayout {
    let scale = |axis: &Axis| if axis.counts_elements() { count } else { 1 };
    let wider = |iter: &Iter| Iter { stride: iter.stride * scale(&iter.axis), ..iter.clone() };
    let mut shard: Vec<Iter> = layout.shard().iter().map(wider).collect();
    shard.push(Iter { extent: count * rng.within(1..=3), stride: 1, axis });
    let offset: Vec<(Axis, i64)> =
        layout.offset().iter().map(|(axis, value)| (axis.clone(), value * scale(axis))).collect();
    TileLayout::new(shard, layout.replica().iter().map(wider).collect(), offset).expect("small numbers")
}

/// True if the last iter consists of whole groups of `count`, and all else that counts elements is a multiple of
/// `count`.
pub(crate) fn packs(layout: &TileLayout, count: i64) -> bool {
    packs_as_written(layout, count) || packs_as_written(&layout.canonicalize(), count)
}

fn packs_as_written(layout: &TileLayout, count: i64) -> bool {
    let Some((last, outer)) = layout.shard().split_last() else { return count == 1 };
    let divides = |axis: &Axis, value: i64| !axis.counts_elements() || value % count == 0;
    let neighbours = || last.axis.counts_elements() && last.stride == 1 && last.extent % count == 0;
    let multiples = || outer.iter().chain(layout.replica()).all(|iter| divides(&iter.axis, iter.stride));
    let begins = || layout.offset().iter().all(|(axis, value)| divides(axis, *value));
    count == 1 || (count > 1 && neighbours() && multiples() && begins())
}

/// `count * pack(n)(x) = self(n*x)` on axes that count elements.
pub(crate) fn pack(rng: &mut Rng) -> Outcome {
    let mut layout = generate::layout_of(rng, 48);
    let count = *rng.pick(&[1, 2, 2, 3, 4, 8]);
    if rng.percent(75) {
        let axis = rng.pick(&[M, M, REG, TCOL]).clone();
        layout = packable(rng, &layout, count, axis);
    }
    let count = if rng.percent(4) { *rng.pick(&[0, -1]) } else { count };
    let call = || format!("`{layout}`.pack({count})");
    judge(&call, layout.pack(count), packs(&layout, count), |got| {
        let axes = axes_of(&[&layout, &got]);
        let first: Vec<usize> = (0..got.size()).map(|x| (x * count) as usize).collect();
        let expected = Places::of(&layout, &axes).select(&first);
        agree(&narrower(&Places::of(&got, &axes), &axes, count), &expected).map_err(|what| format!("{got}: {what}"))
    })
}
