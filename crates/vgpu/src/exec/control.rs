//! Branch tables, calls, returns and exits.

use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::lanes::lanes;
use crate::op::{LocalCopy, Reg};

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
        let (pc, next) = (warp.pc, warp.pc + 1);
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
        if leaving == 0 { Ok(()) } else { self.leave(warp, leaving, pc) }
    }

    pub(crate) fn exit(&mut self, warp: &mut Warp, exec: u32) -> ExecResult<()> {
        let pc = warp.pc;
        warp.branch(exec, pc + 1);
        warp.park();
        self.leave(warp, exec, pc)
    }

    /// Removes lanes that exit at `pc` from the warp.
    fn leave(&mut self, warp: &mut Warp, leaving: u32, pc: u32) -> ExecResult<()> {
        self.changes += 1;
        warp.alive &= !leaving;
        warp.left |= leaving;
        lanes(leaving).for_each(|lane| warp.left_at[lane] = pc);
        warp.ready &= !leaving;
        self.cta.alive[warp.id as usize] = warp.alive;
        warp.complete_aligned();
        self.settle(warp)?;
        self.complete_barriers();
        self.complete_cluster();
        Ok(())
    }
}
