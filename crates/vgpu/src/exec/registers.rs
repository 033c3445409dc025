//! `setmaxnreg` (PTX ISA, section 9.7.19.5): warps give registers back to a pool of their CTA, and take some from it.
//!
//! How many registers a thread has at first is not part of PTX: it is what `.maxnreg` says, or else as many as fit in the
//! registers of an SM, 65536, in steps of 8 up to 255.

use crate::exec::barrier::Release;
use crate::exec::machine::Machine;
use crate::exec::warp::{Wait, Warp};
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::lanes::FULL;

/// Registers of an SM.
const ALL: u32 = 65536;
/// Most registers of a thread.
const MOST: u32 = 255;
/// Registers of a thread are counted in steps.
const STEP: u32 = 8;

/// The registers of a CTA.
#[derive(Debug)]
pub(crate) struct RegisterPool {
    /// Those that no warp has.
    pub(crate) free: u32,
    /// Registers of a thread, by warp.
    each: Vec<u32>,
    /// Warps that wait for registers.
    waiting: Vec<u32>,
}

impl RegisterPool {
    pub(crate) fn new(given: Option<u32>, threads: u32) -> RegisterPool {
        let warps = threads.div_ceil(32);
        let each = given.unwrap_or((ALL / (warps * 32).max(1)).min(MOST)) / STEP * STEP;
        RegisterPool { free: 0, each: vec![each; warps as usize], waiting: Vec::new() }
    }
}

impl Machine<'_> {
    pub(crate) fn set_registers(&mut self, warp: &mut Warp, exec: u32, count: u32, grows: bool) -> ExecResult<()> {
        if !self.gather_all(warp, exec)? {
            return Ok(());
        }
        let (id, pc) = (warp.id, warp.pc);
        let pool = &mut self.cta.registers;
        let have = pool.each[id as usize];
        if if grows { count < have } else { count > have } {
            let does = if grows { "raises" } else { "lowers" };
            let message = format!("this {does} the registers of a thread to {count}, and it has {have}");
            return Err(RaisedFault::new(FaultKind::IllegalInstruction, FULL, message));
        }
        let needed = count.saturating_sub(have) * 32;
        if needed > pool.free {
            pool.waiting.push(id);
            warp.block(FULL, pc, |_| Wait::Registers { pc, count });
            return Ok(());
        }
        pool.free = pool.free - needed + have.saturating_sub(count) * 32;
        pool.each[id as usize] = count;
        if !grows {
            self.effects += 1;
            for waiting in std::mem::take(&mut pool.waiting) {
                self.cta.released.push(Release::wake(waiting, FULL));
            }
        }
        warp.pc += 1;
        Ok(())
    }
}
