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
/// Most bytes that a thread copies before it takes more.
const BATCH: usize = 1 << 18;

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

    /// The first and the last word that hold bits of a range, which is not empty, each with a mask of the bits that are in the range
    /// as far as that word limits it.
    fn ends(bits: Range<usize>) -> [(usize, u64); 2] {
        let last = bits.end - 1;
        [(bits.start / 64, u64::MAX << (bits.start % 64)), (last / 64, u64::MAX >> (63 - last % 64))]
    }

    /// Whether `len` bits from `start` are all set.
    pub(crate) fn all(&self, start: usize, len: usize) -> bool {
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

    pub(crate) fn set(&mut self, start: usize, len: usize) {
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
        if written.is_empty() {
            return true;
        }
        self.make_writable();
        let Region { bytes, written: bits, undefined, .. } = self;
        let note = || {
            for range in &written {
                note_written(bits, undefined, range.clone());
            }
        };
        let bytes: &mut Vec<u8> = Arc::make_mut(bytes);
        copy_ranges((bytes, &other.bytes), &written, threads, note);
        for Range { start, end } in written {
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
        note_written(&mut self.written, &mut self.undefined, offset..offset + len);
        &mut self.make_writable()[offset..offset + len]
    }

    /// Makes the bytes its own.
    fn make_writable(&mut self) -> &mut [u8] {
        // A copy of what was never written would be zeros that the host has to read.
        if std::mem::take(&mut self.is_blank) && Arc::get_mut(&mut self.bytes).is_none() {
            self.bytes = Arc::new(vec![0; self.bytes.len()]);
        }
        let bytes: &mut Vec<u8> = Arc::make_mut(&mut self.bytes);
        bytes
    }
}

/// Bytes become written, and all their bits defined.
fn note_written(written: &mut Option<Bits>, undefined: &mut BTreeMap<usize, Undefined>, bytes: Range<usize>) {
    if let Some(bits) = written {
        bits.set(bytes.start, bytes.len());
    }
    if !undefined.is_empty() {
        let stale: Vec<usize> = undefined.range(bytes).map(|(at, _)| *at).collect();
        stale.iter().for_each(|at| _ = undefined.remove(at));
    }
}

/// Bytes that are copied, and where to.
type Piece<'a> = (&'a mut [u8], &'a [u8]);

/// Copies ranges of bytes, which are in order, and does something else meanwhile. Much is copied by several threads: the host takes
/// longer to map pages than to copy.
fn copy_ranges((to, from): (&mut [u8], &[u8]), ranges: &[Range<usize>], threads: usize, meanwhile: impl FnOnce()) {
    let batches = Mutex::new(batches((to, from), ranges));
    let run = || {
        let next = || batches.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some(batch) = next() {
            batch.into_iter().for_each(|(to, from)| to.copy_from_slice(from));
        }
    };
    let bytes: usize = ranges.iter().map(Range::len).sum();
    let others = if bytes < LEAST_OF_THREAD { 0 } else { threads.saturating_sub(1) };
    thread::scope(|scope| {
        for _ in 0..others {
            // What a thread that cannot be started would do is done below.
            let _ = thread::Builder::new().spawn_scoped(scope, run);
        }
        meanwhile();
        run();
    });
}

/// The pieces of a copy of ranges, in batches: a piece has at most [`BATCH`] bytes, and starts a new batch if the last one has as
/// many.
fn batches<'a>((mut to, from): Piece<'a>, ranges: &[Range<usize>]) -> Vec<Vec<Piece<'a>>> {
    let mut all: Vec<Vec<Piece<'a>>> = Vec::new();
    let (mut first, mut room) = (0, 0);
    for range in ranges {
        let (own, rest) = to.split_at_mut(range.end - first);
        let own = &mut own[range.start - first..];
        (to, first) = (rest, range.end);
        for piece in own.chunks_mut(BATCH).zip(from[range.clone()].chunks(BATCH)) {
            let len = piece.0.len();
            match all.last_mut().filter(|_| len <= room) {
                Some(batch) => batch.push(piece),
                None => {
                    all.push(vec![piece]);
                    room = BATCH;
                }
            }
            room -= len;
        }
    }
    all
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
