//! The algebra under a swizzle: a swizzle acts on addresses, so operations that rearrange elements act on the tile
//! below it.

use crate::error::LayoutError;
use crate::layout::Layout;
use crate::swizzle::{ComposeLayout, SwizzleLayout};
use crate::tile::TileLayout;

impl ComposeLayout {
    /// The same swizzle over another tile.
    fn over(&self, tile: TileLayout) -> Result<ComposeLayout, LayoutError> {
        ComposeLayout::new(self.swizzle(), tile)
    }

    /// The swizzle over the tile's normal form. A swizzle that changes no address of the tile is dropped.
    /// Replicas stay, since a swizzle moves each copy differently.
    pub fn canonicalize(&self) -> Layout {
        let tile = self.tile().canonicalize();
        if self.swizzle().is_idle_below(tile.span_on(&crate::axis::M)) {
            return Layout::Tile(tile);
        }
        Layout::Compose(self.over_rewritten(tile))
    }

    /// [`TileLayout::tile`] of the tile below; the result is swizzled as a whole.
    pub fn tile_by(
        &self,
        inner_shape: &[i64],
        outer: &TileLayout,
        outer_shape: &[i64],
    ) -> Result<ComposeLayout, LayoutError> {
        self.over(self.tile().tile(inner_shape, outer, outer_shape)?)
    }

    /// [`TileLayout::tile_to`] of the tile below.
    pub fn tile_to(&self, shape: &[i64], to_shape: &[i64]) -> Result<ComposeLayout, LayoutError> {
        self.over(self.tile().tile_to(shape, to_shape)?)
    }

    /// [`TileLayout::direct_sum`] of the tile below as the right addend.
    pub fn direct_sum(
        &self,
        right_shape: &[i64],
        left: &TileLayout,
        left_shape: &[i64],
    ) -> Result<ComposeLayout, LayoutError> {
        self.over(self.tile().direct_sum(right_shape, left, left_shape)?)
    }

    /// The outer layout whose tiling with this swizzled tile is `tiled`; `None` where the swizzles differ.
    pub fn is_tile_inner(
        &self,
        inner_shape: &[i64],
        tiled: &ComposeLayout,
        tiled_shape: &[i64],
    ) -> Result<Option<TileLayout>, LayoutError> {
        let outer = self.tile().is_tile_inner(inner_shape, tiled.tile(), tiled_shape)?;
        Ok(outer.filter(|_| self.swizzle() == tiled.swizzle()))
    }

    /// The swizzled inner tile whose tiling by `outer` is this layout.
    pub fn inner_tile(
        &self,
        tiled_shape: &[i64],
        outer: &TileLayout,
        outer_shape: &[i64],
    ) -> Result<Option<ComposeLayout>, LayoutError> {
        let inner = outer.is_tile_outer(outer_shape, self.tile(), tiled_shape)?;
        inner.map(|tile| self.over(tile)).transpose()
    }

    /// [`TileLayout::pack`] of the tile below; the swizzle keeps acting on the same bytes.
    /// Errors: a count that is not a power of two, or larger than the chunk that the swizzle keeps together.
    pub fn pack(&self, count: i64) -> Result<ComposeLayout, LayoutError> {
        ComposeLayout::new(self.swizzle().pack(count)?, self.tile().pack(count)?)
    }

    /// [`TileLayout::unpack`] of the tile below; the swizzle keeps acting on the same bytes.
    /// Error: a count that is not a power of two.
    pub fn unpack(&self, count: i64) -> Result<ComposeLayout, LayoutError> {
        ComposeLayout::new(self.swizzle().unpack(count)?, self.tile().unpack(count)?)
    }

    /// [`TileLayout::permute_dims`] of the tile below.
    pub fn permute_dims(&self, permutation: &[usize]) -> Result<ComposeLayout, LayoutError> {
        self.over(self.tile().permute_dims(permutation)?)
    }

    /// [`TileLayout::broadcast`] of the tile below.
    pub fn broadcast(&self, extent: i64, position: usize) -> Result<ComposeLayout, LayoutError> {
        self.over(self.tile().broadcast(extent, position)?)
    }
}

impl SwizzleLayout {
    /// The same swizzle of bytes, counted in elements `count` times wider.
    pub fn pack(self, count: i64) -> Result<SwizzleLayout, LayoutError> {
        self.recast(count, -log2(count)?)
    }

    /// The same swizzle of bytes, counted in elements `count` times narrower.
    pub fn unpack(self, count: i64) -> Result<SwizzleLayout, LayoutError> {
        self.recast(count, log2(count)?)
    }

    fn recast(self, count: i64, bits: i64) -> Result<SwizzleLayout, LayoutError> {
        let per_element = i64::from(self.per_element()) + bits;
        if per_element < 0 {
            let problem = format!("the swizzle keeps chunks of size {} together", 1i64 << self.per_element());
            return Err(LayoutError::Recast { count, problem });
        }
        SwizzleLayout::new(per_element, i64::from(self.swizzle_len()), i64::from(self.atom_len()), self.inner())
    }

    /// True when no address below `end` is changed: the bits that would change others are all 0.
    fn is_idle_below(self, end: i64) -> bool {
        let deciding = if self.inner() { self.per_element() + self.atom_len() } else { self.per_element() };
        self.swizzle_len() == 0 || end <= 1i64 << deciding
    }
}

fn log2(count: i64) -> Result<i64, LayoutError> {
    if count < 1 || count & (count - 1) != 0 {
        let problem = "under a swizzle the count must be a power of two".to_string();
        return Err(LayoutError::Recast { count, problem });
    }
    Ok(i64::from(count.trailing_zeros()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compose(text: &str) -> ComposeLayout {
        match text.parse().unwrap() {
            Layout::Compose(compose) => compose,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_change_of_width_moves_the_chunk_bits() {
        let half = compose("swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]");
        assert_eq!(half.pack(2).unwrap().to_string(), "swizzle(M=2,B=3,S=3) o S[(8,32):(32@m,1@m)]");
        assert_eq!(half.unpack(2).unwrap().to_string(), "swizzle(M=4,B=3,S=3) o S[(8,64,2):(128@m,2@m,1@m)]");
        assert_eq!(half.pack(16).unwrap_err().code(), "L0117");
        assert_eq!(half.pack(3).unwrap_err().code(), "L0117");
    }

    #[test]
    fn a_swizzle_that_sees_no_high_bit_is_none() {
        assert_eq!(compose("swizzle(M=3,B=3,S=3) o S[64:1]").canonicalize().to_string(), "S[64:1@m]");
        let kept = "swizzle(M=3,B=3,S=3) o S[65:1@m]";
        assert_eq!(compose(kept).canonicalize().to_string(), kept);
    }

    #[test]
    fn a_swizzled_tiling_gives_back_its_tile() {
        let tile = compose("swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]");
        let tiled = tile.tile_to(&[8, 64], &[16, 128]).unwrap();
        let outer: TileLayout = "S[(2,2):(2,1)]".parse().unwrap();
        let inner = tiled.inner_tile(&[16, 128], &outer, &[2, 2]).unwrap().unwrap();
        assert_eq!(inner.canonicalize(), tile.canonicalize());
        assert!(tile.is_tile_inner(&[8, 64], &tiled, &[16, 128]).unwrap().is_some());
    }
}
