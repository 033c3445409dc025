//! Which thread holds which part of the rows that are reduced, and how the parts are combined.

use tilewright_layout::access::LANES;
use tilewright_layout::map::Map;

/// The slots of a thread's part of a row.
pub(super) type PartSlots = Vec<usize>;

/// The order of a thread's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// By their first slots.
    Slots,
    /// By their numbers.
    Rows,
}

/// A thread's part of a row.
#[derive(Clone, Debug)]
struct Own {
    row: usize,
    part: PartSlots,
    /// The elements of the part, in the order of the slots.
    elements: Vec<usize>,
}

/// The parts of all rows.
pub(super) struct Rows {
    /// By thread, its rows in order.
    of_thread: Vec<Vec<Own>>,
    /// By row, the threads that have part of it, in order.
    holders: Vec<Vec<usize>>,
    /// The number of elements of each row.
    sizes: Vec<usize>,
    /// Whether an element may count twice.
    is_idempotent: bool,
}

/// A set of elements that is emptied at once.
struct ElementSet {
    /// By element, the last generation in which it was in the set.
    stamps: Vec<u32>,
    generation: u32,
}

impl ElementSet {
    fn new(elements: usize) -> ElementSet {
        ElementSet { stamps: vec![0; elements], generation: 1 }
    }

    fn clear(&mut self) {
        self.generation += 1;
    }

    fn contains(&self, element: usize) -> bool {
        self.stamps[element] == self.generation
    }

    /// Adds an element; whether it was new.
    fn insert(&mut self, element: usize) -> bool {
        std::mem::replace(&mut self.stamps[element], self.generation) != self.generation
    }
}

/// An exchange combines the parts of a row within one warp, over the threads that differ only in these bits of their
/// lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShuffleMask {
    /// The bits, as a mask.
    pub(super) bits: usize,
}

impl ShuffleMask {
    /// The masks of the shuffles, lowest bit first.
    pub(super) fn masks(self) -> impl Iterator<Item = usize> {
        (0..5).map(|bit| 1 << bit).filter(move |mask| self.bits & mask != 0)
    }

    /// The threads that end up with the same combined part as `thread`.
    fn group(self, thread: usize) -> impl Iterator<Item = usize> {
        (0..LANES).filter(move |other| other & !self.bits == 0).map(move |other| thread ^ other)
    }

    fn leads(self, thread: usize) -> bool {
        thread & self.bits == 0
    }
}

impl Rows {
    /// The parts of `rows` rows: `source` has the elements of each thread, each in one slot, and `row_of` is the row of an
    /// element.
    pub(super) fn of(
        source: &Map,
        rows: usize,
        row_of: impl Fn(usize) -> usize,
        is_idempotent: bool,
        order: Order,
    ) -> Rows {
        let (mut sizes, mut holders) = (vec![0; rows], vec![Vec::new(); rows]);
        (0..source.elements()).for_each(|element| sizes[row_of(element)] += 1);
        let of_thread = (0..source.threads()).map(|thread| {
            let mut own = parts(source, thread, &row_of);
            own.iter().for_each(|own| holders[own.row].push(thread));
            if order == Order::Rows {
                own.sort_by_key(|own| own.row);
            }
            own
        });
        Rows { of_thread: of_thread.collect(), holders, sizes, is_idempotent }
    }

    fn part_of(&self, thread: usize, row: usize) -> Option<&Own> {
        self.of_thread.get(thread)?.iter().find(|own| own.row == row)
    }

    pub(super) fn threads(&self) -> usize {
        self.of_thread.len()
    }

    /// The most parts that a thread has.
    pub(super) fn most_parts(&self) -> usize {
        self.of_thread.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The place of a row among a thread's rows.
    pub(super) fn place(&self, thread: usize, row: usize) -> Option<usize> {
        self.of_thread[thread].iter().position(|own| own.row == row)
    }

    /// The row at a place among a thread's rows, and its part.
    pub(super) fn at(&self, thread: usize, place: usize) -> Option<(usize, &PartSlots)> {
        self.of_thread[thread].get(place).map(|own| (own.row, &own.part))
    }

    /// The smallest exchange after which every thread that has part of a row has all of it; `None` if there is none.
    pub(super) fn complete(&self) -> Option<ShuffleMask> {
        self.exchanges().find(|exchange| {
            self.all_groups(*exchange, |row, once, all| all == self.sizes[row] && (once || self.is_idempotent))
        })
    }

    /// The widest exchange in which no element counts twice.
    pub(super) fn partial(&self) -> ShuffleMask {
        let is_right = |exchange: &ShuffleMask| self.all_groups(*exchange, |_, once, _| once || self.is_idempotent);
        let widest = self.exchanges().filter(is_right).max_by_key(|exchange| exchange.bits.count_ones());
        widest.unwrap_or(ShuffleMask { bits: 0 })
    }

    /// The same rows with empty parts for threads that have none, so that a smallest exchange completes every row;
    /// `None` if there is no such exchange.
    pub(super) fn padded_complete(&self) -> Option<(Rows, ShuffleMask)> {
        self.padded(self.exchanges(), |rows, row, once, all| all == rows.sizes[row] && (once || rows.is_idempotent))
    }

    /// The same rows with empty parts for threads that have none, and the widest exchange in which no element counts
    /// twice; `None` if these parts do not allow a wider exchange than [`Rows::partial`].
    pub(super) fn padded_partial(&self) -> Option<(Rows, ShuffleMask)> {
        let plain = self.partial().bits.count_ones();
        let mut wider: Vec<ShuffleMask> = self.exchanges().filter(|wide| wide.bits.count_ones() > plain).collect();
        wider.reverse();
        self.padded(wider.into_iter(), |rows, _, once, _| once || rows.is_idempotent)
    }

    /// The first exchange that is right with empty parts, and the rows with these.
    fn padded(
        &self,
        mut exchanges: impl Iterator<Item = ShuffleMask>,
        is_right: impl Fn(&Rows, usize, bool, usize) -> bool,
    ) -> Option<(Rows, ShuffleMask)> {
        let most = self.most_parts();
        if self.of_thread.iter().all(|own| own.len() == most) {
            return None;
        }
        exchanges.find_map(|exchange| {
            let rows = self.with_empty_parts(exchange)?;
            let is_right = rows.all_groups(exchange, |row, once, all| is_right(&rows, row, once, all));
            is_right.then_some((rows, exchange))
        })
    }

    /// The rows where each thread also has an empty part of the last rows that another thread of its group has, and it
    /// has not. `None` if there are lanes without a thread, or threads have different rows at the same place.
    fn with_empty_parts(&self, exchange: ShuffleMask) -> Option<Rows> {
        let (mut of_thread, mut holders) = (self.of_thread.clone(), self.holders.clone());
        for leader in (0..self.threads()).filter(|thread| exchange.leads(*thread)) {
            let rows_of = |thread: usize| self.of_thread.get(thread).map_or(&[][..], Vec::as_slice);
            let Some(longest) = exchange.group(leader).map(rows_of).max_by_key(|own| own.len()) else { continue };
            for thread in exchange.group(leader) {
                let own = rows_of(thread);
                let (common, missing) = longest.split_at(own.len());
                if !own.iter().map(|own| own.row).eq(common.iter().map(|own| own.row)) {
                    return None;
                }
                for Own { row, .. } in missing {
                    of_thread.get_mut(thread)?.push(Own { row: *row, part: Vec::new(), elements: Vec::new() });
                    holders[*row].push(thread);
                }
            }
        }
        holders.iter_mut().for_each(|threads| threads.sort_unstable());
        Some(Rows { of_thread, holders, sizes: self.sizes.clone(), is_idempotent: self.is_idempotent })
    }

    /// All exchanges, those of fewer shuffles first.
    fn exchanges(&self) -> impl Iterator<Item = ShuffleMask> {
        let mut all: Vec<usize> = (0..LANES).collect();
        all.sort_by_key(|bits| (bits.count_ones(), *bits));
        let threads = self.threads();
        all.into_iter().filter(move |bits| *bits < threads.max(1)).map(|bits| ShuffleMask { bits })
    }

    /// Whether in every group all threads have the same row at the same place, and `is_right(row, whether no element
    /// is there twice, number of elements)`.
    fn all_groups(&self, exchange: ShuffleMask, is_right: impl Fn(usize, bool, usize) -> bool) -> bool {
        let mut different = ElementSet::new(self.sizes.iter().sum());
        (0..self.threads()).filter(|thread| exchange.leads(*thread)).all(|thread| {
            let group = || exchange.group(thread).map(|other| self.of_thread.get(other).map_or(&[][..], Vec::as_slice));
            let leader = &self.of_thread[thread];
            group().all(|own| own.iter().map(|own| own.row).eq(leader.iter().map(|own| own.row)))
                && leader.iter().enumerate().all(|(place, own)| {
                    different.clear();
                    let parts = || group().flat_map(|own| &own[place].elements);
                    let count = parts().filter(|element| different.insert(**element)).count();
                    is_right(own.row, count == parts().count(), count)
                })
        })
    }

    /// After an exchange, for every row the threads whose parts make it up: one thread of each group that counts.
    /// Error: no choice of threads makes up a row.
    pub(super) fn leaders(&self, exchange: ShuffleMask) -> Result<Vec<Vec<usize>>, String> {
        // An element belongs to one row.
        let mut counted = ElementSet::new(self.sizes.iter().sum());
        let leaders_of = |(row, holders): (usize, &Vec<usize>)| {
            let (mut leaders, mut size) = (Vec::new(), 0);
            for thread in holders.iter().copied().filter(|thread| exchange.leads(*thread)) {
                let parts = || exchange.group(thread).filter_map(|other| self.part_of(other, row));
                let elements = || parts().flat_map(|own| own.elements.iter().copied());
                let is_new = |element| !counted.contains(element);
                let counts = if self.is_idempotent { elements().any(is_new) } else { elements().all(is_new) };
                if counts {
                    size += elements().filter(|element| counted.insert(*element)).count();
                    leaders.push(thread);
                }
            }
            if size != self.sizes[row] {
                return Err(format!("no set of threads holds every element of row {row} exactly once"));
            }
            // Threads for which it is the first row come first, so that the parts of adjacent rows are adjacent.
            leaders.sort_by_key(|thread| (self.place(*thread, row), *thread));
            Ok(leaders)
        };
        self.holders.iter().enumerate().map(leaders_of).collect()
    }
}

/// A thread's parts of rows, in the order of their first slots.
fn parts(source: &Map, thread: usize, row_of: impl Fn(usize) -> usize) -> Vec<Own> {
    let mut parts: Vec<Own> = Vec::new();
    for slot in 0..source.slots() {
        let Some(element) = source.at(thread, slot) else { continue };
        let row = row_of(element);
        // Most elements follow one of the same row.
        let at = parts.iter().rposition(|own| own.row == row).unwrap_or_else(|| {
            parts.push(Own { row, part: Vec::new(), elements: Vec::new() });
            parts.len() - 1
        });
        parts[at].part.push(slot);
        parts[at].elements.push(element);
    }
    parts
}

#[cfg(test)]
mod tests {
    use tilewright_layout::map::Spread;

    use super::*;

    fn rows(threads: usize, rows: usize, spread: Spread, is_idempotent: bool) -> Rows {
        let map = Map::spread(threads, rows * spread.row, spread);
        Rows::of(&map, rows, |element| element / spread.row, is_idempotent, Order::Slots)
    }

    #[test]
    fn threads_of_a_row_that_are_neighbours_exchange_by_their_low_bits() {
        let rows = rows(32, 8, Spread { row: 16, group: 4, groups: 8, vector: 2 }, false);
        assert_eq!(rows.complete().map(|exchange| exchange.masks().collect()), Some(vec![1, 2]));
        assert_eq!((rows.most_parts(), rows.at(5, 0)), (1, Some((1, &vec![0, 1, 2, 3]))));
    }

    #[test]
    fn a_row_on_one_thread_needs_no_exchange() {
        let rows = rows(32, 32, Spread { row: 3, group: 1, groups: 32, vector: 1 }, false);
        assert_eq!(rows.complete(), Some(ShuffleMask { bits: 0 }));
    }

    #[test]
    fn a_row_across_warps_is_led_by_one_thread_of_each() {
        let rows = rows(64, 1, Spread { row: 64, group: 64, groups: 1, vector: 1 }, false);
        assert_eq!((rows.complete(), rows.partial()), (None, ShuffleMask { bits: 31 }));
        assert_eq!(rows.leaders(rows.partial()), Ok(vec![vec![0, 32]]));
    }

    #[test]
    fn threads_without_a_part_take_part_in_shuffles() {
        let few = |threads: usize, holding: usize| {
            let map = Map::of_slots(threads, holding, |thread, _| (thread < holding).then_some(thread), 1);
            Rows::of(&map, 1, |_| 0, false, Order::Slots)
        };
        let rows = few(32, 3);
        let (padded, exchange) = rows.padded_complete().unwrap();
        assert_eq!((rows.complete(), exchange.masks().collect::<Vec<_>>()), (None, vec![1, 2]));
        assert_eq!((padded.place(3, 0), padded.place(4, 0)), (Some(0), None));
        let rows = few(64, 50);
        assert_eq!(
            (rows.partial(), rows.padded_complete().map(|(_, exchange)| exchange)),
            (ShuffleMask { bits: 1 }, None)
        );
        let (padded, exchange) = rows.padded_partial().unwrap();
        assert_eq!((padded.leaders(exchange), exchange.bits), (Ok(vec![vec![0, 32]]), 31));
        assert!(few(64, 64).padded_partial().is_none());
    }

    #[test]
    fn lanes_without_a_thread_take_part_in_no_shuffle() {
        let map = Map::of_slots(50, 49, |thread, _| (thread < 49).then_some(thread), 1);
        let rows = Rows::of(&map, 1, |_| 0, false, Order::Slots);
        let exchange = rows.padded_partial().map(|(_, exchange)| exchange.bits);
        assert_eq!(
            exchange,
            Some(1),
            "the last group of two has a thread without an element, larger ones a lane without a thread"
        );
    }

    #[test]
    fn copies_of_a_row_count_once() {
        let map = Map::of_slots(8, 4, |thread, _| Some(thread % 4), 1);
        let rows = Rows::of(&map, 1, |_| 0, false, Order::Slots);
        assert_eq!(rows.complete().map(|exchange| exchange.masks().collect()), Some(vec![1, 2]));
        let map = Map::of_slots(8, 3, |thread, _| (thread < 6).then_some(thread % 3), 1);
        let rows = Rows::of(&map, 1, |_| 0, false, Order::Slots);
        assert_eq!(rows.leaders(ShuffleMask { bits: 0 }), Ok(vec![vec![0, 1, 2]]));
    }
}
