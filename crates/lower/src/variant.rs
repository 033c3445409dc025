//! Choosing among the variants of an op.

use tilewright_diag::Diagnostic;
use tilewright_ir::plan::{Considered, Facts, Reason};
use tilewright_ir::thread::Stmt;
use tilewright_ir::tile::{Kernel, Op};

use crate::builder::Builder;
use crate::conditions::merged;
use crate::measure::measure;

/// A way to do an op. `C` is what the op's variants look at, `S` the schedules they make.
pub(crate) struct Variant<C, S> {
    /// Its name in plans and for `.variant(..)`.
    pub(crate) name: &'static str,
    /// Schedules of which the cheapest is taken, or all reasons against any.
    pub(crate) accept: fn(&C) -> Result<Vec<S>, Vec<Reason>>,
}

/// What an op's variants share: how a schedule reads in words, and the statements it stands for.
pub(crate) trait Schedule<C> {
    fn summary(&self, context: &C) -> String;
    fn build(&self, context: &C, builder: &mut Builder) -> Vec<Stmt>;
}

pub(crate) struct Choice<S> {
    pub(crate) considered: Vec<Considered>,
    pub(crate) chosen: &'static str,
    pub(crate) schedule: S,
}

/// Asks every variant; takes the forced one, else the cheapest, the earlier on ties.
pub(crate) fn choose<C, S: Schedule<C>>(
    variants: &[Variant<C, S>],
    context: &C,
    builder: &mut Builder,
    kernel: &Kernel,
    op: &Op,
) -> Result<Choice<S>, Diagnostic> {
    let forced = op.variant.as_deref();
    if let Some(name) = forced
        && !variants.iter().any(|v| v.name == name)
    {
        return Err(unknown_variant(name, variants.iter().map(|v| v.name), kernel, op));
    }
    let mut considered = Vec::new();
    let mut best: Option<(i64, &'static str, S)> = None;
    for variant in variants {
        let candidates = match (variant.accept)(context) {
            Ok(candidates) => candidates,
            Err(reasons) => {
                considered.push(Considered { variant: variant.name, answer: Err(reasons) });
                continue;
            }
        };
        let measured = candidates.into_iter().map(|schedule| (facts(&schedule, context, builder, op), schedule));
        let Some((facts, schedule)) = measured.min_by_key(|(facts, _)| facts.cost()) else { continue };
        let eligible = forced.is_none_or(|name| name == variant.name);
        if eligible && best.as_ref().is_none_or(|(cost, _, _)| facts.cost() < *cost) {
            best = Some((facts.cost(), variant.name, schedule));
        }
        considered.push(Considered { variant: variant.name, answer: Ok(facts) });
    }
    match best {
        Some((_, chosen, schedule)) => Ok(Choice { considered, chosen, schedule }),
        None => Err(refused(&considered, forced, kernel, op)),
    }
}

/// Builds the schedule on the side and measures it; what it declared is taken back.
fn facts<C, S: Schedule<C>>(schedule: &S, context: &C, builder: &mut Builder, op: &Op) -> Facts {
    let mark = builder.mark();
    let body = merged(schedule.build(context, builder));
    let facts = measure(&builder.program, &body, op.warp.unwrap_or(0), schedule.summary(context));
    builder.rewind(mark);
    facts
}

fn unknown_variant(name: &str, known: impl Iterator<Item = &'static str>, kernel: &Kernel, op: &Op) -> Diagnostic {
    let known: Vec<&str> = known.collect();
    Diagnostic::error("P0401", format!("`{}` has no variant `{name}`", op.kind.info().name))
        .label(op.span, kernel.op_title(op))
        .help(format!("it has {}", known.join(", ")))
}

fn refused(considered: &[Considered], forced: Option<&str>, kernel: &Kernel, op: &Op) -> Diagnostic {
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
