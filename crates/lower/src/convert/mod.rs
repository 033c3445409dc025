//! `convert_layout`: the elements of a fragment move to the threads and registers of another. The plans are those of
//! [`tilewright_layout::conversion`].

mod context;
mod exchange;
mod make;
mod staging;

use tilewright_diag::counted;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::Stmt;
use tilewright_layout::LayoutError;
use tilewright_layout::conversion::{Conversion, ConversionKind};

use self::context::Context;
use self::make::Make;
use crate::builder::Builder;
use crate::refusal::Refusal;
use crate::variant::{Schedule, Variant, VariantList};

pub(crate) static VARIANTS: VariantList<Context, Conversion> = VariantList {
    context: Context::new,
    floor: |_| None,
    variants: &[
        Variant { name: "renaming", accept: |c| Ok(accept_renaming(c)?) },
        Variant { name: "shuffles", accept: |c| Ok(accept_shuffles(c)?) },
        Variant { name: "staging", accept: |c| Ok(accept_staging(c)?) },
    ],
};

fn accept_renaming(context: &Context) -> Result<Vec<Conversion>, Vec<Reason>> {
    let is_renaming = |kind: &ConversionKind| matches!(kind, ConversionKind::Renaming(_));
    found(&context.in_registers, is_renaming, || Reason {
        text: "some elements are on other threads in the destination".to_string(),
        accepted: "fragments in which every element stays on its thread".to_string(),
    })
}

fn accept_shuffles(context: &Context) -> Result<Vec<Conversion>, Vec<Reason>> {
    let refused = |text: String, accepted: &str| Err(vec![Reason { text, accepted: accepted.to_string() }]);
    if !context.threads.is_multiple_of(32) {
        let verb = if context.threads == 1 { "is" } else { "are" };
        let text = format!("{} {verb} not a whole number of warps", counted(context.threads, "thread"));
        return refused(text, "a multiple of 32 threads");
    }
    if context.dtype.bytes() > 8 {
        return refused(format!("elements of {} bytes", context.dtype.bytes()), "elements of up to 8 bytes");
    }
    let is_shuffles = |kind: &ConversionKind| matches!(kind, ConversionKind::Shuffles(_));
    found(&context.in_registers, is_shuffles, || Reason {
        text: "some elements change warps, or none leaves its thread".to_string(),
        accepted: "fragments in which every element stays in its warp, and some change lanes".to_string(),
    })
}

fn accept_staging(context: &Context) -> Result<Vec<Conversion>, Vec<Reason>> {
    let is_staging = |kind: &ConversionKind| matches!(kind, ConversionKind::Staging(_));
    found(&context.packed, is_staging, || Reason {
        text: "the tile does not fit in shared memory".to_string(),
        accepted: "tiles of up to 227 KiB".to_string(),
    })
}

/// The plan of one kind, or why there is none.
fn found(
    plans: &Result<Vec<Conversion>, LayoutError>,
    is_meant: impl Fn(&ConversionKind) -> bool,
    reason: impl Fn() -> Reason,
) -> Result<Vec<Conversion>, Vec<Reason>> {
    match plans {
        Ok(plans) => match plans.iter().find(|plan| is_meant(&plan.kind)) {
            Some(plan) => Ok(vec![plan.clone()]),
            None => Err(vec![reason()]),
        },
        Err(why) => Err(vec![Reason { text: why.to_string(), accepted: "other layouts".to_string() }]),
    }
}

impl Schedule<Context> for Conversion {
    fn summary(&self, _: &Context) -> String {
        match &self.kind {
            ConversionKind::Nothing | ConversionKind::Renaming(_) => "every element stays on its thread".to_string(),
            ConversionKind::Shuffles(shuffles) => counted(shuffles.steps.len(), "shuffle"),
            ConversionKind::Staging(staging) => {
                let (bytes, layout) = (staging.bytes, &staging.layout);
                format!("through {bytes} bytes of shared memory, {layout}")
            }
        }
    }

    fn build(&self, context: &Context, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        let mut make = Make { context, builder, out: Vec::new() };
        match &self.kind {
            // The verifier and `accept` leave no plan that does nothing: the destination has registers of its own.
            ConversionKind::Nothing => {}
            ConversionKind::Renaming(picks) => make.picked(picks, None),
            ConversionKind::Shuffles(shuffles) => make.shuffled(shuffles),
            ConversionKind::Staging(staging) => make.staged(staging),
        }
        Ok(make.out)
    }
}
