//! Reductions whose threads exchange their parts only once, after the serial loop around them.

use crate::arena::Handle;
use crate::tile::kernel::{Kernel, Loop, Stmt};
use crate::tile::op::{Op, OpKind};

impl Kernel {
    /// The reductions of a serial loop that add to a result which nothing else in the loop uses: threads combine their own
    /// elements in each iteration, and exchange them once, after the loop.
    pub fn spread_over(&self, inner: &Loop) -> Vec<Handle<Op>> {
        let is_spread = |handle: &Handle<Op>| {
            let op = &self.ops[*handle];
            let OpKind::Reduce(attributes) = op.kind else { return false };
            let result = self.storage(op.operands[0].buffer);
            let uses = self.uses_in(&inner.body, result);
            // The registers of a role are known only in the statements of the role, not around a loop that others share.
            !attributes.clear && op.warp.is_none() && op.role.is_none() && uses == 1
        };
        let ops = inner.body.iter().filter_map(|stmt| if let Stmt::Op(handle) = stmt { Some(*handle) } else { None });
        if inner.counter.most_trips() > 1 { ops.filter(is_spread).collect() } else { Vec::new() }
    }
}
