//! `reduce`: every thread combines its part of a row, then shuffles combine parts within warps, and shared memory
//! combines them across warps.

mod context;
mod make;
mod rows;
mod staging;

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_diag::counted;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::Stmt;

use crate::builder::Builder;
use crate::fragment_registers::Slot;
use crate::refusal::Refusal;
use crate::variant::{AcrossLoop, Schedule, Variant, VariantList};
use context::Context;
use make::Make;
use rows::{Rows, ShuffleMask};

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
        Variant { name: "shuffles", accept: |c| Ok(accept_shuffles(c)?) },
        Variant { name: "across_warps", accept: |c| Ok(accept_across(c)?) },
        Variant { name: "single_owners", accept: |c| Ok(accept_single(c)?) },
    ],
};

fn accept_shuffles(context: &Context) -> Result<Vec<ReduceSchedule>, Vec<Reason>> {
    let have_parts = |rows: &Rows| {
        let has_parts =
            |(thread, own): (usize, &BTreeMap<usize, Slot>)| own.keys().all(|row| rows.place(thread, *row).is_some());
        context.owned.iter().enumerate().all(has_parts)
    };
    let reason = |text: &str| {
        vec![Reason {
            text: text.to_string(),
            accepted: "rows held by lanes of one warp whose numbers differ only in some bits".to_string(),
        }]
    };
    let plain = context.rows.complete().map(|exchange| (Arc::clone(&context.rows), exchange));
    let padded = || context.rows.padded_complete().map(|(rows, exchange)| (Arc::new(rows), exchange));
    let complete = plain.filter(|(rows, _)| have_parts(rows)).or_else(padded);
    if let Some((rows, exchange)) = complete.filter(|(rows, _)| have_parts(rows)) {
        return Ok(vec![ReduceSchedule { rows, exchange, leaders: None }]);
    }
    Err(reason(match have_parts(&context.rows) {
        true => "rows span warps, or lanes whose parts no shuffles combine",
        false => "a thread must hold a result but has no part of its row",
    }))
}

fn accept_across(context: &Context) -> Result<Vec<ReduceSchedule>, Vec<Reason>> {
    let padded = context.rows.padded_partial().map(|(rows, exchange)| (Arc::new(rows), exchange));
    let (rows, exchange) = padded.unwrap_or_else(|| (Arc::clone(&context.rows), context.rows.partial()));
    let leaders = rows.leaders(exchange).map_err(|text| {
        vec![Reason {
            text,
            accepted: "rows whose elements have one owner each, or owners in equal groups".to_string(),
        }]
    })?;
    Ok(vec![ReduceSchedule { rows, exchange, leaders: Some(leaders) }])
}

/// Counts every element on the first of its threads, and combines all parts through shared memory: this accepts any
/// layout.
fn accept_single(context: &Context) -> Result<Vec<ReduceSchedule>, Vec<Reason>> {
    let exchange = ShuffleMask { bits: 0 };
    let leaders = context
        .single
        .leaders(exchange)
        .map_err(|text| vec![Reason { text, accepted: "sources in which every element has an owner".to_string() }])?;
    Ok(vec![ReduceSchedule { rows: Arc::clone(&context.single), exchange, leaders: Some(leaders) }])
}

impl Schedule<Context> for ReduceSchedule {
    fn summary(&self, _: &Context) -> String {
        let shuffles = self.exchange.masks().count();
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
