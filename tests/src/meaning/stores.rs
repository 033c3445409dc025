//! Copies of boxes to tensors, also those that combine elements, which a thread waits for by groups.
//!
//! If threads run forwards, such a copy reads and writes at once. If they run backwards, it does both as late as the waits of its
//! thread allow, the latest group first: what may come in any order comes in the other one.

use std::ops::Range;

use tilewright::ir::tile::AtomicOp;
use tilewright::layout::DType;

use super::machine::{Machine, Memories, Order, word};
use super::numbers;

/// Bytes of a memory, by its number.
pub(super) type Bytes = (usize, Range<usize>);

/// The move of an element to a tensor.
struct Move {
    from: Bytes,
    to: Bytes,
    /// How the element is combined with the one that is there, and its type.
    combined: Option<(AtomicOp, DType)>,
    /// The element, once it has been read.
    read: Option<Vec<Option<u8>>>,
}

impl Move {
    fn read(&mut self, memories: &Memories) {
        let (number, bytes) = &self.from;
        self.read.get_or_insert_with(|| memories[number][bytes.clone()].to_vec());
    }

    fn write(mut self, memories: &mut Memories) -> Result<(), String> {
        self.read(memories);
        let (number, bytes) = self.to;
        let (Some(held), Some(read)) = (memories.get_mut(&number), self.read) else { return Ok(()) };
        let written = match self.combined {
            None => read,
            Some((by, dtype)) => {
                let both = [word(&held[bytes.clone()]), word(&read)]
                    .map(|one| one.ok_or("a combination of unwritten elements"));
                let [before, more] = both;
                let both = numbers::apply(by.element_op(), dtype, &[before?, more?])?;
                both.to_le_bytes()[..read.len()].iter().map(|byte| Some(*byte)).collect()
            }
        };
        held[bytes].copy_from_slice(&written);
        Ok(())
    }
}

/// The copies of a thread to tensors: those since the last commit, and those of each group that has not arrived.
#[derive(Default)]
pub(super) struct PendingStores {
    started: Vec<Move>,
    groups: Vec<Vec<Move>>,
}

impl PendingStores {
    pub(super) fn commit(&mut self) {
        self.groups.push(std::mem::take(&mut self.started));
    }

    /// All but the latest `pending` groups read.
    pub(super) fn wait_read(&mut self, pending: usize, memories: &Memories) {
        let done = self.groups.len().saturating_sub(pending);
        self.groups[..done].iter_mut().flatten().for_each(|one| one.read(memories));
    }

    /// All but the latest `pending` groups arrive.
    pub(super) fn wait(&mut self, pending: usize, memories: &mut Memories) -> Result<(), String> {
        let done = self.groups.len().saturating_sub(pending);
        let arrived: Vec<Vec<Move>> = self.groups.drain(..done).collect();
        arrived.into_iter().rev().flatten().try_for_each(|one| one.write(memories))
    }

    /// The kernel ends: an error if a copy belongs to no group, or has not read what it copies.
    pub(super) fn end(&mut self, memories: &mut Memories) -> Result<(), String> {
        if !self.started.is_empty() {
            return Err("a copy to a tensor belongs to no group".to_string());
        }
        if self.groups.iter().flatten().any(|one| one.read.is_none()) {
            return Err("a CTA ends before a copy to a tensor has read shared memory".to_string());
        }
        self.wait(0, memories)
    }
}

impl Machine<'_> {
    /// Starts to move an element to a tensor, or to combine it with the one that is there.
    pub(super) fn start_store(
        &mut self,
        at: usize,
        from: Bytes,
        to: Bytes,
        combined: Option<(AtomicOp, DType)>,
    ) -> Result<(), String> {
        let one = Move { from, to, combined, read: None };
        match self.order {
            Order::Forwards => one.write(self.memories)?,
            Order::Backwards => self.threads[at].stores.started.push(one),
        }
        Ok(())
    }
}
