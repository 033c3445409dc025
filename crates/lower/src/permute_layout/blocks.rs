//! Blocks: every lane reads runs that are contiguous in the source, and writes runs that are contiguous in the
//! destination, both in wide accesses. A lane holds whole blocks, whose rows are runs of the source and whose columns
//! are runs of the destination. So the transpose happens in its registers: by renaming them, and for elements narrower
//! than a word by exchanging halves or bytes of words.
//!
//! The tile is linear over the bits of the element's index on both sides (see [`super::linear`]). Each bit of the
//! index selects an element inside a unit that moves together (`inner`), along a run of the source (`across`) or of
//! the destination (`down`), a lane, or one of the lane's blocks (`rest`).

use num_integer::Integer;
use tilewright_diag::counted;
use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::plan::{MemoryKind, Reason};
use tilewright_ir::thread::{Call, Cond, Inst, RegArray, Regs, Stmt};
use tilewright_layout::DType;

use super::context::{Context, MOST_REGISTERS, staged};
use super::exchange::{Exchange, Scratch, Stage};
use super::linear::{Aim, BitMap, LANE_BITS, LaneBit, LinearSide, Span, choose_lanes, complement, sums};
use super::listed::{AddressTerm, LinearAddress, LinearTerm, Listed};
use crate::builder::{Builder, regs};
use crate::conditions::{MANY_GUARDED, either, under_each};
use crate::operand::{MemoryTile, all_inside};
use crate::refusal::Refusal;

/// Bytes of one access on either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Widths {
    pub(crate) src: i64,
    pub(crate) dst: i64,
}

/// What one lane holds of a block.
#[derive(Clone, Debug)]
struct Shape {
    /// Bytes that always move together.
    unit: i64,
    /// Bits of the index inside a unit.
    inner: Vec<i64>,
    /// Bits of the index along a run of the source.
    across: Vec<i64>,
    /// Bits of the index along a run of the destination.
    down: Vec<i64>,
    /// Stages of the exchange that units narrower than a word need.
    stages: usize,
}

/// A move in blocks.
#[derive(Clone, Debug)]
pub(crate) struct BlockPlan {
    /// Bytes of an element.
    bytes: i64,
    shape: Shape,
    src: BlockSide,
    dst: BlockSide,
    /// What each bit of the lane's number stands for.
    lanes: Vec<LaneBit>,
    /// Bits of the index that number the blocks of a lane.
    rest: Vec<i64>,
    exchange: Exchange,
    /// How many bits of rows and columns, from the highest of the exchange down, are in the lane's number.
    split: usize,
}

/// One side of the move.
#[derive(Clone, Debug)]
struct BlockSide {
    /// Bytes of an access.
    width: i64,
    /// The summands of its positions.
    parts: Vec<LinearTerm>,
}

/// Both operands as maps over bits, and what each allows.
pub(crate) struct LinearOperands {
    /// Bytes of an element.
    bytes: i64,
    src: LinearOperand,
    dst: LinearOperand,
}

struct LinearOperand {
    /// Positions in elements, relative to the start.
    map: BitMap,
    parts: Vec<LinearTerm>,
    /// What the lanes of an access must achieve.
    aim: Aim,
    /// Indices whose bits move by 1, 2, 4, ... elements in memory, as far as one access may reach.
    near: Vec<i64>,
}

impl LinearOperand {
    fn of(tile: &MemoryTile) -> Result<LinearOperand, Reason> {
        let listed = Listed::of(tile)?;
        let not_linear = || Reason {
            text: format!("the addresses of `{}` are not linear over the bits of an element's index", tile.title),
            accepted: "`2^n` elements with nested powers of two as strides, swizzled or not".to_string(),
        };
        let map = BitMap::of(&listed.positions).ok_or_else(not_linear)?;
        let part = |part: &AddressTerm| {
            let (first, stride, edge) = (part.first.clone(), part.stride.clone(), part.edge.clone());
            Some(LinearTerm { first, map: BitMap::of(&part.steps)?, stride, edge })
        };
        let parts = listed.parts.iter().map(part).collect::<Option<_>>().ok_or_else(not_linear)?;
        let aim = if tile.memory_kind == MemoryKind::Shared { Aim::Banks } else { Aim::Sectors };
        let bytes = tile.dtype.bytes();
        let fits = |width: &i64| {
            let elements = width / bytes;
            let rows = listed
                .parts
                .iter()
                .all(|part| part.stride.as_const().is_some() || part.stride.multiple() % elements == 0);
            // Whether an edge may lie inside a vector.
            let is_cut = |part: &AddressTerm| {
                let is_inside = part.stride.as_const().is_some_and(|stride| stride.abs() < elements);
                let edge = part.edge.as_ref().filter(|_| is_inside);
                edge.is_some_and(|edge| edge.multiple().gcd(&part.first.multiple()) % elements != 0)
            };
            let begins = listed.start.multiple() % elements == 0 && map.base() % elements == 0;
            tile.alignment % width == 0 && begins && rows && !listed.parts.iter().any(is_cut)
        };
        let widest = [16, 8, 4, 2].into_iter().filter(|width| *width > bytes).find(fits).unwrap_or(bytes);
        let near = map.neighbours(1, (widest / bytes).trailing_zeros() as usize);
        Ok(LinearOperand { map, parts, aim, near })
    }

    /// The bits of the index along a run of `elements` elements.
    fn run(&self, elements: i64) -> &[i64] {
        &self.near[..elements.trailing_zeros() as usize]
    }

    /// The offset inside an access of `elements` elements that flipping the bits of `index` causes; 0 if it moves the
    /// address by whole accesses.
    fn inside(&self, index: i64, elements: i64) -> i64 {
        self.map.image(index) % elements
    }

    /// Width of the widest access, in bytes.
    fn widest(&self, bytes: i64) -> i64 {
        bytes << self.near.len()
    }
}

impl LinearOperands {
    /// The operands. Error: one of them is not linear, or the tile does not fit the registers of a warp.
    pub(crate) fn of(context: &Context) -> Result<LinearOperands, Vec<Reason>> {
        let registers = (context.src.placed.size() * context.src.dtype.bytes() + 127) / 128;
        if registers > MOST_REGISTERS {
            return Err(vec![Reason {
                text: format!("the tile takes {registers} registers of each lane"),
                accepted: format!("tiles that take up to {MOST_REGISTERS}"),
            }]);
        }
        let src = LinearOperand::of(&context.src).map_err(|reason| vec![reason])?;
        let dst = LinearOperand::of(&context.dst).map_err(|reason| vec![reason])?;
        Ok(LinearOperands { bytes: context.src.dtype.bytes(), src, dst })
    }

    /// The move in accesses of these widths, in bytes; `None` if there is none without bank conflicts.
    pub(crate) fn plan(&self, widths: Widths) -> Option<BlockPlan> {
        if widths.src > self.src.widest(self.bytes) || widths.dst > self.dst.widest(self.bytes) {
            return None;
        }
        let (across, down) = (self.src.run(widths.src / self.bytes), self.dst.run(widths.dst / self.bytes));
        let common = across.iter().zip(down).take_while(|(a, b)| a == b).count();
        let unit = self.bytes << common;
        let is_narrow = unit < 4 && widths.src.max(widths.dst) > unit;
        let stages = if is_narrow { (4 / unit).trailing_zeros() as usize } else { 0 };
        let shape = Shape {
            unit,
            inner: across[..common].to_vec(),
            across: across[common..].to_vec(),
            down: down[common..].to_vec(),
            stages,
        };
        let held = shape.held();
        if Span::of(&held).dimension() < held.len() || shape.across.len() < stages || shape.down.len() < stages {
            return None;
        }
        if !self.has_whole_runs(&shape, widths) {
            return None;
        }
        let outer = self.outer(&shape, widths)?;
        let most_split = stages.min(LANE_BITS.saturating_sub(outer.len()));
        (0..=most_split).rev().find_map(|split| self.with_split(&shape, &outer, widths, split))
    }

    /// Whether every row of a block is an access of the source, and every column one of the destination, with the
    /// elements in the same order. Where a swizzle changes bits inside an access, each row has its own order.
    fn has_whole_runs(&self, shape: &Shape, widths: Widths) -> bool {
        let is_whole = |operand: &LinearOperand, width: i64, indices: &[i64]| {
            indices.iter().all(|index| operand.inside(*index, width / self.bytes) == 0)
        };
        is_whole(&self.src, widths.src, &shape.down) && is_whole(&self.dst, widths.dst, &shape.across)
    }

    /// Indices of the first elements of blocks: they move either address by whole accesses.
    fn outer(&self, shape: &Shape, widths: Widths) -> Option<Vec<i64>> {
        let inside = |operand: &LinearOperand, width: i64, index: i64| operand.inside(index, width / self.bytes);
        let cleared = |operand: &LinearOperand, width: i64, index: i64| {
            let low = inside(operand, width, index);
            let near = (0..).zip(operand.run(width / self.bytes)).filter(|(bit, _)| low >> bit & 1 == 1);
            near.fold(index, |index, (_, neighbour)| index ^ neighbour)
        };
        let aligned = |index| {
            let index = cleared(&self.dst, widths.dst, cleared(&self.src, widths.src, index));
            let is_aligned = inside(&self.src, widths.src, index) == 0 && inside(&self.dst, widths.dst, index) == 0;
            is_aligned.then_some(index)
        };
        complement(&self.src.map, &shape.held()).into_iter().map(aligned).collect()
    }

    /// The move in which `split` bits of rows and columns are in the lane's number.
    fn with_split(&self, shape: &Shape, outer: &[i64], widths: Widths, split: usize) -> Option<BlockPlan> {
        let in_lane = shape.stages - split;
        let side = |operand: &LinearOperand, width, turns: &[i64]| {
            let map = operand.map.scaled(self.bytes);
            LinearSide { map, width, aim: operand.aim, turns: turns.to_vec() }
        };
        let src = side(&self.src, widths.src, &shape.down[..in_lane]);
        let dst = side(&self.dst, widths.dst, &shape.across[..in_lane]);
        let shared = (in_lane..shape.stages).map(|bit| (shape.down[bit], shape.across[bit]));
        let first: Vec<LaneBit> =
            shared.map(|(read, write)| LaneBit { read, write, read_turns: 0, write_turns: 0 }).collect();
        let lanes = choose_lanes(&src, &dst, outer, &first)?;
        let taken: Vec<i64> = lanes[split..].iter().map(|bit| bit.read).chain(shape.held()).collect();
        let mut span = Span::of(&taken);
        let rest = outer.iter().copied().filter(|index| span.add(*index)).collect();
        let stage = |bit: usize| match bit.checked_sub(in_lane) {
            Some(bit) => Stage::Lanes { bit },
            None => {
                let mask = |turns: &dyn Fn(&LaneBit) -> i64| {
                    (0..).zip(&lanes).map(|(at, lane)| (turns(lane) >> bit & 1) << at).sum::<i64>()
                };
                Stage::Registers { rows: mask(&|lane| lane.read_turns), columns: mask(&|lane| lane.write_turns) }
            }
        };
        let exchange = Exchange { unit: shape.unit, stages: (0..shape.stages).map(stage).collect() };
        let side = |operand: &LinearOperand, width| BlockSide { width, parts: operand.parts.clone() };
        let (src, dst) = (side(&self.src, widths.src), side(&self.dst, widths.dst));
        let plan = BlockPlan { bytes: self.bytes, shape: shape.clone(), src, dst, lanes, rest, exchange, split };
        (plan.data_registers() <= MOST_REGISTERS).then_some(plan)
    }

    /// The cheapest move in blocks with accesses of these widths on either side.
    pub(crate) fn cheapest(&self, widths: &[i64]) -> Option<BlockPlan> {
        let pairs = widths.iter().flat_map(|src| widths.iter().map(|dst| Widths { src: *src, dst: *dst }));
        let fits =
            |widths: &Widths| widths.src.min(widths.dst) >= self.bytes && widths.src.max(widths.dst) > self.bytes;
        let plans = pairs.filter(fits).filter_map(|widths| self.plan(widths));
        plans.min_by_key(BlockPlan::estimate)
    }
}

impl Shape {
    fn held(&self) -> Vec<i64> {
        [self.inner.as_slice(), &self.across, &self.down].concat()
    }
}

impl BlockPlan {
    /// The bits of the rows that the lane itself holds, without those that are in the lane's number.
    fn down(&self) -> Vec<i64> {
        self.without_split(&self.shape.down)
    }

    /// The bits of the columns that the lane itself holds after the exchange.
    fn across(&self) -> Vec<i64> {
        self.without_split(&self.shape.across)
    }

    fn without_split(&self, indices: &[i64]) -> Vec<i64> {
        let (low, high) = indices.split_at(self.shape.stages);
        [&low[..self.shape.stages - self.split], high].concat()
    }

    /// Reads and writes of one lane.
    fn accesses(&self) -> (i64, i64) {
        (1 << (self.rest.len() + self.down().len()), 1 << (self.rest.len() + self.across().len()))
    }

    /// 32-bit registers of one lane: what is read, and with an exchange what is written.
    fn data_registers(&self) -> i64 {
        let (reads, writes) = self.accesses();
        let written = if self.shape.stages > 0 { writes * self.dst.width } else { 0 };
        (reads * self.src.width + written + 3) / 4
    }

    /// A cost for comparing widths: memory passes, and instructions.
    fn estimate(&self) -> i64 {
        let (reads, writes) = self.accesses();
        let lanes = 1i64 << self.lanes.len();
        let passes = |width: i64| (lanes * width + 127) / 128;
        // A stage takes a byte permutation for every word; between lanes it also takes a shuffle, which costs a pass.
        let words = reads * self.src.width / 4;
        let exchange = words * (self.shape.stages as i64 + self.split as i64 * 9);
        reads * (8 * passes(self.src.width) + 1) + writes * (8 * passes(self.dst.width) + 1) + exchange
    }

    pub(crate) fn summary(&self) -> String {
        let (rows, columns) = (1i64 << self.shape.down.len(), 1i64 << self.shape.across.len());
        let lanes = 1i64 << self.lanes.len();
        let blocks = 1i64 << self.rest.len();
        let how = match (self.shape.stages, self.split) {
            (0, _) => String::new(),
            (_, 0) => ", exchanged by prmt".to_string(),
            _ => ", exchanged by shuffles and prmt".to_string(),
        };
        let shared = if self.split > 0 {
            format!("one block for {} lanes", 1 << self.split)
        } else {
            format!("{blocks} per lane")
        };
        let idle = if lanes < 32 { format!(", {}", counted(lanes, "lane")) } else { String::new() };
        format!(
            "blocks of {rows} x {columns} units of {} B, {shared}{idle}; reads {} and writes {} B at a time{how}",
            self.shape.unit, self.src.width, self.dst.width
        )
    }

    /// The type of one register: an element, a unit of several, or a word.
    fn register_type(&self, element: DType) -> DType {
        match (self.shape.stages > 0, self.shape.unit) {
            (false, unit) if unit == self.bytes => element,
            (false, 2) => DType::B16,
            (false, 8) => DType::B64,
            (false, 16) => DType::B128,
            _ => DType::B32,
        }
    }

    pub(crate) fn build(&self, context: &Context, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        let lane = Expr::var(&context.lane);
        let mut body = Vec::new();
        if self.lanes.is_empty() {
            // NVRTC may let all lanes read the only element, before the one that wrote it has done so.
            body.push(Stmt::from(Call::plain(Inst::SyncWarp)));
        }
        let (reads, _) = self.accesses();
        let dtype = self.register_type(context.src.dtype);
        let wide = self.src.width / dtype.bytes();
        let array = builder.registers("r", dtype, reads * wide, wide, &mut body);
        let indices = |of: fn(&LaneBit) -> i64| self.lanes.iter().map(of).collect::<Vec<_>>();
        let from = self.src.address(builder, ("from", &lane), &indices(|bit| bit.read), &mut body);
        let to = self.dst.address(builder, ("to", &lane), &indices(|bit| bit.write), &mut body);
        let loads = (0..).zip(self.steps(&self.down())).map(|(at, step)| {
            let index = from.at(step);
            let load = Stmt::Load { to: regs(array, at * wide, wide), memory: context.src.memory, index };
            (from.inside(step), load)
        });
        let loads: Vec<GuardedAccess> = loads.collect();
        let mut reading = Vec::new();
        // The lanes that read nothing take part in the shuffles.
        let shuffles_idle = self.split > 0 && (self.lanes.len() < LANE_BITS || self.src.has_edges());
        if shuffles_idle || !self.stores_only_what_it_reads() {
            reading.extend((0..reads).map(|at| Stmt::Set { to: regs(array, at * wide, wide), value: 0.into() }));
        }
        let (written, exchange) = self.exchanged(builder, &lane, array, &mut body)?;
        let stores = (0..).zip(self.steps(&self.across())).map(|(at, step)| {
            let index = to.at(step);
            let store = Stmt::Store { memory: context.dst.memory, index, from: written(at) };
            (to.inside(step), store)
        });
        let active = |body| self.by_active_lanes(&lane, body);
        if exchange.is_empty() && !context.may_alias {
            reading.extend(active(guarded(&[&context.src, &context.dst], loads.into_iter().chain(stores).collect())));
            return Ok(staged(context, body, reading, Vec::new()));
        }
        reading.extend(active(guarded(&[&context.src], loads)));
        reading.extend(exchange);
        Ok(staged(context, body, reading, active(guarded(&[&context.dst], stores.collect()))))
    }

    /// Whether elements that are outside of the source, which read as 0, are outside of the destination, too.
    fn stores_only_what_it_reads(&self) -> bool {
        let is_outside_of_both = |part: &LinearTerm| {
            self.dst.parts.iter().any(|to| to.edge == part.edge && to.first == part.first && to.map == part.map)
        };
        self.src.parts.iter().filter(|part| part.edge.is_some()).all(is_outside_of_both)
    }

    /// The indices of the accesses of one side: `rest`, and inside it the rows or columns.
    fn steps(&self, along: &[i64]) -> Vec<i64> {
        sums(&[along, &self.rest].concat())
    }

    /// Under a condition where the tile has work for fewer lanes than there are.
    fn by_active_lanes(&self, lane: &Expr, body: Vec<Stmt>) -> Vec<Stmt> {
        if self.lanes.len() == LANE_BITS {
            return body;
        }
        vec![Stmt::If { cond: Cond::Less(lane.clone(), Expr::constant(1 << self.lanes.len())), body }]
    }

    /// The registers of each write, and the exchange that fills them, if one is needed.
    fn exchanged(
        &self,
        builder: &mut Builder,
        lane: &Expr,
        read: Handle<RegArray>,
        body: &mut Vec<Stmt>,
    ) -> Result<(WrittenRegs, Vec<Stmt>), Refusal> {
        let (rows, columns) = (self.shape.down.len() as u32, self.shape.across.len() as u32);
        if self.shape.stages == 0 {
            let written = move |at| {
                let (block, column) = (at >> columns, at & ((1 << columns) - 1));
                let first = (block << (rows + columns)) + column;
                Regs { array: read, first: Expr::constant(first), count: 1 << rows, step: 1 << columns }
            };
            return Ok((Box::new(written), Vec::new()));
        }
        let (_, writes) = self.accesses();
        let wide = self.dst.width / 4;
        let written = builder.registers("w", DType::B32, writes * wide, 1, body);
        let scratch = Scratch::declare(&self.exchange, builder, body);
        let selectors = self.exchange.name_selectors(builder, lane, body);
        let mut exchange = Vec::new();
        for group in self.groups(read, written) {
            exchange.extend(self.exchange.build(builder, &selectors, (&group.0, &group.1), &scratch)?);
        }
        Ok((Box::new(move |at| regs(written, at * wide, wide)), exchange))
    }

    /// The words of every exchange: those that were read, one per row, and those to be written, one per column.
    fn groups(&self, read: Handle<RegArray>, written: Handle<RegArray>) -> Vec<(Vec<Regs>, Vec<Regs>)> {
        let words = self.exchange.words();
        let high_rows = 1i64 << (self.shape.down.len() - self.shape.stages);
        let high_columns = 1i64 << (self.shape.across.len() - self.shape.stages);
        let mut groups = Vec::new();
        for block in 0..1i64 << self.rest.len() {
            for row in 0..high_rows {
                for column in 0..high_columns {
                    let from = |word: i64| ((block * high_rows + row) * words + word) * high_columns + column;
                    let to = |word: i64| ((block * high_columns + column) * words + word) * high_rows + row;
                    groups.push((
                        (0..words).map(|word| regs(read, from(word), 1)).collect(),
                        (0..words).map(|word| regs(written, to(word), 1)).collect(),
                    ));
                }
            }
        }
        groups
    }
}

/// The registers of each write.
type WrittenRegs = Box<dyn Fn(i64) -> Regs>;

/// An access, and the conditions under which it is inside its tensor.
type GuardedAccess = (Vec<Cond>, Stmt);

/// Accesses to tiles under their conditions. If there are many, they stand under one condition where all tiles are inside
/// their tensors.
fn guarded(tiles: &[&MemoryTile], accesses: Vec<GuardedAccess>) -> Vec<Stmt> {
    let masked = under_each(accesses.clone());
    let conditions = all_inside(tiles);
    let branches = masked.iter().flat_map(|stmt| stmt.inner()).count() as i64;
    if conditions.is_empty() || branches < MANY_GUARDED {
        return masked;
    }
    either(&conditions, accesses.into_iter().map(|(_, access)| access).collect(), masked)
}

impl BlockSide {
    fn has_edges(&self) -> bool {
        self.parts.iter().any(|part| part.edge.is_some())
    }

    fn address(
        &self,
        builder: &mut Builder,
        name: (&str, &Expr),
        lanes: &[i64],
        body: &mut Vec<Stmt>,
    ) -> LinearAddress<'_> {
        LinearAddress::new(builder, name, &self.parts, lanes, body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_layout::SwizzleLayout;

    /// Elements of 4 bytes at these positions, with accesses of up to 16 bytes.
    fn operand(positions: &[i64]) -> LinearOperand {
        let map = BitMap::of(positions).expect("linear");
        let near = map.neighbours(1, 2);
        LinearOperand { map, parts: Vec::new(), aim: Aim::Banks, near }
    }

    /// A row-major tile of 32 x 32 words becomes column-major. In the source, two bits of the row change bits of the
    /// column, from bit `kept` on.
    fn turned(kept: i64) -> LinearOperands {
        let swizzle = SwizzleLayout::new(kept, 2, 5 - kept, true).expect("a swizzle");
        let src: Vec<i64> = (0..1024).map(|element| swizzle.apply(element)).collect();
        let dst: Vec<i64> = (0..1024).map(|element| element % 32 * 32 + element / 32).collect();
        LinearOperands { bytes: 4, src: operand(&src), dst: operand(&dst) }
    }

    #[test]
    fn rows_reordered_by_a_swizzle_are_not_wide_accesses() {
        let is_planned = |kept: i64, src: i64, dst: i64| turned(kept).plan(Widths { src, dst }).is_some();
        assert_eq!([2, 1, 0].map(|kept| is_planned(kept, 16, 16)), [true, false, false]);
        assert_eq!([2, 1, 0].map(|kept| is_planned(kept, 8, 8)), [true, true, false]);
        assert_eq!([2, 1, 0].map(|kept| is_planned(kept, 4, 16)), [true; 3]);
        assert_eq!([2, 1, 0].map(|kept| is_planned(kept, 16, 4)), [true; 3]);
    }
}
