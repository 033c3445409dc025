//! The statements that all conversions are made of.

use tilewright_ir::thread::{Stmt, Value};

use super::context::Context;
use crate::builder::{Builder, regs};
use crate::threads::by_threads;

/// The statements of a conversion while they are made.
pub(super) struct Make<'a> {
    pub(super) context: &'a Context,
    pub(super) builder: &'a mut Builder,
    pub(super) out: Vec<Stmt>,
}

impl Make<'_> {
    /// Statements that only the threads of `set` execute, or also those that `may` execute them without effect.
    pub(super) fn by(&mut self, set: &[bool], may: impl Fn(usize) -> bool, body: Vec<Stmt>) {
        by_threads(set, may, body, &self.context.thread, self.builder, &mut self.out);
    }

    /// A slot of the destination becomes a value.
    pub(super) fn written(&self, slot: usize, value: Value) -> Stmt {
        let (place, result) = (self.context.result.place(slot), &self.context.result);
        Stmt::Assign { to: regs(result.array, place.register, 1), value: result.written(place, value) }
    }
}
