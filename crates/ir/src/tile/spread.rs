//! Reductions whose threads exchange their parts only once, after the serial loop around them.

use crate::arena::Handle;
use crate::tile::buffer::Buffer;
use crate::tile::element::ElementStmt;
use crate::tile::kernel::{If, Kernel, Loop, Stmt};
use crate::tile::op::{Op, OpKind};

impl Kernel {
    /// The reductions of a serial loop that add to a result which nothing else in the loop uses: threads combine their own
    /// elements in each iteration, and exchange them once, after the loop.
    pub fn spread_over(&self, inner: &Loop) -> Vec<Handle<Op>> {
        let is_spread = |handle: &Handle<Op>| {
            let op = &self.ops[*handle];
            let OpKind::Reduce(attributes) = op.kind else { return false };
            let result = self.storage(op.operands[0].buffer);
            let uses: usize = inner.body.iter().map(|stmt| self.uses(stmt, result)).sum();
            !attributes.clear && op.warp.is_none() && uses == 1
        };
        let ops = inner.body.iter().filter_map(|stmt| if let Stmt::Op(handle) = stmt { Some(*handle) } else { None });
        if inner.counter.most_trips() > 1 { ops.filter(is_spread).collect() } else { Vec::new() }
    }

    /// How often a statement names a storage.
    fn uses(&self, stmt: &Stmt, storage: Handle<Buffer>) -> usize {
        let is_it = |buffer: Handle<Buffer>| usize::from(self.storage(buffer) == storage);
        let of_elements = |elements: &[ElementStmt]| {
            let mut count = 0;
            elements.iter().for_each(|element| element.for_each_access(&mut |access, _| count += is_it(access.buffer)));
            count
        };
        let all = |body: &[Stmt]| body.iter().map(|stmt| self.uses(stmt, storage)).sum::<usize>();
        match stmt {
            Stmt::Op(op) => self.ops[*op].operands.iter().map(|tile| is_it(tile.buffer)).sum(),
            Stmt::Loop(inner) => all(&inner.body),
            Stmt::Parallel(parallel) => of_elements(&self.parallels[*parallel].body),
            Stmt::EachThread(elements) => of_elements(elements),
            Stmt::If(If { cond, then, otherwise, .. }) => {
                let mut in_cond = 0;
                cond.for_each_load(&mut |access| in_cond += is_it(access.buffer));
                in_cond + all(then) + all(otherwise)
            }
        }
    }
}
