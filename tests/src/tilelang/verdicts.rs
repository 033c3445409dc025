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

/// Builds, infers and judges one case.
pub fn judge_case(case: &Case) -> Outcome {
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
    Answer::Rejected(text.join("; "))
}
