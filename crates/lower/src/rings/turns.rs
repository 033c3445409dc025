//! Roles that use the stages of a ring in turns, each for tiles of its own.
//!
//! A barrier tells one phase from the next, not from the one after that: a role that passes the stages of others must not wait for a stage
//! before these have waited for theirs, or it would take a phase that has not begun for one that is over. So each role waits for its
//! turn before it uses the ring, and gives the turn to the next role when it has waited for its last stage. While it computes with
//! what it has got, the next role uses the ring.

use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Cursor, Inst, Memory, Ring, Stmt, for_each_stmt};
use tilewright_ir::tile::{self, Kernel, Part};

use super::pair::{BarrierPair, by_one_lane};
use crate::builder::Builder;
use crate::engine::barrier_call;
use crate::sync::{Block, LoopBlock, LoopPart, OpBlock};

/// The barriers at which roles wait for their turns at a ring, one for each role.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    pub(super) barriers: Handle<Memory>,
    /// How often a role has had its turn.
    cursor: Handle<Cursor>,
    /// How many roles there are.
    pub(super) of: i64,
    /// The warps of each.
    pub(super) warps: i64,
}

impl Turns {
    /// The turns of roles with such parts at a ring; `None` if they all use all stages.
    pub(super) fn of(kernel: &Kernel, builder: &mut Builder, ring: Handle<tile::Ring>) -> Option<Turns> {
        let parts = kernel.parts(ring);
        let (role, Part { of, .. }) = parts.iter().next()?;
        let (name, span, warps) = (&kernel.rings[ring].name, kernel.rings[ring].span, kernel.roles[*role].warps);
        let barriers = builder.barriers(&format!("{name}_turn"), *of, span);
        let names = ["turns", "turn_phase"].map(|what| builder.fresh(&format!("{name}_{what}")));
        Some(Turns { barriers, cursor: builder.program.cursors.push(Cursor::new(names, 1)), of: *of, warps })
    }

    /// The barriers as those of a ring, which has nothing in its stages.
    pub(super) fn ring(&self, name: &str) -> Ring {
        let name = format!("{name}_turn");
        Ring { name, payload: Vec::new(), stages: self.of, full: self.barriers, empty: None, consumers: self.warps }
    }

    /// A role waits for its turn.
    fn wait(&self, builder: &Builder, index: i64) -> Vec<Stmt> {
        let phase = Expr::var(&builder.program.cursors[self.cursor].phase);
        // The first role has the first turn.
        let parity = if index == 0 { normalize(&(1 - phase)) } else { phase };
        vec![barrier_call(Inst::BarrierWait, (self.barriers, Expr::constant(index)), Some(parity))]
    }
}

/// The blocks in which roles wait for their turns, and give them to the next role.
pub(super) fn with_turns(builder: &Builder, all: &[BarrierPair], blocks: Vec<Block>) -> Vec<Block> {
    let with = |block: Block| match block {
        Block::Loop(inner) => {
            let mut body = with_turns(builder, all, inner.body);
            if let Some(LoopPart { part, .. }) = inner.inner.part.as_deref() {
                for pair in all {
                    body = in_turn(builder, pair, *part, body);
                }
            }
            Block::Loop(LoopBlock { body, ..inner })
        }
        other @ (Block::Op(_) | Block::If(_)) => other,
    };
    blocks.into_iter().map(with).collect()
}

/// The body of a loop of which a role executes this part, which waits for its turn at a ring if it uses it.
fn in_turn(builder: &Builder, pair: &BarrierPair, part: Part, mut body: Vec<Block>) -> Vec<Block> {
    let waits = |block: &Block| first_wait(block, pair.full).is_some();
    let places = body.iter().position(waits).zip(body.iter().rposition(waits));
    let (Some((first, last)), Some(turns)) = (places, &pair.turns) else { return body };
    let Some(op) = first_wait(&body[first], pair.full) else { return body };
    let (title, plan, role) = (op.title.clone(), op.op, op.role);
    let block = |body, part| OpBlock::new(title.clone(), None, body, plan).part(part).of(role);
    let next = (turns.barriers, Expr::constant((part.index + 1) % turns.of));
    let mut give = vec![Stmt::from(Call::plain(Inst::SyncWarp))];
    if let Some(role) = role {
        give.extend(by_one_lane(builder, role, barrier_call(Inst::BarrierArrive, next, None)));
    }
    give.push(Stmt::advance(turns.cursor));
    let wait = turns.wait(builder, part.index);
    body.insert(last + 1, Block::Op(block(give, "the turn of the next role")));
    body.insert(first, Block::Op(block(wait, "wait for its turn")));
    body
}

/// The first op in a block that waits for a stage of a ring to be full.
fn first_wait(block: &Block, full: Handle<Memory>) -> Option<&OpBlock> {
    match block {
        Block::Op(op) => {
            let mut waits = false;
            for_each_stmt(&op.body, &mut |stmt| {
                waits |= matches!(stmt, Stmt::Inst(call) if matches!(call.inst, Inst::BarrierWait | Inst::BarrierWaitCluster)
                    && call.memory.first().is_some_and(|(memory, _)| *memory == full));
            });
            waits.then_some(op)
        }
        Block::Loop(inner) => inner.body.iter().find_map(|block| first_wait(block, full)),
        Block::If(_) => None,
    }
}
