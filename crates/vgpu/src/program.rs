//! A decoded kernel: instructions with their places, and the storage the kernel needs.

use std::collections::BTreeMap;

use crate::fault::{CudaLine, Place, Unsupported};
use crate::isa::align_up;
use crate::op::{Guard, Op, Reg};
use crate::ptx::ast::Loc;

/// What the scheduler reads at every step.
#[derive(Debug)]
pub(crate) struct Inst {
    pub(crate) guard: Option<Guard>,
    pub(crate) op: Op,
}

/// What only reports read.
#[derive(Clone, Debug)]
pub(crate) struct Info {
    pub(crate) line: u32,
    pub(crate) loc: Option<Loc>,
    pub(crate) opcode: String,
    pub(crate) text: String,
}

/// The value of a register that no instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Preset {
    Value(u64),
    /// Address of the dynamic shared memory, in the shared space.
    DynamicShared,
    Tid(usize),
    Ntid(usize),
    Ctaid(usize),
    Nctaid(usize),
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
    /// Bytes from the start of the window.
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// One kernel with every function it calls.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) code: Vec<Inst>,
    pub(crate) info: Vec<Info>,
    pub(crate) registers: u32,
    pub(crate) predicates: u32,
    pub(crate) presets: Vec<(Reg, Preset)>,
    pub(crate) shared: Vec<SharedVariable>,
    pub(crate) static_shared_bytes: u32,
    pub(crate) dynamic_shared_align: u32,
    pub(crate) dynamic_shared_name: Option<String>,
    /// Bytes of one thread's local memory.
    pub(crate) local_bytes: u32,
    pub(crate) files: BTreeMap<u32, String>,
    pub(crate) unsupported: Vec<Unsupported>,
}

impl Program {
    /// The PTX line of an instruction, 0 for one that does not exist.
    pub(crate) fn line(&self, pc: u32) -> u32 {
        self.info.get(pc as usize).map_or(0, |info| info.line)
    }

    pub(crate) fn place(&self, pc: u32) -> Place {
        let Some(info) = self.info.get(pc as usize) else {
            return Place { ptx_line: 0, cuda: None, inlined_at: None, ptx: String::new() };
        };
        let cuda = info.loc.map(|loc| self.cuda(loc.file, loc.line));
        let inlined_at = info.loc.and_then(|loc| loc.inlined_at).map(|(file, line)| self.cuda(file, line));
        Place { ptx_line: info.line, cuda, inlined_at, ptx: info.text.clone() }
    }

    fn cuda(&self, file: u32, line: u32) -> CudaLine {
        CudaLine { file: self.files.get(&file).cloned().unwrap_or_default(), line }
    }

    /// Bytes from the start of the window to the dynamic shared memory.
    pub(crate) fn dynamic_shared_offset(&self) -> u64 {
        align_up(u64::from(self.static_shared_bytes), u64::from(self.dynamic_shared_align.max(16)))
    }
}
