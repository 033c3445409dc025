//! Golden programs through the public API: built as kernels, inferred, and checked by the judge.

use std::collections::BTreeSet;

use tilewright::compile::{Options, compile};
use tilewright::diag::Diagnostic;
use tilewright::infer::infer;
use tilewright::ir::tile::verify;
use tilewright::ir::{Kernel, Target};

use super::case::{Case, Class};
use super::inferred::assignment;
use super::judge::judge;
use super::kernel::kernel_of;
use super::quality::{Comparison, worse_than_witness};

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As expected; with a comparison of costs, if the reference also accepts and is correct.
    Passed(Option<Comparison>),
    /// Not as expected.
    Failed(String),
    /// It uses a feature that inference does not support yet.
    NotCovered(String),
}

/// Builds, infers and checks one case.
pub fn judge_case(case: &Case) -> Outcome {
    let must_accept = match case.verdict.class {
        Class::AcceptsSound | Class::RejectsValid => true,
        Class::AcceptsWrong => case.witness.is_some(),
        Class::AcceptsRacy | Class::Rejects => false,
    };
    match answer(case) {
        Ok(comparison) if must_accept || case.verdict.class == Class::AcceptsWrong => Outcome::Passed(comparison),
        Ok(_) => Outcome::Failed("accepted, but must be rejected".to_string()),
        Err(Answer::Wrong(why)) => Outcome::Failed(why),
        Err(Answer::NotYet(why)) => Outcome::NotCovered(why),
        Err(Answer::Rejected { why, .. }) if must_accept => Outcome::Failed(format!("rejected: {why}")),
        Err(Answer::Rejected { why, unclear: Some(unclear) }) => {
            Outcome::Failed(format!("rejected, but {unclear}: {why}"))
        }
        Err(Answer::Rejected { unclear: None, .. }) => Outcome::Passed(None),
    }
}

enum Answer {
    Wrong(String),
    NotYet(String),
    Rejected {
        why: String,
        /// What the diagnostics lack.
        unclear: Option<String>,
    },
}

/// Compares the costs of the answer and of the reference assignment. `None` if either is missing. Error: an answer that
/// has a fault, or that costs more than the reference.
fn answer(case: &Case) -> Result<Option<Comparison>, Answer> {
    let kernel = kernel_of(case).map_err(Answer::NotYet)?;
    let verified = verify(kernel.clone(), Target::Sm90a).map_err(|found| rejected(&kernel, &found))?;
    let kernel = verified.kernel();
    let inferred = infer(kernel).map_err(|found| rejected(kernel, &found))?;
    let answer = assignment(kernel, &case.program, &inferred);
    if let Some(fault) = judge(&case.program, &answer).first() {
        return Err(Answer::Wrong(fault.to_string()));
    }
    worse_than_witness(case, &answer).map_err(Answer::Wrong)?;
    let artifact = compile(kernel.clone(), &Options::new(Target::Sm90a));
    let plans = artifact.as_ref().map_or(&[][..], |artifact| artifact.plans());
    Ok(Comparison::of(case, &answer, &inferred, plans))
}

fn rejected(kernel: &Kernel, found: &[Diagnostic]) -> Answer {
    let text: Vec<String> = found.iter().map(|finding| format!("{}: {}", finding.code, finding.message)).collect();
    let unclear = found.iter().find_map(|finding| unclear(kernel, finding));
    let unclear = unclear.or_else(|| found.is_empty().then(|| "there is no diagnostic".to_string()));
    Answer::Rejected { why: text.join("; "), unclear }
}

/// What a diagnostic lacks: it must have a line and name a buffer or an op.
fn unclear(kernel: &Kernel, finding: &Diagnostic) -> Option<String> {
    if !finding.labels.iter().any(|label| !label.span.file.is_empty() && label.span.line > 0) {
        return Some(format!("{} has no line", finding.code));
    }
    let buffers = kernel.buffers.iter().map(|(_, buffer)| buffer.name.as_str());
    let ops = kernel.ops.iter().map(|(_, op)| op.kind.info().name);
    let names: BTreeSet<&str> = buffers.chain(ops).chain(["parallel"]).collect();
    let labels = finding.labels.iter().map(|label| &label.text);
    let texts = std::iter::once(&finding.message).chain(labels).chain(&finding.notes);
    // Names are in backticks.
    let quoted = texts.flat_map(|text| text.split('`').skip(1).step_by(2));
    let mut words = quoted.flat_map(|quoted| quoted.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let is_named = words.any(|word| names.contains(word));
    (!is_named).then(|| format!("{} names no buffer and no op", finding.code))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tilewright::diag::Span;

    use super::super::read_case;
    use super::*;

    fn kernel(name: &str) -> Kernel {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/tilelang"));
        let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        kernel_of(&read_case(&text).unwrap()).unwrap()
    }

    #[test]
    fn a_finding_has_a_line_and_a_name() {
        let kernel = kernel("rej_mod_write_checked");
        let unclear = |finding: Diagnostic| unclear(&kernel, &finding);
        let finding = |message: &str| Diagnostic::error("K0237", message).label(Span::here(), "here");
        assert_eq!(unclear(finding("two iterations store through `b[i % 32]`")), None);
        assert_eq!(unclear(finding("`parallel i`: nothing fits")), None);
        let nameless = finding("two iterations of b store to one element `i`");
        assert_eq!(unclear(nameless).unwrap(), "K0237 names no buffer and no op");
        assert_eq!(unclear(Diagnostic::error("K0237", "`b`")).unwrap(), "K0237 has no line");
    }
}
