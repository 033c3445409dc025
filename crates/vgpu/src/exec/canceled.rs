//! `clusterlaunchcontrol.query_cancel` (PTX ISA, section 9.7.13.18.2): what a response says.

use crate::exec::machine::Machine;
use crate::exec::undefined::{UndefinedLanes, Update};
use crate::exec::warp::Warp;
use crate::fault::{FaultKind, RaisedFault};
use crate::lanes::lanes;
use crate::op::QueryCancel;
use crate::undefined::Undefined;

impl Machine<'_> {
    pub(crate) fn query_cancel(&mut self, warp: &mut Warp, exec: u32, op: &QueryCancel) {
        let response = |warp: &Warp, lane: usize| {
            let [low, high] = [0, 1].map(|half| warp.regs[op.response as usize + half][lane]);
            [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
        };
        let unknown = |warp: &Warp, lane: usize| {
            let halves = [0, 1].map(|half| warp.undefined(op.response + half, lane));
            Undefined::or(halves[0], halves[1])
        };
        if let Some(predicate) = op.is_canceled {
            let canceled = lanes(exec).filter(|lane| response(warp, *lane)[3] & 1 == 1);
            let value = canceled.fold(0, |all, lane| all | 1 << lane);
            warp.set_pred(predicate, exec, value);
            let mut marks: Box<UndefinedLanes> = Box::default();
            lanes(exec).for_each(|lane| marks[lane] = unknown(warp, lane));
            if marks.iter().any(|undefined| undefined.is_some()) {
                warp.update_marks(exec, vec![Update::Pred(predicate, marks)]);
            }
        }
        for lane in lanes(exec) {
            let words = response(warp, lane);
            let marks = if words[3] & 1 == 1 { unknown(warp, lane) } else { self.no_cluster(warp, lane) };
            for (axis, register) in op.first.iter().enumerate() {
                let Some(register) = register else { continue };
                warp.regs[*register as usize][lane] = u64::from(words[axis]);
                if warp.marks.is_some() || marks.is_some() {
                    warp.mark(*register, lane, marks.with(if marks.is_some() { u64::from(u32::MAX) } else { 0 }));
                }
            }
        }
    }

    /// The undefined bits of the CTA of a cluster that there is not.
    fn no_cluster(&mut self, warp: &Warp, lane: usize) -> Undefined {
        let message = "this reads the first CTA of a response that says that no cluster was canceled";
        let stop = RaisedFault::new(FaultKind::IllegalInstruction, 1 << lane, message);
        Undefined::new(u64::from(u32::MAX), self.origins.number(warp.id, warp.pc, *stop))
    }
}
