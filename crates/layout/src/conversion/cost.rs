//! The cost of a plan: a simple model for comparing the plans of one conversion.

use std::fmt;

use tilewright_diag::counted;

use crate::weights::WEIGHTS;

/// What orders the loads of a staging plan after its stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Barrier {
    /// Nothing goes through shared memory.
    #[default]
    None,
    /// `bar.warp.sync`: every warp reads only what it wrote.
    Warp,
    /// `bar.sync`: warps read what others wrote.
    Cta,
}

/// The cost of a plan for one warp. Where warps differ, wavefronts are those of the costliest warp.
///
/// It is weighed by [`WEIGHTS`]. What is not counted: addresses, latency other than the barrier's, and other warps that hide
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// `shfl.sync` instructions.
    pub shuffles: u64,
    /// Steps whose source lane is neither a constant nor the lane XOR a constant, so that it must be computed.
    pub indices: u64,
    /// Selects: a value that threads choose among `n` registers takes `n - 1`, for each 32 bits. Also counted are
    /// the shifts and masks of elements of less than 8 bits that do not move in whole bytes.
    pub selects: u64,
    /// Byte permutes that put elements of less than 32 bits into their words, or take them out, in whole bytes.
    pub permutes: u64,
    /// Store instructions.
    pub stores: u64,
    /// Load instructions.
    pub loads: u64,
    /// Wavefronts of all stores and loads.
    pub wavefronts: u64,
    /// The barrier between stores and loads.
    pub barrier: Barrier,
}

impl Barrier {
    /// Its name in text: `none`, `warp` or `cta`.
    pub fn name(self) -> &'static str {
        match self {
            Barrier::None => "none",
            Barrier::Warp => "warp",
            Barrier::Cta => "cta",
        }
    }

    /// What waiting at it adds to [`Cost::total`].
    pub fn cost(self) -> u64 {
        match self {
            Barrier::None => 0,
            Barrier::Warp => WEIGHTS.warp_barrier.unsigned_abs(),
            Barrier::Cta => WEIGHTS.cta_barrier.unsigned_abs(),
        }
    }
}

impl Cost {
    /// `16 * (shuffles + wavefronts) + 2 * (indices + selects + permutes + stores + loads)`, and for the barrier 32 in a warp
    /// or 128 in a CTA.
    pub fn total(&self) -> u64 {
        let single = self.indices + self.selects + self.permutes + self.stores + self.loads;
        let passes = WEIGHTS.pass.unsigned_abs() * (self.shuffles + self.wavefronts);
        passes + WEIGHTS.instruction.unsigned_abs() * single + self.barrier.cost()
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cost {} a warp", self.total())?;
        let parts = [
            (self.shuffles, "shuffle"),
            (self.indices, "computed source lane"),
            (self.selects, "select"),
            (self.permutes, "byte permute"),
            (self.stores, "store"),
            (self.loads, "load"),
            (self.wavefronts, "wavefront"),
        ];
        let named = parts.iter().filter(|(count, _)| *count > 0);
        let mut named: Vec<String> = named.map(|(count, what)| counted(*count, what)).collect();
        if self.barrier != Barrier::None {
            named.push(format!("{} barrier", self.barrier.name()));
        }
        if named.is_empty() { Ok(()) } else { write!(f, " ({})", named.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_weighs_the_parts() {
        let cost = Cost { shuffles: 3, indices: 1, selects: 5, ..Cost::default() };
        assert_eq!(cost.to_string(), "cost 60 a warp (3 shuffles, 1 computed source lane, 5 selects)");
        let cost = Cost { stores: 1, loads: 4, wavefronts: 8, barrier: Barrier::Cta, ..Cost::default() };
        assert_eq!(cost.to_string(), "cost 266 a warp (1 store, 4 loads, 8 wavefronts, cta barrier)");
        assert_eq!(Cost::default().to_string(), "cost 0 a warp");
    }
}
