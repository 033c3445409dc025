//! Maps derived from other maps.

use std::collections::BTreeMap;

use super::{Map, NONE};

impl Map {
    /// The map with every element replaced by `to(element)`, or removed where that is `None`. Slots that are equal on
    /// all threads are merged; no thread holds the same target twice.
    pub fn through(&self, elements: usize, to: &dyn Fn(usize) -> Option<usize>) -> Map {
        self.through_trips(elements, 1, &|element, _| to(element))
    }

    /// As [`Map::through`], where an element has several targets, `to(element, trip)`.
    pub fn through_trips(&self, elements: usize, trips: usize, to: &dyn Fn(usize, usize) -> Option<usize>) -> Map {
        let target = |element, trip| to(element, trip).map_or(NONE, |target| target as u32);
        let table: Vec<u32> =
            (0..self.elements).flat_map(|element| (0..trips).map(move |trip| target(element, trip))).collect();
        self.through_table(elements, trips, &table)
    }

    /// As [`Map::through_trips`], with the targets in a table, those of an element next to each other, [`NONE`] for
    /// none.
    pub fn through_table(&self, elements: usize, trips: usize, table: &[u32]) -> Map {
        let threads = self.threads.max(1);
        let mut held: Vec<u32> = Vec::with_capacity(self.held.len());
        let mut known: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut column = vec![NONE; threads];
        for source in self.columns() {
            for trip in 0..trips {
                for (target, element) in column.iter_mut().zip(source) {
                    *target = if *element == NONE { NONE } else { table[*element as usize * trips + trip] };
                }
                let Some(first) = column.iter().copied().find(|target| *target != NONE) else { continue };
                let alike = known.entry(first).or_default();
                if alike.iter().all(|start| held[*start..*start + threads] != column[..]) {
                    alike.push(held.len());
                    held.extend_from_slice(&column);
                }
            }
        }
        let map = Map { threads: self.threads, elements, held };
        if map.is_plain() { map } else { map.packed() }
    }

    /// The map with the elements renumbered by a table that gives no two elements the same number.
    pub fn renamed(&self, elements: usize, table: &[u32]) -> Map {
        let name = |element: &u32| if *element == NONE { NONE } else { table[*element as usize] };
        Map { threads: self.threads, elements, held: self.held.iter().map(name).collect() }
    }

    /// The map with every element split into `turns` consecutive elements, and every slot into `turns` consecutive
    /// slots.
    pub fn with_turns(&self, turns: usize) -> Map {
        if turns == 1 {
            return self.clone();
        }
        let split = |element: &u32, turn: usize| match *element {
            NONE => NONE,
            element => element * turns as u32 + turn as u32,
        };
        let column = |column: &[u32], turn: usize| column.iter().map(move |element| split(element, turn)).collect();
        let columns = self.columns().flat_map(|held| (0..turns).map(move |turn| column(held, turn)));
        let held = columns.collect::<Vec<Vec<u32>>>().concat();
        Map { threads: self.threads, elements: self.elements * turns, held }
    }

    /// The map with only the first owner of every element. Slots left empty are removed.
    pub fn once(&self) -> Map {
        self.once_in_place().without_empty_slots()
    }

    /// The map with only the first owner of every element, in its original slot.
    pub fn once_in_place(&self) -> Map {
        let mut first = vec![NONE; self.elements];
        for (thread, _, element) in self.entries() {
            first[element] = first[element].min(thread as u32);
        }
        let is_first = |thread: usize, element: usize| first[element] == thread as u32;
        let at = |thread: usize, slot: usize| self.at(thread, slot).filter(|element| is_first(thread, *element));
        Map::of_slots(self.threads, self.elements, at, self.slots())
    }

    /// The map in which each thread holds an element in one slot only, the first. Slots left empty are removed.
    pub fn once_per_thread(&self) -> Map {
        let mut map = self.clone();
        let mut holder = vec![NONE; self.elements];
        for thread in 0..self.threads {
            for slot in 0..self.slots() {
                let entry = &mut map.held[slot * self.threads + thread];
                if *entry != NONE && std::mem::replace(&mut holder[*entry as usize], thread as u32) == thread as u32 {
                    *entry = NONE;
                }
            }
        }
        map.without_empty_slots()
    }

    /// The map without slots in which no thread holds an element.
    pub fn without_empty_slots(mut self) -> Map {
        let is_full = |column: &[u32]| column.iter().any(|entry| *entry != NONE);
        if !self.columns().all(is_full) {
            self.held = self.columns().filter(|column| is_full(column)).flatten().copied().collect();
        }
        self
    }

    /// The map with an owner for every element: elements that no thread holds go into free entries, slot by slot.
    pub fn filled(&self) -> Map {
        let mut is_had = vec![false; self.elements];
        for (_, _, element) in self.entries() {
            is_had[element] = true;
        }
        let (mut map, mut place) = (self.clone(), 0);
        for element in (0..self.elements).filter(|element| !is_had[*element]) {
            while map.held.get(place).is_some_and(|entry| *entry != NONE) {
                place += 1;
            }
            if place == map.held.len() {
                map.held.resize(place + map.threads.max(1), NONE);
            }
            map.held[place] = element as u32;
        }
        map
    }

    /// The map with the owners of both. Owners that `other` adds use the element's slot here where that is free,
    /// otherwise one slot that is free on all remaining threads, so that slots rarely depend on the thread.
    pub fn widened(&self, other: &Map) -> Map {
        let (here, there) = (self.owners(), other.owners());
        let mut slot_of: Vec<Option<usize>> = vec![None; self.elements];
        for (_, slot, element) in self.entries() {
            slot_of[element].get_or_insert(slot);
        }
        let mut map = self.clone();
        let mut first_free = vec![0; self.threads];
        for (element, slot) in slot_of.into_iter().enumerate() {
            let is_new = |thread: &usize| !here.has(element, *thread);
            let mut left: Vec<usize> = there.of(element).iter().map(|thread| *thread as usize).filter(is_new).collect();
            left.dedup();
            if let Some(slot) = slot {
                left.retain(|thread| !map.put_if_free(*thread, slot, element));
            }
            map.put_together(&left, element, &mut first_free);
        }
        map
    }

    /// Puts an element into a slot if the slot is free; returns whether it was.
    fn put_if_free(&mut self, thread: usize, slot: usize, element: usize) -> bool {
        let is_free = self.at(thread, slot).is_none();
        if is_free {
            self.put(thread, slot, element);
        }
        is_free
    }

    /// Gives an element to some threads, in one slot that is free on all of them. `first_free` holds for each thread a
    /// slot before which none is free, and is kept up to date.
    fn put_together(&mut self, threads: &[usize], element: usize, first_free: &mut [usize]) {
        for thread in threads {
            while self.at(*thread, first_free[*thread]).is_some() {
                first_free[*thread] += 1;
            }
        }
        let Some(mut slot) = threads.iter().map(|thread| first_free[*thread]).max() else { return };
        while threads.iter().any(|thread| self.at(*thread, slot).is_some()) {
            slot += 1;
        }
        for thread in threads {
            self.put(*thread, slot, element);
        }
    }

    /// Whether no thread holds an element twice.
    fn is_plain(&self) -> bool {
        let mut last_seen_by = vec![NONE; self.elements];
        (0..self.threads).all(|thread| {
            self.of_thread(thread)
                .all(|element| std::mem::replace(&mut last_seen_by[element], thread as u32) != thread as u32)
        })
    }

    /// Every thread's elements in order, each once.
    fn packed(&self) -> Map {
        let mut map = Map::empty(self.threads, self.elements);
        for thread in 0..self.threads {
            let mut list: Vec<usize> = self.of_thread(thread).collect();
            list.sort_unstable();
            list.dedup();
            for (slot, element) in list.into_iter().enumerate() {
                map.put(thread, slot, element);
            }
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::super::Spread;
    use super::*;

    fn plain(elements: usize, threads: usize, vector: usize) -> Map {
        Map::spread(threads, elements, Spread { row: elements, group: threads, groups: 1, vector })
    }

    #[test]
    fn what_all_threads_have_alike_is_one_slot() {
        let matrix = plain(4 * 8, 8, 4);
        let rows = matrix.through(4, &|element| Some(element / 8));
        assert_eq!((rows.slots(), rows.owners().of(1)), (1, &[2, 3][..]));
    }

    #[test]
    fn a_thread_has_nothing_twice() {
        let pairs = plain(8, 4, 2).through_trips(9, 2, &|element, trip| Some(element + trip));
        assert_eq!((pairs.slots(), pairs.owners().of(2), pairs.missing()), (3, &[0, 1][..], None));
    }

    #[test]
    fn names_are_changed_in_place() {
        let map = plain(4, 4, 1).renamed(4, &[0, 2, 1, 3]);
        assert_eq!((map.at(1, 0), map.at(2, 0), map.slots()), (Some(2), Some(1), 1));
    }

    #[test]
    fn replicas_take_the_slot_of_the_first() {
        let map = plain(4, 4, 1).widened(&Map::replicated(4, 4).through(4, &|e| (e < 2).then_some(e)));
        assert_eq!(map.owners().of(0), [0, 1, 2, 3]);
        assert_eq!(map.missing(), None);
    }

    #[test]
    fn replicas_whose_slot_is_taken_share_another() {
        let shifted = plain(4, 4, 1).through(4, &|element| Some((element + 1) % 4));
        let map = plain(4, 4, 1).widened(&shifted);
        assert_eq!((map.slots(), map.owners().of(1), map.at(0, 1)), (2, &[0, 1][..], Some(1)));
    }

    #[test]
    fn missing_elements_go_where_there_is_room() {
        let shifted = plain(4, 4, 1).through(4, &|element| (element < 3).then_some(element + 1));
        let map = shifted.filled();
        assert_eq!((map.slots(), map.at(3, 0), map.missing()), (1, Some(0), None));
        assert_eq!(Map::empty(2, 3).filled().slots(), 2);
    }

    #[test]
    fn of_several_owners_the_first_is_kept() {
        let once = Map::replicated(4, 3).once();
        assert_eq!((once.owners().of(2), once.slots()), (&[0][..], 3));
    }
}
