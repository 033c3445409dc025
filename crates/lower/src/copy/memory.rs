//! Copies between global and shared memory: threads walk over the tile together, as wide as both sides allow.

use tilewright_expr::{Expr, Var};
use tilewright_ir::Handle;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Memory, RegArray, Stmt};
use tilewright_ir::tile::{Kernel, Op};
use tilewright_layout::axis::Scope;
use tilewright_layout::{TileLayout, refine_together};

use super::{Context, both_in_memory};
use crate::builder::{Builder, regs};
use crate::conditions::{in_step, under};
use crate::operand::MemoryTile;
use crate::traversal::{Traversal, widest};

/// Bytes that one thread stages at once: enough loads in flight to hide latency, few enough registers for occupancy.
const STAGED_BYTES: i64 = 128;
/// Steps that are written out; more become a loop.
const MOST_STEPS: i64 = 16;
/// Batches up to which their loop is written out.
const MOST_WRITTEN_OUT: i64 = 8;

/// The threads that do an op together.
#[derive(Clone, Debug)]
pub(crate) struct Team {
    /// Index of the thread in the team.
    pub(crate) index: Var,
    pub(crate) threads: i64,
}

impl Team {
    /// The threads that do an op: those of a warp, or of the CTA.
    pub(crate) fn of(kernel: &Kernel, op: &Op) -> Team {
        if kernel.threads <= 32 || op.scope == Scope::Warp {
            Team { index: kernel.lane(), threads: kernel.threads.min(32) }
        } else {
            Team { index: kernel.tid(), threads: kernel.threads }
        }
    }
}

/// How a copy between memories is done.
pub(crate) struct MemorySchedule {
    traversal: Traversal,
    /// Elements of one access.
    width: i64,
}

/// The tile walked in the order of either side's addresses, as wide as both sides allow.
pub(crate) fn accept_vectorized(context: &Context) -> Result<Vec<MemorySchedule>, Vec<Reason>> {
    let (dst, src) = both_in_memory(context)?;
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
        let traversal = Traversal::along(placed, main, other, by_dst);
        let fits = |w| traversal.allows(dst, traversal.dst(), w) && traversal.allows(src, traversal.src(), w);
        let width = widest(bytes, fits);
        MemorySchedule { traversal, width }
    });
    Ok(candidates.collect())
}

/// Element by element, in the order of the tile: right for all layouts.
pub(crate) fn accept_elementwise(context: &Context) -> Result<MemorySchedule, Vec<Reason>> {
    let (dst, src) = both_in_memory(context)?;
    let (to, from) = iters_of(dst, src)?;
    Ok(MemorySchedule { traversal: Traversal::as_written(to, from), width: 1 })
}

fn iters_of<'a>(dst: &'a MemoryTile, src: &'a MemoryTile) -> Result<(&'a TileLayout, &'a TileLayout), Vec<Reason>> {
    match (dst.iters(), src.iters()) {
        (Ok(to), Ok(from)) => Ok((to, from)),
        (to, from) => Err(to.err().into_iter().chain(from.err()).collect()),
    }
}

impl MemorySchedule {
    pub(crate) fn summary(&self, context: &Context) -> String {
        let bytes = self.width * self.dtype_bytes(context);
        format!("{} threads, {bytes} bytes at a time", context.team.threads)
    }

    fn dtype_bytes(&self, context: &Context) -> i64 {
        both_in_memory(context).map_or(1, |(dst, _)| dst.dtype.bytes())
    }

    pub(crate) fn build(&self, context: &Context, builder: &mut Builder) -> Vec<Stmt> {
        let Ok((dst, src)) = both_in_memory(context) else { return Vec::new() };
        let vectors = self.traversal.dst().size() / self.width;
        let batch = (STAGED_BYTES / (self.width * dst.dtype.bytes())).clamp(1, MOST_STEPS);
        let mut body = Vec::new();
        let held = batch.min((vectors + context.team.threads - 1) / context.team.threads);
        let array = builder.staging_vectors(dst.dtype, held * self.width, self.width, &mut body);
        let sides = [(src, self.traversal.src(), false), (dst, self.traversal.dst(), true)];
        let steps = spread_steps(builder, &context.team, vectors, batch, |builder, base, steps| {
            let mut piece = Vec::new();
            for (operand, layout, is_store) in sides {
                let walk = Walk { operand, layout, width: self.width, team: &context.team, vectors, array };
                piece.extend(walk.steps(builder, base, steps, is_store));
            }
            piece
        });
        body.extend(steps);
        body
    }
}

/// Distributes `vectors` over a team: `make(base, count)` builds the statements of `count` steps from step `base` on.
/// Many steps become a loop over batches.
pub(crate) fn spread_steps(
    builder: &mut Builder,
    team: &Team,
    vectors: i64,
    batch: i64,
    make: impl Fn(&mut Builder, &Expr, i64) -> Vec<Stmt>,
) -> Vec<Stmt> {
    let steps = (vectors + team.threads - 1) / team.threads;
    if steps <= batch {
        return make(builder, &Expr::constant(0), steps);
    }
    let whole = vectors / team.threads / batch;
    let mut body = Vec::new();
    if whole > 1 {
        let var = Var::new(builder.fresh("i"), 0, whole - 1);
        let inner = make(builder, &(Expr::var(&var) * batch), batch);
        body.push(Stmt::For { var, is_unrolled: whole <= MOST_WRITTEN_OUT, body: inner });
    } else if whole == 1 {
        body.extend(make(builder, &Expr::constant(0), batch));
    }
    let mut done = whole * batch;
    while done < steps {
        let count = (steps - done).min(batch);
        body.extend(make(builder, &Expr::constant(done), count));
        done += count;
    }
    body
}

/// The accesses of a team to one side of a copy.
pub(crate) struct Walk<'a> {
    pub(crate) operand: &'a MemoryTile,
    pub(crate) layout: &'a TileLayout,
    pub(crate) width: i64,
    pub(crate) team: &'a Team,
    pub(crate) vectors: i64,
    pub(crate) array: Handle<RegArray>,
}

impl Walk<'_> {
    /// `count` steps from `base` on; the last is guarded where the tile ends inside it.
    fn steps(&self, builder: &mut Builder, base: &Expr, count: i64, is_store: bool) -> Vec<Stmt> {
        let thread = Expr::var(&self.team.index);
        let step = Var::new("#step", 0, (count - 1).max(0));
        let vector = &thread + &((base + &Expr::var(&step)) * self.team.threads);
        let flat = vector * self.width;
        let index = self.operand.index_of(builder, self.layout, &flat);
        let inside = self.operand.inside(builder, self.layout, &flat);
        let mut body = Vec::new();
        if !inside.is_empty() && !is_store {
            // What lies outside reads as zero.
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
