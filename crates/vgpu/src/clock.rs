//! Vector clocks, which decide whether one access is ordered before another.
//!
//! A thread's clock is a base vector, shared with the threads that left its last barrier with it, and its own counter,
//! which is incremented at every release. An access by thread `u` at count `c` is ordered before thread `t` if the
//! entry of `u` in `t`'s base is at least `c`.

use std::rc::Rc;

/// The clock of one thread at its arrival at a barrier.
#[derive(Clone, Debug)]
pub(crate) struct Contribution {
    /// Linear index of the thread in its CTA.
    thread: u32,
    /// The thread's counter at its arrival.
    own: u32,
    /// The thread's base at its arrival.
    base: Rc<Vec<u32>>,
}

#[derive(Clone, Debug)]
struct ThreadClock {
    /// Counter of this thread, incremented at every release.
    own: u32,
    /// For each thread of the CTA, the last count that is ordered before this thread.
    base: Rc<Vec<u32>>,
}

/// The clocks of a CTA's threads.
#[derive(Debug)]
pub(crate) struct Clocks {
    /// By linear index in the CTA.
    threads: Vec<ThreadClock>,
}

impl Clocks {
    /// Clocks of `count` threads with no ordering between them.
    pub(crate) fn new(count: u32) -> Clocks {
        let base = Rc::new(vec![0; count as usize]);
        Clocks { threads: vec![ThreadClock { own: 1, base }; count as usize] }
    }

    /// The thread's own counter.
    pub(crate) fn own(&self, thread: u32) -> u32 {
        self.threads[thread as usize].own
    }

    /// The thread's base: for each thread, the count up to which its accesses are ordered before this thread.
    pub(crate) fn base(&self, thread: u32) -> &[u32] {
        &self.threads[thread as usize].base
    }

    /// Records the arrival of a thread: its accesses so far are ordered before the threads that acquire the result.
    pub(crate) fn release(&mut self, thread: u32) -> Contribution {
        let clock = &mut self.threads[thread as usize];
        let found = Contribution { thread, own: clock.own, base: Rc::clone(&clock.base) };
        clock.own += 1;
        found
    }

    /// Sets the base of every thread in `receivers` to the maximum of all contributions.
    pub(crate) fn acquire(&mut self, contributions: &[Contribution], receivers: &[u32]) {
        let Some(first) = contributions.first() else { return };
        let mut joined: Vec<u32> = (*first.base).clone();
        let mut last = Rc::clone(&first.base);
        for item in contributions {
            if !Rc::ptr_eq(&item.base, &last) {
                for (slot, known) in joined.iter_mut().zip(item.base.iter()) {
                    *slot = (*slot).max(*known);
                }
                last = Rc::clone(&item.base);
            }
        }
        for item in contributions {
            let slot = &mut joined[item.thread as usize];
            *slot = (*slot).max(item.own);
        }
        let joined = Rc::new(joined);
        for thread in receivers {
            self.threads[*thread as usize].base = Rc::clone(&joined);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meeting_orders_its_members_only() {
        let mut clocks = Clocks::new(3);
        let before = clocks.own(0);
        let all = [clocks.release(0), clocks.release(1)];
        clocks.acquire(&all, &[0, 1]);
        assert!(clocks.base(1)[0] >= before);
        assert!(clocks.base(2)[0] < before);
        assert!(clocks.base(1)[0] < clocks.own(0));
    }

    #[test]
    fn knowledge_is_passed_on() {
        let mut clocks = Clocks::new(3);
        let before = clocks.own(0);
        let first = [clocks.release(0), clocks.release(1)];
        clocks.acquire(&first, &[0, 1]);
        let second = [clocks.release(1), clocks.release(2)];
        clocks.acquire(&second, &[1, 2]);
        assert!(clocks.base(2)[0] >= before);
    }

    #[test]
    fn who_only_arrives_learns_nothing() {
        let mut clocks = Clocks::new(2);
        let waiter = clocks.own(1);
        let all = [clocks.release(0), clocks.release(1)];
        clocks.acquire(&all, &[1]);
        assert!(clocks.base(0)[1] < waiter);
    }
}
