//! The buffers that a kernel accesses.

use std::collections::BTreeSet;

use crate::arena::Handle;
use crate::tile::buffer::Buffer;
use crate::tile::element::ElementStmt;
use crate::tile::kernel::{Kernel, Stmt};
use crate::tile::op::Op;

impl Kernel {
    /// The buffers that statements access. A view counts as itself, not as the buffer it is a view of.
    pub fn touched(&self) -> BTreeSet<Handle<Buffer>> {
        let mut found = BTreeSet::new();
        self.for_each_use(&mut |buffer, _, _| {
            found.insert(buffer);
        });
        found
    }

    /// Calls `visit` on every buffer that a statement accesses, with whether it is written, and with the op if it is one.
    pub(super) fn for_each_use<'a>(&'a self, visit: &mut dyn FnMut(Handle<Buffer>, bool, Option<&'a Op>)) {
        self.for_each_use_in(&self.body, visit);
    }

    /// The same, in these statements.
    pub(super) fn for_each_use_in<'a>(
        &'a self,
        body: &'a [Stmt],
        visit: &mut dyn FnMut(Handle<Buffer>, bool, Option<&'a Op>),
    ) {
        for stmt in body {
            match stmt {
                Stmt::Op(op) => {
                    let op = &self.ops[*op];
                    for (operand, tile) in op.tiles() {
                        visit(tile.buffer, operand.effect.writes(), Some(op));
                    }
                }
                Stmt::Loop(inner) => self.for_each_use_in(&inner.body, visit),
                Stmt::Parallel(parallel) => elements(&self.parallels[*parallel].body, visit),
                Stmt::EachThread(body) => elements(body, visit),
                Stmt::Begin(_) | Stmt::End(_) => {}
                Stmt::If(branch) => {
                    branch.cond.for_each_load(&mut |access| visit(access.buffer, false, None));
                    self.for_each_use_in(&branch.then, visit);
                    self.for_each_use_in(&branch.otherwise, visit);
                }
            }
        }
    }

    /// How often statements name a storage.
    pub(super) fn uses_in(&self, body: &[Stmt], storage: Handle<Buffer>) -> usize {
        let mut count = 0;
        self.for_each_use_in(body, &mut |buffer, _, _| count += usize::from(self.storage(buffer) == storage));
        count
    }

    /// The storages that statements write.
    pub fn written(&self) -> BTreeSet<Handle<Buffer>> {
        self.written_in(&self.body)
    }

    /// The storages that these statements write.
    pub(super) fn written_in(&self, body: &[Stmt]) -> BTreeSet<Handle<Buffer>> {
        let mut found = BTreeSet::new();
        self.for_each_use_in(body, &mut |buffer, writes, _| {
            if writes {
                found.insert(self.storage(buffer));
            }
        });
        found
    }
}

fn elements<'a>(body: &[ElementStmt], visit: &mut dyn FnMut(Handle<Buffer>, bool, Option<&'a Op>)) {
    for element in body {
        element.for_each_access(&mut |access, writes| visit(access.buffer, writes, None));
    }
}
