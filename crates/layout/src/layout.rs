use std::collections::BTreeSet;
use std::ops::Range;

use crate::axis::{Axis, M};
use crate::error::LayoutError;
use crate::spec::LayoutSpec;
use crate::swizzle::ComposeLayout;
use crate::table::TableLayout;
use crate::tile::{Coord, TileLayout, check_size, flatten};

/// Any layout: a plain tile, a swizzle over one, or a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    /// Shard + replica + offset.
    Tile(TileLayout),
    /// A swizzle over a tile of linear memory.
    Compose(ComposeLayout),
    /// The places of every element, listed.
    Table(TableLayout),
}

impl Layout {
    /// The iters: those of the tile, or of the tile under a swizzle. Error: a table, which has no iters.
    pub fn tile(&self) -> Result<&TileLayout, LayoutError> {
        match self {
            Layout::Tile(tile) => Ok(tile),
            Layout::Compose(compose) => Ok(compose.tile()),
            Layout::Table(table) => Err(LayoutError::NoIters { table: table.to_string() }),
        }
    }

    /// How many elements it places.
    pub fn size(&self) -> i64 {
        match self {
            Layout::Tile(tile) => tile.size(),
            Layout::Compose(compose) => compose.tile().size(),
            Layout::Table(table) => table.size(),
        }
    }

    /// The axes it mentions.
    pub fn axes(&self) -> BTreeSet<Axis> {
        match self {
            Layout::Tile(tile) => tile.axes(),
            Layout::Compose(compose) => compose.tile().axes(),
            Layout::Table(table) => table.axes().iter().cloned().collect(),
        }
    }

    /// One more than the greatest position on `axis`. Under a swizzle, on `m`, an upper bound: the end of its block.
    pub fn span_on(&self, axis: &Axis) -> i64 {
        match self {
            Layout::Tile(tile) => tile.span_on(axis),
            Layout::Compose(compose) if *axis == M => compose.span(),
            Layout::Compose(compose) => compose.tile().span_on(axis),
            Layout::Table(table) => table.span_on(axis),
        }
    }

    /// The least position on `axis`. Under a swizzle a lower bound: 0.
    pub fn least_on(&self, axis: &Axis) -> i64 {
        match self {
            Layout::Tile(tile) => tile.least_on(axis),
            Layout::Compose(_) => 0,
            Layout::Table(table) => table.least_on(axis),
        }
    }

    /// Error: a shape whose number of elements differs from the layout's, or an extent below 1.
    pub fn check_shape(&self, shape: &[i64]) -> Result<(), LayoutError> {
        check_size(shape, self.size())
    }

    /// The places of element `flat`, as a sorted set.
    pub fn apply(&self, flat: i64) -> Result<Vec<Coord>, LayoutError> {
        match self {
            Layout::Tile(tile) => tile.apply(flat),
            Layout::Compose(compose) => compose.apply(flat),
            Layout::Table(table) => table.apply(flat),
        }
    }

    /// Where the element at `coordinate` of a tile of this `shape` lives.
    /// Errors: wrong rank, a coordinate out of range, a shape of another size.
    pub fn apply_in(&self, coordinate: &[i64], shape: &[i64]) -> Result<Vec<Coord>, LayoutError> {
        self.check_shape(shape)?;
        self.apply(flatten(coordinate, shape)?)
    }

    /// The position of element `flat` in linear memory (replicas left out). `flat` must be inside the layout.
    pub fn memory_position(&self, flat: i64) -> i64 {
        match self {
            Layout::Tile(tile) => tile.position(flat, &M),
            Layout::Compose(compose) => compose.swizzle().apply(compose.tile().position(flat, &M)),
            Layout::Table(table) => table.position(flat, &M),
        }
    }

    /// The positions of all elements in linear memory, in element order.
    pub fn memory_positions(&self) -> Vec<i64> {
        match self {
            Layout::Tile(tile) => tile.positions(&M),
            Layout::Compose(compose) => {
                compose.tile().positions(&M).into_iter().map(|p| compose.swizzle().apply(p)).collect()
            }
            Layout::Table(table) => (0..table.size()).map(|flat| table.position(flat, &M)).collect(),
        }
    }

    /// One more than the greatest position in linear memory: the elements to reserve.
    pub fn memory_span(&self) -> i64 {
        self.span_on(&M)
    }

    /// The layout of a region of a tile of this `shape`; see [`TileLayout::slice`].
    pub fn slice(&self, shape: &[i64], region: &[Range<i64>]) -> Result<Layout, LayoutError> {
        match self {
            Layout::Tile(tile) => tile.slice(shape, region).map(Layout::Tile),
            Layout::Compose(compose) => {
                let tile = compose.tile().slice(shape, region)?;
                ComposeLayout::new(compose.swizzle(), tile).map(Layout::Compose)
            }
            Layout::Table(table) => {
                let elements = crate::algebra::elements_of_region(table.size(), shape, region)?;
                table.select(&elements).map(Layout::Table)
            }
        }
    }

    /// Error: a layout with more places than may be enumerated.
    pub(crate) fn check_enumerable(&self) -> Result<(), LayoutError> {
        match self.places_at_most() {
            points if points > crate::ENUMERATION_LIMIT => Err(LayoutError::TooLarge { points }),
            _ => Ok(()),
        }
    }

    /// Elements times the copies of each; for a table, the number of its elements.
    pub(crate) fn places_at_most(&self) -> i64 {
        match self {
            Layout::Tile(tile) => tile.places_at_most(),
            Layout::Compose(compose) => compose.tile().places_at_most(),
            Layout::Table(table) => table.size(),
        }
    }
}

impl From<TileLayout> for Layout {
    fn from(tile: TileLayout) -> Layout {
        Layout::Tile(tile)
    }
}

impl From<ComposeLayout> for Layout {
    fn from(compose: ComposeLayout) -> Layout {
        Layout::Compose(compose)
    }
}

impl From<TableLayout> for Layout {
    fn from(table: TableLayout) -> Layout {
        Layout::Table(table)
    }
}

impl TryFrom<LayoutSpec> for Layout {
    type Error = LayoutError;
    fn try_from(spec: LayoutSpec) -> Result<Layout, LayoutError> {
        spec.build().map(Layout::Tile)
    }
}
