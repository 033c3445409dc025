//! Fragments from a thread's point of view: which elements it holds, as expressions in its indices.

use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::Cond;
use tilewright_ir::tile::Kernel;
use tilewright_layout::axis::{self, Axis};
use tilewright_layout::{Guard, TileLayout};

/// The hardware indices of a thread.
#[derive(Clone, Debug)]
pub(crate) struct ThreadIndices {
    pub(crate) lane: Var,
    pub(crate) warp: Var,
    pub(crate) tid: Var,
}

impl ThreadIndices {
    /// Those of the threads of a kernel's CTA.
    pub(crate) fn in_cta(kernel: &Kernel) -> ThreadIndices {
        ThreadIndices { lane: kernel.lane(), warp: kernel.warp(), tid: kernel.tid() }
    }

    fn of(&self, axis: &Axis) -> Option<&Var> {
        if *axis == axis::LANEID {
            Some(&self.lane)
        } else if *axis == axis::WARPID {
            Some(&self.warp)
        } else if *axis == axis::TX {
            Some(&self.tid)
        } else {
            None
        }
    }
}

/// The exact inverse of a fragment layout's thread part: the digit of every thread iter, and who holds nothing.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    /// For each shard iter of the layout, its digit as an expression of the thread's indices; `None` for `reg` iters.
    pub(crate) digits: Vec<Option<Expr>>,
    /// Conditions under which a thread holds elements; none if all threads do.
    pub(crate) holds: Vec<Cond>,
    /// Conditions under which a thread holds the first copy of its elements; none without replicas.
    pub(crate) first_copy: Vec<Cond>,
}

/// Inverts the thread part of `layout`, which is each warp's own or of the whole CTA. Refuses axes that have no index
/// here and strides that do not nest.
pub(crate) fn owned(layout: &TileLayout, is_of_warps: bool, indices: &ThreadIndices) -> Result<Owned, Vec<Reason>> {
    let mut owned = Owned { digits: vec![None; layout.shard().len()], holds: Vec::new(), first_copy: Vec::new() };
    let mut axes = layout.axes();
    // An axis on which nothing moves is at coordinate 0.
    if !axes.contains(&axis::TX) {
        axes.extend([axis::LANEID, axis::WARPID]);
    }
    // Each warp has a tile of its own, whatever is left of the axis in the layout of one.
    if is_of_warps {
        axes.remove(&axis::WARPID);
    }
    for axis in axes.into_iter().filter(|axis| *axis != axis::REG) {
        let Some(index) = indices.of(&axis) else {
            return Err(vec![Reason {
                text: format!("a fragment over the axis `{axis}`"),
                accepted: "fragments over `laneid`, `warpid` and `tx`".to_string(),
            }]);
        };
        invert_axis(layout, &axis, index, &mut owned)?;
    }
    Ok(owned)
}

fn invert_axis(layout: &TileLayout, axis: &Axis, index: &Var, owned: &mut Owned) -> Result<(), Vec<Reason>> {
    let Some(inverse) = layout.inverse_on(axis) else {
        return Err(vec![Reason {
            text: format!("the strides of {layout} on `{axis}` do not nest"),
            accepted: "thread strides of which each is a multiple of the span of the smaller ones".to_string(),
        }]);
    };
    let mut rebuilt = Expr::constant(layout.offset_on(axis));
    for (at, digit) in inverse.digits {
        let value = digit.expr_anywhere(&Expr::var(index));
        rebuilt = rebuilt + &value * digit.divisor;
        match at {
            Some(at) => owned.digits[at] = Some(value),
            None => owned.first_copy.push(Cond::Equal(value, Expr::constant(0))),
        }
    }
    owned.holds.extend(holders(index, &inverse.guards, rebuilt));
    Ok(())
}

/// Conditions under which a thread has an element at all: between two bounds where the holders are adjacent, else
/// exactly the threads whose digits lead back to them.
fn holders(index: &Var, guards: &[Guard], rebuilt: Expr) -> Vec<Cond> {
    if guards.iter().all(|guard| guard.modulus.is_none()) {
        return guards.iter().flat_map(|guard| bounds(index, guard)).collect();
    }
    let range = index.range();
    let everyone = (range.lo..=range.hi).all(|value| guards.iter().all(|guard| guard.holds(value)));
    if everyone { Vec::new() } else { vec![Cond::Equal(rebuilt, Expr::var(index))] }
}

/// A guard that does not repeat, as far as the range of the index does not imply it.
fn bounds(index: &Var, guard: &Guard) -> Vec<Cond> {
    let (range, end) = (index.range(), guard.origin + guard.below);
    let mut bounds = Vec::new();
    if guard.origin > range.lo {
        bounds.push(Cond::Less(Expr::constant(guard.origin - 1), Expr::var(index)));
    }
    if end <= range.hi {
        bounds.push(Cond::Less(Expr::var(index), Expr::constant(end)));
    }
    bounds
}
