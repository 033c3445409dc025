//! Equivalent forms of a layout, and layouts that are slightly different.

use tilewright::layout::{Axis, Iter, TileLayout};

use super::generate::{axis, divisor};
use crate::rng::Rng;

/// The parts of a layout, which can be modified.
struct Parts {
    shard: Vec<Iter>,
    replica: Vec<Iter>,
    offset: Vec<(Axis, i64)>,
}

impl Parts {
    fn of(layout: &TileLayout) -> Parts {
        Parts {
            shard: layout.shard().to_vec(),
            replica: layout.replica().to_vec(),
            offset: layout.offset().iter().map(|(axis, value)| (axis.clone(), *value)).collect(),
        }
    }

    fn build(self) -> TileLayout {
        TileLayout::new(self.shard, self.replica, self.offset).expect("small numbers")
    }
}

/// The same map written differently: iters split in two, iters without effect added, replicas negated, made to overlap
/// and reordered.
pub(crate) fn respelled(rng: &mut Rng, layout: &TileLayout) -> TileLayout {
    let mut parts = Parts::of(layout);
    for _ in 0..rng.within(1..=4) {
        match rng.below(8) {
            0 | 1 => cut(rng, &mut parts.shard),
            2 => insert(rng, &mut parts.shard, 1),
            3 => rename_idle(rng, &mut parts.shard),
            4 => cut(rng, &mut parts.replica),
            5 => overlap(rng, &mut parts.replica),
            6 => negate(rng, &mut parts),
            _ => {
                let extent = rng.within(1..=2);
                insert(rng, &mut parts.replica, extent);
            }
        }
    }
    rng.shuffle(&mut parts.replica);
    parts.build()
}

/// Splits an iter of extent `a * b` in two.
fn cut(rng: &mut Rng, iters: &mut Vec<Iter>) {
    if iters.is_empty() {
        return;
    }
    let at = rng.below(iters.len());
    let Iter { extent, stride, axis } = iters[at].clone();
    let inner = divisor(rng, extent);
    iters[at] = Iter { extent: extent / inner, stride: stride * inner, axis: axis.clone() };
    iters.insert(at + 1, Iter { extent: inner, stride, axis });
}

/// An iter without effect: extent 1 with any stride, or stride 0.
fn insert(rng: &mut Rng, iters: &mut Vec<Iter>, extent: i64) {
    let stride = if extent == 1 { rng.within(-3..=9) } else { 0 };
    let iter = Iter { extent, stride, axis: axis(rng) };
    iters.insert(rng.below(iters.len() + 1), iter);
}

/// A stride of 0 has no effect on any axis.
fn rename_idle(rng: &mut Rng, iters: &mut [Iter]) {
    for iter in iters.iter_mut().filter(|iter| iter.stride == 0) {
        iter.axis = axis(rng);
    }
}

/// Digits `0..a` and `0..b` with the same stride cover `0..a + b - 1`.
fn overlap(rng: &mut Rng, iters: &mut Vec<Iter>) {
    if iters.is_empty() {
        return;
    }
    let at = rng.below(iters.len());
    let second = rng.within(1..=iters[at].extent);
    iters[at].extent -= second - 1;
    let copy = Iter { extent: second, ..iters[at].clone() };
    iters.push(copy);
}

/// The same copies, counted from the other end.
fn negate(rng: &mut Rng, parts: &mut Parts) {
    if parts.replica.is_empty() {
        return;
    }
    let at = rng.below(parts.replica.len());
    let iter = &mut parts.replica[at];
    parts.offset.push((iter.axis.clone(), iter.stride * (iter.extent - 1)));
    iter.stride = -iter.stride;
}

/// A layout of the same size that usually has different places.
pub(crate) fn perturbed(rng: &mut Rng, layout: &TileLayout) -> TileLayout {
    let mut parts = Parts::of(layout);
    let last = parts.shard.len().saturating_sub(1);
    match (rng.below(8), parts.shard.is_empty()) {
        (0 | 1, false) => {
            let at = rng.below(last + 1);
            parts.shard[at].stride += *rng.pick(&[-2, -1, 1, 2, 7]);
        }
        (2, false) => {
            let at = rng.below(last + 1);
            parts.shard[at].stride *= *rng.pick(&[-1, 0, 2]);
        }
        (3, false) => {
            let (a, b) = (rng.below(last + 1), rng.below(last + 1));
            parts.shard.swap(a, b);
        }
        (4, _) => parts.replica.push(Iter { extent: 2, stride: rng.within(1..=40), axis: axis(rng) }),
        (5, _) => {
            parts.replica.pop();
        }
        (6, _) if !parts.replica.is_empty() => {
            let at = rng.below(parts.replica.len());
            parts.replica[at].stride += rng.within(1..=2);
        }
        _ => {
            let axis = parts.shard.first().map_or_else(|| axis(rng), |iter| iter.axis.clone());
            parts.offset.push((axis, rng.within(-3..=9)));
        }
    }
    parts.build()
}
