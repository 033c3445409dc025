//! Launches that begin before the one before has ended (CUDA programming guide, "Programmatic Dependent Launch").
//!
//! A kernel lets the next launch begin at once, and waits for the one before where it first touches what that one may have written, or
//! may still read: each role for itself, so that barriers, tensor maps and tensor memory are ready, and inputs that do not change are
//! on their way, when the launch before ends.

use std::collections::BTreeSet;

use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Inst, Memory, MemorySpace, Program, Resource, Stmt, for_each_stmt};
use tilewright_ir::tile::Role;

use super::derived::{plan, titled};

/// Allocations of tensor memory.
const ALLOCATIONS: [Inst; 2] = [Inst::TensorAlloc, Inst::TensorAllocPair];
/// Barriers of all threads.
const BARRIERS: [Inst; 2] = [Inst::SyncThreads, Inst::SyncCluster];
/// What the waits are called in plans.
const GRIDDEPCONTROL: &str = "griddepcontrol";

/// Lets a program overlap the launch before. `unchanged` are the tensors that it need not wait for.
pub(super) fn overlap_previous(program: &mut Program, unchanged: &BTreeSet<Handle<Memory>>, span: Span) {
    let is_awaited = |memory: Handle<Memory>| !unchanged.contains(&memory);
    let awaited: Vec<Handle<Memory>> = program
        .memories
        .iter()
        .filter(|(handle, memory)| memory.is_global() && is_awaited(*handle))
        .map(|(handle, _)| handle)
        .collect();
    for memory in &awaited {
        // The launch before may write it while this one runs: compilers must not read it ahead, nor by the read-only path.
        if let MemorySpace::Global { may_alias, .. } = &mut program.memories[*memory].space {
            *may_alias = true;
        }
    }
    let mut waits = Waits { awaited: awaited.into_iter().collect(), waited: BTreeSet::new(), places: Vec::new() };
    let body = std::mem::take(&mut program.body);
    let place = (span, program.plans.len());
    let body = waits.before_first_use(program, body, (None, place));
    let begin = titled(program, "launch_dependents".to_string(), place, Call::plain(Inst::LaunchDependents));
    program.body = body;
    program.body.insert(behind_allocation(&program.body), begin);
    let summary = match &waits.places[..] {
        [] => "nothing waits for the launch before".to_string(),
        places => format!("the launch before is awaited by {}", places.join(", ")),
    };
    program.plans.push(plan("overlap_previous", span, GRIDDEPCONTROL, summary));
}

/// Where the next launch may begin: at once, or behind the first barrier of all threads after tensor memory is allocated. Otherwise
/// the next launch could hold the columns that this one waits for, and wait for the end of this one.
fn behind_allocation(body: &[Stmt]) -> usize {
    let has = |stmt: &Stmt, insts: &[Inst]| {
        let mut found = false;
        for_each_stmt(std::slice::from_ref(stmt), &mut |stmt| {
            found |= matches!(stmt, Stmt::Inst(call) if insts.contains(&call.inst));
        });
        found
    };
    let Some(allocation) = body.iter().rposition(|stmt| has(stmt, &ALLOCATIONS)) else { return 0 };
    let barrier = body[allocation..].iter().position(|stmt| has(stmt, &BARRIERS));
    barrier.map_or(body.len(), |barrier| allocation + barrier + 1)
}

/// Where waits are put.
struct Waits {
    /// What is waited for before it is touched.
    awaited: BTreeSet<Handle<Memory>>,
    /// The roles that have waited; `None` stands for all threads.
    waited: BTreeSet<Option<Handle<Role>>>,
    /// Who waits, in words.
    places: Vec<String>,
}

impl Waits {
    /// The statements, with a wait before the first one that touches what is awaited: outside of loops and conditions, so that it
    /// happens once.
    fn before_first_use(
        &mut self,
        program: &mut Program,
        body: Vec<Stmt>,
        (role, place): (Option<Handle<Role>>, (Span, usize)),
    ) -> Vec<Stmt> {
        let mut all = Vec::with_capacity(body.len() + 1);
        for stmt in body {
            let has_waited = self.waited.contains(&None) || self.waited.contains(&role);
            match stmt {
                Stmt::Role { role: of, body } if role.is_none() => {
                    let body = self.before_first_use(program, body, (Some(of), place));
                    all.push(Stmt::Role { role: of, body });
                }
                other => {
                    if !has_waited && self.touches(program, &other) {
                        let by =
                            role.map_or("all threads".to_string(), |role| format!("role {}", program.roles[role].name));
                        let title = format!("{by}: wait for the launch before");
                        all.push(titled(program, title, place, Call::plain(Inst::WaitForPreviousLaunch)));
                        self.waited.insert(role);
                        self.places.push(by);
                    }
                    all.push(other);
                }
            }
        }
        all
    }

    fn touches(&self, program: &Program, stmt: &Stmt) -> bool {
        let mut touches = false;
        for_each_stmt(std::slice::from_ref(stmt), &mut |stmt| {
            stmt.for_each_resource(&mut |_, resource| {
                if let Resource::Memory(access) = resource {
                    touches |= self.awaited.contains(&program.owner(access.memory));
                }
            });
            if let Stmt::TensorCopy(copy) = stmt {
                touches |= self.awaited.contains(&copy.part.tensor(&program.maps));
            }
        });
        touches
    }
}
