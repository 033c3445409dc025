//! Products of warpgroups that are still computed while their role waits for the next stage of a ring.
//!
//! A loop that only multiplies the stages of a ring and adds to the same sums need not wait for a product before the next one is
//! issued. It waits until at most one group of products is pending, so that those of the iteration before are done, and releases
//! the stage of that iteration:
//!
//! ```text
//! for t in 0..n:
//!     wait until stage s is full; multiply it; commit
//!     wait until at most 1 group is pending
//!     if t > 0: each warp arrives: the stage before s is empty
//!     s = (s + 1) % stages
//! wait until no group is pending; if n > 0: each warp arrives: the last stage is empty
//! ```
//!
//! A stage is held one iteration longer, so that it takes two stages or more.

use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_ir::thread::{Call, Cond, Cursor, Inst, Stmt, for_each_stmt};
use tilewright_ir::tile::{Kernel, Role, Side};
use tilewright_ir::{Counter, Handle};

use crate::builder::Builder;
use crate::conditions::under;
use crate::rings::{BarrierPair, RingHolds};
use crate::sync::{Block, LoopBlock, OpBlock};

/// The blocks with what may be computed later in the loops among them.
pub(crate) fn lagged(
    kernel: &Kernel,
    builder: &Builder,
    (pairs, holds): (&[BarrierPair], &RingHolds),
    blocks: Vec<Block>,
) -> Vec<Block> {
    let mut out = Vec::with_capacity(blocks.len());
    for block in blocks {
        match block {
            Block::Loop(inner) => {
                let body = lagged(kernel, builder, (pairs, holds), inner.body);
                let inner = LoopBlock { body, ..inner };
                match products_of_stages(kernel, pairs, holds, &inner) {
                    Some(stages) => out.extend(later(builder, stages, inner)),
                    None => out.push(Block::Loop(inner)),
                }
            }
            Block::Op(_) | Block::If(_) => out.push(block),
        }
    }
    out
}

/// The barriers of the ring whose stages are all that a loop uses, and the role: it takes a stage, multiplies it, and releases it.
fn products_of_stages<'a>(
    kernel: &Kernel,
    pairs: &'a [BarrierPair],
    holds: &RingHolds,
    inner: &LoopBlock,
) -> Option<(&'a BarrierPair, Handle<Role>)> {
    let [Block::Op(begin), products @ .., Block::Op(end)] = &inner.body[..] else { return None };
    let hold = &kernel.holds[holds.of(begin.op)?];
    let ring = &kernel.rings[hold.ring];
    let is_hold = begin.op == end.op && hold.side == Side::Consume && ring.stages > 1;
    let are_products =
        !products.is_empty() && products.iter().all(|block| matches!(block, Block::Op(op) if multiplies(op)));
    let role = hold.role.filter(|_| is_hold && are_products)?;
    Some((&pairs[hold.ring.index()], role))
}

/// Whether an op only issues products and waits for them, and does not replace sums.
fn multiplies(op: &OpBlock) -> bool {
    let waits = op.body.iter().rfind(|stmt| !settles(stmt)).is_some_and(|last| *last == wait(0));
    let mut only = op.guard.is_none() && waits;
    for_each_stmt(&op.body, &mut |stmt| {
        only &= match stmt {
            Stmt::WarpgroupMma(product) => product.accumulates && product.left_registers().is_none(),
            Stmt::Inst(call) => {
                let of_products = [Inst::WarpgroupFence, Inst::WarpgroupCommit, Inst::WarpgroupWait];
                of_products.contains(&call.inst) || call.inst == Inst::WarpgroupSettle
            }
            _ => false,
        };
    });
    only
}

/// Whether a statement keeps reads of sums behind the wait for them.
fn settles(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Inst(call) if call.inst == Inst::WarpgroupSettle)
}

fn wait(pending: i64) -> Stmt {
    Stmt::from(Call { arguments: vec![Expr::constant(pending)], ..Call::plain(Inst::WarpgroupWait) })
}

/// The loop in which products are waited for an iteration later, and what follows it.
fn later(builder: &Builder, (pair, role): (&BarrierPair, Handle<Role>), mut inner: LoopBlock) -> Vec<Block> {
    let count = inner.body.len();
    let (mut left, mut settled): (Vec<Block>, Vec<Stmt>) = (Vec::new(), Vec::new());
    for (at, block) in inner.body.iter_mut().enumerate() {
        let Block::Op(op) = block else { continue };
        if at + 1 < count {
            let new =
                op.body.iter().filter(|stmt| settles(stmt) && !settled.contains(stmt)).cloned().collect::<Vec<_>>();
            settled.extend(new);
            op.body.retain(|stmt| *stmt != wait(0) && !settles(stmt));
            continue;
        }
        let cursor = &builder.program.cursors[pair.cursor];
        let Counter { var, begin, end, .. } = &inner.inner.counter;
        // All lanes of a warp have waited when one has.
        let arrive = |stage: Expr| pair.release_by_warps(builder, role, stage);
        // Every product op of the iteration is a group.
        let groups = count as i64 - 2;
        let is_later = Cond::Less(begin.clone(), Expr::var(var));
        let release = under(&[is_later], arrive(before(cursor)));
        op.body = std::iter::once(wait(groups)).chain(release).chain([Stmt::advance(pair.cursor)]).collect();
        let exists = Cond::Less(begin.clone(), end.clone());
        let last = under(&[exists], arrive(before(cursor)));
        let body = std::iter::once(wait(0)).chain(std::mem::take(&mut settled)).chain(last).collect();
        let last = OpBlock::new(op.title.clone(), None, body, op.op).part("release the last one");
        left.push(Block::Op(last.of(op.role)));
    }
    std::iter::once(Block::Loop(inner)).chain(left).collect()
}

/// The stage before the one that a warp uses next.
fn before(cursor: &Cursor) -> Expr {
    let at = cursor.at();
    match cursor.stages {
        2 => normalize(&(1 - at)),
        stages => normalize(&(at.clone() + (stages - 1) - at.at_most(1) * stages)),
    }
}
