//! The layout of a region: the places of the elements in a box of a shape.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::algebra::canonical::fused;
use crate::algebra::recognise::Walk;
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::tile::{TileLayout, check_size};

impl TileLayout {
    /// The layout of the elements in `region` (one range per dimension of `shape`), in row-major order of the region.
    ///
    /// `slice(x) = self(x + begin)` for every `x` of the region. Errors: a shape that does not group, a region that is
    /// empty or outside the shape, that is not one affine layout (it straddles carries unevenly), or that is too long
    /// to decide.
    pub fn slice(&self, shape: &[i64], region: &[Range<i64>]) -> Result<TileLayout, LayoutError> {
        check_region(shape, region)?;
        let (iters, separators) = self.runs_for(self.moving_iters(), shape)?;
        let sides = region.iter().enumerate().map(|(dimension, range)| {
            let own = &iters[separators[dimension]..separators[dimension + 1]];
            AffineRange::of(own, range.clone())?.ok_or(LayoutError::NotAffine {
                dimension,
                begin: range.start,
                end: range.end,
            })
        });
        Ok(self.of_sides(sides.collect::<Result<Vec<AffineRange>, _>>()?))
    }

    /// The region as boxes, each with one affine layout, in row-major order of the boxes: a single box where
    /// [`TileLayout::slice`] succeeds, otherwise boxes cut where the iters carry. Errors: those of `slice`, except for
    /// a region that is not affine; more than 4096 pieces.
    pub fn pieces(&self, shape: &[i64], region: &[Range<i64>]) -> Result<Vec<Piece>, LayoutError> {
        check_region(shape, region)?;
        let grouped = self.group(shape)?;
        let mut boxes: Vec<Vec<AffineRange>> = vec![Vec::new()];
        for (dimension, range) in region.iter().enumerate() {
            let mut sides = Vec::new();
            affine_sides(grouped.dimension(dimension), range.clone(), &[], &mut sides)?;
            // With more sides than that, `affine_sides` has stopped early.
            if boxes.len().saturating_mul(sides.len()) > MAX_PIECES {
                return Err(LayoutError::NotAffine { dimension, begin: range.start, end: range.end });
            }
            let longer = |b: &Vec<AffineRange>| {
                sides.iter().map(|side| b.iter().cloned().chain([side.clone()]).collect()).collect::<Vec<_>>()
            };
            boxes = boxes.iter().flat_map(longer).collect();
        }
        let piece = |sides: Vec<AffineRange>| {
            let region = sides.iter().map(|side| side.range.clone()).collect();
            Piece { region, layout: self.of_sides(sides) }
        };
        Ok(boxes.into_iter().map(piece).collect())
    }

    /// The layout with the iters and the starts of all sides: some of this layout's places.
    fn of_sides(&self, sides: Vec<AffineRange>) -> TileLayout {
        let own = self.offset().iter().map(|(axis, value)| (axis.clone(), *value));
        let (mut shard, mut offset): (Vec<Iter>, Vec<_>) = (Vec::new(), own.collect());
        for side in sides {
            shard.extend(side.iters);
            offset.extend(side.start);
        }
        TileLayout::from_valid_parts(shard, self.replica().to_vec(), offset)
    }
}

/// A range of one dimension that iters describe.
#[derive(Clone)]
struct AffineRange {
    /// Indices of the dimension.
    range: Range<i64>,
    /// The iters that the range walks.
    iters: Vec<Iter>,
    /// What the first index adds to each axis.
    start: Vec<(crate::Axis, i64)>,
}

impl AffineRange {
    /// Cuts the iters as written where that works, so that a slice keeps the iters of its parent; otherwise the fused
    /// iters, whose runs are longest.
    fn of(iters: &[Iter], range: Range<i64>) -> Result<Option<AffineRange>, LayoutError> {
        let start = axes(iters).zip(places(iters, range.start)).filter(|(_, add)| *add != 0).collect();
        let kept = match cut(iters, range.clone()) {
            Ok(Some(kept)) => Some(kept),
            Ok(None) | Err(_) => cut(&fused(iters), range.clone())?,
        };
        Ok(kept.map(|iters| AffineRange { range, iters, start }))
    }
}

/// A box of a tile, and where its elements are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The box: one range per dimension of the tile.
    pub region: Vec<Range<i64>>,
    /// The places of its elements, in row-major order of the box.
    pub layout: TileLayout,
}

/// The maximum number of pieces of a region.
const MAX_PIECES: usize = 4096;

/// A range inside one run of the innermost iter is always affine.
const NOT_ONE_SIDE: LayoutError = LayoutError::Internal { problem: "a region of one run of iters is not affine" };

/// Cuts a range of one dimension into ranges that [`cut`] describes: the rest of the run it begins in, whole runs, and
/// its part of the run it ends in. `range` counts whole rounds of the iters `inner`.
fn affine_sides(
    iters: &[Iter],
    range: Range<i64>,
    inner: &[Iter],
    sides: &mut Vec<AffineRange>,
) -> Result<(), LayoutError> {
    let all: Vec<Iter> = iters.iter().chain(inner).cloned().collect();
    let round: i64 = inner.iter().map(|iter| iter.extent).product();
    let scaled = |range: &Range<i64>| range.start * round..range.end * round;
    if sides.len() > MAX_PIECES {
        return Ok(());
    }
    if let Some(side) = AffineRange::of(&all, scaled(&range))? {
        sides.push(side);
        return Ok(());
    }
    // Without outer iters the range is all of the inner ones, which are affine.
    let (innermost, outer) = iters.split_last().ok_or(NOT_ONE_SIDE)?;
    let e = innermost.extent;
    let (head, tail) = ((range.start + e - 1) / e * e, range.end / e * e);
    if range.start < head {
        sides.push(AffineRange::of(&all, scaled(&(range.start..head)))?.ok_or(NOT_ONE_SIDE)?);
    }
    if head < tail {
        let within: Vec<Iter> = std::iter::once(innermost).chain(inner).cloned().collect();
        affine_sides(outer, head / e..tail / e, &within, sides)?;
    }
    if tail < range.end {
        sides.push(AffineRange::of(&all, scaled(&(tail..range.end)))?.ok_or(NOT_ONE_SIDE)?);
    }
    Ok(())
}

fn check_region(shape: &[i64], region: &[Range<i64>]) -> Result<(), LayoutError> {
    if region.len() != shape.len() {
        return Err(LayoutError::Rank { given: region.len(), needed: shape.len() });
    }
    for (dimension, (range, &extent)) in region.iter().zip(shape).enumerate() {
        if range.start < 0 || range.start >= range.end || range.end > extent {
            return Err(LayoutError::Region { dimension, begin: range.start, end: range.end, extent });
        }
    }
    Ok(())
}

/// The flat indices of a region's elements, in row-major order, in a tile of `size` elements.
pub(crate) fn elements_of_region(size: i64, shape: &[i64], region: &[Range<i64>]) -> Result<Vec<i64>, LayoutError> {
    check_region(shape, region)?;
    check_size(shape, size)?;
    let grow = |elements: Vec<i64>, (range, extent): (&Range<i64>, &i64)| {
        elements.iter().flat_map(|element| range.clone().map(move |index| element * extent + index)).collect()
    };
    Ok(region.iter().zip(shape).fold(vec![0], grow))
}

fn axes(iters: &[Iter]) -> impl Iterator<Item = crate::Axis> + '_ {
    iters.iter().map(|iter| iter.axis.clone())
}

/// What each iter adds to the place of index `at` of one dimension.
pub(crate) fn places(iters: &[Iter], at: i64) -> Vec<i64> {
    let mut rest = at;
    let mut added = vec![0; iters.len()];
    for (iter, add) in iters.iter().zip(&mut added).rev() {
        *add = rest % iter.extent * iter.stride;
        rest /= iter.extent;
    }
    added
}

/// The iters of `range` of one dimension, or `None` if no iters describe it. Error: a range too long to decide.
pub(crate) fn cut(iters: &[Iter], range: Range<i64>) -> Result<Option<Vec<Iter>>, LayoutError> {
    let Some((innermost, outer)) = iters.split_last() else { return Ok(Some(Vec::new())) };
    let e = innermost.extent;
    if range.start % e == 0 && range.end % e == 0 {
        let kept = cut(outer, range.start / e..range.end / e)?;
        return Ok(kept.map(|mut kept| {
            kept.push(innermost.clone());
            kept
        }));
    }
    let length = range.end - range.start;
    if range.start / e == (range.end - 1) / e {
        return Ok(Some(vec![Iter { extent: length, ..innermost.clone() }]));
    }
    if length > crate::ENUMERATION_LIMIT {
        return Err(LayoutError::TooLarge { points: length });
    }
    Ok(recognise(iters, range))
}

/// Enumerates the places of the range and looks for iters with exactly these places.
fn recognise(iters: &[Iter], range: Range<i64>) -> Option<Vec<Iter>> {
    let distinct: BTreeSet<crate::Axis> = axes(iters).collect();
    let length = range.end - range.start;
    let walk = Walk::new(distinct.into_iter().collect(), length, |t, axis| place_on(iters, range.start + t, axis));
    walk.iters(length as usize)
}

/// The position of index `at` of one dimension on one axis.
fn place_on(iters: &[Iter], at: i64, axis: &crate::Axis) -> i64 {
    let mut rest = at;
    let mut place = 0;
    for iter in iters.iter().rev() {
        if iter.axis == *axis {
            place += rest % iter.extent * iter.stride;
        }
        rest /= iter.extent;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(text: &str, shape: &[i64], region: &[Range<i64>]) -> String {
        match text.parse::<TileLayout>().unwrap().slice(shape, region) {
            Ok(layout) => layout.to_string(),
            Err(e) => e.code().to_string(),
        }
    }

    #[test]
    fn a_region_begins_at_the_offset() {
        assert_eq!(slice("S[(6,8):(8,1)]", &[6, 8], &[1..3, 2..6]), "S[(2,4):(8@m,1@m)] + 10@m");
    }

    #[test]
    fn a_region_that_straddles_one_carry_evenly_is_affine() {
        assert_eq!(slice("S[(2,2,3):(1000,100,8)]", &[12], std::slice::from_ref(&(1..5))), "S[(2,2):(92@m,8@m)] + 8@m");
    }

    #[test]
    fn a_second_carry_is_seen() {
        assert_eq!(slice("S[(2,2,3):(1000,100,8)]", &[12], std::slice::from_ref(&(5..7))), "S[2:884@m] + 116@m");
        assert_eq!(slice("S[(2,2,3):(1000,100,8)]", &[12], std::slice::from_ref(&(5..10))), "L0109");
    }

    #[test]
    fn empty_and_outlying_regions_are_errors() {
        assert_eq!(slice("S[(6,8):(8,1)]", &[6, 8], &[3..3, 0..8]), "L0107");
        assert_eq!(slice("S[(6,8):(8,1)]", &[6, 8], &[1..7, 0..8]), "L0107");
    }

    #[test]
    fn a_region_that_straddles_two_carries_comes_in_pieces() {
        let layout: TileLayout = "S[(2,2,3):(1000,100,8)]".parse().unwrap();
        let pieces = layout.pieces(&[12], std::slice::from_ref(&(5..8))).unwrap();
        let seen: Vec<String> = pieces.iter().map(|p| format!("{:?} {}", p.region, p.layout)).collect();
        assert_eq!(seen, ["[5..6] S[1:8@m] + 116@m", "[6..8] S[2:8@m] + 1000@m"]);
    }
}
