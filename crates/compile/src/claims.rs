//! What the user claims of stores, and the lines of CUDA that do them: what a run can hold them to, or has to allow.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Program, Stmt};
use tilewright_ir::tile::{Buffer, Claim, Coord, Element, Kernel};
use tilewright_layout::axis::Scope;

use crate::artifact::Artifact;

impl Artifact {
    /// The lines of the CUDA text that do a store of a parallel loop which the kernel calls unique, each with a number. Where
    /// one thread writes a place twice by lines of one number, without a barrier between, two iterations of the loop store
    /// to one element.
    ///
    /// Stores that cannot be judged so have no number: those in a loop inside of an iteration, which may store to its
    /// element again, and those to a buffer that the loop writes in other ways too.
    pub fn unique_stores(&self) -> BTreeMap<u32, u32> {
        let (kernel, ordered) = (self.kernel(), ordered_ops(self.program()));
        let mut numbers: BTreeMap<(usize, Handle<Buffer>), u32> = BTreeMap::new();
        let mut found = BTreeMap::new();
        for store in self.source_map().stores().filter(|store| ordered.contains(&store.op)) {
            let mut buffers = kernel.buffers.iter();
            let Some((buffer, _)) = buffers.find(|(_, buffer)| buffer.name == store.memory) else { continue };
            let storage = kernel.storage(buffer);
            if is_called_unique(kernel, store.origin.span, storage) {
                let next = numbers.len() as u32;
                found.insert(store.line, *numbers.entry((store.op, storage)).or_insert(next));
            }
        }
        found
    }

    /// The lines of the CUDA text that do a store of a parallel loop of which the kernel says that any of the values may
    /// stay.
    pub fn any_wins_stores(&self) -> BTreeSet<u32> {
        let kernel = self.kernel();
        let is_meant = |memory: &str, span: Span| {
            let mut buffers = kernel.buffers.iter();
            let buffer = buffers.find(|(_, buffer)| buffer.name == memory);
            buffer.is_some_and(|(buffer, _)| any_wins(kernel, span, kernel.storage(buffer)))
        };
        let stores = self.source_map().stores().filter(|store| is_meant(store.memory, store.origin.span));
        stores.map(|store| store.line).collect()
    }
}

/// Whether the parallel loops that were written here write the storage, and any of the values may stay of every write.
fn any_wins(kernel: &Kernel, span: Span, storage: Handle<Buffer>) -> bool {
    let mut writes = Vec::new();
    for (_, parallel) in kernel.parallels.iter().filter(|(_, parallel)| parallel.span == span) {
        parallel.body.iter().for_each(|element| collect_claims(kernel, element, storage, &mut writes));
    }
    !writes.is_empty() && writes.iter().all(|claim| *claim == Claim::AnyWins)
}

fn collect_claims(kernel: &Kernel, element: &Element, storage: Handle<Buffer>, found: &mut Vec<Claim>) {
    match element {
        Element::Store { to, claim, .. } if kernel.storage(to.buffer) == storage => found.push(*claim),
        Element::AtomicAdd { to, .. } if kernel.storage(to.buffer) == storage => found.push(Claim::None),
        Element::Let { .. }
        | Element::Store { .. }
        | Element::AtomicAdd { .. }
        | Element::If { .. }
        | Element::For { .. } => {}
    }
    element.inner().for_each(|inner| collect_claims(kernel, inner, storage, found));
}

/// The ops that a thread does once, or with a barrier between any two times, by the numbers of their notes.
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

/// Whether all threads that come here pass a barrier.
fn has_barrier(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Op { body, .. } if body.iter().any(|inner| inner.orders() > Scope::Thread))
}

/// Whether every parallel loop that was written here writes the storage by one store alone, which is called unique.
fn is_called_unique(kernel: &Kernel, span: Span, storage: Handle<Buffer>) -> bool {
    let mut loops = kernel.parallels.iter().filter(|(_, parallel)| parallel.span == span).peekable();
    let is_meant = |body: &[Element]| {
        let mut writes = Vec::new();
        collect_writes(kernel, body, storage, false, &mut writes);
        writes == [true]
    };
    loops.peek().is_some() && loops.all(|(_, parallel)| is_meant(&parallel.body))
}

/// For every write of the storage, whether it is called unique and done once in an iteration, at most.
fn collect_writes(
    kernel: &Kernel,
    body: &[Element],
    storage: Handle<Buffer>,
    is_repeated: bool,
    found: &mut Vec<bool>,
) {
    for element in body {
        match element {
            Element::Store { to, claim, .. } if kernel.storage(to.buffer) == storage => {
                let is_data = to.index.iter().any(|coord| matches!(coord, Coord::Data(_)));
                found.push(*claim == Claim::Unique && is_data && !is_repeated);
            }
            Element::AtomicAdd { to, .. } if kernel.storage(to.buffer) == storage => found.push(false),
            Element::Let { .. } | Element::Store { .. } | Element::AtomicAdd { .. } => {}
            Element::If { then, otherwise, .. } => {
                collect_writes(kernel, then, storage, is_repeated, found);
                collect_writes(kernel, otherwise, storage, is_repeated, found);
            }
            Element::For { body, .. } => collect_writes(kernel, body, storage, true, found),
        }
    }
}
