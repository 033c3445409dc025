//! Undefined bits that have an observable effect.

use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, Fault, RaisedFault};
use crate::memory::BufferId;
use crate::op::Reg;

impl Machine<'_> {
    /// The fault of undefined bits that have an observable effect, which `effect` describes.
    pub(crate) fn undefined_use(&self, origin: u32, pc: u32, effect: &str) -> Box<RaisedFault> {
        let mut stop = self.origins.stop(origin).clone();
        let line = self.program.line(pc);
        stop.message = format!("{}; the undefined bits {effect} at PTX line {line}", stop.message);
        Box::new(stop)
    }

    /// After all CTAs have ended: the fault of an undefined bit in a buffer that is compared. Bytes of other buffers with
    /// undefined bits count as never written from now on.
    pub(crate) fn settle_undefined_bytes(&mut self) -> Result<(), Box<Fault>> {
        let Some(observed) = &self.options.observed else { return Ok(()) };
        for index in 0..self.memory.buffers.len() {
            let id = BufferId::at(index);
            let buffer = &self.memory.buffers[index];
            let is_observed = observed.contains(&id);
            if let Some((offset, byte)) = buffer.region.undefined.first_key_value().filter(|_| is_observed) {
                let mut stop = self.origins.stop(byte.origin).clone();
                let writer = self.memory.last_writer(id, *offset);
                let line = writer.map_or(String::new(), |writer| format!(", stored at PTX line {}", writer.ptx_line));
                stop.message = format!("{}; the undefined bits reach `{}` + {offset}{line}", stop.message, buffer.name);
                let (pc, warp) = (stop.pc.unwrap_or(0), stop.warp.unwrap_or(0));
                return Err(self.fault(stop, pc, warp));
            }
            self.memory.buffers[index].region.forget_undefined();
        }
        Ok(())
    }

    /// Faults if a register that must be defined has undefined bits in these lanes.
    pub(crate) fn must_be_defined(&self, warp: &Warp, reg: Reg, exec: u32, effect: &str) -> ExecResult<()> {
        match warp.undefined_in(reg, exec) {
            Some(origin) => Err(self.undefined_use(origin, warp.pc, effect)),
            None => Ok(()),
        }
    }
}
