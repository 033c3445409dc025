//! An access to memory as the shadow sees it, and what it may conflict with.

use std::cell::Cell;

use crate::clock::{Far, copies_of, cta_of, is_copy};
use crate::isa::Scope;
use crate::lanes::lanes;
use crate::shadow::stamp::{Record, Records, Sharing, Stamp};

/// Who accesses memory, a thread or several threads of a warp that know the same, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor<'a> {
    pub(crate) records: &'a Records,
    /// How several threads share the bytes.
    pub(crate) sharing: Sharing,
    /// Number of the CTA, counted over all launches on a memory, from 1.
    pub(crate) cta: u32,
    /// The first CTA of this launch.
    pub(crate) first_cta: u32,
    /// The CTAs of its cluster.
    pub(crate) cluster: &'a [u32],
    /// The thread's base (see [`crate::clock`]).
    pub(crate) base: &'a [u32],
    /// What the thread knows of other CTAs.
    pub(crate) far: &'a Far,
    /// The count of its own copies that are ordered before it.
    pub(crate) copies: u32,
    /// For an access by another proxy: what is visible to it.
    pub(crate) fenced: Option<&'a Far>,
    /// The scope, if the access is atomic, volatile, relaxed, acquire or release.
    pub(crate) scope: Option<Scope>,
    /// Whether a write tells of reads that are ordered before it without a proxy fence.
    pub(crate) notes_reads: bool,
    /// Whether it reads: a write that does is a read-modify-write.
    pub(crate) reads: bool,
    /// Stamps that are known to be ordered before it: those of adjacent cells are often the same.
    pub(crate) known: &'a KnownStamps,
}

/// An access to a cell, or to adjacent bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accessor<'a> {
    pub(crate) by: &'a Actor<'a>,
    /// The access itself.
    pub(crate) stamp: Stamp,
    /// Linear index of the thread in its CTA, of the first of several threads.
    pub(crate) thread: u32,
    /// Number of bytes.
    pub(crate) size: usize,
}

/// What an access was last found to be ordered after.
#[derive(Debug)]
pub(crate) struct KnownStamps {
    /// Stamps of one lane each.
    stamps: Cell<[Stamp; 2]>,
    /// Records whose lanes are all ordered before the access.
    records: Cell<[u32; 2]>,
    /// A stamp of one lane of a write that needs no proxy fence either.
    clear: Cell<Stamp>,
}

impl KnownStamps {
    pub(crate) fn new() -> KnownStamps {
        KnownStamps {
            stamps: Cell::new([Stamp::NONE; 2]),
            records: Cell::new([u32::MAX; 2]),
            clear: Cell::new(Stamp::NONE),
        }
    }

    fn has(&self, stamp: Stamp) -> bool {
        self.stamps.get().contains(&stamp) || self.records.get().contains(&stamp.record())
    }

    fn add_stamp(&self, stamp: Stamp) {
        let [last, _] = self.stamps.get();
        self.stamps.set([stamp, last]);
    }

    fn add_record(&self, record: u32) {
        let [last, _] = self.records.get();
        self.records.set([record, last]);
    }
}

impl Accessor<'_> {
    pub(super) fn is_strong(&self) -> bool {
        self.by.scope.is_some()
    }

    /// The same access, of a cell of `size` bytes that begins `offset` bytes after the first byte of the access.
    #[inline]
    pub(super) fn at(&self, offset: usize, size: usize) -> Self {
        let stamp = self.stamp.part(offset, self.by.sharing);
        let thread = match stamp == self.stamp {
            true => self.thread,
            false => self.thread / 32 * 32 + self.by.records.lane(stamp),
        };
        Accessor { stamp, thread, size, ..*self }
    }

    /// Whether a write is ordered before this access, and needs no proxy fence.
    #[inline]
    pub(super) fn is_clear_of(&self, write: Stamp) -> bool {
        if self.by.fenced.is_none() {
            return self.knows(write);
        }
        if self.by.known.clear.get() == write {
            return true;
        }
        let is_clear = self.knows(write) && !self.needs_fence(write);
        if is_clear && self.by.records.of(write).sharing == Sharing::Alone {
            self.by.known.clear.set(write);
        }
        is_clear
    }

    /// Whether all accesses of a stamp, by one lane or several, are ordered before this one.
    pub(super) fn knows(&self, stamp: Stamp) -> bool {
        if self.by.known.has(stamp) {
            return true;
        }
        let record = self.by.records.of(stamp);
        if self.knows_all_lanes(&record) {
            self.by.known.add_record(stamp.record());
            return true;
        }
        if record.sharing == Sharing::Alone {
            let is_known = self.knows_lane(&record, stamp.position());
            // What a lane knows because it is its own counts for no other lane.
            if is_known && record.cta != self.by.cta && !self.is_own_copy(&record, stamp.position()) {
                self.by.known.add_stamp(stamp);
            }
            return is_known;
        }
        if record.sharing.is_alone(self.size) {
            return self.knows_lane(&record, self.by.records.lane_of(&record, stamp));
        }
        self.first_unknown(&record, stamp).is_none() || self.is_same_row(&record, stamp)
    }

    /// Whether the accesses of all lanes with a record are ordered before this one, as most are. Copies are not looked at.
    fn knows_all_lanes(&self, record: &Record) -> bool {
        if record.cta != self.by.cta {
            return self.by.far.has_launched(cta_of(record.cta));
        }
        let first = usize::from(record.warp) * 32;
        let lanes = self.by.base.get(first..first + 32).unwrap_or(&[]);
        lanes.len() == 32 && lanes.iter().fold(true, |all, known| all & (*known >= record.clock))
    }

    /// Whether each byte of the cell was accessed by the lane that accesses it now.
    fn is_same_row(&self, record: &Record, stamp: Stamp) -> bool {
        let own = self.by.records.of(self.stamp);
        let is_row = matches!(own.sharing, Sharing::Row { .. }) && own.sharing == record.sharing;
        is_row && (record.cta, record.warp, stamp.position()) == (self.by.cta, own.warp, self.stamp.position())
    }

    /// The first lane of a stamp whose access is not ordered before this one.
    fn first_unknown(&self, record: &Record, stamp: Stamp) -> Option<u32> {
        let mut lanes = lanes(self.by.records.lanes(record, stamp, self.size)).map(|lane| lane as u32);
        lanes.find(|lane| !self.knows_lane(record, *lane))
    }

    /// Whether this is the only lane that accesses the cell.
    fn is_alone(&self) -> bool {
        self.by.sharing.is_alone(self.size)
    }

    /// Whether the access of a lane in a record is ordered before this one.
    pub(super) fn knows_lane(&self, record: &Record, lane: u32) -> bool {
        let thread = u32::from(record.warp) * 32 + lane;
        if record.cta == self.by.cta {
            return self.by.base[thread as usize] >= record.clock || (thread == self.thread && self.is_alone());
        }
        self.is_own_copy(record, lane)
            || self.by.far.has_launched(cta_of(record.cta))
            || self.by.far.count(record.cta, thread) >= record.clock
    }

    /// Whether a record is of a copy that the only lane that accesses the cell has started and waited for.
    fn is_own_copy(&self, record: &Record, lane: u32) -> bool {
        let thread = u32::from(record.warp) * 32 + lane;
        record.cta == copies_of(self.by.cta)
            && thread == self.thread
            && record.clock <= self.by.copies
            && self.is_alone()
    }

    /// Whether a strong access of a thread of another CTA is in the scope of this one, and the other way round.
    pub(super) fn is_in_scope(&self, record: &Record) -> bool {
        let cta = cta_of(record.cta);
        if cta == self.by.cta {
            return true;
        }
        let Some(least) = record.scope.min(self.by.scope) else { return false };
        least >= Scope::Gpu || (least >= Scope::Cluster && self.by.cluster.contains(&cta))
    }

    /// Whether a write that is ordered before this access needs a proxy fence in between: a write by a thread, if this is
    /// by another proxy.
    pub(super) fn needs_fence(&self, write: Stamp) -> bool {
        let Some(visible) = self.by.fenced else { return false };
        let record = self.by.records.of(write);
        lanes(self.by.records.lanes(&record, write, self.size)).any(|lane| {
            let thread = u32::from(record.warp) * 32 + lane as u32;
            let is_old = cta_of(record.cta) < self.by.first_cta;
            let is_engine = is_copy(record.cta) && thread >= self.by.base.len() as u32;
            !is_old && !is_engine && visible.count(record.cta, thread) < record.clock
        })
    }

    /// Whether a read that is ordered before this write has no proxy fence in between.
    pub(super) fn lacks_fence_after(&self, read: Stamp) -> bool {
        self.by.notes_reads && self.knows(read) && self.needs_fence(read)
    }

    /// The conflict with a write that needs a proxy fence.
    pub(super) fn unfenced(&self, write: Stamp) -> Conflict {
        Conflict { needs_fence: true, ..self.conflict(write, true) }
    }

    /// The conflict with an access that is not ordered before this one.
    pub(super) fn conflict(&self, stamp: Stamp, other_is_write: bool) -> Conflict {
        let record = self.by.records.of(stamp);
        let lane = self.first_unknown(&record, stamp).unwrap_or_else(|| self.by.records.lane(stamp));
        let thread = u32::from(record.warp) * 32 + lane;
        Conflict {
            pc: record.pc,
            other_is_write,
            other_is_strong: record.scope.is_some(),
            other_cta: cta_of(record.cta) != self.by.cta,
            needs_fence: false,
            other_is_later: false,
            who: Who { cta: record.cta, thread, clock: record.clock },
        }
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
    /// It is ordered, but needs a proxy fence.
    pub(crate) needs_fence: bool,
    /// The other access is executed later in the run.
    pub(crate) other_is_later: bool,
    /// Who made the other access.
    pub(crate) who: Who,
}

/// A thread at one of its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Who {
    /// Number of the CTA, counted over all launches on a memory.
    pub(crate) cta: u32,
    /// Linear index in the CTA.
    pub(crate) thread: u32,
    pub(crate) clock: u32,
}
