//! Groups of copies that may be pending, and what they read and fill.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::Handle;
use tilewright_ir::thread::{Memory, Program, Stmt, for_each_stmt};
use tilewright_ir::tile::{MemoryOrder, Role};

use crate::sync::OpBlock;

/// The most groups of the same threads that are distinguished; earlier ones count as the last of these.
pub(super) const MOST_GROUPS: usize = 8;
/// The most groups where paths meet, of whatever threads; earlier ones count as the last of these.
const MOST_WHERE_PATHS_MEET: usize = 4 * MOST_GROUPS;

/// The memories that statements read and write.
#[derive(Default)]
pub(super) struct Used {
    pub(super) reads: BTreeSet<Handle<Memory>>,
    pub(super) writes: BTreeSet<Handle<Memory>>,
}

impl Used {
    pub(super) fn of(program: &Program, body: &[Stmt]) -> Used {
        let mut used = Used::default();
        for_each_stmt(body, &mut |stmt| {
            for access in stmt.accesses() {
                let memory = program.owner(access.memory);
                used.reads.extend(access.effect.reads().then_some(memory));
                used.writes.extend(access.effect.writes().then_some(memory));
            }
            // What is released has arrived, and what comes after an acquisition starts after it.
            if stmt.memory_order() != MemoryOrder::Relaxed {
                used.reads.extend(program.written_tensors());
                used.writes.extend(program.written_tensors());
            }
            if let Stmt::TensorCopy(copy) = stmt {
                let tensor = program.owner(copy.part.tensor(&program.maps));
                if copy.full().is_some() { &mut used.reads } else { &mut used.writes }.insert(tensor);
            }
        });
        used
    }

    /// What they read or write.
    pub(super) fn all(&self) -> impl Iterator<Item = Handle<Memory>> {
        self.reads.union(&self.writes).copied()
    }
}

/// The threads that commit a group, or wait for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Threads {
    /// All threads of the CTA.
    #[default]
    All,
    /// The warps of a role.
    Of(Handle<Role>),
    /// One thread of a role, or of the CTA.
    One(Option<Handle<Role>>),
    /// One or another of these, on different paths.
    Some,
}

impl Threads {
    pub(super) fn of(op: &OpBlock) -> Threads {
        op.role.map_or(Threads::All, Threads::Of)
    }

    /// The thread that starts the copies of an op by the copy engine.
    pub(super) fn of_one(op: &OpBlock) -> Threads {
        Threads::One(op.role)
    }

    /// These, or others on another path.
    pub(super) fn or(self, others: Threads) -> Threads {
        if self == others { self } else { Threads::Some }
    }

    /// Whether each thread that commits a group of `others` also commits one of these.
    fn include(self, others: Threads) -> bool {
        match self {
            Threads::All => true,
            Threads::Of(_) | Threads::One(_) => self == others,
            Threads::Some => false,
        }
    }
}

/// Memories, with the plans of the copies for which each counts.
pub(super) type OfPlans = BTreeMap<Handle<Memory>, BTreeSet<usize>>;

/// What copies of a group may still read and fill.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Group {
    pub(super) by: Threads,
    pub(super) reads: OfPlans,
    pub(super) fills: OfPlans,
    /// Threads, fewer than all, that have waited until it has arrived, and until it has read.
    arrived_for: BTreeSet<Threads>,
    read_for: BTreeSet<Threads>,
}

/// A memory for which something has to come after a group, and the plan of the copy.
type Met = (Handle<Memory>, usize);

impl Group {
    /// The group of a copy, committed by these threads.
    pub(super) fn of(program: &Program, op: &OpBlock, by: Threads) -> Group {
        let Used { reads, writes } = Used::of(program, &op.body);
        let of_plan =
            |memories: BTreeSet<_>| memories.into_iter().map(|memory| (memory, BTreeSet::from([op.op]))).collect();
        Group { reads: of_plan(reads), fills: of_plan(writes), ..Group::without_memory(by) }
    }

    /// A group of which the memory is not followed, committed by these threads.
    pub(super) fn without_memory(by: Threads) -> Group {
        Group { by, ..Group::default() }
    }

    fn join(&mut self, other: Group) {
        self.by = self.by.or(other.by);
        for (own, others) in [(&mut self.reads, other.reads), (&mut self.fills, other.fills)] {
            others.into_iter().for_each(|(memory, plans)| own.entry(memory).or_default().extend(plans));
        }
        self.arrived_for.retain(|threads| other.arrived_for.contains(threads));
        self.read_for.retain(|threads| other.read_for.contains(threads));
    }

    /// Why what threads use has to come after the group: they use what the group fills, or write what it reads. A wait of any of
    /// `by` is one of these threads.
    pub(super) fn met(&self, used: &Used, by: &[Threads]) -> Option<Met> {
        self.met_filled(used, by, |_| false).or_else(|| self.met_read(used, by))
    }

    /// What the group fills is used. Copies of plans for which `is_apart` holds fill something else.
    pub(super) fn met_filled(&self, used: &Used, by: &[Threads], is_apart: impl Fn(usize) -> bool) -> Option<Met> {
        if by.iter().any(|threads| self.arrived_for.contains(threads)) {
            return None;
        }
        used.all().find_map(|memory| {
            let plan = self.fills.get(&memory)?.iter().find(|plan| !is_apart(**plan))?;
            Some((memory, *plan))
        })
    }

    /// What the group reads is written.
    pub(super) fn met_read(&self, used: &Used, by: &[Threads]) -> Option<Met> {
        if by.iter().any(|threads| self.arrived_for.contains(threads) || self.read_for.contains(threads)) {
            return None;
        }
        used.writes.iter().find_map(|memory| Some((*memory, *self.reads.get(memory)?.first()?)))
    }
}

/// The groups that may be pending, the latest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pending(Vec<Group>);

impl Pending {
    pub(super) fn commit(&mut self, group: Group) {
        let by = group.by;
        self.0.insert(0, group);
        let own: Vec<usize> = (0..self.0.len()).filter(|at| self.0[*at].by == by).collect();
        if let [.., last, beyond] = own[..]
            && own.len() > MOST_GROUPS
        {
            let earliest = self.0.remove(beyond);
            self.0[last].join(earliest);
        }
    }

    /// All but the latest `pending` groups of each of these threads have arrived.
    pub(super) fn wait(&mut self, threads: Threads, pending: usize) {
        let has_arrived = |at: usize| threads.include(self.0[at].by) && self.later_than(at) >= pending;
        let left = (0..self.0.len()).filter(|at| !has_arrived(*at)).map(|at| self.0[at].clone()).collect();
        self.0 = left;
    }

    /// All but the latest `pending` groups of each thread have read what they copy.
    pub(super) fn finish_reading(&mut self, pending: usize) {
        for at in 0..self.0.len() {
            if self.later_than(at) >= pending {
                self.0[at].reads.clear();
            }
        }
    }

    /// All but the latest `pending` groups that some of these threads commit have arrived for them, or only read; for other threads
    /// they may be pending.
    pub(super) fn wait_of(&mut self, threads: &[Threads], pending: usize, only_read: bool) {
        for at in 0..self.0.len() {
            if threads.contains(&self.0[at].by) && self.later_than(at) >= pending {
                let group = &mut self.0[at];
                if only_read { &mut group.read_for } else { &mut group.arrived_for }.extend(threads);
            }
        }
    }

    /// How many groups a thread has that are later than one of its groups, at least.
    fn later_than(&self, at: usize) -> usize {
        self.0[..at].iter().filter(|group| group.by.include(self.0[at].by)).count()
    }

    /// What may be pending where another path meets this one. Groups of single threads are in no order with those of others, so
    /// those of each are joined by themselves.
    pub(super) fn meet(&mut self, other: Pending) {
        let is_of_one = |group: &Group| matches!(group.by, Threads::One(_));
        if self.0.iter().chain(&other.0).all(is_of_one) {
            return self.meet_each(other);
        }
        let mut others = other.0.into_iter();
        self.0.iter_mut().zip(&mut others).for_each(|(group, other)| group.join(other));
        self.0.extend(others);
        let earlier = self.0.split_off(MOST_WHERE_PATHS_MEET.min(self.0.len()));
        if let Some(last) = self.0.last_mut() {
            earlier.into_iter().for_each(|group| last.join(group));
        }
    }

    fn meet_each(&mut self, other: Pending) {
        for (at, group) in other.0.iter().enumerate() {
            let later = other.0[..at].iter().filter(|known| known.by == group.by).count();
            match self.0.iter_mut().filter(|known| known.by == group.by).nth(later) {
                Some(known) => known.join(group.clone()),
                None => self.0.push(group.clone()),
            }
        }
    }

    /// What something has to wait for: all groups that `met` gives something for.
    pub(super) fn needed(&self, met: impl Fn(&Group) -> Option<Met>) -> Option<Needed> {
        let all = self.0.iter().enumerate().filter_map(|(at, group)| {
            let (memory, plan) = met(group)?;
            Some(Needed { by: group.by, later: self.later_than(at), memory, plan })
        });
        // With threads that have fewer later groups, fewer may be pending.
        all.reduce(|known, other| {
            let by = known.by.or(other.by);
            let strictest = if other.later < known.later { other } else { known };
            Needed { by, ..strictest }
        })
    }

    /// The memories that groups may still fill or read.
    pub(super) fn used(&self) -> impl Iterator<Item = Handle<Memory>> {
        self.0.iter().flat_map(|group| group.fills.keys().chain(group.reads.keys()).copied())
    }

    /// The plan of the latest copy that may still fill memory.
    pub(super) fn last_fill(&self) -> Option<usize> {
        self.0.iter().find_map(|group| group.fills.values().flatten().next().copied())
    }

    /// The plan of the latest copy that may still read memory.
    pub(super) fn last_read(&self) -> Option<usize> {
        self.0.iter().find_map(|group| group.reads.values().flatten().next().copied())
    }
}

/// Groups that have to have arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Needed {
    /// The threads that have committed them.
    pub(super) by: Threads,
    /// How many groups are later, and may be pending.
    pub(super) later: usize,
    /// What a copy of them fills or reads, and its plan.
    pub(super) memory: Handle<Memory>,
    pub(super) plan: usize,
}

#[cfg(test)]
mod tests;
