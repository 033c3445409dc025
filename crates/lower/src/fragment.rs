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
    /// The indices of a thread in its CTA.
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

/// The exact inverse of the thread part of a fragment layout: the digit of every thread iter, and which threads hold
/// elements.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    /// For each shard iter of the layout, its digit as an expression of the thread's indices; `None` for `reg` iters.
    pub(crate) digits: Vec<Option<Expr>>,
    /// Conditions under which a thread holds elements; empty if all threads do.
    pub(crate) holds: Vec<Cond>,
    /// Conditions under which a thread holds the first copy of its elements; empty without replicas.
    pub(crate) first_copy: Vec<Cond>,
}

/// Inverts the thread part of `layout`, which describes one tile per warp if `is_of_warps`, else one tile of the whole
/// CTA. Error: axes without a hardware index, and strides that do not nest.
pub(crate) fn owned(layout: &TileLayout, is_of_warps: bool, indices: &ThreadIndices) -> Result<Owned, Vec<Reason>> {
    let mut owned = Owned { digits: vec![None; layout.shard().len()], holds: Vec::new(), first_copy: Vec::new() };
    let mut axes = layout.axes();
    // On an axis that the layout does not use, only the threads at coordinate 0 hold elements.
    if !axes.contains(&axis::TX) {
        axes.extend([axis::LANEID, axis::WARPID]);
    }
    // Each warp has its own tile, so the warp index does not restrict which threads hold elements.
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
            accepted: "thread strides each of which is a multiple of the span of the smaller ones".to_string(),
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

/// Conditions under which a thread holds any element: two bounds where the holders are adjacent; otherwise that the
/// index is the one recomputed from its digits.
fn holders(index: &Var, guards: &[Guard], rebuilt: Expr) -> Vec<Cond> {
    if guards.iter().all(|guard| guard.modulus.is_none()) {
        return guards.iter().flat_map(|guard| bounds(index, guard)).collect();
    }
    let range = index.range();
    let everyone = (range.lo..=range.hi).all(|value| guards.iter().all(|guard| guard.holds(value)));
    if everyone { Vec::new() } else { vec![Cond::Equal(rebuilt, Expr::var(index))] }
}

/// The bounds of a guard that does not repeat, without those that the range of the index implies.
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
