//! Shard iters reordered, repeated or omitted.

use tilewright::layout::{Axis, TileLayout};

use crate::fuzz::brute::{Places, agree, axes_of, digits, element_at, extents_of, volume};
use crate::fuzz::generate;
use crate::fuzz::judge::{Outcome, accept, ensure, equal, error_text, judge};
use crate::rng::Rng;

/// Fails unless element `x` of `got` has the places of element `from(x)` of `layout`.
fn comes_from(got: &TileLayout, layout: &TileLayout, from: impl Fn(usize) -> usize) -> Result<(), String> {
    let axes = axes_of(&[got, layout]);
    let from: Vec<usize> = (0..got.size() as usize).map(from).collect();
    let expected = Places::of(layout, &axes).select(&from);
    agree(&Places::of(got, &axes), &expected).map_err(|what| format!("{got}: {what}"))
}

/// The element of a shape with these extents whose digits, reordered, are those of element `x` of the reordered shape.
fn reordered(x: usize, extents: &[i64], permutation: &[usize]) -> usize {
    let moved: Vec<i64> = permutation.iter().map(|&from| extents[from]).collect();
    let mut coordinate = vec![0; extents.len()];
    for (digit, &from) in digits(x, &moved).into_iter().zip(permutation) {
        coordinate[from] = digit;
    }
    element_at(&coordinate, extents)
}

/// A permutation, and whether it is valid: some are made invalid.
fn order(rng: &mut Rng, length: usize) -> (Vec<usize>, bool) {
    let mut permutation = generate::permutation(rng, length);
    let legal = !rng.percent(12);
    if !legal {
        match rng.below(2) {
            0 => permutation.push(rng.below(length + 1)),
            _ => permutation[0] = length,
        }
    }
    (permutation, legal)
}

/// `permute_dims(p)(d[p[0]], d[p[1]], ..) = self(d[0], d[1], ..)`.
pub(crate) fn permute_dims(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let extents = extents_of(&layout);
    let (permutation, legal) = if extents.is_empty() { (Vec::new(), true) } else { order(rng, extents.len()) };
    let call = || format!("`{layout}`.permute_dims({permutation:?})");
    judge(&call, layout.permute_dims(&permutation), legal, |got| {
        comes_from(&got, &layout, |x| reordered(x, &extents, &permutation))
    })
}

/// The same for the coordinates of groups of iters.
pub(crate) fn permute_groups(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let shape = generate::shape(rng, &extents_of(&layout));
    let grouped = layout.group(&shape).map_err(error_text)?;
    let (permutation, mut legal) = order(rng, shape.len());
    let mut separators = grouped.separators;
    if rng.percent(8) {
        legal = false;
        match rng.below(2) {
            0 => separators[0] = 1,
            _ => separators.push(0),
        }
    }
    let layout = grouped.layout;
    let call = || format!("`{layout}`.permute_groups({separators:?}, {permutation:?})");
    judge(&call, layout.permute_groups(&separators, &permutation), legal, |got| {
        comes_from(&got, &layout, |x| reordered(x, &shape, &permutation))
    })
}

/// `broadcast(n, p)(d[0], .., d[p-1], k, d[p], ..) = self(d[0], d[1], ..)`.
pub(crate) fn broadcast(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let extents = extents_of(&layout);
    let (extent, position) = (rng.within(0..=9).min(4), rng.below(extents.len() + 1));
    let position = if rng.percent(8) { extents.len() + 1 } else { position };
    let legal = extent >= 1 && position <= extents.len();
    let call = || format!("`{layout}`.broadcast({extent}, {position})");
    judge(&call, layout.broadcast(extent, position), legal, |got| {
        let mut longer = extents.clone();
        longer.insert(position, extent);
        equal(&extents_of(&got), &longer)?;
        comes_from(&got, &layout, |x| {
            let mut coordinate = digits(x, &longer);
            coordinate.remove(position);
            element_at(&coordinate, &extents)
        })
    })
}

/// The storage of one thread: its elements' places without threads, CTAs and devices.
pub(crate) fn storage(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let got = layout.storage();
    let call = || format!("`{layout}`.storage()");
    let check = || {
        let axes: Vec<Axis> = axes_of(&[&layout]).into_iter().filter(|axis| !axis.is_unit()).collect();
        ensure(axes_of(&[&got]).iter().all(|axis| axes.contains(axis)), || format!("{got} has other axes"))?;
        let stays: Vec<bool> = layout.shard().iter().map(|iter| !iter.axis.is_unit()).collect();
        let kept = |list: Vec<i64>| list.into_iter().zip(&stays).filter(|(_, stays)| **stays).map(|(v, _)| v).collect();
        let extents: Vec<i64> = kept(extents_of(&layout));
        equal(&got.size(), &volume(&extents))?;
        let from = |x: usize| {
            let coordinate: Vec<i64> = kept(digits(x, &extents_of(&layout)));
            element_at(&coordinate, &extents)
        };
        let stored: Vec<usize> = (0..layout.size() as usize).map(from).collect();
        agree(&Places::of(&got, &axes).select(&stored), &Places::of(&layout, &axes))
    };
    accept(&call, check())
}
