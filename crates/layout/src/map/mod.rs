//! Which element every thread holds in every slot: the table that answers the questions of layout inference.
//!
//! Tiles are finite, so the owners of all elements are listed, and containment, equality, coverage and the inverse that
//! lowering needs are looked up. A slot is a register of a fragment, or a step of a loop whose iterations are the
//! elements.

mod derive;
mod layouts;
mod owners;
mod spread;

use std::fmt;

pub use owners::Owners;
pub use spread::Spread;

/// Stands for no element, in a column of a map or in a table of elements.
pub const NONE: u32 = u32::MAX;

/// For every thread and slot, an element or none.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Map {
    /// Threads of the block.
    threads: usize,
    /// Elements of the tile.
    elements: usize,
    /// One column per slot, one entry per thread.
    held: Vec<u32>,
}

impl Map {
    /// The map in which no thread holds an element.
    pub fn empty(threads: usize, elements: usize) -> Map {
        Map { threads, elements, held: Vec::new() }
    }

    /// The map in which every thread holds every element.
    pub fn replicated(threads: usize, elements: usize) -> Map {
        let held = (0..elements as u32).flat_map(|element| std::iter::repeat_n(element, threads)).collect();
        Map { threads, elements, held }
    }

    /// The map in which each thread holds the element `at(thread, slot)` in each of `slots` slots.
    pub fn of_slots(threads: usize, elements: usize, at: impl Fn(usize, usize) -> Option<usize>, slots: usize) -> Map {
        let mut held = Vec::with_capacity(threads * slots);
        for slot in 0..slots {
            held.extend((0..threads).map(|thread| at(thread, slot).map_or(NONE, |element| element as u32)));
        }
        Map { threads, elements, held }
    }

    /// Puts an element into a slot of a thread, which must be in the block.
    pub fn put(&mut self, thread: usize, slot: usize, element: usize) {
        let (first, end) = (slot * self.threads, (slot + 1) * self.threads);
        if self.held.len() < end {
            self.held.resize(end, NONE);
        }
        self.held[first..end][thread] = element as u32;
    }

    /// Threads of the block.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The number of elements of the tile, held or not.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Slots of each thread.
    pub fn slots(&self) -> usize {
        self.held.len() / self.threads.max(1)
    }

    /// The element that a thread holds in a slot.
    pub fn at(&self, thread: usize, slot: usize) -> Option<usize> {
        let element = *self.held.get(slot * self.threads + thread)?;
        (element != NONE).then_some(element as usize)
    }

    /// The elements that the threads hold in one of the slots: one entry per thread, [`NONE`] for no element.
    pub fn column(&self, slot: usize) -> &[u32] {
        &self.held[slot * self.threads..(slot + 1) * self.threads]
    }

    /// The columns of all slots, in order; see [`Map::column`].
    pub fn columns(&self) -> impl Iterator<Item = &[u32]> {
        self.held.chunks(self.threads.max(1))
    }

    /// All entries as (thread, slot, element), slot by slot.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let threads = self.threads.max(1);
        let entry = move |(place, element): (usize, &u32)| (place % threads, place / threads, *element as usize);
        self.held.iter().enumerate().filter(|(_, element)| **element != NONE).map(entry)
    }

    /// The first element that no thread holds.
    pub fn missing(&self) -> Option<usize> {
        let mut is_had = vec![false; self.elements];
        for (_, _, element) in self.entries() {
            is_had[element] = true;
        }
        is_had.iter().position(|had| !had)
    }

    /// The largest number of copies of any element.
    pub fn copies(&self) -> usize {
        let owners = self.owners();
        (0..self.elements).map(|element| owners.of(element).len()).max().unwrap_or(0)
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements on {} threads x {} slots", self.elements, self.threads, self.slots())
    }
}
