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
        statements(self, &self.body, visit);
    }

    /// How often statements name a storage.
    pub(super) fn uses_in(&self, body: &[Stmt], storage: Handle<Buffer>) -> usize {
        let mut count = 0;
        statements(self, body, &mut |buffer, _, _| count += usize::from(self.storage(buffer) == storage));
        count
    }

    /// As [`Kernel::for_each_use`], in these statements.
    pub(super) fn for_each_use_in<'a>(
        &'a self,
        body: &'a [Stmt],
        visit: &mut dyn FnMut(Handle<Buffer>, bool, Option<&'a Op>),
    ) {
        statements(self, body, visit);
    }

    /// The storages that statements write.
    pub fn written(&self) -> BTreeSet<Handle<Buffer>> {
        self.written_in(&self.body)
    }

    /// The storages that these statements write.
    pub(super) fn written_in(&self, body: &[Stmt]) -> BTreeSet<Handle<Buffer>> {
        let mut found = BTreeSet::new();
        statements(self, body, &mut |buffer, writes, _| {
            if writes {
                found.insert(self.storage(buffer));
            }
        });
        found
    }
}

fn statements<'a>(kernel: &'a Kernel, body: &'a [Stmt], visit: &mut dyn FnMut(Handle<Buffer>, bool, Option<&'a Op>)) {
    for stmt in body {
        match stmt {
            Stmt::Op(op) => {
                let op = &kernel.ops[*op];
                for (operand, tile) in op.kind.info().operands.iter().zip(&op.operands) {
                    visit(tile.buffer, operand.effect.writes(), Some(op));
                }
            }
            Stmt::Loop(inner) => statements(kernel, &inner.body, visit),
            Stmt::Parallel(parallel) => elements(&kernel.parallels[*parallel].body, visit),
            Stmt::EachThread(body) => elements(body, visit),
            Stmt::If(branch) => {
                branch.cond.for_each_load(&mut |access| visit(access.buffer, false, None));
                statements(kernel, &branch.then, visit);
                statements(kernel, &branch.otherwise, visit);
            }
        }
    }
}

fn elements<'a>(body: &[ElementStmt], visit: &mut dyn FnMut(Handle<Buffer>, bool, Option<&'a Op>)) {
    for element in body {
        element.for_each_access(&mut |access, writes| visit(access.buffer, writes, None));
    }
}
