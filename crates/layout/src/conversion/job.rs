//! Both fragments of a conversion, in the form that all kinds of plan read.

use crate::access::LANES;
use crate::error::LayoutError;
use crate::tile::TileLayout;

use super::table::{FragmentTable, NONE, refuse};

/// Widths of an element, in bits, that can be converted: words hold a whole number of elements, or elements of words.
const WIDTHS: [i64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Two fragments of one tile with the same number of threads.
pub(crate) struct Job {
    pub(crate) a: FragmentTable,
    pub(crate) b: FragmentTable,
    /// The places that hold each element in `a`.
    pub(crate) holders: PlacesByElement,
    /// Elements of the tile.
    pub(crate) size: usize,
    /// Bits of an element.
    pub(crate) bits: usize,
    /// Elements in a byte; at least 1.
    pub(crate) per_byte: usize,
    /// Elements in a 32-bit word; at least 1.
    pub(crate) per_word: usize,
    /// 32-bit words in an element; at least 1.
    pub(crate) units: u64,
    /// Words of a thread in `a`.
    pub(crate) words: usize,
    /// Words of a thread in `b`.
    pub(crate) targets: usize,
    pub(crate) warps: usize,
}

impl Job {
    pub(crate) fn new(a: &TileLayout, b: &TileLayout, bits: i64) -> Result<Job, LayoutError> {
        if a.size() != b.size() {
            return Err(LayoutError::Size { shape: vec![b.size()], size: a.size() });
        }
        if !WIDTHS.contains(&bits) {
            let legal = "elements of 1, 2, 4, 8, 16, 32, 64 or 128 bits; store 6-bit floats in 8 bits";
            return Err(refuse(format!("elements of {bits} bits"), legal));
        }
        let (from, to) = (FragmentTable::of(a)?, FragmentTable::of(b)?);
        let threads = from.threads().max(to.threads());
        Ok(Job::of_tables(from.with_threads(threads), to.with_threads(threads), a.size() as usize, bits as usize))
    }

    pub(super) fn of_tables(a: FragmentTable, b: FragmentTable, size: usize, bits: usize) -> Job {
        let per_word = (32 / bits).max(1);
        Job {
            holders: PlacesByElement::of(&a, size),
            size,
            bits,
            per_byte: (8 / bits).max(1),
            per_word,
            units: (bits / 32).max(1) as u64,
            words: a.registers().div_ceil(per_word),
            targets: b.registers().div_ceil(per_word),
            warps: a.threads() / LANES,
            a,
            b,
        }
    }

    /// The first pick that stands for a received element instead of a register of `a`.
    pub(crate) fn own(&self) -> usize {
        self.words * self.per_word
    }

    /// The elements in one word of a thread of `a`.
    pub(crate) fn pieces(&self, thread: usize, word: usize) -> impl Iterator<Item = i32> {
        (0..self.per_word).map(move |slot| self.a.at(thread, word * self.per_word + slot))
    }
}

/// The places, `thread * registers + register`, of every element, ascending.
pub(crate) struct PlacesByElement {
    /// The places of element `x` are `starts[x]..starts[x + 1]`.
    starts: Vec<usize>,
    /// All places, one element after the other.
    places: Vec<usize>,
}

impl PlacesByElement {
    fn of(table: &FragmentTable, size: usize) -> PlacesByElement {
        let mut starts = vec![0; size + 1];
        for element in table.elements().iter().filter(|element| **element != NONE) {
            starts[*element as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut places = vec![0; sum];
        for (place, element) in table.elements().iter().enumerate().filter(|(_, element)| **element != NONE) {
            let slot = &mut next[*element as usize];
            places[*slot] = place;
            *slot += 1;
        }
        PlacesByElement { starts, places }
    }

    /// The places of an element.
    pub(crate) fn all(&self, element: usize) -> &[usize] {
        &self.places[self.starts[element]..self.starts[element + 1]]
    }

    /// The places of an element that lie in `low..high`.
    pub(crate) fn between(&self, element: usize, low: usize, high: usize) -> &[usize] {
        let places = self.all(element);
        &places[places.partition_point(|place| *place < low)..places.partition_point(|place| *place < high)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holders_of_an_element_are_in_order() {
        let layout: TileLayout = "S[(4,2):(1@laneid,1@reg)] + R[2:4@laneid]".parse().unwrap();
        let job = Job::new(&layout, &layout, 32).unwrap();
        assert_eq!((job.holders.all(3), job.holders.between(3, 4, 64)), (&[3, 11][..], &[11][..]));
    }
}
