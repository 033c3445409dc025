//! Copies of tiles to shared memory by the copy engine that may be in flight.
//!
//! The bytes of copies to a tile count at a barrier of the tile (PTX ISA, "mbarrier"): what threads wait for is its latest phase. To
//! wait for it again does no harm, so paths on which a copy has started and others need no distinction.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::Handle;
use tilewright_ir::thread::{Memory, Program};
use tilewright_ir::tile::Role;

use super::groups::Used;
use crate::sync::OpBlock;

/// The copies that may be in flight, by their barriers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Arriving(BTreeMap<Handle<Memory>, Arrival>);

/// A copy that may be in flight, or one of several on different paths.
#[derive(Clone, Debug, PartialEq)]
struct Arrival {
    plan: usize,
    /// The role that starts it, and whose threads know its phase; `None` for all threads.
    by: Option<Handle<Role>>,
    fills: BTreeSet<Handle<Memory>>,
    reads: BTreeSet<Handle<Memory>>,
    /// Roles that have waited for it, while other threads have not.
    arrived_for: BTreeSet<Handle<Role>>,
}

/// A copy that has to have arrived before an op.
#[derive(Clone, Debug)]
pub(super) struct Awaited {
    /// Its barrier, and its plan.
    pub(super) full: Handle<Memory>,
    pub(super) plan: usize,
    /// What it fills or reads, for which the op needs it.
    pub(super) memory: Handle<Memory>,
    /// The role whose threads wait; `None` for all threads.
    pub(super) role: Option<Handle<Role>>,
    /// Whether a barrier of the CTA follows: the threads that need the copy are not those that know its phase.
    pub(super) for_others: bool,
}

impl Arriving {
    /// An op starts its copy, which counts at a barrier. If only the role has waited for the one before, others still have to be
    /// ordered after what that has read: a wait for the new one is a wait for both.
    pub(super) fn start(&mut self, program: &Program, op: &OpBlock, full: Handle<Memory>) {
        let Used { reads, writes } = Used::of(program, &op.body);
        let is_shared = |memory: &Handle<Memory>| program.memories[*memory].is_shared();
        // Threads use the barrier itself without waiting for its phase.
        let fills = writes.into_iter().filter(|memory| is_shared(memory) && *memory != full).collect();
        let mut reads: BTreeSet<_> = reads.into_iter().filter(|memory| !is_shared(memory)).collect();
        reads.extend(self.0.remove(&full).into_iter().flat_map(|before| before.reads));
        self.0.insert(full, Arrival { plan: op.op, by: op.role, fills, reads, arrived_for: BTreeSet::new() });
    }

    /// The copies that an op needs: it uses what they fill, or writes what they read.
    pub(super) fn needed(&self, op: &OpBlock, used: &Used) -> Vec<Awaited> {
        let awaited = |(full, arrival): (&Handle<Memory>, &Arrival)| {
            let has_waited = op.role.is_some_and(|role| arrival.arrived_for.contains(&role));
            let filled = used.all().find(|memory| arrival.fills.contains(memory));
            let memory =
                filled.or_else(|| used.writes.iter().copied().find(|memory| arrival.reads.contains(memory)))?;
            let for_others = arrival.by.is_some() && arrival.by != op.role;
            let role = if for_others { arrival.by } else { op.role };
            (!has_waited).then_some(Awaited { full: *full, plan: arrival.plan, memory, role, for_others })
        };
        self.0.iter().filter_map(awaited).collect()
    }

    /// A copy has arrived for the threads that have waited for it, or for all.
    pub(super) fn wait(&mut self, awaited: &Awaited) {
        match awaited.role.filter(|_| !awaited.for_others) {
            None => _ = self.0.remove(&awaited.full),
            Some(role) => {
                let arrival = self.0.get_mut(&awaited.full);
                arrival.into_iter().for_each(|arrival| _ = arrival.arrived_for.insert(role));
            }
        }
    }

    /// What may be in flight where another path meets this one.
    pub(super) fn meet(&mut self, other: Arriving) {
        for (full, arrival) in other.0 {
            match self.0.get_mut(&full) {
                Some(known) => {
                    known.plan = known.plan.max(arrival.plan);
                    known.fills.extend(arrival.fills);
                    known.reads.extend(arrival.reads);
                    known.arrived_for.retain(|role| arrival.arrived_for.contains(role));
                }
                None => _ = self.0.insert(full, arrival),
            }
        }
    }

    /// The copies for which no thread has waited: the barrier, the plan, and the role that started it.
    pub(super) fn left(&self) -> impl Iterator<Item = (Handle<Memory>, usize, Option<Handle<Role>>)> {
        let left = self.0.iter().filter(|(_, arrival)| arrival.arrived_for.is_empty());
        left.map(|(full, arrival)| (*full, arrival.plan, arrival.by))
    }
}
