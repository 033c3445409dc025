//! Reports messages of NVRTC and faults of the virtual GPU at the user's lines.

use tilewright_compile::Artifact;
use tilewright_cuda::{CudaError, LogLine, Severity};
use tilewright_diag::Diagnostic;
use tilewright_vgpu::{Fault, FaultKind, Place, RunError, Space, Unsupported};

use crate::built::{Built, CudaText};
use crate::failure::{Failure, FailureKind};
use crate::lines::{LineMap, op_of_line};

/// The help for a CTA that has reached its instruction limit.
const STEP_LIMIT_HELP: &str = "end the loop, if it is endless; a kernel that needs more instructions gets them with \
                               `run-kernel --max-instructions N`, or in Rust with \
                               `Options::max_instructions_per_thread`";

/// The help for a kernel that writes an input.
const READ_ONLY_HELP: &str = "write to an output or to shared memory; declare a tensor to write to with `k.output`";

/// The help for a store that is declared unique but is not.
const NOT_APART_HELP: &str = "the store is declared unique, but two iterations store to the same element: give them \
                              different indices, add .any_wins() if any of the values will do, or use k.atomic_add";

/// The help for CTAs that execute the same store to one element.
const CTAS_HELP: &str = "CTAs of a grid are unordered: give each CTA its own part of the output; to combine their \
                         results, let each write a row of its own, and add the rows in another kernel";

/// The help for atomic operations of CTAs of which one is atomic among the threads of its CTA only.
const SCOPE_HELP: &str = "the CTAs of a grid change the same element: leave out .scope(..), which makes the operation atomic among \
                          all threads of the GPU, or choose MemoryScope::Gpu";

/// The help for accesses of different CTAs, of which one reads what the other writes.
const ORDER_HELP: &str = "CTAs of a grid are unordered: write in one kernel and read in the next; or let each CTA that has written \
                          count up with k.atomic_add(..).order(MemoryOrder::AcquireRelease).old(..), and only the last one read";

/// The help for a read of an output that nothing has written.
const NO_VALUES_HELP: &str = "outputs have no values before the kernel stores some: store to all of it first, for instance \
                              with k.fill, or read an input instead; one to which CTAs add is a k.accumulator, which \
                              begins at zero";

/// The help for a read of shared memory that nothing has written.
const NOT_STORED_HELP: &str = "store all elements of a tile before they are read, for instance with k.fill or a k.copy of \
                               the whole tile";

/// A line of NVRTC's log as a diagnostic: the CUDA line, and the tile op it came from.
pub(crate) fn log_line(line: &LogLine, artifact: &Artifact, text: &CudaText, edited: Option<&LineMap>) -> Diagnostic {
    let message = format!("NVRTC: {}", line.text);
    let mut finding = match line.severity {
        Severity::Error => nvrtc_rejection(text, message),
        Severity::Warning | Severity::Info | Severity::Remark => Diagnostic::warning("R0602", message),
    };
    let Some(number) = line.line else { return finding };
    let (source, file) = match text {
        CudaText::Generated => (artifact.cuda(), format!("{}.cu", artifact.name())),
        CudaText::Edited { path, text } => (text.as_str(), path.display().to_string()),
    };
    let shown = line_of(source, number);
    finding = finding.note(format!("{file}:{number}: {shown}"));
    match op_of_line(artifact, edited, number) {
        Some((title, span)) => finding.label(span, format!("from {title}")),
        None => finding,
    }
}

/// A line of a text, from 1; nothing for a line that the text does not have, such as 0.
fn line_of(text: &str, number: u32) -> &str {
    let index = (number as usize).checked_sub(1);
    index.and_then(|index| text.lines().nth(index)).unwrap_or("").trim()
}

pub(crate) fn compile_error(
    error: &CudaError,
    artifact: &Artifact,
    text: &CudaText,
    edited: Option<&LineMap>,
) -> Failure {
    match error {
        CudaError::Compile { log, .. } => {
            let errors = log.iter().filter(|line| line.severity == Severity::Error);
            let diagnostics: Vec<Diagnostic> = errors.map(|line| log_line(line, artifact, text, edited)).collect();
            let diagnostics = if diagnostics.is_empty() {
                vec![nvrtc_rejection(text, "NVRTC failed to compile this text".to_string()).note(error.to_string())]
            } else {
                diagnostics
            };
            Failure { kind: FailureKind::BadInput, diagnostics }
        }
        _ => Failure::new(
            FailureKind::Unsupported,
            Diagnostic::error("R0601", "NVRTC cannot be used").note(error.to_string()),
        ),
    }
}

/// The diagnostic for a text that NVRTC rejects, which is a defect of Tilewright unless the user edited it.
fn nvrtc_rejection(text: &CudaText, message: String) -> Diagnostic {
    match text {
        CudaText::Generated => Diagnostic::internal("R0602", message),
        CudaText::Edited { .. } => Diagnostic::error("R0602", message),
    }
}

/// A failed run of the virtual GPU.
pub(crate) fn run_error(error: &RunError, artifact: &Artifact, built: &Built) -> Failure {
    match error {
        RunError::BadLaunch(message) => Failure::new(
            FailureKind::BadInput,
            Diagnostic::error("R0604", format!("the kernel cannot be launched: {message}")),
        ),
        RunError::Unsupported(list) => Failure::new(FailureKind::Unsupported, unsupported(list)),
        RunError::Fault(fault) => Failure::new(FailureKind::Fault, fault_finding(fault, artifact, built)),
    }
}

fn unsupported(list: &[Unsupported]) -> Diagnostic {
    let finding =
        Diagnostic::error("R0606", format!("the virtual GPU does not support {} of the PTX instructions", list.len()));
    list.iter().fold(finding, |finding, item| finding.note(format!("PTX line {}: {}", item.line, item.text)))
}

fn fault_finding(fault: &Fault, artifact: &Artifact, built: &Built) -> Diagnostic {
    let mut finding = match fault.kind {
        FaultKind::ReadOnly => Diagnostic::error("R0614", format!("the kernel writes an input: {}", fault.message)),
        kind => Diagnostic::error("R0605", format!("{}: {}", kind.as_str(), fault.message)),
    };
    finding = label_location(finding, "here", &fault.at, artifact, built);
    if let Some(related) = &fault.related {
        finding = label_location(finding, "the other access", related, artifact, built);
    }
    let [x, y, z] = fault.cta;
    finding = finding.note(format!("CTA ({x},{y},{z}), warp {}, {}", fault.warp, lanes(fault.lanes)));
    if let Some(location) = &fault.location {
        let space = location.space.as_str();
        finding = finding.note(format!(
            "{space} memory `{}`, offset {} B, length {} B",
            location.name, location.offset, location.length
        ));
    }
    for (warps, waiting) in fault.waiting_together() {
        let text = format!("{warps}, {}: waiting for {}", lanes(waiting.lanes), waiting.what);
        finding = label_location(finding.note(text), "waits", &waiting.at, artifact, built);
    }
    match fault.kind {
        FaultKind::StepLimit => finding.help(STEP_LIMIT_HELP),
        FaultKind::ReadOnly => finding.help(READ_ONLY_HELP),
        FaultKind::NotApart => finding.help(NOT_APART_HELP),
        FaultKind::UninitializedRead => match fault.location.as_ref().map(|location| location.space) {
            Some(Space::Global) => finding.help(NO_VALUES_HELP),
            Some(Space::Shared) => finding.help(NOT_STORED_HELP),
            _ => finding,
        },
        FaultKind::Race if is_declared_unique(fault, artifact, built) => finding.help(NOT_APART_HELP),
        FaultKind::Race if is_between_atomics(fault) => finding.help(SCOPE_HELP),
        FaultKind::Race if is_between_ctas_at_one_line(fault) => finding.help(CTAS_HELP),
        FaultKind::Race if fault.is_between_ctas && is_global(fault) => finding.help(ORDER_HELP),
        _ => finding,
    }
}

/// Whether CTAs race with each other at one line of global memory: each of them executes the same statement.
fn is_between_ctas_at_one_line(fault: &Fault) -> bool {
    let line = |place: &Place| place.cuda.as_ref().map(|cuda| cuda.line);
    let is_one_line = |other: &Place| line(other).is_some() && line(other) == line(&fault.at);
    is_global(fault) && fault.is_between_ctas && fault.related.as_ref().is_some_and(is_one_line)
}

fn is_global(fault: &Fault) -> bool {
    fault.location.as_ref().is_some_and(|location| location.space == Space::Global)
}

/// Whether both accesses of a race are atomic operations, of which one is not in the scope of the other.
fn is_between_atomics(fault: &Fault) -> bool {
    let is_name = |word: &str| word.starts_with("atom.") || word.starts_with("red.");
    let is_atomic = |place: &Place| place.ptx.split_whitespace().any(is_name);
    is_atomic(&fault.at) && fault.related.as_ref().is_some_and(is_atomic)
}

/// Whether both accesses of a fault are stores that the kernel declares unique.
fn is_declared_unique(fault: &Fault, artifact: &Artifact, built: &Built) -> bool {
    if built.edited.is_some() {
        return false;
    }
    let unique = artifact.unique_stores();
    let is_unique = |place: &Place| place.cuda.as_ref().is_some_and(|cuda| unique.contains_key(&cuda.line));
    is_unique(&fault.at) && fault.related.as_ref().is_some_and(is_unique)
}

/// Adds an instruction's CUDA line, PTX line and, as a label, the user's line.
fn label_location(finding: Diagnostic, what: &str, place: &Place, artifact: &Artifact, built: &Built) -> Diagnostic {
    let Some(cuda) = &place.cuda else {
        return finding.note(format!("{what}: PTX line {}: {}", place.ptx_line, place.ptx));
    };
    let shown = line_of(&built.cuda, cuda.line);
    let finding =
        finding.note(format!("{what}: CUDA line {}: {shown} (PTX line {}: {})", cuda.line, place.ptx_line, place.ptx));
    match built.op(artifact, cuda.line) {
        Some((title, span)) => finding.label(span, format!("{what}, in {title}")),
        None => finding,
    }
}

/// `lanes 0-3, 8`
fn lanes(mask: u32) -> String {
    let mut parts = Vec::new();
    let mut lane = 0;
    while lane < 32 {
        if mask >> lane & 1 == 0 {
            lane += 1;
            continue;
        }
        let first = lane;
        while lane < 32 && mask >> lane & 1 == 1 {
            lane += 1;
        }
        parts.push(if lane - first == 1 { first.to_string() } else { format!("{first}-{}", lane - 1) });
    }
    let word = if mask.count_ones() == 1 { "lane" } else { "lanes" };
    format!("{word} {}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_has_a_line_0() {
        assert_eq!([0, 1, 2, 3].map(|number| line_of("a\n  b\n", number)), ["", "a", "b", ""]);
    }

    #[test]
    fn lanes_are_shown_as_ranges() {
        assert_eq!([lanes(0xffff_ffff), lanes(1), lanes(0b1_0000_1110)], ["lanes 0-31", "lane 0", "lanes 1-3, 8"]);
    }
}
