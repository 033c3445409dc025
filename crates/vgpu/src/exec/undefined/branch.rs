//! Branches whose condition is undefined.
//!
//! Compilers hoist loop invariants out of loops, even a branch on a loaded value, above the condition under which the
//! program loads the value. All threads then branch, most of them on bits that the program never uses: neither path has
//! an effect for them. So both paths are tried, for one lane at a time and on a copy of its registers, up to the point
//! at which they reconverge. If neither path has an observable effect, the lane continues there, and register bits in
//! which the paths differ become undefined. Otherwise the branch is a fault.

use crate::exec::access::resolve_spaces;
use crate::exec::control_flow::ControlFlow;
use crate::exec::machine::Machine;
use crate::exec::scalar;
use crate::exec::undefined::{UndefinedLanes, Update, undefined_results};
use crate::exec::warp::Warp;
use crate::isa::{Space, mask};
use crate::lanes::lanes;
use crate::op::{Guard, Load, Op, Reg};
use crate::undefined::Undefined;

/// Maximum number of instructions that are tried on one path.
const MAX_PATH_STEPS: u32 = 1 << 16;

/// Maximum nesting depth of branches of which both paths are tried.
const MAX_NESTED_BRANCHES: u32 = 3;

/// A branch of which both paths are tried.
#[derive(Clone, Copy)]
struct Branch {
    pc: u32,
    target: u32,
    /// Origin of the undefined bits in its condition.
    origin: u32,
    /// Number of such branches that it is nested in.
    depth: u32,
}

impl Machine<'_> {
    /// Executes a branch of the running group whose condition is undefined in some lanes. Returns false if it matters
    /// which path these lanes take.
    pub(crate) fn branch_on_undefined(&mut self, warp: &mut Warp, guard: Guard, target: u32) -> bool {
        let (pc, active) = (warp.pc, warp.active);
        let taken = active & warp.guard(guard);
        let undefined: Vec<(usize, u32)> =
            lanes(active).filter_map(|lane| Some((lane, warp.undefined_pred(guard.index, 1 << lane)?))).collect();
        let mut pcs = warp.pcs;
        lanes(active).for_each(|lane| pcs[lane] = if taken >> lane & 1 == 1 { target } else { pc + 1 });
        let (mut one, mut other) = (warp.clone(), warp.clone());
        for (lane, origin) in undefined {
            let branch = Branch { pc, target, origin, depth: 0 };
            let Some(join) = self.try_both_paths(&mut one, &mut other, lane, branch) else { return false };
            warp.copy_lane(&one, lane);
            pcs[lane] = join;
        }
        warp.pcs = pcs;
        warp.active = 0;
        true
    }

    /// Tries both paths for a lane, on two warps that agree in that lane, and leaves the merged state in `one`. Returns
    /// where the lane continues, or `None` if a path does more than compute and load.
    fn try_both_paths(&mut self, one: &mut Warp, other: &mut Warp, lane: usize, branch: Branch) -> Option<u32> {
        let program = self.program;
        let join = self.control_flow.get_or_insert_with(|| ControlFlow::of(program)).join(branch.pc)?;
        let first = self.run_lane(one, lane, branch, branch.target, join)?;
        self.run_lane(other, lane, branch, branch.pc + 1, join)?;
        one.merge(other, lane, branch.origin);
        Some(first)
    }

    /// Executes a lane from `start` to `join`, or to the end of the function. `None` if it does more than compute and load.
    fn run_lane(&mut self, warp: &mut Warp, lane: usize, branch: Branch, start: u32, join: u32) -> Option<u32> {
        let (program, exec) = (self.program, 1u32 << lane);
        let mut pc = start;
        for _ in 0..MAX_PATH_STEPS {
            if pc == join {
                return Some(pc);
            }
            let inst = &program.code[pc as usize];
            let is_executed = match inst.guard {
                None => true,
                Some(guard) => match (warp.undefined_pred(guard.index, exec), &inst.op) {
                    (None, _) => warp.guard(guard) & exec != 0,
                    (Some(origin), Op::Bra { target }) if branch.depth < MAX_NESTED_BRANCHES => {
                        let inner = Branch { pc, target: *target, origin, depth: branch.depth + 1 };
                        let mut other = warp.clone();
                        pc = self.try_both_paths(warp, &mut other, lane, inner)?;
                        continue;
                    }
                    (Some(_), _) => return None,
                },
            };
            if !is_executed && !matches!(&inst.op, Op::Barrier(barrier) if barrier.aligned) {
                pc += 1;
                continue;
            }
            match &inst.op {
                Op::Bra { target } => pc = *target,
                // The paths reconverge at the end of the function: the lane continues with this exit or return.
                Op::Ret | Op::Exit if join as usize == program.code.len() => return Some(pc),
                Op::Load(load) => {
                    self.load_for_lane(warp, lane, load, branch.origin);
                    pc += 1;
                }
                Op::Ret | Op::Exit | Op::Trap | Op::Call { .. } | Op::CopyBack(_) | Op::BranchIndex { .. } => {
                    return None;
                }
                Op::Store(_) | Op::Atomic(_) | Op::Collective { .. } | Op::Barrier(_) | Op::Matrix(_) => return None,
                Op::Clock { .. } | Op::Fence { .. } | Op::Copy(_) | Op::Bulk(_) | Op::Mbarrier(_) => return None,
                Op::Tensor(_) | Op::Warpgroup(_) | Op::ClusterBarrier(_) | Op::QueryCancel(_) => return None,
                Op::SetRegisters { .. } | Op::WaitForLaunches => return None,
                Op::Nop => pc += 1,
                Op::Scalar(op) => {
                    let updates = undefined_results(warp, exec, op);
                    scalar::execute(warp, exec, op);
                    warp.update_marks(exec, updates);
                    pc += 1;
                }
            }
        }
        None
    }

    /// Loads on one path only: parameters have their known values; everything loaded from other memory is undefined.
    fn load_for_lane(&self, warp: &mut Warp, lane: usize, load: &Load, origin: u32) {
        let size = load.size as usize;
        let start = resolve_spaces(&warp.regs, &load.at, 1 << lane).0[lane] as usize;
        let is_known = load.at.space == Space::Param && warp.undefined_in(load.at.base, 1 << lane).is_none();
        for (number, reg) in load.regs.iter().enumerate() {
            let from = start.saturating_add(number * size);
            let known = is_known.then(|| self.params.get(from..from.saturating_add(size))).flatten();
            let value = known
                .filter(|_| load.extend.is_none())
                .map(|bytes| bytes.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte)));
            let bits = if value.is_some() { 0 } else { mask(load.extend.unwrap_or(load.size * 8)) };
            warp.regs[*reg as usize][lane] = value.unwrap_or(0);
            warp.mark(*reg, lane, Undefined::new(bits, origin));
        }
    }
}

impl Warp {
    /// Copies the registers, predicates and marks of a lane from another warp.
    fn copy_lane(&mut self, from: &Warp, lane: usize) {
        for reg in 0..self.regs.len() {
            self.regs[reg][lane] = from.regs[reg][lane];
            self.mark_if_needed(reg as Reg, lane, from.undefined(reg as Reg, lane));
        }
        let bit = 1 << lane;
        let taken = |to: u32, from: u32| (to & !bit) | (from & bit);
        for (to, from) in self.preds.iter_mut().zip(&from.preds) {
            *to = taken(*to, *from);
        }
        self.carry = taken(self.carry, from.carry);
        self.update_marks(bit, from.flag_marks(lane));
    }

    /// Marks the bits of a lane that are undefined in the other warp or differ from it.
    fn merge(&mut self, other: &Warp, lane: usize, origin: u32) {
        for reg in 0..self.regs.len() {
            let differs = Undefined::new(self.regs[reg][lane] ^ other.regs[reg][lane], origin);
            let undefined = self.undefined(reg as Reg, lane).or(other.undefined(reg as Reg, lane)).or(differs);
            self.mark_if_needed(reg as Reg, lane, undefined);
        }
        let mut updates = Vec::new();
        let either = |one: Undefined, other: Undefined, values: [u32; 2]| {
            let differs = u64::from((values[0] ^ values[1]) >> lane & 1);
            let mut lanes = Box::<UndefinedLanes>::default();
            lanes[lane] = one.or(other).or(Undefined::new(differs, origin));
            lanes
        };
        for pred in 0..self.preds.len() {
            let values = [self.preds[pred], other.preds[pred]];
            let pred = pred as u32;
            updates.push(Update::Pred(pred, either(self.pred_mark(pred, lane), other.pred_mark(pred, lane), values)));
        }
        let carries = [self.carry, other.carry];
        updates.push(Update::Carry(either(self.carry_mark(lane), other.carry_mark(lane), carries)));
        self.update_marks(1 << lane, updates);
    }

    fn mark_if_needed(&mut self, reg: Reg, lane: usize, undefined: Undefined) {
        if undefined.is_some() || self.undefined(reg, lane).is_some() {
            self.mark(reg, lane, undefined);
        }
    }

    /// The marks of a lane's predicates and carry flag, as updates.
    fn flag_marks(&self, lane: usize) -> Vec<Update> {
        let alone = |undefined: Undefined| {
            let mut lanes = Box::<UndefinedLanes>::default();
            lanes[lane] = undefined;
            lanes
        };
        let preds = (0..self.preds.len() as u32).map(|pred| Update::Pred(pred, alone(self.pred_mark(pred, lane))));
        preds.chain([Update::Carry(alone(self.carry_mark(lane)))]).collect()
    }

    fn pred_mark(&self, pred: u32, lane: usize) -> Undefined {
        self.marks.as_ref().map_or(Undefined::default(), |marks| marks.pred(pred, lane))
    }

    fn carry_mark(&self, lane: usize) -> Undefined {
        self.marks.as_ref().map_or(Undefined::default(), |marks| marks.carry(lane))
    }
}
