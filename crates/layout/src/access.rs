//! The cost of one warp's memory access: wavefronts in shared memory, sectors in global memory.
//!
//! This is the documented model; it has not yet been compared with a GPU. Shared memory has 32 banks of 4 bytes (CUDA
//! C++ Programming Guide, "Shared Memory"). One pass over the banks is a *wavefront*. An access is counted as follows:
//!
//! - a group of lanes takes as many wavefronts as the most distinct 4-byte words in one bank; lanes in the same word
//!   merge;
//! - an access of up to 4 bytes per lane is one group of 32 lanes, one of 8 bytes two groups of 16 (half warps), one of
//!   16 bytes four groups of 8 (quarter warps), and the wavefronts of the groups add up;
//! - an 8- or 16-byte *load* in which all pairs of lanes `n, n^1`, or all pairs `n, n^2`, have the same address is
//!   served in groups twice as large, which takes half the passes;
//! - inactive lanes do not count.

/// Lanes in a warp.
pub const LANES: usize = 32;
const BANKS: u64 = 32;
const WORD: u64 = 4;
/// Bytes of a global-memory sector.
pub const SECTOR: u64 = 32;
/// Bytes that one wavefront can move: one word from every bank.
pub const WAVEFRONT_BYTES: i64 = 128;

/// Whether an access loads or stores; only loads merge pairs of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
}

/// One memory access by one warp.
#[derive(Clone, Debug)]
pub struct WarpAccess {
    /// Byte address of each lane; `None` for an inactive lane. Aligned to `width`.
    pub addresses: [Option<u64>; LANES],
    /// Bytes per lane: 1, 2, 4, 8 or 16.
    pub width: u64,
    /// Load or store.
    pub kind: AccessKind,
}

impl WarpAccess {
    /// The access in which lane `l` touches `width` bytes at `address(l)`.
    pub fn of(width: u64, kind: AccessKind, address: impl Fn(usize) -> Option<u64>) -> WarpAccess {
        WarpAccess { addresses: std::array::from_fn(address), width, kind }
    }

    /// The wavefronts that the access takes in shared memory; 0 if no lane is active.
    pub fn wavefronts(&self) -> u32 {
        self.wavefronts_of_groups().sum()
    }

    /// The wavefronts of each group of lanes that is served together.
    pub(crate) fn wavefronts_of_groups(&self) -> impl Iterator<Item = u32> {
        self.addresses.chunks(self.group()).map(|lanes| self.group_wavefronts(lanes))
    }

    /// The fewest wavefronts possible for an access to as many distinct words, with as many lanes per group.
    pub fn ideal_wavefronts(&self) -> u32 {
        self.addresses.chunks(self.group()).map(|lanes| (self.words(lanes).len() as u32).div_ceil(BANKS as u32)).sum()
    }

    /// True when every group of lanes that is served together takes at most one wavefront.
    pub fn is_conflict_free(&self) -> bool {
        self.wavefronts_of_groups().all(|wavefronts| wavefronts <= 1)
    }

    /// The number of distinct 32-byte sectors of global memory that the access touches.
    pub fn sectors(&self) -> u32 {
        // Most accesses ascend with the lane.
        if !self.addresses.iter().flatten().is_sorted() {
            return self.distinct(&self.addresses, SECTOR).len() as u32;
        }
        let (mut sectors, mut next) = (0, 0);
        for address in self.addresses.iter().flatten() {
            let behind = address.saturating_add(self.width - 1) / SECTOR + 1;
            sectors += behind - next.max(address / SECTOR).min(behind);
            next = behind;
        }
        sectors as u32
    }

    /// The fewest sectors that can hold as many distinct bytes.
    pub fn ideal_sectors(&self) -> u32 {
        self.bytes().div_ceil(SECTOR) as u32
    }

    /// How many neighbouring lanes are served together: 32, 16 or 8, or twice as many for a load whose pairs of lanes
    /// agree.
    pub fn group(&self) -> usize {
        let single = match self.width {
            0..=4 => return LANES,
            5..=8 => LANES / 2,
            _ => LANES / 4,
        };
        if self.kind == AccessKind::Load && (self.pairs_agree(1) || self.pairs_agree(2)) { single * 2 } else { single }
    }

    /// True when every lane whose partner `n ^ step` is active too has the same address.
    fn pairs_agree(&self, step: usize) -> bool {
        (0..LANES).all(|lane| match (self.addresses[lane], self.addresses[lane ^ step]) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        })
    }

    fn group_wavefronts(&self, lanes: &[Option<u64>]) -> u32 {
        let mut per_bank = [0u32; BANKS as usize];
        for word in self.words(lanes) {
            per_bank[(word % BANKS) as usize] += 1;
        }
        per_bank.into_iter().max().unwrap_or(0)
    }

    /// The number of bytes that the lanes touch, each counted once.
    fn bytes(&self) -> u64 {
        let mut starts: Vec<u64> = self.addresses.iter().flatten().copied().collect();
        starts.sort_unstable();
        let (mut bytes, mut behind) = (0, 0);
        for start in starts {
            let end = start.saturating_add(self.width);
            bytes += end - start.max(behind).min(end);
            behind = end;
        }
        bytes
    }

    fn words(&self, lanes: &[Option<u64>]) -> Vec<u64> {
        self.distinct(lanes, WORD)
    }

    /// The distinct units of `unit` bytes that these lanes touch, in order.
    fn distinct(&self, lanes: &[Option<u64>], unit: u64) -> Vec<u64> {
        let mut units: Vec<u64> = Vec::with_capacity(lanes.len() * 4);
        for address in lanes.iter().flatten() {
            let last = address.saturating_add(self.width - 1) / unit;
            units.extend(address / unit..last.saturating_add(1));
        }
        // Most accesses ascend with the lane.
        if !units.is_sorted() {
            units.sort_unstable();
        }
        units.dedup();
        units
    }
}

/// The fewest wavefronts in which a warp can move a dense tile of `bytes` through shared memory once.
pub fn tile_floor(bytes: i64) -> i64 {
    (bytes + WAVEFRONT_BYTES - 1) / WAVEFRONT_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(width: u64, stride: u64, kind: AccessKind) -> u32 {
        WarpAccess::of(width, kind, |lane| Some(lane as u64 * stride)).wavefronts()
    }

    #[test]
    fn words_of_one_bank_take_turns() {
        let seen: Vec<u32> = [4, 8, 16, 128, 132].iter().map(|s| strided(4, *s, AccessKind::Load)).collect();
        assert_eq!(seen, [1, 2, 4, 32, 1]);
    }

    #[test]
    fn lanes_in_the_same_word_merge() {
        assert_eq!(
            (strided(4, 0, AccessKind::Load), strided(1, 1, AccessKind::Store), strided(2, 2, AccessKind::Store)),
            (1, 1, 1)
        );
    }

    #[test]
    fn wide_accesses_are_judged_by_half_and_quarter_warp() {
        assert_eq!((strided(8, 8, AccessKind::Store), strided(16, 16, AccessKind::Store)), (2, 4));
        assert_eq!((strided(8, 16, AccessKind::Store), strided(16, 32, AccessKind::Store)), (4, 8));
    }

    #[test]
    fn loads_whose_pairs_agree_take_half() {
        let pairs = |kind, step: usize| WarpAccess::of(8, kind, |lane| Some((lane & !step) as u64 * 8)).wavefronts();
        assert_eq!((pairs(AccessKind::Load, 1), pairs(AccessKind::Load, 2), pairs(AccessKind::Load, 4)), (2, 2, 2));
        assert_eq!(pairs(AccessKind::Store, 1), 2);
        let dense_pairs = |kind| WarpAccess::of(8, kind, |lane| Some((lane / 2) as u64 * 8)).wavefronts();
        assert_eq!((dense_pairs(AccessKind::Load), dense_pairs(AccessKind::Store)), (1, 2));
    }

    #[test]
    fn inactive_lanes_count_nothing() {
        let access = WarpAccess::of(4, AccessKind::Load, |lane| (lane < 2).then_some(lane as u64 * 128));
        assert_eq!(access.wavefronts(), 2);
        assert_eq!(WarpAccess::of(4, AccessKind::Load, |_| None).wavefronts(), 0);
    }

    #[test]
    fn sectors_are_distinct_32_byte_blocks() {
        let access = |stride| WarpAccess::of(4, AccessKind::Load, move |lane| Some(lane as u64 * stride)).sectors();
        assert_eq!((access(4), access(8), access(32), access(0)), (4, 8, 32, 1));
    }

    #[test]
    fn bytes_that_several_lanes_touch_count_once() {
        for (width, stride) in [(4, 4), (16, 4), (8, 0), (16, 24), (2, 1), (32, 16)] {
            let access = WarpAccess::of(width, AccessKind::Load, |lane| Some(((lane * 13) % 32) as u64 * stride));
            let all: std::collections::BTreeSet<u64> =
                (0..32).flat_map(|lane| lane * stride..lane * stride + width).collect();
            assert_eq!(access.bytes(), all.len() as u64, "{width} bytes, {stride} apart");
        }
    }
}
