//! Compares what plans predict with what the virtual GPU counted.

use std::fmt;

use tilewright_compile::Artifact;
use tilewright_diag::Diagnostic;
use tilewright_ir::plan::{AccessCost, MemoryKind, OpPlan};
use tilewright_layout::access;
use tilewright_vgpu::{AccessCount, AccessKind, Report, Space};

/// The passes (wavefronts or sectors) of one op to one memory in one direction, summed over a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpTraffic {
    /// The title of the op, such as `permute_layout(b[s], a[s])`.
    pub title: String,
    /// Shared memory, counted in wavefronts, or global memory, counted in sectors.
    pub memory: MemoryKind,
    /// Whether it reads or writes.
    pub kind: AccessKind,
    /// The passes that the plan predicts.
    pub predicted: u64,
    /// The passes that were counted; fewer if NVRTC fused or removed accesses.
    pub counted: u64,
}

impl fmt::Display for OpTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.kind == AccessKind::Load { "reads" } else { "writes" };
        let OpTraffic { title, memory, predicted, counted, .. } = self;
        write!(f, "{title} {verb}: {} predicted, {counted} counted", memory.counted(predicted))
    }
}

/// The traffic of every op that has any. An error is a defect.
pub fn op_traffic(artifact: &Artifact, report: &Report) -> Result<Vec<OpTraffic>, Diagnostic> {
    let ops: Vec<Option<usize>> = report.accesses.iter().map(|access| op_of(artifact, access)).collect();
    let mut found = Vec::new();
    for (op, plan) in artifact.plans().iter().enumerate() {
        let executions = artifact.value(&plan.executions)?;
        for memory in [MemoryKind::Shared, MemoryKind::Global] {
            for kind in [AccessKind::Load, AccessKind::Store] {
                let predicted = predicted(plan, memory, kind).saturating_mul(executions) as u64;
                let of_op = report.accesses.iter().zip(&ops).filter(|(_, of)| **of == Some(op));
                let counted = counted(memory, kind, of_op.map(|(access, _)| access));
                if predicted > 0 || counted > 0 {
                    found.push(OpTraffic { title: plan.title.clone(), memory, kind, predicted, counted });
                }
            }
        }
    }
    Ok(found)
}

/// Warp instructions executed, except moves between registers: `ptxas` assigns the same register to both sides.
pub fn counted_instructions(report: &Report) -> u64 {
    let is_move = |opcode: &str| opcode == "mov" || opcode.starts_with("mov.");
    let moves: u64 = report.opcodes.iter().filter(|(opcode, _)| is_move(opcode)).map(|(_, (warps, _))| warps).sum();
    report.warp_instructions - moves
}

/// The passes that a plan predicts for one execution of its op.
fn predicted(plan: &OpPlan, memory: MemoryKind, kind: AccessKind) -> i64 {
    let kind = match kind {
        AccessKind::Load => access::AccessKind::Load,
        AccessKind::Store | AccessKind::Atomic => access::AccessKind::Store,
    };
    let accesses = plan.facts().into_iter().flat_map(|facts| &facts.accesses);
    accesses.filter(|a| a.memory == memory && a.kind == kind).map(|a| a.passes).sum()
}

/// The op of an access, by its place among the plans, since several ops may have one title and one line of the user's:
/// that of the line of CUDA, unless the op does not load from there. NVRTC gives a load that it moves to another op
/// the line where it puts it, so such a load belongs to the nearest op that loads from the buffer, or from shared memory.
fn op_of(artifact: &Artifact, access: &AccessCount) -> Option<usize> {
    let here = access.cuda_line.and_then(|line| artifact.source_map().op(line))?;
    let memory = if access.space == Space::Shared { MemoryKind::Shared } else { MemoryKind::Global };
    if access.kind != AccessKind::Load || (access.buffer.is_none() && memory == MemoryKind::Global) {
        return Some(here);
    }
    let is_there = |known: &AccessCost| {
        known.memory == memory && access.buffer.as_ref().is_none_or(|buffer| known.operand == *buffer)
    };
    let loads = |op: &usize| {
        let accesses = artifact.plans()[*op].facts().into_iter().flat_map(|facts| &facts.accesses);
        accesses.filter(|known| known.kind == access::AccessKind::Load).any(is_there)
    };
    let all = (0..artifact.plans().len()).filter(loads);
    Some(all.min_by_key(|op| op.abs_diff(here)).unwrap_or(here))
}

/// The passes of these accesses to one memory in one direction; atomic operations write.
fn counted<'a>(memory: MemoryKind, kind: AccessKind, counts: impl Iterator<Item = &'a AccessCount>) -> u64 {
    let space = if memory == MemoryKind::Shared { Space::Shared } else { Space::Global };
    let passes_of = |a: &AccessCount| if memory == MemoryKind::Shared { a.wavefronts } else { a.sectors };
    let is_of = |access: &&AccessCount| (access.kind == AccessKind::Load) == (kind == AccessKind::Load);
    counts.filter(|access| access.space == space).filter(is_of).map(passes_of).sum()
}
