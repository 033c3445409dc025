//! The buffers that a kernel does something with.

use std::collections::BTreeSet;

use crate::arena::Handle;
use crate::tile::element::Element;
use crate::tile::kernel::{Buffer, Kernel, Stmt};

impl Kernel {
    /// The buffers that statements name. A view counts by itself, not for what it is a view of.
    pub fn touched(&self) -> BTreeSet<Handle<Buffer>> {
        let mut found = BTreeSet::new();
        statements(self, &self.body, &mut found);
        found
    }
}

fn statements(kernel: &Kernel, body: &[Stmt], found: &mut BTreeSet<Handle<Buffer>>) {
    for stmt in body {
        match stmt {
            Stmt::Op(op) => found.extend(kernel.ops[*op].operands.iter().map(|tile| tile.buffer)),
            Stmt::Loop(inner) => statements(kernel, &inner.body, found),
            Stmt::Parallel(parallel) => elements(&kernel.parallels[*parallel].body, found),
            Stmt::Each(body) => elements(body, found),
            Stmt::If(branch) => {
                branch.cond.for_each_load(&mut |access| {
                    found.insert(access.buffer);
                });
                statements(kernel, &branch.then, found);
                statements(kernel, &branch.otherwise, found);
            }
        }
    }
}

fn elements(body: &[Element], found: &mut BTreeSet<Handle<Buffer>>) {
    for element in body {
        element.for_each_access(&mut |access, _| {
            found.insert(access.buffer);
        });
    }
}
