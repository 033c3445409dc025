//! How a buffer's shape and layout are given: a layout, a shape that is then row-major, or both.

use tilewright_ir::tile::DynamicShape;
use tilewright_layout::{ComposeLayout, Iter, Layout, LayoutError, LayoutSpec, SwizzleLayout, TableLayout, TileLayout};

use crate::expr::Expr;
use crate::size::Size;

/// A type that specifies the shape and layout of a buffer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the shape or layout of a buffer",
    label = "not a shape or a layout",
    note = "write a shape of constants such as `[64, 32]`, or, for a tensor in global memory, a tuple such as `(n, 32)`"
)]
pub trait IntoLayout {
    /// The shape, and the layout of its elements.
    #[track_caller]
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError>;

    /// Shape and strides of a tensor, if some are known only at launch; `into_layout` then gives those of the largest
    /// tensor.
    #[track_caller]
    fn dynamic_shape(&self) -> Option<DynamicShape> {
        None
    }

    /// True if only a shape is given: row-major in global memory; in shared memory and for a fragment, the compiler finds
    /// the layout.
    #[track_caller]
    fn is_shape(&self) -> bool {
        false
    }
}

/// A shape that is laid out row-major, one row after the other, and not as the compiler chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowMajor(Vec<i64>);

/// Shapes of constant extents.
pub trait Shape {
    /// The shape, laid out row-major: `k.shared("tile", F32, [32, 32].row_major())`.
    fn row_major(self) -> RowMajor;
}

impl<const N: usize> Shape for [i64; N] {
    fn row_major(self) -> RowMajor {
        RowMajor(self.to_vec())
    }
}

impl Shape for Vec<i64> {
    fn row_major(self) -> RowMajor {
        RowMajor(self)
    }
}

impl IntoLayout for RowMajor {
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        self.0.into_layout()
    }
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
    /// One dimension per iter of the tile; a table has one dimension.
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        Ok((self.tile().map_or_else(|_| vec![self.size()], shape_of), self))
    }
}

impl IntoLayout for TableLayout {
    /// One dimension.
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        Ok((vec![self.size()], Layout::Table(self)))
    }
}

impl<const N: usize> IntoLayout for [i64; N] {
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        self.to_vec().into_layout()
    }

    fn is_shape(&self) -> bool {
        true
    }
}

impl IntoLayout for Vec<i64> {
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        let layout = TileLayout::row_major(&self)?;
        Ok((self, Layout::Tile(layout)))
    }

    fn is_shape(&self) -> bool {
        true
    }
}

impl<const N: usize, L: IntoLayout> IntoLayout for ([i64; N], L) {
    /// A shape whose dimensions may each have several iters of the layout; for a table, any shape of its size.
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        let (_, layout) = self.1.into_layout()?;
        layout.check_shape(&self.0)?;
        if let Ok(tile) = layout.tile() {
            tile.group(&self.0)?;
        }
        Ok((self.0.to_vec(), layout))
    }
}

impl<const N: usize> IntoLayout for ([Expr; N], [Expr; N]) {
    /// Extents and strides, each a number or an expression of sizes.
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        let most = |exprs: &[Expr]| exprs.iter().map(|expr| expr.range().hi).collect::<Vec<i64>>();
        let (extents, strides) = (most(&self.0), most(&self.1));
        let shard = extents.iter().zip(&strides).map(|(extent, stride)| Iter::memory(*extent, *stride)).collect();
        Ok((extents, Layout::Tile(TileLayout::new(shard, Vec::new(), [])?)))
    }

    fn dynamic_shape(&self) -> Option<DynamicShape> {
        let resolved = |exprs: [Expr; N]| exprs.into_iter().map(Expr::resolved).collect();
        Some(DynamicShape { extents: resolved(self.0), strides: resolved(self.1) })
    }
}

/// Extents of a row-major tensor with their strides.
fn row_major<const N: usize>(extents: [Expr; N]) -> ([Expr; N], [Expr; N]) {
    let mut strides = std::array::from_fn(|_| Expr::from(1));
    for dimension in (0..N.saturating_sub(1)).rev() {
        strides[dimension] = strides[dimension + 1] * extents[dimension + 1];
    }
    (extents, strides)
}

/// An extent of a tensor: a number, a size that is known at launch, or an expression of such sizes.
pub trait Extent {
    /// The extent as an expression.
    #[track_caller]
    fn expr(&self) -> Expr;
}

impl Extent for i64 {
    fn expr(&self) -> Expr {
        Expr::from(*self)
    }
}

impl Extent for Size {
    #[track_caller]
    fn expr(&self) -> Expr {
        Expr::from(*self)
    }
}

impl Extent for Expr {
    fn expr(&self) -> Expr {
        *self
    }
}

impl<E: Extent> Extent for &E {
    #[track_caller]
    fn expr(&self) -> Expr {
        (**self).expr()
    }
}

fn are_numbers(extents: &[Expr]) -> bool {
    extents.iter().all(|extent| extent.range().lo == extent.range().hi)
}

macro_rules! shapes {
    ($(($($extent:ident: $type:ident),+))*) => {$(
        impl<$($type: Extent),+> IntoLayout for ($($type),+,) {
            /// Row-major.
            #[track_caller]
            fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
                let ($($extent),+,) = self;
                row_major([$($extent.expr()),+]).into_layout()
            }

            #[track_caller]
            fn dynamic_shape(&self) -> Option<DynamicShape> {
                let ($($extent),+,) = self;
                let extents = [$($extent.expr()),+];
                (!are_numbers(&extents)).then(|| row_major(extents).dynamic_shape()).flatten()
            }

            /// As with an array, if all extents are numbers.
            #[track_caller]
            fn is_shape(&self) -> bool {
                let ($($extent),+,) = self;
                are_numbers(&[$($extent.expr()),+])
            }
        }
    )*};
}

shapes! {
    (a: A)
    (a: A, b: B)
    (a: A, b: B, c: C)
    (a: A, b: B, c: C, d: D)
    (a: A, b: B, c: C, d: D, e: E)
}

impl IntoLayout for (SwizzleLayout, LayoutSpec) {
    /// A swizzle over a tile.
    fn into_layout(self) -> Result<(Vec<i64>, Layout), LayoutError> {
        let tile = self.1.build()?;
        let shape = shape_of(&tile);
        Ok((shape, Layout::Compose(ComposeLayout::new(self.0, tile)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_layout::axis::M;

    fn reversed(size: i64) -> TableLayout {
        let positions: Vec<i64> = (0..size).rev().collect();
        TableLayout::of_positions(&M, &positions).unwrap()
    }

    #[test]
    fn a_table_has_one_dimension() {
        assert_eq!(reversed(6).into_layout(), Ok((vec![6], Layout::Table(reversed(6)))));
    }

    #[test]
    fn a_table_takes_any_shape_of_its_size() {
        let table = Layout::Table(reversed(6));
        assert_eq!(([2, 3], table.clone()).into_layout(), Ok((vec![2, 3], table)));
        assert_eq!(([2, 4], reversed(6)).into_layout().unwrap_err().code(), "L0105");
        assert_eq!(([-2, -3], reversed(6)).into_layout().unwrap_err().code(), "L0105");
    }

    #[test]
    fn a_shape_must_nest_with_the_iters() {
        let tile: TileLayout = "S[(4,6):(6,1)]".parse().unwrap();
        assert_eq!(([3, 8], tile).into_layout().unwrap_err().code(), "L0108");
    }
}
