//! A tile inside a buffer: what it looks like from its own origin, and where that origin is.

use tilewright_expr::Expr;

use crate::axis::M;
use crate::error::LayoutError;
use crate::layout::Layout;
use crate::swizzle::SwizzleLayout;
use crate::tile::{Iter, TileLayout};

/// A sub-tile of a memory buffer. Its iters are the parent's; only the start depends on run-time values such as a
/// loop variable or a block index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedTile {
    /// The elements of the tile in row-major order, relative to the start.
    pub tile: TileLayout,
    /// Position of the tile's first element in the buffer's linear memory, before a swizzle, in elements.
    pub start: Expr,
    /// The parent's swizzle, which acts on positions in the buffer.
    pub swizzle: Option<SwizzleLayout>,
}

impl Layout {
    /// The tile of `extents` that begins at `starts` (one index expression per dimension of `shape`).
    ///
    /// Errors: ranks that differ, a shape that does not group, a start that may lie outside, or a region whose iters
    /// would depend on where it starts (then a start that is a multiple of the extent helps).
    pub fn place(&self, shape: &[i64], starts: &[Expr], extents: &[i64]) -> Result<PlacedTile, LayoutError> {
        for given in [starts.len(), extents.len()] {
            if given != shape.len() {
                return Err(LayoutError::Rank { given, needed: shape.len() });
            }
        }
        let parent = self.tile()?;
        let grouped = parent.group(shape)?;
        let mut shard = Vec::new();
        let mut start = Expr::constant(parent.offset_on(&M));
        for (dimension, (&extent, from)) in extents.iter().zip(starts).enumerate() {
            let range = from.range();
            if extent < 1 || range.lo < 0 || range.hi > shape[dimension].saturating_sub(extent) {
                let (begin, end) = (range.lo, range.hi.saturating_add(extent));
                return Err(LayoutError::Region { dimension, begin, end, extent: shape[dimension] });
            }
            let iters = grouped.dimension(dimension);
            let (kept, offset) = cut(iters, from, extent).ok_or(LayoutError::NotAffine {
                dimension,
                begin: range.lo,
                end: range.hi + extent,
            })?;
            shard.extend(kept);
            start = start + offset;
        }
        let tile = TileLayout::new(shard, parent.replica().to_vec(), [])?;
        let swizzle = match self {
            Layout::Tile(_) | Layout::Table(_) => None,
            Layout::Compose(compose) => Some(compose.swizzle()),
        };
        Ok(PlacedTile { tile, start: tilewright_expr::linear::normalize(&start), swizzle })
    }
}

/// The iters of `extent` indices from `start` on, and the position of the first; `None` if the iters depend on it.
fn cut(iters: &[Iter], start: &Expr, extent: i64) -> Option<(Vec<Iter>, Expr)> {
    let Some((innermost, outer)) = iters.split_last() else { return Some((Vec::new(), Expr::constant(0))) };
    if let Some(at) = start.as_const() {
        let kept = crate::algebra::cut(iters, at..at + extent).ok()??;
        return Some((kept, Expr::constant(crate::algebra::places(iters, at).into_iter().sum())));
    }
    let e = innermost.extent;
    if outer.is_empty() || (e % extent == 0 && start.multiple() % extent == 0) {
        return Some((vec![Iter { extent, ..innermost.clone() }], position(iters, start)));
    }
    if extent % e == 0 && start.multiple() % e == 0 {
        let (mut kept, offset) = cut(outer, &(start / e), extent / e)?;
        kept.push(innermost.clone());
        return Some((kept, offset));
    }
    None
}

/// The position of index `at` of one dimension.
fn position(iters: &[Iter], at: &Expr) -> Expr {
    let mut behind = 1;
    let mut sum = Expr::constant(0);
    for (place, iter) in iters.iter().enumerate().rev() {
        let quotient = at / behind;
        let digit = if place == 0 { quotient } else { quotient % iter.extent };
        sum = sum + digit * iter.stride;
        behind *= iter.extent;
    }
    sum
}

impl PlacedTile {
    /// The position in the buffer of a point of the tile, given its position relative to the start.
    pub fn position_expr(&self, relative: Expr) -> Expr {
        let position = &self.start + &relative;
        match self.swizzle {
            None => position,
            Some(swizzle) => swizzle.apply_expr(position),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_expr::Var;

    fn placed(text: &str, shape: &[i64], starts: &[Expr], extents: &[i64]) -> String {
        let layout: Layout = text.parse().unwrap();
        match layout.place(shape, starts, extents) {
            Ok(p) => format!("{} from {}", p.tile, p.start),
            Err(e) => e.code().to_string(),
        }
    }

    fn var(name: &str, hi: i64) -> Expr {
        Expr::var(&Var::new(name, 0, hi))
    }

    #[test]
    fn a_stage_of_the_seed_program() {
        let starts = [var("s", 1), Expr::constant(0), Expr::constant(0), Expr::constant(0)];
        let text = placed("S[(2,1,4,32):(128,128,1,4)]", &[2, 1, 4, 32], &starts, &[1, 1, 4, 32]);
        assert_eq!(text, "S[(1,1,4,32):(128@m,4@m,1@m,4@m)] from s*128");
    }

    #[test]
    fn a_block_tile_of_a_matrix() {
        let starts = [var("by", 3) * 32, var("bx", 1) * 32];
        assert_eq!(
            placed("S[(128,64):(64,1)]", &[128, 64], &starts, &[32, 32]),
            "S[(32,32):(64@m,1@m)] from by*2048 + bx*32"
        );
    }

    #[test]
    fn a_start_that_may_lie_outside_is_an_error() {
        assert_eq!(placed("S[64:1]", &[64], &[var("i", 40)], &[32]), "L0107");
    }

    #[test]
    fn a_start_inside_an_iter_must_be_a_multiple() {
        assert_eq!(placed("S[(8,8):(100,1)]", &[64], &[var("i", 31)], &[4]), "L0109");
        assert_eq!(placed("S[(8,8):(100,1)]", &[64], &[var("i", 15) * 4], &[4]), "S[4:1@m] from i/2*100 + i%2*4");
    }
}
