//! Instructions that the lanes of a warp execute together (`.aligned`).

use crate::exec::control_flow::ControlFlow;
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
        let Some(here) = join(warp, exec) else { return Ok(None) };
        let pc = warp.pc;
        let mut exits = lanes(warp.left).map(|lane| warp.left_at[lane]);
        if exits.any(|exit| self.has_gone_past(pc, exit)) {
            let message =
                "only part of the warp reached this `.aligned` instruction; the rest went past it, and has exited";
            return Err(RaisedFault::new(FaultKind::DivergentAligned, here, message));
        }
        Ok(Some(here))
    }

    /// Whether lanes that have exited at `exit` went past the instruction at `pc`.
    fn has_gone_past(&mut self, pc: u32, exit: u32) -> bool {
        let program = self.program;
        let flow = self.control_flow.get_or_insert_with(|| ControlFlow::of(program));
        *self.passed.entry((pc, exit)).or_insert_with(|| flow.goes_past(program, pc, exit))
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

impl Warp {
    /// Once lanes have exited: if all that are left wait at one instruction, they execute it now.
    pub(crate) fn complete_aligned(&mut self) {
        let mut waits = lanes(self.alive).map(|lane| self.waits[lane]);
        if let Some(first @ Some(Wait::Aligned { .. })) = waits.next()
            && waits.all(|wait| wait == first)
        {
            self.unblock(self.alive);
        }
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
