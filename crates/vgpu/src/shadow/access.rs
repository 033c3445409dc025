//! An access to memory as the shadow sees it, and what it may conflict with.

use crate::clock::{Far, copies_of, cta_of, is_copy};
use crate::isa::Scope;
use crate::shadow::stamp::{Record, Records, Stamp};

/// The thread that accesses memory, and what it knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accessor<'a> {
    pub(crate) records: &'a Records,
    /// The access itself.
    pub(crate) stamp: Stamp,
    /// Number of the CTA, counted over all launches on a memory, from 1.
    pub(crate) cta: u32,
    /// The first CTA of this launch.
    pub(crate) first_cta: u32,
    /// The CTAs of its cluster.
    pub(crate) cluster: &'a [u32],
    /// Linear index in the CTA.
    pub(crate) thread: u32,
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
}

impl Accessor<'_> {
    pub(super) fn is_strong(&self) -> bool {
        self.scope.is_some()
    }

    /// Whether an access is ordered before this one.
    pub(super) fn knows(&self, stamp: Stamp) -> bool {
        let record = self.records.of(stamp);
        self.knows_lane(&record, stamp.lane())
    }

    /// Whether the access of a lane in a record is ordered before this one.
    pub(super) fn knows_lane(&self, record: &Record, lane: u32) -> bool {
        let thread = u32::from(record.warp) * 32 + lane;
        if record.cta == self.cta {
            return thread == self.thread || self.base[thread as usize] >= record.clock;
        }
        let is_own_copy = record.cta == copies_of(self.cta) && thread == self.thread && record.clock <= self.copies;
        is_own_copy || self.far.has_launched(cta_of(record.cta)) || self.far.count(record.cta, thread) >= record.clock
    }

    /// Whether a strong access of a thread of another CTA is in the scope of this one, and the other way round.
    pub(super) fn is_in_scope(&self, record: &Record) -> bool {
        let cta = cta_of(record.cta);
        if cta == self.cta {
            return true;
        }
        let Some(least) = record.scope.min(self.scope) else { return false };
        least >= Scope::Gpu || (least >= Scope::Cluster && self.cluster.contains(&cta))
    }

    /// Whether a write that is ordered before this access needs a proxy fence in between: a write by a thread, if this is
    /// by another proxy.
    pub(super) fn needs_fence(&self, write: Stamp) -> bool {
        let Some(visible) = self.fenced else { return false };
        let record = self.records.of(write);
        let thread = u32::from(record.warp) * 32 + write.lane();
        if cta_of(record.cta) < self.first_cta || (is_copy(record.cta) && thread >= self.base.len() as u32) {
            return false;
        }
        visible.count(record.cta, thread) < record.clock
    }

    /// Whether a read that is ordered before this write has no proxy fence in between.
    pub(super) fn lacks_fence_after(&self, read: Stamp) -> bool {
        self.notes_reads && self.knows(read) && self.needs_fence(read)
    }

    /// The conflict with a write that needs a proxy fence.
    pub(super) fn unfenced(&self, write: Stamp) -> Conflict {
        Conflict { needs_fence: true, ..self.conflict(write, true) }
    }

    /// The conflict with an access that is not ordered before this one.
    pub(super) fn conflict(&self, stamp: Stamp, other_is_write: bool) -> Conflict {
        let record = self.records.of(stamp);
        let thread = u32::from(record.warp) * 32 + stamp.lane();
        Conflict {
            pc: record.pc,
            other_is_write,
            other_is_strong: record.scope.is_some(),
            other_cta: cta_of(record.cta) != self.cta,
            needs_fence: false,
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
