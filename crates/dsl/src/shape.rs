//! How a buffer's shape and layout are given: a layout in notation, or a shape that is then row-major.

use tilewright_layout::{ComposeLayout, Layout, LayoutError, LayoutSpec, SwizzleLayout, TileLayout};

/// Something that says shape and layout of a buffer.
pub trait IntoLayout {
    /// The shape and where its elements are.
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError>;
}

fn shape_of(tile: &TileLayout) -> Vec<i64> {
    tile.shard().iter().map(|iter| iter.extent).collect()
}

impl IntoLayout for LayoutSpec {
    /// One dimension per iter.
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        self.build()?.into_layout()
    }
}

impl IntoLayout for TileLayout {
    /// One dimension per iter.
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        Ok((shape_of(&self), Layout::Tile(self)))
    }
}

impl IntoLayout for Layout {
    /// One dimension per iter of the tile.
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        Ok((self.tile().map_or_else(|_| vec![self.size()], shape_of), self))
    }
}

impl<const N: usize> IntoLayout for [i64; N] {
    /// Row-major.
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        Ok((self.to_vec(), Layout::Tile(TileLayout::row_major(&self)?)))
    }
}

impl<const N: usize, L: IntoLayout> IntoLayout for ([i64; N], L) {
    /// A shape whose dimensions may each own several iters of the layout.
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        let (_, layout) = self.1.into_layout()?;
        layout.tile()?.group(&self.0)?;
        Ok((self.0.to_vec(), layout))
    }
}

impl IntoLayout for (SwizzleLayout, LayoutSpec) {
    /// A swizzle over a tile.
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        let tile = self.1.build()?;
        let shape = shape_of(&tile);
        Ok((shape, Layout::Compose(ComposeLayout::new(self.0, tile)?)))
    }
}
