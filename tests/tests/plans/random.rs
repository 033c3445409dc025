//! Random numbers and layouts.

use tilewright::layout::{Axis, Coord, Iter, TileLayout};
use tilewright_tests::rng;

/// Extends the shared generator with signed numbers.
pub(crate) struct Rng(rng::Rng);

impl Rng {
    pub(crate) fn of_case(seed: u64, case: u64) -> Rng {
        Rng(rng::Rng::starting_at(seed * 1_000_003 + case))
    }

    pub(crate) fn below(&mut self, end: i64) -> i64 {
        self.0.within(0..=end - 1)
    }

    pub(crate) fn percent(&mut self, share: i64) -> bool {
        self.below(100) < share
    }

    pub(crate) fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        self.0.pick(list).clone()
    }

    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        self.0.shuffle(list);
    }
}

/// Extents with the product `size`, in any order.
pub(crate) fn factors(rng: &mut Rng, size: i64) -> Vec<i64> {
    let mut left = size;
    let mut factors = Vec::new();
    while left > 1 && factors.len() < 5 {
        let divisors: Vec<i64> = (2..=left).filter(|divisor| left % divisor == 0).collect();
        let few = if rng.percent(70) { divisors.len().min(3) } else { divisors.len() };
        let factor = rng.pick(&divisors[..few]);
        factors.push(factor);
        left /= factor;
    }
    if left > 1 || factors.is_empty() {
        factors.push(left);
    }
    rng.shuffle(&mut factors);
    factors
}

/// Occasionally, the same places in reverse order.
pub(crate) fn turned(rng: &mut Rng, iter: Iter, offset: &mut Vec<(Axis, i64)>) -> Iter {
    if !rng.percent(8) {
        return iter;
    }
    offset.push((iter.axis.clone(), (iter.extent - 1) * iter.stride));
    Iter { stride: -iter.stride, ..iter }
}

/// A layout from valid parts.
pub(crate) fn built(shard: Vec<Iter>, replica: Vec<Iter>, offset: Vec<(Axis, i64)>) -> TileLayout {
    TileLayout::new(shard, replica, offset).expect("small numbers")
}

/// The position of a place on an axis.
pub(crate) fn position(place: &Coord, axis: &Axis) -> i64 {
    place.get(axis).copied().unwrap_or(0)
}

/// Returns an error with both values if they differ.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, wanted: T) -> Result<(), String> {
    if got == wanted { Ok(()) } else { Err(format!("{what}: {got:?}, expected {wanted:?}")) }
}
