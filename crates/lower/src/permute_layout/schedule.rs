//! The schedules of all variants.

use tilewright_ir::thread::Stmt;

use super::blocks::BlockPlan;
use super::context::Context;
use super::rounds::RoundPlan;
use super::scheduled::ScheduledPlan;
use super::vectorized::VectorSchedule;
use super::xor::XorPlan;
use crate::builder::Builder;
use crate::refusal::Refusal;
use crate::variant::Schedule;

/// A schedule of `permute_layout`.
pub(crate) enum PermuteSchedule {
    Xor(XorPlan),
    Vectorized(VectorSchedule),
    Blocks(BlockPlan),
    Rounds(RoundPlan),
    Scheduled(ScheduledPlan),
}

impl Schedule<Context> for PermuteSchedule {
    fn summary(&self, context: &Context) -> String {
        match self {
            PermuteSchedule::Xor(s) => s.summary(),
            PermuteSchedule::Vectorized(s) => s.summary(context),
            PermuteSchedule::Blocks(s) => s.summary(),
            PermuteSchedule::Rounds(s) => s.summary(context),
            PermuteSchedule::Scheduled(s) => s.summary(),
        }
    }

    fn build(&self, context: &Context, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        match self {
            PermuteSchedule::Xor(s) => Ok(s.build(context, builder)),
            PermuteSchedule::Vectorized(s) => Ok(s.build(context, builder)),
            PermuteSchedule::Blocks(s) => s.build(context, builder),
            PermuteSchedule::Rounds(s) => s.build(context, builder),
            PermuteSchedule::Scheduled(s) => s.build(context, builder),
        }
    }
}
