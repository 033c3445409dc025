//! Regrouping of iters.

use tilewright::layout::{TileLayout, refine_together};

use crate::fuzz::brute::{extents_of, keeps_places, nest, volume};
use crate::fuzz::generate;
use crate::fuzz::judge::{Outcome, ensure, equal, judge};
use crate::fuzz::vary::respelled;
use crate::rng::Rng;

/// Fails unless the separators assign a run of iters to every dimension of the shape.
fn owns(layout: &TileLayout, separators: &[usize], shape: &[i64]) -> Result<(), String> {
    let bounds = (separators.first(), separators.last(), separators.len());
    equal(&bounds, &(Some(&0), Some(&layout.shard().len()), shape.len() + 1))?;
    let extents = extents_of(layout);
    let owned: Vec<i64> = separators.windows(2).map(|pair| volume(&extents[pair[0]..pair[1]])).collect();
    ensure(owned == shape, || format!("the iters {extents:?} cut at {separators:?} make {owned:?}"))
}

/// Grouping preserves all places, and assigns a run of iters to every dimension.
pub(crate) fn group(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let mut shape = generate::any_shape(rng, &layout);
    if rng.percent(3) {
        shape.push(2);
    }
    let legal = volume(&shape) == layout.size() && nest(&[&extents_of(&layout), &shape]);
    judge(&|| format!("`{layout}`.group({shape:?})"), layout.group(&shape), legal, |grouped| {
        keeps_places(&grouped.layout, &layout)?;
        owns(&grouped.layout, &grouped.separators, &shape)?;
        let dimension = |at: usize| grouped.dimension(at).iter().map(|iter| iter.extent).product::<i64>();
        equal(&(0..shape.len()).map(dimension).collect::<Vec<i64>>(), &shape)
    })
}

/// Grouping by several shapes assigns a run of iters to every dimension of each.
pub(crate) fn group_many(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let mut shapes = Vec::new();
    for _ in 0..rng.within(1..=3) {
        let shape = if rng.percent(60) {
            let rank = rng.within(1..=3) as usize;
            generate::joined(rng, &extents_of(&layout), rank)
        } else {
            generate::any_shape(rng, &layout)
        };
        shapes.push(shape);
    }
    let extents = extents_of(&layout);
    let mut cuts: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
    cuts.push(&extents);
    let legal = nest(&cuts);
    judge(&|| format!("`{layout}`.group_many({shapes:?})"), layout.group_many(&shapes), legal, |grouped| {
        keeps_places(&grouped.layout, &layout)?;
        equal(&grouped.separators.len(), &shapes.len())?;
        let mut each = grouped.separators.iter().zip(&shapes);
        each.try_for_each(|(separators, shape)| owns(&grouped.layout, separators, shape))
    })
}

/// Layouts refined together have the same extents, and each preserves its places.
pub(crate) fn refine(rng: &mut Rng) -> Outcome {
    let first = generate::layout(rng);
    let mut layouts = vec![respelled(rng, &first)];
    for _ in 0..rng.within(1..=2) {
        let layout = match rng.below(4) {
            0 => generate::of_size(rng, first.size()),
            1 => {
                let axes = generate::axes(rng);
                generate::with_extents(rng, &[first.size()], &axes)
            }
            _ => {
                let shape = generate::shape(rng, &extents_of(&first));
                let axes = generate::axes(rng);
                generate::with_extents(rng, &shape, &axes)
            }
        };
        layouts.push(layout);
    }
    if rng.percent(3) {
        layouts.push(generate::of_size(rng, first.size() + 1));
    }
    let extents: Vec<Vec<i64>> = layouts.iter().map(extents_of).collect();
    let alike = layouts.iter().all(|layout| layout.size() == first.size());
    let legal = alike && nest(&extents.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let given: Vec<&TileLayout> = layouts.iter().collect();
    judge(&|| format!("refine_together({layouts:?})"), refine_together(&given), legal, |refined| {
        equal(&refined.len(), &layouts.len())?;
        for (got, expected) in refined.iter().zip(&layouts) {
            equal(&extents_of(got), &extents_of(&refined[0]))?;
            keeps_places(got, expected)?;
        }
        Ok(())
    })
}
