//! Compares what plans predict with what the virtual GPU counted.

use std::fmt;

use tilewright_compile::Artifact;
use tilewright_ir::plan::{MemoryKind, OpPlan};
use tilewright_layout::access;
use tilewright_vgpu::{AccessCount, AccessKind, Report, Space};

/// The passes (wavefronts or sectors) of one op to one memory in one direction, summed over a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpPasses {
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

impl fmt::Display for OpPasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.kind == AccessKind::Load { "reads" } else { "writes" };
        let OpPasses { title, memory, predicted, counted, .. } = self;
        write!(f, "{title} {verb}: {} predicted, {counted} counted", memory.counted(predicted))
    }
}

/// The passes of every op that has any.
pub fn passes(artifact: &Artifact, report: &Report) -> Vec<OpPasses> {
    let mut found = Vec::new();
    for plan in artifact.plans() {
        for memory in [MemoryKind::Shared, MemoryKind::Global] {
            for kind in [AccessKind::Load, AccessKind::Store] {
                let predicted = predicted(artifact, plan, memory, kind);
                let counted = counted(artifact, plan, memory, kind, &report.accesses);
                if predicted + counted > 0 {
                    found.push(OpPasses { title: plan.title.clone(), memory, kind, predicted, counted });
                }
            }
        }
    }
    found
}

/// Warp instructions executed, except moves between registers: `ptxas` assigns the same register to both sides.
pub fn counted_instructions(report: &Report) -> u64 {
    let is_move = |opcode: &str| opcode == "mov" || opcode.starts_with("mov.");
    let moves: u64 = report.opcodes.iter().filter(|(opcode, _)| is_move(opcode)).map(|(_, (warps, _))| warps).sum();
    report.warp_instructions - moves
}

fn predicted(artifact: &Artifact, plan: &OpPlan, memory: MemoryKind, kind: AccessKind) -> u64 {
    let kind = match kind {
        AccessKind::Load => access::AccessKind::Load,
        AccessKind::Store | AccessKind::Atomic => access::AccessKind::Store,
    };
    let accesses = plan.facts().into_iter().flat_map(|facts| &facts.accesses);
    let once: i64 = accesses.filter(|a| a.memory == memory && a.kind == kind).map(|a| a.passes).sum();
    once.saturating_mul(artifact.value(&plan.executions)) as u64
}

fn counted(artifact: &Artifact, plan: &OpPlan, memory: MemoryKind, kind: AccessKind, counts: &[AccessCount]) -> u64 {
    let space = if memory == MemoryKind::Shared { Space::Shared } else { Space::Global };
    let of_op = |a: &&AccessCount| {
        let origin = a.cuda_line.and_then(|line| artifact.source_map().origin(line));
        a.space == space && a.kind == kind && origin.is_some_and(|o| o.span == plan.span && o.title == plan.title)
    };
    let passes_of = |a: &AccessCount| if memory == MemoryKind::Shared { a.wavefronts } else { a.sectors };
    counts.iter().filter(of_op).map(passes_of).sum()
}
