//! Undefined bits that have an observable effect.

use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, RaisedFault};
use crate::op::Reg;

impl Machine<'_> {
    /// The fault of undefined bits that have an observable effect, which `effect` describes.
    pub(crate) fn undefined_use(&self, origin: u32, pc: u32, effect: &str) -> Box<RaisedFault> {
        let mut stop = self.origins.stop(origin).clone();
        let line = self.program.line(pc);
        stop.message = format!("{}; the undefined bits {effect} at PTX line {line}", stop.message);
        Box::new(stop)
    }

    /// Faults if a register that must be defined has undefined bits in these lanes.
    pub(crate) fn must_be_defined(&self, warp: &Warp, reg: Reg, exec: u32, effect: &str) -> ExecResult<()> {
        match warp.undefined_in(reg, exec) {
            Some(origin) => Err(self.undefined_use(origin, warp.pc, effect)),
            None => Ok(()),
        }
    }
}
