//! Finds fragments that are read before anything is written to them, and shared memory that is never written.

use std::collections::BTreeSet;

use tilewright_diag::{Diagnostic, Span};

use crate::arena::Handle;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::element::ElementStmt;
use crate::tile::kernel::{Kernel, Stmt};
use crate::tile::op::{Effect, Op};
use crate::tile::value::Value;

/// Reports fragments that are read before any statement has written to them, and shared memory that is read but that no
/// statement writes; once each. Reads of shared memory before it is written are found only when the kernel runs: a loop
/// may write for its next iteration.
pub(super) fn check(kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    let is_fragment = |storage: &Handle<Buffer>| kernel.buffers[*storage].space == Space::Fragment;
    let written = kernel.written().into_iter().filter(|storage| !is_fragment(storage)).collect();
    let mut walk = Walk { kernel, written, found };
    walk.body(&kernel.body);
}

struct Walk<'a> {
    kernel: &'a Kernel,
    /// Storages that have been written, or were reported.
    written: BTreeSet<Handle<Buffer>>,
    found: &'a mut Vec<Diagnostic>,
}

impl Walk<'_> {
    fn body(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Op(op) => self.op(&self.kernel.ops[*op]),
                Stmt::Loop(inner) => self.body(&inner.body),
                Stmt::Parallel(parallel) => self.elements(&self.kernel.parallels[*parallel].body),
                Stmt::EachThread(elements) => self.elements(elements),
                Stmt::If(branch) => {
                    self.value(&branch.cond);
                    self.body(&branch.then);
                    self.body(&branch.otherwise);
                }
            }
        }
    }

    fn op(&mut self, op: &Op) {
        for (place, tile) in op.operands.iter().enumerate() {
            let is_read = match op.effect(place) {
                Effect::Read | Effect::Update => true,
                Effect::Move => !self.stays_in_shared_memory(op),
                Effect::Write => false,
            };
            if is_read {
                self.read(tile.buffer, op.span);
            }
        }
        for (_, tile) in op.operands.iter().enumerate().filter(|(place, _)| op.effect(*place).writes()) {
            self.write(tile.buffer);
        }
    }

    /// Whether all operands are in shared memory: values moved within it do not matter until they are used.
    fn stays_in_shared_memory(&self, op: &Op) -> bool {
        op.operands.iter().all(|tile| self.kernel.buffers[tile.buffer].space == Space::Shared)
    }

    fn elements(&mut self, elements: &[ElementStmt]) {
        for element in elements {
            match element {
                ElementStmt::Let { value, .. } => self.value(value),
                ElementStmt::Store { to, value, .. } => {
                    self.value(value);
                    to.for_each_load(&mut |access| self.read(access.buffer, access.span));
                    self.write(to.buffer);
                }
                ElementStmt::Atomic { to, value, .. } => {
                    self.value(value);
                    self.read(to.buffer, to.span);
                }
                ElementStmt::If { cond, then, otherwise, .. } => {
                    self.value(cond);
                    self.elements(then);
                    self.elements(otherwise);
                }
                ElementStmt::For { body, .. } => self.elements(body),
            }
        }
    }

    fn value(&mut self, value: &Value) {
        value.for_each_load(&mut |access| self.read(access.buffer, access.span));
    }

    fn read(&mut self, buffer: Handle<Buffer>, span: Span) {
        let storage = self.kernel.storage(buffer);
        let declared = &self.kernel.buffers[storage];
        if matches!(declared.space, Space::Global(_)) || !self.written.insert(storage) {
            return;
        }
        let message = format!("`{}` is read, but nothing has been written to it", self.kernel.buffers[buffer].name);
        self.found.push(
            Diagnostic::error("K0238", message)
                .label(span, "read here")
                .label(declared.span, "declared here")
                .help("fill it or copy something into it first"),
        );
    }

    fn write(&mut self, buffer: Handle<Buffer>) {
        self.written.insert(self.kernel.storage(buffer));
    }
}
