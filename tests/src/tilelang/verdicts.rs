//! Golden programs through the front door: built as kernels, inferred, and judged.

use tilewright::diag::Diagnostic;
use tilewright::infer::infer;
use tilewright::ir::Target;
use tilewright::ir::tile::verify;

use super::case::{Case, Class};
use super::inferred::assignment;
use super::judge::judge;
use super::kernel::kernel_of;

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should be; with the register slots of ours and of the reference, where both accept.
    Passed(Option<(i64, i64)>),
    /// Not as it should be.
    Failed(String),
    /// It has what inference does not place yet.
    NotCovered(String),
}

/// Elements of a parameter up to which the search is quick enough for a test.
const LARGEST: i64 = 20_000;

/// Builds, infers and judges one case.
pub fn judge_case(case: &Case) -> Outcome {
    if is_too_large(case) {
        return Outcome::NotCovered("the search takes too long for as many elements".to_string());
    }
    let answer = answer(case);
    let must_accept = match case.verdict.class {
        Class::AcceptsSound | Class::RejectsValid => true,
        Class::AcceptsWrong => case.witness.is_some(),
        Class::AcceptsRacy | Class::Rejects => false,
    };
    match answer {
        Ok(slots) if must_accept || case.verdict.class == Class::AcceptsWrong => Outcome::Passed(
            case.expected.register_slots.filter(|_| case.expected.accepted).map(|theirs| (slots, theirs)),
        ),
        Ok(_) => Outcome::Failed("accepted, and must be rejected".to_string()),
        Err(Answer::Wrong(why)) => Outcome::Failed(why),
        Err(Answer::NotYet(why)) => Outcome::NotCovered(why),
        Err(Answer::Rejected(why)) if must_accept => Outcome::Failed(format!("rejected: {why}")),
        Err(Answer::Rejected(_)) => Outcome::Passed(None),
    }
}

/// Whether the search takes too long for a test.
pub(crate) fn is_too_large(case: &Case) -> bool {
    let largest = case.program.params.iter().map(|param| param.shape.iter().product::<i64>()).max();
    largest.is_some_and(|elements| elements > LARGEST)
}

enum Answer {
    Wrong(String),
    NotYet(String),
    Rejected(String),
}

/// The register slots of an answer that the judge finds nothing wrong with.
fn answer(case: &Case) -> Result<i64, Answer> {
    let kernel = kernel_of(case).map_err(Answer::NotYet)?;
    let verified = verify(kernel, Target::Sm90a).map_err(|found| rejected(&found))?;
    let kernel = verified.kernel();
    let inferred = infer(kernel).map_err(|found| rejected(&found))?;
    let faults = judge(&case.program, &assignment(kernel, &case.program, &inferred));
    match faults.first() {
        None => Ok(inferred.fragments.values().map(|placed| placed.map.slots() as i64).sum()),
        Some(fault) => Err(Answer::Wrong(fault.to_string())),
    }
}

fn rejected(found: &[Diagnostic]) -> Answer {
    let text: Vec<String> = found.iter().map(|finding| format!("{}: {}", finding.code, finding.message)).collect();
    match found.first() {
        // Ops that inference does not place yet, and blocks with a warp that is not full.
        Some(first) if ["I0701", "K0202"].contains(&first.code) => Answer::NotYet(text.join("; ")),
        _ => Answer::Rejected(text.join("; ")),
    }
}
