//! Copies between tiles in memory: the threads walk over the tile together, with accesses as wide as both sides allow.

use tilewright_diag::counted;
use tilewright_expr::{Expr, Var};
use tilewright_ir::Handle;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Memory, RegArray, Stmt};
use tilewright_ir::tile::vectors::WIDEST;
use tilewright_layout::{TileLayout, refine_together};

use super::context::Context;
use super::team::{Team, spread_steps};
use crate::builder::{Builder, regs};
use crate::conditions::{MANY_GUARDED, either, in_step, never_hold, under};
use crate::operand::{MemoryTile, all_inside};
use crate::refusal::{Against, Refusal};
use crate::traversal::{Traversal, widest};

/// Bytes that one thread stages at once: enough loads in flight to hide latency, few enough registers for occupancy.
const STAGED_BYTES: i64 = 128;
/// The most steps of a batch, which are unrolled; more steps become a loop over batches.
const MOST_STEPS: i64 = 16;

/// A copy between two tiles in memory.
pub(crate) struct MemorySchedule {
    dst: MemoryTile,
    src: MemoryTile,
    traversal: Traversal,
    /// Elements of one access.
    width: i64,
}

/// Walks over the tile in the address order of either side, with accesses as wide as both sides allow.
pub(crate) fn accept_vectorized(context: &Context) -> Result<Vec<MemorySchedule>, Against> {
    let (dst, src) = context.both_in_memory()?;
    let (to, from) = iters_of(dst, src)?;
    let joint = refine_together(&[to, from]).map_err(|_| {
        vec![Reason {
            text: format!("the iters of {to} and {from} do not nest"),
            accepted: "layouts whose iters end at common multiples".to_string(),
        }]
    })?;
    let bytes = dst.dtype.bytes();
    let candidates = [true, false].into_iter().map(|by_dst| {
        let (main, other) = if by_dst { (&joint[0], &joint[1]) } else { (&joint[1], &joint[0]) };
        let placed = if by_dst { &dst.placed } else { &src.placed };
        let traversal = Traversal::along(placed, main, other, by_dst)?;
        let fits = |w| traversal.allows(dst, traversal.dst(), w) && traversal.allows(src, traversal.src(), w);
        let width = widest(bytes, WIDEST, fits);
        Ok(MemorySchedule { dst: dst.clone(), src: src.clone(), traversal, width })
    });
    Ok(candidates.collect::<Result<_, Refusal>>()?)
}

/// Copies element by element, in the order of the tile: correct for all layouts.
pub(crate) fn accept_elementwise(context: &Context) -> Result<MemorySchedule, Vec<Reason>> {
    let (dst, src) = context.both_in_memory()?;
    let (to, from) = iters_of(dst, src)?;
    let traversal = Traversal::as_written(to, from);
    Ok(MemorySchedule { dst: dst.clone(), src: src.clone(), traversal, width: 1 })
}

fn iters_of<'a>(dst: &'a MemoryTile, src: &'a MemoryTile) -> Result<(&'a TileLayout, &'a TileLayout), Vec<Reason>> {
    match (dst.iters(), src.iters()) {
        (Ok(to), Ok(from)) => Ok((to, from)),
        (to, from) => Err(to.err().into_iter().chain(from.err()).collect()),
    }
}

impl MemorySchedule {
    pub(crate) fn summary(&self, context: &Context) -> String {
        let bytes = self.width * self.dst.dtype.bytes();
        format!("{}, {bytes} B at a time", counted(context.team.threads, "thread"))
    }

    pub(crate) fn build(&self, context: &Context, builder: &mut Builder) -> Vec<Stmt> {
        let conditions = all_inside(&[&self.src, &self.dst]);
        let has_many = self.traversal.dst().size() / self.width >= MANY_GUARDED * context.team.threads;
        if conditions.is_empty() || !has_many || never_hold(&conditions) {
            return self.copied(context, builder, true);
        }
        let inside = self.copied(context, builder, false);
        either(&conditions, inside, self.copied(context, builder, true))
    }

    /// The accesses of all elements, with or without guards at the edges of a tensor.
    fn copied(&self, context: &Context, builder: &mut Builder, is_guarded: bool) -> Vec<Stmt> {
        let (dst, src) = (&self.dst, &self.src);
        let vectors = self.traversal.dst().size() / self.width;
        let batch = (STAGED_BYTES / (self.width * dst.dtype.bytes())).clamp(1, MOST_STEPS);
        let mut body = Vec::new();
        let held = batch.min((vectors + context.team.threads - 1) / context.team.threads);
        let array = builder.staging_vectors(dst.dtype, held * self.width, self.width, &mut body);
        let sides = [(src, self.traversal.src(), false), (dst, self.traversal.dst(), true)];
        let steps = spread_steps(builder, &context.team, vectors, batch, |builder, base, steps| {
            let mut piece = Vec::new();
            for (operand, layout, is_store) in sides {
                let team = &context.team;
                let walk = SideAccesses { operand, layout, width: self.width, team, vectors, array, is_guarded };
                piece.extend(walk.steps(builder, base, steps, is_store));
            }
            piece
        });
        body.extend(steps);
        body
    }
}

/// The accesses of a team to one side of a copy.
pub(crate) struct SideAccesses<'a> {
    /// The side that is accessed.
    pub(crate) operand: &'a MemoryTile,
    pub(crate) layout: &'a TileLayout,
    /// Elements of one access.
    pub(crate) width: i64,
    pub(crate) team: &'a Team,
    /// Number of accesses in the whole tile.
    pub(crate) vectors: i64,
    /// Staging registers.
    pub(crate) array: Handle<RegArray>,
    /// Whether elements outside of the tensor are left out.
    pub(crate) is_guarded: bool,
}

impl SideAccesses<'_> {
    /// The statements of `count` steps from `base` on; the last is guarded if the tile ends inside it.
    fn steps(&self, builder: &mut Builder, base: &Expr, count: i64, is_store: bool) -> Vec<Stmt> {
        let thread = Expr::var(&self.team.index);
        let step = Var::new("#step", 0, (count - 1).max(0));
        let vector = &thread + &((base + &Expr::var(&step)) * self.team.threads);
        let flat = vector * self.width;
        let index = self.operand.index_of(builder, self.layout, &flat);
        let inside = if self.is_guarded { self.operand.inside(builder, self.layout, &flat) } else { Vec::new() };
        let mut body = Vec::new();
        if !inside.is_empty() && !is_store {
            // Elements outside of the tensor read as zero.
            let zero = |s| Stmt::Set { to: regs(self.array, s * self.width, self.width), value: 0.into() };
            body.extend((0..count).map(zero));
        }
        for s in 0..count {
            let rest = Expr::constant(self.vectors) - (base + s) * self.team.threads;
            let access = self.access(s, index.with(&step, s), is_store);
            body.extend(under(&in_step(&inside, &step, s, &thread, &rest), vec![access]));
        }
        body
    }

    fn access(&self, step: i64, index: Expr, is_store: bool) -> Stmt {
        let memory: Handle<Memory> = self.operand.memory;
        let part = regs(self.array, step * self.width, self.width);
        match is_store {
            true => Stmt::Store { memory, index, from: part },
            false => Stmt::Load { to: part, memory, index },
        }
    }
}
