//! What a drawing shows: the elements of a tile in a shape, each with the places where it is.

use std::cmp::Reverse;

use tilewright_layout::axis::{AxisKind, M, Scope};
use tilewright_layout::{Axis, Coord, ENUMERATION_LIMIT, Layout, LayoutError};

/// The widest element that is drawn, in bits: a line of shared memory.
const MAX_BITS: i64 = 1024;
/// Bits of a chunk: 16 bytes, the unit that swizzles move and the widest access of a lane.
const CHUNK_BITS: i128 = 128;
/// Chunks of a 128-byte line.
const CHUNKS: i128 = 8;

/// One place of an element, split into an owner and a slot within it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The owner: one position per axis of [`LayoutView::owner_axes`].
    pub owner: Vec<i64>,
    /// The slot within the owner: one position per axis of [`LayoutView::slot_axes`].
    pub slot: Vec<i64>,
}

/// One element, with its coordinate and its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its flat row-major index.
    pub index: i64,
    /// Its coordinate in the shape of the view.
    pub coordinate: Vec<i64>,
    /// Where it is, in order; more than one place means replicas.
    pub places: Vec<Place>,
}

/// A layout viewed as a tile of a shape. Elements are looked up when they are drawn, so a view of any size is cheap.
#[derive(Clone, Debug)]
pub struct LayoutView {
    layout: Layout,
    shape: Vec<i64>,
    /// Bits of one element.
    bits: i64,
    /// Axes that identify the owner of an element, outermost first.
    owner_axes: Vec<Axis>,
    /// Axes that count elements within an owner.
    slot_axes: Vec<Axis>,
}

impl LayoutView {
    /// The view of `layout` as a tile of `shape`, with elements of `bits` bits.
    ///
    /// Errors: a shape whose size is not the layout's, an element of 0 bits or wider than a 128-byte line, more places
    /// of one element than may be enumerated.
    pub fn new(layout: &Layout, shape: &[i64], bits: i64) -> Result<LayoutView, LayoutError> {
        let product = shape.iter().try_fold(1i64, |product, &extent| product.checked_mul(extent));
        if shape.iter().any(|extent| *extent < 1) || product != Some(layout.size()) {
            return Err(LayoutError::Size { shape: shape.to_vec(), size: layout.size() });
        }
        if !(1..=MAX_BITS).contains(&bits) {
            return Err(LayoutError::Hardware {
                name: "element width",
                problem: format!("{bits} bits"),
                legal: format!("1 to {MAX_BITS} bits"),
            });
        }
        check_replicas(layout)?;
        let (mut owner_axes, slot_axes): (Vec<Axis>, Vec<Axis>) = layout.axes().into_iter().partition(is_owner);
        owner_axes.sort_by_key(outermost_first);
        Ok(LayoutView { layout: layout.clone(), shape: shape.to_vec(), bits, owner_axes, slot_axes })
    }

    /// The layout in notation.
    pub fn notation(&self) -> String {
        self.layout.to_string()
    }

    /// The shape of the tile.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Elements of the tile.
    pub fn size(&self) -> i64 {
        self.layout.size()
    }

    /// Bits of an element.
    pub fn bits(&self) -> i64 {
        self.bits
    }

    /// The axes that identify the owner of an element, outermost first: devices, CTAs, warps, lanes, tensor-memory
    /// lanes, and axes that a user named.
    pub fn owner_axes(&self) -> &[Axis] {
        &self.owner_axes
    }

    /// The axes that count elements inside an owner: registers, linear memory, columns.
    pub fn slot_axes(&self) -> &[Axis] {
        &self.slot_axes
    }

    /// The element of a flat index. Error: an index outside the tile.
    pub fn cell(&self, index: i64) -> Result<Cell, LayoutError> {
        let place = |coord: &Coord| Place {
            owner: positions(coord, &self.owner_axes),
            slot: positions(coord, &self.slot_axes),
        };
        let mut places: Vec<Place> = self.layout.apply(index)?.iter().map(place).collect();
        places.sort();
        places.dedup();
        Ok(Cell { index, coordinate: self.coordinate(index), places })
    }

    /// All elements, in order. Error: more places than may be enumerated ([`ENUMERATION_LIMIT`]).
    pub fn cells(&self) -> Result<impl Iterator<Item = Result<Cell, LayoutError>>, LayoutError> {
        self.check_points()?;
        Ok((0..self.size()).map(move |index| self.cell(index)))
    }

    /// Error: more places than may be enumerated.
    pub(crate) fn check_points(&self) -> Result<(), LayoutError> {
        let replicas = self.cell(0)?.places.len();
        let points = self.size().saturating_mul(i64::try_from(replicas).unwrap_or(i64::MAX));
        if points > ENUMERATION_LIMIT { Err(LayoutError::TooLarge { points }) } else { Ok(()) }
    }

    /// The coordinate of a flat index.
    pub(crate) fn coordinate(&self, index: i64) -> Vec<i64> {
        let mut rest = index;
        let mut coordinate = Vec::with_capacity(self.shape.len());
        for extent in self.shape.iter().rev() {
            coordinate.push(rest % extent);
            rest /= extent;
        }
        coordinate.reverse();
        coordinate
    }

    /// The extents of the last two dimensions, preceded by the number of such slabs: `(slabs, rows, columns)`.
    pub(crate) fn planes(&self) -> (i64, i64, i64) {
        match &self.shape[..] {
            [] => (1, 1, 1),
            [columns] => (1, 1, *columns),
            [outer @ .., rows, columns] => (outer.iter().product(), *rows, *columns),
        }
    }

    /// True when `m` is the only axis.
    pub(crate) fn is_linear_memory(&self) -> bool {
        self.owner_axes.is_empty() && self.slot_axes == [M]
    }

    /// True for a fragment: some axis counts threads, warps or warpgroups of a CTA.
    pub(crate) fn is_fragment(&self) -> bool {
        self.owner_axes.iter().any(Axis::is_thread)
    }

    /// The bit address at which a place without an owner begins.
    pub(crate) fn bit_address(&self, place: &Place) -> i128 {
        i128::from(place.slot.last().copied().unwrap_or(0)) * i128::from(self.bits)
    }

    /// The 16-byte chunk of its 128-byte line in which a place begins.
    pub(crate) fn chunk(&self, place: &Place) -> i64 {
        self.bit_address(place).div_euclid(CHUNK_BITS).rem_euclid(CHUNKS) as i64
    }

    /// The index of the colour of a place: that of its owner or, if it has none, of its chunk.
    pub(crate) fn colour(&self, place: &Place) -> usize {
        let number = if self.owner_axes.is_empty() { self.chunk(place) } else { self.owner_number(place) };
        number.rem_euclid(crate::layout::palette::COLOURS as i64) as usize
    }

    fn owner_number(&self, place: &Place) -> i64 {
        // An axis without a fixed extent takes an odd factor, so that neighbours on two axes differ.
        let step = |number: i64, (axis, position): (&Axis, &i64)| {
            number.wrapping_mul(axis.extent().unwrap_or(5)).wrapping_add(*position)
        };
        self.owner_axes.iter().zip(&place.owner).fold(0, step)
    }
}

fn positions(coord: &Coord, axes: &[Axis]) -> Vec<i64> {
    axes.iter().map(|axis| coord.get(axis).copied().unwrap_or(0)).collect()
}

/// An element is looked up with all its replicas, so their number is limited.
fn check_replicas(layout: &Layout) -> Result<(), LayoutError> {
    let Ok(tile) = layout.tile() else { return Ok(()) };
    let points = tile.replica().iter().fold(1i64, |points, iter| points.saturating_mul(iter.extent));
    if points > ENUMERATION_LIMIT { Err(LayoutError::TooLarge { points }) } else { Ok(()) }
}

/// Axes that do not count elements are owners: threads, devices, lanes of tensor memory.
fn is_owner(axis: &Axis) -> bool {
    !axis.counts_elements()
}

fn outermost_first(axis: &Axis) -> (u8, Option<Reverse<Scope>>, Option<Reverse<Scope>>) {
    match axis.kind() {
        AxisKind::Free => (0, None, None),
        AxisKind::Unit { scope, unit } => (1, Some(Reverse(unit)), Some(Reverse(scope))),
        AxisKind::Memory { .. } => (2, None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(notation: &str, shape: &[i64]) -> LayoutView {
        LayoutView::new(&notation.parse().unwrap(), shape, 32).unwrap()
    }

    fn names(axes: &[Axis]) -> Vec<&str> {
        axes.iter().map(Axis::name).collect()
    }

    #[test]
    fn owners_are_ordered_from_the_outside_in() {
        let view = view(
            "S[(2,2,2,2,2,2):(1@laneid,1@warpid,1@m,1@bx,1@gpuid_x,1@TLane)] + 1@wgid + 1@pid",
            &[2, 2, 2, 2, 2, 2],
        );
        assert_eq!(names(view.owner_axes()), ["pid", "gpuid_x", "bx", "wgid", "warpid", "laneid", "TLane"]);
        assert_eq!(names(view.slot_axes()), ["m"]);
    }

    #[test]
    fn a_cell_has_its_coordinate_and_all_its_places() {
        let view = view("S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)] + R[2:4@warpid] + 5@warpid", &[8, 16]);
        let cell = view.cell(57).unwrap();
        assert_eq!(cell.coordinate, [3, 9]);
        let seen: Vec<(&[i64], &[i64])> = cell.places.iter().map(|p| (&p.owner[..], &p.slot[..])).collect();
        assert_eq!(seen, [(&[6, 12][..], &[1][..]), (&[10, 12][..], &[1][..])]);
    }

    #[test]
    fn another_size_is_an_error() {
        let layout: Layout = "S[(4,4):(4,1)]".parse().unwrap();
        let code = |shape: &[i64], bits| LayoutView::new(&layout, shape, bits).unwrap_err().code();
        assert_eq!([code(&[4, 5], 32), code(&[-4, -4], 32), code(&[4, 4], 0)], ["L0105", "L0105", "L0113"]);
    }

    #[test]
    fn a_huge_tile_is_looked_up_element_by_element() {
        let view = view("S[(1048576,1048576):(1048576,1)]", &[1_048_576, 1_048_576]);
        assert_eq!(view.cell((1 << 40) - 1).unwrap().places[0].slot, [(1 << 40) - 1]);
        assert_eq!(view.cells().map(|_| ()).unwrap_err().code(), "L0111");
    }

    #[test]
    fn replicas_without_end_are_refused() {
        let layout: Layout = "S[4:1] + R[1099511627776:0]".parse().unwrap();
        assert_eq!(LayoutView::new(&layout, &[4], 32).unwrap_err().code(), "L0111");
    }

    #[test]
    fn linear_memory_takes_the_colour_of_the_chunk() {
        let layout: Layout = "swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]".parse().unwrap();
        let view = LayoutView::new(&layout, &[8, 64], 16).unwrap();
        let column: Vec<usize> = (0..8).map(|row| view.colour(&view.cell(row * 64).unwrap().places[0])).collect();
        assert_eq!(column, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
