//! Fragments from a thread's point of view: which elements it holds, as expressions in its indices.

use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::Cond;
use tilewright_ir::tile::Kernel;
use tilewright_layout::axis::{self, Axis};
use tilewright_layout::{Iter, TileLayout};

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
    let mut iters: Vec<(Option<usize>, &Iter)> = Vec::new();
    iters.extend(layout.shard().iter().enumerate().map(|(at, iter)| (Some(at), iter)));
    iters.extend(layout.replica().iter().map(|iter| (None, iter)));
    iters.retain(|(_, iter)| iter.axis == *axis && iter.extent > 1);
    iters.sort_by_key(|(_, iter)| iter.stride);
    let nested = iters
        .windows(2)
        .all(|pair| pair[0].1.stride > 0 && pair[1].1.stride % (pair[0].1.stride * pair[0].1.extent) == 0);
    if !nested || iters.first().is_some_and(|(_, iter)| iter.stride <= 0) {
        return Err(vec![Reason {
            text: format!("the strides of {layout} on `{axis}` do not nest"),
            accepted: "thread strides of which each is a multiple of the span of the smaller ones".to_string(),
        }]);
    }
    let offset = layout.offset_on(axis);
    let place = Expr::var(index) - offset;
    let mut rebuilt = Expr::constant(offset);
    for (position, (at, iter)) in iters.iter().enumerate() {
        let quotient = &place / iter.stride;
        let is_last = position + 1 == iters.len();
        let fits = index.range().hi - offset < iter.stride * iter.extent && offset == 0;
        let digit = if is_last && fits { quotient } else { quotient % iter.extent };
        rebuilt = rebuilt + &digit * iter.stride;
        match at {
            Some(at) => owned.digits[*at] = Some(digit),
            None => owned.first_copy.push(Cond::Equal(digit, Expr::constant(0))),
        }
    }
    owned.holds.extend(holders(index, offset, &iters, rebuilt));
    Ok(())
}

/// Conditions under which a thread has an element at all: between two bounds where the holders are adjacent, else
/// exactly the threads whose digits lead back to them.
fn holders(index: &Var, offset: i64, iters: &[(Option<usize>, &Iter)], rebuilt: Expr) -> Vec<Cond> {
    let range = index.range();
    let adjacent = iters.iter().try_fold(1, |span, (_, iter)| (iter.stride == span).then_some(span * iter.extent));
    let Some(span) = adjacent else {
        let everyone = (range.lo..=range.hi).all(|value| rebuilt.eval(&|_| Some(value)) == Ok(value));
        return if everyone { Vec::new() } else { vec![Cond::Equal(rebuilt, Expr::var(index))] };
    };
    let mut bounds = Vec::new();
    if offset > range.lo {
        bounds.push(Cond::Less(Expr::constant(offset - 1), Expr::var(index)));
    }
    if offset + span <= range.hi {
        bounds.push(Cond::Less(Expr::var(index), Expr::constant(offset + span)));
    }
    bounds
}
