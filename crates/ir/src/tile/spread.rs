//! Reductions whose threads exchange their parts only once, after the serial loop around them.

use crate::arena::Handle;
use crate::tile::kernel::{Kernel, Loop, Stmt};
use crate::tile::op::Op;

impl Kernel {
    /// The reductions of a serial loop that add to a result which nothing else in the loop uses: threads combine their own
    /// elements in each iteration, and exchange them once, after the loop.
    pub fn spread_over(&self, inner: &Loop) -> Vec<Handle<Op>> {
        let is_spread = |handle: &Handle<Op>| {
            let op = &self.ops[*handle];
            let Some(reduction) = op.kind.reduction() else { return false };
            let mut results = op.tiles().filter(|(operand, _)| operand.effect.writes());
            let is_used_once = results.all(|(_, tile)| self.uses_in(&inner.body, self.storage(tile.buffer)) == 1);
            // The registers of a role are known only in the statements of the role, not around a loop that others share.
            !reduction.clear && op.warp.is_none() && op.role.is_none() && is_used_once
        };
        let ops = inner.body.iter().filter_map(|stmt| if let Stmt::Op(handle) = stmt { Some(*handle) } else { None });
        if inner.counter.repeats() { ops.filter(is_spread).collect() } else { Vec::new() }
    }
}
