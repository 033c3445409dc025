//! What a pair of layouts allows, told from the positions alone: plain loops, nothing of the compiler.

/// Bytes that one wavefront can move: every bank once.
const ROW: usize = 128;
/// Bytes of a word, the width of a bank.
const WORD: usize = 4;

/// How the elements of a pair fall on the banks of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Bytes of an element.
    bytes: usize,
    /// Groups of lanes that are served together: 32 lanes of up to 4 bytes, 16 of 8, 8 of 16.
    turns: u64,
    /// The most places of the source and of the destination that one turn can serve only one of: words of one bank, or
    /// elements of one granule, which is as wide as an element.
    most: [u64; 2],
}

impl Bounds {
    /// The bounds for elements of `bytes` bytes at these positions of source and destination, in elements.
    pub(crate) fn of(bytes: usize, positions: [&[usize]; 2]) -> Bounds {
        let turns = positions[0].len().div_ceil(ROW / bytes.max(WORD)) as u64;
        Bounds { bytes, turns, most: positions.map(|side| most_in_one_granule(bytes, side)) }
    }

    /// Whether nothing stands in the way of one wavefront per turn.
    pub(crate) fn is_even(&self) -> bool {
        self.most.iter().all(|most| *most <= self.turns)
    }

    /// The fewest wavefronts of any reading and of any writing, element by element.
    pub(crate) fn least(&self) -> [u64; 2] {
        self.most.map(|most| most.max(self.turns))
    }

    /// The most wavefronts that a schedule of wide elements may take, both phases together.
    fn bound(&self) -> u64 {
        self.most.iter().map(|most| self.turns * most.div_ceil(self.turns)).sum()
    }

    /// How far the wavefronts of the worse phase are above the fewest.
    pub(crate) fn gap(&self, wavefronts: [u64; 2]) -> u64 {
        let [reads, writes] = self.least();
        wavefronts[0].saturating_sub(reads).max(wavefronts[1].saturating_sub(writes))
    }

    /// An error where a schedule takes more wavefronts, reading and writing, than it may.
    pub(crate) fn check(&self, wavefronts: [u64; 2]) -> Result<(), String> {
        let Bounds { bytes, turns, .. } = *self;
        let [reads, writes] = wavefronts;
        let counted = format!("{reads} + {writes} wavefronts counted");
        if bytes < WORD {
            // Where a bank holds more words than there are steps, merging lanes in words of one side crowds the banks of
            // the other: no schedule is at the fewest in both phases, and what one gains the other pays.
            let [least_reads, least_writes] = self.least();
            let most = turns.max(least_reads).max(least_writes);
            let gap = self.gap(wavefronts);
            return if gap <= most { Ok(()) } else { Err(format!("{counted}, {gap} above the fewest")) };
        }
        if self.is_even() {
            let is_ideal = reads.max(writes) <= turns;
            return if is_ideal { Ok(()) } else { Err(format!("{counted}, although even: {turns} + {turns}")) };
        }
        let bound = self.bound();
        if reads + writes <= bound { Ok(()) } else { Err(format!("{counted}, at most {bound} allowed")) }
    }
}

/// The most distinct places in one granule: words in a bank, or elements where they are wider.
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
