//! Shadow memory: who last wrote and read each 4-byte word, and whether a new access is ordered after them.
//!
//! The scheme is FastTrack's (Flanagan and Freund, 2009): one record for the last write, one for the last read, and a
//! set of reads only while several unordered threads read. A word is split into byte cells when an access touches a
//! part of it. CTAs are never ordered after each other, so records of another CTA conflict whatever their clocks say.

/// No instruction.
const NONE: u32 = u32::MAX;
/// In `read_thread`: the reads are in the set that `read_clock` names.
const MANY: u32 = u32::MAX;
/// In `write_cta`: the word is split into the cells that `write_thread` names.
const SPLIT: u32 = u32::MAX;
/// Set in a program counter: the access was atomic or otherwise strong.
const STRONG: u32 = 1 << 31;
const PAGE_WORDS: usize = 1024;

/// Who accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor<'a> {
    /// Number of the CTA, counted over all launches on a memory, from 1.
    pub(crate) cta: u32,
    /// The first CTA of this launch: what earlier ones did is ordered before.
    pub(crate) first_cta: u32,
    /// Linear index in the CTA.
    pub(crate) thread: u32,
    pub(crate) clock: u32,
    pub(crate) base: &'a [u32],
    pub(crate) pc: u32,
    pub(crate) strong: bool,
}

impl Actor<'_> {
    fn tagged(&self) -> u32 {
        if self.strong { self.pc | STRONG } else { self.pc }
    }

    /// Whether an access by `thread` of this CTA at `clock` is ordered before this one.
    fn knows(&self, thread: u32, clock: u32) -> bool {
        thread == self.thread || self.base.get(thread as usize).is_some_and(|known| *known >= clock)
    }

    fn both_strong(&self, pc: u32) -> bool {
        self.strong && pc & STRONG != 0
    }
}

/// The other access of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) pc: u32,
    pub(crate) other_is_write: bool,
}

/// What an access found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) conflict: Option<Conflict>,
    /// An unordered write of the value that was there.
    pub(crate) benign: bool,
}

/// The last write of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastWrite {
    pub(crate) cta: u32,
    pub(crate) thread: u32,
    pub(crate) pc: u32,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    write_cta: u32,
    write_thread: u32,
    write_clock: u32,
    write_pc: u32,
    read_cta: u32,
    read_thread: u32,
    read_clock: u32,
    read_pc: u32,
    /// A read by an earlier CTA of the launch.
    old_read_pc: u32,
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
};

/// Lanes of one warp that read at one count.
#[derive(Clone, Copy, Debug)]
struct ReadEntry {
    warp: u32,
    lanes: u32,
    clock: u32,
    pc: u32,
}

/// Sets of unordered reads, reused after they are dropped.
#[derive(Debug, Default)]
struct ReadSets {
    sets: Vec<Vec<ReadEntry>>,
    free: Vec<u32>,
}

impl ReadSets {
    fn create(&mut self) -> u32 {
        if let Some(index) = self.free.pop() {
            return index;
        }
        self.sets.push(Vec::new());
        (self.sets.len() - 1) as u32
    }

    fn drop_set(&mut self, index: u32) {
        self.sets[index as usize].clear();
        self.free.push(index);
    }

    fn add(&mut self, index: u32, thread: u32, clock: u32, pc: u32) {
        let set = &mut self.sets[index as usize];
        let (warp, bit) = (thread / 32, 1u32 << (thread % 32));
        let mut placed = false;
        let mut stale = false;
        for entry in set.iter_mut().filter(|entry| entry.warp == warp) {
            if entry.clock == clock && entry.pc == pc {
                entry.lanes |= bit;
                placed = true;
            } else {
                entry.lanes &= !bit;
                stale |= entry.lanes == 0;
            }
        }
        if stale {
            set.retain(|entry| entry.lanes != 0);
        }
        if !placed {
            set.push(ReadEntry { warp, lanes: bit, clock, pc });
        }
    }

    /// The first read in the set that is not ordered before `who`.
    fn unordered(&self, index: u32, who: &Actor<'_>) -> Option<u32> {
        for entry in &self.sets[index as usize] {
            if who.both_strong(entry.pc) {
                continue;
            }
            let mut lanes = entry.lanes;
            while lanes != 0 {
                let thread = entry.warp * 32 + lanes.trailing_zeros();
                if !who.knows(thread, entry.clock) {
                    return Some(entry.pc);
                }
                lanes &= lanes - 1;
            }
        }
        None
    }
}

/// The shadow of one region; pages appear when they are touched.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    pages: Vec<Option<Box<[Cell]>>>,
    splits: Vec<[Cell; 4]>,
    reads: ReadSets,
}

impl Shadow {
    /// Notes a read of `len` bytes from `offset`.
    pub(crate) fn read(&mut self, offset: usize, len: usize, who: &Actor<'_>) -> Finding {
        let mut found = Finding::default();
        let end = offset + len;
        let mut at = offset;
        while at < end {
            let word = at / 4;
            let stop = end.min(word * 4 + 4);
            let Shadow { pages, splits, reads } = self;
            for cell in cells(pages, splits, reads, word, at % 4, stop - at) {
                let conflict = read_cell(cell, reads, who);
                found.conflict = found.conflict.or(conflict);
            }
            at = stop;
        }
        found
    }

    /// Notes a write of `new` at `offset` over `old`.
    pub(crate) fn write(&mut self, offset: usize, old: &[u8], new: &[u8], who: &Actor<'_>) -> Finding {
        let mut found = Finding::default();
        let end = offset + new.len();
        let mut at = offset;
        while at < end {
            let word = at / 4;
            let stop = end.min(word * 4 + 4);
            let (from, to) = (at - offset, stop - offset);
            let same = old[from..to] == new[from..to];
            let Shadow { pages, splits, reads } = self;
            for cell in cells(pages, splits, reads, word, at % 4, stop - at) {
                let one = write_cell(cell, reads, who, same);
                found.conflict = found.conflict.or(one.conflict);
                found.benign |= one.benign;
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
        let pc = cell.write_pc;
        (pc != NONE).then_some(LastWrite { cta: cell.write_cta, thread: cell.write_thread, pc: pc & !STRONG })
    }
}

/// The cells of `len` bytes from `first` in a word, which is split if they are a part of it.
fn cells<'a>(
    pages: &'a mut Vec<Option<Box<[Cell]>>>,
    splits: &'a mut Vec<[Cell; 4]>,
    reads: &mut ReadSets,
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
        splits.push([whole, copy(whole, reads), copy(whole, reads), copy(whole, reads)]);
        page[slot] = Cell { write_cta: SPLIT, write_thread: (splits.len() - 1) as u32, ..EMPTY };
    }
    if page[slot].write_cta == SPLIT {
        let group = page[slot].write_thread as usize;
        return &mut splits[group][first..first + len];
    }
    &mut page[slot..slot + 1]
}

/// A copy with a read set of its own.
fn copy(cell: Cell, reads: &mut ReadSets) -> Cell {
    if cell.read_pc == NONE || cell.read_thread != MANY {
        return cell;
    }
    let index = reads.create();
    reads.sets[index as usize] = reads.sets[cell.read_clock as usize].clone();
    Cell { read_clock: index, ..cell }
}

/// A write that `who` is not ordered after.
fn unordered_write(cell: &Cell, who: &Actor<'_>) -> bool {
    cell.write_pc != NONE
        && cell.write_cta >= who.first_cta
        && (cell.write_cta != who.cta || !who.knows(cell.write_thread, cell.write_clock))
        && !who.both_strong(cell.write_pc)
}

fn read_cell(cell: &mut Cell, reads: &mut ReadSets, who: &Actor<'_>) -> Option<Conflict> {
    let conflict = unordered_write(cell, who).then_some(Conflict { pc: cell.write_pc & !STRONG, other_is_write: true });
    if cell.read_pc == NONE || cell.read_cta < who.first_cta {
        forget_reads(cell, reads);
        set_read(cell, who);
    } else if cell.read_cta != who.cta {
        let old = cell.read_pc;
        forget_reads(cell, reads);
        cell.old_read_pc = old;
        set_read(cell, who);
    } else if cell.read_thread == MANY {
        reads.add(cell.read_clock, who.thread, who.clock, who.tagged());
    } else if who.knows(cell.read_thread, cell.read_clock) {
        set_read(cell, who);
    } else {
        let index = reads.create();
        reads.add(index, cell.read_thread, cell.read_clock, cell.read_pc);
        reads.add(index, who.thread, who.clock, who.tagged());
        cell.read_thread = MANY;
        cell.read_clock = index;
    }
    conflict
}

fn set_read(cell: &mut Cell, who: &Actor<'_>) {
    cell.read_cta = who.cta;
    cell.read_thread = who.thread;
    cell.read_clock = who.clock;
    cell.read_pc = who.tagged();
}

fn forget_reads(cell: &mut Cell, reads: &mut ReadSets) {
    if cell.read_pc != NONE && cell.read_thread == MANY {
        reads.drop_set(cell.read_clock);
    }
    cell.read_thread = 0;
    cell.read_pc = NONE;
    cell.old_read_pc = NONE;
}

/// A read that `who` is not ordered after.
fn unordered_read(cell: &Cell, reads: &ReadSets, who: &Actor<'_>) -> Option<u32> {
    if cell.read_pc == NONE || cell.read_cta < who.first_cta {
        return None;
    }
    if cell.old_read_pc != NONE && !who.both_strong(cell.old_read_pc) {
        return Some(cell.old_read_pc);
    }
    if cell.read_cta != who.cta {
        return (!who.both_strong(cell.read_pc)).then_some(cell.read_pc);
    }
    if cell.read_thread == MANY {
        return reads.unordered(cell.read_clock, who);
    }
    let ordered = who.knows(cell.read_thread, cell.read_clock) || who.both_strong(cell.read_pc);
    (!ordered).then_some(cell.read_pc)
}

fn write_cell(cell: &mut Cell, reads: &mut ReadSets, who: &Actor<'_>, same: bool) -> Finding {
    let mut found = Finding::default();
    if unordered_write(cell, who) {
        if same {
            found.benign = true;
        } else {
            found.conflict = Some(Conflict { pc: cell.write_pc & !STRONG, other_is_write: true });
        }
    }
    if let Some(pc) = unordered_read(cell, reads, who) {
        found.conflict = found.conflict.or(Some(Conflict { pc: pc & !STRONG, other_is_write: false }));
    }
    forget_reads(cell, reads);
    cell.write_cta = who.cta;
    cell.write_thread = who.thread;
    cell.write_clock = who.clock;
    cell.write_pc = who.tagged();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(thread: u32, clock: u32, base: &[u32]) -> Actor<'_> {
        Actor { cta: 1, first_cta: 1, thread, clock, base, pc: thread, strong: false }
    }

    #[test]
    fn an_unordered_read_after_a_write_conflicts() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        assert_eq!(shadow.write(8, &[0; 4], &[1; 4], &actor(0, 1, &base)), Finding::default());
        let found = shadow.read(8, 4, &actor(1, 1, &base));
        assert_eq!(found.conflict, Some(Conflict { pc: 0, other_is_write: true }));
        let known = [1, 0];
        assert_eq!(shadow.read(8, 4, &actor(1, 2, &known)).conflict, None);
    }

    #[test]
    fn a_write_conflicts_with_any_of_several_reads() {
        let mut shadow = Shadow::default();
        let base = [0, 0, 0];
        shadow.read(0, 4, &actor(0, 1, &base));
        shadow.read(0, 4, &actor(1, 1, &base));
        let known = [1, 0, 0];
        let found = shadow.write(0, &[0; 4], &[1; 4], &actor(2, 1, &known));
        assert_eq!(found.conflict, Some(Conflict { pc: 1, other_is_write: false }));
    }

    #[test]
    fn neighbouring_bytes_do_not_conflict() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.write(0, &[0], &[1], &actor(0, 1, &base));
        assert_eq!(shadow.write(1, &[0], &[1], &actor(1, 1, &base)), Finding::default());
        assert!(shadow.read(0, 4, &actor(1, 1, &base)).conflict.is_some());
    }

    #[test]
    fn equal_values_are_benign() {
        let mut shadow = Shadow::default();
        let base = [0, 0];
        shadow.write(0, &[0; 4], &[7; 4], &actor(0, 1, &base));
        let found = shadow.write(0, &[7; 4], &[7; 4], &actor(1, 1, &base));
        assert_eq!(found, Finding { conflict: None, benign: true });
        assert_eq!(shadow.last_write(2), Some(LastWrite { cta: 1, thread: 1, pc: 1 }));
    }
}
