//! The holds of stages among blocks, and barriers of the CTA at which roles of a ring would wait for each other.

use std::collections::BTreeMap;

use tilewright_diag::Diagnostic;
use tilewright_ir::thread::Stmt;
use tilewright_ir::tile::{Hold, Kernel, Side};
use tilewright_ir::{Handle, tile};
use tilewright_layout::axis::Scope;

use crate::sync::{Block, RequiredBarrier};

/// The holds of stages, by their plans.
#[derive(Default)]
pub(crate) struct RingHolds(BTreeMap<usize, Handle<Hold>>);

impl RingHolds {
    /// Notes the hold of a plan.
    pub(super) fn note(&mut self, plan: usize, hold: Handle<Hold>) {
        self.0.insert(plan, hold);
    }

    /// The hold of a plan.
    pub(crate) fn of(&self, plan: usize) -> Option<Handle<Hold>> {
        self.0.get(&plan).copied()
    }

    /// Errors for barriers of the CTA at which roles of a ring would wait for each other: one has to go through more stages than
    /// there are before it reaches the barrier, and another one begins to use them after it.
    pub(crate) fn blocked(&self, kernel: &Kernel, blocks: &[Block]) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (handle, ring) in kernel.rings.iter() {
            found.extend(self.blocked_by(kernel, blocks, (handle, ring)));
        }
        found
    }

    /// The first such barrier for a ring.
    fn blocked_by(
        &self,
        kernel: &Kernel,
        blocks: &[Block],
        of: (Handle<tile::Ring>, &tile::Ring),
    ) -> Option<Diagnostic> {
        let mut before: Vec<(&Hold, bool)> = Vec::new();
        for (at, block) in blocks.iter().enumerate() {
            let holds_of = |blocks: &[Block]| {
                let mut found = Vec::new();
                blocks.iter().for_each(|block| self.holds_in(kernel, block, (of.0, false), &mut found));
                found
            };
            let blocked = barrier_in(block).and_then(|reasons| {
                let behind = holds_of(&blocks[at..]);
                let (hold, _) = before.iter().find(|(hold, _)| is_ahead(hold, &before, &behind, of.1.stages))?;
                Some((*hold, reasons))
            });
            if let Some((hold, reasons)) = blocked {
                let name = &of.1.name;
                let message = format!("the roles of the ring `{name}` wait for each other at a barrier of the CTA");
                let finding = Diagnostic::error("K0285", message)
                    .label(hold.span, format!("the stages of `{name}` are used here, before the barrier"))
                    .note(reasons);
                let help = "let only one role use that memory, or pass it from one role to the other in a ring; roles that share the tiles \
                            of a CTA visit them in turns (tiles.for_every), and have shared memory of their own";
                return Some(finding.help(help));
            }
            before.extend(holds_of(std::slice::from_ref(block)));
            let inner = match block {
                Block::Loop(inner) => self.blocked_by(kernel, &inner.body, of),
                Block::Op(_) | Block::If(_) => None,
            };
            if inner.is_some() {
                return inner;
            }
        }
        None
    }

    /// Adds the holds of a ring that are in a block, each with whether it is in a loop there.
    fn holds_in<'a>(
        &self,
        kernel: &'a Kernel,
        block: &Block,
        (ring, is_in_loop): (Handle<tile::Ring>, bool),
        found: &mut Vec<(&'a Hold, bool)>,
    ) {
        match block {
            Block::Op(op) => {
                let hold = self.0.get(&op.op).map(|hold| &kernel.holds[*hold]);
                found.extend(hold.filter(|hold| hold.ring == ring).map(|hold| (hold, is_in_loop)));
            }
            Block::Loop(inner) => inner.body.iter().for_each(|block| self.holds_in(kernel, block, (ring, true), found)),
            Block::If(_) => {}
        }
    }
}

/// Whether a role has to go through more stages before a barrier than another one, which goes on behind it, lets it.
fn is_ahead(hold: &Hold, before: &[(&Hold, bool)], behind: &[(&Hold, bool)], stages: i64) -> bool {
    let count = |of: &Hold, is_in_loop: bool| {
        before.iter().filter(|(hold, in_loop)| hold.role == of.role && *in_loop == is_in_loop).count() as i64
    };
    behind.iter().any(|(other, _)| {
        let [in_loops, of_other] = [hold, *other].map(|of| count(of, true));
        // A stage is used after it is filled, and filled again when all have used it.
        let slack = if (hold.side, other.side) == (Side::Consume, Side::Produce) { 0 } else { stages };
        let is_before = in_loops == of_other && count(hold, false) > count(other, false) + slack;
        other.role != hold.role && (in_loops > of_other || is_before)
    })
}

/// Why the first barrier of all threads in a block is there, if there is one.
fn barrier_in(block: &Block) -> Option<String> {
    let of = |barrier: &RequiredBarrier| {
        (barrier.role.is_none() && barrier.scope > Scope::Warp).then(|| barrier.reasons.join("; "))
    };
    match block {
        Block::Op(op) => {
            let is_barrier = |stmt: &Stmt| op.role.is_none() && stmt.orders() > Scope::Warp;
            let own = op.body.iter().any(is_barrier).then(|| format!("`{}` has a barrier of its own", op.title));
            op.barrier.as_ref().and_then(of).or(own)
        }
        Block::Loop(inner) => {
            let before = inner.barrier.as_ref().and_then(|(barrier, _)| of(barrier));
            before.or_else(|| inner.body.iter().find_map(barrier_in))
        }
        Block::If(branches) => {
            let of_branch = |body: &[Block]| body.iter().find_map(barrier_in);
            let first = branches.first.barrier.as_ref().and_then(of);
            first.or_else(|| of_branch(&branches.then.body)).or_else(|| of_branch(&branches.otherwise.body))
        }
    }
}
