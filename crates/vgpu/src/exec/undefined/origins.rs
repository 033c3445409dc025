//! Where undefined bits come from.

use std::collections::BTreeMap;

use crate::fault::{FaultKind, RaisedFault};

/// Loads that returned undefined bits: one entry for each instruction and reason.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// The fault of each origin, by number.
    stops: Vec<RaisedFault>,
    /// Number of each origin, by instruction, kind of fault and related instruction.
    numbers: BTreeMap<(u32, FaultKind, Option<u32>), u32>,
}

impl Origins {
    /// The number of the origin whose fault is `stop`, raised by `warp` at `pc`.
    pub(crate) fn number(&mut self, warp: u32, pc: u32, stop: RaisedFault) -> u32 {
        let key = (pc, stop.kind, stop.related);
        let next = self.stops.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.stops.push(RaisedFault { pc: Some(pc), warp: Some(warp), ..stop });
        }
        number
    }

    /// The fault of an origin.
    pub(crate) fn stop(&self, origin: u32) -> &RaisedFault {
        &self.stops[origin as usize]
    }
}
