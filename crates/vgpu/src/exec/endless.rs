//! Finds loops that cannot end, because nothing changes any more.
//!
//! A warp whose state is what it was at an earlier backward branch, while nothing has changed that other threads or
//! engines can change, does the same again until something changes. Until then it has no turn, as if it waited. Where all
//! warps wait or are in such loops, and no engine has work, nothing will ever change.

use crate::exec::machine::Machine;
use crate::exec::warp::Warp;

/// Backward branches without any change before the states of a warp are compared.
const FIRST: u32 = 256;

/// What the backward branches of a warp have seen.
#[derive(Clone, Default)]
pub(crate) struct Loops {
    /// The machine's count of changes at the last backward branch.
    changes: u64,
    /// Backward branches since then.
    branches: u32,
    /// The state at the last power of two of them (Brent's algorithm).
    seen: Option<Box<Warp>>,
    /// A register that differed from it at the last comparison.
    hint: usize,
    /// The count of changes at which the warp is known to be in an endless loop.
    endless_at: Option<u64>,
}

impl Loops {
    /// Whether the registers are what they were.
    fn has_seen(&mut self, warp: &Warp) -> bool {
        let Some(seen) = &self.seen else { return false };
        if warp.regs.get(self.hint) != seen.regs.get(self.hint) {
            return false;
        }
        match warp.regs.iter().zip(&seen.regs).position(|(now, then)| now != then) {
            Some(register) => {
                self.hint = register;
                false
            }
            None => warp.is_at(seen),
        }
    }
}

impl Machine<'_> {
    /// The number of changes so far that a warp may observe other than in its own registers.
    fn all_changes(&self) -> u64 {
        self.changes + self.effects
    }

    /// Whether the warp is in a loop that does not end as long as nothing changes.
    pub(super) fn is_endless(&self, warp: &Warp) -> bool {
        warp.loops.endless_at == Some(self.all_changes())
    }

    /// A warp has branched backward.
    pub(super) fn watch_loop(&self, warp: &mut Warp) {
        let changes = self.all_changes();
        if warp.loops.changes != changes || warp.marks.is_some() {
            warp.loops = Loops { changes, ..Loops::default() };
            return;
        }
        warp.loops.branches = warp.loops.branches.saturating_add(1);
        if warp.loops.branches < FIRST {
            return;
        }
        let mut loops = std::mem::take(&mut warp.loops);
        if loops.has_seen(warp) {
            loops.endless_at = Some(changes);
        } else if loops.branches.is_power_of_two() {
            loops.seen = Some(Box::new(warp.clone()));
        }
        warp.loops = loops;
    }
}
