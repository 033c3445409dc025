//! A decoded kernel: instructions with their source locations, and the storage that the kernel needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fault::{CudaLine, Place, Unsupported};
use crate::float::Format;
use crate::isa::{Space, align_up};
use crate::op::{Guard, Op, Reg};
use crate::ptx::ast::Loc;

/// A decoded instruction: what the scheduler reads at every step.
#[derive(Debug)]
pub(crate) struct Inst {
    pub(crate) guard: Option<Guard>,
    pub(crate) op: Op,
    /// Whether it changes what other threads may observe (see [`Op::may_change_others`]).
    pub(crate) changes: bool,
}

impl Inst {
    pub(crate) fn new(guard: Option<Guard>, op: Op) -> Inst {
        let changes = op.may_change_others();
        Inst { guard, op, changes }
    }
}

/// Source information of an instruction, which only reports and faults read.
#[derive(Clone, Debug)]
pub(crate) struct InstInfo {
    /// 1-based PTX line.
    pub(crate) line: u32,
    /// The `.loc` in effect, if there is one.
    pub(crate) loc: Option<Loc>,
    pub(crate) opcode: String,
    /// The instruction as written, with white space normalized.
    pub(crate) text: String,
    /// Whether it continues the instruction before it: some are several operations.
    pub(crate) continues: bool,
}

/// An operand that is traced.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    /// As written.
    pub(crate) name: String,
    pub(crate) place: OperandPlace,
}

/// Where the value of an operand is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OperandPlace {
    Register {
        index: Reg,
        bits: u32,
        kind: NumberKind,
    },
    Predicate(u32),
    /// In a generic address space that is named shared too, the address may be one of the shared space.
    Address {
        space: Space,
        may_be_shared: bool,
        base: Reg,
        offset: i64,
    },
    Variable {
        space: Space,
        address: u64,
    },
}

/// How the bits of a register are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberKind {
    Bits,
    Signed,
    Half(Format),
    Single,
    Double,
}

/// A dimension of the grid or of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Axis {
    X,
    Y,
    Z,
}

impl Axis {
    /// The element of an array with one element for each axis.
    pub(crate) fn of(self, values: [u32; 3]) -> u32 {
        let [x, y, z] = values;
        match self {
            Axis::X => x,
            Axis::Y => y,
            Axis::Z => z,
        }
    }
}

/// The value of a register that no instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Preset {
    Value(u64),
    /// Address of the dynamic shared memory, in the shared space.
    DynamicShared,
    Tid(Axis),
    Ntid(Axis),
    Ctaid(Axis),
    Nctaid(Axis),
    /// Address of a variable in shared memory, for the CTA of rank 0.
    Shared(u64),
    /// Index of the cluster in the grid.
    ClusterId(Axis),
    /// Number of clusters in the grid.
    ClusterCount(Axis),
    /// Index of the CTA in its cluster.
    ClusterCta(Axis),
    /// Number of CTAs in a cluster.
    ClusterSize(Axis),
    ClusterRank,
    ClusterRanks,
    LaneId,
    WarpId,
    WarpCount,
    LaneMaskEq,
    LaneMaskLt,
    LaneMaskLe,
    LaneMaskGt,
    LaneMaskGe,
    DynamicSharedBytes,
    TotalSharedBytes,
    GridId,
}

/// A shared variable, for reports.
#[derive(Clone, Debug)]
pub(crate) struct SharedVariable {
    pub(crate) name: String,
    /// Offset in the CTA's shared memory, in bytes.
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// One kernel with every function it calls.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) code: Vec<Inst>,
    /// Source information of each instruction in `code`.
    pub(crate) info: Vec<InstInfo>,
    /// Number of registers, including those of presets.
    pub(crate) registers: u32,
    /// Number of predicates.
    pub(crate) predicates: u32,
    /// Registers that are initialized at the start of each warp and never written.
    pub(crate) presets: Vec<(Reg, Preset)>,
    /// The accumulators and left multiplicands of `wgmma` in registers.
    pub(crate) warpgroup_registers: Vec<Reg>,
    /// Registers of a thread at its start, if `.maxnreg` gives them.
    pub(crate) max_registers: Option<u32>,
    /// Static shared variables, in order of their offsets.
    pub(crate) shared: Vec<SharedVariable>,
    pub(crate) static_shared_bytes: u32,
    /// Largest alignment of the dynamic shared variables, in bytes.
    pub(crate) dynamic_shared_align: u32,
    /// Name of the first dynamic shared variable.
    pub(crate) dynamic_shared_name: Option<String>,
    /// Local memory of one thread, in bytes.
    pub(crate) local_bytes: u32,
    /// Names of source files, by number in `.file`.
    pub(crate) files: BTreeMap<u32, String>,
    /// The source file of the kernel's own code, by its number; `None` without line information.
    pub(crate) source_file: Option<u32>,
    /// The operands of the instructions that are traced, by program counter.
    pub(crate) traced: BTreeMap<u32, Arc<[Operand]>>,
    /// Unsupported instructions that the kernel can reach.
    pub(crate) unsupported: Vec<Unsupported>,
}

impl Program {
    /// The PTX line of an instruction.
    pub(crate) fn line(&self, pc: u32) -> u32 {
        self.info[pc as usize].line
    }

    /// Whether an instruction, as written, starts at `pc`.
    pub(crate) fn starts_instruction(&self, pc: u32) -> bool {
        self.info.get(pc as usize).is_none_or(|info| !info.continues)
    }

    pub(crate) fn place(&self, pc: u32) -> Place {
        let info = &self.info[pc as usize];
        let cuda = info.loc.map(|loc| self.cuda(loc.file, loc.line));
        let inlined_at = info.loc.and_then(|loc| loc.inlined_at).map(|(file, line)| self.cuda(file, line));
        Place { ptx_line: info.line, cuda, inlined_at, ptx: info.text.clone() }
    }

    fn cuda(&self, file: u32, line: u32) -> CudaLine {
        // The parser has checked that the file is declared.
        CudaLine { file: self.files[&file].clone(), line }
    }

    /// Offset of the dynamic shared memory in the CTA's shared memory, in bytes.
    pub(crate) fn dynamic_shared_offset(&self) -> u64 {
        align_up(u64::from(self.static_shared_bytes), u64::from(self.dynamic_shared_align.max(16)))
    }
}
