//! An access to memory as the shadow sees it, and what it may conflict with.

/// The thread that accesses memory, and its clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accessor<'a> {
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

impl Accessor<'_> {
    /// Whether an access by `thread` of this CTA at `clock` is ordered before this one.
    pub(super) fn knows(&self, thread: u32, clock: u32) -> bool {
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

/// The last write of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastWrite {
    pub(crate) cta: u32,
    pub(crate) thread: u32,
    pub(crate) pc: u32,
}
