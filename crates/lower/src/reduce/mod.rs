//! `reduce`: every thread combines its part of a row, then shuffles combine parts within warps, and shared memory
//! combines them across warps.

mod context;
mod holders;
mod make;
mod rows;
mod staging;
mod tuples;

use std::sync::Arc;

use tilewright_diag::counted;
use tilewright_ir::thread::Stmt;

use crate::builder::Builder;
use crate::refusal::Refusal;
use crate::variant::{AcrossLoop, Schedule, Variant, VariantList};
use context::Context;
use make::Make;
use rows::{Rows, ShuffleMask};
use tuples::{MakeTuples, TupleContext};

/// How the parts of rows are combined.
pub(crate) struct ReduceSchedule {
    /// The parts that are combined.
    rows: Arc<Rows>,
    /// The shuffles within warps.
    exchange: ShuffleMask,
    /// By row, the threads that put their part in shared memory; `None` if the shuffles complete the rows.
    leaders: Option<Vec<Vec<usize>>>,
}

pub(crate) static VARIANTS: VariantList<Context, ReduceSchedule> = VariantList {
    context: Context::new,
    floor: |_| None,
    variants: &[
        Variant { name: "shuffles", accept: |c| Ok(c.holders.by_shuffles()?) },
        Variant { name: "across_warps", accept: |c| Ok(c.holders.across_warps()?) },
        Variant { name: "single_owners", accept: |c| Ok(c.holders.by_single_owners()?) },
    ],
};

pub(crate) static VARIANTS_OF_TUPLES: VariantList<TupleContext, ReduceSchedule> = VariantList {
    context: TupleContext::new,
    floor: |_| None,
    variants: &[
        Variant { name: "shuffles", accept: |c| Ok(c.holders.by_shuffles()?) },
        Variant { name: "across_warps", accept: |c| Ok(c.holders.across_warps()?) },
        Variant { name: "single_owners", accept: |c| Ok(c.holders.by_single_owners()?) },
    ],
};

impl ReduceSchedule {
    /// The steps of the exchange of a row.
    fn steps(&self) -> usize {
        self.exchange.masks().count()
    }

    /// What threads do, with so many shuffles for each row.
    fn told(&self, shuffles: usize) -> String {
        let rows = counted(self.rows.most_parts(), "row");
        let own = format!("{rows} per thread, {} each", counted(shuffles, "shuffle"));
        match &self.leaders {
            None => own,
            Some(leaders) => {
                let most = leaders.iter().map(Vec::len).max().unwrap_or(0);
                format!("{own}, then {} of each row through shared memory", counted(most, "part"))
            }
        }
    }
}

impl Schedule<Context> for ReduceSchedule {
    fn summary(&self, _: &Context) -> String {
        self.told(self.steps())
    }

    fn build(&self, context: &Context, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        let make = Make { context, rows: &self.rows, builder, out: Vec::new() };
        make.whole(self.exchange, self.leaders.as_deref())
    }

    /// Every thread combines its parts of all iterations, and the parts are combined once after the loop. Not for
    /// results that are rounded each time they are stored.
    fn build_across(&self, context: &Context, builder: &mut Builder) -> Option<Result<AcrossLoop, Refusal>> {
        let most = self.rows.most_parts();
        if most == 0 || context.attributes.clear || context.dtypes[0] != context.dtype {
            return None;
        }
        let make = Make { context, rows: &self.rows, builder, out: Vec::new() };
        Some(make.across_loop(self.exchange, self.leaders.as_deref()))
    }
}

impl Schedule<TupleContext> for ReduceSchedule {
    fn summary(&self, context: &TupleContext) -> String {
        self.told(context.shuffles(self.steps(), self.leaders.is_none()))
    }

    fn build(&self, context: &TupleContext, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        MakeTuples::new(context, &self.rows, builder).whole(self.exchange, self.leaders.as_deref())
    }

    fn build_across(&self, context: &TupleContext, builder: &mut Builder) -> Option<Result<AcrossLoop, Refusal>> {
        if self.rows.most_parts() == 0 || context.by.clear {
            return None;
        }
        Some(MakeTuples::new(context, &self.rows, builder).across_loop(self.exchange, self.leaders.as_deref()))
    }
}
