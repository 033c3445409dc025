//! `setmaxnreg` (PTX ISA, section 9.7.19.5): warps give registers back to a pool of their CTA, and take some from it.
//!
//! How many registers a thread has at first is not part of PTX: it is what `.maxnreg` says, or else as many as fit in the
//! registers of an SM, 65536, in steps of 8 up to 255. In that case a thread may have fewer on a device, so that a first
//! `setmaxnreg.inc` to fewer is right.

use crate::exec::barrier::Release;
use crate::exec::machine::Machine;
use crate::exec::warp::{Wait, Warp};
use crate::fault::{ExecResult, Fault, FaultKind, RaisedFault};
use crate::lanes::FULL;

/// Registers of an SM.
const ALL: u32 = 65536;
/// Most registers of a thread.
const MOST: u32 = 255;
/// Warps of a warpgroup.
const WARPS_OF_GROUP: usize = 4;
/// Registers of a thread are counted in steps.
const STEP: u32 = 8;

/// The registers of a CTA.
#[derive(Debug)]
pub(crate) struct RegisterPool {
    /// Those that no warp has.
    pub(crate) free: u32,
    /// Registers of a thread, by warp.
    each: Vec<u32>,
    /// Whether `.maxnreg` gives the registers at first.
    is_given: bool,
    /// The last change of each warp, if there was one.
    changed_at: Vec<Option<u32>>,
    /// Warps that wait for registers.
    waiting: Vec<u32>,
}

impl RegisterPool {
    pub(crate) fn new(given: Option<u32>, threads: u32) -> RegisterPool {
        let warps = threads.div_ceil(32);
        let each = given.unwrap_or((ALL / (warps * 32).max(1)).min(MOST)) / STEP * STEP;
        RegisterPool {
            free: 0,
            each: vec![each; warps as usize],
            is_given: given.is_some(),
            changed_at: vec![None; warps as usize],
            waiting: Vec::new(),
        }
    }
}

impl Machine<'_> {
    /// At the end of a CTA: all warps of a warpgroup must have the same number of registers.
    pub(crate) fn end_registers(&self) -> Result<(), Box<Fault>> {
        let pool = &self.cta.registers;
        for (group, counts) in pool.each.chunks_exact(WARPS_OF_GROUP).enumerate() {
            let first = group * WARPS_OF_GROUP;
            let changed = (first..first + WARPS_OF_GROUP).find_map(|warp| Some((warp, pool.changed_at[warp]?)));
            let Some((warp, pc)) = changed.filter(|_| counts.iter().any(|count| *count != counts[0])) else { continue };
            let message = format!(
                "the warps of a warpgroup end with {counts:?} registers for each thread; all four execute `setmaxnreg`"
            );
            return Err(self.fault(*RaisedFault::new(FaultKind::IllegalInstruction, FULL, message), pc, warp as u32));
        }
        Ok(())
    }

    pub(crate) fn set_registers(&mut self, warp: &mut Warp, exec: u32, count: u32, grows: bool) -> ExecResult<()> {
        if !self.gather_all(warp, exec)? {
            return Ok(());
        }
        let (id, pc) = (warp.id, warp.pc);
        let pool = &mut self.cta.registers;
        let have = pool.each[id as usize];
        let is_known = pool.is_given || pool.changed_at[id as usize].is_some();
        if is_known && if grows { count < have } else { count > have } {
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
        pool.changed_at[id as usize] = Some(pc);
        if count < have {
            self.effects += 1;
            for waiting in std::mem::take(&mut pool.waiting) {
                self.cta.released.push(Release::wake(waiting, FULL));
            }
        }
        warp.pc += 1;
        Ok(())
    }
}
