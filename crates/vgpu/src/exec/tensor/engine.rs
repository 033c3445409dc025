//! The engine that performs products and copies in the order in which they started.

use std::ops::Range;

use crate::clock::{Agent, Contribution, Far};
use crate::exec::access::{Access, RegionId, RegionSlot};
use crate::exec::machine::Machine;
use crate::exec::product::{Major, Shape, UNIT, Units, Values, multiply, scale, units_of};
use crate::exec::tensor::instruction::Group;
use crate::exec::tensor::memory::{Area, By, COLUMNS, LANES, Mark, split};
use crate::exec::tensor::operands::{Datapath, columns_of, is_in_tensor_memory};
use crate::exec::tensor::{ISSUERS, threads_of};
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, Fault, FaultKind, RaisedFault};
use crate::lanes::lanes;
use crate::memory::map;
use crate::op::{Left, MemRef, ProductKind, Reg, TensorCopy, TensorMma};
use crate::timeline::Engine;
use crate::undefined::Undefined;

/// Lanes of a quarter.
const QUARTER: usize = 32;
/// Columns that are shifted: 32 bytes.
const SHIFTED_COLUMNS: usize = 8;
/// The groups of 16 lanes that have the first lanes of the quarters.
const FIRST_OF_QUARTERS: u8 = 0b0101_0101;

/// What the engine does next.
#[derive(Debug)]
pub(super) enum Task {
    Product(Box<Product>),
    Copy(Box<Copy>),
    Shift(Box<Shift>),
    Commit(Box<Commit>),
}

/// A thread that issues products and copies, how many it has issued, and what was ordered before the last one.
#[derive(Debug)]
pub(super) struct Issuer {
    thread: u32,
    number: u32,
    before: Contribution,
}

/// Who started something, and the columns that it uses.
#[derive(Clone, Debug)]
struct Start {
    warp: u32,
    read: Access,
    agent: Agent,
    columns: Vec<Range<usize>>,
    /// When it started, in a recorded run.
    at: u64,
}

/// The left multiplicand.
#[derive(Debug)]
enum Source {
    Shared(Units),
    Tensor(u32),
}

/// What one CTA has of a product: its rows.
#[derive(Debug)]
struct Half {
    /// Its shared memory.
    id: RegionId,
    a: Source,
    /// Lanes that are not written.
    disabled: u128,
}

#[derive(Debug)]
pub(super) struct Product {
    start: Start,
    /// The shape of the rows of one CTA.
    shape: Shape,
    path: Datapath,
    d: u32,
    /// One for each CTA.
    halves: Vec<Half>,
    /// The columns that each CTA has of B.
    b: Vec<Units>,
    /// Addresses of the scale factors, and how many each line has.
    scales: Option<(u32, u32, usize)>,
    accumulates: bool,
    shift: u32,
}

#[derive(Debug)]
pub(super) struct Copy {
    start: Start,
    first_column: usize,
    /// For each CTA, its shared memory and the units there.
    parts: Vec<(RegionId, Units)>,
    shape: TensorCopy,
}

#[derive(Debug)]
pub(super) struct Shift {
    start: Start,
    first_lane: usize,
    first_column: usize,
    /// The shared memory of each CTA.
    ids: Vec<RegionId>,
}

#[derive(Debug)]
pub(super) struct Commit {
    warp: u32,
    lane: usize,
    pc: u32,
    slot: RegionSlot,
    known: Far,
    before: Contribution,
}

impl Product {
    /// The sums in runs of adjacent columns: the number of the first sum, its lane and its column.
    fn runs(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let (Shape { m, n, .. }, path) = (self.shape, self.path);
        let (first_lane, first_column) = split(self.d);
        (0..m * n).step_by(path.columns(n)).map(move |at| {
            let (lane, column) = path.place(m, n, at / n, at % n);
            (at, first_lane + lane, first_column + column)
        })
    }
}

impl Task {
    /// Who started a product or copy and what it uses, and in how many CTAs.
    fn work(&self) -> Option<(&Start, usize)> {
        match self {
            Task::Product(product) => Some((&product.start, product.halves.len())),
            Task::Copy(copy) => Some((&copy.start, copy.parts.len())),
            Task::Shift(shift) => Some((&shift.start, shift.ids.len())),
            Task::Commit(_) => None,
        }
    }

    /// The instruction, the warp and the lane that started it.
    pub(super) fn start(&self) -> (u32, u32, usize) {
        match self {
            Task::Product(product) => product.start.place(),
            Task::Copy(copy) => copy.start.place(),
            Task::Shift(shift) => shift.start.place(),
            Task::Commit(commit) => (commit.pc, commit.warp, commit.lane),
        }
    }
}

impl Start {
    fn place(&self) -> (u32, u32, usize) {
        (self.read.pc, self.warp, self.read.lane)
    }
}

impl Machine<'_> {
    /// The agent of a thread that issues products and copies, with their number so far.
    fn issuer(&mut self, thread: u32) -> (usize, Agent) {
        let issuers = &mut self.cta.tensor.issuers;
        let found = issuers.iter().position(|issuer| issuer.thread == thread);
        let slot = found.unwrap_or_else(|| {
            if issuers.len() < ISSUERS as usize {
                let before = self.cta.clocks.started(thread);
                issuers.push(Issuer { thread, number: 0, before });
            }
            issuers.len() - 1
        });
        let number = issuers[slot].number;
        (slot, Agent { thread: threads_of(&self.cta) + slot as u32, number, is_engine: true })
    }

    /// When the product, copy or shift that is next was started, in a recorded run.
    pub(crate) fn next_tensor_start(&self) -> Option<u64> {
        self.cta.tensor.queue.front()?.work().map(|(start, _)| start.at)
    }

    pub(crate) fn is_commit_next(&self) -> bool {
        matches!(self.cta.tensor.queue.front(), Some(Task::Commit(_)))
    }

    pub(crate) fn has_tensor_work(&self) -> bool {
        !self.cta.tensor.queue.is_empty()
    }

    /// Hands a product, copy or shift to the engine.
    fn enqueue(&mut self, task: Task) {
        if let Some((start, _)) = task.work() {
            self.record_start((start.warp, start.read.pc), Engine::Tensor, start.agent);
        }
        self.cta.tensor.queue.push_back(task);
    }

    fn new_start(&self, warp: &Warp, lane: usize, agent: Agent, columns: Vec<Range<usize>>) -> Start {
        let read = self.bulk_access(warp, lane, 0, Some(agent));
        let at = self.recorder.as_ref().map_or(0, |recorder| recorder.timeline.ticks);
        Start { warp: warp.id, read, agent, columns, at }
    }

    /// The agent of a new product or copy.
    fn next_issue(&mut self, thread: u32) -> Agent {
        let (slot, agent) = self.issuer(thread);
        let before = self.cta.clocks.started(thread);
        let issuer = &mut self.cta.tensor.issuers[slot];
        issuer.number += 1;
        issuer.before = before;
        Agent { number: agent.number + 1, ..agent }
    }

    /// Records an access by the engine to the tensor memory of the CTA that has a region.
    fn engine_access(
        &mut self,
        (warp, lane): (&Warp, usize),
        agent: Agent,
        (id, area): (RegionId, &Area),
        by: By,
    ) -> ExecResult<()> {
        self.must_be_allocated(id, area, 1 << lane)?;
        if !self.options.check_races {
            return Ok(());
        }
        let mark = Mark { cta: self.cta.number, agent: agent.thread, number: agent.number, pc: warp.pc, by };
        self.tensor_access((warp.thread(lane), 1 << lane), id, area, mark, by != By::Multiplicand)
    }

    /// The shared memories of the CTAs that execute an instruction together, the one of the even rank first.
    fn group(&self, lane: usize, is_pair: bool) -> ExecResult<Vec<RegionId>> {
        if !is_pair {
            return Ok(vec![RegionId::Shared]);
        }
        let own = self.cta.rank;
        let id = |rank: u32| if rank == own { RegionId::Shared } else { RegionId::Peer(rank) };
        let illegal = |message: &str| Err(RaisedFault::new(FaultKind::IllegalInstruction, 1 << lane, message));
        match self.peers.get((own ^ 1) as usize) {
            Some(other) if !other.has_ended => Ok(vec![id(own & !1), id(own | 1)]),
            Some(_) => illegal("the other CTA of the pair has exited"),
            None => illegal("a pair of CTAs is in one cluster, and this CTA has no other one with it"),
        }
    }

    pub(super) fn start_product(&mut self, warp: &Warp, lane: usize, op: &TensorMma) -> ExecResult<()> {
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

    pub(super) fn start_tensor_copy(
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

    pub(super) fn start_shift(&mut self, warp: &Warp, lane: usize, at: &MemRef, is_pair: bool) -> ExecResult<()> {
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
    pub(super) fn commit_tensor(
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

    /// The PTX line of a product or copy of the CTA or of the other one of its pair that uses some of these columns and is
    /// not known to be complete.
    pub(super) fn running_task(&self, columns: Range<usize>, is_known: &dyn Fn(u32, u32, u32) -> bool) -> Option<u32> {
        let other = self.peers.get((self.cta.rank ^ 1) as usize);
        let running = [Some(&self.cta), other].into_iter().flatten().find_map(|cta| {
            let is_own = cta.number == self.cta.number;
            let overlaps = |used: &Range<usize>| used.start < columns.end && columns.start < used.end;
            cta.tensor.queue.iter().find(|task| {
                task.work().is_some_and(|(start, ctas)| {
                    (is_own || ctas > 1)
                        && start.columns.iter().any(overlaps)
                        && !is_known(cta.number, start.agent.thread, start.agent.number)
                })
            })
        });
        running.map(|task| self.program.line(task.start().0))
    }

    /// Performs what started first. Returns whether there was something.
    pub(crate) fn advance_tensor(&mut self) -> Result<bool, Box<Fault>> {
        let Some(task) = self.cta.tensor.queue.pop_front() else { return Ok(false) };
        self.effects += 1;
        let (pc, warp, _) = task.start();
        match task.work() {
            Some((start, _)) => self.record_end(start.agent),
            None => self.record_commit(),
        }
        let done = match task {
            Task::Product(product) => {
                self.perform_product(&product);
                Ok(())
            }
            Task::Copy(copy) => {
                self.perform_tensor_copy(&copy);
                Ok(())
            }
            Task::Shift(shift) => {
                self.perform_shift(&shift);
                Ok(())
            }
            Task::Commit(commit) => self.arrive_by_copies(commit.lane, &commit.slot, &commit.known, commit.before),
        };
        match done {
            Ok(()) => Ok(true),
            Err(stop) => Err(self.fault(*stop, pc, warp)),
        }
    }

    fn perform_product(&mut self, product: &Product) {
        let Product { start, shape, .. } = product;
        let mut b = Values::default();
        for units in &product.b {
            let part =
                self.shared_values((start.warp, &start.read), units, &shape.b, (shape.n / product.b.len(), shape.k));
            b.elements.extend(part.elements);
            b.origins.extend(part.origins);
        }
        for half in &product.halves {
            self.perform_half(product, half, b.clone());
        }
    }

    fn perform_half(&mut self, product: &Product, half: &Half, mut b: Values) {
        let Product { start, shape, path, .. } = product;
        let (Shape { m, n, k, .. }, id) = (*shape, half.id);
        let (warp, pc) = (start.warp, start.read.pc);
        let mut a = match &half.a {
            Source::Shared(units) => self.shared_values((warp, &start.read), units, &shape.a, (m, k)),
            Source::Tensor(address) => self.tensor_values((warp, pc), (id, *address), &shape.a, (m, k), *path),
        };
        if let Some((of_a, of_b, factors)) = product.scales {
            self.read_scales((warp, pc), &mut a, (id, of_a, shape.a.scale_byte), factors, shape);
            self.read_scales((warp, pc), &mut b, (id, of_b, shape.b.scale_byte), factors, shape);
        }
        let (mut words, mut marks) = self.sums_before(product, id);
        if a.origins.iter().chain(&b.origins).any(Option::is_some) {
            marks.resize(m * n, None);
            let of_multiplicands = (0..m * n).map(|at| a.origins[at / n].or(b.origins[at % n]));
            marks.iter_mut().zip(of_multiplicands).for_each(|(mark, other)| *mark = mark.or(other));
        }
        multiply(shape, &a, &b, &mut words, product.shift);
        let memory = &mut self.owner_mut(id).tensor.memory;
        for (first, lane, column) in product.runs() {
            let run = first..first + path.columns(n);
            if half.disabled >> lane & 1 == 1 {
                continue;
            }
            memory.set_defined(lane, column, &words[run.clone()]);
            for (at, origin) in run.clone().zip(marks.get(run.clone()).into_iter().flatten()) {
                if origin.is_some() {
                    memory.set(lane, column + at - run.start, words[at], of_origin(*origin));
                }
            }
        }
    }

    /// The sums that a CTA adds the products to, and where undefined bits of them come from: for each of them, or nothing if
    /// there are none.
    fn sums_before(&mut self, product: &Product, id: RegionId) -> (Vec<u32>, Vec<Option<u32>>) {
        let (Shape { m, n, .. }, run) = (product.shape, product.path.columns(product.shape.n));
        let (mut words, mut marks) = (vec![0u32; m * n], Vec::new());
        for (first, lane, column) in product.runs().filter(|_| product.accumulates) {
            let memory = &self.owner(id).tensor.memory;
            if let Some(found) = memory.defined_words(lane, column..column + run) {
                words[first..first + run].copy_from_slice(found);
                continue;
            }
            marks.resize(m * n, None);
            for at in 0..run {
                let (word, undefined) = self.owner(id).tensor.memory.get(lane, column + at);
                let undefined =
                    undefined.unwrap_or_else(|| self.unwritten_tensor(product.start.warp, product.start.read.pc));
                words[first + at] = word;
                marks[first + at] = undefined.is_some().then_some(undefined.origin);
            }
        }
        (words, marks)
    }

    /// Reads the scale factors of a multiplicand, from a byte of the words in their columns on.
    fn read_scales(
        &mut self,
        (warp, pc): (u32, u32),
        values: &mut Values,
        (id, address, first_byte): (RegionId, u32, u32),
        factors: usize,
        shape: &Shape,
    ) {
        for line in 0..values.origins.len() {
            let column = split(address).1 + line / 32;
            let bytes = first_byte as usize..first_byte as usize + factors;
            let used = bytes.clone().fold(0u32, |all, byte| all | 0xff << (8 * byte));
            let (word, undefined) = self.scale_word((warp, pc), id, (line % 32, column), used);
            if bytes.clone().any(|byte| undefined.bits >> (8 * byte) & 0xff != 0) {
                values.origins[line] = values.origins[line].or(Some(undefined.origin));
            }
            values.scales.extend(bytes.map(|byte| scale(word.to_le_bytes()[byte], shape.scale)));
        }
    }

    /// A word of scale factors; all quarters of the lanes have the same bits of it that are used.
    fn scale_word(
        &mut self,
        (warp, pc): (u32, u32),
        id: RegionId,
        (lane, column): (usize, usize),
        used: u32,
    ) -> (u32, Undefined) {
        let (word, mut undefined) = self.owner(id).tensor.memory.get(lane, column);
        for other in (lane + 32..LANES).step_by(32) {
            let (copy, of_copy) = self.owner(id).tensor.memory.get(other, column);
            if (copy ^ word) & used != 0 && of_copy.is_some() {
                let message = "the quarters of the lanes of tensor memory have different scale factors";
                let stop = RaisedFault::new(FaultKind::TmemMisuse, 1, message);
                let origin = self.origins.number(warp, pc, *stop);
                return (word, Undefined { bits: u64::from(u32::MAX), origin });
            }
            undefined = undefined.zip(of_copy).map(|(one, other)| one.or(other));
        }
        (word, undefined.unwrap_or_else(|| self.unwritten_tensor(warp, pc)))
    }

    /// Moves the words of every lane but the last to the next lane; the first one keeps its own.
    fn perform_shift(&mut self, shift: &Shift) {
        let Shift { start, first_lane, first_column, ids } = shift;
        for id in ids {
            for lane in (*first_lane..first_lane + QUARTER - 1).rev() {
                for column in *first_column..first_column + SHIFTED_COLUMNS {
                    let (word, undefined) = self.owner(*id).tensor.memory.get(lane, column);
                    let undefined = undefined.unwrap_or_else(|| self.unwritten_tensor(start.warp, start.read.pc));
                    self.owner_mut(*id).tensor.memory.set(lane + 1, column, word, undefined);
                }
            }
        }
    }

    fn perform_tensor_copy(&mut self, copy: &Copy) {
        let Copy { start, first_column, shape, .. } = copy;
        let in_row = shape.bytes as usize / UNIT as usize;
        let lanes = (0..LANES).filter(|lane| lane % QUARTER < shape.lanes);
        for ((id, units), lane) in copy.parts.iter().flat_map(|part| lanes.clone().map(move |lane| (part, lane))) {
            let row = shape.quarters[lane / QUARTER] as usize + lane % QUARTER;
            for unit in 0..in_row {
                let (bytes, origin) =
                    self.unit_bytes(start.warp, &start.read, units, (row * in_row + unit, UNIT as usize));
                for (word, part) in bytes.chunks_exact(4).enumerate() {
                    let column = first_column + unit * 4 + word;
                    let value = u32::from_le_bytes([part[0], part[1], part[2], part[3]]);
                    self.owner_mut(*id).tensor.memory.set(lane, column % COLUMNS, value, of_origin(origin));
                }
            }
        }
    }
}

/// The undefined bits of a word that is undefined because of something.
fn of_origin(origin: Option<u32>) -> Undefined {
    origin.map_or(Undefined::default(), |origin| Undefined { bits: u64::from(u32::MAX), origin })
}
