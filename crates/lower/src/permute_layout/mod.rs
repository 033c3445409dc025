//! `permute_layout`: a warp moves a tile from one layout to another through registers.
//!
//! All elements of a lane are read, `__syncwarp()`, written under the other layout, `__syncwarp()`: right also when
//! both operands are the same storage.

mod vectorized;
mod xor;

pub use xor::{XorChoice, XorPlan, XorRefusal, choose_xor, plan_xor};

use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Inst, Stmt};
use tilewright_layout::{PlacedTile, TileLayout, refine_together};

use crate::builder::Builder;
use crate::operand::MemoryTile;
use crate::variant::{Schedule, Variant};

/// What the variants look at.
pub(crate) struct Context {
    pub(crate) dst: MemoryTile,
    pub(crate) src: MemoryTile,
    pub(crate) lane: Var,
}

pub(crate) enum PermuteSchedule {
    Xor(XorPlan),
    Vectorized(vectorized::VectorSchedule),
}

pub(crate) const VARIANTS: &[Variant<Context, PermuteSchedule>] = &[
    Variant { name: "warp_xor_swizzle", accept: |c| xor::accept(c).map(|plan| vec![PermuteSchedule::Xor(plan)]) },
    Variant {
        name: "warp_vectorized",
        accept: |c| Ok(vectorized::accept(c)?.into_iter().map(PermuteSchedule::Vectorized).collect()),
    },
];

impl Schedule<Context> for PermuteSchedule {
    fn summary(&self, context: &Context) -> String {
        match self {
            PermuteSchedule::Xor(s) => s.summary(),
            PermuteSchedule::Vectorized(s) => s.summary(context),
        }
    }

    fn build(&self, context: &Context, builder: &mut Builder) -> Vec<Stmt> {
        match self {
            PermuteSchedule::Xor(s) => s.build(context, builder),
            PermuteSchedule::Vectorized(s) => s.build(context, builder),
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
    /// The joint form, or the reasons why there is none, added to `reasons`. Operands are given with their names.
    fn of(dst: (&str, &PlacedTile), src: (&str, &PlacedTile), reasons: &mut Vec<Reason>) -> Option<Joint> {
        for (title, placed) in [dst, src] {
            if placed.swizzle.is_some() {
                reasons.push(Reason {
                    text: format!("`{title}` is swizzled"),
                    accepted: "plain layouts on both sides".to_string(),
                });
            }
        }
        if !dst.1.tile.replica().is_empty() {
            reasons.push(Reason {
                text: format!("`{}` holds every element several times", dst.0),
                accepted: "a destination without replicas".to_string(),
            });
        }
        let Some(joint) = Joint::refine(dst.1, src.1) else {
            reasons.push(Reason {
                text: format!(
                    "the iters of {} and {} do not nest, so no common iteration extent exists",
                    src.1.tile, dst.1.tile
                ),
                accepted: "layouts whose iters end at common multiples".to_string(),
            });
            return None;
        };
        for (layout, title) in [(&joint.dst, dst.0), (&joint.src, src.0)] {
            if layout.shard_only().is_injective() != Ok(true) {
                reasons.push(Reason {
                    text: format!("two elements of `{title}` share a place"),
                    accepted: "layouts that give every element its own place".to_string(),
                });
            }
        }
        Some(joint)
    }

    fn refine(dst: &PlacedTile, src: &PlacedTile) -> Option<Joint> {
        let [src, dst]: [TileLayout; 2] = refine_together(&[&src.tile, &dst.tile]).ok()?.try_into().ok()?;
        Some(Joint { src, dst })
    }

    fn of_context(context: &Context, reasons: &mut Vec<Reason>) -> Option<Joint> {
        let (dst, src) = (&context.dst, &context.src);
        Joint::of((&dst.title, &dst.placed), (&src.title, &src.placed), reasons)
    }
}

/// `read all, __syncwarp, write all, __syncwarp`, around the accesses of a schedule.
pub(crate) fn staged(mut declared: Vec<Stmt>, reads: Vec<Stmt>, writes: Vec<Stmt>) -> Vec<Stmt> {
    declared.extend(reads);
    declared.push(Stmt::Inst(Inst::SyncWarp));
    declared.extend(writes);
    declared.push(Stmt::Inst(Inst::SyncWarp));
    declared
}

/// The position of element `flat` of `layout` inside the operand's memory, simplified.
pub(crate) fn position(builder: &mut Builder, operand: &MemoryTile, layout: &TileLayout, flat: &Expr) -> Expr {
    let relative = layout.position_expr(flat, &tilewright_layout::axis::M);
    let position = operand.placed.position_expr(relative);
    builder.simplifier.simplify(&position)
}
