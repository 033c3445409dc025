//! `wgmma`: each warp of a warpgroup computes the 16 rows that are in its registers.
//!
//! A product is computed where it starts. Until its group has been waited for, the registers of its accumulator are
//! undefined for all but products of the same shape, and its reads of shared memory are those of an agent of the warp that
//! nobody is ordered after.

use std::collections::{BTreeMap, VecDeque};

use crate::clock::Agent;
use crate::exec::machine::Machine;
use crate::exec::product::{
    Element, Major, Multiplier, Scale, Shape, SharedMatrix, Sum, Values, element, multiply, units_of,
};
use crate::exec::tensor::{Direction, register_agent};
use crate::exec::undefined::UndefinedLanes;
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, Fault, FaultKind, RaisedFault};
use crate::lanes::{FULL, Lanes};
use crate::op::{AccumulatorType, Multiplicand, Reg, WarpgroupLeft, WarpgroupMma, WarpgroupMultiplicand, WarpgroupOp};
use crate::undefined::Undefined;

/// Warps of a warpgroup.
const WARPS: u32 = 4;
/// Rows of a product that a warp computes.
const ROWS: usize = 16;

/// An accumulator's register that is being computed: the undefined bits that it has afterwards, if there are any, the origin of
/// those that it has until then, and the group of the product.
#[derive(Clone, Debug)]
struct Accumulating {
    after: Option<Box<UndefinedLanes>>,
    late: u32,
    group: u32,
    /// The instruction.
    pc: u32,
}

/// The products of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Products {
    /// Number of the open group.
    group: u32,
    /// For each pending group, the number of its last product.
    pending: VecDeque<(u32, u32)>,
    accumulating: BTreeMap<Reg, Accumulating>,
    /// Registers of left multiplicands, with their values and groups.
    left: Vec<(Reg, Lanes, u32)>,
    /// What registers of products were at the last fence, or when the product that computed them was complete: others may have
    /// accessed them since.
    fenced: BTreeMap<Reg, Lanes>,
    /// A checksum of what the warp has multiplied, how many products these were, and the last of them.
    done: (u64, u32),
    last: u32,
}

impl Machine<'_> {
    pub(crate) fn warpgroup(&mut self, warp: &mut Warp, exec: u32, op: &WarpgroupOp) -> ExecResult<()> {
        if !self.gather_all(warp, exec)? {
            return Ok(());
        }
        if (warp.id / WARPS + 1) * WARPS > self.cta.alive.len() as u32 {
            let message = "a warpgroup has four warps; the CTA has fewer from the first of them on";
            return Err(RaisedFault::new(FaultKind::IllegalInstruction, FULL, message));
        }
        match op {
            WarpgroupOp::Fence => {
                let products = self.cta.products(warp.id);
                // Those of products that have not been waited for are the products' alone.
                let registers =
                    self.program.warpgroup_registers.iter().filter(|reg| !products.accumulating.contains_key(reg));
                products.fenced = registers.map(|reg| (*reg, warp.regs[*reg as usize])).collect();
            }
            WarpgroupOp::Mma(mma) => self.warpgroup_mma(warp, mma)?,
            WarpgroupOp::Commit => {
                let last = register_agent(&self.cta, warp.id, Direction::Load).number;
                let products = self.cta.products(warp.id);
                products.pending.push_back((products.group, last));
                products.group += 1;
            }
            WarpgroupOp::Wait { pending } => self.wait_for_products(warp, *pending as usize)?,
        }
        warp.pc += 1;
        Ok(())
    }

    fn warpgroup_mma(&mut self, warp: &mut Warp, op: &WarpgroupMma) -> ExecResult<()> {
        self.must_be_register_fenced(warp, op)?;
        self.must_agree(warp, op)?;
        let shape = shape_of(op);
        let agent = self.start_warpgroup_read(warp);
        let a = match &op.a {
            WarpgroupLeft::Shared(reg) => {
                let matrix = SharedMatrix::of_warpgroup(warp.regs[*reg as usize][0]);
                let first = warp.id % WARPS * ROWS as u32;
                let rows = units_of(&matrix, &shape.a, (first as usize, ROWS), shape.k);
                self.warpgroup_values(warp, agent, &rows, &shape.a, (ROWS, shape.k))?
            }
            WarpgroupLeft::Registers(regs) => left_of_registers(warp, regs, &shape),
        };
        let matrix = SharedMatrix::of_warpgroup(warp.regs[op.b as usize][0]);
        let columns = units_of(&matrix, &shape.b, (0, shape.n), shape.k);
        let b = self.warpgroup_values(warp, agent, &columns, &shape.b, (shape.n, shape.k))?;
        let accumulates = warp.guard(op.accumulates) & 1 == 1;
        let products = self.cta.products(warp.id);
        let group = products.group;
        if let WarpgroupLeft::Registers(regs) = &op.a {
            products.left.extend(regs.iter().map(|reg| (*reg, warp.regs[*reg as usize], group)));
        }
        let mut words = vec![0u32; ROWS * shape.n];
        let mut marks: Vec<Option<u32>> = Vec::with_capacity(words.len());
        a.origins.iter().for_each(|row| marks.extend(b.origins.iter().map(|column| row.or(*column))));
        if accumulates {
            self.read_accumulators(warp, op, &mut words, &mut marks);
        }
        multiply(&shape, &a, &b, &mut words, 0);
        self.write_accumulators(warp, op, &words, &marks, group);
        Ok(())
    }

    /// Faults if a register of the product was written since the last `wgmma.fence`, or since the product that computed it.
    fn must_be_register_fenced(&mut self, warp: &Warp, op: &WarpgroupMma) -> ExecResult<()> {
        let products = self.cta.products(warp.id);
        let is_same = |reg: &Reg| products.fenced.get(reg) == Some(&warp.regs[*reg as usize]);
        let left: &[Reg] = if let WarpgroupLeft::Registers(regs) = &op.a { regs } else { &[] };
        let is_late =
            |reg: Reg| warp.undefined_lanes(reg).is_some_and(|lanes| lanes.iter().all(|undefined| undefined.is_late));
        let is_computed = |reg: &Reg| products.accumulating.contains_key(reg) && is_late(*reg);
        if op.d.iter().all(|reg| is_computed(reg) || is_same(reg)) && left.iter().all(is_same) {
            return Ok(());
        }
        let message =
            "`wgmma.fence` is missing between other accesses to the registers of this product and the product";
        Err(RaisedFault::new(FaultKind::AsyncRegisterHazard, FULL, message))
    }

    /// Faults unless all lanes have the same operands. The four warps are compared when the CTA ends.
    fn must_agree(&mut self, warp: &Warp, op: &WarpgroupMma) -> ExecResult<()> {
        let mut checksum = u64::from(warp.pc);
        let left = if let WarpgroupLeft::Shared(reg) = &op.a { Some(*reg) } else { None };
        for reg in left.into_iter().chain([op.b]) {
            self.must_be_defined(warp, reg, FULL, "are an operand of a product")?;
            let values = &warp.regs[reg as usize];
            if let Some(lane) = values.iter().position(|value| *value != values[0]) {
                let message = "the lanes of the warp have different descriptors of a matrix";
                return Err(RaisedFault::new(FaultKind::IllegalInstruction, 1 << lane, message));
            }
            checksum = checksum.wrapping_mul(31).wrapping_add(values[0]);
        }
        if let Some(origin) = warp.undefined_pred(op.accumulates.index, FULL) {
            return Err(self.undefined_use(origin, warp.pc, "decide whether a product is added"));
        }
        let adds = warp.guard(op.accumulates);
        if adds != 0 && adds != FULL {
            let message = "the lanes of the warp disagree on whether the product is added";
            return Err(RaisedFault::new(FaultKind::IllegalInstruction, adds, message));
        }
        let Products { done, last, .. } = self.cta.products(warp.id);
        *last = warp.pc;
        *done = (done.0.wrapping_mul(31).wrapping_add(checksum ^ u64::from(adds & 1)), done.1 + 1);
        Ok(())
    }

    /// At the end of the CTA: products have been waited for, and the warps of a warpgroup have executed the same ones.
    pub(crate) fn end_products(&mut self) -> Result<(), Box<Fault>> {
        for warp in 0..self.cta.alive.len() as u32 {
            let products = self.cta.products(warp);
            if let Some(known) = products.accumulating.values().next() {
                let message = match known.group == products.group {
                    true => "the warp exits, and this product is in no group: `wgmma.commit_group` is missing after it",
                    false => "the warp exits before `wgmma.wait_group` has waited for its products",
                };
                let pc = known.pc;
                return Err(self.fault(*RaisedFault::new(FaultKind::AsyncRegisterHazard, FULL, message), pc, warp));
            }
            let first = warp / WARPS * WARPS;
            let mut of = |warp: u32| {
                let Products { done, last, .. } = *self.cta.products(warp);
                (done, done.1, last)
            };
            let ((own, own_count, own_last), (other, count, last)) = (of(warp), of(first));
            if own != other {
                let how = match own_count == count {
                    true => format!("warps {first} and {warp} have executed {count} with different operands"),
                    false => {
                        format!("warp {first} has executed {count} of them, and warp {warp} has executed {own_count}")
                    }
                };
                let message = format!("the four warps of a warpgroup execute each product together; {how}");
                let last = if own_count > count { own_last } else { last };
                let stop = RaisedFault::new(FaultKind::IllegalInstruction, FULL, message);
                return Err(self.fault(*stop, last, warp));
            }
        }
        Ok(())
    }

    fn start_warpgroup_read(&mut self, warp: &Warp) -> Agent {
        self.cta.tensor.start_move(warp.id, Direction::Load);
        register_agent(&self.cta, warp.id, Direction::Load)
    }

    fn warpgroup_values(
        &mut self,
        warp: &Warp,
        agent: Agent,
        units: &[u64],
        multiplier: &Multiplier,
        size: (usize, usize),
    ) -> ExecResult<Values> {
        let read = self.bulk_access(warp, 0, 0, Some(agent));
        let units = self.read_units(warp, 0, (agent, self.cta.rank), units)?;
        Ok(self.shared_values((warp.id, &read), &units, multiplier, size))
    }

    /// The elements of D: those of products that have not been waited for are defined for this one.
    fn read_accumulators(&mut self, warp: &Warp, op: &WarpgroupMma, words: &mut [u32], marks: &mut [Option<u32>]) {
        let products = self.cta.products(warp.id);
        let of_lanes = places_of_lanes(op);
        for (number, reg) in op.d.iter().enumerate() {
            let held = match products.accumulating.get(reg) {
                Some(known) => known.after.as_deref(),
                None => warp.undefined_lanes(*reg),
            };
            for (half, place) in places(op, number).enumerate() {
                for (of_lane, word) in of_lanes.iter().zip(&warp.regs[*reg as usize]) {
                    words[of_lane + place] = part(op, *word as u32, half);
                }
                for (of_lane, undefined) in of_lanes.iter().zip(held.into_iter().flatten()) {
                    let mark = &mut marks[of_lane + place];
                    *mark = mark.or(undefined.is_some().then_some(undefined.origin));
                }
            }
        }
    }

    fn write_accumulators(
        &mut self,
        warp: &mut Warp,
        op: &WarpgroupMma,
        words: &[u32],
        marks: &[Option<u32>],
        group: u32,
    ) {
        let message = "`wgmma.wait_group` has not waited for this product";
        let stop = RaisedFault::new(FaultKind::AsyncRegisterHazard, FULL, message);
        let late = self.origins.number(warp.id, warp.pc, *stop);
        let of_lanes = places_of_lanes(op);
        let is_marked = marks.iter().any(Option::is_some);
        for (number, reg) in op.d.iter().enumerate() {
            let mut after = is_marked.then(|| Box::new([Undefined::default(); 32]));
            let values = &mut warp.regs[*reg as usize];
            *values = [0; 32];
            for (half, place) in places(op, number).enumerate() {
                for (of_lane, word) in of_lanes.iter().zip(values.iter_mut()) {
                    *word |= u64::from(words[of_lane + place]) << (16 * half);
                }
                for (of_lane, after) in of_lanes.iter().zip(after.iter_mut().flat_map(|after| after.iter_mut())) {
                    if let Some(origin) = marks[of_lane + place] {
                        *after = Undefined::new(u64::from(u32::MAX), origin);
                    }
                }
            }
            self.cta.products(warp.id).accumulating.insert(*reg, Accumulating { after, late, group, pc: warp.pc });
        }
        let undefined = [Undefined::late(late); 32];
        warp.replace_marks(op.d.iter().map(|reg| (*reg, Some(&undefined))));
    }

    fn wait_for_products(&mut self, warp: &mut Warp, pending: usize) -> ExecResult<()> {
        let products = self.cta.products(warp.id);
        let complete = products.pending.len().saturating_sub(pending);
        let Some((group, number)) = products.pending.drain(..complete).next_back() else { return Ok(()) };
        let is_changed = |(reg, values, of): &(Reg, Lanes, u32)| *of <= group && warp.regs[*reg as usize] != *values;
        let changed = products.left.iter().any(is_changed);
        products.left.retain(|(.., of)| *of > group);
        let done: Vec<Reg> =
            products.accumulating.iter().filter(|(_, known)| known.group <= group).map(|(reg, _)| *reg).collect();
        let mut is_overwritten = changed;
        let mut after = Vec::with_capacity(done.len());
        for reg in done {
            let Some(known) = products.accumulating.remove(&reg) else { continue };
            let is_as_left = |undefined: &Undefined| undefined.origin == known.late && undefined.is_late;
            is_overwritten |= !warp.undefined_lanes(reg).is_some_and(|lanes| lanes.iter().all(is_as_left));
            products.fenced.insert(reg, warp.regs[reg as usize]);
            after.push((reg, known.after));
        }
        if is_overwritten {
            let message = "a register of a product was written before `wgmma.wait_group` has waited for it";
            return Err(RaisedFault::new(FaultKind::AsyncRegisterHazard, FULL, message));
        }
        warp.replace_marks(after.iter().map(|(reg, undefined)| (*reg, undefined.as_deref())));
        let agent = Agent { number, ..register_agent(&self.cta, warp.id, Direction::Load) };
        self.cta.clocks.learn_agent((0..32).map(|lane| warp.thread(lane)), agent);
        Ok(())
    }
}

/// What a warp computes.
fn shape_of(op: &WarpgroupMma) -> Shape {
    let multiplier = |of: &WarpgroupMultiplicand| Multiplier {
        element: match of.element {
            Multiplicand::Float(format) => Element::Float(format),
            Multiplicand::Tf32 => Element::Tf32,
            Multiplicand::Integer { signed } => Element::Integer { signed },
        },
        is_negated: of.is_negated,
        major: if of.is_transposed { Major::Mn } else { Major::K },
        scale_byte: 0,
    };
    let sum = match op.sum {
        AccumulatorType::F16 => Sum::F16,
        AccumulatorType::F32 => Sum::F32,
        AccumulatorType::S32 { saturate } => Sum::S32 { saturates: saturate },
    };
    let [a, b] = [multiplier(&op.types[0]), multiplier(&op.types[1])];
    Shape { m: ROWS, n: op.n, k: op.k, a, b, sum, scale: Scale::Ue8m0 }
}

/// The elements of D, row by row, that a register holds in the first lane: one, or two of 16 bits (PTX ISA, section "Register
/// Fragments" of `wgmma`).
fn places(op: &WarpgroupMma, number: usize) -> impl Iterator<Item = usize> + use<> {
    let (n, is_half) = (op.n, matches!(op.sum, AccumulatorType::F16));
    let in_register = if is_half { 2 } else { 1 };
    let of = number * in_register..(number + 1) * in_register;
    of.map(move |at| at / 2 % 2 * 8 * n + at / 4 * 8 + at % 2)
}

/// How far the elements of each lane are from those of the first one.
fn places_of_lanes(op: &WarpgroupMma) -> [usize; 32] {
    std::array::from_fn(|lane| lane / 4 * op.n + lane % 4 * 2)
}

/// An element in a register.
fn part(op: &WarpgroupMma, word: u32, half: usize) -> u32 {
    if matches!(op.sum, AccumulatorType::F16) { word >> (16 * half) & 0xffff } else { word }
}

/// The rows of A in the registers of a warp: a register has adjacent elements along k, and the four lanes of a row follow
/// each other; every second register is of the row eight below.
fn left_of_registers(warp: &Warp, regs: &[Reg], shape: &Shape) -> Values {
    let in_register = shape.a.element.in_unit() / 4;
    let mut values = Values { elements: vec![0.0; ROWS * shape.k], origins: vec![None; ROWS], ..Values::default() };
    for (number, reg) in regs.iter().enumerate() {
        for lane in 0..32 {
            let row = lane / 4 + number % 2 * 8;
            let first = (number / 2 * 4 + lane % 4) * in_register;
            let mut unit = [0u8; 16];
            unit[..4].copy_from_slice(&(warp.regs[*reg as usize][lane] as u32).to_le_bytes());
            for at in 0..in_register {
                values.elements[row * shape.k + first + at] = element(&unit, at, &shape.a);
            }
            let undefined = warp.undefined(*reg, lane);
            if undefined.is_some() {
                values.origins[row] = values.origins[row].or(Some(undefined.origin));
            }
        }
    }
    values
}
