//! Tensor memory and `tcgen05`: allocation, moves, products, and the engine that performs products and copies.
//!
//! A product or a copy is checked where it starts, as an access that nobody is ordered after, and performed later, in the
//! order in which they started: when nothing else can run, or earlier if the schedule says so. A commit in that order tells
//! an mbarrier that everything before it of its thread is complete.
//!
//! Loads and stores of registers are agents of their warp, which it knows after it has waited for them. What a thread knows
//! becomes the order of its accesses to tensor memory by `tcgen05.fence::after_thread_sync`, and is released to others by
//! `tcgen05.fence::before_thread_sync`.

mod engine;
mod instruction;
mod memory;
mod moves;
mod operands;

use std::collections::VecDeque;

use crate::clock::{Agent, Far};
use crate::exec::access::{Access, RegionId, resolve_spaces};
use crate::exec::barrier::Release;
use crate::exec::cta::Cta;
use crate::exec::machine::Machine;
use crate::exec::warp::{Wait, Warp};
use crate::fault::{ExecResult, Fault, FaultKind, RaisedFault};
use crate::isa::Space;
use crate::lanes::{FULL, lanes};
use crate::op::{MemRef, Reg, TensorOp};
use crate::undefined::Undefined;

use engine::{Issuer, Task};
use memory::{Area, By, COLUMNS, Mark, TensorMemory};
use moves::Moves;

/// Agents of the threads that issue products and copies; further threads share them.
const ISSUERS: u32 = 64;
/// Agents of the loads and stores of warps.
const MOVERS: u32 = 64;
/// Agents of a CTA that access tensor memory: they come after those of its threads.
pub(crate) const AGENTS: u32 = ISSUERS + MOVERS;

/// The two kinds of moves between registers and tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Load,
    Store,
}

/// The tensor memory of a CTA and the engine that works on it.
#[derive(Debug, Default)]
pub(crate) struct Tensor {
    pub(crate) memory: TensorMemory,
    /// The moves of each warp.
    moves: Vec<Moves>,
    /// The threads that have issued products or copies.
    issuers: Vec<Issuer>,
    queue: VecDeque<Task>,
    /// The last instruction that has allocated columns.
    allocated_at: u32,
    /// Warps that wait for columns.
    waiting: Vec<u32>,
}

impl Tensor {
    /// Counts a move of a warp. The reads of shared memory by `wgmma` are counted as loads: no target has both.
    pub(crate) fn start_move(&mut self, warp: u32, direction: Direction) {
        self.moves(warp).started[direction as usize] += 1;
    }

    fn moves(&mut self, warp: u32) -> &mut Moves {
        if self.moves.len() <= warp as usize {
            self.moves.resize_with(warp as usize + 1, Moves::default);
        }
        &mut self.moves[warp as usize]
    }
}

/// Number of threads of a CTA, in whole warps.
fn threads_of(cta: &Cta) -> u32 {
    cta.alive.len() as u32 * 32
}

/// The agent of the moves of a warp that have started.
pub(crate) fn register_agent(cta: &Cta, warp: u32, direction: Direction) -> Agent {
    let started = cta.tensor.moves.get(warp as usize).map_or(0, |moves| moves.started[direction as usize]);
    let thread = threads_of(cta) + ISSUERS + 2 * warp + direction as u32;
    Agent { thread, number: started, is_engine: true }
}

impl Machine<'_> {
    pub(crate) fn tensor(&mut self, warp: &mut Warp, exec: u32, op: &TensorOp) -> ExecResult<()> {
        if op.is_aligned() && !self.gather_all(warp, exec)? {
            return Ok(());
        }
        match op {
            TensorOp::Allocate { at, columns } => return self.allocate(warp, at, *columns),
            TensorOp::Free { address, columns } => self.free(warp, *address, *columns)?,
            TensorOp::Relinquish => self.cta.tensor.memory.is_relinquished = true,
            TensorOp::Load(moved) => self.load_tensor(warp, moved)?,
            TensorOp::Store(moved) => self.store_tensor(warp, moved)?,
            TensorOp::WaitLoads => self.wait_for_moves(warp, Direction::Load)?,
            TensorOp::WaitStores => self.wait_for_moves(warp, Direction::Store)?,
            TensorOp::FenceBefore => {
                self.cta.clocks.fence_tensor_before(lanes(exec).map(|lane| warp.thread(lane)));
            }
            TensorOp::FenceAfter => {
                self.cta.clocks.fence_tensor_after(lanes(exec).map(|lane| warp.thread(lane)));
            }
            TensorOp::Mma(mma) => {
                let lane = self.single_lane(exec, "a product")?;
                self.start_product(warp, lane, mma)?;
            }
            TensorOp::Copy { at, from, shape } => {
                let lane = self.single_lane(exec, "a copy")?;
                self.start_tensor_copy(warp, lane, (at, *from), *shape)?;
            }
            TensorOp::Shift { at, is_pair } => {
                let lane = self.single_lane(exec, "a shift")?;
                self.start_shift(warp, lane, at, *is_pair)?;
            }
            TensorOp::Commit { at, ranks } => {
                for lane in lanes(exec) {
                    self.commit_tensor(warp, lane, at, *ranks)?;
                }
            }
        }
        warp.pc += 1;
        Ok(())
    }

    /// The lane that executes an instruction which every lane would do again.
    fn single_lane(&self, exec: u32, what: &str) -> ExecResult<usize> {
        match exec.count_ones() {
            1 => Ok(exec.trailing_zeros() as usize),
            count => {
                let message = format!("{count} lanes execute this instruction, and each would start {what}");
                Err(RaisedFault::new(FaultKind::IllegalInstruction, exec, message))
            }
        }
    }

    /// The address in tensor memory that an operand of a lane gives.
    fn tensor_address(&self, warp: &Warp, lane: usize, at: &MemRef) -> u32 {
        (warp.regs[at.base as usize][lane] as u32).wrapping_add(at.offset as u32)
    }

    /// The value of a register that all lanes of a warp agree on.
    fn agreed(&self, warp: &Warp, reg: Reg, what: &str) -> ExecResult<u32> {
        self.must_be_defined(warp, reg, FULL, &format!("are {what}"))?;
        let value = warp.regs[reg as usize][0] as u32;
        match (1..32).find(|lane| warp.regs[reg as usize][*lane] as u32 != value) {
            None => Ok(value),
            Some(lane) => {
                let message = format!("the lanes of the warp disagree on {what}");
                Err(RaisedFault::new(FaultKind::TmemMisuse, 1 << lane, message))
            }
        }
    }

    fn allocate(&mut self, warp: &mut Warp, at: &MemRef, columns: Reg) -> ExecResult<()> {
        let columns = self.agreed(warp, columns, "the number of columns")?;
        let misuse = |message: String| Err(RaisedFault::new(FaultKind::TmemMisuse, FULL, message));
        if !(32..=512).contains(&columns) || !columns.is_power_of_two() {
            return misuse(format!("an allocation has 32, 64, 128, 256 or 512 columns; this one has {columns}"));
        }
        if self.cta.tensor.memory.is_relinquished {
            return misuse("the CTA allocates tensor memory after `tcgen05.relinquish_alloc_permit`".to_string());
        }
        let Some(first) = self.cta.tensor.memory.allocate(columns as usize) else {
            let pc = warp.pc;
            self.cta.tensor.waiting.push(warp.id);
            warp.block(FULL, pc, |_| Wait::Columns { pc, columns });
            return Ok(());
        };
        self.cta.tensor.allocated_at = warp.pc;
        let (addresses, parts) = resolve_spaces(&warp.regs, at, 1);
        if parts.iter().any(|(space, lanes)| *lanes != 0 && *space != Space::Shared) {
            let message = "the address of an allocation is written to shared memory";
            return Err(RaisedFault::new(FaultKind::IllegalInstruction, 1, message));
        }
        self.must_be_defined(warp, at.base, 1, "decide where the address of an allocation is written")?;
        let access = Access::new(warp, 0, addresses[0], 4, false);
        let slot = self.locate(Space::Shared, &access)?;
        self.put(&slot, &access, &(first as u32).to_le_bytes(), &[])?;
        warp.pc += 1;
        Ok(())
    }

    fn free(&mut self, warp: &Warp, address: Reg, columns: Reg) -> ExecResult<()> {
        let address = self.agreed(warp, address, "the address of an allocation")?;
        let columns = self.agreed(warp, columns, "the number of columns")? as usize;
        let first = address as usize;
        let misuse = |message: String| Err(RaisedFault::new(FaultKind::TmemMisuse, FULL, message));
        // The lanes of a warp may know different things: it is enough that one knows.
        let known = |cta: u32, agent: u32, number: u32| {
            let mark = Mark { cta, agent, number, pc: 0, by: By::Registers };
            (0..32).any(|lane| mark.is_known(self.cta.clocks.far(warp.thread(lane))))
        };
        let running = self.running_task(first..first + columns.min(COLUMNS), &known);
        if let Some(line) = running {
            return misuse(format!("the product or copy at PTX line {line} may still use these columns"));
        }
        if let Some((kind, message)) = self.unfinished_moves() {
            return Err(RaisedFault::new(kind, FULL, message));
        }
        if !self.cta.tensor.memory.free(first, columns) {
            let others = self.cta.tensor.memory.allocations_text();
            return misuse(format!("there is no allocation of {columns} columns at {address:#x}; there are {others}"));
        }
        for waiting in std::mem::take(&mut self.cta.tensor.waiting) {
            self.cta.released.push(Release::wake(waiting, FULL));
        }
        self.effects += 1;
        Ok(())
    }

    /// The fault of a warp that has not waited for its loads or stores when columns are freed.
    fn unfinished_moves(&self) -> Option<(FaultKind, String)> {
        for (warp, moves) in self.cta.tensor.moves.iter().enumerate() {
            let waits = [("load", "ld", FaultKind::AsyncRegisterHazard), ("store", "st", FaultKind::TmemMisuse)];
            for (index, (what, wait, kind)) in waits.into_iter().enumerate() {
                if moves.started[index] != moves.finished[index] {
                    let line = self.program.line(moves.last[index]);
                    let message = format!(
                        "columns are freed, and warp {warp} has not waited for its {what} at PTX line {line} by \
                         `tcgen05.wait::{wait}`"
                    );
                    return Some((kind, message));
                }
            }
        }
        None
    }

    /// Faults unless the columns of an area are in one allocation of the CTA that has a region.
    fn must_be_allocated(&self, id: RegionId, area: &Area, exec: u32) -> ExecResult<()> {
        if self.owner(id).tensor.memory.has(&area.columns) {
            return Ok(());
        }
        let (first, last) = (area.columns.start, area.columns.end - 1);
        let whose = if id == RegionId::Shared { "" } else { " of the other CTA of the pair" };
        let allocated = self.owner(id).tensor.memory.allocations_text();
        let message = format!(
            "columns {first} to {last} of tensor memory{whose} are not in one allocation; allocated at this time: {allocated}"
        );
        Err(RaisedFault::new(FaultKind::TmemMisuse, exec, message))
    }

    /// What is ordered before accesses to tensor memory by a thread.
    fn known_of_tensor(&mut self, thread: u32) -> Far {
        if !self.options.needs_tensor_fences {
            self.cta.clocks.fence_tensor_after([thread].into_iter());
        }
        self.cta.clocks.tensor(thread).clone()
    }

    /// Records an access to the tensor memory of the CTA that has a region by a thread, which must be ordered after what it
    /// conflicts with.
    fn tensor_access(
        &mut self,
        (thread, exec): (u32, u32),
        id: RegionId,
        area: &Area,
        mark: Mark,
        writes: bool,
    ) -> ExecResult<()> {
        let known = self.known_of_tensor(thread);
        if self.owner(id).tensor.memory.overwrites_factors(area, mark, &known) {
            self.stats.note("tmem_war", mark.pc);
        }
        let conflict = self.owner_mut(id).tensor.memory.access(area, mark, writes, &known);
        let Some((other, other_writes)) = conflict else { return Ok(()) };
        let (own, does) = (if writes { "write" } else { "read" }, if other_writes { "write" } else { "read" });
        let line = self.program.line(other.pc);
        // What the thread knows, but has not fenced.
        let is_fence_missing = other.is_known(self.cta.clocks.far(thread));
        let missing = match other.by {
            _ if is_fence_missing => "`tcgen05.fence::after_thread_sync` is missing between them",
            By::Registers if self.is_unfinished(&other) => {
                "the warp of the other access has not executed `tcgen05.wait::ld` or `tcgen05.wait::st`"
            }
            By::Registers => "`tcgen05.fence::before_thread_sync` and a barrier are missing between them",
            By::Copy { .. } | By::Shift | By::Multiplicand | By::Accumulator { .. } => {
                "`tcgen05.commit` and a wait for its mbarrier are missing between them"
            }
        };
        let columns = &area.columns;
        let message = format!(
            "this {own} of columns {} to {} of tensor memory and the {does} at PTX line {line} are not ordered; {missing}",
            columns.start,
            columns.end - 1
        );
        let kind = if is_fence_missing { FaultKind::MissingFence } else { FaultKind::Race };
        let mut stop = RaisedFault::new(kind, exec, message);
        stop.related = Some(other.pc);
        Err(stop)
    }

    /// Whether a load or store has not been waited for.
    fn is_unfinished(&self, mark: &Mark) -> bool {
        let index = (mark.agent - threads_of(&self.cta) - ISSUERS) as usize;
        let is_own = mark.cta == self.cta.number;
        let other = self.peers.iter().find(|cta| !is_own && cta.number == mark.cta);
        other
            .unwrap_or(&self.cta)
            .tensor
            .moves
            .get(index / 2)
            .is_some_and(|moves| moves.finished[index % 2] < mark.number)
    }

    /// A word of tensor memory and its undefined bits.
    fn read_tensor(&mut self, warp: &Warp, lane: usize, column: usize) -> (u32, Undefined) {
        let (word, undefined) = self.cta.tensor.memory.get(lane, column);
        (word, undefined.unwrap_or_else(|| self.unwritten_tensor(warp.id, warp.pc)))
    }

    /// The undefined bits of a word that was never written.
    fn unwritten_tensor(&mut self, warp: u32, pc: u32) -> Undefined {
        let message = "this reads tensor memory that was never written";
        let stop = RaisedFault::new(FaultKind::UninitializedRead, FULL, message);
        Undefined::new(u64::from(u32::MAX), self.origins.number(warp, pc, *stop))
    }

    /// At the end of the CTA: nothing may still run, and all columns must be free.
    pub(crate) fn end_tensor(&mut self) -> Result<(), Box<Fault>> {
        if let Some((pc, warp, lane)) = self.cta.tensor.queue.front().map(Task::start) {
            let message = "the CTA exits before this has been waited for";
            let stop = RaisedFault::new(FaultKind::BarrierMisuse, 1 << lane, message);
            return Err(self.fault(*stop, pc, warp));
        }
        match self.cta.tensor.memory.allocated() {
            0 => Ok(()),
            columns => {
                let message = format!(
                    "the CTA exits with {columns} columns of tensor memory allocated; `tcgen05.dealloc` is missing"
                );
                let pc = self.cta.tensor.allocated_at;
                Err(self.fault(*RaisedFault::new(FaultKind::TmemLeak, FULL, message), pc, 0))
            }
        }
    }
}
