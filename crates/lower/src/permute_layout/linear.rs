//! Tiles whose addresses are linear over the bits of an element's index, and the lanes that serve them at once.
//!
//! In a tile of `2^n` elements with nested powers of two as strides, swizzled or not, every bit of an element's index
//! flips a fixed set of bits of its address. Indices, addresses and banks are then vectors of bits, and "no two lanes
//! of a group meet in a bank" means that the banks of the lane bits are independent vectors. Since a vector space is
//! never the union of two proper subspaces, choosing one vector after the other finds lanes without conflicts on both
//! sides.

/// Addresses that are linear over the bits of an index: `base ^ columns[i] ^ ...` for the bits `i` that are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BitMap {
    /// The address of index 0.
    base: i64,
    /// The address bits that each bit of the index flips.
    columns: Vec<i64>,
}

impl BitMap {
    /// The map of these addresses, one per index, if they are linear: their number is a power of two, and none is
    /// negative.
    pub(crate) fn of(addresses: &[i64]) -> Option<BitMap> {
        let base = *addresses.first()?;
        if !addresses.len().is_power_of_two() || addresses.iter().any(|address| *address < 0) {
            return None;
        }
        let columns = (0..addresses.len().trailing_zeros()).map(|bit| addresses[1 << bit] ^ base).collect();
        let map = BitMap { base, columns };
        let is_linear = (0..).zip(addresses).all(|(index, address)| map.base ^ map.image(index) == *address);
        is_linear.then_some(map)
    }

    /// The address of index 0.
    pub(crate) fn base(&self) -> i64 {
        self.base
    }

    /// The same addresses in units that are `factor` times smaller; `factor` is a power of two.
    pub(crate) fn scaled(&self, factor: i64) -> BitMap {
        let columns = self.columns.iter().map(|column| column * factor).collect();
        BitMap { base: self.base * factor, columns }
    }

    /// The number of bits of an index.
    pub(crate) fn bits(&self) -> usize {
        self.columns.len()
    }

    /// How the address changes with these bits of the index.
    pub(crate) fn image(&self, index: i64) -> i64 {
        let set = self.columns.iter().enumerate().filter(|(bit, _)| index >> bit & 1 == 1);
        set.fold(0, |image, (_, column)| image ^ column)
    }

    /// An index with this image; a single bit is preferred.
    fn preimage(&self, image: i64) -> Option<i64> {
        let single = self.columns.iter().position(|column| *column == image);
        single.map(|bit| 1 << bit).or_else(|| (1..1i64 << self.bits()).find(|index| self.image(*index) == image))
    }

    /// Indices whose images are `unit`, `2 unit`, `4 unit`, ...: neighbours in memory, `most` at most.
    pub(crate) fn neighbours(&self, unit: i64, most: usize) -> Vec<i64> {
        (0..most).map_while(|bit| self.preimage(unit << bit)).collect()
    }
}

/// The span of vectors of bits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    /// Independent vectors with different highest bits, in descending order.
    basis: Vec<i64>,
}

impl Span {
    /// The span of these vectors.
    pub(crate) fn of(vectors: &[i64]) -> Span {
        let mut span = Span::default();
        for vector in vectors {
            span.add(*vector);
        }
        span
    }

    /// The vector reduced by the basis; 0 if it lies in the span.
    fn rest(&self, vector: i64) -> i64 {
        self.basis.iter().fold(vector, |rest, known| rest.min(rest ^ known))
    }

    pub(crate) fn contains(&self, vector: i64) -> bool {
        self.rest(vector) == 0
    }

    /// Adds a vector; false if it was in the span already.
    pub(crate) fn add(&mut self, vector: i64) -> bool {
        let rest = self.rest(vector);
        if rest != 0 {
            self.basis.push(rest);
            self.basis.sort_unstable_by(|a, b| b.cmp(a));
        }
        rest != 0
    }

    pub(crate) fn dimension(&self) -> usize {
        self.basis.len()
    }
}

/// What the lanes of one access must achieve for an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Shared memory: lanes that are served together must not meet in a bank.
    Banks,
    /// Global memory: lanes must fill sectors.
    Sectors,
}

/// One side of the move.
#[derive(Clone, Debug)]
pub(crate) struct LinearSide {
    /// Byte addresses, linear over the bits of the element's index.
    pub(crate) map: BitMap,
    /// Bytes of one access.
    pub(crate) width: i64,
    pub(crate) aim: Aim,
    /// Indices that a lane may XOR into its accesses, to change their order.
    pub(crate) turns: Vec<i64>,
}

/// The index that a bit of the lane's number stands for, when reading and when writing. They differ by turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneBit {
    pub(crate) read: i64,
    pub(crate) write: i64,
    /// Which turns of the source's side are in `read`, as bits.
    pub(crate) read_turns: i64,
    /// Which turns of the destination's side are in `write`, as bits.
    pub(crate) write_turns: i64,
}

/// Bits of a lane's number.
pub(crate) const LANE_BITS: usize = 5;

impl LinearSide {
    /// How many low bits of the lane's number differ between lanes that are served together.
    fn group_bits(&self) -> usize {
        match self.width {
            0..=4 => LANE_BITS,
            5..=8 => LANE_BITS - 1,
            _ => LANE_BITS - 2,
        }
    }

    /// The change of the bank that an index causes, in units of the access.
    fn bank(&self, index: i64) -> i64 {
        let unit = self.width.max(4);
        self.map.image(index) % 128 / unit
    }

    /// The change of the access that an index causes.
    fn access(&self, index: i64) -> i64 {
        self.map.image(index) / self.width.max(4)
    }

    fn sector(&self, index: i64) -> i64 {
        self.map.image(index) / 32
    }

    /// The XOR of the turns whose bits are set.
    fn turn(&self, turns: i64) -> i64 {
        let set = self.turns.iter().enumerate().filter(|(bit, _)| turns >> bit & 1 == 1);
        set.fold(0, |sum, (_, turn)| sum ^ turn)
    }
}

/// The lane bits chosen so far, as one side sees them.
#[derive(Clone, Debug, Default)]
struct Seen {
    banks: Span,
    accesses: Span,
    /// The number of lane bits.
    lanes: usize,
}

impl Seen {
    /// Adds a lane bit; `None` if lanes that are served together would then meet in a bank.
    fn with(&self, side: &LinearSide, index: i64) -> Option<Seen> {
        let mut seen = self.clone();
        seen.lanes += 1;
        let served_apart = self.lanes >= side.group_bits();
        if side.aim == Aim::Banks && !served_apart {
            seen.banks.add(side.bank(index));
            seen.accesses.add(side.access(index));
            if seen.banks.dimension() < seen.accesses.dimension() {
                return None;
            }
        }
        Some(seen)
    }

    /// The first turns with which this side accepts `index`, as bits.
    fn turned(&self, side: &LinearSide, index: i64) -> Option<(i64, Seen)> {
        (0..1i64 << side.turns.len()).find_map(|turns| Some((turns, self.with(side, index ^ side.turn(turns))?)))
    }
}

/// Lanes for both sides, as sums of the independent indices `basis`; `first` are lane bits that are fixed already.
/// Where the basis has fewer indices than the lanes could take, there are fewer than 5 bits. `None` if no further lane
/// bit serves both sides although there are indices left.
pub(crate) fn choose_lanes(
    src: &LinearSide,
    dst: &LinearSide,
    basis: &[i64],
    first: &[LaneBit],
) -> Option<Vec<LaneBit>> {
    let mut lanes = Vec::new();
    let mut taken = Span::default();
    let (mut reads, mut writes) = (Seen::default(), Seen::default());
    for bit in first {
        reads = reads.with(src, bit.read)?;
        writes = writes.with(dst, bit.write)?;
        lanes.push(*bit);
    }
    let wanted = (first.len() + basis.len()).min(LANE_BITS);
    let candidates = candidates(src, dst, basis);
    while lanes.len() < wanted {
        let next = candidates.iter().filter(|index| !taken.contains(**index)).find_map(|index| {
            let (read_turns, reads) = reads.turned(src, *index)?;
            let (write_turns, writes) = writes.turned(dst, *index)?;
            let (read, write) = (index ^ src.turn(read_turns), index ^ dst.turn(write_turns));
            Some((*index, LaneBit { read, write, read_turns, write_turns }, reads, writes))
        });
        let (index, bit, after_read, after_write) = next?;
        taken.add(index);
        lanes.push(bit);
        (reads, writes) = (after_read, after_write);
    }
    Some(lanes)
}

/// Indices in the order in which they are tried: those that fill sectors, those of the basis, their pairs, then all
/// their sums.
fn candidates(src: &LinearSide, dst: &LinearSide, basis: &[i64]) -> Vec<i64> {
    let mut found = Vec::new();
    for side in [src, dst].into_iter().filter(|side| side.aim == Aim::Sectors) {
        let mut inside: Vec<i64> = basis.iter().copied().filter(|index| side.sector(*index) == 0).collect();
        inside.sort_by_key(|index| side.map.image(*index));
        found.extend(inside);
    }
    found.extend(basis);
    for (at, one) in basis.iter().enumerate() {
        found.extend(basis[..at].iter().map(|other| one ^ other));
    }
    found.extend(&sums(basis)[1..]);
    found
}

/// All sums of these indices; bit `i` of the place says whether index `i` is in the sum.
pub(crate) fn sums(indices: &[i64]) -> Vec<i64> {
    let with = |sums: Vec<i64>, index: &i64| {
        let others: Vec<i64> = sums.iter().map(|sum| sum ^ index).collect();
        [sums, others].concat()
    };
    indices.iter().fold(vec![0], with)
}

/// The single bits, in the order of the addresses of `map`, that with `taken` span all indices.
pub(crate) fn complement(map: &BitMap, taken: &[i64]) -> Vec<i64> {
    let mut span = Span::of(taken);
    let mut single: Vec<i64> = (0..map.bits()).map(|bit| 1 << bit).collect();
    single.sort_by_key(|index| map.image(*index));
    single.retain(|index| span.add(*index));
    single
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_layout::access::{AccessKind, WarpAccess};

    fn side(addresses: &[i64], width: i64) -> LinearSide {
        let map = BitMap::of(addresses).expect("linear");
        LinearSide { map, width, aim: Aim::Banks, turns: Vec::new() }
    }

    /// Byte addresses of a row-major `rows` x `cols` tile and of its transpose, for the same elements.
    fn transpose(rows: i64, cols: i64, bytes: i64) -> (Vec<i64>, Vec<i64>) {
        let all = 0..rows * cols;
        (all.clone().map(|x| x * bytes).collect(), all.map(|x| (x % cols * rows + x / cols) * bytes).collect())
    }

    fn wavefronts(side: &LinearSide, lanes: &[i64], step: i64) -> u32 {
        let lane_index = |lane: usize| {
            let set = lanes.iter().enumerate().filter(|(bit, _)| lane >> bit & 1 == 1);
            set.fold(step, |index, (_, vector)| index ^ vector)
        };
        let address = |lane: usize| Some((side.map.base() ^ side.map.image(lane_index(lane))) as u64);
        WarpAccess::of(side.width as u64, AccessKind::Store, address).wavefronts()
    }

    #[test]
    fn an_address_that_carries_is_not_linear() {
        assert!(BitMap::of(&[0, 3, 6, 9]).is_none());
        assert_eq!(BitMap::of(&[8, 10, 0, 2]).map(|map| (map.base(), map.image(3))), Some((8, 10)));
    }

    #[test]
    fn transposes_of_every_shape_get_lanes_without_conflicts() {
        for bytes in [4, 8, 16] {
            for (rows, cols) in [(32, 32), (4, 32), (32, 4), (16, 16), (8, 64), (64, 16), (2, 64), (32, 16)] {
                let (src, dst) = transpose(rows, cols, bytes);
                let (src, dst) = (side(&src, bytes), side(&dst, bytes));
                let lanes = choose_lanes(&src, &dst, &complement(&src.map, &[]), &[]).expect("lanes");
                let reads: Vec<i64> = lanes.iter().map(|bit| bit.read).collect();
                let per_step = (32 * bytes / 128).max(1) as u32;
                assert_eq!(
                    (wavefronts(&src, &reads, 0), wavefronts(&dst, &reads, 0)),
                    (per_step, per_step),
                    "{rows} x {cols} of {bytes} bytes"
                );
            }
        }
    }

    #[test]
    fn lanes_of_narrow_elements_may_share_a_word() {
        let (src, dst) = transpose(4, 8, 1);
        let (src, dst) = (side(&src, 1), side(&dst, 1));
        let lanes = choose_lanes(&src, &dst, &complement(&src.map, &[]), &[]).expect("lanes");
        assert_eq!(lanes.len(), 5);
    }

    #[test]
    fn registers_complete_the_lanes() {
        let (src, _) = transpose(8, 16, 4);
        let map = BitMap::of(&src).expect("linear");
        assert_eq!(complement(&map, &[1, 2, 4 | 64, 8, 16]), [4, 32]);
    }
}
