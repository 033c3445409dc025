//! Checks an access against the records of a cell, and records it there.

use crate::clock::cta_of;
use crate::shadow::access::{Accessor, Conflict};
use crate::shadow::cell::{Cell, NEVER, Reads};
use crate::shadow::sets::{ReadSets, SideTables};
use crate::shadow::stamp::Stamp;

/// A write that `who` is not ordered after: a weak one or, if `who` is weak or not in its scope, a strong one.
fn unordered_write(cell: &Cell, tables: &SideTables, who: &Accessor<'_>) -> Option<Conflict> {
    let write = cell.write();
    if !write.is_none() && !who.knows(write) {
        return Some(who.conflict(write, true));
    }
    let strong = tables.strong(cell)?;
    if who.is_strong() && strong.are_writes_in_scope(who) {
        return None;
    }
    let counts = |stamp: &Stamp| !who.is_strong() || !who.is_in_scope(&who.by.records.of(*stamp));
    let found = strong.unordered_writes(who).find(counts);
    found.map(|stamp| who.conflict(stamp, true))
}

/// The last write, if this access of the asynchronous proxy needs a proxy fence after it.
fn unfenced_write(cell: &Cell, tables: &SideTables, who: &Accessor<'_>) -> Option<Conflict> {
    let strong = tables.strong(cell).map_or(Stamp::NONE, |strong| strong.last);
    let unfenced = |write: &Stamp| !write.is_none() && who.needs_fence(*write);
    [cell.write(), strong].into_iter().find(unfenced).map(|write| who.unfenced(write))
}

/// Whether a weak access of a thread to this cell needs no more than a comparison of stamps: no strong accesses, no earlier
/// writes beside the last one, and at most one read, all ordered before it.
#[inline]
pub(super) fn is_simple(cell: &Cell, who: &Accessor<'_>) -> bool {
    let write = cell.write();
    let is_read_known = match cell.reads() {
        Reads::None => true,
        Reads::One(last) => last == who.stamp || who.knows(last),
        Reads::Several(_) => false,
    };
    let is_plain = cell.extra == NEVER && who.by.scope.is_none() && cell.older.is_none();
    is_plain && is_read_known && (write.is_none() || who.is_clear_of(write))
}

/// Whether the bytes of the cell were accessed by different lanes, which only [`is_simple`] and [`read_beside`] can tell
/// apart: for all else, the cell is to be split first.
pub(super) fn is_row(cell: &Cell, who: &Accessor<'_>) -> bool {
    let is_row = |stamp: Stamp| who.by.records.is_row(stamp, who.size);
    is_row(cell.write()) || is_row(cell.older) || matches!(cell.reads(), Reads::One(last) if is_row(last))
}

/// Records a weak read that is ordered after the last write, beside other reads; false if there is more to it.
pub(super) fn read_beside(cell: &mut Cell, tables: &mut SideTables, who: &Accessor<'_>) -> bool {
    let write = cell.write();
    let is_ordered = write.is_none() || who.is_clear_of(write);
    if cell.extra != NEVER || who.by.scope.is_some() || !is_ordered {
        return false;
    }
    // A set has whole cells.
    let joins_set = match cell.reads() {
        Reads::None => false,
        Reads::One(last) => !is_after(last, who) && is_of_own_cta(last, who),
        Reads::Several(_) => true,
    };
    if joins_set && (who.by.sharing.is_row(who.size) || is_row(cell, who)) {
        return false;
    }
    add_read(cell, &mut tables.reads, who);
    true
}

/// Whether a read is ordered before the access of `who`, or is the same.
fn is_after(read: Stamp, who: &Accessor<'_>) -> bool {
    read == who.stamp || who.knows(read)
}

fn is_of_own_cta(read: Stamp, who: &Accessor<'_>) -> bool {
    cta_of(who.by.records.of(read).cta) == who.by.cta
}

/// Records a weak read beside those that are there.
fn add_read(cell: &mut Cell, reads: &mut ReadSets, who: &Accessor<'_>) {
    match cell.reads() {
        Reads::None => cell.set_reads(Reads::One(who.stamp)),
        Reads::One(last) if is_after(last, who) => cell.set_reads(Reads::One(who.stamp)),
        Reads::One(last) if !is_of_own_cta(last, who) => {
            keep_read(cell, last, who);
            cell.set_reads(Reads::One(who.stamp));
        }
        Reads::One(last) => {
            let index = reads.create();
            let set = reads.get_mut(index);
            set.add(last, 0, who);
            set.add(who.stamp, 0, who);
            cell.set_reads(Reads::Several(index));
        }
        Reads::Several(index) => {
            let set = reads.get_mut(index);
            match set.first().filter(|first| !is_of_own_cta(*first, who)) {
                None => set.add(who.stamp, 0, who),
                Some(_) => {
                    // One of the reads by the other CTA is kept.
                    if let Some(read) = set.unordered(who).next() {
                        keep_read(cell, read, who);
                    }
                    reads.drop_set(index);
                    cell.set_reads(Reads::One(who.stamp));
                }
            }
        }
    }
}

/// Records a simple access.
pub(super) fn record(cell: &mut Cell, is_write: bool, who: &Accessor<'_>) {
    if is_write {
        cell.set_reads(Reads::None);
        cell.set_write(who.stamp);
    } else {
        cell.set_reads(Reads::One(who.stamp));
    }
}

/// Records a read that is not simple. A read that races with a write leaves no record, since its value may never be used.
pub(super) fn read_cell(cell: &mut Cell, tables: &mut SideTables, who: &Accessor<'_>) -> Option<Conflict> {
    let conflict = unordered_write(cell, tables, who).or_else(|| unordered_earlier(cell, tables, who));
    let conflict = conflict.or_else(|| unfenced_write(cell, tables, who));
    if conflict.is_some() {
        return conflict;
    }
    if who.is_strong() {
        tables.strong_for(cell).strong_read(who);
    } else {
        add_read(cell, &mut tables.reads, who);
    }
    None
}

/// Keeps one read beside the last one, which is by `who`: `read` or the one so far. A read that is not ordered before `who`
/// counts more than others, one by another CTA and by another cluster more than one of the own, and then the first CTA.
fn keep_read(cell: &mut Cell, read: Stamp, who: &Accessor<'_>) {
    let rank = |stamp: Stamp| {
        let cta = cta_of(who.by.records.of(stamp).cta);
        (who.knows(stamp), cta == who.by.cta, who.by.cluster.contains(&cta), cta)
    };
    if cell.older.is_none() || rank(read) <= rank(cell.older) {
        cell.older = read;
    }
}

fn forget_reads(cell: &mut Cell, reads: &mut ReadSets) {
    if let Reads::Several(index) = cell.reads() {
        reads.drop_set(index);
    }
    cell.set_reads(Reads::None);
    cell.older = Stamp::NONE;
}

/// Reads that the write of `who` is not ordered after: weak ones, and, if `who` is weak or not in its scope, a strong one.
fn unordered_reads(cell: &Cell, tables: &SideTables, who: &Accessor<'_>) -> Vec<Conflict> {
    let mut found: Vec<Stamp> = Vec::new();
    found.extend(Some(cell.older).filter(|older| !older.is_none() && !who.knows(*older)));
    match cell.reads() {
        Reads::None => {}
        Reads::One(last) => found.extend(Some(last).filter(|last| !who.knows(*last))),
        Reads::Several(index) => found.extend(tables.reads.get(index).unordered(who)),
    }
    let strong = tables.strong(cell).filter(|strong| !who.is_strong() || !strong.are_reads_in_scope(who));
    let counts = |stamp: &Stamp| !who.is_strong() || !who.is_in_scope(&who.by.records.of(*stamp));
    found.extend(strong.and_then(|strong| strong.unordered_reads(who).find(counts)));
    found.into_iter().map(|stamp| who.conflict(stamp, false)).collect()
}

/// The instruction of the last weak write, if the same thread did it and has released nothing since.
pub(super) fn written_before(cell: &Cell, who: &Accessor<'_>) -> Option<u32> {
    let write = cell.write();
    if write.is_none() || who.is_strong() {
        return None;
    }
    let (record, own) = (who.by.records.of(write), who.by.records.of(who.stamp));
    let is_own = (record.cta, record.warp, record.clock) == (own.cta, own.warp, own.clock);
    (is_own && who.by.records.lane(write) == who.by.records.lane(who.stamp)).then_some(record.pc)
}

/// An earlier write, kept beside the last one, that the access of `who` is not ordered after.
fn unordered_earlier(cell: &Cell, tables: &SideTables, who: &Accessor<'_>) -> Option<Conflict> {
    let earlier = tables.earlier(cell);
    (!earlier.is_none() && !who.knows(earlier)).then(|| who.conflict(earlier, true))
}

/// Keeps a write that the write by `who`, which becomes the last one, is not ordered after: the last one so far, or the one that is kept if only that is unordered, or is of another CTA.
fn keep_earlier(cell: &mut Cell, tables: &mut SideTables, who: &Accessor<'_>) {
    let unordered = |stamp: Stamp| Some(stamp).filter(|stamp| !stamp.is_none() && !who.knows(*stamp));
    let (last, kept) = (unordered(cell.write()), unordered(tables.earlier(cell)));
    let kept = kept.filter(|kept| last.is_none() || who.by.records.of(*kept).cta != who.by.cta);
    tables.set_earlier(cell, kept.or(last).unwrap_or(Stamp::NONE));
}

/// Records a write that is not simple. Returns its conflicts, and the write of an equal value that it is not ordered after.
pub(super) fn write_cell(
    cell: &mut Cell,
    tables: &mut SideTables,
    who: &Accessor<'_>,
    same: bool,
) -> (Vec<Conflict>, Option<Conflict>) {
    let write = unordered_write(cell, tables, who).or_else(|| unordered_earlier(cell, tables, who));
    let write = write.or_else(|| unfenced_write(cell, tables, who));
    let benign = write.filter(|_| same);
    let reads = unordered_reads(cell, tables, who);
    let found = (write.into_iter().filter(|_| !same).chain(reads).collect(), benign);
    if who.is_strong() {
        // The weak records are kept: other strong accesses need not be ordered after this one.
        tables.strong_for(cell).strong_write(who);
        return found;
    }
    forget_reads(cell, &mut tables.reads);
    if write.is_some() {
        // Also of another value: either write may be the last one.
        keep_earlier(cell, tables, who);
    } else if !same {
        tables.set_earlier(cell, Stamp::NONE);
    }
    cell.set_write(who.stamp);
    if let Some(strong) = tables.strong_mut(cell) {
        strong.weak_write(who);
    }
    found
}
