//! Two operands in the same iters.

use tilewright_ir::plan::Reason;
use tilewright_layout::{PlacedTile, TileLayout, refine_together};

use super::context::Context;
use super::reasons::collision;
use crate::operand::hangs_over;

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
    pub(crate) fn of(dst: (&str, &PlacedTile), src: (&str, &PlacedTile), reasons: &mut Vec<Reason>) -> Option<Joint> {
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

    /// The joint form of an op's operands; if there is none, the reasons are added to `reasons`.
    pub(crate) fn of_context(context: &Context, reasons: &mut Vec<Reason>) -> Option<Joint> {
        let (dst, src) = (&context.dst, &context.src);
        Joint::of((&dst.title, &dst.placed), (&src.title, &src.placed), reasons)
    }
}
