//! Parameters through which threads may pass values to each other. They are not `__restrict__`: NVRTC takes a barrier
//! for a call that does not touch what such a parameter points to, and forwards a thread's own earlier value across it.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::Handle;
use tilewright_ir::thread::{Memory, Note, Program, Stmt};

/// How a program accesses a memory.
#[derive(Default)]
struct Uses {
    is_read: bool,
    /// The ops that write to it.
    writers: BTreeSet<Option<Handle<Note>>>,
}

/// The memories that a program writes, and also reads or writes again in another op.
pub(crate) fn exchanged_memories(program: &Program) -> BTreeSet<Handle<Memory>> {
    let mut uses: BTreeMap<Handle<Memory>, Uses> = BTreeMap::new();
    add_uses(&program.body, None, &mut uses);
    let is_exchanged = |uses: &Uses| uses.writers.len() > 1 || uses.is_read && !uses.writers.is_empty();
    uses.into_iter().filter(|(_, uses)| is_exchanged(uses)).map(|(memory, _)| memory).collect()
}

fn add_uses(body: &[Stmt], op: Option<Handle<Note>>, uses: &mut BTreeMap<Handle<Memory>, Uses>) {
    for stmt in body {
        for access in stmt.accesses() {
            let uses = uses.entry(access.memory).or_default();
            uses.is_read |= access.effect.reads();
            if access.effect.writes() {
                uses.writers.insert(op);
            }
        }
        let op = match stmt {
            Stmt::Op { note, .. } => Some(*note),
            _ => op,
        };
        add_uses(stmt.inner(), op, uses);
    }
}
