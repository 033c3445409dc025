//! `permute_layout`: a warp moves a tile from one layout to another through registers.
//!
//! Each lane reads all its elements, then `__syncwarp()`, writes them under the other layout, then `__syncwarp()`.
//! This is right even if both operands are the same storage; where they cannot be, there are no barriers.

mod banks;
mod blocks;
mod colouring;
mod exchange;
mod linear;
mod listed;
mod offsets;
mod packed;
mod rotation;
mod rounds;
mod scheduled;
mod steps;
mod vectorized;
mod words;
mod xor;

pub use xor::{XorChoice, XorPlan, XorRefusal, choose_xor, plan_xor};

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::Var;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Call, Inst, Stmt};
use tilewright_ir::tile::{Kernel, Op, Space, Tile};
use tilewright_layout::access::tile_floor;
use tilewright_layout::{LayoutError, PlacedTile, TileLayout, refine_together};

use self::blocks::{BlockPlan, Pair};
use self::rounds::RoundPlan;
use self::scheduled::ScheduledPlan;
use crate::builder::Builder;
use crate::operand::{MemoryTile, Operand, hangs_over, other_operands};
use crate::variant::{Schedule, Variant, VariantList};

/// What the variants of `permute_layout` decide on.
pub(crate) struct Context {
    pub(crate) dst: MemoryTile,
    pub(crate) src: MemoryTile,
    pub(crate) lane: Var,
    /// Whether both operands may be the same storage: views of one buffer, or two parameters.
    pub(crate) may_alias: bool,
    /// Where the user wrote the op.
    pub(crate) span: Span,
}

pub(crate) enum PermuteSchedule {
    Xor(XorPlan),
    Vectorized(vectorized::VectorSchedule),
    Blocks(BlockPlan),
    Rounds(RoundPlan),
    Scheduled(ScheduledPlan),
}

pub(crate) static VARIANTS: VariantList<Context, PermuteSchedule> = VariantList {
    context: Context::new,
    floor: |context| Some(tile_floor(context.src.placed.size() * context.src.dtype.bytes())),
    variants: &[
        Variant { name: "warp_xor_swizzle", accept: |c| xor::accept(c).map(|plan| vec![PermuteSchedule::Xor(plan)]) },
        Variant { name: "warp_vectorized", accept: |c| accept_vectorized(c) },
        Variant { name: "warp_packed", accept: |c| packed::accept(c) },
        Variant { name: "warp_scheduled", accept: |c| scheduled::accept(c) },
    ],
};

impl Context {
    /// Resolves the operands of a `permute_layout`. Error: one of them is not in memory.
    fn new(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<Context, Diagnostic> {
        let [dst, src] = &op.operands[..] else { return Err(other_operands(kernel, op)) };
        let in_memory = |tile: &Tile| match Operand::resolve(builder, kernel, op, tile)? {
            Operand::Memory(tile) => Ok(tile),
            Operand::Fragment(tile) => {
                Err(Diagnostic::error("P0403", format!("`permute_layout` cannot move the fragment `{}`", tile.title))
                    .label(op.span, kernel.op_title(op))
                    .help("its operands must be tiles in global or shared memory"))
            }
        };
        let (to, from) = (in_memory(dst)?, in_memory(src)?);
        let may_alias = may_alias(kernel, [dst, src], &to.placed, &from.placed);
        Ok(Context { dst: to, src: from, lane: kernel.lane(), may_alias, span: op.span })
    }
}

/// Whether both operands may share bytes: they are parts of one buffer, or of two parameters for which a caller may
/// pass the same memory, and the tiles may overlap there.
fn may_alias(kernel: &Kernel, operands: [&Tile; 2], dst: &PlacedTile, src: &PlacedTile) -> bool {
    let storages = operands.map(|tile| kernel.storage(tile.buffer));
    let is_global = |storage| matches!(kernel.buffers[storage].space, Space::Global(_));
    let one_memory = storages.into_iter().all(is_global) && !are_distinct_parameters(dst, src);
    storages[0] == storages[1] || (one_memory && dst.may_overlap(src))
}

/// Whether the tiles are of two parameters that have memory of their own by the rules of the language: both have sizes
/// known at launch only, and where one tile is relative to the other depends on these or on the CTA, as in a transpose.
fn are_distinct_parameters(dst: &PlacedTile, src: &PlacedTile) -> bool {
    let have_pitches = !dst.pitches.is_empty() && !src.pitches.is_empty();
    have_pitches && dst.distance_from(src).is_none()
}

/// Runs of lanes on one side, or blocks of runs on both.
fn accept_vectorized(context: &Context) -> Result<Vec<PermuteSchedule>, Vec<Reason>> {
    let runs = vectorized::accept(context);
    let blocks = (context.src.dtype.bytes() >= 4).then(|| Pair::of(context).ok()?.cheapest(&[4, 8, 16])).flatten();
    match (runs, blocks) {
        (Err(reasons), None) => Err(reasons),
        (runs, blocks) => {
            let runs = runs.into_iter().flatten().map(PermuteSchedule::Vectorized);
            Ok(runs.chain(blocks.map(PermuteSchedule::Blocks)).collect())
        }
    }
}

impl Schedule<Context> for PermuteSchedule {
    fn summary(&self, context: &Context) -> String {
        match self {
            PermuteSchedule::Xor(s) => s.summary(),
            PermuteSchedule::Vectorized(s) => s.summary(context),
            PermuteSchedule::Blocks(s) => s.summary(),
            PermuteSchedule::Rounds(s) => s.summary(context),
            PermuteSchedule::Scheduled(s) => s.summary(),
        }
    }

    fn build(&self, context: &Context, builder: &mut Builder) -> Vec<Stmt> {
        match self {
            PermuteSchedule::Xor(s) => s.build(context, builder),
            PermuteSchedule::Vectorized(s) => s.build(context, builder),
            PermuteSchedule::Blocks(s) => s.build(context, builder),
            PermuteSchedule::Rounds(s) => s.build(context, builder),
            PermuteSchedule::Scheduled(s) => s.build(context, builder),
        }
    }
}

/// Both operands cut into the same iters: the iteration extent, and each side's strides.
#[derive(Clone, Debug)]
pub struct Joint {
    /// The source tile.
    pub src: TileLayout,
    /// The destination tile; iter `i` has the extent of the source's.
    pub dst: TileLayout,
}

impl Joint {
    /// The joint form; if there is none, the reasons are added to `reasons`. Operands are given with their names.
    fn of(dst: (&str, &PlacedTile), src: (&str, &PlacedTile), reasons: &mut Vec<Reason>) -> Option<Joint> {
        for (title, placed) in [dst, src] {
            if placed.swizzle.is_some() {
                reasons.push(Reason {
                    text: format!("`{title}` is swizzled"),
                    accepted: "plain layouts on both sides".to_string(),
                });
            }
        }
        for (title, placed) in [dst, src] {
            if placed.pitches.iter().any(|pitch| pitch.edge.is_some()) {
                reasons.push(hangs_over(title));
            }
        }
        let listed = [dst, src].into_iter().find(|(_, placed)| placed.iters().is_none());
        if let Some((title, _)) = listed {
            reasons.push(Reason {
                text: format!("`{title}` is laid out by a table"),
                accepted: "layouts of shard, replica and offset".to_string(),
            });
        }
        let (to, from) = (dst.1.iters()?, src.1.iters()?);
        if !to.replica().is_empty() {
            reasons.push(Reason {
                text: format!("`{}` holds every element several times", dst.0),
                accepted: "a destination without replicas".to_string(),
            });
        }
        let refined: Option<[TileLayout; 2]> = refine_together(&[from, to]).ok().and_then(|both| both.try_into().ok());
        let Some([src_tile, dst_tile]) = refined else {
            reasons.push(Reason {
                text: format!("the iters of {from} and {to} do not nest, so no common iteration extent exists"),
                accepted: "layouts whose iters end at common multiples".to_string(),
            });
            return None;
        };
        let joint = Joint { src: src_tile, dst: dst_tile };
        for (layout, title) in [(&joint.dst, dst.0), (&joint.src, src.0)] {
            reasons.extend(collision(title, layout.shard_only().collision()));
        }
        Some(joint)
    }

    fn of_context(context: &Context, reasons: &mut Vec<Reason>) -> Option<Joint> {
        let (dst, src) = (&context.dst, &context.src);
        Joint::of((&dst.title, &dst.placed), (&src.title, &src.placed), reasons)
    }
}

/// The reason against a tile whose strides are known only at launch.
pub(crate) fn unknown_strides(title: &str) -> Reason {
    Reason {
        text: format!("the strides of `{title}` are known only at launch"),
        accepted: "tiles whose strides are constants".to_string(),
    }
}

/// The reason against a tile of which two elements share a place.
fn collision(title: &str, found: Result<Option<(i64, i64)>, LayoutError>) -> Option<Reason> {
    let text = match found {
        Ok(None) => return None,
        Ok(Some((first, second))) => format!("elements {first} and {second} of `{title}` share a place"),
        Err(error) => format!("cannot tell whether elements of `{title}` share a place: {error}"),
    };
    Some(Reason { text, accepted: "layouts that give every element its own place".to_string() })
}

/// `read all, __syncwarp, write all, __syncwarp`, around the accesses of a schedule. Operands that share no byte need
/// no barrier: every lane writes what it read itself.
pub(crate) fn staged(context: &Context, mut body: Vec<Stmt>, reads: Vec<Stmt>, writes: Vec<Stmt>) -> Vec<Stmt> {
    let sync = context.may_alias.then_some(Stmt::Inst(Call::plain(Inst::SyncWarp)));
    body.extend(reads);
    body.extend(sync.clone());
    body.extend(writes);
    body.extend(sync);
    body
}
