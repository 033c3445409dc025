//! Plan facts: what lowering decided for each tile op and why. `run-kernel`, `emit --stage plan`, pictures and tests
//! read them; code generation does not.

use std::fmt;

use tilewright_diag::{Span, counted};
use tilewright_expr::Expr;
use tilewright_layout::access::AccessKind;
use tilewright_layout::weights::WEIGHTS;

use crate::arena::Handle;
use crate::tile::Parallel;

/// Why a variant does not accept an op, in the user's terms, and what it would accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Why the op is not accepted.
    pub text: String,
    /// What would be accepted.
    pub accepted: String,
}

impl Reason {
    /// A reason, and what would be accepted.
    pub fn new(text: impl Into<String>, accepted: impl Into<String>) -> Reason {
        Reason { text: text.into(), accepted: accepted.into() }
    }
}

/// Memory accesses of one kind in a plan: `count` per warp, each of the same cost.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessCost {
    /// Whether it reads or writes.
    pub kind: AccessKind,
    /// The name of the memory: that of a buffer, or of a table.
    pub operand: String,
    /// Shared or global memory.
    pub memory: MemoryKind,
    /// Bytes per lane.
    pub width: i64,
    /// Accesses of one warp in the op.
    pub count: i64,
    /// Wavefronts (shared) or sectors (global) of all `count` accesses together.
    pub passes: i64,
    /// The fewest passes in which as many bytes could be moved.
    pub ideal: i64,
    /// Bytes moved by all `count` accesses together.
    pub bytes: i64,
}

/// Which memory an access touches; this determines the unit of its passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Shared memory: passes are wavefronts.
    Shared,
    /// Global memory: passes are 32-byte sectors.
    Global,
}

impl MemoryKind {
    /// The unit of its passes.
    pub fn passes(self) -> &'static str {
        match self {
            MemoryKind::Shared => "wavefronts",
            MemoryKind::Global => "sectors",
        }
    }

    /// A number of its passes: `1 wavefront`, `4 sectors`.
    pub fn counted(self, passes: impl fmt::Display) -> String {
        match self {
            MemoryKind::Shared => counted(passes, "wavefront"),
            MemoryKind::Global => counted(passes, "sector"),
        }
    }
}

/// What a variant would do, and its predicted cost for one warp (the busiest).
#[derive(Clone, Debug, PartialEq)]
pub struct PlanFacts {
    /// The choice in words: `4 per lane, k = 2 (shift 3, mask 3)`.
    pub summary: String,
    /// Memory accesses.
    pub accesses: Vec<AccessCost>,
    /// Instructions of one lane: accesses, synchronisation, address arithmetic.
    pub instructions: i64,
    /// How many of them are shuffles, each of which moves 128 bytes through the banks of shared memory.
    pub shuffles: i64,
    /// 32-bit registers that hold data.
    pub registers: i64,
}

impl PlanFacts {
    /// What takes so many instructions, and accesses no memory.
    pub fn without_accesses(summary: impl Into<String>, instructions: i64) -> PlanFacts {
        PlanFacts { summary: summary.into(), accesses: Vec::new(), instructions, shuffles: 0, registers: 0 }
    }

    /// The cost by which variants are compared, in the unit of [`WEIGHTS`]: `16*(wavefronts + sectors + shuffles) +
    /// 2*instructions + registers/4`, where address arithmetic and table loads count among the instructions.
    pub fn cost(&self) -> i64 {
        let passes: i64 = self.accesses.iter().map(|access| access.passes).sum();
        let shared = (passes + self.shuffles).saturating_mul(WEIGHTS.pass);
        let issued = self.instructions.saturating_mul(WEIGHTS.instruction);
        shared.saturating_add(issued).saturating_add(self.registers / WEIGHTS.registers_of_an_op)
    }
}

/// A variant that was considered for an op, with its plan or the reasons against it.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantResult {
    /// The variant's name.
    pub variant: &'static str,
    /// Its plan, or all reasons why it does not accept the op.
    pub answer: Result<PlanFacts, Vec<Reason>>,
}

/// A barrier that lowering inserted before an op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// `__syncwarp` or `__syncthreads`, with the waits and fences before it, and whether it stands before the loop around the op.
    pub what: String,
    /// Which two ops it orders, and why.
    pub reason: String,
}

/// Everything decided for one op.
#[derive(Clone, Debug, PartialEq)]
pub struct OpPlan {
    /// The op as text: `permute_layout(b[s], a[s])`.
    pub title: String,
    /// Where the user wrote it.
    pub span: Span,
    /// How often a launch executes it: iterations of the enclosing loops, times CTAs, times participating warps.
    pub executions: Expr,
    /// All variants of the op, in the order in which they are listed.
    pub considered: Vec<VariantResult>,
    /// The parallel loop, if it is one.
    pub parallel: Option<Handle<Parallel>>,
    /// The variant that was chosen.
    pub chosen: &'static str,
    /// Whether the user forced it.
    pub forced: bool,
    /// The fewest wavefronts per phase in which the tile could be moved; `None` for ops where this is not computed.
    pub floor: Option<i64>,
    /// The barrier before the op, if one is needed.
    pub barriers: Vec<Barrier>,
}

impl OpPlan {
    /// A plan with this variant, for which none was compared with others.
    pub fn new(title: String, span: Span, executions: Expr, chosen: &'static str) -> OpPlan {
        let (considered, barriers) = (Vec::new(), Vec::new());
        OpPlan { title, span, executions, considered, parallel: None, chosen, forced: false, floor: None, barriers }
    }

    /// The facts of the variant that was chosen.
    pub fn facts(&self) -> Option<&PlanFacts> {
        self.considered.iter().find(|c| c.variant == self.chosen).and_then(|c| c.answer.as_ref().ok())
    }
}

impl AccessCost {
    /// What it does: `read a`, `write b`.
    pub fn what(&self) -> String {
        let verb = match self.kind {
            AccessKind::Load => "read",
            AccessKind::Store => "write",
        };
        format!("{verb} {}", self.operand)
    }
}

impl fmt::Display for AccessCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AccessCost { width, count, ideal, .. } = self;
        let (what, passes) = (self.what(), self.memory.counted(self.passes));
        write!(f, "{what}: {count} x {width} B, {passes} (ideal {ideal})")
    }
}

impl fmt::Display for OpPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  // {}", self.title, self.span)?;
        if let Some(floor) = self.floor {
            writeln!(f, "  floor of the tile: {} per phase", MemoryKind::Shared.counted(floor))?;
        }
        for barrier in &self.barriers {
            writeln!(f, "  {}: {}", barrier.what, barrier.reason)?;
        }
        for considered in &self.considered {
            let taken = considered.variant == self.chosen;
            let mark = if taken { "*" } else { " " };
            match &considered.answer {
                Ok(facts) => {
                    let forced = if taken && self.forced { ", forced" } else { "" };
                    writeln!(f, "{mark} {}: cost {}{forced}; {}", considered.variant, facts.cost(), facts.summary)?;
                    for access in &facts.accesses {
                        writeln!(f, "      {access}")?;
                    }
                    let instructions = counted(facts.instructions, "instruction");
                    let shuffles = match facts.shuffles {
                        0 => String::new(),
                        shuffles => format!(" ({})", counted(shuffles, "shuffle")),
                    };
                    let registers = counted(facts.registers, "register");
                    writeln!(f, "      {instructions}{shuffles}, {registers}")?;
                }
                Err(reasons) => {
                    writeln!(f, "{mark} {}: not possible", considered.variant)?;
                    for reason in reasons {
                        writeln!(f, "      {}; accepted: {}", reason.text, reason.accepted)?;
                    }
                }
            }
        }
        Ok(())
    }
}
