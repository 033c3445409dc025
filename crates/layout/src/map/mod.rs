//! Which element every thread has in every slot: the exact answer to every question of inference.
//!
//! Tiles are finite, so who owns what is listed, and containment, equality, coverage and the inverse that lowering needs
//! are looked up. A slot is a register of a fragment, or a step of a loop whose iterations are then the elements.

mod layouts;

use std::collections::BTreeSet;
use std::fmt;

/// No element.
const NONE: u32 = u32::MAX;

/// For every thread and slot, an element or none.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Map {
    threads: usize,
    elements: usize,
    /// One column per slot, one entry per thread.
    held: Vec<u32>,
}

/// The threads that have each element, in order.
#[derive(Clone, Debug)]
pub struct Owners {
    starts: Vec<u32>,
    threads: Vec<u32>,
}

impl Owners {
    /// The threads that have an element.
    pub fn of(&self, element: usize) -> &[u32] {
        match (self.starts.get(element), self.starts.get(element + 1)) {
            (Some(start), Some(end)) => &self.threads[*start as usize..*end as usize],
            _ => &[],
        }
    }

    /// How many elements there are.
    pub fn elements(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether a thread has an element.
    pub fn has(&self, element: usize, thread: usize) -> bool {
        self.of(element).binary_search(&(thread as u32)).is_ok()
    }
}

/// How elements in row-major order go to threads: rows of `row` elements, each on `group` threads, `vector` adjacent
/// elements on one thread. With one row it is the plain order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spread {
    /// Elements of a row.
    pub row: usize,
    /// Threads that share a row.
    pub group: usize,
    /// Groups that share the rows.
    pub groups: usize,
    /// Adjacent elements of one thread.
    pub vector: usize,
}

impl Map {
    /// No thread has anything.
    pub fn empty(threads: usize, elements: usize) -> Map {
        Map { threads, elements, held: Vec::new() }
    }

    /// Every thread has every element.
    pub fn replicated(threads: usize, elements: usize) -> Map {
        let held = (0..elements as u32).flat_map(|element| std::iter::repeat_n(element, threads)).collect();
        Map { threads, elements, held }
    }

    /// Every element on one thread, in the order of `spread`. Slots beyond the end of a row stay empty.
    pub fn spread(threads: usize, elements: usize, spread: Spread) -> Map {
        let Spread { row, group, groups, vector } = spread;
        let (row, group, groups, vector) = (row.max(1), group.max(1), groups.max(1), vector.max(1));
        let vectors = row.div_ceil(vector).div_ceil(group);
        let mut map = Map::empty(threads, elements);
        for element in 0..elements {
            let (line, place) = (element / row, element % row);
            let thread = line % groups * group + place / vector % group;
            let slot = (line / groups * vectors + place / vector / group) * vector + place % vector;
            map.put(thread, slot, element);
        }
        map
    }

    /// From what each thread has, one list of slots per thread.
    pub fn of_slots(threads: usize, elements: usize, at: impl Fn(usize, usize) -> Option<usize>, slots: usize) -> Map {
        let mut held = Vec::with_capacity(threads * slots);
        for slot in 0..slots {
            held.extend((0..threads).map(|thread| at(thread, slot).map_or(NONE, |element| element as u32)));
        }
        Map { threads, elements, held }
    }

    /// A thread has an element in a slot. Threads outside the block are left out.
    pub fn put(&mut self, thread: usize, slot: usize, element: usize) {
        if thread >= self.threads {
            return;
        }
        let place = slot * self.threads + thread;
        if self.held.len() <= place {
            self.held.resize((slot + 1) * self.threads, NONE);
        }
        self.held[place] = element as u32;
    }

    /// Threads of the block.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Elements that may be had.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Slots of each thread.
    pub fn slots(&self) -> usize {
        self.held.len() / self.threads.max(1)
    }

    /// What a thread has in a slot.
    pub fn at(&self, thread: usize, slot: usize) -> Option<usize> {
        let element = *self.held.get(slot * self.threads + thread)?;
        (element != NONE).then_some(element as usize)
    }

    /// Every thread, slot and element that is had, slot by slot.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let threads = self.threads.max(1);
        let entry = move |(place, element): (usize, &u32)| (place % threads, place / threads, *element as usize);
        self.held.iter().enumerate().filter(|(_, element)| **element != NONE).map(entry)
    }

    /// The threads that have each element.
    pub fn owners(&self) -> Owners {
        let mut starts = vec![0u32; self.elements + 1];
        for (_, _, element) in self.entries() {
            starts[element + 1] += 1;
        }
        for element in 0..self.elements {
            starts[element + 1] += starts[element];
        }
        let mut next = starts.clone();
        let mut threads = vec![0u32; starts[self.elements] as usize];
        for (thread, _, element) in self.entries() {
            threads[next[element] as usize] = thread as u32;
            next[element] += 1;
        }
        for element in 0..self.elements {
            threads[starts[element] as usize..starts[element + 1] as usize].sort_unstable();
        }
        Owners { starts, threads }
    }

    /// The first element that no thread has.
    pub fn missing(&self) -> Option<usize> {
        let mut is_had = vec![false; self.elements];
        for (_, _, element) in self.entries() {
            is_had[element] = true;
        }
        is_had.iter().position(|had| !had)
    }

    /// Most copies of an element.
    pub fn copies(&self) -> usize {
        let owners = self.owners();
        (0..self.elements).map(|element| owners.of(element).len()).max().unwrap_or(0)
    }

    /// The map of what the elements lead to: `to(element)`, `None` for nothing. Slots that all threads have alike are
    /// one; a thread never has the same thing twice.
    pub fn through(&self, elements: usize, to: &dyn Fn(usize) -> Option<usize>) -> Map {
        self.through_trips(elements, 1, &|element, _| to(element))
    }

    /// The same where an element leads to several things, `to(element, trip)`.
    pub fn through_trips(&self, elements: usize, trips: usize, to: &dyn Fn(usize, usize) -> Option<usize>) -> Map {
        let mut columns: Vec<Vec<u32>> = Vec::new();
        let mut known: BTreeSet<Vec<u32>> = BTreeSet::new();
        for column in self.held.chunks(self.threads.max(1)) {
            for trip in 0..trips {
                let lead = |entry: &u32| match *entry {
                    NONE => NONE,
                    element => to(element as usize, trip).map_or(NONE, |target| target as u32),
                };
                let column: Vec<u32> = column.iter().map(lead).collect();
                if column.iter().any(|entry| *entry != NONE) && known.insert(column.clone()) {
                    columns.push(column);
                }
            }
        }
        let map = Map { threads: self.threads, elements, held: columns.concat() };
        if map.is_plain() { map } else { map.packed() }
    }

    /// The same with one owner of every element: the first.
    pub fn once(&self) -> Map {
        let owners = self.owners();
        let is_first = |thread: usize, element: usize| owners.of(element).first() == Some(&(thread as u32));
        let at = |thread: usize, slot: usize| self.at(thread, slot).filter(|element| is_first(thread, *element));
        Map::of_slots(self.threads, self.elements, at, self.slots()).without_empty_slots()
    }

    /// The same without slots in which no thread has anything.
    pub fn without_empty_slots(mut self) -> Map {
        let threads = self.threads.max(1);
        let full = self.held.chunks(threads).filter(|column| column.iter().any(|entry| *entry != NONE));
        self.held = full.flatten().copied().collect();
        self
    }

    /// Whether no thread has an element twice.
    fn is_plain(&self) -> bool {
        let mut seen: Vec<u64> = self.entries().map(|(t, _, e)| (t as u64) << 32 | e as u64).collect();
        seen.sort_unstable();
        seen.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// Every thread's elements in order, each once.
    fn packed(&self) -> Map {
        let mut lists: Vec<Vec<usize>> = vec![Vec::new(); self.threads];
        for (thread, _, element) in self.entries() {
            lists[thread].push(element);
        }
        let mut map = Map::empty(self.threads, self.elements);
        for (thread, mut list) in lists.into_iter().enumerate() {
            list.sort_unstable();
            list.dedup();
            for (slot, element) in list.into_iter().enumerate() {
                map.put(thread, slot, element);
            }
        }
        map
    }

    /// The map with the owners of both: what `other` adds goes to the slot that the element has here, where that is
    /// free, so that slots stay the same for all threads.
    pub fn widened(&self, other: &Map) -> Map {
        let owners = self.owners();
        let mut slot_of: Vec<Option<usize>> = vec![None; self.elements];
        for (_, slot, element) in self.entries() {
            slot_of[element].get_or_insert(slot);
        }
        let mut map = self.clone();
        for (thread, _, element) in other.entries() {
            if owners.has(element, thread) || map.holds(thread, element) {
                continue;
            }
            let wanted = slot_of[element].filter(|slot| map.at(thread, *slot).is_none());
            let free = || (0..).find(|slot| *slot >= map.slots() || map.is_free(*slot)).unwrap_or(map.slots());
            let slot = wanted.unwrap_or_else(free);
            slot_of[element].get_or_insert(slot);
            map.put(thread, slot, element);
        }
        map
    }

    fn holds(&self, thread: usize, element: usize) -> bool {
        (0..self.slots()).any(|slot| self.at(thread, slot) == Some(element))
    }

    /// Whether no thread has anything in a slot.
    fn is_free(&self, slot: usize) -> bool {
        (0..self.threads).all(|thread| self.at(thread, slot).is_none())
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements on {} threads x {} slots", self.elements, self.threads, self.slots())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(elements: usize, threads: usize, vector: usize) -> Map {
        Map::spread(threads, elements, Spread { row: elements, group: threads, groups: 1, vector })
    }

    #[test]
    fn vectors_of_adjacent_elements_go_to_the_threads_in_turn() {
        let map = plain(16, 4, 2);
        assert_eq!((map.at(0, 0), map.at(0, 1), map.at(0, 2), map.at(3, 3)), (Some(0), Some(1), Some(8), Some(15)));
    }

    #[test]
    fn rows_that_do_not_fill_their_threads_leave_slots_empty() {
        let map = Map::spread(8, 2 * 6, Spread { row: 6, group: 4, groups: 2, vector: 1 });
        assert_eq!((map.slots(), map.missing(), map.at(2, 1), map.at(5, 1)), (2, None, None, Some(11)));
    }

    #[test]
    fn owners_are_listed_in_order() {
        let owners = Map::replicated(4, 3).owners();
        assert_eq!((owners.of(2), owners.has(1, 3), owners.has(1, 4)), (&[0, 1, 2, 3][..], true, false));
    }

    #[test]
    fn what_all_threads_have_alike_is_one_slot() {
        let matrix = plain(4 * 8, 8, 4);
        let rows = matrix.through(4, &|element| Some(element / 8));
        assert_eq!((rows.slots(), rows.owners().of(1)), (1, &[2, 3][..]));
    }

    #[test]
    fn replicas_take_the_slot_of_the_first() {
        let map = plain(4, 4, 1).widened(&Map::replicated(4, 4).through(4, &|e| (e < 2).then_some(e)));
        assert_eq!(map.owners().of(0), [0, 1, 2, 3]);
        assert_eq!(map.missing(), None);
    }
}
