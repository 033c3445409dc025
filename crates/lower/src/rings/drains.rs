//! Products that arrive at the barriers of a ring when nobody waits for them any more: a CTA must not end before they have.
//!
//! A role that multiplies into tensor memory releases stages by the tensor core, which arrives when the products are done. Most often
//! the role publishes the sums of all of these products later, and whoever stores the sums has waited for them. Where it does not,
//! a role that fills the stages waits until all of them are empty before it ends.

use std::collections::BTreeSet;

use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::OpPlan;
use tilewright_ir::thread::{Inst, Stmt as ThreadStmt, Unroll};
use tilewright_ir::tile::{Kernel, Role, Side, Stmt};
use tilewright_ir::{Counter, Handle};

use super::pair::BarrierPair;
use crate::builder::Builder;
use crate::engine::barrier_call;
use crate::sync::OpBlock;

/// The blocks at the end of roles in which they wait until the stages that they have filled are empty.
pub(super) fn drains(kernel: &Kernel, builder: &mut Builder, all: &[BarrierPair], plans: &[OpPlan]) -> Vec<OpBlock> {
    let is_open = |role: &Handle<Role>| are_waited_for(kernel, all, &kernel.body, *role) == Some(false);
    let open: BTreeSet<Handle<Role>> = kernel.roles.iter().map(|(role, _)| role).filter(is_open).collect();
    let is_drained =
        |pair: &BarrierPair| pair.consumers.iter().any(|(role, used)| used.products && open.contains(role));
    let mut drains = Vec::new();
    for (pair, (_, ring)) in all.iter().zip(kernel.rings.iter()).filter(|(pair, _)| is_drained(pair)) {
        let Some(role) = pair.producers.keys().next() else { continue };
        let body = drain(builder, pair, ring.stages);
        let block = OpBlock::new(plans[pair.plan].title.clone(), None, body, pair.plan);
        drains.push(block.part("wait until all stages are empty").of(kernel.part_of_cta(Some(*role))));
    }
    drains
}

/// Whether somebody waits for the last products that a role issues in statements, since it publishes their sums; `None` if there are
/// none that it does not wait for itself.
fn are_waited_for(kernel: &Kernel, all: &[BarrierPair], body: &[Stmt], role: Handle<Role>) -> Option<bool> {
    body.iter().fold(None, |known, stmt| match stmt {
        Stmt::End(hold) => {
            let hold = &kernel.holds[*hold];
            let pair = &all[hold.ring.index()];
            let of_products = hold.role == Some(role)
                && match hold.side {
                    Side::Produce => pair.producers.get(&role).is_some_and(|filled| filled.products),
                    Side::Consume => pair.consumers.get(&role).is_some_and(|used| used.products),
                };
            if of_products { Some(hold.side == Side::Produce) } else { known }
        }
        Stmt::Loop(inner) => match are_waited_for(kernel, all, &inner.body, role) {
            // The loop may be empty.
            Some(true) if known == Some(false) && !(inner.part.is_none() && inner.counter.is_never_empty()) => known,
            None => known,
            found => found,
        },
        // Holds are under no conditions.
        Stmt::If(_) | Stmt::Begin(_) | Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) => known,
    })
}

/// Waits for as many stages as there are, from the next one on.
fn drain(builder: &mut Builder, pair: &BarrierPair, stages: i64) -> Vec<ThreadStmt> {
    let stage = Var::new(builder.fresh("stage"), 0, stages - 1);
    let cursor = &builder.program.cursors[pair.cursor];
    let parity = normalize(&(1 - Expr::var(&cursor.phase)));
    let wait = barrier_call(Inst::BarrierWait, (pair.empty, cursor.at()), Some(parity));
    let body = vec![wait, ThreadStmt::advance(pair.cursor)];
    vec![ThreadStmt::For { counter: Counter::of(stage), unroll: Unroll::Auto, body }]
}
