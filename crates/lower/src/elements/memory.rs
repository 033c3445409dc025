//! Elements of global and shared memory: their addresses, and the conditions under which they exist.

use std::rc::Rc;

use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Cond, Stmt};
use tilewright_ir::tile::{Buffer, Kernel, Space};

use tilewright_layout::{DType, Layout, TileLayout};

use super::points::{Mask, Points, Split};
use crate::builder::Builder;
use crate::operand::lies_inside;

/// Where an access is, in terms of a nest's variables.
#[derive(Clone, Debug)]
pub(super) enum Address {
    /// A position per iteration, and what does not depend on it.
    Split(Split),
    /// An expression of the position.
    Expr(Expr),
    /// An element of which a table says the position.
    Listed(Expr),
}

/// Bounds of one dimension.
pub(super) struct Bound {
    pub(super) index: Expr,
    pub(super) extent: Expr,
}

impl Address {
    /// The address of the element at `index` of `buffer`.
    pub(super) fn of(buffer: &Buffer, index: &[Expr], points: &mut Points<'_>) -> Address {
        if let Some(shape) = &buffer.run_time {
            let terms = index.iter().zip(&shape.strides).map(|(index, stride)| index.clone() * stride.clone());
            let position = normalize(&terms.fold(Expr::constant(0), |sum, term| sum + term));
            return points.split(&position).map_or(Address::Expr(position), Address::Split);
        }
        let flat = index
            .iter()
            .zip(&buffer.shape)
            .fold(Expr::constant(0), |flat, (index, extent)| flat * *extent + index.clone());
        let Some(layout) = &buffer.layout else { return Address::Expr(flat) };
        let row_major = TileLayout::row_major(&buffer.shape).map(Layout::Tile).ok();
        let split = points.split(&flat);
        match split {
            Some(split) if Some(layout) == row_major.as_ref() => Address::Split(split),
            Some(split) if split.other.as_const() == Some(0) => {
                let inside = 0..layout.size();
                let position = |flat: &i64| if inside.contains(flat) { layout.memory_position(*flat) } else { 0 };
                Address::Split(Split { own: Rc::new(split.own.iter().map(position).collect()), other: split.other })
            }
            _ => match layout.memory_expr(&flat) {
                Ok(position) => Address::Expr(position),
                Err(_) => Address::Listed(flat),
            },
        }
    }

    /// The position, in terms of the thread, where `width` elements are moved at once.
    pub(super) fn at(
        &self,
        layout: Option<&Layout>,
        width: i64,
        (step, mask): (usize, &Mask),
        points: &mut Points<'_>,
        builder: &mut Builder,
        out: &mut Vec<Stmt>,
    ) -> Expr {
        match self {
            Address::Split(split) => {
                normalize(&(points.numbers(&split.own, width, (step, mask), builder, out) + split.other.clone()))
            }
            Address::Expr(expr) => points.at(expr, step, mask, builder, out),
            Address::Listed(flat) => {
                let flat = points.at(flat, step, mask, builder, out);
                let positions: Vec<i64> = layout.map(Layout::memory_positions).unwrap_or_default();
                // What lies outside of the tensor is looked up, too, though no access uses it.
                let count = positions.len().max(1) as i64;
                let flat = if flat.range().within(0, count) { flat } else { normalize(&(flat % count)) };
                let most = positions.iter().max().copied().unwrap_or(0);
                let table = builder.table("position_of", positions, tilewright_diag::Span::here());
                let var = Var::new(builder.fresh("position"), 0, most);
                out.push(Stmt::Lookup { vars: vec![var.clone()], table, index: flat });
                Expr::var(&var)
            }
        }
    }

    /// Whether these are `width` adjacent elements, aligned, in the steps from `step` on, for all threads that take part.
    pub(super) fn is_vector(&self, step: usize, width: usize, mask: &Mask, points: &Points<'_>) -> bool {
        let Address::Split(split) = self else { return false };
        if split.other.multiple() % width as i64 != 0 {
            return false;
        }
        let of = |lane: usize| points.steps_values(&split.own, step + lane, mask);
        of(0).all(|start| start.is_none_or(|start| start % width as i64 == 0))
            && (1..width)
                .all(|lane| of(0).zip(of(lane)).all(|(start, at)| start.map(|start| start + lane as i64) == at))
    }
}

/// The dimensions of a buffer in memory that an access may leave, in terms of the nest's variables. Shared memory is left
/// only where a condition keeps the access from being done, or its value from being taken.
pub(super) fn bounds(kernel: &Kernel, buffer: &Buffer, index: &[Expr], points: &mut Points<'_>) -> Vec<Bound> {
    let is_shared = buffer.space == Space::Shared;
    if buffer.space == Space::Fragment || (is_shared && is_inside(buffer, index)) {
        return Vec::new();
    }
    let extent = |dimension: usize| match &buffer.run_time {
        Some(shape) => shape.extents[dimension].clone(),
        None => Expr::constant(buffer.shape[dimension]),
    };
    let mut found = Vec::new();
    for (dimension, index) in index.iter().enumerate() {
        let extent = extent(dimension);
        let is_inside = match points.split(index) {
            Some(split) => {
                let (least, most) = (split.own.iter().min().copied(), split.own.iter().max().copied());
                let ends = [least, most].into_iter().flatten();
                ends.into_iter().all(|own| lies_inside(kernel, &normalize(&(&split.other + own)), 1, &extent))
            }
            None => lies_inside(kernel, index, 1, &extent),
        };
        if !is_inside {
            found.push(Bound { index: index.clone(), extent });
        }
    }
    found
}

/// Whether the ranges of the indices of an access lie inside of its buffer.
pub(super) fn is_inside(buffer: &Buffer, index: &[Expr]) -> bool {
    index.iter().zip(&buffer.shape).all(|(index, extent)| index.range().within(0, *extent))
}

impl Bound {
    /// Whether `width` steps from `step` on are all inside or all outside, for each thread.
    pub(super) fn is_whole(&self, step: usize, width: usize, mask: &Mask, points: &mut Points<'_>) -> bool {
        let Some(split) = points.split(&self.index) else { return false };
        let of = |lane: usize| points.steps_values(&split.own, step + lane, mask);
        let is_still = (1..width).all(|lane| of(0).eq(of(lane)));
        let count = width as i64;
        let moves = |lane: usize| of(0).zip(of(lane)).all(|(start, at)| start.map(|start| start + lane as i64) == at);
        let is_aligned = of(0).flatten().all(|start| start % count == 0)
            && split.other.multiple() % count == 0
            && self.extent.multiple() % count == 0;
        is_still || (is_aligned && (1..width).all(moves))
    }

    /// The conditions under which the index is inside, in terms of the thread.
    pub(super) fn conditions(
        &self,
        step: usize,
        mask: &Mask,
        points: &mut Points<'_>,
        builder: &mut Builder,
        out: &mut Vec<Stmt>,
    ) -> Vec<Cond> {
        // Where only the iteration matters, it may be inside for all threads of this step.
        if let Some(split) = points.split(&self.index)
            && let (Some(other), Some(extent)) = (split.other.as_const(), self.extent.as_const())
        {
            let inside = |value: i64| (0..extent).contains(&(value + other));
            if points.steps_values(&split.own, step, mask).flatten().all(inside) {
                return Vec::new();
            }
        }
        let index = points.at(&self.index, step, mask, builder, out);
        let mut conditions = Vec::new();
        if index.range().lo < 0 {
            conditions.push(Cond::Less(Expr::constant(-1), index.clone()));
        }
        conditions.push(Cond::Less(index, self.extent.clone()));
        conditions
    }
}

/// Elements that are moved at once, at most.
pub(super) fn widest(dtype: DType, vector: Option<i64>) -> usize {
    let most = (16 / dtype.bytes()).max(1);
    let asked = vector.unwrap_or(most).clamp(1, most);
    1 << asked.ilog2()
}
