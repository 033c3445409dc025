//! A small seeded random number generator: a case is the same on every run and machine.

use std::ops::RangeInclusive;

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Splitmix64: a 64-bit state that is incremented by a constant, and a finalizer that mixes its bits.
pub struct Rng(u64);

impl Rng {
    /// The generator for one case of a run.
    pub fn new(seed: u64, case: u64) -> Rng {
        Rng::starting_at(mixed(seed.wrapping_add(STEP)) ^ mixed(case))
    }

    /// A generator with this initial state.
    pub fn starting_at(word: u64) -> Rng {
        Rng(word)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mixed(self.0)
    }

    /// A number in `0..end`; `end` is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// A number in a non-empty range.
    pub fn within(&mut self, range: RangeInclusive<i64>) -> i64 {
        let (low, high) = range.into_inner();
        low + (self.bits() % (high - low + 1) as u64) as i64
    }

    /// True with a probability of `share` percent.
    pub fn percent(&mut self, share: u64) -> bool {
        self.bits() % 100 < share
    }

    /// A random element of a non-empty list.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// Shuffles a list.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            let other = self.below(at + 1);
            list.swap(at, other);
        }
    }
}

fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_the_same_every_time_and_differs_from_its_neighbours() {
        let numbers = |seed, case| {
            let mut rng = Rng::new(seed, case);
            [rng.bits(), rng.bits()]
        };
        assert_eq!(numbers(1, 2), numbers(1, 2));
        assert!(numbers(1, 2) != numbers(1, 3) && numbers(1, 2) != numbers(2, 2));
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut rng = Rng::new(7, 0);
        assert!((0..1000).all(|_| (-3..=4).contains(&rng.within(-3..=4)) && rng.below(5) < 5));
    }
}
