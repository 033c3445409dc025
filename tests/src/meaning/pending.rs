//! The asynchronous copies of a thread that have not arrived.

use std::collections::VecDeque;
use std::ops::Range;

use tilewright::ir::thread::Inst;

/// A copy: the number of a memory, a place in it, and the bytes.
pub(super) type PendingCopy = (usize, Range<usize>, Vec<Option<u8>>);

/// The copies of a thread: those since the last commit, and those of each group.
#[derive(Default)]
pub(super) struct PendingCopies {
    started: Vec<PendingCopy>,
    groups: VecDeque<Vec<PendingCopy>>,
}

impl PendingCopies {
    pub(super) fn start(&mut self, copy: PendingCopy) {
        self.started.push(copy);
    }

    pub(super) fn commit(&mut self) {
        self.groups.push_back(std::mem::take(&mut self.started));
    }

    /// The copies that have arrived once at most so many groups are pending.
    pub(super) fn wait(&mut self, pending: usize) -> Vec<PendingCopy> {
        let done = self.groups.len().saturating_sub(pending);
        self.groups.drain(..done).flatten().collect()
    }
}

/// The bytes that an asynchronous copy, or a fill in its place, writes.
pub(super) fn copied_bytes(inst: Inst) -> i64 {
    match inst {
        Inst::CopyAsync4 | Inst::ZeroFill4 => 4,
        Inst::CopyAsync8 | Inst::ZeroFill8 => 8,
        _ => 16,
    }
}
