//! `permute_layout`: a warp moves a tile from one layout to another through registers.
//!
//! All elements of a lane are read, `__syncwarp()`, written under the other layout, `__syncwarp()`: right also when
//! both operands are the same storage.

mod vectorized;
mod xor;

pub use xor::{XorChoice, choose_xor};

use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Inst, Stmt};
use tilewright_layout::{TileLayout, refine_together};

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
    Xor(xor::XorSchedule),
    Vectorized(vectorized::VectorSchedule),
}

pub(crate) const VARIANTS: &[Variant<Context, PermuteSchedule>] = &[
    Variant { name: "warp_xor_swizzle", accept: |c, _| xor::accept(c).map(PermuteSchedule::Xor) },
    Variant { name: "warp_vectorized", accept: |c, b| vectorized::accept(c, b).map(PermuteSchedule::Vectorized) },
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

/// Both operands cut into the same iters, source first; and what every variant needs of them.
pub(crate) struct Joint {
    pub(crate) src: TileLayout,
    pub(crate) dst: TileLayout,
}

impl Joint {
    /// The joint form, or the reasons why there is none, added to `reasons`.
    pub(crate) fn of(context: &Context, reasons: &mut Vec<Reason>) -> Option<Joint> {
        for operand in [&context.dst, &context.src] {
            if operand.placed.swizzle.is_some() {
                reasons.push(Reason {
                    text: format!("`{}` is swizzled", operand.title),
                    accepted: "plain layouts on both sides".to_string(),
                });
            }
        }
        match refine_together(&[&context.src.placed.tile, &context.dst.placed.tile]) {
            Ok(both) => {
                let [src, dst]: [TileLayout; 2] = both.try_into().ok()?;
                for (layout, operand) in [(&dst, &context.dst), (&src, &context.src)] {
                    if layout.shard_only().is_injective() != Ok(true) {
                        reasons.push(Reason {
                            text: format!("two elements of `{}` share a place", operand.title),
                            accepted: "layouts that give every element its own place".to_string(),
                        });
                    }
                }
                Some(Joint { src, dst })
            }
            Err(_) => {
                reasons.push(Reason {
                    text: format!(
                        "the iters of {} and {} do not nest, so no common iteration extent exists",
                        context.src.placed.tile, context.dst.placed.tile
                    ),
                    accepted: "layouts whose iters end at common multiples".to_string(),
                });
                None
            }
        }
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
