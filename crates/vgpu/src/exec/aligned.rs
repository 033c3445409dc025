//! Instructions that the lanes of a warp execute together (`.aligned`).

use crate::exec::machine::Machine;
use crate::exec::warp::{Wait, Warp};
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::lanes::{FULL, lanes};

impl Machine<'_> {
    /// Gathers the lanes that have not exited at a barrier. Returns them, or `None` if no lane executes it or if some
    /// have not arrived yet.
    pub(crate) fn gather_alive(&mut self, warp: &mut Warp, exec: u32) -> ExecResult<Option<u32>> {
        if !agrees(warp, exec)? {
            return Ok(None);
        }
        if exec != warp.alive {
            self.retire_leaving(warp);
        }
        Ok(join(warp, exec))
    }

    /// Gathers all 32 lanes. Returns false where [`Machine::gather_alive`] returns `None`.
    pub(crate) fn gather_all(&mut self, warp: &mut Warp, exec: u32) -> ExecResult<bool> {
        if !agrees(warp, exec)? {
            return Ok(false);
        }
        if warp.alive != FULL {
            let missing = 32 - warp.alive.count_ones();
            let message =
                format!("this instruction needs all 32 lanes of the warp; exited or never started: {missing}");
            return Err(RaisedFault::new(FaultKind::DivergentAligned, exec, message));
        }
        Ok(join(warp, exec).is_some())
    }
}

/// Whether the whole group executes the instruction; faults if only part of it does.
fn agrees(warp: &mut Warp, exec: u32) -> ExecResult<bool> {
    if exec == warp.active {
        return Ok(true);
    }
    if exec == 0 {
        warp.pc += 1;
        return Ok(false);
    }
    let message = "the predicate of this `.aligned` instruction differs between the lanes of the warp";
    Err(RaisedFault::new(FaultKind::DivergentAligned, exec, message))
}

/// Adds the lanes that wait at the same instruction to the running group. If the warp is still incomplete, the group
/// waits too.
fn join(warp: &mut Warp, exec: u32) -> Option<u32> {
    let pc = warp.pc;
    let mut here = exec;
    for lane in lanes(warp.alive & !warp.ready) {
        if warp.waits[lane] == Some(Wait::Aligned { pc }) {
            here |= 1 << lane;
        }
    }
    if here != warp.alive {
        warp.block(exec, pc, |_| Wait::Aligned { pc });
        return None;
    }
    for lane in lanes(here & !exec) {
        warp.waits[lane] = None;
    }
    warp.ready |= here;
    warp.active = here;
    Some(here)
}
