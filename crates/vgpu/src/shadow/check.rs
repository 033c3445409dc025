//! Checks an access against the records of a cell, and records it there.

use crate::shadow::access::{Accessor, Conflict, Reader};
use crate::shadow::cell::{Cell, MANY, NEVER, NONE};
use crate::shadow::side_tables::{ReadSets, SideTables};

/// A write that `who` is not ordered after: a weak one, or, if `who` is weak, a strong one.
fn unordered_write(cell: &Cell, tables: &mut SideTables, who: &Accessor<'_>) -> Option<Conflict> {
    let other_cta = cell.write_cta != who.cta;
    let unordered = cell.write_pc != NONE
        && cell.write_cta >= who.first_cta
        && (other_cta || !who.knows(cell.write_thread, cell.write_clock));
    if unordered {
        let reader = Reader::Unknown;
        return Some(Conflict { pc: cell.write_pc, other_is_write: true, other_is_strong: false, other_cta, reader });
    }
    if who.strong { None } else { tables.strong(cell, who)?.unordered_write(who) }
}

/// Records a read. A read that races with a write leaves no record, since its value may never be used.
pub(super) fn read_cell(cell: &mut Cell, tables: &mut SideTables, who: &Accessor<'_>) -> Option<Conflict> {
    let conflict = unordered_write(cell, tables, who);
    if conflict.is_some() {
        return conflict;
    }
    if who.strong {
        tables.strong_for(cell, who).reads.add_after(who);
        return conflict;
    }
    let reads = &mut tables.reads;
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

fn set_read(cell: &mut Cell, who: &Accessor<'_>) {
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
fn unordered_weak_reads(cell: &Cell, reads: &ReadSets, who: &Accessor<'_>) -> Vec<Conflict> {
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
        for group in &reads.sets[cell.read_clock as usize].groups {
            let unordered = if other_cta { group.lanes } else { group.unordered(who) };
            let lanes = (0..32).filter(|lane| unordered >> lane & 1 == 1);
            found.extend(lanes.map(|lane| conflict(group.pc, other_cta, known(group.warp * 32 + lane, group.clock))));
        }
    } else if other_cta || !who.knows(cell.read_thread, cell.read_clock) {
        found.push(conflict(cell.read_pc, other_cta, known(cell.read_thread, cell.read_clock)));
    }
    found
}

/// Reads that the write of `who` is not ordered after: weak ones, and, if `who` is weak, a strong one.
fn unordered_reads(cell: &Cell, tables: &mut SideTables, who: &Accessor<'_>) -> Vec<Conflict> {
    let mut found = unordered_weak_reads(cell, &tables.reads, who);
    if !who.strong {
        found.extend(tables.strong(cell, who).and_then(|strong| strong.unordered_read(who)));
    }
    found
}

/// The instruction of the last weak write, if the same thread did it and has passed no barrier since.
pub(super) fn written_before(cell: &Cell, who: &Accessor<'_>) -> Option<u32> {
    let is_own = cell.write_cta == who.cta && cell.write_thread == who.thread && cell.write_clock == who.clock;
    (is_own && cell.write_pc != NONE && !who.strong).then_some(cell.write_pc)
}

/// Records a write. Returns its conflicts, and whether it is an unordered write of an equal value.
pub(super) fn write_cell(
    cell: &mut Cell,
    tables: &mut SideTables,
    who: &Accessor<'_>,
    same: bool,
) -> (Vec<Conflict>, bool) {
    let write = unordered_write(cell, tables, who).or_else(|| tables.unordered_equal(cell, who));
    let benign = same && write.is_some();
    let reads = unordered_reads(cell, tables, who);
    let found = (write.into_iter().filter(|_| !same).chain(reads).collect(), benign);
    if who.strong {
        // The weak records are kept: other strong accesses need not be ordered after this one.
        tables.strong_for(cell, who).strong_write(who);
        return found;
    }
    forget_reads(cell, &mut tables.reads);
    if benign {
        tables.keep_equal(cell, who);
    } else if !same {
        cell.equal = NEVER;
    }
    cell.write_cta = who.cta;
    cell.write_thread = who.thread;
    cell.write_clock = who.clock;
    cell.write_pc = who.pc;
    if let Some(strong) = tables.strong(cell, who) {
        strong.weak_write(who);
    }
    found
}
