//! Executes one instruction for one group of lanes.

use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::exec::{scalar, undefined};
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::isa::{Scope, mask};
use crate::lanes::lanes;
use crate::op::{FenceOrder, Op, ScalarOp};

impl Machine<'_> {
    /// Executes the instruction at the warp's program counter and moves on.
    pub(crate) fn step(&mut self, warp: &mut Warp) -> ExecResult<()> {
        if self.tracer.is_some() { self.step_traced(warp) } else { self.execute_next(warp) }
    }

    pub(super) fn execute_next(&mut self, warp: &mut Warp) -> ExecResult<()> {
        let program = self.program;
        let pc = warp.pc;
        let inst = &program.code[pc as usize];
        if self.cta.executed >= self.cta.limit {
            return Err(self.step_limit_fault(warp.active));
        }
        self.stats.steps += 1;
        self.cta.steps += 1;
        let exec = match inst.guard {
            None => warp.active,
            Some(guard) => {
                if let Some(origin) = warp.undefined_pred(guard.index, warp.active) {
                    let branch = if let Op::Bra { target } = inst.op { Some(target) } else { None };
                    return match branch {
                        Some(target) if self.branch_on_undefined(warp, guard, target) => Ok(()),
                        _ => Err(self.undefined_use(origin, pc, "decide whether an instruction is executed")),
                    };
                }
                warp.active & warp.guard(guard)
            }
        };
        let threads = u64::from(exec.count_ones());
        let executed = &mut self.stats.executed[pc as usize];
        executed.0 += 1;
        executed.1 += threads;
        self.cta.executed += threads;
        let must_agree = matches!(&inst.op, Op::Barrier(barrier) if barrier.aligned);
        if exec == 0 && !must_agree {
            warp.pc += 1;
            return Ok(());
        }
        if !self.fused.is_empty()
            && let Some(op) = self.fused.remove(&pc)
        {
            scalar_op(warp, exec, &op);
            self.fused.insert(pc, op);
            warp.pc += 1;
            return Ok(());
        }
        self.changes += u64::from(inst.changes);
        self.execute(warp, exec, &inst.op)
    }

    fn execute(&mut self, warp: &mut Warp, exec: u32, op: &Op) -> ExecResult<()> {
        match op {
            Op::Bra { target } => {
                let goes_back = *target <= warp.pc;
                warp.branch(exec, *target);
                if goes_back {
                    self.watch_loop(warp);
                }
                return Ok(());
            }
            Op::BranchIndex { index, targets } => {
                self.must_be_defined(warp, *index, exec, "decide where a branch goes")?;
                return self.branch_index(warp, exec, *index, targets);
            }
            Op::Call { target, copies } => return self.call(warp, exec, *target, copies),
            Op::Ret => return self.ret(warp, exec),
            Op::Exit => return self.exit(warp, exec),
            Op::Trap => return Err(RaisedFault::new(FaultKind::Trap, exec, "a trap instruction was executed")),
            Op::Collective { f, members } => return self.collective(warp, exec, f, *members),
            Op::Barrier(barrier) => return self.barrier(warp, exec, barrier),
            Op::ClusterBarrier(barrier) => return self.cluster_barrier(warp, exec, barrier),
            Op::Mbarrier(op) => return self.mbarrier(warp, exec, op),
            Op::Matrix(matrix) => return self.matrix(warp, exec, matrix),
            Op::Tensor(op) => return self.tensor(warp, exec, op),
            Op::Warpgroup(op) => return self.warpgroup(warp, exec, op),
            Op::SetRegisters { count, grows } => return self.set_registers(warp, exec, *count, *grows),
            Op::Load(load) => self.load(warp, exec, load)?,
            Op::Store(store) => self.store(warp, exec, store)?,
            Op::Atomic(atomic) => self.atomic(warp, exec, atomic)?,
            Op::Bulk(op) if op.is_aligned() && !self.gather_all(warp, exec)? => return Ok(()),
            Op::Bulk(op) => self.bulk(warp, exec, op)?,
            Op::Copy(copy) => self.copy(warp, exec, copy)?,
            Op::CopyBack(copies) => self.local_copies(warp, exec, copies),
            Op::Clock { d, bits, shift } => {
                warp.fill(*d, exec, (self.cta.steps >> shift) & mask(*bits));
                warp.loops.forget();
            }
            Op::WaitForLaunches => {
                let clocks = &mut self.cta.clocks;
                lanes(exec).for_each(|lane| clocks.wait_for_launches(warp.thread(lane), self.first_cta));
            }
            Op::QueryCancel(query) => self.query_cancel(warp, exec, query),
            Op::Fence { scope, order } => self.fence(warp, exec, *scope, *order),
            Op::Nop => {}
            Op::Scalar(op) => scalar_op(warp, exec, op),
        }
        warp.pc += 1;
        Ok(())
    }

    fn fence(&mut self, warp: &Warp, exec: u32, scope: Scope, order: FenceOrder) {
        if !self.options.check_races {
            return;
        }
        let threads: Vec<u32> = lanes(exec).map(|lane| warp.thread(lane)).collect();
        self.fences += 1;
        let clocks = &mut self.cta.clocks;
        let mut each = |acquires: bool, releases: bool| {
            threads.iter().for_each(|thread| clocks.fence(*thread, scope, acquires, releases));
        };
        match order {
            FenceOrder::Acquire => each(true, false),
            FenceOrder::Release => each(false, true),
            FenceOrder::AcquireRelease => each(true, true),
            FenceOrder::Sequential => clocks.fence_in_sequence(&threads, scope, &mut self.sequence),
        }
    }
}

/// Executes an instruction on registers, with the undefined bits of its results.
fn scalar_op(warp: &mut Warp, exec: u32, op: &ScalarOp) {
    if warp.marks.is_none() {
        return scalar::execute(warp, exec, op);
    }
    let updates = undefined::undefined_results(warp, exec, op);
    scalar::execute(warp, exec, op);
    warp.update_marks(exec, updates);
}
