//! Finds fragments that are read before anything is written to them, and shared memory and outputs that are never written.

use std::collections::BTreeSet;

use tilewright_diag::{Diagnostic, Span};

use crate::arena::Handle;
use crate::tile::buffer::{Buffer, Direction, Space};
use crate::tile::element::ElementStmt;
use crate::tile::fills::for_each_loop;
use crate::tile::kernel::{Kernel, Stmt};
use crate::tile::op::{Effect, Op};
use crate::tile::value::Value;

/// Reports fragments that are read before any statement has written to them, and shared memory and outputs that are read or
/// updated but that no statement writes; once each. Reads of memory before it is written are found only when the kernel runs:
/// a loop may write for its next iteration.
pub(super) fn check(kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    let mut first = Walk::new(kernel, BTreeSet::new());
    first.body(&kernel.body);
    let begins_with_values = |buffer: &Buffer| match buffer.space {
        Space::Global(direction) => direction != Direction::Output,
        Space::Shared | Space::Fragment | Space::Tensor => false,
    };
    let is_known = |(storage, buffer): &(Handle<Buffer>, &Buffer)| {
        begins_with_values(buffer) || buffer.space != Space::Fragment && first.written.contains(storage)
    };
    let is_known = kernel.buffers.iter().filter(is_known).map(|(storage, _)| storage).collect();
    let mut walk = Walk::new(kernel, is_known);
    walk.body(&kernel.body);
    found.extend(walk.found);
}

/// Reports what is read in a loop of which iterations are independent, and what only an earlier iteration has written; once each.
pub(super) fn check_carried(kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    for_each_loop(&kernel.body, &mut |inner| {
        if !inner.carries() {
            let mut first = Walk::new(kernel, BTreeSet::new());
            first.body(&inner.body);
            let is_known = |storage: &Handle<Buffer>| {
                !first.changed.contains(storage) || matches!(kernel.buffers[*storage].space, Space::Global(_))
            };
            let is_known = kernel.buffers.iter().map(|(storage, _)| storage).filter(is_known).collect();
            let mut walk = Walk { tiles: Some(inner.span), ..Walk::new(kernel, is_known) };
            walk.body(&inner.body);
            found.extend(walk.found);
        }
    });
}

struct Walk<'a> {
    kernel: &'a Kernel,
    /// The loop, if it is the body of one of which iterations are independent.
    tiles: Option<Span>,
    /// Storages that have values where the walk is, or were reported.
    is_known: BTreeSet<Handle<Buffer>>,
    /// Storages that statements write, whatever was in them.
    written: BTreeSet<Handle<Buffer>>,
    /// Storages that statements write or update.
    changed: BTreeSet<Handle<Buffer>>,
    found: Vec<Diagnostic>,
}

impl Walk<'_> {
    fn new(kernel: &Kernel, is_known: BTreeSet<Handle<Buffer>>) -> Walk<'_> {
        Walk { kernel, tiles: None, is_known, written: BTreeSet::new(), changed: BTreeSet::new(), found: Vec::new() }
    }

    fn body(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Op(op) => self.op(&self.kernel.ops[*op]),
                Stmt::Loop(inner) => self.body(&inner.body),
                Stmt::Parallel(parallel) => self.elements(&self.kernel.parallels[*parallel].body),
                Stmt::EachThread(elements) => self.elements(elements),
                Stmt::Begin(_) | Stmt::End(_) => {}
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
            match op.effect(place) {
                Effect::Read => self.read(tile.buffer, op.span),
                Effect::Update => self.update(tile.buffer, op.span),
                Effect::Move if self.stays_in_shared_memory(op) => {}
                Effect::Move => self.read(tile.buffer, op.span),
                Effect::Write => {}
            }
        }
        for (_, tile) in op.operands.iter().enumerate().filter(|(place, _)| op.effect(*place) == Effect::Write) {
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
                ElementStmt::Atomic(atomic) => {
                    let to = &atomic.to;
                    atomic.values().for_each(|value| self.value(value));
                    to.for_each_load(&mut |access| self.read(access.buffer, access.span));
                    self.update(to.buffer, to.span);
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

    fn update(&mut self, buffer: Handle<Buffer>, span: Span) {
        self.used(buffer, span, "updated");
        self.changed.insert(self.kernel.storage(buffer));
    }

    fn read(&mut self, buffer: Handle<Buffer>, span: Span) {
        self.used(buffer, span, "read");
    }

    /// A statement needs what is in a buffer.
    fn used(&mut self, buffer: Handle<Buffer>, span: Span, how: &str) {
        let storage = self.kernel.storage(buffer);
        let declared = &self.kernel.buffers[storage];
        if !self.is_known.insert(storage) {
            return;
        }
        let name = &self.kernel.buffers[buffer].name;
        if let Some(tiles) = self.tiles {
            let message = format!("`{name}` is {how} before it is written for a tile");
            let finding = Diagnostic::error("K0291", message).label(span, format!("{how} here"));
            let finding = finding.label(tiles, "for each tile").label(declared.span, "declared here");
            let help = "what an earlier tile has left there depends on which CTA or role computed that: write it for each tile first";
            self.found.push(finding.help(help));
            return;
        }
        let message = format!("`{name}` is {how}, but nothing has been written to it");
        let help = match declared.space {
            Space::Global(_) => {
                "an output begins with any values; declare it with k.accumulator, which begins at 0, or with k.inout"
            }
            Space::Shared | Space::Fragment | Space::Tensor => "fill it or copy something into it first",
        };
        self.found.push(
            Diagnostic::error("K0238", message)
                .label(span, format!("{how} here"))
                .label(declared.span, "declared here")
                .help(help),
        );
    }

    fn write(&mut self, buffer: Handle<Buffer>) {
        let storage = self.kernel.storage(buffer);
        self.is_known.insert(storage);
        self.written.insert(storage);
        self.changed.insert(storage);
    }
}
