//! Records that do not fit in a cell: several readers of one word, and strong (atomic, volatile, relaxed) accesses.

use crate::shadow::access::{Accessor, Conflict, LastWrite, Reader};
use crate::shadow::cell::{Cell, MANY, NEVER, NONE};

/// Lanes of one warp that made the same access at the same clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessGroup {
    pub(super) warp: u32,
    /// Mask of the lanes.
    pub(super) lanes: u32,
    pub(super) clock: u32,
    pub(super) pc: u32,
}

impl AccessGroup {
    /// The lanes whose access is not ordered before `who`.
    pub(super) fn unordered(&self, who: &Accessor<'_>) -> u32 {
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
pub(super) struct AccessSet {
    pub(super) groups: Vec<AccessGroup>,
}

impl AccessSet {
    pub(super) fn add(&mut self, thread: u32, clock: u32, pc: u32) {
        let (warp, bit) = (thread / 32, 1u32 << (thread % 32));
        let mut placed = false;
        let mut stale = false;
        for group in self.groups.iter_mut().filter(|group| group.warp == warp) {
            if group.clock == clock && group.pc == pc {
                group.lanes |= bit;
                placed = true;
            } else {
                group.lanes &= !bit;
                stale |= group.lanes == 0;
            }
        }
        if stale {
            self.groups.retain(|group| group.lanes != 0);
        }
        if !placed {
            self.groups.push(AccessGroup { warp, lanes: bit, clock, pc });
        }
    }

    /// Adds the access of `who`. If that needs a new group, the accesses ordered before it are dropped first.
    pub(super) fn add_after(&mut self, who: &Accessor<'_>) {
        let warp = who.thread / 32;
        let joins = |group: &AccessGroup| group.warp == warp && group.clock == who.clock && group.pc == who.pc;
        if !self.groups.iter().any(joins) {
            self.forget_before(who);
        }
        self.add(who.thread, who.clock, who.pc);
    }

    /// Drops the accesses that are ordered before `who`.
    pub(super) fn forget_before(&mut self, who: &Accessor<'_>) {
        for group in &mut self.groups {
            group.lanes = group.unordered(who);
        }
        self.groups.retain(|group| group.lanes != 0);
    }

    pub(super) fn forget_thread(&mut self, thread: u32) {
        let (warp, bit) = (thread / 32, 1u32 << (thread % 32));
        for group in self.groups.iter_mut().filter(|group| group.warp == warp) {
            group.lanes &= !bit;
        }
        self.groups.retain(|group| group.lanes != 0);
    }

    /// The first access in the set that is not ordered before `who`.
    pub(super) fn unordered(&self, who: &Accessor<'_>) -> Option<u32> {
        self.groups.iter().find(|group| group.unordered(who) != 0).map(|group| group.pc)
    }
}

/// Sets of unordered weak reads, reused after they are dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadSets {
    pub(super) sets: Vec<AccessSet>,
    /// Indices of dropped sets.
    pub(super) free: Vec<u32>,
}

impl ReadSets {
    pub(super) fn create(&mut self) -> u32 {
        if let Some(index) = self.free.pop() {
            return index;
        }
        self.sets.push(AccessSet::default());
        (self.sets.len() - 1) as u32
    }

    pub(super) fn drop_set(&mut self, index: u32) {
        self.sets[index as usize].groups.clear();
        self.free.push(index);
    }

    pub(super) fn get(&mut self, index: u32) -> &mut AccessSet {
        &mut self.sets[index as usize]
    }
}

/// The strong accesses of a word or byte.
#[derive(Clone, Debug)]
pub(super) struct StrongAccesses {
    /// The CTA whose accesses are in the sets.
    pub(super) cta: u32,
    /// Strong writes by threads of `cta`.
    pub(super) writes: AccessSet,
    /// Strong reads by threads of `cta`.
    pub(super) reads: AccessSet,
    /// Instructions of accesses by earlier CTAs of the launch.
    pub(super) old_write_pc: u32,
    pub(super) old_read_pc: u32,
    /// The last write, if it is strong.
    pub(super) last: Option<LastWrite>,
}

impl StrongAccesses {
    pub(super) fn new() -> StrongAccesses {
        let (writes, reads) = (AccessSet::default(), AccessSet::default());
        StrongAccesses { cta: 0, writes, reads, old_write_pc: NONE, old_read_pc: NONE, last: None }
    }

    /// Prepares the sets for the CTA of `who`: of the accesses of an earlier CTA, one write and one read are kept.
    pub(super) fn enter(&mut self, who: &Accessor<'_>) {
        if self.cta == who.cta {
            return;
        }
        if self.cta < who.first_cta {
            self.old_write_pc = NONE;
            self.old_read_pc = NONE;
        } else {
            self.old_write_pc = self.writes.groups.first().map_or(self.old_write_pc, |group| group.pc);
            self.old_read_pc = self.reads.groups.first().map_or(self.old_read_pc, |group| group.pc);
        }
        self.writes.groups.clear();
        self.reads.groups.clear();
        self.cta = who.cta;
    }

    /// A write that the weak access of `who` is not ordered after.
    pub(super) fn unordered_write(&self, who: &Accessor<'_>) -> Option<Conflict> {
        conflict_in(self.old_write_pc, &self.writes, true, who)
    }

    /// A read that the weak write of `who` is not ordered after.
    pub(super) fn unordered_read(&self, who: &Accessor<'_>) -> Option<Conflict> {
        conflict_in(self.old_read_pc, &self.reads, false, who)
    }

    /// Records a weak write, which replaces the accesses ordered before it; the others are kept.
    pub(super) fn weak_write(&mut self, who: &Accessor<'_>) {
        self.writes.forget_before(who);
        self.reads.forget_before(who);
        self.last = None;
    }

    pub(super) fn strong_write(&mut self, who: &Accessor<'_>) {
        self.writes.add_after(who);
        // The write replaces an earlier read by the same thread.
        self.reads.forget_thread(who.thread);
        self.last = Some(LastWrite { cta: who.cta, thread: who.thread, pc: who.pc });
    }
}

pub(super) fn conflict_in(old_pc: u32, set: &AccessSet, other_is_write: bool, who: &Accessor<'_>) -> Option<Conflict> {
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
pub(super) struct SideTables {
    /// Sets of several unordered weak reads, by the cell's `read_clock`.
    pub(super) reads: ReadSets,
    /// Records of strong accesses, by the cell's `strong`.
    pub(super) strong: Vec<StrongAccesses>,
    /// Earlier writes of equal values, by the cell's `equal`.
    equal: Vec<WeakWrite>,
}

/// A weak write.
#[derive(Clone, Copy, Debug)]
struct WeakWrite {
    cta: u32,
    thread: u32,
    clock: u32,
    pc: u32,
}

impl WeakWrite {
    fn is_unordered(&self, who: &Accessor<'_>) -> bool {
        self.cta >= who.first_cta && (self.cta != who.cta || !who.knows(self.thread, self.clock))
    }
}

impl SideTables {
    /// The strong accesses of a cell, if there were any.
    pub(super) fn strong(&mut self, cell: &Cell, who: &Accessor<'_>) -> Option<&mut StrongAccesses> {
        if cell.strong == NEVER {
            return None;
        }
        let strong = &mut self.strong[cell.strong as usize];
        strong.enter(who);
        Some(strong)
    }

    /// The strong accesses of a cell, for adding an access of `who`; created if there are none.
    pub(super) fn strong_for(&mut self, cell: &mut Cell, who: &Accessor<'_>) -> &mut StrongAccesses {
        if cell.strong == NEVER {
            cell.strong = self.strong.len() as u32;
            self.strong.push(StrongAccesses::new());
        }
        let strong = &mut self.strong[cell.strong as usize];
        strong.enter(who);
        strong
    }

    /// An earlier write of the value of a cell that the access of `who` is not ordered after.
    pub(super) fn unordered_equal(&self, cell: &Cell, who: &Accessor<'_>) -> Option<Conflict> {
        let equal = self.equal.get(cell.equal as usize).filter(|equal| equal.is_unordered(who))?;
        let (pc, other_cta) = (equal.pc, equal.cta != who.cta);
        Some(Conflict { pc, other_is_write: true, other_is_strong: false, other_cta, reader: Reader::Unknown })
    }

    /// Keeps a write that the write of an equal value by `who`, which becomes the last one, is not ordered after: the
    /// last one so far, or the one that is kept if only that is unordered, or is of another CTA for certain.
    pub(super) fn keep_equal(&mut self, cell: &mut Cell, who: &Accessor<'_>) {
        let last =
            WeakWrite { cta: cell.write_cta, thread: cell.write_thread, clock: cell.write_clock, pc: cell.write_pc };
        let kept = self.equal.get_mut(cell.equal as usize);
        let is_last_unordered = last.pc != NONE && last.is_unordered(who);
        match kept {
            Some(kept) if kept.is_unordered(who) && (kept.cta != who.cta || !is_last_unordered) => {}
            Some(kept) if is_last_unordered => *kept = last,
            None if is_last_unordered => {
                cell.equal = self.equal.len() as u32;
                self.equal.push(last);
            }
            Some(_) | None => cell.equal = NEVER,
        }
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
        if let Some(equal) = self.equal.get(cell.equal as usize).copied() {
            copy.equal = self.equal.len() as u32;
            self.equal.push(equal);
        }
        copy
    }
}
