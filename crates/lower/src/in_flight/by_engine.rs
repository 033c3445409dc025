//! Copies of tiles by the copy engine: one thread starts them.

use tilewright_expr::Expr;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Call, EngineWay, Inst, Memory, MemorySpace, Program, Reach, RegArray, Stmt, Value};
use tilewright_ir::tile::{ElementOp, EngineMove, Role};
use tilewright_ir::{Handle, Scalar};
use tilewright_layout::DType;

use super::start::Start;
use crate::builder::regs;
use crate::engine::{barrier_call, no_whole_warp};
use crate::pipeline::Team;
use crate::sync::{Block, OpBlock, for_each_op};

/// Copies to a shared memory that the copy engine executes: all that the same threads start. None starts before the others have
/// arrived.
pub(super) struct Load {
    /// The plans of the copies.
    pub(super) plans: Vec<usize>,
    fills: Handle<Memory>,
    role: Option<Handle<Role>>,
    /// The barrier at which their bytes count.
    pub(super) full: Handle<Memory>,
    /// The parity of the latest phase, if it is not always the first one.
    pub(super) phase: Option<Handle<RegArray>>,
}

impl Start<'_> {
    /// Whether the copy engine can move a tile, with so many bytes of shared memory beside it, or why it cannot.
    pub(super) fn by_engine(&self, moved: &EngineMove, beside: i64) -> Result<(), Reason> {
        let program = &self.builder.program;
        let owner = program.owner(self.builder.memory(moved.shared));
        refused(program, self.builder.memory(moved.tensor), owner).map_or(Ok(()), Err)?;
        let memory = &program.memories[owner];
        let alignment = moved.alignment();
        let bytes = program.shared_bytes() - memory.shared_bytes() + aligned(memory, alignment).shared_bytes() + beside;
        let most = program.target.shared_bytes();
        if bytes > most {
            let text = format!("with `{}` at a multiple of {alignment} B, shared memory takes {bytes} B", memory.name);
            return Err(Reason::new(text, format!("the {most} B that a CTA of {} has", program.target)));
        }
        Ok(())
    }

    /// Lets the shared memory of a tile begin where it may.
    fn prepare(&mut self, moved: &EngineMove) {
        let owner = self.builder.program.owner(self.builder.memory(moved.shared));
        let alignment = moved.alignment();
        let memory = &mut self.builder.program.memories[owner];
        *memory = aligned(memory, alignment);
        self.builder.align(owner, alignment);
    }

    /// One thread starts the copies of a tile to a tensor, as a group.
    pub(super) fn stored(&mut self, op: &OpBlock, moved: &EngineMove) -> Vec<Stmt> {
        self.prepare(moved);
        let shared = (self.builder.memory(moved.shared), &moved.place);
        let mut body = self.builder.copies(moved, shared, &EngineWay::ToTensor { combined: moved.combined });
        body.push(Stmt::from(Call::plain(Inst::BulkCommit)));
        by_one(&self.builder.program, op, body)
    }

    /// One thread announces the bytes of a tile, and starts its copies to shared memory.
    pub(super) fn loaded(&mut self, op: &OpBlock, moved: &EngineMove, is_once: bool) -> Vec<Stmt> {
        self.prepare(moved);
        let shared = self.builder.memory(moved.shared);
        let barrier = (self.barrier_of(op, shared, is_once), Expr::constant(0));
        let mut body = vec![barrier_call(Inst::BarrierExpect, barrier.clone(), Some(Expr::constant(moved.bytes())))];
        body.extend(self.builder.copies(
            moved,
            (shared, &moved.place),
            &EngineWay::ToShared { full: barrier, reach: Reach::Own },
        ));
        by_one(&self.builder.program, op, body)
    }

    /// The barrier of a copy to a shared memory.
    fn barrier_of(&mut self, op: &OpBlock, shared: Handle<Memory>, is_once: bool) -> Handle<Memory> {
        let fills = self.builder.program.owner(shared);
        let name = self.builder.program.memories[fills].name.clone();
        let known = self.loads.iter().position(|load| (load.fills, load.role) == (fills, op.role));
        let at = known.unwrap_or_else(|| {
            let full = self.builder.barriers(&format!("{name}_full"), 1, self.plans[op.op].span);
            self.loads.push(Load { plans: Vec::new(), fills, role: op.role, full, phase: None });
            self.loads.len() - 1
        });
        let load = &mut self.loads[at];
        load.plans.push(op.op);
        if load.phase.is_none() && (!is_once || load.plans.len() > 1) {
            let name = self.builder.fresh(&format!("{name}_phase"));
            let phase = RegArray { name, dtype: DType::I32, len: 1, vector: 1 };
            load.phase = Some(self.builder.program.registers.push(phase));
        }
        load.full
    }

    /// Lets threads note the phase of each copy, where a barrier has several.
    pub(super) fn note_phases(&self, blocks: &mut [Block]) {
        for_each_op(blocks, &mut |op| {
            let load = self.loads.iter().find(|load| load.plans.contains(&op.op) && op.is_load_by_engine());
            if let Some(phase) = load.and_then(|load| load.phase) {
                op.body.insert(0, next_phase(phase));
            }
        });
    }
}

/// The first thread of an op executes statements.
fn by_one(program: &Program, op: &OpBlock, body: Vec<Stmt>) -> Vec<Stmt> {
    let team = Team::of(program, op.role);
    team.by_first_of(&team, vec![Stmt::Elect { body }])
}

/// The phase of a barrier becomes the next one.
fn next_phase(phase: Handle<RegArray>) -> Stmt {
    let one = Value::Const(DType::I32, Scalar::Int(1));
    let value = Value::Op(ElementOp::Xor, vec![Value::reg(phase, 0), one]);
    Stmt::Assign { to: regs(phase, 0, 1), value }
}

/// A memory that begins at multiples of `alignment` bytes, with as many elements as that takes.
fn aligned(memory: &Memory, alignment: i64) -> Memory {
    let unit = alignment / memory.dtype.bytes();
    Memory { elements: (memory.elements + unit - 1) / unit * unit, ..memory.clone() }
}

/// Why the copy engine does not copy between a shared memory and a tensor, if it does not.
fn refused(program: &Program, tensor: Handle<Memory>, owner: Handle<Memory>) -> Option<Reason> {
    let [tensor, shared] = [tensor, owner].map(|handle| &program.memories[handle]);
    if let MemorySpace::Global { may_alias: true, .. } = tensor.space {
        let text = format!("`{}` may share memory with another tensor", tensor.name);
        return Some(Reason::new(text, "tensors of their own"));
    }
    if shared.stages > 1 {
        let text = format!("`{}` has a copy for each stage of a pipelined loop", shared.name);
        return Some(Reason::new(text, "buffers that no loop fills ahead"));
    }
    no_whole_warp(program.threads)
}
