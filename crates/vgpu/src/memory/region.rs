//! A contiguous range of bytes that records which of them were written, and by which thread.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::clock::Flag;
use crate::memory::bytes::Bytes;
use crate::shadow::{Newer, Records, Shadow};
use crate::undefined::Undefined;

/// A bit set with one bit per byte.
#[derive(Clone, Debug)]
struct Bits {
    count: usize,
    /// Empty until a bit is set, so that copies of a large buffer to which nothing was written cost nothing.
    words: Vec<u64>,
}

impl Bits {
    /// `count` bits, none set.
    fn new(count: usize) -> Bits {
        Bits { count, words: Vec::new() }
    }

    fn word(&self, index: usize) -> u64 {
        self.words.get(index).copied().unwrap_or(0)
    }

    fn words_mut(&mut self) -> &mut [u64] {
        if self.words.is_empty() {
            self.words = vec![0; self.count.div_ceil(64)];
        }
        &mut self.words
    }

    fn get(&self, index: usize) -> bool {
        self.word(index / 64) >> (index % 64) & 1 == 1
    }

    /// The first and the last word that hold bits of a range, which is not empty, each with a mask of the bits that are in the range
    /// as far as that word limits it.
    fn ends(bits: Range<usize>) -> [(usize, u64); 2] {
        let last = bits.end - 1;
        [(bits.start / 64, u64::MAX << (bits.start % 64)), (last / 64, u64::MAX >> (63 - last % 64))]
    }

    /// Whether `len` bits from `start` are all set.
    fn all(&self, start: usize, len: usize) -> bool {
        if len == 0 || self.words.is_empty() {
            return len == 0;
        }
        let [(first, after), (last, before)] = Bits::ends(start..start + len);
        let has = |word: usize, mask: u64| self.words[word] & mask == mask;
        if first == last {
            return has(first, after & before);
        }
        has(first, after) && has(last, before) && self.words[first + 1..last].iter().all(|word| *word == u64::MAX)
    }

    fn set(&mut self, start: usize, len: usize) {
        if len == 0 {
            return;
        }
        let [(first, after), (last, before)] = Bits::ends(start..start + len);
        let words = self.words_mut();
        if first == last {
            words[first] |= after & before;
            return;
        }
        words[first] |= after;
        words[first + 1..last].fill(u64::MAX);
        words[last] |= before;
    }

    fn clear(&mut self, index: usize) {
        self.words_mut()[index / 64] &= !(1 << (index % 64));
    }

    /// Copies `len` bits within the set.
    fn copy(&mut self, from: usize, to: usize, len: usize) {
        for index in 0..len {
            let bit = u64::from(self.get(from + index));
            let target = to + index;
            let word = &mut self.words_mut()[target / 64];
            *word = (*word & !(1 << (target % 64))) | bit << (target % 64);
        }
    }
}

/// Bytes, which of them were written, and their shadow.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) bytes: Bytes,
    /// The bytes that were written; `None` means all of them.
    written: Option<Bits>,
    /// Undefined bits that were stored, by byte.
    pub(crate) undefined: BTreeMap<usize, Undefined>,
    /// Accesses recorded for race detection.
    pub(crate) shadow: Shadow,
    /// What strong writes hand over to those that read them, by the offset of the word.
    pub(crate) flags: BTreeMap<usize, Flag>,
}

impl Region {
    /// A region that the host has initialized.
    pub(crate) fn filled(bytes: Vec<u8>) -> Region {
        Region::written(bytes.into())
    }

    /// A region of zeros.
    pub(crate) fn zeros(len: usize) -> Region {
        Region::written(Bytes::zeros(len))
    }

    fn written(bytes: Bytes) -> Region {
        Region { bytes, written: None, undefined: BTreeMap::new(), shadow: Shadow::default(), flags: BTreeMap::new() }
    }

    /// An uninitialized region.
    pub(crate) fn poison(len: usize) -> Region {
        Region { written: Some(Bits::new(len)), ..Region::zeros(len) }
    }

    /// Bytes with undefined bits become unwritten.
    pub(crate) fn forget_undefined(&mut self) {
        for (offset, _) in std::mem::take(&mut self.undefined) {
            self.forget(offset, 1);
        }
    }

    /// Bytes become unwritten.
    pub(crate) fn forget(&mut self, offset: usize, len: usize) {
        let bytes = self.bytes.len();
        let written = self.written.get_or_insert_with(|| {
            let mut all = Bits::new(bytes);
            all.set(0, bytes);
            all
        });
        (offset..offset + len).for_each(|at| written.clear(at));
    }

    /// Adds what was written in `other`, a copy of this region, as far as it is not in both. Returns false if a byte was
    /// written in one and accessed in the other; then this region is of no use any more.
    pub(crate) fn join(&mut self, mut other: Region, newer: Newer, records: &Records) -> bool {
        let shadow = std::mem::take(&mut other.shadow);
        let Some(written) = self.shadow.join(shadow, newer, records) else { return false };
        for Range { start, end } in written {
            let end = end.min(self.bytes.len());
            self.note_written(start..end);
            self.bytes.adopt(&other.bytes, start..end);
            if !other.is_written(start, end - start) {
                (start..end).filter(|at| !other.is_written(*at, 1)).for_each(|at| self.forget(at, 1));
            }
            self.undefined.extend(other.undefined.range(start..end));
        }
        true
    }

    pub(crate) fn is_written(&self, offset: usize, len: usize) -> bool {
        self.written.as_ref().is_none_or(|bits| bits.all(offset, len))
    }

    /// Stores `data`; the caller has checked the bounds.
    pub(crate) fn store(&mut self, offset: usize, data: &[u8]) {
        self.note_written(offset..offset + data.len());
        self.bytes.write(offset, data);
    }

    /// Copies bytes to another place, with what is undefined of them.
    pub(crate) fn copy_within(&mut self, from: Range<usize>, to: usize) {
        let len = from.len();
        let bytes = self.bytes.read(from.clone()).into_owned();
        self.bytes.write(to, &bytes);
        if let Some(written) = &mut self.written {
            written.copy(from.start, to, len);
        }
        if !self.undefined.is_empty() {
            let moved = self.undefined.range(from.clone()).map(|(at, byte)| (at - from.start + to, *byte));
            let moved: Vec<(usize, Undefined)> = moved.collect();
            (to..to + len).for_each(|at| _ = self.undefined.remove(&at));
            self.undefined.extend(moved);
        }
    }

    /// Bytes of one page that the caller is about to write; it has checked the bounds.
    pub(crate) fn written_bytes(&mut self, range: Range<usize>) -> &mut [u8] {
        self.note_written(range.clone());
        self.bytes.in_page_mut(range)
    }

    /// Bytes become written, and all their bits defined.
    fn note_written(&mut self, range: Range<usize>) {
        if let Some(written) = &mut self.written {
            written.set(range.start, range.len());
        }
        if !self.undefined.is_empty() {
            let stale: Vec<usize> = self.undefined.range(range).map(|(at, _)| *at).collect();
            stale.iter().for_each(|at| _ = self.undefined.remove(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_across_words() {
        let mut bits = Bits::new(200);
        bits.set(60, 70);
        assert!(bits.all(60, 70));
        assert!(!bits.all(59, 2));
        assert!(!bits.all(129, 2));
        bits.copy(60, 0, 4);
        assert!(bits.all(0, 4));
    }
}
