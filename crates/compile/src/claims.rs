//! The user's claims about stores (`unique`, `any_wins`) and the lines of CUDA that perform them, so that a run can
//! check or allow them.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Program, Stmt};
use tilewright_ir::tile::{Buffer, Claim, Coord, ElementStmt, Kernel};
use tilewright_layout::axis::Scope;

use crate::artifact::Artifact;

impl Artifact {
    /// The lines of the CUDA text that perform a store declared unique in a parallel loop, each with a number. If one
    /// thread writes a location twice through lines with the same number, without a barrier in between, two iterations
    /// of the loop store to the same element.
    ///
    /// Stores that cannot be checked this way have no number: those in a loop inside an iteration, which may store to
    /// the same element again, and those to a buffer that the parallel loop also writes in other ways.
    pub fn unique_stores(&self) -> BTreeMap<u32, u32> {
        let (kernel, ordered) = (self.kernel(), ordered_ops(self.program()));
        let mut numbers: BTreeMap<(usize, Handle<Buffer>), u32> = BTreeMap::new();
        let mut found = BTreeMap::new();
        for store in self.source_map().stores().filter(|store| ordered.contains(&store.op)) {
            let Some(storage) = storage_named(kernel, store.memory) else { continue };
            if is_declared_unique(kernel, store.origin.span, storage) {
                let next = numbers.len() as u32;
                found.insert(store.line, *numbers.entry((store.op, storage)).or_insert(next));
            }
        }
        found
    }

    /// The lines of the CUDA text that perform a store of a parallel loop for which the kernel declares that any of the
    /// values may remain.
    pub fn any_wins_stores(&self) -> BTreeSet<u32> {
        let kernel = self.kernel();
        let stores = self.source_map().stores().filter(|store| {
            storage_named(kernel, store.memory)
                .is_some_and(|storage| is_declared_any_wins(kernel, store.origin.span, storage))
        });
        stores.map(|store| store.line).collect()
    }
}

/// The storage of the buffer with this name.
fn storage_named(kernel: &Kernel, name: &str) -> Option<Handle<Buffer>> {
    let (buffer, _) = kernel.buffers.iter().find(|(_, buffer)| buffer.name == name)?;
    Some(kernel.storage(buffer))
}

/// A write in an iteration of a parallel loop.
#[derive(Clone, Copy)]
struct Write {
    /// What the kernel claims about it; `Claim::None` for an atomic addition.
    claim: Claim,
    /// Whether its index depends on data.
    is_indexed_by_data: bool,
    /// Whether it is in a loop inside the iteration.
    is_repeated: bool,
}

/// The writes to the storage by each parallel loop with this span.
fn writes(kernel: &Kernel, span: Span, storage: Handle<Buffer>) -> Vec<Vec<Write>> {
    let loops = kernel.parallels.iter().filter(|(_, parallel)| parallel.span == span);
    let of_loop = |body: &[ElementStmt]| {
        let mut found = Vec::new();
        body.iter().for_each(|element| collect_writes((kernel, storage), element, false, &mut found));
        found
    };
    loops.map(|(_, parallel)| of_loop(&parallel.body)).collect()
}

fn collect_writes(
    (kernel, storage): (&Kernel, Handle<Buffer>),
    element: &ElementStmt,
    is_repeated: bool,
    found: &mut Vec<Write>,
) {
    let (to, claim) = match element {
        ElementStmt::Store { to, claim, .. } => (Some(to), *claim),
        ElementStmt::Atomic(atomic) => (Some(&atomic.to), Claim::None),
        ElementStmt::Let { .. } | ElementStmt::If { .. } | ElementStmt::For { .. } => (None, Claim::None),
    };
    if let Some(to) = to.filter(|to| kernel.storage(to.buffer) == storage) {
        let is_indexed_by_data = to.index.iter().any(|coord| matches!(coord, Coord::Data(_)));
        found.push(Write { claim, is_indexed_by_data, is_repeated });
    }
    let is_repeated = is_repeated || matches!(element, ElementStmt::For { .. });
    element.inner().for_each(|inner| collect_writes((kernel, storage), inner, is_repeated, found));
}

/// Whether the parallel loops with this span write to the storage, and each of these writes is declared `any_wins`.
fn is_declared_any_wins(kernel: &Kernel, span: Span, storage: Handle<Buffer>) -> bool {
    let writes = writes(kernel, span, storage).concat();
    !writes.is_empty() && writes.iter().all(|write| write.claim == Claim::AnyWins)
}

/// Whether every parallel loop with this span writes to the storage with exactly one store, which is declared unique,
/// indexed by data, and executed at most once per iteration.
fn is_declared_unique(kernel: &Kernel, span: Span, storage: Handle<Buffer>) -> bool {
    let is_meant = |writes: &Vec<Write>| match &writes[..] {
        [write] => write.claim == Claim::Unique && write.is_indexed_by_data && !write.is_repeated,
        _ => false,
    };
    let loops = writes(kernel, span, storage);
    !loops.is_empty() && loops.iter().all(is_meant)
}

/// The ops that a thread executes once, or with a barrier between any two executions, by the indices of their notes.
fn ordered_ops(program: &Program) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    collect(&program.body, true, &mut found);
    found
}

fn collect(body: &[Stmt], is_ordered: bool, found: &mut BTreeSet<usize>) {
    for stmt in body {
        if let Stmt::Op { note, .. } = stmt
            && is_ordered
        {
            found.insert(note.index());
        }
        let is_repeated = matches!(stmt, Stmt::For { .. }) && !stmt.inner().iter().any(has_barrier);
        collect(stmt.inner(), is_ordered && !is_repeated, found);
    }
}

/// Whether all threads that reach the statement pass a barrier.
fn has_barrier(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Op { body, .. } if body.iter().any(|inner| inner.orders() > Scope::Thread))
}
