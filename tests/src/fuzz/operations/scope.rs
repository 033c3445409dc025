//! Thread axes, converted to each other.

use std::collections::BTreeSet;

use tilewright::layout::axis::{AxisKind, HARDWARE, LANEID, M, REG, Scope, TID_IN_WG, TX, WARPID, WGID, WID_IN_WG};
use tilewright::layout::{Axis, AxisRelation, Iter, RELATIONS, TileLayout};

use crate::fuzz::brute::{Places, agree, axes_of};
use crate::fuzz::generate;
use crate::fuzz::judge::{Ended, Outcome, accept, answered, ensure, judge};
use crate::fuzz::vary::{perturbed, respelled};
use crate::rng::Rng;

/// The scopes for which a single axis counts the threads.
const INDICES: [(Scope, Axis); 3] = [(Scope::Warp, LANEID), (Scope::Warpgroup, TID_IN_WG), (Scope::Cta, TX)];

/// Thread axes: the scope within which they count, and the number of threads per step.
const THREADS: [(Axis, Scope, i64); 6] = [
    (LANEID, Scope::Warp, 1),
    (TID_IN_WG, Scope::Warpgroup, 1),
    (WID_IN_WG, Scope::Warpgroup, 32),
    (TX, Scope::Cta, 1),
    (WARPID, Scope::Cta, 32),
    (WGID, Scope::Cta, 128),
];

/// A layout on existing threads: nested steps on each thread axis, in any order.
fn existing(rng: &mut Rng) -> TileLayout {
    let families: [&[Axis]; 5] =
        [&[LANEID, WARPID], &[LANEID, WID_IN_WG, WGID], &[TID_IN_WG, WGID], &[LANEID, WID_IN_WG], &[LANEID]];
    let mut shard = vec![Iter { extent: rng.within(1..=4), stride: 1, axis: REG }];
    let mut replica = Vec::new();
    for axis in *rng.pick(&families) {
        let most = axis.extent().unwrap_or(4).min(32);
        let count = generate::divisor(rng, most);
        let inner = generate::divisor(rng, count);
        shard.push(Iter { extent: inner, stride: 1, axis: axis.clone() });
        shard.push(Iter { extent: count / inner, stride: inner, axis: axis.clone() });
        if rng.percent(30) {
            replica.push(Iter { extent: generate::divisor(rng, most / count), stride: count, axis: axis.clone() });
        }
    }
    let order = generate::permutation(rng, shard.len());
    let shard = order.into_iter().map(|at| shard[at].clone()).collect();
    TileLayout::new(shard, replica, []).expect("small numbers")
}

/// A layout on axes of threads and registers.
fn fragment(rng: &mut Rng) -> TileLayout {
    if rng.percent(60) {
        return existing(rng);
    }
    let families: [&[Axis]; 5] = [
        &[LANEID, WARPID, REG],
        &[LANEID, WID_IN_WG, WGID, REG],
        &[TID_IN_WG, WGID, M],
        &[LANEID, WID_IN_WG, REG],
        &[LANEID, REG],
    ];
    let axes = if rng.percent(80) { rng.pick(&families).to_vec() } else { generate::axes(rng) };
    let budget = generate::budget(rng);
    let extents = generate::extents(rng, budget);
    generate::with_extents(rng, &extents, &axes)
}

/// Replaces every step on an axis with a weight `w` by `w` steps on `index`, which is one of the axes.
fn folded(places: &Places, axes: &[Axis], index: &Axis, weight: impl Fn(&Axis) -> Option<i64>) -> Places {
    places.mapped(|place| {
        let mut sum = 0;
        let mut folded = place.to_vec();
        for (position, axis) in folded.iter_mut().zip(axes) {
            if let Some(weight) = weight(axis) {
                sum += weight * std::mem::take(position);
            }
        }
        for (position, axis) in folded.iter_mut().zip(axes) {
            *position += if axis == index { sum } else { 0 };
        }
        folded
    })
}

/// The axes of some layouts, and additional ones.
fn all_axes(layouts: &[&TileLayout], more: &[&Axis]) -> Vec<Axis> {
    let axes: BTreeSet<Axis> = axes_of(layouts).into_iter().chain(more.iter().copied().cloned()).collect();
    axes.into_iter().collect()
}

fn index_of(scope: Scope) -> Option<Axis> {
    INDICES.iter().find(|(level, _)| *level == scope).map(|(_, axis)| axis.clone())
}

fn threads_on(axis: &Axis) -> Option<i64> {
    THREADS.iter().find(|(thread, ..)| thread == axis).map(|(_, _, threads)| *threads)
}

/// True if every thread axis counts within `scope`, at positions that exist, and no two axes count the same threads.
fn fits(layout: &TileLayout, scope: Scope) -> bool {
    let axes = axes_of(&[layout]);
    let places = Places::of(layout, &axes);
    let exists = |(column, axis): (usize, &Axis)| {
        let most = axis.extent().unwrap_or(i64::MAX);
        levels(axis).is_none() || !is_thread(axis) || (places.least(column) >= 0 && places.greatest(column) < most)
    };
    let counted: Vec<(Scope, Scope)> = axes.iter().filter(|axis| is_thread(axis)).filter_map(levels).collect();
    let once = |level: &Scope| counted.iter().filter(|(unit, around)| (*unit..*around).contains(level)).count() <= 1;
    let inside = counted.iter().all(|(_, around)| *around <= scope);
    inside && axes.iter().enumerate().all(exists) && LEVELS.iter().all(once)
}

fn is_thread(axis: &Axis) -> bool {
    THREADS.iter().any(|(thread, ..)| thread == axis)
}

fn some_scope(rng: &mut Rng) -> Scope {
    *rng.pick(&[Scope::Cta, Scope::Cta, Scope::Cta, Scope::Cta, Scope::Warpgroup, Scope::Warp, Scope::Cluster])
}

/// `in_scope` replaces the thread axes within a scope by a single index of its threads.
pub(crate) fn in_scope(rng: &mut Rng) -> Outcome {
    let (layout, scope) = (fragment(rng), some_scope(rng));
    let index = index_of(scope);
    let legal = index.is_some() && fits(&layout, scope);
    judge(&|| format!("`{layout}`.in_scope({scope:?})"), layout.in_scope(scope), legal, |got| {
        let index = index.unwrap_or(TX);
        let axes = all_axes(&[&layout, &got], &[&index]);
        agree(&Places::of(&got, &axes), &folded(&Places::of(&layout, &axes), &axes, &index, threads_on))
    })
}

/// Two layouts are the same in a scope if and only if they are equal after `in_scope`.
pub(crate) fn same_places_in(rng: &mut Rng) -> Outcome {
    let (one, scope) = (fragment(rng), some_scope(rng));
    let other = match rng.below(4) {
        0 => one.in_scope(scope).unwrap_or_else(|_| one.clone()),
        1 => perturbed(rng, &one),
        2 => generate::of_size(rng, one.size()),
        _ => respelled(rng, &one),
    };
    let index = index_of(scope);
    let legal = index.is_some() && fits(&one, scope) && fits(&other, scope);
    let call = || format!("`{one}`.same_places_in(`{other}`, {scope:?})");
    judge(&call, one.same_places_in(&other, scope), legal, |same| {
        let index = index.unwrap_or(TX);
        let axes = all_axes(&[&one, &other], &[&index]);
        let told = |layout: &TileLayout| folded(&Places::of(layout, &axes), &axes, &index, threads_on);
        let expected = told(&one) == told(&other);
        ensure(same == expected, || format!("got {same}, expected {expected}"))
    })
}

/// The scopes from the smallest unit to the largest, if the axes cover each scope between them exactly once.
pub(crate) fn scope(rng: &mut Rng) -> Outcome {
    let layout = if rng.percent(60) {
        fragment(rng)
    } else {
        let axes: Vec<Axis> = (0..2).map(|_| rng.pick(HARDWARE).clone()).collect();
        let extents = generate::extents(rng, 16);
        generate::with_extents(rng, &extents, &axes)
    };
    let levels: BTreeSet<(Scope, Scope)> = axes_of(&[&layout]).iter().filter_map(levels).collect();
    let first = levels.iter().map(|(unit, _)| *unit).min();
    let last = levels.iter().map(|(_, scope)| *scope).max();
    let covered = |level: Scope| levels.iter().filter(|(unit, scope)| (*unit..*scope).contains(&level)).count() == 1;
    let spread = layout.shard().iter().any(|iter| iter.axis.is_unit());
    let expected = first.zip(last).filter(|_| spread);
    let whole = |(first, last): (Scope, Scope)| LEVELS.into_iter().filter(|l| (first..last).contains(l)).all(covered);
    let call = || format!("`{layout}`.scope()");
    if expected.is_none_or(whole) {
        answered(&call, layout.scope(), &expected)
    } else {
        judge(&call, layout.scope(), false, |_| Ok(()))
    }
}

const LEVELS: [Scope; 7] =
    [Scope::Thread, Scope::Warp, Scope::Warpgroup, Scope::Cta, Scope::Cluster, Scope::Grid, Scope::Mesh];

/// The scope that an axis counts, and the scope within which it counts.
fn levels(axis: &Axis) -> Option<(Scope, Scope)> {
    match axis.kind() {
        AxisKind::Unit { scope, unit } => Some((unit, scope)),
        AxisKind::Memory { .. } | AxisKind::Free => None,
    }
}

/// Converts positions on `outer` and `inner` to positions on `whole`.
fn joined(places: &Places, axes: &[Axis], relation: &AxisRelation) -> Places {
    let weight = |axis: &Axis| {
        let factor = (*axis == relation.outer).then_some(relation.factor);
        factor.or_else(|| (*axis == relation.inner).then_some(1))
    };
    folded(places, axes, &relation.whole, weight)
}

/// `whole = factor * outer + inner`.
pub(crate) fn join_axes(rng: &mut Rng) -> Outcome {
    let (layout, relation) = (fragment(rng), rng.pick(&RELATIONS).clone());
    let call = || format!("`{layout}`.join_axes({relation:?})");
    let AxisRelation { whole, outer, factor, inner } = &relation;
    let axes = all_axes(&[&layout], &[inner]);
    let (places, column) = (Places::of(&layout, &axes), axes.iter().position(|axis| axis == inner).unwrap_or(0));
    let apart =
        !axes_of(&[&layout]).contains(whole) || [outer, inner].iter().all(|part| !axes_of(&[&layout]).contains(part));
    let legal = apart && places.least(column) >= 0 && places.greatest(column) < *factor;
    judge(&call, layout.join_axes(&relation), legal, |got| {
        let axes = all_axes(&[&layout, &got], &[&relation.whole]);
        agree(&Places::of(&got, &axes), &joined(&Places::of(&layout, &axes), &axes, &relation))
    })
}

/// Fails unless no iter is left on `whole`, `inner` stays within its group, and the places are the same after joining.
fn is_split(got: &TileLayout, layout: &TileLayout, relation: &AxisRelation) -> Result<(), String> {
    let AxisRelation { whole, outer, factor, inner } = relation;
    ensure(!axes_of(&[got]).contains(whole), || format!("{got} is still on {whole}"))?;
    let axes = all_axes(&[layout, got], &[whole, outer, inner]);
    let places = Places::of(got, &axes);
    let column = axes.iter().position(|axis| axis == inner).unwrap_or(0);
    let stays = places.least(column) >= 0 && places.greatest(column) < *factor;
    ensure(stays, || format!("{got} leaves its group"))?;
    agree(&joined(&places, &axes, relation), &joined(&Places::of(layout, &axes), &axes, relation))
}

/// `whole` split into `outer` and `inner`; refused only if an iter steps unevenly across groups, or if positions within
/// a group would carry.
pub(crate) fn split_axis(rng: &mut Rng) -> Outcome {
    let relation = rng.pick(&RELATIONS).clone();
    let layout = on_whole(rng, &relation);
    let call = || format!("`{layout}`.split_axis({relation:?})");
    match layout.split_axis(&relation) {
        Ok(got) => accept(&call, is_split(&got, &layout, &relation)),
        Err(error) if splits(&layout, &relation) => Err(format!("{}: refused: {error}", call())),
        Err(error) => Ok(Ended::Refused(error.code())),
    }
}

/// A layout that is mostly on the axis to be split, in steps that divide a group.
fn on_whole(rng: &mut Rng, relation: &AxisRelation) -> TileLayout {
    let AxisRelation { whole, factor, .. } = relation;
    let parts = *rng.pick(&[1, 2, 4, 4, 8, 32]).min(factor);
    let count = if rng.percent(60) { parts * rng.within(1..=3) } else { generate::divisor(rng, parts) };
    let step = factor / parts;
    let backwards = rng.percent(10);
    let (stride, start) = if backwards { (-step, (count - 1) * step) } else { (step, 0) };
    let mut shard = vec![Iter { extent: count, stride, axis: whole.clone() }];
    if rng.percent(50) {
        shard.push(Iter { extent: rng.within(1..=3), stride: 1, axis: REG });
    }
    if rng.percent(40) {
        let (extent, stride) = (rng.within(1..=3), factor * rng.within(1..=8));
        shard.push(Iter { extent, stride, axis: whole.clone() });
    }
    let offset = [(whole.clone(), start + factor * rng.within(0..=2))];
    let layout = TileLayout::new(shard, Vec::new(), offset).expect("small numbers");
    match rng.below(4) {
        0 => perturbed(rng, &layout),
        1 => respelled(rng, &layout),
        _ => layout,
    }
}

/// The range of positions of an iter on `whole` within a group; `None` if it steps unevenly across groups.
fn inside(iter: &Iter, factor: i64) -> Option<i64> {
    let Iter { extent, stride, .. } = iter;
    if *extent == 1 || stride % factor == 0 {
        return Some(0);
    }
    if (extent - 1) * stride.abs() < factor {
        return Some((extent - 1) * stride);
    }
    let steps = factor / stride.abs();
    (factor % stride.abs() == 0 && extent % steps == 0).then(|| (steps - 1) * stride)
}

/// True if every iter can be split and positions within a group do not carry.
fn splits(layout: &TileLayout, relation: &AxisRelation) -> bool {
    let AxisRelation { whole, factor, inner, .. } = relation;
    let axes = axes_of(&[layout]);
    if axes.contains(whole) && axes.contains(inner) {
        return false;
    }
    let mut reaches = Vec::new();
    for iter in layout.shard().iter().chain(layout.replica()) {
        if iter.axis == *inner {
            reaches.push((iter.extent - 1) * iter.stride);
        } else if iter.axis == *whole {
            let Some(reach) = inside(iter, *factor) else { return false };
            reaches.push(reach);
        }
    }
    let start = layout.offset_on(inner) + layout.offset_on(whole).rem_euclid(*factor);
    let least: i64 = reaches.iter().map(|reach| (*reach).min(0)).sum();
    let most: i64 = reaches.iter().map(|reach| (*reach).max(0)).sum();
    start + least >= 0 && start + most < *factor
}
