//! Whether two tiles in one memory may share a place.

use tilewright_expr::linear::normalize;

use crate::axis::M;
use crate::placed::{Pitch, PlacedTile, Placement};

impl PlacedTile {
    /// How far the first element of this tile lies after that of another in the same memory, if that is one number
    /// whatever the starts and sizes are.
    pub fn distance_from(&self, other: &PlacedTile) -> Option<i64> {
        normalize(&(self.origin() - other.origin())).as_const()
    }

    /// False only if this tile and another in the same memory cannot share a place, because the bounds of their places
    /// keep them apart at a constant distance.
    pub fn may_overlap(&self, other: &PlacedTile) -> bool {
        let Some(distance) = self.distance_from(other) else { return true };
        let ((least, greatest), (other_least, other_greatest)) = (self.bounds(), other.bounds());
        least.saturating_add(distance) <= other_greatest && other_least <= greatest.saturating_add(distance)
    }

    /// The least and the greatest position that an element may have relative to the tile's first, for all sizes that
    /// the tensor may have at launch. A swizzle moves a position inside a block only.
    fn bounds(&self) -> (i64, i64) {
        let (least, greatest) = match &self.shape {
            Placement::Iters(tile) => (tile.least_on(&M), tile.span_on(&M) - 1),
            Placement::Listed(table) => (table.least_on(&M), table.span_on(&M) - 1),
        };
        let within_block = self.swizzle.map_or(0, |swizzle| swizzle.block() - 1);
        let fixed = (least - within_block, greatest + within_block);
        self.pitches.iter().fold(fixed, |(least, greatest), pitch| {
            let (low, high) = self.reach_of(pitch);
            (least.saturating_add(low), greatest.saturating_add(high))
        })
    }

    /// The least and the greatest that a dimension adds to the position of the tile's first element.
    fn reach_of(&self, pitch: &Pitch) -> (i64, i64) {
        let last = match &self.shape {
            Placement::Iters(tile) => tile.span_on(&pitch.axis) - 1,
            Placement::Listed(table) => table.span_on(&pitch.axis) - 1,
        };
        let [low, high] = [pitch.stride.range().lo, pitch.stride.range().hi].map(|stride| last.saturating_mul(stride));
        (low.min(0), high.max(0))
    }
}

#[cfg(test)]
mod tests {
    use tilewright_expr::{Expr, Var};

    use super::*;
    use crate::layout::Layout;

    fn at(index: i64) -> Expr {
        Expr::constant(index)
    }

    fn var(name: &str, hi: i64) -> Expr {
        Expr::var(&Var::new(name, 0, hi))
    }

    /// `extents` at `starts` of a matrix whose rows are `n` apart, `n` known at launch only.
    fn of_matrix(starts: [Expr; 2], extents: [i64; 2]) -> PlacedTile {
        let n = Expr::var(&Var::new("n", 64, 4096));
        PlacedTile::over(&starts, &extents, &[n, at(1)], &[None, None]).unwrap()
    }

    /// Whether either of two tiles may overlap the other.
    fn may_overlap(one: &PlacedTile, other: &PlacedTile) -> bool {
        let either = [one.may_overlap(other), other.may_overlap(one)];
        assert_eq!(either[0], either[1]);
        either[0]
    }

    #[test]
    fn tiles_with_run_time_strides_at_an_unknown_distance_may_overlap() {
        let (by, bx) = (var("by", 7), var("bx", 7));
        let rows = of_matrix([&by * 32, &bx * 32], [32, 32]);
        let transposed = of_matrix([&bx * 32, &by * 32], [32, 32]);
        assert!(may_overlap(&rows, &transposed));
    }

    #[test]
    fn tiles_with_run_time_strides_overlap_where_their_bounds_do() {
        let tile = |column: i64, extents: [i64; 2]| of_matrix([var("y", 7), at(column)], extents);
        assert!(may_overlap(&tile(0, [4, 32]), &tile(0, [4, 32])));
        assert!(may_overlap(&tile(0, [1, 32]), &tile(31, [1, 32])));
        assert!(!may_overlap(&tile(0, [1, 32]), &tile(32, [1, 32])));
        // The second row of one tile may reach the other's first, whatever `n` is.
        assert!(may_overlap(&tile(0, [2, 32]), &tile(32, [2, 32])));
    }

    #[test]
    fn tiles_without_run_time_strides_overlap_where_their_bounds_do() {
        let layout: Layout = "S[(8,16):(16,1)]".parse().unwrap();
        let row = |at: &Expr| layout.place(&[8, 16], &[at.clone(), Expr::constant(0)], &[2, 16]).unwrap();
        let y = var("y", 5);
        assert!(may_overlap(&row(&y), &row(&(&y + 1))));
        assert!(!may_overlap(&row(&at(0)), &row(&at(2))));
        assert!(may_overlap(&row(&y), &row(&var("x", 5))));
    }
}
