//! Distribution of elements among threads in row-major order.

use super::{Map, NONE};

/// How elements in row-major order are distributed among threads: rows of `row` elements, each on `group` threads,
/// `vector` adjacent elements on one thread. With one row it is the plain order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spread {
    /// Elements of a row.
    pub row: usize,
    /// Threads that share a row.
    pub group: usize,
    /// Groups of threads that share the rows.
    pub groups: usize,
    /// Adjacent elements of one thread.
    pub vector: usize,
}

impl Spread {
    /// Slots that each thread needs for this many elements.
    pub fn slots(&self, elements: usize) -> usize {
        elements.div_ceil(self.row.max(1)).div_ceil(self.groups.max(1)) * self.slots_of_row()
    }

    fn slots_of_row(&self) -> usize {
        self.row.div_ceil(self.vector.max(1)).div_ceil(self.group.max(1)) * self.vector.max(1)
    }
}

impl Map {
    /// Every element on one thread, in the order of `spread`. Slots beyond the end of a row stay empty.
    pub fn spread(threads: usize, elements: usize, spread: Spread) -> Map {
        let mut map = Map { threads, elements, held: vec![NONE; spread.slots(elements) * threads] };
        for (line, first) in (0..elements).step_by(spread.row.max(1)).enumerate() {
            let thread = line % spread.groups.max(1) * spread.group.max(1);
            let slot = line / spread.groups.max(1) * spread.slots_of_row();
            map.spread_row(first..elements.min(first + spread.row.max(1)), spread, (thread, slot));
        }
        map
    }

    /// Puts a row on the threads from `thread` on, in the slots from `slot` on.
    fn spread_row(&mut self, row: std::ops::Range<usize>, spread: Spread, (thread, slot): (usize, usize)) {
        let (group, vector) = (spread.group.max(1), spread.vector.max(1));
        let (mut member, mut slot) = (0, slot);
        for first in row.clone().step_by(vector) {
            if thread + member < self.threads {
                let place = slot * self.threads + thread + member;
                let places = self.held[place..].iter_mut().step_by(self.threads);
                for (entry, element) in places.zip(first..row.end.min(first + vector)) {
                    *entry = element as u32;
                }
            }
            member += 1;
            if member == group {
                (member, slot) = (0, slot + vector);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_adjacent_elements_go_to_the_threads_in_turn() {
        let map = Map::spread(4, 16, Spread { row: 16, group: 4, groups: 1, vector: 2 });
        assert_eq!((map.at(0, 0), map.at(0, 1), map.at(0, 2), map.at(3, 3)), (Some(0), Some(1), Some(8), Some(15)));
    }

    #[test]
    fn rows_that_do_not_fill_their_threads_leave_slots_empty() {
        let map = Map::spread(8, 2 * 6, Spread { row: 6, group: 4, groups: 2, vector: 1 });
        assert_eq!((map.slots(), map.missing(), map.at(2, 1), map.at(5, 1)), (2, None, None, Some(11)));
    }

    #[test]
    fn slots_are_known_before_anything_is_listed() {
        for (row, group, groups, vector) in [(96, 4, 16, 4), (96, 64, 1, 1), (7, 3, 2, 1), (1536, 64, 1, 2)] {
            let spread = Spread { row, group, groups, vector };
            let map = Map::spread(64, 1536, spread);
            assert_eq!((map.slots(), map.missing()), (spread.slots(1536), None), "{spread:?}");
        }
    }
}
