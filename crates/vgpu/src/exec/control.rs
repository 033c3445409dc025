//! Branch tables, calls, returns and exits.

use crate::exec::machine::Machine;
use crate::exec::warp::{Wait, Warp};
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::lanes::lanes;
use crate::op::{LocalCopy, Op, Reg};

/// Maximum number of instructions followed to find out whether a lane does nothing but exit.
const MAX_EXIT_STEPS: u32 = 16;

impl Machine<'_> {
    pub(crate) fn branch_index(&mut self, warp: &mut Warp, exec: u32, index: Reg, targets: &[u32]) -> ExecResult<()> {
        let indices = warp.regs[index as usize];
        let next = warp.pc + 1;
        for lane in lanes(warp.active) {
            warp.pcs[lane] = next;
        }
        for lane in lanes(exec) {
            let Some(target) = targets.get(indices[lane] as usize) else {
                let message = format!("branch index {} out of range, target count {}", indices[lane], targets.len());
                return Err(RaisedFault::new(FaultKind::IllegalInstruction, 1 << lane, message));
            };
            warp.pcs[lane] = *target;
        }
        warp.active = 0;
        self.watch_loop(warp);
        Ok(())
    }

    pub(crate) fn call(&mut self, warp: &mut Warp, exec: u32, target: u32, copies: &[LocalCopy]) -> ExecResult<()> {
        self.local_copies(warp, exec, copies);
        let next = warp.pc + 1;
        for lane in lanes(exec) {
            warp.stacks[lane].push(next);
        }
        warp.branch(exec, target);
        // The call depth changed, so that a group must be selected again.
        warp.park();
        Ok(())
    }

    /// Copies parameters within the local memory of each thread.
    pub(crate) fn local_copies(&mut self, warp: &Warp, exec: u32, copies: &[LocalCopy]) {
        let stride = self.program.local_bytes as usize;
        let local = &mut self.cta.local;
        for lane in lanes(exec) {
            let start = warp.thread(lane) as usize * stride;
            for copy in copies {
                let (from, to) = (start + copy.from as usize, start + copy.to as usize);
                local.copy_within(from..from + copy.bytes as usize, to);
            }
        }
    }

    pub(crate) fn ret(&mut self, warp: &mut Warp, exec: u32) -> ExecResult<()> {
        let mut leaving = 0;
        let next = warp.pc + 1;
        for lane in lanes(warp.active) {
            warp.pcs[lane] = next;
        }
        for lane in lanes(exec) {
            match warp.stacks[lane].pop() {
                Some(back) => warp.pcs[lane] = back,
                None => leaving |= 1 << lane,
            }
        }
        warp.active = 0;
        if leaving == 0 { Ok(()) } else { self.leave(warp, leaving) }
    }

    pub(crate) fn exit(&mut self, warp: &mut Warp, exec: u32) -> ExecResult<()> {
        let next = warp.pc + 1;
        warp.branch(exec, next);
        warp.park();
        self.leave(warp, exec)
    }

    /// Removes exiting lanes from the warp.
    fn leave(&mut self, warp: &mut Warp, leaving: u32) -> ExecResult<()> {
        for lane in lanes(warp.alive & !leaving) {
            if let Some(Wait::Aligned { pc }) = warp.waits[lane] {
                let message = "only part of the warp reached this `.aligned` instruction; the rest exited without it";
                let mut stop = RaisedFault::new(FaultKind::DivergentAligned, 1 << lane, message);
                stop.pc = Some(pc);
                return Err(stop);
            }
        }
        self.take_out(warp, leaving);
        self.settle(warp)?;
        self.complete_barriers();
        self.complete_cluster();
        Ok(())
    }

    fn take_out(&mut self, warp: &mut Warp, leaving: u32) {
        self.changes += 1;
        warp.alive &= !leaving;
        warp.ready &= !leaving;
        self.cta.alive[warp.id as usize] = warp.alive;
    }

    /// Lets lanes outside the running group that would do nothing but exit do so now, so that a barrier does not wait
    /// for them.
    pub(crate) fn retire_leaving(&mut self, warp: &mut Warp) {
        let mut leaving = 0;
        for lane in lanes(warp.ready & !warp.active) {
            if warp.stacks[lane].is_empty() && self.only_leaves(warp.pcs[lane]) {
                leaving |= 1 << lane;
            }
        }
        self.take_out(warp, leaving);
        self.complete_barriers();
        self.complete_cluster();
    }

    fn only_leaves(&self, start: u32) -> bool {
        let mut pc = start;
        for _ in 0..MAX_EXIT_STEPS {
            let inst = &self.program.code[pc as usize];
            match &inst.op {
                Op::Ret | Op::Exit if inst.guard.is_none() => return true,
                Op::Bra { target } if inst.guard.is_none() => pc = *target,
                Op::Nop => pc += 1,
                _ => return false,
            }
        }
        false
    }
}
