//! Positions as index expressions: the layout applied to a symbolic element.

use tilewright_expr::Expr;

use crate::axis::{Axis, M};
use crate::layout::Layout;
use crate::tile::TileLayout;

impl TileLayout {
    /// The position on `axis` of the element whose flat index is `flat`, replicas left out.
    pub fn position_expr(&self, flat: &Expr, axis: &Axis) -> Expr {
        let mut behind = 1i64;
        let mut sum = Expr::constant(self.offset_on(axis));
        let size = self.size();
        for iter in self.shard().iter().rev() {
            if iter.axis == *axis && iter.stride != 0 && iter.extent > 1 {
                let quotient = flat / behind;
                let digit = if behind * iter.extent == size { quotient } else { quotient % iter.extent };
                sum = sum + digit * iter.stride;
            }
            behind *= iter.extent;
        }
        sum
    }
}

impl Layout {
    /// The position in linear memory of the element whose flat index is `flat`.
    pub fn memory_expr(&self, flat: &Expr) -> Expr {
        self.swizzled(self.tile().position_expr(flat, &M))
    }

    /// A position in the tile's linear memory, as the layout finally places it.
    pub fn swizzled(&self, position: Expr) -> Expr {
        let Layout::Compose(compose) = self else { return position };
        let swizzle = compose.swizzle();
        let bits = 1i64 << swizzle.swizzle_len();
        let (low, high) = (1i64 << swizzle.per_element(), 1i64 << (swizzle.per_element() + swizzle.atom_len()));
        let (from, to) = if swizzle.inner() { (high, low) } else { (low, high) };
        let turned = &position / from % bits * to;
        position ^ turned
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
            let e = layout.memory_expr(&Expr::var(&x));
            for flat in 0..layout.size() {
                assert_eq!(e.eval(&|_| Some(flat)), Ok(layout.memory_position(flat)), "{text} at {flat}");
            }
        }
    }
}
