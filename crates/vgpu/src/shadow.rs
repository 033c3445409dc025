//! Shadow memory: records the last write and the reads of each 4-byte word, and checks whether a new access is ordered
//! after them.
//!
//! The scheme is FastTrack's (Flanagan and Freund, 2009): one record for the last write, one for the last read, and a
//! set of reads only while several unordered threads read. A word is split into byte cells when an access covers only
//! part of it. CTAs are never ordered with each other, so that records of another CTA conflict regardless of their
//! clocks.
//!
//! Strong accesses (atomic, volatile, relaxed, ...) do not conflict with each other, so they are recorded separately,
//! in sets that the cells refer to: weak records are checked against every access, strong records only against weak
//! accesses.

mod beside;

use beside::{Beside, ReadSets};

/// No instruction.
const NONE: u32 = u32::MAX;
/// In `read_thread`: the reads are in the set with index `read_clock`.
const MANY: u32 = u32::MAX;
/// In `write_cta`: the word is split into the byte cells with index `write_thread`.
const SPLIT: u32 = u32::MAX;
/// In `strong`: no strong access yet.
const NEVER: u32 = u32::MAX;
const PAGE_WORDS: usize = 1024;

/// The thread that accesses memory, and its clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor<'a> {
    /// Number of the CTA, counted over all launches on a memory, from 1.
    pub(crate) cta: u32,
    /// The first CTA of this launch; accesses of earlier launches are ordered before it.
    pub(crate) first_cta: u32,
    /// Linear index in the CTA.
    pub(crate) thread: u32,
    /// The thread's own counter.
    pub(crate) clock: u32,
    /// The thread's base (see [`crate::clock`]).
    pub(crate) base: &'a [u32],
    /// Program counter of the access.
    pub(crate) pc: u32,
    /// Atomic, volatile, relaxed, acquire or release.
    pub(crate) strong: bool,
}

impl Actor<'_> {
    /// Whether an access by `thread` of this CTA at `clock` is ordered before this one.
    fn knows(&self, thread: u32, clock: u32) -> bool {
        thread == self.thread || self.base[thread as usize] >= clock
    }
}

/// The other access of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// Program counter of the other access.
    pub(crate) pc: u32,
    pub(crate) other_is_write: bool,
    /// The other access is strong.
    pub(crate) other_is_strong: bool,
    /// The other access is by another CTA.
    pub(crate) other_cta: bool,
    /// The reader, if the other access is a read.
    pub(crate) reader: Reader,
}

/// The thread and clock of a weak read, if they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reader {
    Unknown,
    Thread { cta: u32, thread: u32, clock: u32 },
}

/// A conflict, and the bytes that it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meeting {
    /// Offset of the bytes in the region.
    pub(crate) offset: usize,
    /// Number of bytes.
    pub(crate) len: usize,
    pub(crate) conflict: Conflict,
}

/// What the shadow memory found out about an access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The conflicts with other accesses.
    pub(crate) meetings: Vec<Meeting>,
    /// The access is an unordered write of the value that was already there.
    pub(crate) benign: bool,
    /// The instruction by which the same thread wrote a different value there since its last barrier.
    pub(crate) again: Option<u32>,
}

/// The last write of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastWrite {
    pub(crate) cta: u32,
    pub(crate) thread: u32,
    pub(crate) pc: u32,
}

/// The weak accesses of a word or byte.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// CTA of the last write; [`SPLIT`] if the word is split.
    write_cta: u32,
    write_thread: u32,
    write_clock: u32,
    /// Program counter of the last write, or [`NONE`].
    write_pc: u32,
    read_cta: u32,
    /// Thread of the last read; [`MANY`] if several unordered threads have read.
    read_thread: u32,
    read_clock: u32,
    /// Program counter of the last read, or [`NONE`].
    read_pc: u32,
    /// A read by an earlier CTA of the launch.
    old_read_pc: u32,
    /// Index of the record of strong accesses, or `NEVER`.
    strong: u32,
}

const EMPTY: Cell = Cell {
    write_cta: 0,
    write_thread: 0,
    write_clock: 0,
    write_pc: NONE,
    read_cta: 0,
    read_thread: 0,
    read_clock: 0,
    read_pc: NONE,
    old_read_pc: NONE,
    strong: NEVER,
};

/// The shadow of one region; pages are allocated on first access.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    /// Cells of [`PAGE_WORDS`] words each; `None` if not accessed yet.
    pages: Vec<Option<Box<[Cell]>>>,
    /// Byte cells of the words that are split.
    splits: Vec<[Cell; 4]>,
    beside: Beside,
}

impl Shadow {
    /// Records a read of `len` bytes at `offset`.
    pub(crate) fn read(&mut self, offset: usize, len: usize, who: &Actor<'_>) -> Finding {
        let mut found = Finding::default();
        let end = offset + len;
        let mut at = offset;
        while at < end {
            let word = at / 4;
            let stop = end.min(word * 4 + 4);
            let Shadow { pages, splits, beside } = self;
            let cells = cells(pages, splits, beside, word, at % 4, stop - at);
            let len = (stop - at) / cells.len();
            for (number, cell) in cells.iter_mut().enumerate() {
                let meeting = |conflict| Meeting { offset: at + number * len, len, conflict };
                found.meetings.extend(read_cell(cell, beside, who).map(meeting));
            }
            at = stop;
        }
        found
    }

    /// Records a write of `new` at `offset`, which replaces `old`.
    pub(crate) fn write(&mut self, offset: usize, old: &[u8], new: &[u8], who: &Actor<'_>) -> Finding {
        let mut found = Finding::default();
        let end = offset + new.len();
        let mut at = offset;
        while at < end {
            let word = at / 4;
            let stop = end.min(word * 4 + 4);
            let (from, to) = (at - offset, stop - offset);
            let same = same_bytes(&old[from..to], &new[from..to]);
            let Shadow { pages, splits, beside } = self;
            let cells = cells(pages, splits, beside, word, at % 4, stop - at);
            let len = (stop - at) / cells.len();
            for (number, cell) in cells.iter_mut().enumerate() {
                let meeting = |conflict| Meeting { offset: at + number * len, len, conflict };
                if !same {
                    found.again = found.again.or(written_before(cell, who));
                }
                let (conflicts, benign) = write_cell(cell, beside, who, same);
                found.meetings.extend(conflicts.into_iter().map(meeting));
                found.benign |= benign;
            }
            at = stop;
        }
        found
    }

    /// The last write of the byte at `offset`, in this launch or an earlier one.
    pub(crate) fn last_write(&self, offset: usize) -> Option<LastWrite> {
        let word = offset / 4;
        let page = self.pages.get(word / PAGE_WORDS)?.as_ref()?;
        let mut cell = page[word % PAGE_WORDS];
        if cell.write_cta == SPLIT {
            cell = self.splits[cell.write_thread as usize][offset % 4];
        }
        let strong = self.beside.strong.get(cell.strong as usize).and_then(|strong| strong.last);
        let weak = LastWrite { cta: cell.write_cta, thread: cell.write_thread, pc: cell.write_pc };
        strong.or((weak.pc != NONE).then_some(weak))
    }
}

/// Whether the bytes are equal. Whole words, the common case, are compared as integers.
fn same_bytes(old: &[u8], new: &[u8]) -> bool {
    match (old.first_chunk::<4>(), new.first_chunk::<4>()) {
        (Some(a), Some(b)) if old.len() == 4 => u32::from_ne_bytes(*a) == u32::from_ne_bytes(*b),
        _ => old == new,
    }
}

/// The cells of `len` bytes from `first` in a word, which is split if these are only part of it.
fn cells<'a>(
    pages: &'a mut Vec<Option<Box<[Cell]>>>,
    splits: &'a mut Vec<[Cell; 4]>,
    beside: &mut Beside,
    word: usize,
    first: usize,
    len: usize,
) -> &'a mut [Cell] {
    let index = word / PAGE_WORDS;
    if pages.len() <= index {
        pages.resize_with(index + 1, || None);
    }
    let page = pages[index].get_or_insert_with(|| vec![EMPTY; PAGE_WORDS].into_boxed_slice());
    let slot = word % PAGE_WORDS;
    if len < 4 && page[slot].write_cta != SPLIT {
        let whole = page[slot];
        splits.push([whole, beside.copy(whole), beside.copy(whole), beside.copy(whole)]);
        page[slot] = Cell { write_cta: SPLIT, write_thread: (splits.len() - 1) as u32, ..EMPTY };
    }
    if page[slot].write_cta == SPLIT {
        let group = page[slot].write_thread as usize;
        return &mut splits[group][first..first + len];
    }
    &mut page[slot..slot + 1]
}

/// A write that `who` is not ordered after: a weak one, or, if `who` is weak, a strong one.
fn unordered_write(cell: &Cell, beside: &mut Beside, who: &Actor<'_>) -> Option<Conflict> {
    let other_cta = cell.write_cta != who.cta;
    let unordered = cell.write_pc != NONE
        && cell.write_cta >= who.first_cta
        && (other_cta || !who.knows(cell.write_thread, cell.write_clock));
    if unordered {
        let reader = Reader::Unknown;
        return Some(Conflict { pc: cell.write_pc, other_is_write: true, other_is_strong: false, other_cta, reader });
    }
    if who.strong { None } else { beside.strong(cell, who)?.unordered_write(who) }
}

/// Records a read. A read that races with a write leaves no record, since its value may never be used.
fn read_cell(cell: &mut Cell, beside: &mut Beside, who: &Actor<'_>) -> Option<Conflict> {
    let conflict = unordered_write(cell, beside, who);
    if conflict.is_some() {
        return conflict;
    }
    if who.strong {
        beside.strong_for(cell, who).reads.add_after(who);
        return conflict;
    }
    let reads = &mut beside.reads;
    if cell.read_pc == NONE || cell.read_cta < who.first_cta {
        forget_reads(cell, reads);
        set_read(cell, who);
    } else if cell.read_cta != who.cta {
        let old = cell.read_pc;
        forget_reads(cell, reads);
        cell.old_read_pc = old;
        set_read(cell, who);
    } else if cell.read_thread == MANY {
        reads.get(cell.read_clock).add(who.thread, who.clock, who.pc);
    } else if who.knows(cell.read_thread, cell.read_clock) {
        set_read(cell, who);
    } else {
        let index = reads.create();
        let set = reads.get(index);
        set.add(cell.read_thread, cell.read_clock, cell.read_pc);
        set.add(who.thread, who.clock, who.pc);
        cell.read_thread = MANY;
        cell.read_clock = index;
    }
    conflict
}

fn set_read(cell: &mut Cell, who: &Actor<'_>) {
    cell.read_cta = who.cta;
    cell.read_thread = who.thread;
    cell.read_clock = who.clock;
    cell.read_pc = who.pc;
}

fn forget_reads(cell: &mut Cell, reads: &mut ReadSets) {
    if cell.read_pc != NONE && cell.read_thread == MANY {
        reads.drop_set(cell.read_clock);
    }
    cell.read_thread = 0;
    cell.read_pc = NONE;
    cell.old_read_pc = NONE;
}

/// The weak reads that the write of `who` is not ordered after.
fn unordered_weak_reads(cell: &Cell, reads: &ReadSets, who: &Actor<'_>) -> Vec<Conflict> {
    if cell.read_pc == NONE || cell.read_cta < who.first_cta {
        return Vec::new();
    }
    let other_cta = cell.read_cta != who.cta;
    let conflict = |pc: u32, other_cta: bool, reader: Reader| Conflict {
        pc,
        other_is_write: false,
        other_is_strong: false,
        other_cta,
        reader,
    };
    let known = |thread: u32, clock: u32| Reader::Thread { cta: cell.read_cta, thread, clock };
    let mut found = Vec::new();
    if cell.old_read_pc != NONE {
        found.push(conflict(cell.old_read_pc, true, Reader::Unknown));
    }
    if cell.read_thread == MANY {
        for entry in &reads.sets[cell.read_clock as usize].entries {
            let unordered = if other_cta { entry.lanes } else { entry.unordered(who) };
            let lanes = (0..32).filter(|lane| unordered >> lane & 1 == 1);
            found.extend(lanes.map(|lane| conflict(entry.pc, other_cta, known(entry.warp * 32 + lane, entry.clock))));
        }
    } else if other_cta || !who.knows(cell.read_thread, cell.read_clock) {
        found.push(conflict(cell.read_pc, other_cta, known(cell.read_thread, cell.read_clock)));
    }
    found
}

/// Reads that the write of `who` is not ordered after: weak ones, and, if `who` is weak, a strong one.
fn unordered_reads(cell: &Cell, beside: &mut Beside, who: &Actor<'_>) -> Vec<Conflict> {
    let mut found = unordered_weak_reads(cell, &beside.reads, who);
    if !who.strong {
        found.extend(beside.strong(cell, who).and_then(|strong| strong.unordered_read(who)));
    }
    found
}

/// The instruction of the last weak write, if the same thread did it and has passed no barrier since.
fn written_before(cell: &Cell, who: &Actor<'_>) -> Option<u32> {
    let is_own = cell.write_cta == who.cta && cell.write_thread == who.thread && cell.write_clock == who.clock;
    (is_own && cell.write_pc != NONE && !who.strong).then_some(cell.write_pc)
}

/// Records a write. Returns its conflicts, and whether it is an unordered write of an equal value.
fn write_cell(cell: &mut Cell, beside: &mut Beside, who: &Actor<'_>, same: bool) -> (Vec<Conflict>, bool) {
    let write = unordered_write(cell, beside, who);
    let benign = same && write.is_some();
    let reads = unordered_reads(cell, beside, who);
    let found = (write.into_iter().filter(|_| !same).chain(reads).collect(), benign);
    if who.strong {
        // The weak records are kept: other strong accesses need not be ordered after this one.
        beside.strong_for(cell, who).strong_write(who);
        return found;
    }
    forget_reads(cell, &mut beside.reads);
    cell.write_cta = who.cta;
    cell.write_thread = who.thread;
    cell.write_clock = who.clock;
    cell.write_pc = who.pc;
    if let Some(strong) = beside.strong(cell, who) {
        strong.weak_write(who);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(thread: u32, clock: u32, base: &[u32]) -> Actor<'_> {
        Actor { cta: 1, first_cta: 1, thread, clock, base, pc: thread, strong: false }
    }

    fn strong(thread: u32, clock: u32, base: &[u32]) -> Actor<'_> {
        Actor { strong: true, ..actor(thread, clock, base) }
    }

    fn conflict(pc: u32, other_is_write: bool) -> Conflict {
        Conflict { pc, other_is_write, other_is_strong: false, other_cta: false, reader: Reader::Unknown }
    }

    impl Finding {
        /// The first conflict, without the reader.
        fn conflict(&self) -> Option<Conflict> {
            self.meetings.first().map(|meeting| Conflict { reader: Reader::Unknown, ..meeting.conflict })
        }
    }

    #[test]
    fn an_unordered_read_after_a_write_conflicts() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        assert_eq!(shadow.write(8, &[0; 4], &[1; 4], &actor(0, 1, &base)), Finding::default());
        let found = shadow.read(8, 4, &actor(1, 1, &base));
        assert_eq!(found.conflict(), Some(conflict(0, true)));
        let known = [1, 0];
        assert_eq!(shadow.read(8, 4, &actor(1, 2, &known)).conflict(), None);
    }

    #[test]
    fn a_write_conflicts_with_any_of_several_reads() {
        let mut shadow = Shadow::default();
        let base = [0, 0, 0];
        shadow.read(0, 4, &actor(0, 1, &base));
        shadow.read(0, 4, &actor(1, 1, &base));
        let known = [1, 0, 0];
        let found = shadow.write(0, &[0; 4], &[1; 4], &actor(2, 1, &known));
        assert_eq!(found.conflict(), Some(conflict(1, false)));
    }

    #[test]
    fn neighbouring_bytes_do_not_conflict() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.write(0, &[0], &[1], &actor(0, 1, &base));
        assert_eq!(shadow.write(1, &[0], &[1], &actor(1, 1, &base)), Finding::default());
        assert!(shadow.read(0, 4, &actor(1, 1, &base)).conflict().is_some());
    }

    #[test]
    fn equal_values_are_benign() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.write(0, &[0; 4], &[7; 4], &actor(0, 1, &base));
        let found = shadow.write(0, &[7; 4], &[7; 4], &actor(1, 1, &base));
        assert_eq!(found, Finding { benign: true, ..Finding::default() });
        assert_eq!(shadow.last_write(2), Some(LastWrite { cta: 1, thread: 1, pc: 1 }));
    }

    #[test]
    fn a_thread_writes_another_value_again_until_its_next_barrier() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        let write = |shadow: &mut Shadow, pc: u32, clock: u32, old: u8, new: u8| {
            shadow.write(0, &[old; 2], &[new; 2], &Actor { pc, ..actor(1, clock, &base) })
        };
        assert_eq!(write(&mut shadow, 7, 1, 0, 1), Finding::default());
        assert_eq!(write(&mut shadow, 8, 1, 1, 1), Finding::default());
        assert_eq!(write(&mut shadow, 9, 1, 1, 2), Finding { again: Some(8), ..Finding::default() });
        assert_eq!(write(&mut shadow, 7, 2, 2, 3), Finding::default());
    }

    #[test]
    fn a_strong_write_does_not_hide_a_weak_one() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.write(0, &[0; 4], &[1; 4], &actor(0, 1, &base));
        assert_eq!(shadow.write(0, &[1; 4], &[2; 4], &strong(0, 1, &base)), Finding::default());
        let found = shadow.write(0, &[2; 4], &[3; 4], &strong(1, 1, &base));
        assert_eq!(found.conflict(), Some(conflict(0, true)));
        assert_eq!(shadow.last_write(0), Some(LastWrite { cta: 1, thread: 1, pc: 1 }));
    }

    #[test]
    fn a_weak_read_conflicts_with_any_of_several_strong_writes() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.write(0, &[0; 4], &[1; 4], &strong(0, 1, &base));
        assert_eq!(shadow.write(0, &[1; 4], &[2; 4], &strong(1, 1, &base)), Finding::default());
        let found = shadow.read(0, 4, &actor(1, 1, &base));
        assert_eq!(found.conflict(), Some(Conflict { other_is_strong: true, ..conflict(0, true) }));
        let known = [1, 1];
        let mut shadow = Shadow::default();
        shadow.write(0, &[0; 4], &[1; 4], &strong(0, 1, &base));
        shadow.write(0, &[1; 4], &[2; 4], &strong(1, 1, &base));
        assert_eq!(shadow.read(0, 4, &actor(1, 2, &known)).conflict(), None);
        assert_eq!(shadow.write(0, &[2; 4], &[3; 4], &actor(1, 2, &known)), Finding::default());
        assert_eq!(shadow.last_write(0), Some(LastWrite { cta: 1, thread: 1, pc: 1 }));
    }

    #[test]
    fn a_strong_read_does_not_hide_a_weak_one() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.read(0, 4, &actor(0, 1, &base));
        shadow.read(0, 4, &strong(0, 1, &base));
        let found = shadow.write(0, &[0; 4], &[1; 4], &strong(1, 1, &base));
        assert_eq!(found.conflict(), Some(conflict(0, false)));
        let mut shadow = Shadow::default();
        shadow.read(0, 4, &strong(0, 1, &base));
        assert_eq!(shadow.write(0, &[0; 4], &[1; 4], &strong(1, 1, &base)), Finding::default());
        let found = shadow.write(0, &[1; 4], &[2; 4], &actor(1, 1, &base));
        assert_eq!(found.conflict(), Some(Conflict { other_is_strong: true, ..conflict(0, false) }));
    }

    #[test]
    fn strong_accesses_of_other_ctas_conflict_with_weak_ones() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.write(0, &[0; 4], &[1; 4], &strong(0, 1, &base));
        let second = Actor { cta: 2, ..actor(0, 1, &base) };
        let strong_second = Actor { strong: true, ..second };
        assert_eq!(shadow.write(0, &[1; 4], &[2; 4], &strong_second), Finding::default());
        let found = shadow.read(0, 4, &second);
        assert_eq!(found.conflict(), Some(Conflict { other_is_strong: true, other_cta: true, ..conflict(0, true) }));
        let next_launch = Actor { cta: 3, first_cta: 3, ..second };
        assert_eq!(shadow.read(0, 4, &next_launch).conflict(), None);
    }
}
