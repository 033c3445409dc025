//! `warp_scheduled`: accepts any bijection. The elements that move in one step are scheduled so that there are as few
//! bank conflicts as possible; addresses are an expression of lane and step where one fits, else offsets from a table.

use tilewright_diag::counted;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::Stmt;

use super::banks::inside_a_word;
use super::blocks::{BlockPlan, LinearOperands, Widths};
use super::context::{Context, MOST_REGISTERS};
use super::listed::Listed;
use super::offsets::OffsetPlan;
use super::reasons::{collision, over_an_edge, unknown_strides};
use super::rotation::RotationPlan;
use super::steps::Steps;
use crate::builder::Builder;
use crate::refusal::{Against, Refusal};

/// The most steps; all are unrolled.
const MOST_STEPS: i64 = 2048;

/// A schedule and the form of its addresses.
pub(crate) struct ScheduledPlan {
    form: AddressForm,
    /// The steps and wavefronts of the schedule, as text.
    quality: String,
}

enum AddressForm {
    /// Every bit of the element's index flips fixed bits of the address.
    Linear(BlockPlan),
    /// Lanes take their elements in rotated order.
    Rotated(RotationPlan),
    /// Every offset is listed.
    Offsets(OffsetPlan),
}

pub(crate) fn accept(context: &Context) -> Result<ScheduledPlan, Against> {
    let steps = (context.src.placed.size() + 31) / 32;
    if let Some(reason) = too_large(context, steps) {
        return Err(Against::Reasons(vec![reason]));
    }
    let (mut reasons, mut found) = (Vec::new(), Vec::new());
    for operand in [&context.src, &context.dst] {
        reasons.extend(collision(&operand.title, operand.placed.collision()));
        match Listed::of(operand) {
            Ok(listed) => {
                reasons.extend(inside_a_word(operand, &listed));
                found.push(listed);
            }
            Err(reason) => reasons.push(reason),
        }
    }
    match <[Listed; 2]>::try_from(found) {
        Ok([src, dst]) if reasons.is_empty() => plan(context, src, dst),
        _ => Err(Against::Reasons(reasons)),
    }
}

/// The first form that fits, in the order of the cost of addresses.
fn plan(context: &Context, src: Listed, dst: Listed) -> Result<ScheduledPlan, Against> {
    let bytes = context.src.dtype.bytes();
    let per_lane = (context.src.placed.size() + 31) / 32;
    let even =
        |form| ScheduledPlan { form, quality: format!("even: {} without bank conflicts", counted(per_lane, "step")) };
    let linear = LinearOperands::of(context).ok().and_then(|pair| pair.plan(Widths { src: bytes, dst: bytes }));
    if let Some(plan) = linear {
        return Ok(even(AddressForm::Linear(plan)));
    }
    let over: Vec<Reason> = [&context.src, &context.dst]
        .into_iter()
        .filter(|operand| !operand.is_inside())
        .map(|operand| over_an_edge(&operand.title))
        .collect();
    if !over.is_empty() {
        return Err(Against::Reasons(over));
    }
    let unknown = [(&src, &context.src), (&dst, &context.dst)].into_iter().filter(|(listed, _)| !listed.is_known());
    let unknown: Vec<Reason> = unknown.map(|(_, operand)| unknown_strides(&operand.title)).collect();
    if !unknown.is_empty() {
        return Err(Against::Reasons(unknown));
    }
    if let Some(plan) = RotationPlan::find(context)? {
        return Ok(even(AddressForm::Rotated(plan)));
    }
    let steps = Steps::of(bytes, &src.positions, &dst.positions)?;
    let quality = steps.quality();
    let plan = OffsetPlan::new(context, steps, src, dst)?;
    Ok(ScheduledPlan { form: AddressForm::Offsets(plan), quality })
}

fn too_large(context: &Context, steps: i64) -> Option<Reason> {
    let elements = context.src.placed.size();
    let registers = steps * context.registers_of_element();
    if context.may_alias && registers > MOST_REGISTERS {
        return Some(Reason {
            text: format!(
                "{elements} elements take {registers} registers of each lane, and all are read before any is written, \
                 since the operands may share storage"
            ),
            accepted: format!("up to {MOST_REGISTERS} registers, or operands in two shared buffers"),
        });
    }
    (steps > MOST_STEPS).then(|| Reason {
        text: format!("{elements} elements take {steps} steps"),
        accepted: format!("up to {MOST_STEPS} steps, since they are unrolled"),
    })
}

impl ScheduledPlan {
    pub(crate) fn summary(&self) -> String {
        let addresses = match &self.form {
            AddressForm::Linear(_) => "addresses by exclusive or".to_string(),
            AddressForm::Rotated(plan) => plan.summary(),
            AddressForm::Offsets(plan) => plan.summary(),
        };
        format!("{}; {addresses}", self.quality)
    }

    pub(crate) fn build(&self, context: &Context, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        match &self.form {
            AddressForm::Linear(plan) => plan.build(context, builder),
            AddressForm::Rotated(plan) => Ok(plan.build(context, builder)),
            AddressForm::Offsets(plan) => Ok(plan.build(context, builder)),
        }
    }
}
