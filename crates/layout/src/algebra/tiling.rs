//! Tiling: an outer layout places copies of an inner tile, in units of the inner tile's span.

use crate::algebra::sum::{Interleaved, interleave, same_dimensions, with_both};
use crate::axis::Axis;
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::tile::TileLayout;

impl TileLayout {
    /// This layout (the inner tile, of shape `inner_shape`) at every element of `outer` (of shape `outer_shape`).
    ///
    /// In the interleaved shape `(o0, i0, o1, i1, ..)`, `tile(x0, y0, x1, y1, ..) = D_outer(x) * span + r + O + self(y)`
    /// with, per axis, the inner tile's span ([`TileLayout::span_on`], replicas and offset included) where its shard
    /// moves on the axis, else 1. The replicas and the offset of `outer` are positions, not tiles, and are not scaled.
    /// Errors: shapes of different rank, or that do not group; places beyond 56 bits.
    pub fn tile(
        &self,
        inner_shape: &[i64],
        outer: &TileLayout,
        outer_shape: &[i64],
    ) -> Result<TileLayout, LayoutError> {
        let inner = self.dimensions(inner_shape)?;
        let outer_dimensions = outer.dimensions(outer_shape)?;
        let scaled = outer_dimensions.iter().map(|iters| iters.iter().map(|iter| self.scaled_by_span(iter)).collect());
        let scaled: Vec<Vec<Iter>> = scaled.collect::<Result<_, LayoutError>>()?;
        with_both(interleave(&scaled, &inner)?, outer, self)
    }

    /// The tile of shape `shape` repeated, row-major on `m`, up to `to_shape`.
    ///
    /// Errors: shapes of different rank, or a dimension of `to_shape` that is not a multiple of the tile's.
    pub fn tile_to(&self, shape: &[i64], to_shape: &[i64]) -> Result<TileLayout, LayoutError> {
        if shape.len() != to_shape.len() {
            return Err(LayoutError::Rank { given: to_shape.len(), needed: shape.len() });
        }
        let outer_shape = quotients(to_shape, shape)?;
        self.tile(shape, &TileLayout::row_major(&outer_shape)?, &outer_shape)
    }

    /// Every element of `outer` becomes this whole layout: the [`TileLayout::tile`] of two one-dimensional tiles.
    ///
    /// `product(o)(|self|*x + y) = D_o(x) * span + r + O + self(y)`.
    pub fn product(&self, outer: &TileLayout) -> Result<TileLayout, LayoutError> {
        self.tile(&[self.size()], outer, &[outer.size()])
    }

    /// The outer layout whose tiling with this inner tile (shape `inner_shape`) is `tiled` (shape `tiled_shape`), or
    /// `None` if there is none. Errors: a shape that does not divide or does not group.
    pub fn is_tile_inner(
        &self,
        inner_shape: &[i64],
        tiled: &TileLayout,
        tiled_shape: &[i64],
    ) -> Result<Option<TileLayout>, LayoutError> {
        let parts = interleaved(tiled, tiled_shape, inner_shape, |outer, inner| (outer, inner))?;
        if !same_dimensions(&parts.inner, &self.dimensions(inner_shape)?)? {
            return Ok(None);
        }
        let unscaled: Option<Vec<Iter>> = parts.outer.concat().iter().map(|iter| self.unscaled_by_span(iter)).collect();
        match unscaled {
            Some(shard) => parts.without(self, shard),
            None => Ok(None),
        }
    }

    /// The inner tile whose tiling by this outer layout (shape `outer_shape`) is `tiled` (shape `tiled_shape`), or
    /// `None` if there is none. Errors: a shape that does not divide or does not group.
    pub fn is_tile_outer(
        &self,
        outer_shape: &[i64],
        tiled: &TileLayout,
        tiled_shape: &[i64],
    ) -> Result<Option<TileLayout>, LayoutError> {
        let parts = interleaved(tiled, tiled_shape, outer_shape, |inner, outer| (outer, inner))?;
        let Some(inner) = parts.without(self, parts.inner.concat())? else { return Ok(None) };
        let outer = self.dimensions(outer_shape)?;
        let scaled = outer.iter().map(|iters| iters.iter().map(|iter| inner.scaled_by_span(iter)).collect());
        let scaled: Vec<Vec<Iter>> = scaled.collect::<Result<_, LayoutError>>()?;
        Ok(same_dimensions(&parts.outer, &scaled)?.then_some(inner))
    }

    /// The spacing of copies of this tile on `axis`: its span, and 1 where its shard does not move.
    fn spacing(&self, axis: &Axis) -> i64 {
        let moves = |iter: &Iter| iter.axis == *axis && iter.extent > 1 && iter.stride != 0;
        if self.shard().iter().any(moves) { self.span_on(axis) } else { 1 }
    }

    fn scaled_by_span(&self, iter: &Iter) -> Result<Iter, LayoutError> {
        let spacing = self.spacing(&iter.axis);
        let stride = iter.stride.checked_mul(spacing).ok_or(LayoutError::Overflow)?;
        Ok(Iter { stride, ..iter.clone() })
    }

    fn unscaled_by_span(&self, iter: &Iter) -> Option<Iter> {
        match self.spacing(&iter.axis) {
            _ if iter.stride == 0 || iter.extent == 1 => Some(Iter { stride: 0, ..iter.clone() }),
            0 => None,
            spacing => (iter.stride % spacing == 0).then(|| Iter { stride: iter.stride / spacing, ..iter.clone() }),
        }
    }
}

/// `tiled` cut into outer and inner; the known one of the two has shape `known`.
fn interleaved<'a>(
    tiled: &'a TileLayout,
    tiled_shape: &[i64],
    known: &[i64],
    order: fn(i64, i64) -> (i64, i64),
) -> Result<Interleaved<'a>, LayoutError> {
    if tiled_shape.len() != known.len() {
        return Err(LayoutError::Rank { given: known.len(), needed: tiled_shape.len() });
    }
    let found = quotients(tiled_shape, known)?;
    let shape = found.iter().zip(known).flat_map(|(found, known)| <[i64; 2]>::from(order(*found, *known)));
    Interleaved::new(tiled, &shape.collect::<Vec<_>>())
}

fn quotients(whole: &[i64], part: &[i64]) -> Result<Vec<i64>, LayoutError> {
    let quotient = |(dimension, (whole, part)): (usize, (&i64, &i64))| {
        if *part < 1 || *whole < 1 || whole % part != 0 {
            return Err(LayoutError::Indivisible { dimension, extent: *whole, factor: *part });
        }
        Ok(whole / part)
    };
    whole.iter().zip(part).enumerate().map(quotient).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> TileLayout {
        text.parse().unwrap()
    }

    #[test]
    fn outer_strides_count_spans_of_the_inner_tile() {
        let tiled = layout("S[8:3]").tile(&[8], &layout("S[2:1]"), &[2]).unwrap();
        assert_eq!(tiled.to_string(), "S[(2,8):(22@m,3@m)]");
    }

    #[test]
    fn a_tiling_gives_back_both_parts() {
        let (inner, outer) = (layout("S[(3,7):(7,1)] + R[(2,3):(8,2)] + 3"), layout("S[(3,1,2):(2,2,1)] + R[3:2] + 3"));
        let tiled = inner.tile(&[3, 7], &outer, &[3, 2]).unwrap();
        let found = inner.is_tile_inner(&[3, 7], &tiled, &[9, 14]).unwrap().unwrap();
        assert_eq!(inner.tile(&[3, 7], &found, &[3, 2]), Ok(tiled.clone()));
        // Copies of copies: other inner tiles make the same tiling, and one of them is found.
        let found = outer.is_tile_outer(&[3, 2], &tiled, &[9, 14]).unwrap().unwrap();
        assert_eq!(found.tile(&[3, 7], &outer, &[3, 2]), Ok(tiled));
    }

    #[test]
    fn a_shape_that_does_not_divide_is_an_error() {
        assert_eq!(layout("S[(8,64):(64,1)]").tile_to(&[8, 64], &[16, 100]).unwrap_err().code(), "L0118");
        assert_eq!(layout("S[4:2]").is_tile_inner(&[4], &layout("S[9:1]"), &[9]).unwrap_err().code(), "L0118");
    }

    #[test]
    fn a_product_repeats_the_whole_layout() {
        let product = layout("S[(4,2):(2,1)]").product(&layout("S[(2,3):(1,2)]")).unwrap();
        assert_eq!(product.to_string(), "S[(2,3,8):(8@m,16@m,1@m)]");
    }
}
