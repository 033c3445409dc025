//! `warp_vectorized`: where a lane's elements are contiguous on one side, that side is accessed 8 or 16 bytes at a
//! time.

use tilewright_expr::{Expr, Var};
use tilewright_ir::Handle;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Cond, RegArray, Stmt};
use tilewright_layout::TileLayout;

use super::context::{Context, staged};
use super::joint::Joint;
use crate::builder::{Builder, regs};
use crate::operand::MemoryTile;
use crate::refusal::{Against, Refusal};
use crate::traversal::Traversal;

/// The most 32-bit registers of data that one lane stages.
const MOST_REGISTERS: i64 = 128;

pub(crate) struct VectorSchedule {
    traversal: Traversal,
    /// Elements that a lane handles together.
    width: i64,
    /// Whether the source is read `width` elements at a time, or else one by one.
    wide_src: bool,
    /// The same for writing the destination.
    wide_dst: bool,
}

pub(crate) fn accept(context: &Context) -> Result<Vec<VectorSchedule>, Against> {
    let mut reasons = Vec::new();
    let bytes = context.src.dtype.bytes();
    let joint = Joint::of_context(context, &mut reasons);
    let elements = context.src.placed.size();
    let registers = (elements + 31) / 32 * bytes / 4;
    if registers > MOST_REGISTERS {
        reasons.push(Reason {
            text: format!("{elements} elements of {bytes} bytes take {registers} registers of each lane"),
            accepted: format!("tiles that take up to {MOST_REGISTERS}"),
        });
    }
    let Some(joint) = joint.filter(|_| reasons.is_empty()) else { return Err(Against::Reasons(reasons)) };
    let found = candidates(context, &joint)?;
    if found.is_empty() {
        return Err(Against::Reasons(vec![Reason {
            text: "no lane's elements are contiguous and aligned on either side".to_string(),
            accepted: "a side with 8 or 16 contiguous bytes per lane, aligned to their size".to_string(),
        }]));
    }
    Ok(found)
}

/// For the address order of either side, the widest access that at least one side allows.
fn candidates(context: &Context, joint: &Joint) -> Result<Vec<VectorSchedule>, Refusal> {
    let bytes = context.src.dtype.bytes();
    let mut found = Vec::new();
    for by_dst in [true, false] {
        let (main, other) = if by_dst { (&joint.dst, &joint.src) } else { (&joint.src, &joint.dst) };
        let placed = if by_dst { &context.dst.placed } else { &context.src.placed };
        let traversal = Traversal::along(placed, main, other, by_dst)?;
        let wide = |operand: &MemoryTile, layout, width| traversal.allows(operand, layout, width);
        let sides = |width| (wide(&context.src, traversal.src(), width), wide(&context.dst, traversal.dst(), width));
        let widths = [16, 8].into_iter().filter(|b| b % bytes == 0).map(|b| b / bytes);
        let widest = widths.map(|width| (width, sides(width))).find(|(_, (src, dst))| *src || *dst);
        if let Some((width, (wide_src, wide_dst))) = widest {
            found.push(VectorSchedule { traversal, width, wide_src, wide_dst });
        }
    }
    Ok(found)
}

/// One side of the move, as it is accessed.
struct VectorSide<'a> {
    operand: &'a MemoryTile,
    /// The operand's layout, in the order of the traversal.
    layout: &'a TileLayout,
    /// Whether a lane's elements are accessed together, or else one by one.
    is_wide: bool,
    is_store: bool,
}

impl VectorSchedule {
    pub(crate) fn summary(&self, context: &Context) -> String {
        let bytes = self.width * context.src.dtype.bytes();
        let sides = match (self.wide_src, self.wide_dst) {
            (true, true) => "reads and writes",
            (true, false) => "reads",
            (false, _) => "writes",
        };
        format!("{} per lane, {sides} {bytes} B at a time", self.steps() * self.width)
    }

    fn vectors(&self) -> i64 {
        self.traversal.src().size() / self.width
    }

    fn steps(&self) -> i64 {
        (self.vectors() + 31) / 32
    }

    pub(crate) fn build(&self, context: &Context, builder: &mut Builder) -> Vec<Stmt> {
        let mut body = Vec::new();
        let array = builder.staging(context.src.dtype, self.steps() * self.width, &mut body);
        let (src, dst) = (self.traversal.src(), self.traversal.dst());
        let read = VectorSide { operand: &context.src, layout: src, is_wide: self.wide_src, is_store: false };
        let write = VectorSide { operand: &context.dst, layout: dst, is_wide: self.wide_dst, is_store: true };
        let reads = self.phase(context, builder, array, &read);
        let writes = self.phase(context, builder, array, &write);
        staged(context, body, reads, writes)
    }

    /// All accesses of one side.
    fn phase(
        &self,
        context: &Context,
        builder: &mut Builder,
        array: Handle<RegArray>,
        side: &VectorSide<'_>,
    ) -> Vec<Stmt> {
        let VectorSide { operand, layout, is_wide, is_store } = *side;
        let lane = Expr::var(&context.lane);
        let step = Var::new("#step", 0, self.steps() - 1);
        let within = Var::new("#within", 0, self.width - 1);
        let flat = (&lane + &(Expr::var(&step) * 32)) * self.width + Expr::var(&within);
        let index = operand.index_of(builder, layout, &flat);
        let (count, pieces) = if is_wide { (self.width, 1) } else { (1, self.width) };
        let mut phase = Vec::new();
        for s in 0..self.steps() {
            let index = index.with(&step, s);
            let accesses = (0..pieces).map(|piece| {
                let index = index.with(&within, piece);
                let part = regs(array, s * self.width + piece, count);
                match is_store {
                    true => Stmt::Store { memory: operand.memory, index, from: part },
                    false => Stmt::Load { to: part, memory: operand.memory, index },
                }
            });
            let rest = self.vectors() - s * 32;
            if rest >= 32 {
                phase.extend(accesses);
            } else {
                let cond = Cond::Less(lane.clone(), Expr::constant(rest));
                phase.push(Stmt::If { cond, body: accesses.collect() });
            }
        }
        phase
    }
}
