//! Starts products, copies, shifts and commits: checks their operands, records their accesses, and enqueues them.

use std::ops::Range;

use crate::clock::Agent;
use crate::exec::access::RegionId;
use crate::exec::machine::Machine;
use crate::exec::product::{Major, Shape, UNIT, units_of};
use crate::exec::tensor::engine::{
    Commit, Copy, FIRST_OF_QUARTERS, Half, Product, QUARTER, SHIFTED_COLUMNS, Shift, Source, Task,
};
use crate::exec::tensor::instruction::Group;
use crate::exec::tensor::memory::{Area, By, LANES, split};
use crate::exec::tensor::operands::{Datapath, columns_of, is_in_tensor_memory};
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::lanes::lanes;
use crate::memory::map;
use crate::op::{Left, MemRef, ProductKind, Reg, TensorCopy, TensorMma};

impl Machine<'_> {
    pub(in crate::exec::tensor) fn start_product(
        &mut self,
        warp: &Warp,
        lane: usize,
        op: &TensorMma,
    ) -> ExecResult<()> {
        let exec = 1u32 << lane;
        self.must_have_defined_operands(warp, lane, op)?;
        let value = |reg: Reg| warp.regs[reg as usize][lane];
        let descriptor = value(op.descriptor) as u32;
        let group = match (op.is_pair, op.is_stationary) {
            (true, _) => Group::Pair,
            (_, true) => Group::Stationary,
            _ => Group::One,
        };
        let whole = Shape::read(descriptor, op.kind, group).map_err(|reason| {
            let message = format!("the instruction descriptor {descriptor:#010x}: {reason}");
            RaisedFault::new(FaultKind::BadDescriptor, exec, message)
        })?;
        let ids = self.group(lane, op.is_pair)?;
        let shape = Shape { m: whole.m / ids.len(), ..whole };
        let path = Datapath::of(shape.m, op.is_stationary, op.is_pair);
        let agent = self.next_issue(warp.thread(lane));
        let (mut columns, mut halves, mut b) = (Vec::new(), Vec::new(), Vec::new());
        let mut scales = None;
        let d = self.tensor_address(warp, lane, &op.d);
        let sums = self.sums_area(lane, d, path, &shape)?;
        columns.push(sums.columns.clone());
        for (number, id) in ids.iter().enumerate() {
            let a = self.start_left((warp, lane), agent, op, (*id, path), &shape, &mut columns)?;
            let matrix = self.multiplicand_matrix(lane, value(op.b), &shape.b)?;
            let units = units_of(&matrix, &shape.b, (0, shape.n / ids.len()), shape.k);
            b.push(self.read_units(warp, lane, (agent, self.owner(*id).rank), &units)?);
            scales = self.scale_areas((warp, lane), agent, op, (*id, &shape), &mut columns)?;
            let by = By::Accumulator { at: d, m: whole.m, n: whole.n };
            self.engine_access((warp, lane), agent, (*id, &sums), by)?;
            let masks = op.disabled.iter().skip(4 * number).take(4).map(|reg| value(*reg) as u32);
            let disabled = masks.rev().fold(0u128, |all, mask| all << 32 | u128::from(mask));
            halves.push(Half { id: *id, a, disabled });
        }
        let accumulates = warp.guard(op.accumulates) & exec != 0;
        let start = self.new_start(warp, lane, agent, columns);
        let shift = op.shift;
        let product = Product { start, shape, path, d, halves, b, scales, accumulates, shift };
        self.enqueue(Task::Product(Box::new(product)));
        Ok(())
    }

    /// The lanes and columns of an accumulator.
    fn sums_area(&self, lane: usize, d: u32, path: Datapath, shape: &Shape) -> ExecResult<Area> {
        let (first_lane, first_column) = split(d);
        match path.groups(first_lane) {
            Some(groups) => Ok(Area { groups, columns: first_column..first_column + path.columns(shape.n) }),
            None => {
                let message = format!("an accumulator of {} rows does not begin on lane {first_lane}", shape.m);
                Err(RaisedFault::new(FaultKind::TmemMisuse, 1 << lane, message))
            }
        }
    }

    /// Records the reads of the left multiplicand of a CTA.
    fn start_left(
        &mut self,
        (warp, lane): (&Warp, usize),
        agent: Agent,
        op: &TensorMma,
        (id, path): (RegionId, Datapath),
        shape: &Shape,
        columns: &mut Vec<Range<usize>>,
    ) -> ExecResult<Source> {
        match &op.a {
            Left::Shared(reg) => {
                let matrix = self.multiplicand_matrix(lane, warp.regs[*reg as usize][lane], &shape.a)?;
                let units = units_of(&matrix, &shape.a, (0, shape.m), shape.k);
                Ok(Source::Shared(self.read_units(warp, lane, (agent, self.owner(id).rank), &units)?))
            }
            Left::Tensor(at) => {
                let address = self.tensor_address(warp, lane, at);
                let d = self.tensor_address(warp, lane, &op.d);
                let area = self.multiplicand_area(lane, (address, d), shape, path)?;
                columns.push(area.columns.clone());
                self.engine_access((warp, lane), agent, (id, &area), By::Multiplicand)?;
                Ok(Source::Tensor(address))
            }
        }
    }

    fn must_have_defined_operands(&self, warp: &Warp, lane: usize, op: &TensorMma) -> ExecResult<()> {
        let exec = 1 << lane;
        let of_a = match &op.a {
            Left::Shared(reg) => *reg,
            Left::Tensor(at) => at.base,
        };
        let of_scales = op.scales.iter().flat_map(|(a, b)| [a.base, b.base]);
        let all =
            [op.d.base, of_a, op.b, op.descriptor].into_iter().chain(of_scales).chain(op.disabled.iter().copied());
        for reg in all {
            self.must_be_defined(warp, reg, exec, "are an operand of a product")?;
        }
        match warp.undefined_pred(op.accumulates.index, exec) {
            Some(origin) => Err(self.undefined_use(origin, warp.pc, "decide whether a product is added")),
            None => Ok(()),
        }
    }

    fn multiplicand_area(
        &self,
        lane: usize,
        (address, d): (u32, u32),
        shape: &Shape,
        path: Datapath,
    ) -> ExecResult<Area> {
        let (first_lane, first_column) = split(address);
        let misuse = |message: String| Err(RaisedFault::new(FaultKind::TmemMisuse, 1 << lane, message));
        if !is_in_tensor_memory(&shape.a) {
            return misuse("A in tensor memory is K-major, of elements of 8, 16 or 32 bits".to_string());
        }
        if path == Datapath::Parts(4) {
            let text =
                "A with 32 rows and `.ws` is supported in shared memory only: no public text says on which lanes it is";
            return misuse(text.to_string());
        }
        let (of_d, _) = split(d);
        if first_lane != of_d {
            return misuse(format!("A begins on lane {first_lane} and D on lane {of_d}; both begin on the same one"));
        }
        match path.groups(first_lane) {
            Some(groups) => Ok(Area { groups, columns: first_column..first_column + columns_of(&shape.a, shape.k) }),
            None => misuse(format!("a multiplicand of {} rows does not begin on lane {first_lane}", shape.m)),
        }
    }

    /// Records the reads of the scale factors: line `i` has its own on lane `i % 32` of every quarter, in column `i / 32`.
    fn scale_areas(
        &mut self,
        (warp, lane): (&Warp, usize),
        agent: Agent,
        op: &TensorMma,
        (id, shape): (RegionId, &Shape),
        columns: &mut Vec<Range<usize>>,
    ) -> ExecResult<Option<(u32, u32, usize)>> {
        let (Some((a, b)), ProductKind::Scaled { block, .. }) = (&op.scales, op.kind) else { return Ok(None) };
        let mut addresses = [0; 2];
        for ((at, lines), address) in [(a, shape.m), (b, shape.n)].into_iter().zip(&mut addresses) {
            // The upper two bits may repeat which byte of a word is meant.
            *address = self.tensor_address(warp, lane, at) & 0x3fff_ffff;
            let (first_lane, first) = split(*address);
            if first_lane != 0 {
                let message = format!("scale factors begin on lane 0, not on lane {first_lane}");
                return Err(RaisedFault::new(FaultKind::TmemMisuse, 1 << lane, message));
            }
            let area = Area::of_columns(first, lines.div_ceil(32));
            columns.push(area.columns.clone());
            self.engine_access((warp, lane), agent, (id, &area), By::Multiplicand)?;
        }
        Ok(Some((addresses[0], addresses[1], shape.k / block as usize)))
    }

    pub(in crate::exec::tensor) fn start_tensor_copy(
        &mut self,
        warp: &Warp,
        lane: usize,
        (at, from): (&MemRef, Reg),
        shape: TensorCopy,
    ) -> ExecResult<()> {
        let exec = 1u32 << lane;
        for reg in [at.base, from] {
            self.must_be_defined(warp, reg, exec, "are an operand of a copy")?;
        }
        let agent = self.next_issue(warp.thread(lane));
        let matrix = self.shared_matrix(lane, warp.regs[from as usize][lane])?;
        let in_row = u64::from(shape.bytes) / UNIT;
        let unit = |at: u64| matrix.unit(Major::K, at % in_row, at / in_row);
        let addresses: Vec<u64> = (0..u64::from(shape.rows) * in_row).map(unit).collect();
        let to = self.tensor_address(warp, lane, at);
        let (first_lane, first_column) = split(to);
        if first_lane != 0 {
            let message = format!("a copy writes from lane 0 on, not from lane {first_lane}");
            return Err(RaisedFault::new(FaultKind::TmemMisuse, exec, message));
        }
        let columns = first_column..first_column + shape.bytes as usize / 4;
        let is_refresh = shape.lanes == 1;
        let area = match is_refresh {
            true => Area { groups: FIRST_OF_QUARTERS, columns },
            false => Area::of_columns(columns.start, columns.len()),
        };
        let mut parts = Vec::new();
        for id in self.group(lane, shape.is_pair)? {
            parts.push((id, self.read_units(warp, lane, (agent, self.owner(id).rank), &addresses)?));
            self.engine_access((warp, lane), agent, (id, &area), By::Copy { is_refresh })?;
        }
        let start = self.new_start(warp, lane, agent, vec![area.columns]);
        self.enqueue(Task::Copy(Box::new(Copy { start, first_column, parts, shape })));
        Ok(())
    }

    pub(in crate::exec::tensor) fn start_shift(
        &mut self,
        warp: &Warp,
        lane: usize,
        at: &MemRef,
        is_pair: bool,
    ) -> ExecResult<()> {
        self.must_be_defined(warp, at.base, 1 << lane, "are an operand of a shift")?;
        let agent = self.next_issue(warp.thread(lane));
        let (first_lane, first_column) = split(self.tensor_address(warp, lane, at));
        if !first_lane.is_multiple_of(QUARTER) || first_lane >= LANES {
            let message = format!("a shift begins on lane 0, 32, 64 or 96, not on lane {first_lane}");
            return Err(RaisedFault::new(FaultKind::TmemMisuse, 1 << lane, message));
        }
        let area = Area::of_lanes(first_lane, QUARTER, first_column..first_column + SHIFTED_COLUMNS);
        let ids = self.group(lane, is_pair)?;
        for id in &ids {
            self.engine_access((warp, lane), agent, (*id, &area), By::Shift)?;
        }
        let start = self.new_start(warp, lane, agent, vec![area.columns]);
        self.enqueue(Task::Shift(Box::new(Shift { start, first_lane, first_column, ids })));
        Ok(())
    }

    /// `tcgen05.commit`. With `ranks`, it arrives at the mbarriers at the same offset in the shared memory of every CTA in the
    /// mask.
    pub(in crate::exec::tensor) fn commit_tensor(
        &mut self,
        warp: &Warp,
        lane: usize,
        at: &MemRef,
        ranks: Option<Reg>,
    ) -> ExecResult<()> {
        for reg in [Some(at.base), ranks].into_iter().flatten() {
            self.must_be_defined(warp, reg, 1 << lane, "decide which mbarrier is meant")?;
        }
        let address = self.shared_address(warp, lane, at)?;
        let addresses = match ranks {
            None => vec![address],
            Some(ranks) => {
                let mask = self.ranks(warp.regs[ranks as usize][lane], lane)?;
                lanes(mask).map(|rank| map::with_rank(address, rank as u32)).collect()
            }
        };
        let (issuer, agent) = self.issuer(warp.thread(lane));
        let known = self.cta.clocks.of_agents([agent].into_iter());
        for address in addresses {
            let slot = self.object(warp, lane, address, false)?;
            let (known, before) = (known.clone(), self.cta.tensor.issuers[issuer].before.clone());
            let commit = Commit { warp: warp.id, lane, pc: warp.pc, slot, known, before };
            self.cta.tensor.queue.push_back(Task::Commit(Box::new(commit)));
        }
        Ok(())
    }
}
