//! Records that do not fit in a cell: several readers of one word, and strong (atomic, volatile, relaxed) accesses.

use crate::shadow::access::{Actor, Conflict, LastWrite, Reader};
use crate::shadow::cell::{Cell, MANY, NEVER, NONE};

/// Lanes of one warp that made the same access at the same clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) warp: u32,
    /// Mask of the lanes.
    pub(super) lanes: u32,
    pub(super) clock: u32,
    pub(super) pc: u32,
}

impl Entry {
    /// The lanes whose access is not ordered before `who`.
    pub(super) fn unordered(&self, who: &Actor<'_>) -> u32 {
        let mut found = 0;
        let mut lanes = self.lanes;
        while lanes != 0 {
            let lane = lanes.trailing_zeros();
            if !who.knows(self.warp * 32 + lane, self.clock) {
                found |= 1 << lane;
            }
            lanes &= lanes - 1;
        }
        found
    }
}

/// Accesses by threads of one CTA, the last one of each thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Set {
    pub(super) entries: Vec<Entry>,
}

impl Set {
    pub(super) fn add(&mut self, thread: u32, clock: u32, pc: u32) {
        let (warp, bit) = (thread / 32, 1u32 << (thread % 32));
        let mut placed = false;
        let mut stale = false;
        for entry in self.entries.iter_mut().filter(|entry| entry.warp == warp) {
            if entry.clock == clock && entry.pc == pc {
                entry.lanes |= bit;
                placed = true;
            } else {
                entry.lanes &= !bit;
                stale |= entry.lanes == 0;
            }
        }
        if stale {
            self.entries.retain(|entry| entry.lanes != 0);
        }
        if !placed {
            self.entries.push(Entry { warp, lanes: bit, clock, pc });
        }
    }

    /// Adds the access of `who`. If that needs a new entry, the accesses ordered before it are dropped first.
    pub(super) fn add_after(&mut self, who: &Actor<'_>) {
        let warp = who.thread / 32;
        let joins = |entry: &Entry| entry.warp == warp && entry.clock == who.clock && entry.pc == who.pc;
        if !self.entries.iter().any(joins) {
            self.forget_before(who);
        }
        self.add(who.thread, who.clock, who.pc);
    }

    /// Drops the accesses that are ordered before `who`.
    pub(super) fn forget_before(&mut self, who: &Actor<'_>) {
        for entry in &mut self.entries {
            entry.lanes = entry.unordered(who);
        }
        self.entries.retain(|entry| entry.lanes != 0);
    }

    pub(super) fn forget_thread(&mut self, thread: u32) {
        let (warp, bit) = (thread / 32, 1u32 << (thread % 32));
        for entry in self.entries.iter_mut().filter(|entry| entry.warp == warp) {
            entry.lanes &= !bit;
        }
        self.entries.retain(|entry| entry.lanes != 0);
    }

    /// The first access in the set that is not ordered before `who`.
    pub(super) fn unordered(&self, who: &Actor<'_>) -> Option<u32> {
        self.entries.iter().find(|entry| entry.unordered(who) != 0).map(|entry| entry.pc)
    }
}

/// Sets of unordered weak reads, reused after they are dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadSets {
    pub(super) sets: Vec<Set>,
    /// Indices of dropped sets.
    pub(super) free: Vec<u32>,
}

impl ReadSets {
    pub(super) fn create(&mut self) -> u32 {
        if let Some(index) = self.free.pop() {
            return index;
        }
        self.sets.push(Set::default());
        (self.sets.len() - 1) as u32
    }

    pub(super) fn drop_set(&mut self, index: u32) {
        self.sets[index as usize].entries.clear();
        self.free.push(index);
    }

    pub(super) fn get(&mut self, index: u32) -> &mut Set {
        &mut self.sets[index as usize]
    }
}

/// The strong accesses of a word or byte.
#[derive(Clone, Debug)]
pub(super) struct Strong {
    /// The CTA whose accesses are in the sets.
    pub(super) cta: u32,
    /// Strong writes by threads of `cta`.
    pub(super) writes: Set,
    /// Strong reads by threads of `cta`.
    pub(super) reads: Set,
    /// Instructions of accesses by earlier CTAs of the launch.
    pub(super) old_write_pc: u32,
    pub(super) old_read_pc: u32,
    /// The last write, if it is strong.
    pub(super) last: Option<LastWrite>,
}

impl Strong {
    pub(super) fn new() -> Strong {
        let (writes, reads) = (Set::default(), Set::default());
        Strong { cta: 0, writes, reads, old_write_pc: NONE, old_read_pc: NONE, last: None }
    }

    /// Prepares the sets for the CTA of `who`: of the accesses of an earlier CTA, one write and one read are kept.
    pub(super) fn enter(&mut self, who: &Actor<'_>) {
        if self.cta == who.cta {
            return;
        }
        if self.cta < who.first_cta {
            self.old_write_pc = NONE;
            self.old_read_pc = NONE;
        } else {
            self.old_write_pc = self.writes.entries.first().map_or(self.old_write_pc, |entry| entry.pc);
            self.old_read_pc = self.reads.entries.first().map_or(self.old_read_pc, |entry| entry.pc);
        }
        self.writes.entries.clear();
        self.reads.entries.clear();
        self.cta = who.cta;
    }

    /// A write that the weak access of `who` is not ordered after.
    pub(super) fn unordered_write(&self, who: &Actor<'_>) -> Option<Conflict> {
        conflict_in(self.old_write_pc, &self.writes, true, who)
    }

    /// A read that the weak write of `who` is not ordered after.
    pub(super) fn unordered_read(&self, who: &Actor<'_>) -> Option<Conflict> {
        conflict_in(self.old_read_pc, &self.reads, false, who)
    }

    /// Records a weak write, which replaces the accesses ordered before it; the others are kept.
    pub(super) fn weak_write(&mut self, who: &Actor<'_>) {
        self.writes.forget_before(who);
        self.reads.forget_before(who);
        self.last = None;
    }

    pub(super) fn strong_write(&mut self, who: &Actor<'_>) {
        self.writes.add_after(who);
        // The write replaces an earlier read by the same thread.
        self.reads.forget_thread(who.thread);
        self.last = Some(LastWrite { cta: who.cta, thread: who.thread, pc: who.pc });
    }
}

pub(super) fn conflict_in(old_pc: u32, set: &Set, other_is_write: bool, who: &Actor<'_>) -> Option<Conflict> {
    if old_pc != NONE {
        return Some(Conflict {
            pc: old_pc,
            other_is_write,
            other_is_strong: true,
            other_cta: true,
            reader: Reader::Unknown,
        });
    }
    let pc = set.unordered(who)?;
    Some(Conflict { pc, other_is_write, other_is_strong: true, other_cta: false, reader: Reader::Unknown })
}

/// The records that cells refer to by index.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// Sets of several unordered weak reads, by the cell's `read_clock`.
    pub(super) reads: ReadSets,
    /// Records of strong accesses, by the cell's `strong`.
    pub(super) strong: Vec<Strong>,
}

impl Beside {
    /// The strong accesses of a cell, if there were any.
    pub(super) fn strong(&mut self, cell: &Cell, who: &Actor<'_>) -> Option<&mut Strong> {
        if cell.strong == NEVER {
            return None;
        }
        let strong = &mut self.strong[cell.strong as usize];
        strong.enter(who);
        Some(strong)
    }

    /// The strong accesses of a cell, for adding an access of `who`; created if there are none.
    pub(super) fn strong_for(&mut self, cell: &mut Cell, who: &Actor<'_>) -> &mut Strong {
        if cell.strong == NEVER {
            cell.strong = self.strong.len() as u32;
            self.strong.push(Strong::new());
        }
        let strong = &mut self.strong[cell.strong as usize];
        strong.enter(who);
        strong
    }

    /// A copy of a cell, with its own copies of the records that it refers to.
    pub(super) fn copy(&mut self, cell: Cell) -> Cell {
        let mut copy = cell;
        if cell.read_pc != NONE && cell.read_thread == MANY {
            let set = self.reads.get(cell.read_clock).clone();
            copy.read_clock = self.reads.create();
            *self.reads.get(copy.read_clock) = set;
        }
        if cell.strong != NEVER {
            let strong = self.strong[cell.strong as usize].clone();
            copy.strong = self.strong.len() as u32;
            self.strong.push(strong);
        }
        copy
    }
}
