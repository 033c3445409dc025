//! A contiguous range of bytes that records which of them were written, and by which thread.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::clock::Flag;
use crate::shadow::{Newer, Records, Shadow};
use crate::undefined::Undefined;

/// Fewest bytes for which another thread is started.
const LEAST_OF_THREAD: usize = 1 << 20;

/// A bit set with one bit per byte.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    count: usize,
    /// Empty until a bit is set, so that copies of a large buffer to which nothing was written cost nothing.
    words: Vec<u64>,
}

impl Bits {
    /// `count` bits, none set.
    pub(crate) fn new(count: usize) -> Bits {
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

    /// The words that hold `len` bits from `start`, each with the mask of those bits.
    fn masks(start: usize, len: usize) -> impl Iterator<Item = (usize, u64)> {
        let end = start + len;
        (start / 64..end.div_ceil(64)).map(move |word| {
            let (first, stop) = (start.max(word * 64) % 64, end.min(word * 64 + 64) - word * 64);
            (word, u64::MAX >> (64 - stop) & u64::MAX << first)
        })
    }

    /// Whether `len` bits from `start` are all set.
    pub(crate) fn all(&self, start: usize, len: usize) -> bool {
        len == 0 || Bits::masks(start, len).all(|(word, mask)| self.word(word) & mask == mask)
    }

    pub(crate) fn set(&mut self, start: usize, len: usize) {
        if len > 0 {
            let words = self.words_mut();
            Bits::masks(start, len).for_each(|(word, mask)| words[word] |= mask);
        }
    }

    fn clear(&mut self, index: usize) {
        self.words_mut()[index / 64] &= !(1 << (index % 64));
    }

    /// Copies `len` bits within the set.
    pub(crate) fn copy(&mut self, from: usize, to: usize, len: usize) {
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
    /// Copies of a region share them until one is written.
    pub(crate) bytes: Arc<Vec<u8>>,
    /// Nothing was written so far.
    is_blank: bool,
    /// The bytes that were written; `None` means all of them.
    pub(crate) written: Option<Bits>,
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
        Region {
            bytes: Arc::new(bytes),
            is_blank: false,
            written: None,
            undefined: BTreeMap::new(),
            shadow: Shadow::default(),
            flags: BTreeMap::new(),
        }
    }

    /// An uninitialized region.
    pub(crate) fn poison(len: usize) -> Region {
        Region {
            bytes: Arc::new(vec![0; len]),
            is_blank: true,
            written: Some(Bits::new(len)),
            undefined: BTreeMap::new(),
            shadow: Shadow::default(),
            flags: BTreeMap::new(),
        }
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
    pub(crate) fn join(&mut self, mut other: Region, newer: Newer, records: &Records, threads: usize) -> bool {
        let shadow = std::mem::take(&mut other.shadow);
        let Some(mut written) = self.shadow.join(shadow, newer, records) else { return false };
        written.iter_mut().for_each(|range| range.end = range.end.min(other.bytes.len()));
        if !written.is_empty() {
            copy_ranges((self.writable(), &other.bytes), 0, &written, threads);
        }
        for Range { start, end } in written {
            self.note_written(start, end - start);
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
        self.written_bytes(offset, data.len()).copy_from_slice(data);
    }

    /// Bytes that the caller is about to write; it has checked the bounds.
    pub(crate) fn written_bytes(&mut self, offset: usize, len: usize) -> &mut [u8] {
        self.note_written(offset, len);
        &mut self.writable()[offset..offset + len]
    }

    /// Bytes become written, and all their bits defined.
    fn note_written(&mut self, offset: usize, len: usize) {
        if let Some(bits) = &mut self.written {
            bits.set(offset, len);
        }
        if !self.undefined.is_empty() {
            let stale: Vec<usize> = self.undefined.range(offset..offset + len).map(|(at, _)| *at).collect();
            stale.iter().for_each(|at| _ = self.undefined.remove(at));
        }
    }

    fn writable(&mut self) -> &mut [u8] {
        // A copy of what was never written would be zeros that the host has to read.
        if std::mem::take(&mut self.is_blank) && Arc::get_mut(&mut self.bytes).is_none() {
            self.bytes = Arc::new(vec![0; self.bytes.len()]);
        }
        let bytes: &mut Vec<u8> = Arc::make_mut(&mut self.bytes);
        bytes
    }
}

/// Copies ranges of bytes, which are in order; `to` begins at `first`. Much is copied by several threads: the host takes longer
/// to map pages than to copy.
fn copy_ranges((to, from): (&mut [u8], &[u8]), first: usize, ranges: &[Range<usize>], threads: usize) {
    let all: usize = ranges.iter().map(Range::len).sum();
    if threads < 2 || all < LEAST_OF_THREAD || ranges.len() < 2 {
        for range in ranges {
            to[range.start - first..range.end - first].copy_from_slice(&from[range.clone()]);
        }
        return;
    }
    let (lower, upper) = ranges.split_at(ranges.len() / 2);
    let middle = upper[0].start;
    let (low, high) = to.split_at_mut(middle - first);
    let low = Mutex::new(Some(low));
    let copy_low = || {
        let low = low.lock().unwrap_or_else(PoisonError::into_inner).take();
        low.into_iter().for_each(|low| copy_ranges((low, from), first, lower, threads / 2));
    };
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, copy_low);
        copy_ranges((high, from), middle, upper, threads - threads / 2);
        if other.is_err() {
            copy_low();
        }
    });
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
