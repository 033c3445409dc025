//! Properties of all random programs.
//!
//! - A program in which iterations write the same element is refused.
//! - An accepted program passes the judge, and keeps the layouts that it specifies.
//! - Refusing a valid program that specifies no layouts is an error if valid layouts exist. Nearly always, whole
//!   fragments on every thread are such layouts, and the judge decides whether they are.
//! - Nothing panics.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tilewright::diag::Diagnostic;
use tilewright::infer::infer;
use tilewright::ir::tile::verify;
use tilewright::ir::{Kernel, Target};

use super::super::assignment::{Assignment, LoopPlacement, Placement, nests};
use super::super::boxes::size;
use super::super::case::{Case, Class, Expected, Verdict};
use super::super::inferred::assignment;
use super::super::judge::judge;
use super::super::kernel::kernel_of;
use super::super::program::{Buffer, Program, Scope};
use super::super::races::races;
use crate::fuzz::said;

/// The outcome of a program that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Accepted,
    /// Refused, with the code of the first diagnostic.
    Refused(&'static str, Why),
}

/// Why it is correct to refuse a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// Several iterations write the same element.
    Racy,
    /// It specifies layouts, which may not be valid.
    LaidOut,
    /// Even whole fragments on every thread are not valid.
    Impossible,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// The kind of failure, in a few words shared by many programs.
    pub(crate) class: String,
    pub(crate) what: String,
}

/// Checks a program. A panic is a failure.
pub(crate) fn check(program: &Program) -> Result<Ended, Wrong> {
    catch_unwind(AssertUnwindSafe(|| checked(program))).unwrap_or_else(|panic| {
        let what = said(panic.as_ref());
        Err(Wrong { class: "a panic".to_string(), what })
    })
}

fn checked(program: &Program) -> Result<Ended, Wrong> {
    let case = case("random", program.clone());
    let kernel = kernel_of(&case).map_err(|why| wrong("the program cannot be built", why))?;
    let race = races(program).into_iter().next();
    match (answer(kernel, program), race) {
        (Ok(_), Some(race)) => Err(wrong("accepted, but racy", race)),
        (Ok(answer), None) => right(program, &answer).map(|()| Ended::Accepted),
        (Err(found), race) => {
            let Some(first) = found.first() else { return Err(wrong("refused without a reason", "")) };
            let why = match race {
                Some(_) => Why::Racy,
                None if !program.layouts.is_empty() || !program.loop_layouts.is_empty() => Why::LaidOut,
                None if judge(program, &everywhere(program)).is_empty() => {
                    return Err(wrong(&format!("{}, but valid", first.code), told(first)));
                }
                None => Why::Impossible,
            };
            Ok(Ended::Refused(first.code, why))
        }
    }
}

fn wrong(class: &str, what: impl ToString) -> Wrong {
    Wrong { class: class.to_string(), what: what.to_string() }
}

fn told(finding: &Diagnostic) -> String {
    let notes = finding.notes.iter().map(|note| format!("; {note}"));
    format!("{finding}{}", notes.collect::<String>())
}

fn answer(kernel: Kernel, program: &Program) -> Result<Assignment, Vec<Diagnostic>> {
    let verified = verify(kernel, Target::Sm90a)?;
    let kernel = verified.kernel();
    let inferred = infer(kernel)?;
    Ok(assignment(kernel, program, &inferred))
}

/// Checks that an answer passes the judge and has the layouts that the program specifies.
fn right(program: &Program, answer: &Assignment) -> Result<(), Wrong> {
    if let Some(fault) = judge(program, answer).first() {
        let debug = format!("{fault:?}");
        let kind = debug.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        return Err(wrong(&format!("the judge finds {kind}"), fault));
    }
    for (name, layout) in &program.layouts {
        let asked = Placement::of_layout(layout).map_err(|why| wrong("a layout without values", why))?;
        if answer.buffers.get(name) != Some(&asked) {
            return Err(wrong("a specified layout is not kept", name));
        }
    }
    for (nest, placed) in nests(&program.body).into_iter().zip(&answer.loops) {
        let Some(layout) = nest.loop_layout.as_ref().and_then(|name| program.loop_layouts.get(name)) else { continue };
        let asked = LoopPlacement::of_layout(nest, layout).map_err(|why| wrong("a layout without values", why))?;
        if placed.executors != asked.executors {
            return Err(wrong("a specified layout of a loop is not kept", nest.vars.join(", ")));
        }
    }
    Ok(())
}

/// Every thread holds all elements of all fragments. Loops that write a fragment then run on all threads; for the
/// others, one thread is enough.
fn everywhere(program: &Program) -> Assignment {
    let whole = |buffer: &Buffer| {
        let owners = |element| (0..program.threads).map(|thread| (thread, element)).collect();
        Placement { shape: buffer.shape.clone(), owners: (0..size(&buffer.shape)).map(owners).collect() }
    };
    let fragments = program.buffers.iter().filter(|buffer| buffer.scope == Scope::Fragment);
    Assignment { buffers: fragments.map(|buffer| (buffer.name.clone(), whole(buffer))).collect(), loops: Vec::new() }
}

/// A program as a case that must be accepted.
pub(crate) fn case(name: &str, program: Program) -> Case {
    let expected = Expected {
        stage: String::new(),
        accepted: false,
        error: None,
        buffers: BTreeMap::new(),
        shared: BTreeMap::new(),
        loops: Vec::new(),
        accesses: Vec::new(),
        register_slots: None,
    };
    Case {
        name: name.to_string(),
        family: "random".to_string(),
        note: String::new(),
        arch: "sm_90".to_string(),
        program,
        expected,
        verdict: Verdict { class: Class::AcceptsSound, problems: Vec::new(), replicated_witness: None },
        witness: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::expr::{Index, Load, Value};
    use super::super::super::program::{Element, Op, Parallel, Store};
    use super::super::build::{copy, program, whole};
    use super::super::sketch::{Arrangement, FragmentSketch, Kind, Sketch, Start};
    use super::*;

    fn sketch(laid_out: Option<(usize, Arrangement)>) -> Program {
        let fragment = FragmentSketch { shape: vec![6, 10], kind: Kind::F32, start: Start::Load, is_stored: true };
        program(&Sketch { threads: 32, fragments: vec![fragment], steps: Vec::new(), around: None, laid_out })
    }

    fn over(extent: i64, to: Index) -> Op {
        let i = || Index::Variable("i".to_string());
        let value = Value::Load(Load { buffer: "a".to_string(), index: vec![i(), Index::Integer(0)] });
        let store = Store { buffer: "a".to_string(), index: vec![to, Index::Integer(1)], value };
        let (vars, body) = (vec!["i".to_string()], vec![Element::Store(store)]);
        Op::Parallel(Parallel { vars, extents: vec![extent], body, loop_layout: None, coalesced_width: None })
    }

    #[test]
    fn what_moves_is_accepted() {
        assert_eq!(check(&sketch(None)), Ok(Ended::Accepted));
        assert_eq!(check(&sketch(Some((0, Arrangement::Whole)))), Ok(Ended::Accepted));
    }

    #[test]
    fn layouts_outside_of_the_block_and_races_are_refused() {
        let outside = check(&sketch(Some((0, Arrangement::Outside))));
        assert!(matches!(outside, Ok(Ended::Refused(_, Why::LaidOut))), "{outside:?}");
        let mut racy = sketch(None);
        racy.body.insert(1, over(6, Index::Integer(3)));
        assert_eq!(check(&racy), Ok(Ended::Refused("K0237", Why::Racy)));
    }

    #[test]
    fn what_leaves_a_fragment_is_impossible() {
        let mut outside = sketch(None);
        outside.body.insert(1, over(7, Index::Variable("i".to_string())));
        assert_eq!(check(&outside), Ok(Ended::Refused("K0216", Why::Impossible)));
    }

    #[test]
    fn an_answer_elsewhere_is_wrong() {
        let moved = sketch(None);
        let mut answer = everywhere(&moved);
        assert_eq!(right(&moved, &answer), Ok(()));
        for placement in answer.buffers.values_mut() {
            placement.owners[0] = vec![(32, 0)];
        }
        assert_eq!(right(&moved, &answer).unwrap_err().class, "the judge finds OutsideBlock");
        let asked = sketch(Some((0, Arrangement::Twice)));
        assert_eq!(right(&asked, &everywhere(&asked)).unwrap_err().class, "a specified layout is not kept");
    }

    #[test]
    fn parameters_of_a_sketch_are_copied() {
        let program = sketch(None);
        assert_eq!(program.body, [copy(whole("a"), whole("I1")), copy(whole("O2"), whole("a"))]);
    }
}
