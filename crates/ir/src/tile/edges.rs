//! The bounds of tensors, which tiles and accesses may exceed.

use tilewright_expr::linear::normalize;
use tilewright_expr::points::Splits;
use tilewright_expr::{Expr, Node};

use crate::hw_index::Dim;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::kernel::Kernel;

/// An index that may lie outside of its dimension.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The index.
    pub index: Expr,
    /// The extent of the dimension.
    pub extent: Expr,
}

impl Kernel {
    /// Whether the `extent` indices from `start` on are inside `0..size` in every CTA: either they are inside the least
    /// `size`, or the start moves by `k` per CTA, they stay inside the `k` indices of the CTA, and there are `size / k`
    /// CTAs.
    pub fn lies_inside(&self, start: &Expr, extent: i64, size: &Expr) -> bool {
        let within = |start: &Expr, end: i64| start.range().lo >= 0 && start.range().hi <= end - extent;
        within(start, size.range().lo)
            || Dim::ALL.into_iter().zip(&self.grid).any(|(dimension, grid)| {
                let ctas = grid.operands().filter(|(whole, _)| *whole == size);
                let per_cta = ctas.filter(|_| matches!(grid.node(), Node::Div(..)));
                let k = if grid == size { Some(1) } else { per_cta.and_then(|(_, k)| k.as_const()) };
                let Some(k) = k.filter(|k| size.multiple() % k == 0) else { return false };
                let rest = start - &(Expr::var(&self.block(dimension)) * k);
                within(&normalize(&rest), k)
            })
    }

    /// The dimensions of a buffer in memory in which an access may be out of bounds, in terms of the variables of its
    /// nest. In shared memory that happens only where a condition prevents the access, or its value is not used.
    pub fn bounds(&self, buffer: &Buffer, index: &[Expr], splits: &mut Splits<'_>) -> Vec<Bound> {
        if buffer.space == Space::Fragment {
            return Vec::new();
        }
        let extent = |dimension: usize| match &buffer.dynamic_shape {
            Some(shape) => shape.extents[dimension].clone(),
            None => Expr::constant(buffer.shape[dimension]),
        };
        let all = index.iter().enumerate().map(|(at, index)| Bound { index: index.clone(), extent: extent(at) });
        all.filter(|bound| !self.is_inside(bound, splits)).collect()
    }

    fn is_inside(&self, bound: &Bound, splits: &mut Splits<'_>) -> bool {
        self.lies_inside(&bound.index, 1, &bound.extent)
            || splits.of(&bound.index).is_some_and(|split| {
                let is_inside = |own: i64| self.lies_inside(&normalize(&(&split.other + own)), 1, &bound.extent);
                split.ends.is_some_and(|ends| ends.into_iter().all(is_inside))
            })
    }
}
