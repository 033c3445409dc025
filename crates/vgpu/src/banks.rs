//! Cost of a warp's memory access: shared-memory wavefronts and global sectors.
//!
//! The model follows the hardware counters: shared memory has 32 banks of 4-byte words; lanes that access the same word
//! are merged; one wavefront accesses at most one word in each bank. Accesses of 8 bytes are counted per half warp,
//! accesses of 16 bytes per quarter warp. For loads of 8 or 16 bytes in which every lane `n` reads the same address as
//! lane `n ^ 1` (or every lane the same as `n ^ 2`), these groups are twice as large. Inactive lanes are ignored.

use std::ops::Range;

use crate::lanes::{ByAddress, Lanes};

/// Wavefronts of one warp access to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wavefronts {
    pub(crate) count: u64,
    /// The fewest wavefronts that the groups and the number of distinct words allow.
    pub(crate) ideal: u64,
}

/// Sectors of one warp access to global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sectors {
    /// Number of distinct 32-byte sectors accessed.
    pub(crate) count: u64,
    /// Number of distinct bytes.
    pub(crate) bytes: u64,
    /// Number of distinct bytes divided by 32, rounded up.
    pub(crate) ideal: u64,
}

/// The last pattern of addresses that an instruction has accessed, and its cost. What begins at the same place in a line of 128
/// bytes and has the same distances has the same cost.
#[derive(Clone, Debug)]
pub(crate) struct LastPattern {
    exec: u32,
    distances: Lanes,
    cost: (u64, u64),
}

impl LastPattern {
    /// The cost of an access, counted by `count` unless `last` has the same pattern.
    pub(crate) fn cost(
        last: &mut Option<Box<LastPattern>>,
        (addresses, exec): (&Lanes, u32),
        count: impl FnOnce() -> (u64, u64),
    ) -> (u64, u64) {
        let line = addresses[exec.trailing_zeros() as usize & 31] & !127;
        let distances = addresses.map(|address| address.wrapping_sub(line));
        if let Some(last) = last
            && last.exec == exec
            && last.distances == distances
        {
            return last.cost;
        }
        let cost = count();
        *last = Some(Box::new(LastPattern { exec, distances, cost }));
        cost
    }
}

/// Scratch space for counting the distinct words in each bank.
#[derive(Debug)]
pub(crate) struct Banks {
    /// Number of distinct words found in each bank.
    used: [u8; 32],
    /// The distinct words found in each bank; the first `used` entries are valid.
    words: [[u64; 32]; 32],
}

impl Banks {
    pub(crate) fn new() -> Banks {
        Banks { used: [0; 32], words: [[0; 32]; 32] }
    }

    /// Counts the wavefronts of the lanes in `exec`, each accessing `bytes` bytes at its address.
    pub(crate) fn wavefronts(&mut self, addresses: &[u64; 32], exec: u32, bytes: u32, is_load: bool) -> Wavefronts {
        let words = u64::from(bytes.div_ceil(4).max(1));
        let mut lanes_per_group = (32 / words.next_power_of_two() as u32).clamp(1, 32);
        if is_load && matches!(bytes, 8 | 16) && (paired(addresses, exec, 1) || paired(addresses, exec, 2)) {
            lanes_per_group *= 2;
        }
        let mut total = Wavefronts { count: 0, ideal: 0 };
        let mut groups = 0;
        let mut first = 0;
        while first < 32 {
            let lanes = exec & (group_mask(lanes_per_group) << first);
            if lanes != 0 {
                let (wavefronts, distinct) = self.group(addresses, lanes, words);
                total.count += wavefronts;
                total.ideal += distinct;
                groups += 1;
            }
            first += lanes_per_group;
        }
        total.ideal = total.ideal.div_ceil(32).max(groups);
        total
    }

    /// Wavefronts and distinct words of one group of lanes.
    fn group(&mut self, addresses: &[u64; 32], lanes: u32, words: u64) -> (u64, u64) {
        self.used = [0; 32];
        let mut distinct = 0;
        let mut rest = lanes;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let first = addresses[lane] / 4;
            for word in first..first + words {
                let bank = (word % 32) as usize;
                let used = usize::from(self.used[bank]);
                if !self.words[bank][..used].contains(&word) {
                    self.words[bank][used] = word;
                    self.used[bank] += 1;
                    distinct += 1;
                }
            }
        }
        let most = self.used.iter().copied().max().unwrap_or(0);
        (u64::from(most).max(1), distinct)
    }
}

fn group_mask(lanes: u32) -> u32 {
    if lanes >= 32 { u32::MAX } else { (1 << lanes) - 1 }
}

/// Whether all pairs of active lanes `n`, `n ^ distance` have equal addresses.
fn paired(addresses: &[u64; 32], exec: u32, distance: usize) -> bool {
    (0..32usize).all(|lane| {
        let other = lane ^ distance;
        let both = exec >> lane & 1 == 1 && exec >> other & 1 == 1;
        !both || addresses[lane] == addresses[other]
    })
}

/// Counts the 32-byte sectors that lanes access.
pub(crate) fn sectors(addresses: &Lanes, order: &ByAddress, bytes: u32) -> Sectors {
    sectors_of(order.active().iter().map(|lane| {
        let start = addresses[usize::from(*lane)];
        start..start.saturating_add(u64::from(bytes))
    }))
}

/// Counts the distinct bytes of ranges of addresses, in ascending order of their starts, and the 32-byte sectors in which they
/// lie.
pub(crate) fn sectors_of(ranges: impl Iterator<Item = Range<u64>>) -> Sectors {
    let mut found = Sectors { count: 0, ideal: 0, bytes: 0 };
    let (mut next_byte, mut next_sector) = (0u64, 0u64);
    for Range { start, end } in ranges {
        found.bytes += end.saturating_sub(next_byte.max(start));
        next_byte = next_byte.max(end);
        let first = (start / 32).max(next_sector);
        let stop = end.div_ceil(32);
        found.count += stop.saturating_sub(first);
        next_sector = next_sector.max(stop);
    }
    found.ideal = found.bytes.div_ceil(32);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::IN_ORDER;

    fn pattern(f: impl Fn(u64) -> u64) -> [u64; 32] {
        let mut addresses = [0; 32];
        for (lane, slot) in addresses.iter_mut().enumerate() {
            *slot = 1024 + f(lane as u64);
        }
        addresses
    }

    fn waves(bytes: u32, load: bool, f: impl Fn(u64) -> u64) -> (u64, u64) {
        let found = Banks::new().wavefronts(&pattern(f), u32::MAX, bytes, load);
        (found.count, found.ideal)
    }

    #[test]
    fn four_byte_patterns() {
        assert_eq!(waves(4, true, |lane| lane * 4), (1, 1));
        assert_eq!(waves(4, true, |_| 0), (1, 1));
        assert_eq!(waves(4, true, |lane| lane * 8), (2, 1));
        assert_eq!(waves(4, true, |lane| lane * 128), (32, 1));
        assert_eq!(waves(2, true, |lane| lane * 2), (1, 1));
    }

    #[test]
    fn wide_accesses_are_judged_in_parts() {
        assert_eq!(waves(8, true, |lane| lane * 8), (2, 2));
        assert_eq!(waves(16, false, |lane| lane * 16), (4, 4));
        assert_eq!(waves(16, true, |lane| lane * 128), (32, 4));
    }

    #[test]
    fn equal_neighbours_double_the_groups_of_loads() {
        assert_eq!(waves(16, true, |lane| lane / 2 * 16), (2, 2));
        assert_eq!(waves(16, false, |lane| lane / 2 * 16), (4, 4));
        assert_eq!(waves(8, true, |_| 0), (1, 1));
    }

    #[test]
    fn inactive_lanes_count_nothing() {
        let found = Banks::new().wavefronts(&pattern(|lane| lane * 128), 0b11, 4, true);
        assert_eq!(found, Wavefronts { count: 2, ideal: 1 });
    }

    fn sectors_of(addresses: Lanes, bytes: u32) -> Sectors {
        sectors(&addresses, &ByAddress::new(&addresses, u32::MAX, &mut IN_ORDER.clone()), bytes)
    }

    #[test]
    fn sectors_of_known_patterns() {
        assert_eq!(sectors_of(pattern(|lane| lane * 4), 4), Sectors { count: 4, ideal: 4, bytes: 128 });
        assert_eq!(sectors_of(pattern(|lane| lane * 32), 4), Sectors { count: 32, ideal: 4, bytes: 128 });
        assert_eq!(sectors_of(pattern(|lane| 124 - lane * 4), 4), Sectors { count: 4, ideal: 4, bytes: 128 });
        assert_eq!(sectors_of(pattern(|_| 0), 4), Sectors { count: 1, ideal: 1, bytes: 4 });
        assert_eq!(sectors_of(pattern(|lane| lane * 16), 16), Sectors { count: 16, ideal: 16, bytes: 512 });
    }
}
