//! Conversions through shared memory.

use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Inst, Memory, Stmt, Value};
use tilewright_layout::conversion::{Barrier, SharedAccess, Staging};
use tilewright_layout::{Layout, SwizzleLayout};

use super::make::Make;
use crate::builder::regs;
use crate::threads::{fit, number};

impl Make<'_> {
    /// One thread stores each element; after a barrier, threads load what they want.
    pub(super) fn staged(&mut self, staging: &Staging) {
        let context = self.context;
        let elements = staging.bytes / context.dtype.bytes();
        let memory = self.builder.staged(context.dtype, elements, context.op.span);
        let swizzle = swizzle_of(staging);
        staging.store.accesses.iter().for_each(|access| self.stored(access, swizzle, memory));
        let barrier = match staging.barrier {
            Barrier::None => None,
            Barrier::Warp => Some(Inst::SyncWarp),
            Barrier::Cta => Some(Inst::SyncThreads),
        };
        self.out.extend(barrier.map(|inst| Stmt::from(Call::plain(inst))));
        staging.load.accesses.iter().for_each(|access| self.loaded(access, swizzle, memory));
    }

    fn stored(&mut self, access: &SharedAccess, swizzle: Option<SwizzleLayout>, memory: Handle<Memory>) {
        let width = access.registers.len() as i64;
        let mut body = Vec::new();
        let index = self.index(access, swizzle, &mut body);
        let vector = self.builder.staging(self.context.dtype, width, &mut body);
        for (at, slot) in (0..).zip(&access.registers) {
            body.push(Stmt::Assign { to: regs(vector, at, 1), value: self.context.source.in_slot(*slot) });
        }
        body.push(Stmt::Store { memory, index, from: regs(vector, 0, width) });
        self.by(&takes_part(access), |_| false, body);
    }

    fn loaded(&mut self, access: &SharedAccess, swizzle: Option<SwizzleLayout>, memory: Handle<Memory>) {
        let width = access.registers.len() as i64;
        let mut body = Vec::new();
        let index = self.index(access, swizzle, &mut body);
        let vector = self.builder.staging(self.context.dtype, width, &mut body);
        body.push(Stmt::Load { to: regs(vector, 0, width), memory, index });
        for (at, slot) in (0..).zip(&access.registers) {
            body.push(self.written(*slot, Value::reg(vector, at)));
        }
        self.by(&takes_part(access), |_| false, body);
    }

    /// The position of each thread's first element. A swizzle is its own inverse, and what is below it is a sum of digits
    /// of the thread's index far more often than the swizzled position is.
    fn index(&mut self, access: &SharedAccess, swizzle: Option<SwizzleLayout>, out: &mut Vec<Stmt>) -> Expr {
        let (width, thread) = (access.registers.len() as i64, &self.context.thread);
        let positions = |swizzle: Option<SwizzleLayout>| -> Vec<Option<i64>> {
            let below = |at: usize| swizzle.map_or(at as i64, |swizzle| swizzle.apply(at as i64));
            access.addresses.iter().map(|address| address.map(below)).collect()
        };
        if let (Some(swizzle), Some(below)) = (swizzle, fit(&positions(swizzle), thread, width)) {
            let index = self.builder.simplifier.simplify(&swizzle.apply_expr(below));
            if index.multiple() % width == 0 {
                return index;
            }
        }
        number(&positions(None), width, thread, self.builder, out)
    }
}

/// The swizzle of the positions in shared memory.
fn swizzle_of(staging: &Staging) -> Option<SwizzleLayout> {
    match &staging.layout {
        Layout::Compose(compose) => Some(compose.swizzle()),
        Layout::Tile(_) | Layout::Table(_) => None,
    }
}

fn takes_part(access: &SharedAccess) -> Vec<bool> {
    access.addresses.iter().map(Option::is_some).collect()
}
