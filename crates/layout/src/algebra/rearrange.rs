//! Operations that reorder, repeat or drop shard iters.

use crate::axis::{Axis, M};
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::layout::Layout;
use crate::swizzle::ComposeLayout;
use crate::tile::TileLayout;

impl Layout {
    /// The layout of the same tile with its dimensions in another order: dimension `i` of the result is dimension
    /// `order[i]` of `shape`, which is the present shape. Errors: a shape that does not agree with the layout, not a
    /// permutation of the dimensions, a table with more elements than [`crate::ENUMERATION_LIMIT`].
    pub fn reorder(&self, shape: &[i64], order: &[usize]) -> Result<Layout, LayoutError> {
        self.check_shape(shape)?;
        check_permutation(order, shape.len())?;
        let of_tile = |tile: &TileLayout| {
            let grouped = tile.group(shape)?;
            grouped.layout.permute_groups(&grouped.separators, order)
        };
        Ok(match self {
            Layout::Tile(tile) => Layout::Tile(of_tile(tile)?),
            Layout::Compose(compose) => {
                Layout::Compose(ComposeLayout::new(compose.swizzle(), of_tile(compose.tile())?)?)
            }
            Layout::Table(table) => {
                if table.size() > crate::ENUMERATION_LIMIT {
                    return Err(LayoutError::TooLarge { points: table.size() });
                }
                let elements = TileLayout::row_major(shape)?.permute_dims(order)?.positions(&M);
                Layout::Table(table.select(&elements)?)
            }
        })
    }
}

impl TileLayout {
    /// The shard iters in the order `permutation`: iter `i` of the result is iter `permutation[i]` of this layout.
    ///
    /// `permute_dims(p)(d[p[0]], d[p[1]], ..) = self(d[0], d[1], ..)` on the digits of the iters.
    /// Error: not a permutation of the iters.
    pub fn permute_dims(&self, permutation: &[usize]) -> Result<TileLayout, LayoutError> {
        check_permutation(permutation, self.shard().len())?;
        let shard = permutation.iter().map(|&from| self.shard()[from].clone()).collect();
        TileLayout::new(shard, self.replica().to_vec(), self.offset().clone())
    }

    /// Whole groups of shard iters in the order `permutation`. Group `g` owns the iters
    /// `separators[g]..separators[g + 1]`, as [`TileLayout::group`] gives them.
    ///
    /// The equation is that of [`TileLayout::permute_dims`], on the coordinates of the groups.
    /// Errors: separators that do not cut the iters into runs, or not a permutation of the groups.
    pub fn permute_groups(&self, separators: &[usize], permutation: &[usize]) -> Result<TileLayout, LayoutError> {
        let covers = separators.first() == Some(&0) && separators.last() == Some(&self.shard().len());
        if !covers || !separators.is_sorted() {
            return Err(LayoutError::Permutation {
                problem: format!("separators {separators:?} do not cut {} iters into groups", self.shard().len()),
            });
        }
        check_permutation(permutation, separators.len() - 1)?;
        let group = |g: &usize| self.shard()[separators[*g]..separators[*g + 1]].to_vec();
        TileLayout::new(permutation.iter().flat_map(group).collect(), self.replica().to_vec(), self.offset().clone())
    }

    /// The tile repeated along a new dimension of `extent` before iter `position`: all its indices have the
    /// same places.
    ///
    /// `broadcast(n, p)(d[0], .., d[p-1], k, d[p], ..) = self(d[0], d[1], ..)` for every `k` in `0..n`.
    /// Errors: an extent below 1, a position after the last iter.
    pub fn broadcast(&self, extent: i64, position: usize) -> Result<TileLayout, LayoutError> {
        if position > self.shard().len() {
            return Err(LayoutError::OutOfRange { index: position as i64, extent: self.shard().len() as i64 + 1 });
        }
        let mut shard = self.shard().to_vec();
        shard.insert(position, Iter::memory(extent, 0));
        TileLayout::new(shard, self.replica().to_vec(), self.offset().clone())
    }

    /// What one thread stores: iters, replicas and offsets on thread, CTA and device axes left out.
    ///
    /// `storage()(e)` for the digits `e` of the iters that stay is `self(d)` without those axes, for every `d` that
    /// has these digits.
    pub fn storage(&self) -> TileLayout {
        let stays = |axis: &Axis| !axis.is_unit();
        let kept = |iters: &[Iter]| iters.iter().filter(|iter| stays(&iter.axis)).cloned().collect::<Vec<_>>();
        let offset = self.offset().iter().filter(|(axis, _)| stays(axis)).map(|(axis, v)| (axis.clone(), *v));
        TileLayout::from_valid_parts(kept(self.shard()), kept(self.replica()), offset)
    }
}

fn check_permutation(permutation: &[usize], length: usize) -> Result<(), LayoutError> {
    let mut sorted = permutation.to_vec();
    sorted.sort_unstable();
    if sorted.iter().copied().eq(0..length) {
        return Ok(());
    }
    Err(LayoutError::Permutation {
        problem: format!("{permutation:?} is not a permutation of the numbers below {length}"),
    })
}

#[cfg(test)]
mod tests {
    use crate::axis::M;
    use crate::layout::Layout;
    use crate::table::TableLayout;
    use crate::tile::TileLayout;

    fn layout(text: &str) -> TileLayout {
        text.parse().unwrap()
    }

    #[test]
    fn a_transpose_swaps_two_iters() {
        assert_eq!(layout("S[(3,4):(4,1)]").permute_dims(&[1, 0]).unwrap().to_string(), "S[(4,3):(1@m,4@m)]");
    }

    #[test]
    fn dimensions_are_reordered_in_every_kind_of_layout() {
        let shape = [2, 4, 8];
        let listed = layout("S[(2,4,8):(40,10,1)]").positions(&M);
        let table = TableLayout::of_positions(&M, &listed).unwrap();
        let swizzled = "swizzle(M=0,B=2,S=3) o S[(8,8):(8,1)]".parse().unwrap();
        for of in [Layout::Tile(layout("S[(2,4,8):(40,10,1)]")), Layout::Table(table), swizzled] {
            let turned = of.reorder(&shape, &[2, 0, 1]).unwrap();
            for element in 0..64 {
                let (i, j, k) = (element / 32, element / 8 % 4, element % 8);
                assert_eq!(turned.memory_position(k * 8 + i * 4 + j), of.memory_position(element), "{of} at {element}");
            }
        }
    }

    #[test]
    fn dimensions_are_reordered_by_a_permutation() {
        let of = Layout::Tile(layout("S[(2,4):(4,1)]"));
        let code = |shape: &[i64], order: &[usize]| of.reorder(shape, order).unwrap_err().code();
        assert_eq!([code(&[2, 4], &[0, 0]), code(&[2, 4], &[0]), code(&[2, 5], &[1, 0])], ["L0116", "L0116", "L0105"]);
    }

    #[test]
    fn an_order_that_leaves_an_iter_out_is_an_error() {
        assert_eq!(layout("S[(3,4):(4,1)]").permute_dims(&[1, 1]).unwrap_err().code(), "L0116");
        assert_eq!(layout("S[(3,4):(4,1)]").permute_groups(&[0, 1], &[0]).unwrap_err().code(), "L0116");
    }

    #[test]
    fn a_broadcast_dimension_has_stride_zero() {
        assert_eq!(layout("S[(3,4):(4,1)]").broadcast(2, 1).unwrap().to_string(), "S[(3,2,4):(4@m,0@m,1@m)]");
        assert_eq!(layout("S[3:1]").broadcast(2, 2).unwrap_err().code(), "L0106");
    }

    #[test]
    fn storage_is_what_one_thread_holds() {
        let fragment = layout("S[(8,4,2):(4@laneid,1@laneid,1@reg)] + R[2:4@warpid] + 5@warpid + 3@reg");
        assert_eq!(fragment.storage().to_string(), "S[2:1@reg] + 3@reg");
    }
}
