//! Where a CTA keeps its tiles: shared memory and tensor memory, as plans print them.

use tilewright_diag::counted;
use tilewright_ir::Kernel;
use tilewright_ir::thread::{Memory, Program, TENSOR_COLUMNS};
use tilewright_ir::tile::Space;

/// What shared memory and tensor memory of a CTA hold; `None` if it uses neither.
pub(crate) fn memory_map(kernel: &Kernel, program: &Program) -> Option<String> {
    let (total, most) = (program.shared_bytes(), program.target.shared_bytes());
    let mut lines = Vec::new();
    if total > 0 {
        lines.push(format!("memory of a CTA: {total} of {most} B of shared memory"));
        let held = program.memories.iter().map(|(_, memory)| memory).filter(|memory| memory.shared_bytes() > 0);
        lines.extend(held.map(of_memory));
    }
    let columns = kernel.tensor_columns();
    if columns.taken > 0 {
        lines.push(format!("tensor memory: {} of {TENSOR_COLUMNS} columns", columns.allocated()));
        for (handle, buffer) in kernel.buffers.iter().filter(|(_, buffer)| buffer.space == Space::Tensor) {
            let (stages, width) = (kernel.stages_of(handle), buffer.columns());
            lines.push(format!("  {}: {} of {width} columns", buffer.name, counted(stages, "stage")));
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n") + "\n")
}

/// `  left: 4 stages of 16384 B`
fn of_memory(memory: &Memory) -> String {
    let bytes = memory.stage_elements() * memory.dtype.bytes();
    match memory.stages {
        1 => format!("  {}: {bytes} B", memory.name),
        stages => format!("  {}: {} of {bytes} B", memory.name, counted(stages, "stage")),
    }
}
