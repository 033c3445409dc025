//! `permute_layout`: a warp moves a tile from one layout to another through registers.
//!
//! Each lane reads all its elements, then `__syncwarp()`, writes them under the other layout, then `__syncwarp()`.
//! This is right even if both operands are the same storage; where they cannot be, there are no barriers.

mod banks;
mod blocks;
mod colouring;
mod context;
mod entry;
mod exchange;
mod joint;
mod linear;
mod listed;
mod offsets;
mod packed;
mod reasons;
mod rotation;
mod rounds;
mod schedule;
mod scheduled;
mod steps;
mod vectorized;
mod words;
mod xor;

pub use joint::Joint;
pub use xor::{XorChoice, XorPlan, XorRefusal, choose_xor, plan_xor};

use tilewright_layout::access::tile_floor;

use self::blocks::LinearOperands;
use self::context::Context;
use self::schedule::PermuteSchedule;
use crate::refusal::Against;
use crate::variant::{Variant, VariantList};

pub(crate) static VARIANTS: VariantList<Context, PermuteSchedule> = VariantList {
    context: Context::new,
    floor: |context| Some(tile_floor(context.src.placed.size() * context.src.dtype.bytes())),
    variants: &[
        Variant { name: "warp_xor_swizzle", accept: |c| Ok(vec![PermuteSchedule::Xor(xor::accept(c)?)]) },
        Variant { name: "warp_vectorized", accept: accept_vectorized },
        Variant { name: "warp_packed", accept: |c| packed::accept(c) },
        Variant { name: "warp_scheduled", accept: |c| Ok(vec![PermuteSchedule::Scheduled(scheduled::accept(c)?)]) },
    ],
};

/// Runs of lanes on one side, or blocks of runs on both.
fn accept_vectorized(context: &Context) -> Result<Vec<PermuteSchedule>, Against> {
    let runs = vectorized::accept(context);
    let blocks =
        (context.src.dtype.bytes() >= 4).then(|| LinearOperands::of(context).ok()?.cheapest(&[4, 8, 16])).flatten();
    match (runs, blocks) {
        (Err(against @ Against::Reasons(_)), None) | (Err(against @ Against::Refusal(_)), _) => Err(against),
        (runs, blocks) => {
            let runs = runs.into_iter().flatten().map(PermuteSchedule::Vectorized);
            Ok(runs.chain(blocks.map(PermuteSchedule::Blocks)).collect())
        }
    }
}
