//! `warp_packed`: moves 1- and 2-byte elements with 32-bit and wider accesses; words exchange their bytes in
//! registers.

use tilewright_ir::plan::Reason;

use super::blocks::LinearOperands;
use super::context::Context;
use super::rounds;
use super::schedule::PermuteSchedule;
use crate::refusal::Against;

/// Blocks of wide accesses where addresses are linear over bits, else rounds of blocks of words.
pub(crate) fn accept(context: &Context) -> Result<Vec<PermuteSchedule>, Against> {
    let bytes = context.src.dtype.bytes();
    if bytes >= 4 {
        return Err(Against::Reasons(vec![Reason {
            text: format!("elements of {bytes} bytes fill whole words"),
            accepted: "elements of 1 or 2 bytes".to_string(),
        }]));
    }
    let mut reasons = match LinearOperands::of(context).map(|pair| pair.cheapest(&[4, 8, 16])) {
        Ok(Some(plan)) => return Ok(vec![PermuteSchedule::Blocks(plan)]),
        Ok(None) => Vec::new(),
        Err(reasons) => reasons,
    };
    match rounds::accept(context) {
        Ok(plans) => Ok(plans.into_iter().map(PermuteSchedule::Rounds).collect()),
        Err(Against::Reasons(more)) => {
            reasons.extend(more);
            reasons.dedup();
            Err(Against::Reasons(reasons))
        }
        Err(refusal @ Against::Refusal(_)) => Err(refusal),
    }
}
