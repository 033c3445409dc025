//! What the copy engine does not see yet.
//!
//! It sees what threads have written to a memory once they have executed a fence between generic and asynchronous accesses
//! (PTX ISA, "Proxies"), and a barrier has put the copy after the fence.

use std::collections::BTreeMap;

use tilewright_ir::Handle;
use tilewright_ir::plan::Barrier;
use tilewright_ir::thread::{Inst, Memory, MemorySpace, Program, Stmt, for_each_stmt};
use tilewright_ir::tile::Role;

use super::groups::{Threads, Used};
use crate::sync::{OpBlock, name_in};

/// The shared memories that threads have written, and the tensors that they have read or written, since the last fence.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Unseen(BTreeMap<Handle<Memory>, Accessed>);

/// The accesses to a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Accessed {
    /// The threads of the accesses.
    by: Threads,
    /// The role whose copies see them: a fence and a barrier of the role do not put copies of other roles after them.
    seen_in: Option<Handle<Role>>,
}

impl Accessed {
    /// Whether a copy of an op sees them.
    fn is_seen_by(&self, op: &OpBlock) -> bool {
        self.seen_in.is_some() && self.seen_in == op.role
    }
}

impl Unseen {
    /// Adds the accesses of an op.
    pub(super) fn add(&mut self, program: &Program, op: &OpBlock) {
        let used = Used::of(program, &op.body);
        for memory in used.all() {
            let counts = match program.memories[memory].space {
                MemorySpace::Global { read_only, .. } => !read_only,
                // Who fills a stage of a ring executes the fence itself.
                _ if program.ring_of(memory).is_some() => false,
                MemorySpace::Shared | MemorySpace::SharedView { .. } | MemorySpace::SharedInside { .. } => {
                    used.writes.contains(&memory)
                }
                MemorySpace::Table => false,
            };
            if counts {
                self.insert(memory, Accessed { by: Threads::of(op), seen_in: None });
            }
        }
    }

    fn insert(&mut self, memory: Handle<Memory>, more: Accessed) {
        let both = |known: &mut Accessed| {
            let seen_in = known.seen_in.filter(|role| more.seen_in == Some(*role));
            *known = Accessed { by: known.by.or(more.by), seen_in };
        };
        self.0.entry(memory).and_modify(both).or_insert(more);
    }

    /// What is not seen where another path meets this one.
    pub(super) fn meet(&mut self, other: Unseen) {
        other.0.into_iter().for_each(|(memory, accessed)| self.insert(memory, accessed));
    }

    /// The fence that a copy to a tensor needs before it.
    pub(super) fn fence(&self, program: &Program, op: &OpBlock, used: &Used) -> Option<Fence> {
        let is_unseen = |memory: &Handle<Memory>| self.0.get(memory).is_some_and(|accessed| !accessed.is_seen_by(op));
        let unseen: Vec<Handle<Memory>> = used.all().filter(is_unseen).collect();
        if unseen.is_empty() {
            return None;
        }
        let is_own = |role: &Handle<Role>| unseen.iter().all(|memory| self.0[memory].by == Threads::Of(*role));
        let role = op.role.filter(is_own);
        let of_all_memory = unseen.iter().any(|memory| program.memories[*memory].is_global());
        Some(Fence { role, of_all_memory, unseen })
    }

    /// A fence is passed: copies, those of the role if the fence is one of a role, see everything that its threads have done,
    /// except what copies that are in flight still do to memories.
    pub(super) fn pass(&mut self, program: &Program, fence: &Fence, in_flight: &[Handle<Memory>]) {
        let is_fenced = |memory: &Handle<Memory>| {
            !in_flight.contains(memory) && (fence.of_all_memory || !program.memories[*memory].is_global())
        };
        match fence.role {
            None => self.0.retain(|memory, _| !is_fenced(memory)),
            Some(role) => {
                let of_role = |accessed: &Accessed| accessed.by == Threads::Of(role);
                let seen = self.0.iter_mut().filter(|(memory, accessed)| is_fenced(memory) && of_role(accessed));
                seen.for_each(|(_, accessed)| accessed.seen_in = Some(role));
            }
        }
    }
}

/// A fence after which the copy engine sees what threads have written, with its barrier.
pub(super) struct Fence {
    /// The role whose threads execute it; `None` for all threads.
    pub(super) role: Option<Handle<Role>>,
    /// Whether it is about tensors too.
    of_all_memory: bool,
    /// What the copy would not see.
    unseen: Vec<Handle<Memory>>,
}

impl Fence {
    pub(super) fn inst(&self) -> Inst {
        if self.of_all_memory { Inst::ProxyFence } else { Inst::ProxyFenceShared }
    }

    /// The fence, and the barrier after it, in the plan of the copy.
    pub(super) fn told(&self, program: &Program, op: &OpBlock, sync: &str) -> Barrier {
        let names: Vec<String> = self.unseen.iter().map(|memory| name_in(program, &op.body, *memory)).collect();
        let is_copy = |stmt: &Stmt| matches!(stmt, Stmt::TensorCopy(_));
        let mut copies = false;
        for_each_stmt(&op.body, &mut |stmt| copies |= is_copy(stmt));
        let who = if copies { "the copy engine has" } else { "the products have" };
        let reason = format!("{who} to see what threads did to {}", names.join(" and "));
        Barrier { what: format!("{}, {sync}", self.inst().info().name), reason }
    }
}
