//! `tcgen05.ld` and `tcgen05.st`: registers of a warp to and from its quarter of the lanes (PTX ISA, section "Data Movement
//! Shape" of `tcgen05`).

use crate::clock::Agent;
use crate::exec::access::RegionId;
use crate::exec::machine::Machine;
use crate::exec::tensor::memory::{Area, By, Mark, split};
use crate::exec::tensor::{Direction, register_agent};
use crate::exec::undefined::Update;
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::lanes::FULL;
use crate::op::{Reg, TensorMove, TensorShape};
use crate::undefined::Undefined;

/// Lanes of tensor memory that a warp can access.
const LANES_OF_WARP: usize = 32;

/// The loads and stores of a warp.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// How many have started, and how many the warp has waited for: loads, then stores.
    pub(crate) started: [u32; 2],
    pub(crate) finished: [u32; 2],
    /// The last instructions.
    pub(crate) last: [u32; 2],
    /// Registers that loads have not written, with the origin of their undefined bits and the bits that are undefined then.
    loading: Vec<(Reg, u32, Box<[Undefined; 32]>)>,
}

impl TensorShape {
    /// Lanes that it accesses.
    fn lanes(self) -> usize {
        if self == TensorShape::S32x32b { 32 } else { 16 }
    }

    /// Columns of one repetition.
    fn columns(self) -> usize {
        match self {
            TensorShape::S32x32b | TensorShape::S16x32bx2 { .. } => 1,
            TensorShape::S16x64b => 2,
            TensorShape::S16x128b => 4,
            TensorShape::S16x256b => 8,
        }
    }

    /// Columns from the address to the first one of a thread.
    fn first_column(self, thread: usize) -> usize {
        if let TensorShape::S16x32bx2 { second } = self { thread / 16 * second as usize } else { 0 }
    }

    /// The lane and the column, from the thread's first one on, of a register of a thread.
    fn place(self, thread: usize, register: usize) -> (usize, usize) {
        let (row, quarter) = (thread / 4, thread % 4);
        match self {
            TensorShape::S32x32b => (thread, register),
            TensorShape::S16x64b => (row + 8 * (thread & 1), 2 * register + (thread >> 1 & 1)),
            TensorShape::S16x128b => (row + 8 * (register & 1), 4 * (register >> 1) + quarter),
            TensorShape::S16x256b => {
                (row + 8 * (register >> 1 & 1), 8 * (register >> 2) + 2 * quarter + (register & 1))
            }
            TensorShape::S16x32bx2 { .. } => (thread % 16, register),
        }
    }
}

impl TensorMove {
    /// Words of tensor memory that a register goes to or comes from.
    fn words_of_register(&self) -> usize {
        if self.packs { 2 } else { 1 }
    }

    /// The lane and the column of each of them, if the move begins at `first`.
    fn places(
        &self,
        first: (usize, usize),
        thread: usize,
        register: usize,
    ) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (words, (lane, column)) = (self.words_of_register(), self.shape.place(thread, register));
        let start = first.1 + self.shape.first_column(thread) + column * words;
        (start..start + words).map(move |column| (first.0 + lane, column))
    }
}

impl Machine<'_> {
    /// The first lane and column of a move, and its areas, which have been checked.
    fn moved_area(&self, warp: &Warp, op: &TensorMove) -> ExecResult<((usize, usize), Vec<Area>)> {
        let address = self.tensor_address(warp, 0, &op.at);
        for lane in 1..32 {
            if self.tensor_address(warp, lane, &op.at) != address {
                let message = "the lanes of the warp have different addresses in tensor memory";
                return Err(RaisedFault::new(FaultKind::TmemMisuse, 1 << lane, message));
            }
        }
        let (lane, column) = split(address);
        let own = warp.id as usize % 4 * LANES_OF_WARP;
        let lane = if lane == 0 && !self.options.needs_tensor_lanes { own } else { lane };
        if lane % 16 != 0 || lane < own || lane + op.shape.lanes() > own + LANES_OF_WARP {
            let last = own + LANES_OF_WARP - 1;
            let message = format!(
                "warp {} accesses lanes {own} to {last} of tensor memory; {} lanes from lane {lane} on are not among them",
                warp.id,
                op.shape.lanes()
            );
            return Err(RaisedFault::new(FaultKind::TmemMisuse, FULL, message));
        }
        let columns = op.count as usize * op.shape.columns() * op.words_of_register();
        let mut areas = vec![Area::of_lanes(lane, op.shape.lanes(), column..column + columns)];
        if let TensorShape::S16x32bx2 { second } = op.shape {
            let first = column + second as usize;
            areas.push(Area::of_lanes(lane, op.shape.lanes(), first..first + columns));
        }
        for area in &areas {
            self.must_be_allocated(RegionId::Shared, area, FULL)?;
        }
        Ok(((lane, column), areas))
    }

    fn record_move(&mut self, warp: &Warp, areas: &[Area], direction: Direction) -> ExecResult<()> {
        if !self.options.check_races {
            return Ok(());
        }
        let agent = register_agent(&self.cta, warp.id, direction);
        self.cta.tensor.moves(warp.id).last[direction as usize] = warp.pc;
        let cta = self.cta.number;
        let mark = Mark { cta, agent: agent.thread, number: agent.number, pc: warp.pc, by: By::Registers };
        let writes = direction == Direction::Store;
        for area in areas {
            self.tensor_access((warp.thread(0), FULL), RegionId::Shared, area, mark, writes)?;
        }
        Ok(())
    }

    pub(crate) fn load_tensor(&mut self, warp: &mut Warp, op: &TensorMove) -> ExecResult<()> {
        let (first, areas) = self.moved_area(warp, op)?;
        self.cta.tensor.start_move(warp.id, Direction::Load);
        self.record_move(warp, &areas, Direction::Load)?;
        let late =
            RaisedFault::new(FaultKind::AsyncRegisterHazard, FULL, "`tcgen05.wait::ld` has not waited for this load");
        let late = self.origins.number(warp.id, warp.pc, *late);
        let mut updates = Vec::new();
        for (number, reg) in op.regs.iter().enumerate() {
            let mut marks = Box::new([Undefined::default(); 32]);
            for thread in 0..32 {
                let (mut word, mut undefined) = (0, Undefined::default());
                for (half, (lane, column)) in op.places(first, thread, number).enumerate() {
                    let (bits, known) = self.read_tensor(warp, lane, column);
                    let shift = 16 * half as u32;
                    let mask = if op.packs { 0xffff } else { u32::MAX };
                    word |= (bits & mask) << shift;
                    undefined = undefined.or(known.with((known.bits & u64::from(mask)) << shift));
                }
                warp.regs[*reg as usize][thread] = u64::from(word);
                marks[thread] = undefined;
            }
            updates.push(Update::Reg(*reg, Box::new([Undefined::late(late); 32])));
            self.cta.tensor.moves(warp.id).loading.push((*reg, late, marks));
        }
        warp.update_marks(FULL, updates);
        Ok(())
    }

    pub(crate) fn store_tensor(&mut self, warp: &Warp, op: &TensorMove) -> ExecResult<()> {
        let (first, areas) = self.moved_area(warp, op)?;
        self.cta.tensor.start_move(warp.id, Direction::Store);
        self.record_move(warp, &areas, Direction::Store)?;
        for (number, reg) in op.regs.iter().enumerate() {
            for thread in 0..32 {
                let (word, undefined) = (warp.regs[*reg as usize][thread] as u32, warp.undefined(*reg, thread));
                for (half, (lane, column)) in op.places(first, thread, number).enumerate() {
                    let shift = 16 * half as u32;
                    let (kept, mask) = if op.packs { (word >> shift & 0xffff, 0xffff) } else { (word, u32::MAX) };
                    let bits = undefined.with(undefined.bits >> shift & u64::from(mask));
                    self.cta.tensor.memory.set(lane, column, kept, bits);
                }
            }
        }
        Ok(())
    }

    /// Waits for the loads or the stores of a warp.
    pub(crate) fn wait_for_moves(&mut self, warp: &mut Warp, direction: Direction) -> ExecResult<()> {
        let Agent { thread, number, is_engine } = register_agent(&self.cta, warp.id, direction);
        let moves = self.cta.tensor.moves(warp.id);
        moves.finished[direction as usize] = number;
        let loaded = if direction == Direction::Load { std::mem::take(&mut moves.loading) } else { Vec::new() };
        for (reg, late, marks) in loaded {
            let held = |thread: usize| warp.undefined(reg, thread);
            if let Some(lane) = (0..32).find(|thread| !held(*thread).is_late) {
                let message = "a register of a load was written before `tcgen05.wait::ld` has waited for it";
                return Err(RaisedFault::new(FaultKind::AsyncRegisterHazard, 1 << lane, message));
            }
            // Of two loads of the same register, the later one decides.
            let is_last = |thread: &usize| held(*thread).origin == late;
            let exec = (0..32).filter(is_last).fold(0, |all, thread| all | 1 << thread);
            warp.update_marks(exec, vec![Update::Reg(reg, marks)]);
        }
        let threads = || (0..32).map(|lane| warp.thread(lane));
        self.cta.clocks.finish_tensor_access(threads(), Agent { thread, number, is_engine });
        if !self.options.needs_tensor_fences {
            self.cta.clocks.fence_tensor_before(threads());
        }
        Ok(())
    }
}
