//! Positions as index expressions: the layout applied to a symbolic element.

use tilewright_expr::Expr;

use crate::axis::{Axis, M};
use crate::error::LayoutError;
use crate::layout::Layout;
use crate::swizzle::SwizzleLayout;
use crate::tile::TileLayout;

impl TileLayout {
    /// The position on `axis` of the element whose flat index is `flat`, replicas left out.
    pub fn position_expr(&self, flat: &Expr, axis: &Axis) -> Expr {
        let mut inner_size = 1i64;
        let mut sum = Expr::constant(self.offset_on(axis));
        let size = self.size();
        for iter in self.shard().iter().rev() {
            if iter.axis == *axis && iter.stride != 0 && iter.extent > 1 {
                let quotient = flat / inner_size;
                let digit = if inner_size * iter.extent == size { quotient } else { quotient % iter.extent };
                sum = sum + digit * iter.stride;
            }
            inner_size *= iter.extent;
        }
        sum
    }
}

impl Layout {
    /// The position in linear memory of the element whose flat index is `flat`. Error: a table, which has no
    /// such expression.
    pub fn memory_expr(&self, flat: &Expr) -> Result<Expr, LayoutError> {
        let position = self.tile()?.position_expr(flat, &M);
        Ok(match self {
            Layout::Tile(_) | Layout::Table(_) => position,
            Layout::Compose(compose) => compose.swizzle().apply_expr(position),
        })
    }
}

impl SwizzleLayout {
    /// The swizzled address as an expression; `address` must not be negative.
    pub fn apply_expr(self, address: Expr) -> Expr {
        let bits = 1i64 << self.swizzle_len();
        let (low, high) = (1i64 << self.per_element(), 1i64 << (self.per_element() + self.atom_len()));
        let (from, to) = if self.inner() { (high, low) } else { (low, high) };
        let turned = &address / from % bits * to;
        address ^ turned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_expr::Var;

    #[test]
    fn the_expression_agrees_with_the_layout_everywhere() {
        for text in ["S[(4,32):(1,4)] + 3", "S[(3,5,7):(2,100,9)]", "swizzle(M=2,B=2,S=3) o S[(16,16):(16,1)]"] {
            let layout: Layout = text.parse().unwrap();
            let x = Var::new("x", 0, layout.size() - 1);
            let e = layout.memory_expr(&Expr::var(&x)).unwrap();
            for flat in 0..layout.size() {
                assert_eq!(e.eval(&|_| Some(flat)), Ok(layout.memory_position(flat)), "{text} at {flat}");
            }
        }
    }
}
