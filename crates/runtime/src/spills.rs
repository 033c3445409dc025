//! Registers that did not suffice.

use tilewright_compile::Artifact;
use tilewright_cuda::Resources;
use tilewright_diag::Diagnostic;

/// Fragments that are named, at most.
const MOST_TOLD: usize = 3;

/// The error for a kernel of which NVRTC keeps registers in memory, as it says in `resources`; `None` for other kernels.
pub fn spills(artifact: &Artifact, resources: &Resources) -> Option<Diagnostic> {
    let Resources { registers, spill_store_bytes, spill_load_bytes, stack_bytes, .. } = resources;
    if spill_store_bytes + spill_load_bytes == 0 {
        return None;
    }
    let message = format!(
        "`{}` spills: each thread stores {spill_store_bytes} and loads {spill_load_bytes} bytes of registers in memory",
        artifact.name()
    );
    let finding = Diagnostic::error("R0615", message)
        .note(format!("each thread has {registers} registers, and {stack_bytes} bytes of stack"));
    let held = artifact.held().into_iter().take(MOST_TOLD);
    let labelled = held.fold(finding, |finding, held| {
        finding.label(held.span, format!("`{}` takes {} registers of each thread", held.name, held.registers))
    });
    Some(
        labelled
            .help("share tiles among more threads, take smaller ones, or keep them in shared memory")
            .help("`run-kernel --allow-spills` runs it as it is"),
    )
}
