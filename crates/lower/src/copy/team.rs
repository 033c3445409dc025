//! The threads that execute an op together, and the steps in which they do so.

use tilewright_expr::{Expr, Var};
use tilewright_ir::Counter;
use tilewright_ir::thread::{Stmt, Unroll};
use tilewright_ir::tile::{Kernel, Op};
use tilewright_layout::axis::Scope;

use crate::builder::Builder;

/// A loop over up to this many batches is unrolled.
const MOST_WRITTEN_OUT: i64 = 8;

/// The threads that execute an op together.
#[derive(Clone, Debug)]
pub(crate) struct Team {
    /// Index of the thread in the team.
    pub(crate) index: Var,
    pub(crate) threads: i64,
}

impl Team {
    /// The threads that execute an op: those of a warp, or of the CTA.
    pub(crate) fn of(kernel: &Kernel, op: &Op) -> Team {
        if kernel.threads <= 32 || op.scope == Scope::Warp {
            Team { index: kernel.lane(), threads: kernel.threads.min(32) }
        } else {
            Team { index: kernel.tid(), threads: kernel.threads }
        }
    }
}

/// Distributes `vectors` over a team: `make(base, count)` builds the statements of `count` steps from step `base` on.
/// Many steps become a loop over batches.
pub(crate) fn spread_steps(
    builder: &mut Builder,
    team: &Team,
    vectors: i64,
    batch: i64,
    make: impl Fn(&mut Builder, &Expr, i64) -> Vec<Stmt>,
) -> Vec<Stmt> {
    let steps = (vectors + team.threads - 1) / team.threads;
    if steps <= batch {
        return make(builder, &Expr::constant(0), steps);
    }
    let whole = vectors / team.threads / batch;
    let mut body = Vec::new();
    if whole > 1 {
        let var = Var::new(builder.fresh("i"), 0, whole - 1);
        let inner = make(builder, &(Expr::var(&var) * batch), batch);
        let unroll = if whole <= MOST_WRITTEN_OUT { Unroll::Full } else { Unroll::Auto };
        body.push(Stmt::For { counter: Counter::of(var), unroll, body: inner });
    } else if whole == 1 {
        body.extend(make(builder, &Expr::constant(0), batch));
    }
    let mut done = whole * batch;
    while done < steps {
        let count = (steps - done).min(batch);
        body.extend(make(builder, &Expr::constant(done), count));
        done += count;
    }
    body
}
