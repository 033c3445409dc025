//! The error for kernels that spill registers.

use tilewright_compile::Artifact;
use tilewright_cuda::Resources;
use tilewright_diag::Diagnostic;

/// The most fragments that the error names.
const MOST_TOLD: usize = 3;

/// The error for a kernel that spills registers to memory according to `resources`; `None` for other kernels.
pub fn spill_error(artifact: &Artifact, resources: &Resources) -> Option<Diagnostic> {
    let Resources { registers, spill_store_bytes, spill_load_bytes, stack_bytes, .. } = resources;
    if spill_store_bytes + spill_load_bytes == 0 {
        return None;
    }
    let message = format!(
        "`{}` spills registers: {spill_store_bytes} B stored and {spill_load_bytes} B loaded per thread",
        artifact.name()
    );
    let finding = Diagnostic::error("R0615", message)
        .note(format!("each thread has {registers} registers and {stack_bytes} bytes of stack"));
    let held = artifact.live_fragments().into_iter().take(MOST_TOLD);
    let labelled = held.fold(finding, |finding, held| {
        finding.label(held.span, format!("`{}` takes {} of each thread's registers", held.name, held.registers))
    });
    Some(
        labelled
            .help("share tiles among more threads, use smaller ones, or keep them in shared memory")
            .help("`run-kernel --allow-spills` runs it anyway"),
    )
}
