//! Access to the undefined bits of a warp's registers and predicates.

use crate::exec::undefined::marks::{UndefinedLanes, Update};
use crate::exec::warp::Warp;
use crate::op::Reg;
use crate::undefined::Undefined;

impl Warp {
    /// Records the undefined bits of results in the lanes of `exec`.
    pub(crate) fn update_marks(&mut self, exec: u32, updates: Vec<Update>) {
        let marks = self.marks.get_or_insert_default();
        marks.update(exec, updates);
        if marks.is_empty() {
            self.marks = None;
        }
    }

    /// Records the undefined bits of a register in one lane.
    pub(crate) fn mark(&mut self, reg: Reg, lane: usize, undefined: Undefined) {
        if self.marks.is_some() || undefined.is_some() {
            let mut new = Box::new([Undefined::default(); 32]);
            new[lane] = undefined;
            self.update_marks(1 << lane, vec![Update::Reg(reg, new)]);
        }
    }

    /// Replaces the undefined bits of registers in all lanes.
    pub(crate) fn replace_marks<'a>(&mut self, new: impl Iterator<Item = (Reg, Option<&'a UndefinedLanes>)>) {
        let marks = self.marks.get_or_insert_default();
        new.for_each(|(reg, undefined)| marks.replace(reg, undefined));
        if marks.is_empty() {
            self.marks = None;
        }
    }

    /// The undefined bits of a register in all lanes; `None` if there are none.
    pub(crate) fn undefined_lanes(&self, reg: Reg) -> Option<&UndefinedLanes> {
        self.marks.as_ref()?.in_lanes(reg)
    }

    /// The undefined bits of a register in a lane.
    pub(crate) fn undefined(&self, reg: Reg, lane: usize) -> Undefined {
        self.marks.as_ref().map_or(Undefined::default(), |marks| marks.reg(reg, lane))
    }

    /// The origin of an undefined bit of a register in these lanes.
    pub(crate) fn undefined_in(&self, reg: Reg, exec: u32) -> Option<u32> {
        self.marks.as_ref()?.in_reg(reg, exec)
    }

    /// The origin of an undefined predicate in these lanes.
    pub(crate) fn undefined_pred(&self, pred: u32, exec: u32) -> Option<u32> {
        self.marks.as_ref()?.in_pred(pred, exec)
    }
}
