//! Choosing among the variants of an op.

use std::sync::Arc;

use tilewright_diag::Diagnostic;
use tilewright_ir::plan::{PlanFacts, Reason, VariantResult};
use tilewright_ir::thread::Stmt;
use tilewright_ir::tile::{Kernel, Op, OpKind};

use crate::builder::Builder;
use crate::conditions::merged;
use crate::measure::measure;
use crate::pipeline::{BULK, CP_ASYNC, TMA};
use crate::refusal::{Against, Refusal};

/// An implementation of an op. `C` is the input that the op's variants share, `S` the type of their schedules.
pub(crate) struct Variant<C, S> {
    /// Its name in plans and for `.variant(..)`.
    pub(crate) name: &'static str,
    /// The schedules, of which the cheapest is taken, or why there is none.
    pub(crate) accept: fn(&C) -> Result<Vec<S>, Against>,
}

/// A schedule of an op: its summary for plans, and the statements that it produces. Error: why they cannot be built.
pub(crate) trait Schedule<C> {
    fn summary(&self, context: &C) -> String;
    fn build(&self, context: &C, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal>;

    /// The statements of an op whose result is not used before the enclosing loop ends; `None` if the op has to be done
    /// as a whole in each iteration.
    fn build_across(&self, _context: &C, _builder: &mut Builder) -> Option<Result<AcrossLoop, Refusal>> {
        None
    }
}

/// An op that is spread over a loop: what is done before it, in each iteration, and after it.
pub(crate) struct AcrossLoop {
    pub(crate) before: Vec<Stmt>,
    pub(crate) within: Vec<Stmt>,
    pub(crate) after: Vec<Stmt>,
}

/// Variants that share one input.
pub(crate) struct VariantList<C: 'static, S: 'static> {
    /// Makes the shared input. Error: an operand that no variant accepts.
    pub(crate) context: fn(&Builder, &Kernel, &Op) -> Result<C, Diagnostic>,
    /// The fewest wavefronts in which the op can be done, for ops whose plans show it.
    pub(crate) floor: fn(&C) -> Option<i64>,
    /// In order of preference: on ties the earlier one is taken.
    pub(crate) variants: &'static [Variant<C, S>],
}

/// A list of variants, whatever the types of their input and schedules.
pub(crate) trait Variants {
    /// The names of all variants.
    fn names(&self) -> Vec<&'static str>;

    /// What the variants offer for an op, in their order; variants that do not exist for this op are left out. Error:
    /// an operand that no variant accepts.
    fn offers<'a>(&self, builder: &Builder, kernel: &'a Kernel, op: &Op) -> Result<Vec<Offer<'a>>, Diagnostic>;
}

/// What a variant offers for an op.
pub(crate) struct Offer<'a> {
    pub(crate) variant: &'static str,
    /// The fewest wavefronts in which the op can be done.
    pub(crate) floor: Option<i64>,
    /// The candidates, of which the cheapest is taken, or why there is none.
    pub(crate) candidates: Result<Vec<Box<dyn Candidate + 'a>>, Against>,
}

/// One way to lower an op: its summary for plans, and its statements. Error: why the statements cannot be built, where
/// that shows only while they are built.
pub(crate) trait Candidate {
    fn summary(&self) -> String;
    fn build(&self, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal>;

    /// As [`Schedule::build_across`].
    fn build_across(&self, _builder: &mut Builder) -> Option<Result<AcrossLoop, Refusal>> {
        None
    }
}

/// The candidate that is taken, and the variants that were considered.
pub(crate) struct Choice<'a> {
    pub(crate) considered: Vec<VariantResult>,
    pub(crate) chosen: &'static str,
    pub(crate) floor: Option<i64>,
    pub(crate) candidate: Box<dyn Candidate + 'a>,
}

/// A schedule with the input of its variant.
struct CandidateSchedule<C, S> {
    context: Arc<C>,
    schedule: S,
}

impl<C, S: Schedule<C>> Candidate for CandidateSchedule<C, S> {
    fn summary(&self) -> String {
        self.schedule.summary(&self.context)
    }

    fn build(&self, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        self.schedule.build(&self.context, builder)
    }

    fn build_across(&self, builder: &mut Builder) -> Option<Result<AcrossLoop, Refusal>> {
        self.schedule.build_across(&self.context, builder)
    }
}

impl<C: 'static, S: Schedule<C> + 'static> Variants for VariantList<C, S> {
    fn names(&self) -> Vec<&'static str> {
        self.variants.iter().map(|variant| variant.name).collect()
    }

    fn offers<'a>(&self, builder: &Builder, kernel: &'a Kernel, op: &Op) -> Result<Vec<Offer<'a>>, Diagnostic> {
        let context = Arc::new((self.context)(builder, kernel, op)?);
        let floor = (self.floor)(&context);
        let mut offers = Vec::with_capacity(self.variants.len());
        for variant in self.variants {
            let candidate = |schedule: S| -> Box<dyn Candidate + 'a> {
                Box::new(CandidateSchedule { context: Arc::clone(&context), schedule })
            };
            let candidates = (variant.accept)(&context).map(|all| all.into_iter().map(candidate).collect());
            offers.push(Offer { variant: variant.name, floor, candidates });
        }
        Ok(offers)
    }
}

/// Evaluates every variant. Takes the forced one, or else the cheapest; on ties the earlier one.
pub(crate) fn choose<'a>(
    lists: &[&'static dyn Variants],
    builder: &mut Builder,
    kernel: &'a Kernel,
    op: &Op,
) -> Result<Choice<'a>, Diagnostic> {
    let mut offers: Vec<Offer<'a>> = Vec::new();
    let mut operand_error = None;
    for list in lists {
        match list.offers(builder, kernel, op) {
            Ok(more) => offers.extend(more),
            Err(error) => operand_error = operand_error.or(Some(error)),
        }
    }
    let forced = op.variant.as_deref();
    if let Some(name) = forced
        && !offers.iter().any(|offer| offer.variant == name)
    {
        return Err(operand_error.unwrap_or_else(|| unknown_variant(name, &offers, kernel, op)));
    }
    let mut asked = Asked { considered: Vec::new(), refusals: Vec::new() };
    let mut best: Option<(PlanFacts, Taken<'a>)> = None;
    for offer in offers {
        let is_eligible = forced.is_none_or(|name| name == offer.variant);
        let Some((facts, taken)) = asked.ask(offer, builder, op) else { continue };
        if is_eligible && best.as_ref().is_none_or(|(least, _)| facts.cost() < least.cost()) {
            best = Some((facts, taken));
        }
    }
    match best {
        Some((_, Taken { variant, floor, candidate })) => {
            Ok(Choice { considered: asked.considered, chosen: variant, floor, candidate })
        }
        None => Err(operand_error.unwrap_or_else(|| asked.refused(forced, kernel, op))),
    }
}

/// The cheapest candidate of a variant.
struct Taken<'a> {
    variant: &'static str,
    floor: Option<i64>,
    candidate: Box<dyn Candidate + 'a>,
}

/// The answers of the variants evaluated so far.
struct Asked {
    considered: Vec<VariantResult>,
    /// For each variant none of whose candidates could be built, the reason.
    refusals: Vec<Refusal>,
}

impl Asked {
    /// The cheapest candidate of a variant. Its cost, or all reasons against the variant, are recorded.
    fn ask<'a>(&mut self, offer: Offer<'a>, builder: &mut Builder, op: &Op) -> Option<(PlanFacts, Taken<'a>)> {
        let Offer { variant, floor, candidates } = offer;
        let candidates = match candidates {
            Ok(candidates) => candidates,
            Err(Against::Reasons(reasons)) if !reasons.is_empty() => {
                self.considered.push(VariantResult { variant, answer: Err(reasons) });
                return None;
            }
            Err(Against::Reasons(_)) => {
                self.refuse(variant, Refusal::from(format!("the variant `{variant}` gives no reason against it")));
                return None;
            }
            Err(Against::Refusal(why)) => {
                self.refuse(variant, why);
                return None;
            }
        };
        let (mut best, mut refusal): (Option<(PlanFacts, Taken<'a>)>, _) = (None, None);
        for candidate in candidates {
            let limit = best.as_ref().map_or(i64::MAX, |(least, _)| least.cost());
            match measured(&*candidate, builder, op.warp.unwrap_or(0), limit) {
                Ok(facts) if best.as_ref().is_none_or(|(least, _)| facts.cost() < least.cost()) => {
                    best = Some((facts, Taken { variant, floor, candidate }));
                }
                Ok(_) => {}
                Err(why) => refusal = refusal.or(Some(why)),
            }
        }
        match (&best, refusal) {
            (Some((facts, _)), _) => self.considered.push(VariantResult { variant, answer: Ok(facts.clone()) }),
            (None, Some(why)) => self.refuse(variant, why),
            (None, None) => {}
        }
        best
    }

    /// Records that a variant accepted the op, but cannot lower it.
    fn refuse(&mut self, variant: &'static str, why: Refusal) {
        self.considered.push(VariantResult { variant, answer: Err(vec![reason(&why)]) });
        self.refusals.push(why);
    }

    /// The error if no eligible variant applies: all reasons of the variants that were considered. If each of them
    /// accepted the op but could not be built, it is the first of these refusals.
    fn refused(self, forced: Option<&str>, kernel: &Kernel, op: &Op) -> Diagnostic {
        if self.considered.len() > self.refusals.len() {
            return refused(&self.considered, forced, kernel, op);
        }
        let not_laid_out = || Refusal::from("none of its operands has a layout");
        let why = self.refusals.into_iter().next().unwrap_or_else(not_laid_out);
        why.diagnostic(&kernel.op_title(op), op.span)
    }
}

/// The cost of an op or loop that is lowered in this way, for the warp that executes it; from `limit` on it may be too
/// low. The statements are built only to be measured; their declarations are removed again.
pub(crate) fn measured(
    candidate: &dyn Candidate,
    builder: &mut Builder,
    warp: i64,
    limit: i64,
) -> Result<PlanFacts, Refusal> {
    let mark = builder.mark();
    let facts = built(candidate, builder, warp, limit).map(|(_, facts)| facts);
    builder.rewind(mark);
    facts
}

/// The statements of an op or loop that is lowered in this way, and their cost; from `limit` on it may be too low.
pub(crate) fn built(
    candidate: &dyn Candidate,
    builder: &mut Builder,
    warp: i64,
    limit: i64,
) -> Result<(Vec<Stmt>, PlanFacts), Refusal> {
    let body = merged(candidate.build(builder)?);
    let facts = measure(&builder.program, &body, warp, candidate.summary(), limit);
    Ok((body, facts))
}

fn reason(why: &Refusal) -> Reason {
    Reason { text: why.text().to_string(), accepted: "other layouts".to_string() }
}

fn unknown_variant(name: &str, known: &[Offer], kernel: &Kernel, op: &Op) -> Diagnostic {
    let in_flight: &[&str] = match op.kind {
        OpKind::CopyAsync => &[CP_ASYNC, BULK, TMA],
        kind if kind.is_atomic() => &[BULK, TMA],
        _ => &[],
    };
    let known: Vec<&str> = known.iter().map(|offer| offer.variant).chain(in_flight.iter().copied()).collect();
    Diagnostic::error("P0401", format!("`{}` has no variant `{name}`", op.kind.info().name))
        .label(op.span, kernel.op_title(op))
        .help(format!("its variants are {}", known.join(", ")))
}

fn refused(considered: &[VariantResult], forced: Option<&str>, kernel: &Kernel, op: &Op) -> Diagnostic {
    let message = match forced {
        Some(name) => format!("the variant `{name}` cannot do this"),
        None => format!("no variant of `{}` can do this", op.kind.info().name),
    };
    let mut finding = Diagnostic::error("P0402", message).label(op.span, kernel.op_title(op));
    for one in considered.iter().filter(|one| forced.is_none_or(|name| name == one.variant)) {
        for reason in one.answer.as_ref().err().into_iter().flatten() {
            finding = finding.note(format!("{}: {}; accepted: {}", one.variant, reason.text, reason.accepted));
        }
    }
    let others: Vec<&str> = considered.iter().filter(|one| one.answer.is_ok()).map(|one| one.variant).collect();
    if others.is_empty() {
        finding
    } else {
        finding.help(format!("leave the choice open; possible here: {}", others.join(", ")))
    }
}
