use std::ops::Range;

use crate::axis::{Axis, M};
use crate::error::LayoutError;
use crate::spec::LayoutSpec;
use crate::swizzle::ComposeLayout;
use crate::tile::{Coord, TileLayout};

/// Any layout: a plain tile, or a swizzle over one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    /// Shard + replica + offset.
    Tile(TileLayout),
    /// A swizzle over a tile of linear memory.
    Compose(ComposeLayout),
}

impl Layout {
    /// The tile, with what a swizzle would add left out.
    pub fn tile(&self) -> &TileLayout {
        match self {
            Layout::Tile(tile) => tile,
            Layout::Compose(compose) => compose.tile(),
        }
    }

    /// How many elements it places.
    pub fn size(&self) -> i64 {
        self.tile().size()
    }

    /// The axes it mentions.
    pub fn axes(&self) -> std::collections::BTreeSet<Axis> {
        self.tile().axes()
    }

    /// Where element `flat` lives, as a set in order.
    pub fn apply(&self, flat: i64) -> Result<Vec<Coord>, LayoutError> {
        let mut places = self.tile().apply(flat)?;
        if let Layout::Compose(compose) = self {
            for place in &mut places {
                if let Some(address) = place.get_mut(&M) {
                    *address = compose.swizzle().apply(*address);
                }
            }
            places.sort();
        }
        Ok(places)
    }

    /// The position of element `flat` in linear memory (replicas left out). `flat` must be inside the layout.
    pub fn memory_position(&self, flat: i64) -> i64 {
        let position = self.tile().position(flat, &M);
        match self {
            Layout::Tile(_) => position,
            Layout::Compose(compose) => compose.swizzle().apply(position),
        }
    }

    /// The positions of all elements in linear memory, in order.
    pub fn memory_positions(&self) -> Vec<i64> {
        let positions = self.tile().positions(&M);
        match self {
            Layout::Tile(_) => positions,
            Layout::Compose(compose) => positions.into_iter().map(|p| compose.swizzle().apply(p)).collect(),
        }
    }

    /// One more than the greatest position in linear memory: the elements to reserve.
    pub fn memory_span(&self) -> i64 {
        let span = self.tile().span_on(&M);
        match self {
            Layout::Tile(_) => span,
            Layout::Compose(compose) => {
                let swizzle = compose.swizzle();
                let block = 1i64 << (swizzle.per_element() + swizzle.atom_len() + swizzle.swizzle_len());
                // XOR stays inside its aligned block.
                if span % block == 0 { span } else { span + (block - span % block) }
            }
        }
    }

    /// The layout of a region of a tile of this `shape`; see [`TileLayout::slice`].
    pub fn slice(&self, shape: &[i64], region: &[Range<i64>]) -> Result<Layout, LayoutError> {
        let tile = self.tile().slice(shape, region)?;
        match self {
            Layout::Tile(_) => Ok(Layout::Tile(tile)),
            Layout::Compose(compose) => Ok(Layout::Compose(ComposeLayout::new(compose.swizzle(), tile)?)),
        }
    }

    /// True when different elements never share a place. A swizzle is a bijection and changes nothing.
    pub fn is_injective(&self) -> Result<bool, LayoutError> {
        self.tile().is_injective()
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

impl TryFrom<LayoutSpec> for Layout {
    type Error = LayoutError;
    fn try_from(spec: LayoutSpec) -> Result<Layout, LayoutError> {
        spec.build().map(Layout::Tile)
    }
}
