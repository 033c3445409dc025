//! Elements of global and shared memory: their addresses, and the conditions under which they are in bounds.

use std::sync::Arc;

use num_integer::Integer;
use tilewright_expr::linear::normalize;
use tilewright_expr::points::Split;
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Cond, Stmt};
use tilewright_ir::tile::vectors::{Strided, position};
use tilewright_ir::tile::{Bound, Buffer, flat};
use tilewright_layout::Layout;

use super::active_step::ActiveStep;
use super::points::Points;
use crate::builder::Builder;
use crate::conditions::below;

/// The address of an access, in terms of a nest's variables.
#[derive(Clone, Debug)]
pub(super) enum Address {
    /// A position per iteration, and a part that does not depend on the iteration.
    Split(Split),
    /// The same for a swizzled layout: the position after the swizzle, and the element's index before it.
    Swizzled { position: Split, element: Split, layout: Arc<Layout> },
    /// The same for each dimension of a tensor whose strides depend on sizes.
    Strided(Strided),
    /// The position as an expression.
    Expr(Expr),
    /// An element whose position is looked up in a table, and the positions of all elements.
    Listed(Expr, Arc<Vec<i64>>),
}

impl Address {
    /// The address of the element at `index` of `buffer`.
    pub(super) fn of(buffer: &Buffer, index: &[Expr], points: &mut Points<'_>) -> Address {
        let flat = flat(index, &buffer.shape);
        if let Some(position) = position(buffer, index, &mut points.splits) {
            let swizzled = buffer.layout.as_ref().filter(|layout| matches!(layout, Layout::Compose(_)));
            return match swizzled.zip(points.split(&flat)) {
                Some((layout, element)) => Address::Swizzled { position, element, layout: Arc::new(layout.clone()) },
                None => Address::Split(position),
            };
        }
        if let Some(strided) = Strided::of(buffer, index, &mut points.splits) {
            return Address::Strided(strided);
        }
        match (&buffer.dynamic_shape, &buffer.layout) {
            (Some(shape), _) => Address::Expr(shape.position(index)),
            (None, None) => Address::Expr(flat),
            (None, Some(layout)) => match layout.memory_expr(&flat) {
                Ok(position) => Address::Expr(position),
                Err(_) => Address::Listed(flat, Arc::new(layout.memory_positions())),
            },
        }
    }

    /// The position in terms of the thread, for an access to `width` elements.
    pub(super) fn at(
        &self,
        width: i64,
        place: &ActiveStep,
        points: &mut Points<'_>,
        builder: &mut Builder,
        out: &mut Vec<Stmt>,
    ) -> Expr {
        match self {
            Address::Split(split) => {
                normalize(&(points.numbers(&split.own, width, place, builder, out) + split.other.clone()))
            }
            Address::Swizzled { position, element, layout } => {
                let digits = points.digits(&position.own, width, place);
                let known = digits.map(|own| normalize(&(own + position.other.clone())));
                let known = known.or_else(|| swizzled(layout, element, width, place, points, builder));
                known.unwrap_or_else(|| {
                    let own = points.numbers(&position.own, width, place, builder, out);
                    normalize(&(own + position.other.clone()))
                })
            }
            Address::Strided(Strided { parts }) => {
                let position = parts.iter().fold(Expr::constant(0), |sum, (split, stride)| {
                    let multiple = width / width.gcd(&stride.multiple());
                    let own = points.numbers(&split.own, multiple, place, builder, out);
                    sum + (own + split.other.clone()) * stride.clone()
                });
                normalize(&position)
            }
            Address::Expr(expr) => points.at(expr, place, builder, out),
            Address::Listed(flat, positions) => {
                let flat = points.at(flat, place, builder, out);
                // An index outside of the tensor is looked up as well, although no access uses the result.
                let count = positions.len().max(1) as i64;
                let flat = if flat.range().within(0, count) { flat } else { normalize(&(flat % count)) };
                let most = positions.iter().max().copied().unwrap_or(0);
                let table = builder.table("position_of", positions.to_vec(), tilewright_diag::Span::here());
                let var = Var::new(builder.fresh("position"), 0, most);
                out.push(Stmt::Lookup { vars: vec![var.clone()], table, index: flat });
                Expr::var(&var)
            }
        }
    }
}

/// The position of an element through the swizzle, if digits of the thread express the element and `width` divides the
/// position.
fn swizzled(
    layout: &Layout,
    element: &Split,
    width: i64,
    place: &ActiveStep,
    points: &mut Points<'_>,
    builder: &mut Builder,
) -> Option<Expr> {
    let inside = 0..layout.size();
    if !points.steps_values(&element.own, place.step, &place.mask).flatten().all(|own| inside.contains(&own)) {
        return None;
    }
    let flat = normalize(&(points.digits(&element.own, width, place)? + element.other.clone()));
    let position = builder.simplifier.simplify(&layout.memory_expr(&flat).ok()?);
    (position.multiple() % width == 0).then_some(position)
}

/// The conditions under which the index is in bounds, in terms of the thread.
pub(super) fn inside(
    bound: &Bound,
    place: &ActiveStep,
    points: &mut Points<'_>,
    builder: &mut Builder,
    out: &mut Vec<Stmt>,
) -> Vec<Cond> {
    // An index that depends only on the iteration may be in bounds for all threads of this step.
    if let Some(split) = points.split(&bound.index)
        && let (Some(other), Some(extent)) = (split.other.as_const(), bound.extent.as_const())
    {
        let inside = |value: i64| (0..extent).contains(&(value + other));
        if points.steps_values(&split.own, place.step, &place.mask).flatten().all(inside) {
            return Vec::new();
        }
    }
    let index = points.at(&bound.index, place, builder, out);
    let mut conditions = Vec::new();
    if index.range().lo < 0 {
        conditions.push(Cond::Less(Expr::constant(-1), index.clone()));
    }
    conditions.push(below(&index, &bound.extent));
    conditions
}
