//! Bounds on the wavefronts of a pair of layouts, computed from the positions only, independently of the compiler.

/// Bytes that one wavefront can move: one word per bank.
const ROW: usize = 128;
/// Bytes of a word, the width of a bank.
const WORD: usize = 4;

/// How the elements of a pair are distributed over the banks, on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Bytes of an element.
    bytes: usize,
    /// The number of groups of lanes that are served together: 32 lanes for up to 4 bytes, 16 for 8, 8 for 16.
    turns: u64,
    /// For source and destination, the largest number of places of which a turn can serve only one: words in the same
    /// bank, or wide elements in the same group of banks.
    most: [u64; 2],
}

impl Bounds {
    /// The bounds for elements of `bytes` bytes at these positions (in elements) in source and destination.
    pub(crate) fn of(bytes: usize, positions: [&[usize]; 2]) -> Bounds {
        let turns = positions[0].len().div_ceil(ROW / bytes.max(WORD)) as u64;
        Bounds { bytes, turns, most: positions.map(|side| most_in_one_granule(bytes, side)) }
    }

    /// Whether one wavefront per turn is possible.
    pub(crate) fn is_even(&self) -> bool {
        self.most.iter().all(|most| *most <= self.turns)
    }

    /// The minimum number of wavefronts for reading and for writing, element by element.
    pub(crate) fn least(&self) -> [u64; 2] {
        self.most.map(|most| most.max(self.turns))
    }

    /// The maximum number of wavefronts allowed for a schedule of wide elements, for both phases together.
    fn bound(&self) -> u64 {
        self.most.iter().map(|most| self.turns * most.div_ceil(self.turns)).sum()
    }

    /// The number of wavefronts above the minimum, in the worse phase.
    pub(crate) fn gap(&self, wavefronts: [u64; 2]) -> u64 {
        let [reads, writes] = self.least();
        wavefronts[0].saturating_sub(reads).max(wavefronts[1].saturating_sub(writes))
    }

    /// Returns an error if a schedule takes more wavefronts, for reading and writing, than allowed.
    pub(crate) fn check(&self, wavefronts: [u64; 2]) -> Result<(), String> {
        let Bounds { bytes, turns, .. } = *self;
        let [reads, writes] = wavefronts;
        let counted = format!("{reads} + {writes} wavefronts counted");
        if bytes < WORD {
            // If a bank holds more words than there are steps, merging lanes that share a word on one side causes
            // conflicts on the other: no schedule reaches the minimum in both phases.
            let [least_reads, least_writes] = self.least();
            let most = turns.max(least_reads).max(least_writes);
            let gap = self.gap(wavefronts);
            return if gap <= most { Ok(()) } else { Err(format!("{counted}, {gap} above the minimum")) };
        }
        if self.is_even() {
            let is_ideal = reads.max(writes) <= turns;
            return if is_ideal { Ok(()) } else { Err(format!("{counted}, but {turns} + {turns} are possible")) };
        }
        let bound = self.bound();
        if reads + writes <= bound { Ok(()) } else { Err(format!("{counted}, at most {bound} allowed")) }
    }
}

/// The largest number of distinct places in one bank (words), or in one group of banks for wider elements.
fn most_in_one_granule(bytes: usize, positions: &[usize]) -> u64 {
    let unit = bytes.max(WORD);
    let granules = ROW / unit;
    let mut places: Vec<usize> = positions.iter().map(|position| position * bytes / unit).collect();
    places.sort_unstable();
    places.dedup();
    let mut counts = vec![0; granules];
    for place in places {
        counts[place % granules] += 1;
    }
    counts.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: usize, stride: usize) -> Bounds {
        let dense: Vec<usize> = (0..64).collect();
        let strided: Vec<usize> = (0..64).map(|x| x * stride).collect();
        Bounds::of(bytes, [&dense, &strided])
    }

    #[test]
    fn turns_are_groups_that_are_served_together() {
        let turns = [1, 2, 4, 8, 16].map(|bytes| of(bytes, 1).turns);
        assert_eq!(turns, [2, 2, 2, 4, 8]);
    }

    #[test]
    fn dense_tiles_are_even_and_strides_of_all_banks_are_not() {
        for bytes in [1, 2, 4, 8, 16] {
            assert!(of(bytes, 1).is_even() && !of(bytes, 128 / bytes).is_even(), "{bytes} bytes");
        }
    }

    #[test]
    fn narrow_elements_of_one_word_count_once() {
        assert_eq!((of(1, 1).most, of(1, 2).most, of(1, 128).most), ([1, 1], [1, 1], [1, 64]));
    }

    #[test]
    fn the_bound_is_the_turns_times_the_elements_of_a_granule_in_each() {
        assert_eq!((of(4, 2).least(), of(4, 2).bound()), ([2, 4], 2 + 4));
        assert_eq!((of(16, 3).is_even(), of(16, 8).bound()), (true, 8 + 64));
    }

    #[test]
    fn more_wavefronts_than_allowed_are_an_error() {
        let (even, uneven, narrow) = (of(4, 1), of(4, 32), of(1, 1));
        let checked = |bounds: Bounds, wavefronts| bounds.check(wavefronts).is_ok();
        assert!(checked(even, [2, 2]) && !checked(even, [3, 2]));
        assert!(checked(uneven, [2, 64]) && !checked(uneven, [3, 64]));
        assert!(checked(narrow, [2, 4]) && !checked(narrow, [2, 5]));
    }
}
