//! Pipelined loops: copies to shared memory run iterations ahead of what uses them.
//!
//! [`Kernel::fills`](tilewright_ir::Kernel::fills) says which statements of a loop may run ahead. Those whose lowered form can
//! be written with asynchronous copies do so: each of their buffers gets a copy for every stage, and iteration `i` uses
//! stage `i % stages`. For 3 stages:
//!
//! ```text
//! for ahead in 0..2:  start the copies of iteration `ahead`; commit
//! for i in 0..n:
//!     wait until at most 1 group is pending: the copies of iteration i have arrived
//!     barrier: all threads see them, and have finished with the stage of iteration i - 1
//!     start the copies of iteration i + 2, to that stage; commit
//!     use stage i % 3
//! ```
//!
//! A group is committed in each iteration, whether or not there is an iteration to copy for, so the number of groups to wait
//! for is the same in all of them.

mod asynchronous;
mod rotate;

pub(crate) use rotate::{Rotation, rotated};

use std::collections::BTreeSet;

use tilewright_ir::Handle;
use tilewright_ir::plan::{PlanFacts, Reason, VariantResult};
use tilewright_ir::thread::{Memory, Program, Stmt, for_each_stmt};

use crate::measure::measure;
use crate::sync::Block;
use asynchronous::asynchronous;

/// The variant of a loop whose copies run ahead, and of these copies.
pub(crate) const CP_ASYNC: &str = "cp_async";
/// The variant of a loop in which nothing runs ahead.
pub(crate) const SERIAL: &str = "serial";

/// The variants of a loop in which nothing runs ahead, for these reasons.
pub(crate) fn serial(reasons: Vec<Reason>) -> Vec<VariantResult> {
    let summary = "copies are waited for where they are".to_string();
    let facts = PlanFacts { summary, accesses: Vec::new(), instructions: 0, shuffles: 0, registers: 0 };
    let of = |variant, answer| VariantResult { variant, answer };
    vec![of(CP_ASYNC, Err(reasons)), of(SERIAL, Ok(facts))]
}

/// What may run ahead in a loop.
#[derive(Clone, Debug)]
pub(crate) struct RunsAhead {
    /// Index of the loop's plan.
    pub(crate) plan: usize,
    /// The stages that the user asks for.
    pub(crate) stages: i64,
    /// The blocks that run ahead, in their order.
    pub(crate) copies: Vec<AsyncCopy>,
    /// Why others that fill shared buffers do not run ahead.
    pub(crate) against: Vec<Reason>,
}

/// A block of a loop that runs ahead.
#[derive(Clone, Debug)]
pub(crate) struct AsyncCopy {
    /// Its position in the body of the loop.
    pub(crate) block: usize,
    /// Its statements, with asynchronous copies.
    pub(crate) body: Vec<Stmt>,
    pub(crate) facts: PlanFacts,
    /// The shared memory that it fills.
    pub(crate) fills: BTreeSet<Handle<Memory>>,
}

impl RunsAhead {
    /// Finds which of the blocks at `fills` can be written with asynchronous copies. A memory is filled by asynchronous copies
    /// only.
    pub(crate) fn find(&mut self, program: &Program, body: &[Block], fills: &[usize]) {
        let mut refused: BTreeSet<Handle<Memory>> = BTreeSet::new();
        for at in fills {
            let Block::Op(op) = &body[*at] else { continue };
            let fills = filled(program, &op.body);
            match asynchronous(program, &op.body) {
                Ok(body) => {
                    let facts = measure(program, &body, 0, String::new(), i64::MAX);
                    self.copies.push(AsyncCopy { block: *at, body, facts, fills });
                }
                Err(Reason { text, accepted }) => {
                    self.against.push(Reason { text: format!("`{}`: {text}", op.title), accepted });
                    refused.extend(fills);
                }
            }
        }
        while let Some(at) = self.copies.iter().position(|copy| !copy.fills.is_disjoint(&refused)) {
            refused.extend(self.copies.remove(at).fills);
        }
    }

    /// The memories that copies fill.
    pub(crate) fn memories(&self) -> BTreeSet<Handle<Memory>> {
        self.copies.iter().flat_map(|copy| copy.fills.iter().copied()).collect()
    }
}

/// The memories that statements store to.
fn filled(program: &Program, body: &[Stmt]) -> BTreeSet<Handle<Memory>> {
    let mut found = BTreeSet::new();
    for_each_stmt(body, &mut |stmt| {
        let writes = stmt.accesses().filter(|access| access.effect.writes());
        found.extend(writes.map(|access| program.owner(access.memory)));
    });
    found
}
