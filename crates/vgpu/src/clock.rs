//! Vector clocks: which accesses are ordered before which.
//!
//! A thread's knowledge is a base that it shares with everyone who met it at the last barrier, and its own counter,
//! which grows at every release. An access of thread `u` at count `c` is ordered before thread `t` when `t`'s base
//! holds at least `c` for `u`.

use std::rc::Rc;

/// What one thread brings to a meeting.
#[derive(Clone, Debug)]
pub(crate) struct Contribution {
    thread: u32,
    own: u32,
    base: Rc<Vec<u32>>,
}

#[derive(Clone, Debug)]
struct ThreadClock {
    own: u32,
    base: Rc<Vec<u32>>,
}

/// The clocks of a CTA's threads.
#[derive(Debug)]
pub(crate) struct Clocks {
    threads: Vec<ThreadClock>,
}

impl Clocks {
    /// Clocks of `count` threads that know nothing of each other.
    pub(crate) fn new(count: u32) -> Clocks {
        let base = Rc::new(vec![0; count as usize]);
        Clocks { threads: vec![ThreadClock { own: 1, base }; count as usize] }
    }

    /// The thread's own counter.
    pub(crate) fn own(&self, thread: u32) -> u32 {
        self.threads[thread as usize].own
    }

    /// What the thread knows of the others.
    pub(crate) fn base(&self, thread: u32) -> &[u32] {
        &self.threads[thread as usize].base
    }

    /// The thread arrives: its accesses so far are what the others will know.
    pub(crate) fn release(&mut self, thread: u32) -> Contribution {
        let clock = &mut self.threads[thread as usize];
        let found = Contribution { thread, own: clock.own, base: Rc::clone(&clock.base) };
        clock.own += 1;
        found
    }

    /// The threads in `receivers` learn everything contributed.
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
