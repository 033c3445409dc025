//! A tile inside a buffer: its shape relative to its start, and the position of that start.

use std::collections::BTreeMap;
use std::ops::Range;

use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;

use crate::algebra::elements_of_region;
use crate::axis::{Axis, M};
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::layout::Layout;
use crate::swizzle::SwizzleLayout;
use crate::table::TableLayout;
use crate::tile::{TileLayout, check_size};

/// Where the elements of a tile are in linear memory, relative to its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Given by iters: those of the parent, cut to the tile.
    Iters(TileLayout),
    /// Given by a table on `m`: one position per element.
    Listed(TableLayout),
}

/// A sub-tile of a memory buffer. Its iters are the parent's, or its positions are listed as the parent's are; only the
/// start depends on run-time values such as a loop variable or a block index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedTile {
    /// The elements of the tile in row-major order, relative to the start.
    pub shape: Placement,
    /// Added to every position of `shape`, in elements, to give positions in the buffer's linear memory, before a
    /// swizzle.
    pub start: Expr,
    /// The parent's swizzle, which acts on positions in the buffer.
    pub swizzle: Option<SwizzleLayout>,
    /// The dimensions of a tensor whose sizes are known only at launch; empty for other tensors. Each has its own axis
    /// in `shape`, on which positions count indices.
    pub pitches: Vec<Pitch>,
}

/// One dimension of a tile of a tensor whose sizes are known only at launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pitch {
    /// The axis on which the tile counts indices of this dimension.
    pub axis: Axis,
    /// The index of the tile's first element.
    pub first: Expr,
    /// Elements from one index to the next.
    pub stride: Expr,
    /// The tensor's extent, if the tile may exceed it: indices from here on are out of bounds.
    pub edge: Option<Expr>,
}

impl Layout {
    /// The tile of `extents` that begins at `starts` (one index expression per dimension of `shape`). For a table
    /// with several places per element, the first is used.
    ///
    /// Errors: ranks that differ, a shape of a different size or one that does not group, a start that may lie outside,
    /// a layout on an axis other than `m`, or a region whose iters or listed positions would depend on where it starts
    /// (use a start that is a multiple of the extent or, in a table, a constant start).
    pub fn place(&self, shape: &[i64], starts: &[Expr], extents: &[i64]) -> Result<PlacedTile, LayoutError> {
        for given in [starts.len(), extents.len()] {
            if given != shape.len() {
                return Err(LayoutError::Rank { given, needed: shape.len() });
            }
        }
        let region = Region { shape, starts, extents };
        match self {
            Layout::Tile(tile) => region.of_iters(tile, None),
            Layout::Compose(compose) => region.of_iters(compose.tile(), Some(compose.swizzle())),
            Layout::Table(table) => region.of_table(table),
        }
    }
}

/// A box of a shape, whose start may depend on run-time values; all three fields have the same rank.
struct Region<'a> {
    shape: &'a [i64],
    /// The first index in each dimension.
    starts: &'a [Expr],
    /// How many indices the box has in each dimension.
    extents: &'a [i64],
}

impl Region<'_> {
    /// The range of indices of one dimension that the box may cover, over all its starts. Error: some are outside.
    fn reach(&self, dimension: usize) -> Result<Range<i64>, LayoutError> {
        let (start, extent, most) = (self.starts[dimension].range(), self.extents[dimension], self.shape[dimension]);
        let (begin, end) = (start.lo, start.hi.saturating_add(extent));
        if extent < 1 || begin < 0 || start.hi > most.saturating_sub(extent) {
            return Err(LayoutError::Region { dimension, begin, end, extent: most });
        }
        Ok(begin..end)
    }

    fn of_iters(&self, parent: &TileLayout, swizzle: Option<SwizzleLayout>) -> Result<PlacedTile, LayoutError> {
        check_on_memory(&parent.axes())?;
        let grouped = parent.group(self.shape)?;
        let mut shard = Vec::new();
        let mut start = Expr::constant(parent.offset_on(&M));
        for (dimension, (&extent, from)) in self.extents.iter().zip(self.starts).enumerate() {
            let reach = self.reach(dimension)?;
            let found = cut(grouped.dimension(dimension), from, extent);
            let (kept, offset) = found.ok_or_else(|| not_affine(dimension, &reach))?;
            shard.extend(kept);
            start = start + offset;
        }
        let tile = TileLayout::new(shard, parent.replica().to_vec(), [])?;
        Ok(PlacedTile { shape: Placement::Iters(tile), start: normalize(&start), swizzle, pitches: Vec::new() })
    }

    /// Lists the positions of the box at its least start; each further index of a start must add one step to all of
    /// them.
    fn of_table(&self, table: &TableLayout) -> Result<PlacedTile, LayoutError> {
        check_on_memory(table.axes())?;
        check_size(self.shape, table.size())?;
        let reach: Vec<Range<i64>> = (0..self.shape.len()).map(|d| self.reach(d)).collect::<Result<_, _>>()?;
        let sides: Vec<i64> = reach.iter().map(|range| range.end - range.start).collect();
        let elements = elements_of_region(table.size(), self.shape, &reach)?;
        let positions: Vec<i64> = elements.into_iter().map(|element| table.position(element, &M)).collect();
        let mut start = Expr::constant(0);
        for (dimension, from) in self.starts.iter().enumerate() {
            let reach = &reach[dimension];
            if sides[dimension] > self.extents[dimension] {
                let step = step_along(&positions, &sides, dimension).ok_or_else(|| not_affine(dimension, reach))?;
                start = start + (from - reach.start) * step;
            }
        }
        let first: Vec<Range<i64>> = self.extents.iter().map(|extent| 0..*extent).collect();
        let kept = elements_of_region(positions.len() as i64, &sides, &first)?;
        let kept: Vec<i64> = kept.into_iter().map(|element| positions[element as usize]).collect();
        let shape = Placement::Listed(TableLayout::of_positions(&M, &kept)?);
        Ok(PlacedTile { shape, start: normalize(&start), swizzle: None, pitches: Vec::new() })
    }
}

/// A tile in memory is on `m`; [`PlacedTile::over`] makes the only tiles with other axes.
fn check_on_memory<'a>(axes: impl IntoIterator<Item = &'a Axis>) -> Result<(), LayoutError> {
    match axes.into_iter().find(|axis| **axis != M) {
        Some(axis) => Err(LayoutError::Axes { problem: format!("a tile in memory is on `m`, not on `{axis}`") }),
        None => Ok(()),
    }
}

fn not_affine(dimension: usize, reach: &Range<i64>) -> LayoutError {
    LayoutError::NotAffine { dimension, begin: reach.start, end: reach.end }
}

/// The step that one more index of a dimension adds to the positions of a box with these sides, if it is constant.
fn step_along(positions: &[i64], sides: &[i64], dimension: usize) -> Option<i64> {
    let inner_size = sides[dimension + 1..].iter().product::<i64>() as usize;
    let runs = positions.chunks(inner_size * sides[dimension] as usize);
    let mut steps = runs.flat_map(|run| run.iter().zip(&run[inner_size..]).map(|(here, next)| next - here));
    let step = steps.next()?;
    steps.all(|other| other == step).then_some(step)
}

/// The iters of `extent` indices from `start` on, and the position of the first; `None` if the iters depend on `start`.
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
    let mut inner_size = 1;
    let mut sum = Expr::constant(0);
    for (place, iter) in iters.iter().enumerate().rev() {
        let quotient = at / inner_size;
        let digit = if place == 0 { quotient } else { quotient % iter.extent };
        sum = sum + digit * iter.stride;
        inner_size *= iter.extent;
    }
    sum
}

impl PlacedTile {
    /// The tile of `extents` at `starts` in a tensor with these strides, some of them known only at launch. `edges` has
    /// the extent of each dimension that the tile may exceed. Error: ranks that differ.
    pub fn over(
        starts: &[Expr],
        extents: &[i64],
        strides: &[Expr],
        edges: &[Option<Expr>],
    ) -> Result<PlacedTile, LayoutError> {
        for given in [starts.len(), strides.len(), edges.len()] {
            if given != extents.len() {
                return Err(LayoutError::Rank { given, needed: extents.len() });
            }
        }
        let axes: Vec<Axis> = (0..extents.len()).map(|dimension| Axis::named(&format!("dim{dimension}"))).collect();
        let iters = extents
            .iter()
            .zip(&axes)
            .map(|(extent, axis)| Iter { extent: *extent, stride: 1, axis: axis.clone() })
            .collect();
        let shape = Placement::Iters(TileLayout::new(iters, Vec::new(), [])?);
        let pitch = |(((axis, stride), first), edge): (((Axis, &Expr), &Expr), &Option<Expr>)| Pitch {
            axis,
            first: first.clone(),
            stride: stride.clone(),
            edge: edge.clone(),
        };
        let pitches = axes.into_iter().zip(strides).zip(starts).zip(edges).map(pitch).collect();
        Ok(PlacedTile { shape, start: Expr::constant(0), swizzle: None, pitches })
    }

    /// One more than the greatest position of an element on `axis`, relative to the start.
    pub fn span_on(&self, axis: &Axis) -> i64 {
        match &self.shape {
            Placement::Iters(tile) => tile.span_on(axis),
            Placement::Listed(table) => table.span_on(axis),
        }
    }

    /// The position of the tile's first element, before a swizzle.
    pub fn origin(&self) -> Expr {
        &self.start + &self.first_of_pitches()
    }

    /// The sum that the starts of the dimensions in `pitches` add to every position.
    pub fn first_of_pitches(&self) -> Expr {
        self.pitches.iter().fold(Expr::constant(0), |sum, pitch| sum + &pitch.first * &pitch.stride)
    }

    /// How far a step of 1 on an axis of the tile moves in memory, in elements: the stride of a dimension in `pitches`,
    /// or 1 on `m`. The tile must have the axis.
    pub fn stride_of(&self, axis: &Axis) -> Expr {
        if *axis == M {
            return Expr::constant(1);
        }
        let strides: BTreeMap<&Axis, &Expr> = self.pitches.iter().map(|pitch| (&pitch.axis, &pitch.stride)).collect();
        strides[axis].clone()
    }

    /// The position of element `flat` relative to the start, where `layout` has the iters of this tile in some order.
    pub fn relative_expr(&self, layout: &TileLayout, flat: &Expr) -> Expr {
        let on_memory = layout.position_expr(flat, &M);
        self.pitches.iter().fold(on_memory, |sum, pitch| {
            sum + (&pitch.first + &layout.position_expr(flat, &pitch.axis)) * pitch.stride.clone()
        })
    }

    /// The iters, or `None` for a tile of a table.
    pub fn iters(&self) -> Option<&TileLayout> {
        match &self.shape {
            Placement::Iters(tile) => Some(tile),
            Placement::Listed(_) => None,
        }
    }

    /// How many elements it has.
    pub fn size(&self) -> i64 {
        match &self.shape {
            Placement::Iters(tile) => tile.size(),
            Placement::Listed(table) => table.size(),
        }
    }

    /// The positions on `m` of all elements in order, relative to the start, before a swizzle, replicas left out. One
    /// number per element, so call it only for tiles that are enumerated anyway.
    pub fn positions(&self) -> Vec<i64> {
        match &self.shape {
            Placement::Iters(tile) => tile.positions(&M),
            Placement::Listed(table) => (0..table.size()).map(|element| table.position(element, &M)).collect(),
        }
    }

    /// Two elements that share a place, the lesser first, if any do.
    pub fn collision(&self) -> Result<Option<(i64, i64)>, LayoutError> {
        match &self.shape {
            Placement::Iters(tile) => tile.collision(),
            Placement::Listed(table) => Ok(table.collision()),
        }
    }

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
            Ok(p) => format!("{} from {}", p.iters().unwrap(), p.start),
            Err(e) => e.code().to_string(),
        }
    }

    fn listed(positions: &[i64], shape: &[i64], starts: &[Expr], extents: &[i64]) -> String {
        let layout = Layout::Table(TableLayout::of_positions(&M, positions).unwrap());
        match layout.place(shape, starts, extents) {
            Ok(p) => format!("{:?} from {}", p.positions(), p.start),
            Err(e) => e.code().to_string(),
        }
    }

    /// Every row of a 4 x 4 tile is rotated by one more.
    fn rotation() -> Vec<i64> {
        (0..16).map(|x| x / 4 * 4 + (x / 4 + x % 4) % 4).collect()
    }

    fn at(index: i64) -> Expr {
        Expr::constant(index)
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

    #[test]
    fn a_tile_of_a_table_lists_its_region() {
        assert_eq!(listed(&rotation(), &[4, 4], &[at(1), at(1)], &[2, 2]), "[6, 7, 11, 8] from 0");
    }

    #[test]
    fn a_stage_of_a_table() {
        let stages: Vec<i64> = (0..2).flat_map(|s| rotation().into_iter().map(move |p| s * 20 + p)).collect();
        let text = listed(&stages, &[2, 4, 4], &[var("s", 1), at(0), at(0)], &[1, 2, 4]);
        assert_eq!(text, "[0, 1, 2, 3, 5, 6, 7, 4] from s*20");
    }

    #[test]
    fn a_start_that_moves_positions_unevenly_is_an_error() {
        assert_eq!(listed(&rotation(), &[4, 4], &[var("r", 3), at(0)], &[1, 4]), "L0109");
        assert_eq!(listed(&rotation(), &[4, 4], &[at(1), var("c", 2)], &[1, 2]), "L0109");
    }

    #[test]
    fn only_the_indices_that_a_start_reaches_must_move_evenly() {
        assert_eq!(listed(&rotation(), &[4, 4], &[at(0), var("c", 2)], &[1, 2]), "[0, 1] from c");
        let from_1 = Expr::var(&Var::new("i", 1, 2));
        assert_eq!(listed(&[9, 0, 3, 6], &[4], &[from_1], &[2]), "[0, 3] from i*3 - 3");
    }

    #[test]
    fn the_shape_and_the_region_of_a_table_are_checked() {
        assert_eq!(listed(&rotation(), &[4, 5], &[at(0), at(0)], &[1, 1]), "L0105");
        assert_eq!(listed(&rotation(), &[16], &[at(0), at(0)], &[1, 1]), "L0104");
        assert_eq!(listed(&rotation(), &[4, 4], &[var("r", 4), at(0)], &[1, 4]), "L0107");
        assert_eq!(listed(&rotation(), &[4, 4], &[at(0), at(0)], &[0, 4]), "L0107");
    }

    #[test]
    fn a_table_on_lanes_is_not_in_memory() {
        let lanes = Layout::Table(TableLayout::of_positions(&crate::axis::LANEID, &[1, 0]).unwrap());
        assert_eq!(lanes.place(&[2], &[at(0)], &[1]).unwrap_err().code(), "L0120");
    }

    #[test]
    fn iters_on_lanes_are_not_in_memory() {
        assert_eq!(placed("S[(2,2):(1@laneid,1)]", &[2, 2], &[at(0), at(0)], &[1, 2]), "L0120");
    }

    /// `extents` at `starts` of a matrix whose rows are `n` apart, `n` known at launch only.
    fn of_matrix(starts: [Expr; 2], extents: [i64; 2]) -> PlacedTile {
        let n = Expr::var(&Var::new("n", 64, 4096));
        PlacedTile::over(&starts, &extents, &[n, at(1)], &[None, None]).unwrap()
    }

    #[test]
    fn ranks_of_a_tile_with_run_time_strides_agree() {
        let error = PlacedTile::over(&[at(0)], &[4, 4], &[at(4), at(1)], &[None, None]).unwrap_err();
        assert_eq!(error, LayoutError::Rank { given: 1, needed: 2 });
    }

    #[test]
    fn a_step_on_an_axis_moves_by_its_stride() {
        let tile = of_matrix([at(0), at(0)], [4, 4]);
        let strides = ["dim0", "dim1", "m"].map(|axis| tile.stride_of(&Axis::named(axis)).to_string());
        assert_eq!(strides, ["n", "1", "1"]);
    }

    #[test]
    fn a_tile_names_the_elements_that_collide() {
        let overlapping: Layout = "S[(8,4):(3,1)]".parse().unwrap();
        let table = Layout::Table(TableLayout::of_positions(&M, &overlapping.memory_positions()).unwrap());
        for layout in [overlapping, table] {
            let tile = |rows: i64| layout.place(&[8, 4], &[at(2), at(0)], &[rows, 4]).unwrap();
            assert_eq!((tile(1).collision(), tile(2).collision(), tile(2).size()), (Ok(None), Ok(Some((3, 4))), 8));
        }
    }
}
