//! The owners of each element: the threads that hold it.

use super::{Map, NONE};

/// The threads that hold each element, in order, each once.
#[derive(Clone, Debug)]
pub struct Owners {
    /// The owners of element `x` are `threads[starts[x]..starts[x + 1]]`.
    starts: Vec<u32>,
    /// The owning threads of all elements, one element after the other.
    threads: Vec<u32>,
}

impl Owners {
    /// The threads that hold one of the elements.
    pub fn of(&self, element: usize) -> &[u32] {
        &self.threads[self.starts[element] as usize..self.starts[element + 1] as usize]
    }

    /// How many elements there are.
    pub fn elements(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many owners all elements have together.
    pub fn entries(&self) -> usize {
        self.threads.len()
    }

    /// Whether a thread holds an element.
    pub fn has(&self, element: usize, thread: usize) -> bool {
        self.of(element).binary_search(&(thread as u32)).is_ok()
    }

    /// Whether every thread that holds an element here holds it in `there` too.
    pub fn is_within(&self, there: &Owners) -> bool {
        (0..self.elements()).all(|element| {
            let (here, there) = (self.of(element), there.of(element));
            here == there || here.iter().all(|thread| there.binary_search(thread).is_ok())
        })
    }
}

impl Owners {
    /// The owners of element `x` are `threads[starts[x]..ends[x]]`.
    fn packed(starts: &[u32], ends: &[u32], threads: &[u32]) -> Owners {
        let mut packed = Owners { starts: vec![0], threads: Vec::new() };
        for (start, end) in starts.iter().zip(ends).take(starts.len() - 1) {
            packed.threads.extend_from_slice(&threads[*start as usize..*end as usize]);
            packed.starts.push(packed.threads.len() as u32);
        }
        packed
    }
}

impl Map {
    /// The threads that hold each element.
    pub fn owners(&self) -> Owners {
        let mut starts = vec![0u32; self.elements + 1];
        for element in self.held.iter().filter(|element| **element != NONE) {
            starts[*element as usize + 1] += 1;
        }
        for element in 0..self.elements {
            starts[element + 1] += starts[element];
        }
        let mut next = starts.clone();
        let mut threads = vec![0u32; starts[self.elements] as usize];
        // Thread by thread, so that every list is in order.
        for thread in 0..self.threads as u32 {
            for element in self.of_thread(thread as usize) {
                let (first, end) = (starts[element] as usize, next[element] as usize);
                if threads[first..end].last() != Some(&thread) {
                    threads[end] = thread;
                    next[element] += 1;
                }
            }
        }
        let is_full = next.iter().zip(&starts[1..]).all(|(end, start)| end == start);
        if is_full { Owners { starts, threads } } else { Owners::packed(&starts, &next, &threads) }
    }

    /// The elements of a thread, slot by slot.
    pub(super) fn of_thread(&self, thread: usize) -> impl Iterator<Item = usize> + '_ {
        let entries = self.held.iter().skip(thread).step_by(self.threads.max(1));
        entries.filter(|element| **element != NONE).map(|element| *element as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Spread;
    use super::*;

    #[test]
    fn owners_are_listed_in_order() {
        let owners = Map::replicated(4, 3).owners();
        assert_eq!((owners.of(2), owners.has(1, 3), owners.has(1, 4)), (&[0, 1, 2, 3][..], true, false));
    }

    #[test]
    fn one_owner_of_each_is_within_all() {
        let all = Map::replicated(4, 8).owners();
        let one = Map::spread(4, 8, Spread { row: 8, group: 4, groups: 1, vector: 2 }).owners();
        assert_eq!((one.is_within(&all), all.is_within(&one), one.is_within(&one)), (true, false, true));
    }
}
