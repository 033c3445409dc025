//! The order in which threads walk over a tile: its iters sorted so that one side is walked in order of address.

use tilewright_expr::Expr;
use tilewright_layout::axis::M;
use tilewright_layout::{Axis, Iter, PlacedTile, TileLayout, refine_together};

use crate::operand::MemoryTile;
use crate::refusal::Refusal;

/// Two layouts of one tile with their iters in a common order.
#[derive(Clone, Debug)]
pub(crate) struct Traversal {
    dst: TileLayout,
    src: TileLayout,
}

impl Traversal {
    /// Orders the iters by the addresses of `main`, whose place in memory is `placed`. Both layouts have the same
    /// iters; `main_is_dst` tells which side `main` is. Error: they do not.
    pub(crate) fn along(
        placed: &PlacedTile,
        main: &TileLayout,
        other: &TileLayout,
        main_is_dst: bool,
    ) -> Result<Traversal, Refusal> {
        let mut order: Vec<usize> = (0..main.shard().len()).collect();
        order.sort_by_key(|&i| {
            let iter = &main.shard()[i];
            std::cmp::Reverse(iter.stride.abs().saturating_mul(placed.stride_of(&iter.axis).range().hi))
        });
        let (main, other) = (reordered(main, &order)?, reordered(other, &order)?);
        Ok(if main_is_dst { Traversal { dst: main, src: other } } else { Traversal { dst: other, src: main } })
    }

    /// Orders the iters of `main` (taken as the destination) so that those on `axis` come last, the smallest stride
    /// fastest. Error: the layouts have different iters.
    pub(crate) fn by_axis(main: &TileLayout, other: &TileLayout, axis: &Axis) -> Result<Traversal, Refusal> {
        let mut order: Vec<usize> = (0..main.shard().len()).collect();
        order.sort_by_key(|&i| {
            let iter = &main.shard()[i];
            (iter.axis == *axis, std::cmp::Reverse(iter.stride.abs()))
        });
        Ok(Traversal { dst: reordered(main, &order)?, src: reordered(other, &order)? })
    }

    /// The traversal with the elements of each step, `step` on end, in an order of their own on the side that is not
    /// walked in order of address: by address there. Beside it, for each element of that order, its index in the step.
    /// `None` if the iters have no step of this length.
    pub(crate) fn reordered_in_steps(
        &self,
        placed: &PlacedTile,
        step: i64,
        main_is_dst: bool,
    ) -> Option<(Traversal, Vec<usize>)> {
        let (main, other) = if main_is_dst { (&self.dst, &self.src) } else { (&self.src, &self.dst) };
        let whole = TileLayout::row_major(&[main.size() / step, step]).ok()?;
        let [main, other, whole]: [TileLayout; 3] = refine_together(&[main, other, &whole]).ok()?.try_into().ok()?;
        let first = whole.shard().iter().position(|iter| iter.stride < step)?;
        let mut order: Vec<usize> = (0..other.shard().len()).collect();
        order[first..].sort_by_key(|&i| {
            let iter = &other.shard()[i];
            std::cmp::Reverse(iter.stride.abs().saturating_mul(placed.stride_of(&iter.axis).range().hi))
        });
        let of_step =
            TileLayout::new(order[first..].iter().map(|i| whole.shard()[*i].clone()).collect(), Vec::new(), []);
        let places = of_step.ok()?.positions(&M).into_iter().map(|place| place as usize).collect();
        let other = reordered(&other, &order).ok()?;
        let both = if main_is_dst { Traversal { dst: main, src: other } } else { Traversal { dst: other, src: main } };
        Some((both, places))
    }

    /// Keeps the order of the tile's elements; the layouts need not have common iters.
    pub(crate) fn as_written(dst: &TileLayout, src: &TileLayout) -> Traversal {
        Traversal { dst: dst.clone(), src: src.clone() }
    }

    pub(crate) fn dst(&self) -> &TileLayout {
        &self.dst
    }

    pub(crate) fn src(&self) -> &TileLayout {
        &self.src
    }

    /// True when every `width` elements, from a multiple of `width` on, are adjacent and aligned in the operand.
    pub(crate) fn allows(&self, operand: &MemoryTile, layout: &TileLayout, width: i64) -> bool {
        let bytes = width * operand.dtype.bytes();
        let aligned = operand.placed.origin().multiple() % width == 0 && operand.alignment % bytes == 0;
        // A vector must lie entirely inside or entirely outside of the tensor.
        let is_inner = |stride: &Expr| stride.as_const().is_some_and(|stride| (1..width).contains(&stride.abs()));
        let whole = operand.placed.pitches.iter().filter(|pitch| is_inner(&pitch.stride)).all(|pitch| {
            pitch.edge.as_ref().is_none_or(|edge| pitch.first.multiple() % width == 0 && edge.multiple() % width == 0)
        });
        let stays = operand.placed.swizzle.is_none_or(|swizzle| swizzle.run() % width == 0);
        bytes <= operand.widest && width > 0 && aligned && whole && stays && runs_of(&operand.placed, layout, width)
    }
}

/// The most elements of `bytes` each that fill an access of up to `most` bytes and for which `fits` holds; 1 if there is
/// none.
pub(crate) fn widest(bytes: i64, most: i64, fits: impl Fn(i64) -> bool) -> i64 {
    [32, 16, 8, 4, 2]
        .into_iter()
        .filter(|width| *width <= most)
        .map(|width| width / bytes)
        .find(|w| *w > 1 && fits(*w))
        .unwrap_or(1)
}

/// The layout with its iters in this order.
fn reordered(layout: &TileLayout, order: &[usize]) -> Result<TileLayout, Refusal> {
    let iter = |at: &usize| layout.shard().get(*at).cloned();
    let shard: Option<Vec<Iter>> = order.iter().map(iter).collect();
    let shard = shard.ok_or_else(|| format!("{layout} has fewer iters than the other side"))?;
    TileLayout::new(shard, layout.replica().to_vec(), layout.offset().clone())
        .map_err(|error| Refusal::from(format!("the iters of {layout} in another order: {error}")))
}

/// True when elements `width*t .. width*t + width` are adjacent and begin at a multiple of `width`.
fn runs_of(placed: &PlacedTile, layout: &TileLayout, width: i64) -> bool {
    let mut rest = width;
    let mut stride = 1;
    let offset_fits = layout.offset().values().all(|offset| offset % width == 0);
    for iter in layout.shard().iter().rev() {
        let step = placed.stride_of(&iter.axis) * iter.stride;
        if rest == 1 {
            if step.multiple() % width != 0 {
                return false;
            }
            continue;
        }
        if step.as_const() != Some(stride) {
            return false;
        }
        if iter.extent % rest == 0 {
            // What is left of this iter moves by `width`.
            rest = 1;
        } else if rest % iter.extent == 0 {
            rest /= iter.extent;
            stride *= iter.extent;
        } else {
            return false;
        }
    }
    rest == 1 && offset_fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_layout::Placement;

    fn placed(tile: &TileLayout) -> PlacedTile {
        let start = tilewright_expr::Expr::constant(0);
        PlacedTile { shape: Placement::Iters(tile.clone()), start, swizzle: None, pitches: Vec::new() }
    }

    fn runs(text: &str, width: i64) -> bool {
        let tile: TileLayout = text.parse().unwrap();
        runs_of(&placed(&tile), &tile, width)
    }

    #[test]
    fn contiguous_runs_may_span_iters() {
        assert!(runs("S[(8,4):(4,1)]", 4));
        assert!(runs("S[(8,2,2):(4,2,1)]", 4));
        assert!(runs("S[(8,32):(32,1)]", 4));
        assert!(!runs("S[(8,4):(5,1)]", 4));
        assert!(!runs("S[(8,2,2):(8,3,1)]", 4));
        assert!(!runs("S[(8,6):(6,1)]", 4));
    }

    #[test]
    fn the_iters_are_walked_in_order_of_address() {
        let main: TileLayout = "S[(4,32):(1,4)]".parse().unwrap();
        let other: TileLayout = "S[(4,32):(32,1)]".parse().unwrap();
        let t = Traversal::along(&placed(&main), &main, &other, true).unwrap();
        assert_eq!(
            (t.dst().to_string(), t.src().to_string()),
            ("S[(32,4):(4@m,1@m)]".into(), "S[(32,4):(1@m,32@m)]".into())
        );
    }
}
