//! Vector clocks, which decide whether one access is ordered before another.
//!
//! A thread's clock is a base vector, shared with the threads that left its last barrier with it, and its own counter,
//! which is incremented at every release. An access by thread `u` at count `c` is ordered before thread `t` if the
//! entry of `u` in `t`'s base is at least `c`. What a thread knows of other CTAs, through flags in global memory, is a
//! vector for each of them.

mod far;
mod released;
#[cfg(test)]
mod tests;
mod threads;

use std::sync::Arc;

use far::{Joins, join_counts};
use released::Fenced;
use threads::{Knowledge, ThreadClock, Threads};

pub(crate) use far::{Agent, Far, copies_of, cta_of, is_copy};
pub(crate) use released::{Cluster, Flag, Known, Released, Visible};

use crate::isa::Scope;
use crate::op::ProxyFence;

/// The clock of one thread at its arrival at a barrier, or at the start of an asynchronous operation.
#[derive(Clone, Debug)]
pub(crate) struct Contribution {
    /// Number of the thread's CTA.
    cta: u32,
    /// Linear index of the thread in its CTA.
    thread: u32,
    /// The thread's counter at its arrival.
    own: u32,
    /// The thread's base at its arrival.
    base: Arc<Vec<u32>>,
    far: Far,
    /// The number of the thread's last copy that is ordered before its arrival.
    copies: u32,
    visible: Visible,
}

/// The clocks of a CTA's threads.
#[derive(Debug)]
pub(crate) struct Clocks {
    /// The CTA and its cluster.
    cluster: Cluster,
    threads: Threads,
}

impl Clocks {
    /// Clocks of `count` threads with no ordering between them.
    pub(crate) fn new(cluster: Cluster, count: u32) -> Clocks {
        let base = Arc::new(vec![0; count as usize]);
        let thread = ThreadClock {
            own: 1,
            base,
            far: Far::default(),
            copies: 0,
            visible: Visible::default(),
            tensor: Far::default(),
            fence: None,
            observed: Vec::new(),
        };
        Clocks { cluster, threads: Threads::new(thread, count) }
    }

    /// The threads know all that the CTAs of earlier launches did, which have smaller numbers.
    pub(crate) fn know_launches(&mut self, first_cta: u32) {
        (0..self.threads.count()).for_each(|thread| self.wait_for_launches(thread, first_cta));
    }

    /// A thread has waited for the launches before its own.
    pub(crate) fn wait_for_launches(&mut self, thread: u32, first_cta: u32) {
        let far = &mut self.threads[thread].far;
        *far = far.join(&Far::of_launches(first_cta));
    }

    /// The thread's own counter.
    pub(crate) fn own(&self, thread: u32) -> u32 {
        self.threads[thread].own
    }

    /// The thread's base: for each thread, the count up to which its accesses are ordered before this thread.
    pub(crate) fn base(&self, thread: u32) -> &[u32] {
        &self.threads[thread].base
    }

    /// What the thread knows of other CTAs.
    pub(crate) fn far(&self, thread: u32) -> &Far {
        &self.threads[thread].far
    }

    /// The lanes of a warp that know the same as the next lane, and have the same count.
    pub(crate) fn alike(&mut self, warp: u32) -> u32 {
        self.threads.alike(warp)
    }

    /// Whether lanes of a warp know the same, and have the same count.
    pub(crate) fn are_alike(&mut self, warp: u32, lanes: u32) -> bool {
        let (first, last) = (lanes.trailing_zeros(), 31 - lanes.leading_zeros());
        let between = (1u64 << last) as u32 - (1u64 << first) as u32;
        self.alike(warp) & between == between
    }

    /// The number of the last of its own copies that is ordered before the thread.
    pub(crate) fn copies(&self, thread: u32) -> u32 {
        self.threads[thread].copies
    }

    /// The thread has waited for its copies up to number `last`.
    pub(crate) fn finish_copies(&mut self, thread: u32, last: u32) {
        let copies = &mut self.threads[thread].copies;
        *copies = last.max(*copies);
    }

    /// Records the arrival of a thread: its accesses so far are ordered before the threads that acquire the result.
    pub(crate) fn release(&mut self, thread: u32) -> Contribution {
        let cta = self.cluster.own;
        let clock = &mut self.threads[thread];
        let (own, base, far, copies) = (clock.own, Arc::clone(&clock.base), clock.far.clone(), clock.copies);
        let visible = clock.visible.clone();
        let found = Contribution { cta, thread, own, base, far, copies, visible };
        clock.own += 1;
        found
    }

    /// What is ordered before an asynchronous operation that the thread starts, and so before those who wait for it: what the
    /// thread has learned, and what proxy fences have made visible, but not its other accesses.
    pub(crate) fn started(&self, thread: u32) -> Contribution {
        let clock = &self.threads[thread];
        let far = clock.visible.all().fold(clock.far.clone(), |far, visible| far.join(visible));
        let (cta, base, visible) = (self.cluster.own, Arc::clone(&clock.base), clock.visible.clone());
        Contribution { cta, thread, own: 0, base, far, copies: 0, visible }
    }

    /// Sets the base of every thread in `receivers` to the maximum of all contributions.
    pub(crate) fn acquire(&mut self, contributions: &[Contribution], receivers: &[u32]) {
        let Known { base: Some(joined), far, visible } = self.known(contributions) else { return };
        self.teach(receivers, |before| Knowledge {
            base: Arc::clone(&joined),
            far: before.far.join(&far),
            visible: before.visible.join(&visible),
        });
    }

    /// Everything that the contributions bring to the threads of this CTA.
    pub(crate) fn known(&self, contributions: &[Contribution]) -> Known {
        let own = self.cluster.own;
        let mut ctas: Vec<u32> = contributions.iter().map(|item| item.cta).collect();
        ctas.sort_unstable();
        ctas.dedup();
        let mut known = Known::default();
        for cta in ctas {
            let of_cta = || contributions.iter().filter(|item| item.cta == cta);
            let (joined, copies) = counts(of_cta());
            known.far = of_cta().fold(known.far, |all, item| all.join(&item.far));
            known.visible = of_cta().fold(known.visible, |all, item| all.join(&item.visible));
            if let Some(copies) = copies {
                known.far = known.far.join(&Far::default().with(copies_of(cta), &Arc::new(copies)));
            }
            match cta == own {
                true => known.base = Some(Arc::new(joined)),
                false => known.far = known.far.join(&Far::default().with(cta, &Arc::new(joined))),
            }
        }
        // Threads of other CTAs may know what those of this CTA have done.
        if let Some(counts) = known.far.known.as_ref().and_then(|far| far.get(&own)).cloned() {
            known.far = known.far.without(own);
            known.base = Some(known.base.map_or(Arc::clone(&counts), |base| join_counts(&base, &counts)));
        }
        known
    }

    /// Threads observe the completion of a phase of an mbarrier, and learn what it brings: at once if they acquire, else at
    /// their next fences.
    pub(crate) fn observe_phase(&mut self, threads: &[u32], known: &Known, acquires: bool) {
        let cta = self.cluster.own;
        let base = known.base.as_ref().map_or(Far::default(), |base| Far::default().with(cta, base));
        let (known, visible) = (known.far.join(&base), known.visible.clone());
        let released = Released { cta, scope: Scope::Cluster, known, visible };
        match acquires {
            true => self.learn(threads, &released),
            false => threads.iter().for_each(|thread| self.threads[*thread].observed.push(released.clone())),
        }
    }

    /// A proxy fence: what the thread knows and has done so far becomes visible to another proxy.
    pub(crate) fn fence_proxy(&mut self, thread: u32, fence: ProxyFence) {
        let (now, cta) = (self.released(thread, Scope::Sys).known, self.cluster.own);
        let clock = &mut self.threads[thread];
        let of = |is_fenced: bool| if is_fenced { now.clone() } else { Far::default() };
        let made = match fence {
            ProxyFence::Async { shared, global } => {
                Fenced { shared: of(shared), global: of(global), ..Fenced::default() }
            }
            ProxyFence::ReleaseMaps(Scope::Cta) => Fenced { released_maps: [now, Far::default()], ..Fenced::default() },
            ProxyFence::ReleaseMaps(_) => Fenced { released_maps: [Far::default(), now], ..Fenced::default() },
            ProxyFence::AcquireMap(scope, address) => {
                let [to_own, to_all] = clock.visible.released_maps();
                // A narrow fence reaches the own CTA only.
                let to_all = if scope == Scope::Cta { to_all.only(cta) } else { to_all.clone() };
                let known = to_own.only(cta).join(&to_all);
                Fenced { maps: [(address, known)].into(), ..Fenced::default() }
            }
        };
        clock.visible = clock.visible.join(&Visible::of(made));
    }

    /// What is visible to the accesses of other proxies that the thread starts.
    pub(crate) fn visible(&self, thread: u32) -> &Visible {
        &self.threads[thread].visible
    }

    /// What is ordered before the thread's accesses to tensor memory, by `tcgen05.ld`, `st`, `cp` and `mma`.
    pub(crate) fn tensor(&self, thread: u32) -> &Far {
        &self.threads[thread].tensor
    }

    /// Threads have waited for accesses to tensor memory by their warp.
    pub(crate) fn finish_tensor_access(&mut self, threads: impl Iterator<Item = u32>, agent: Agent) {
        let known = self.of_agents([agent].into_iter());
        let mut joins = Joins::default();
        for thread in threads {
            let clock = &mut self.threads[thread];
            clock.tensor = joins.join(&clock.tensor, &known);
        }
    }

    /// `tcgen05.fence::before_thread_sync`: what the threads release from now on includes their accesses to tensor memory.
    pub(crate) fn fence_tensor_before(&mut self, threads: impl Iterator<Item = u32>) {
        let mut joins = Joins::default();
        for thread in threads {
            let clock = &mut self.threads[thread];
            clock.far = joins.join(&clock.far, &clock.tensor);
        }
    }

    /// `tcgen05.fence::after_thread_sync`: the threads' accesses to tensor memory that follow are ordered after what they
    /// know.
    pub(crate) fn fence_tensor_after(&mut self, threads: impl Iterator<Item = u32>) {
        let mut joins = Joins::default();
        for thread in threads {
            let clock = &mut self.threads[thread];
            clock.tensor = joins.join(&clock.tensor, &clock.far);
        }
    }

    /// What copies of an engine bring, as agents with their counts.
    pub(crate) fn of_agents(&self, agents: impl Iterator<Item = Agent>) -> Far {
        let mut counts = Vec::new();
        for Agent { thread, number, .. } in agents {
            counts.resize(counts.len().max(thread as usize + 1), 0);
            counts[thread as usize] = number;
        }
        Far::default().with(copies_of(self.cluster.own), &Arc::new(counts))
    }

    /// Threads have waited for an agent.
    pub(crate) fn learn_agent(&mut self, threads: impl Iterator<Item = u32>, agent: Agent) {
        let known = self.of_agents([agent].into_iter());
        let mut joins = Joins::default();
        for thread in threads {
            let clock = &mut self.threads[thread];
            clock.far = joins.join(&clock.far, &known);
        }
    }

    /// What copies of a thread up to number `last` bring.
    pub(crate) fn of_copies(&self, thread: u32, last: u32) -> Far {
        let mut copies = vec![0; self.threads.count() as usize];
        copies[thread as usize] = last;
        Far::default().with(copies_of(self.cluster.own), &Arc::new(copies))
    }

    /// Everything that is ordered before the thread or done by it so far, for those who observe it.
    fn released(&mut self, thread: u32, scope: Scope) -> Released {
        let cta = self.cluster.own;
        let clock = &mut self.threads[thread];
        let mut counts = Vec::clone(&clock.base);
        counts[thread as usize] = clock.own;
        clock.own += 1;
        let mut known = clock.far.with(cta, &Arc::new(counts));
        if clock.copies > 0 {
            let mut copies = vec![0; clock.base.len()];
            copies[thread as usize] = clock.copies;
            known = known.join(&Far::default().with(copies_of(cta), &Arc::new(copies)));
        }
        Released { cta, scope, known, visible: clock.visible.clone() }
    }

    /// Threads learn what was released.
    pub(crate) fn learn(&mut self, threads: &[u32], released: &Released) {
        let cta = self.cluster.own;
        let counts = released.known.known.as_ref().and_then(|known| known.get(&cta));
        let others = released.known.without(cta);
        self.teach(threads, |before| Knowledge {
            base: counts.map_or(before.base.clone(), |counts| join_counts(&before.base, counts)),
            far: before.far.join(&others),
            visible: before.visible.join(&released.visible),
        });
    }

    /// Gives threads the knowledge that follows from what each has. Neighbours that knew the same share what they know afterwards.
    fn teach(&mut self, threads: &[u32], after: impl Fn(&Knowledge) -> Knowledge) {
        let mut last: Option<[Knowledge; 2]> = None;
        for thread in threads {
            let clock = &mut self.threads[*thread];
            let before = clock.knowledge();
            let after = match &last {
                Some([known, after]) if known.is_same(&before) => after.clone(),
                _ => after(&before),
            };
            clock.set_knowledge(after.clone());
            last = Some([before, after]);
        }
    }

    /// A fence (PTX ISA, section 8.7): if it acquires, what the thread has observed is ordered before it; if it releases,
    /// everything so far is ordered before the thread's strong writes that follow.
    pub(crate) fn fence(&mut self, thread: u32, scope: Scope, acquires: bool, releases: bool) {
        if acquires {
            for released in std::mem::take(&mut self.threads[thread].observed) {
                if released.reaches(&self.cluster, scope) {
                    self.learn(&[thread], &released);
                }
            }
        }
        if releases {
            let released = self.released(thread, scope);
            self.threads[thread].fence = Some(released);
        }
    }

    /// `fence.sc` by threads that execute it together: they also synchronize with those before them (PTX ISA, section
    /// 8.9.4), of which `sequence` is what they released.
    pub(crate) fn fence_in_sequence(&mut self, threads: &[u32], scope: Scope, sequence: &mut Flag) {
        let mut all: Option<Released> = None;
        for thread in threads {
            let cluster = self.cluster.clone();
            let cta = cluster.own;
            for released in sequence.0.iter().filter(|released| released.reaches(&cluster, scope)) {
                self.learn(&[*thread], released);
            }
            self.fence(*thread, scope, true, false);
            let clock = &self.threads[*thread];
            let (known, visible) = (clock.far.clone(), clock.visible.clone());
            let own = Released { cta, scope, known, visible };
            all = Some(match all {
                None => own,
                Some(all) => {
                    Released { known: all.known.join(&own.known), visible: all.visible.join(&own.visible), ..all }
                }
            });
        }
        let Some(all) = all else { return };
        let bases = threads.iter().map(|thread| &self.threads[*thread].base);
        let Some(base) = bases.cloned().reduce(|a, b| join_counts(&a, &b)) else { return };
        let mut counts = Vec::clone(&base);
        let mut copies = vec![0; counts.len()];
        for thread in threads {
            let clock = &mut self.threads[*thread];
            counts[*thread as usize] = clock.own;
            copies[*thread as usize] = clock.copies;
            clock.own += 1;
        }
        let mut known = all.known.with(self.cluster.own, &Arc::new(counts));
        if copies.iter().any(|count| *count > 0) {
            known = known.join(&Far::default().with(copies_of(self.cluster.own), &Arc::new(copies)));
        }
        let released = Released { known, ..all };
        threads.iter().for_each(|thread| self.threads[*thread].fence = Some(released.clone()));
        // The threads know what the sequence held, if it reaches them, so that this takes its place.
        sequence.0.retain(|held| !held.reaches(&self.cluster, scope) || held.scope > scope);
        sequence.add(released);
    }

    /// What a strong write by the thread hands over: everything so far if it releases, else what its last fence ordered.
    pub(crate) fn written(&mut self, thread: u32, scope: Scope, releases: bool) -> Option<Released> {
        if releases {
            return Some(self.released(thread, scope));
        }
        let fence = self.threads[thread].fence.as_ref()?;
        Some(Released { scope: fence.scope.min(scope), ..fence.clone() })
    }

    /// A strong read of a word by the thread: what it holds is ordered before the thread at once if the read acquires,
    /// else at the next fence.
    pub(crate) fn read(&mut self, thread: u32, flag: &Flag, scope: Scope, acquires: bool) {
        let cluster = self.cluster.clone();
        for released in flag.0.iter().filter(|released| released.reaches(&cluster, scope)) {
            if acquires {
                self.learn(&[thread], released);
            } else {
                let observed = &mut self.threads[thread].observed;
                match observed.iter_mut().find(|held| held.scope == released.scope && held.cta == released.cta) {
                    Some(held) => {
                        held.known = held.known.join(&released.known);
                        held.visible = held.visible.join(&released.visible);
                    }
                    None => observed.push(released.clone()),
                }
            }
        }
    }
}

/// What arrivals of threads of one CTA bring of it: the counts of its threads, and those of their copies, if there are any.
fn counts<'a>(contributions: impl Iterator<Item = &'a Contribution> + Clone) -> (Vec<u32>, Option<Vec<u32>>) {
    let mut joined: Vec<u32> = Vec::new();
    let mut last: Option<&Arc<Vec<u32>>> = None;
    for item in contributions.clone() {
        if last.is_none_or(|last| !Arc::ptr_eq(&item.base, last)) {
            joined.resize(joined.len().max(item.base.len()), 0);
            joined.iter_mut().zip(item.base.iter()).for_each(|(slot, known)| *slot = *known.max(slot));
            last = Some(&item.base);
        }
    }
    for item in contributions.clone() {
        let slot = &mut joined[item.thread as usize];
        *slot = (*slot).max(item.own);
    }
    let mut copies = vec![0; joined.len()];
    contributions.for_each(|item| copies[item.thread as usize] = item.copies);
    (joined, copies.iter().any(|count| *count > 0).then_some(copies))
}
