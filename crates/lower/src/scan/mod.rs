//! `scan`: every thread combines the elements of its parts of a row, then shuffles tell it what precedes them in its warp, and
//! shared memory what precedes that.

mod carry;
mod context;
mod make;
mod runs;
mod serial;
mod writer;

use tilewright_diag::counted;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::Stmt;

use crate::builder::Builder;
use crate::refusal::Refusal;
use crate::variant::{Schedule, Variant, VariantList};
use context::Context;
use make::Make;
use runs::{Groups, Part};

/// How what precedes the elements of a thread gets there.
pub(crate) enum ScanSchedule {
    /// By shuffles alone.
    Shuffles(Groups),
    /// By shuffles within groups of threads, whose parts of each row then pass through shared memory.
    Across(Groups, Vec<Vec<Part>>),
    /// One thread goes through each row in shared memory.
    Serial,
}

/// The most parts of a row that pass through shared memory, since every thread reads all that precede its own.
const MOST_PARTS: usize = 64;

/// The most shared memory that rows take, in bytes: more would leave too little for the tiles of a kernel.
const MOST_BYTES: i64 = 64 << 10;

pub(crate) static VARIANTS: VariantList<Context, ScanSchedule> = VariantList {
    context: Context::new,
    floor: |_| None,
    variants: &[
        Variant { name: "shuffles", accept: |c| Ok(vec![accept_shuffles(c)?]) },
        Variant { name: "across_warps", accept: |c| Ok(vec![accept_across(c)?]) },
        Variant { name: "rows_in_shared", accept: |c| Ok(vec![accept_serial(c)?]) },
    ],
};

fn accept_shuffles(context: &Context) -> Result<ScanSchedule, Vec<Reason>> {
    let groups = Groups::all(&context.runs, context.order.is_reverse);
    let complete = groups.into_iter().find(|groups| groups.complete_rows(context.extent));
    complete.map(ScanSchedule::Shuffles).ok_or_else(|| {
        vec![Reason {
            text: "rows span warps, or their elements are not in the order of the lanes".to_string(),
            accepted: "rows in the order of some bits of the lanes of one warp".to_string(),
        }]
    })
}

fn accept_across(context: &Context) -> Result<ScanSchedule, Vec<Reason>> {
    let groups: Vec<Groups> = Groups::all(&context.runs, context.order.is_reverse).collect();
    let with_parts = groups.into_iter().rev().filter_map(|groups| {
        let parts = groups.parts(context.rows, context.extent)?;
        let most = parts.iter().map(Vec::len).max().unwrap_or(0);
        (most <= MOST_PARTS).then_some((groups, parts))
    });
    let fewest = with_parts.min_by_key(|(_, parts)| parts.iter().map(Vec::len).max());
    fewest.map(|(groups, parts)| ScanSchedule::Across(groups, parts)).ok_or_else(|| {
        vec![Reason {
            text: "the elements of a row are not in the order of the threads".to_string(),
            accepted: format!("rows in at most {MOST_PARTS} parts, each in the order of the lanes of a warp"),
        }]
    })
}

fn accept_serial(context: &Context) -> Result<ScanSchedule, Vec<Reason>> {
    let of_tuple: i64 = context.values.iter().map(|value| value.dtype.bytes()).sum();
    let bytes = (context.rows * serial::pitch(context)) as i64 * of_tuple;
    if bytes <= MOST_BYTES {
        return Ok(ScanSchedule::Serial);
    }
    Err(vec![Reason {
        text: format!("the rows take {bytes} bytes of shared memory"),
        accepted: format!("rows of at most {MOST_BYTES} bytes together"),
    }])
}

impl Schedule<Context> for ScanSchedule {
    fn summary(&self, context: &Context) -> String {
        let of = |groups: &Groups| {
            // One for each bit, and one for what precedes a thread.
            let steps = groups.masks().count();
            let (rounds, shuffles) = (groups.rounds.len(), (steps + usize::from(steps > 0)) * context.values.len());
            format!("{}, {} each", counted(rounds, "round"), counted(shuffles, "shuffle"))
        };
        match self {
            ScanSchedule::Shuffles(groups) => of(groups),
            ScanSchedule::Across(groups, parts) => {
                let most = parts.iter().map(Vec::len).max().unwrap_or(0);
                format!("{}, then {} of each row through shared memory", of(groups), counted(most, "part"))
            }
            ScanSchedule::Serial => {
                format!("{} of {} in shared memory", counted(context.rows, "row"), counted(context.extent, "element"))
            }
        }
    }

    fn build(&self, context: &Context, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        match self {
            ScanSchedule::Shuffles(groups) => Make::new(context, groups, builder).with_carry(),
            ScanSchedule::Across(groups, parts) => Make::new(context, groups, builder).across(parts),
            ScanSchedule::Serial => serial::statements(context, builder),
        }
    }
}
