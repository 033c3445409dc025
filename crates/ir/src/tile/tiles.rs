//! Parts of buffers, on which ops work.

use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};

use crate::arena::Handle;
use crate::tile::buffer::Buffer;
use crate::tile::dimensions::Dimensions;
use crate::tile::value::{Access, Coord};

/// Part of a buffer: the box of `extents` that begins at `starts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// The buffer.
    pub buffer: Handle<Buffer>,
    /// First index in each dimension.
    pub starts: Vec<Expr>,
    /// Number of indices in each dimension.
    pub extents: Vec<i64>,
}

/// The extents of a shape that are not 1. Dimensions of extent 1 are ignored where shapes are compared.
pub fn non_unit_extents(extents: &[i64]) -> Vec<i64> {
    extents.iter().copied().filter(|extent| *extent != 1).collect()
}

/// Every op ignores dimensions of extent 1. Taking one index keeps the dimension, so that one stage of a multi-stage
/// buffer has one dimension more than its op needs. The extents of operands are compared only with these methods.
impl Tile {
    /// The extents that are not 1: what has to agree between the operands of an op.
    pub fn non_unit_extents(&self) -> Vec<i64> {
        non_unit_extents(&self.extents)
    }

    /// Variables that index the dimensions whose extent is not 1, in order.
    pub fn vars(&self) -> Vec<Var> {
        let extents = self.non_unit_extents();
        extents.iter().enumerate().map(|(at, extent)| Var::new(format!("#{at}"), 0, extent - 1)).collect()
    }

    /// The place of a dimension among those whose extent is not 1; `None` if its extent is 1.
    pub fn non_unit_place(&self, dimension: usize) -> Option<usize> {
        (self.extents[dimension] != 1).then(|| non_unit_extents(&self.extents[..dimension]).len())
    }

    /// The dimension at such a place; `None` if there are not so many.
    pub fn dimension_at(&self, place: usize) -> Option<usize> {
        (0..self.extents.len()).filter(|dimension| self.extents[*dimension] != 1).nth(place)
    }

    /// [`Tile::non_unit_extents`] of all dimensions but some, which are numbered including those of extent 1; `None` if the
    /// tile has no such dimensions.
    pub fn non_unit_extents_without(&self, dimensions: Dimensions) -> Option<Vec<i64>> {
        let are_there = dimensions.iter().all(|dimension| dimension < self.extents.len());
        are_there.then(|| non_unit_extents(&dimensions.left(&self.extents)))
    }

    /// Rows and columns of the tile as a matrix. If it has more than two dimensions, those of extent 1 are dropped, the
    /// first ones first, until two are left; `None` if that does not leave two. Elements keep their row-major order.
    pub fn matrix(&self) -> Option<[i64; 2]> {
        let mut extents = self.extents.clone();
        while extents.len() > 2 {
            let unit = extents.iter().position(|extent| *extent == 1)?;
            extents.remove(unit);
        }
        extents.try_into().ok()
    }

    /// An access to one element: the variables index the dimensions whose extent is not 1, in order. There are as many of
    /// them.
    pub fn access(&self, vars: &[Var], span: Span) -> Access {
        let (mut index, mut used) = (Vec::with_capacity(self.starts.len()), 0);
        for (start, extent) in self.starts.iter().zip(&self.extents) {
            let start = start.clone();
            if *extent == 1 {
                index.push(Coord::At(start));
            } else {
                index.push(Coord::At(start + Expr::var(&vars[used])));
                used += 1;
            }
        }
        Access { buffer: self.buffer, index, or_zero: false, span }
    }

    /// Number of elements.
    pub fn elements(&self) -> i64 {
        self.extents.iter().fold(1i64, |product, extent| product.saturating_mul(*extent))
    }
}

#[cfg(test)]
mod tests {
    use tilewright_layout::DType;

    use super::*;
    use crate::arena::Arena;
    use crate::tile::buffer::Space;

    fn tile(extents: &[i64]) -> Tile {
        let mut buffers = Arena::new();
        let buffer = buffers.push(Buffer {
            name: "x".to_string(),
            dtype: DType::F16,
            shape: extents.to_vec(),
            space: Space::Shared,
            layout: None,
            dynamic_shape: None,
            view_of: None,
            order: None,
            is_open: false,
            span: Span::here(),
        });
        Tile { buffer, starts: vec![Expr::constant(0); extents.len()], extents: extents.to_vec() }
    }

    #[test]
    fn a_matrix_has_two_dimensions_beside_those_of_extent_1() {
        let tiles: [&[i64]; 5] = [&[64, 32], &[1, 64, 32], &[64, 1, 32], &[64, 32, 1], &[1, 64, 1, 32, 1]];
        for extents in tiles {
            assert_eq!(tile(extents).matrix(), Some([64, 32]), "{extents:?}");
        }
    }

    #[test]
    fn of_the_dimensions_of_extent_1_the_first_ones_are_left_out() {
        assert_eq!(tile(&[1, 32]).matrix(), Some([1, 32]));
        assert_eq!(tile(&[1, 1, 32]).matrix(), Some([1, 32]));
        assert_eq!(tile(&[32, 1, 1]).matrix(), Some([32, 1]));
    }

    #[test]
    fn neither_a_vector_nor_a_stack_is_a_matrix() {
        let tiles: [&[i64]; 3] = [&[32], &[2, 64, 32], &[1, 2, 64, 32]];
        for extents in tiles {
            assert_eq!(tile(extents).matrix(), None, "{extents:?}");
        }
    }

    #[test]
    fn the_dimension_that_goes_is_counted_with_those_of_extent_1() {
        let without = |dimension: usize| tile(&[1, 64, 32]).non_unit_extents_without(Dimensions::from(dimension));
        assert_eq!(without(0), Some(vec![64, 32]));
        assert_eq!(without(1), Some(vec![32]));
        assert_eq!(without(2), Some(vec![64]));
        assert_eq!(without(3), None);
    }
}
