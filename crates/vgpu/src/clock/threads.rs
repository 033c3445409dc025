//! The clocks of threads, and which of them are alike.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use crate::clock::{Far, Released, Visible};

#[derive(Clone, Debug)]
pub(super) struct ThreadClock {
    /// Counter of this thread, incremented at every release.
    pub(super) own: u32,
    /// For each thread of the CTA, the last count that is ordered before this thread.
    pub(super) base: Arc<Vec<u32>>,
    pub(super) far: Far,
    /// The number of the last of its own copies that it has waited for.
    pub(super) copies: u32,
    /// What its own proxy fences, and those ordered before it, have made visible.
    pub(super) visible: Visible,
    /// What is ordered before its accesses to tensor memory.
    pub(super) tensor: Far,
    /// What the last fence ordered before the thread's strong writes that follow it.
    pub(super) fence: Option<Released>,
    /// What the thread's strong reads since the last fence have observed: a fence orders it before the thread.
    pub(super) observed: Vec<Released>,
}

/// What a thread knows.
#[derive(Clone, Debug)]
pub(super) struct Knowledge {
    pub(super) base: Arc<Vec<u32>>,
    pub(super) far: Far,
    pub(super) visible: Visible,
}

impl Knowledge {
    /// Whether both are the same; false also where it takes more than a comparison of pointers.
    pub(super) fn is_same(&self, other: &Knowledge) -> bool {
        let is_same_base = Arc::ptr_eq(&self.base, &other.base);
        is_same_base && self.far.is_same(&other.far) && self.visible.is_same(&other.visible)
    }
}

impl ThreadClock {
    pub(super) fn knowledge(&self) -> Knowledge {
        Knowledge { base: Arc::clone(&self.base), far: self.far.clone(), visible: self.visible.clone() }
    }

    pub(super) fn set_knowledge(&mut self, Knowledge { base, far, visible }: Knowledge) {
        (self.base, self.far, self.visible) = (base, far, visible);
    }

    /// Whether weak accesses of both are ordered alike; false also where it takes more than a comparison of pointers.
    fn is_like(&self, other: &ThreadClock) -> bool {
        let is_same = Arc::ptr_eq(&self.base, &other.base) && self.far.is_same(&other.far);
        is_same && (self.own, self.copies) == (other.own, other.copies)
    }
}

/// By linear index in the CTA.
#[derive(Debug)]
pub(super) struct Threads {
    clocks: Vec<ThreadClock>,
    /// For each warp, the lanes whose clock is like that of the next lane, until one changes.
    alike: Vec<Option<u32>>,
}

impl Threads {
    pub(super) fn new(each: ThreadClock, count: u32) -> Threads {
        Threads { clocks: vec![each; count as usize], alike: vec![None; count.div_ceil(32) as usize] }
    }

    pub(super) fn count(&self) -> u32 {
        self.clocks.len() as u32
    }

    /// The lanes of a warp whose clock is like that of the next lane.
    pub(super) fn alike(&mut self, warp: u32) -> u32 {
        let warp = warp as usize;
        *self.alike[warp].get_or_insert_with(|| {
            let lanes = &self.clocks[warp * 32..self.clocks.len().min(warp * 32 + 32)];
            let pairs = lanes.windows(2).enumerate();
            pairs.fold(0, |alike, (lane, pair)| alike | u32::from(pair[0].is_like(&pair[1])) << lane)
        })
    }
}

impl Index<u32> for Threads {
    type Output = ThreadClock;

    fn index(&self, thread: u32) -> &ThreadClock {
        &self.clocks[thread as usize]
    }
}

impl IndexMut<u32> for Threads {
    fn index_mut(&mut self, thread: u32) -> &mut ThreadClock {
        self.alike[thread as usize / 32] = None;
        &mut self.clocks[thread as usize]
    }
}
