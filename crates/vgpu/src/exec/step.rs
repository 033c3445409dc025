//! Executes one instruction for one group of lanes.

use crate::exec::warp::{Warp, lanes};
use crate::exec::{Machine, compare, convert, float, int, undefined};
use crate::fault::{Exec, FaultKind, Stop};
use crate::isa::{Space, mask};
use crate::memory::map;
use crate::op::{Guard, Op, PredFn, Reg};

impl Machine<'_> {
    /// Executes the instruction at the warp's program counter and moves on.
    pub(crate) fn step(&mut self, warp: &mut Warp) -> Exec<()> {
        let program = self.program;
        let pc = warp.pc;
        let Some(inst) = program.code.get(pc as usize) else {
            return Err(Stop::new(FaultKind::IllegalInstruction, warp.active, "program counter out of range"));
        };
        if self.cta.executed >= self.cta.limit {
            return Err(self.too_long(warp.active));
        }
        self.stats.steps += 1;
        let exec = match inst.guard {
            None => warp.active,
            Some(guard) => {
                if let Some(origin) = warp.undefined_pred(guard.index, warp.active) {
                    let branch = if let Op::Bra { target } = inst.op { Some(target) } else { None };
                    return match branch {
                        Some(target) if self.branch_both_ways(warp, guard, target) => Ok(()),
                        _ => Err(self.reached(origin, pc, "decide whether an instruction is executed")),
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
        self.execute(warp, exec, &inst.op)
    }

    fn execute(&mut self, warp: &mut Warp, exec: u32, op: &Op) -> Exec<()> {
        match op {
            Op::Bra { target } => {
                warp.branch(exec, *target);
                return Ok(());
            }
            Op::BranchIndex { index, targets } => {
                self.must_be_defined(warp, *index, exec, "decide where a branch goes")?;
                return self.branch_index(warp, exec, *index, targets);
            }
            Op::Call { target, copies } => return self.call(warp, exec, *target, copies),
            Op::Ret => return self.ret(warp, exec),
            Op::Exit => return self.exit(warp, exec),
            Op::Trap => return Err(Stop::new(FaultKind::Trap, exec, "a trap instruction was executed")),
            Op::Collective { f, members } => return self.collective(warp, exec, f, *members),
            Op::Barrier(barrier) => return self.barrier(warp, exec, barrier),
            Op::Matrix(matrix) => return self.matrix(warp, exec, matrix),
            Op::Load(load) => self.load(warp, exec, load)?,
            Op::Store(store) => self.store(warp, exec, store)?,
            Op::Atomic(atomic) => self.atomic(warp, exec, atomic)?,
            Op::CopyBack(copies) => self.local_copies(warp, exec, copies),
            Op::Clock { d, bits, shift } => warp.fill(*d, exec, (self.stats.steps >> shift) & mask(*bits)),
            _ if warp.marks.is_none() => scalar(warp, exec, op),
            _ => {
                let updates = undefined::of(warp, exec, op);
                scalar(warp, exec, op);
                warp.update_marks(exec, updates);
            }
        }
        warp.pc += 1;
        Ok(())
    }
}

/// Instructions that touch only registers of the warp.
pub(crate) fn scalar(warp: &mut Warp, exec: u32, op: &Op) {
    match op {
        Op::Mov { d, a } => int::map1(&mut warp.regs, exec, *d, *a, |a| a),
        Op::MovMany(moves) => mov_many(warp, exec, moves),
        Op::Unpack { a, bits, parts } => unpack(warp, exec, *a, *bits, parts),
        Op::Pack { d, bits, parts } => pack(warp, exec, *d, *bits, parts),
        Op::Int { f, bits, d, s } => int::execute(&mut warp.regs, exec, *f, *bits, *d, s),
        Op::Carry { .. } => int::carry(warp, exec, op),
        Op::Selp { d, a, b, p } => selp(warp, exec, *d, [*a, *b], *p),
        Op::MovPred { d, a } => {
            let value = warp.guard(*a);
            warp.set_pred(*d, exec, value);
        }
        Op::Pred { f, d, a, b } => {
            let value = logic(*f, warp.guard(*a), warp.guard(*b));
            warp.set_pred(*d, exec, value);
        }
        Op::Setp(setp) => compare::setp(warp, exec, setp),
        Op::Set(set) => compare::set(warp, exec, set),
        Op::Testp { f, double, d, a } => {
            let value = compare::testp(&warp.regs[*a as usize], *f, *double);
            warp.set_pred(*d, exec, value);
        }
        Op::Float { f, mode, d, s } => float::execute(&mut warp.regs, exec, *f, mode, *d, s),
        Op::Convert(convert) => convert::one(&mut warp.regs, exec, convert),
        Op::ConvertPair(pair) => convert::pair(&mut warp.regs, exec, pair),
        Op::ToTf32 { d, a, round, relu, finite } => {
            int::map1(&mut warp.regs, exec, *d, *a, |a| convert::to_tf32(a, *round, *relu, *finite));
        }
        Op::IsSpace { d, a, space } => is_space(warp, exec, *d, *a, *space),
        Op::Cvta { d, a, space, to_generic, bits } => {
            let window = map::window(*space);
            let (add, keep) = (if *to_generic { window } else { window.wrapping_neg() }, mask(*bits));
            int::map1(&mut warp.regs, exec, *d, *a, |a| a.wrapping_add(add) & keep);
        }
        Op::ActiveMask { d } => warp.fill(*d, exec, u64::from(exec)),
        // Instructions that need more than the warp are executed by the caller.
        Op::Nop | Op::Clock { .. } | Op::Load(_) | Op::Store(_) | Op::Atomic(_) | Op::CopyBack(_) => {}
        Op::Bra { .. } | Op::BranchIndex { .. } | Op::Call { .. } | Op::Ret | Op::Exit | Op::Trap => {}
        Op::Collective { .. } | Op::Barrier(_) | Op::Matrix(_) => {}
    }
}

fn mov_many(warp: &mut Warp, exec: u32, moves: &[(Reg, Reg)]) {
    for lane in lanes(exec) {
        let values: Vec<u64> = moves.iter().map(|(_, a)| warp.regs[*a as usize][lane]).collect();
        for ((d, _), value) in moves.iter().zip(values) {
            warp.regs[*d as usize][lane] = value;
        }
    }
}

fn unpack(warp: &mut Warp, exec: u32, a: Reg, bits: u32, parts: &[Option<Reg>]) {
    let source = warp.regs[a as usize];
    let keep = mask(bits);
    for (index, part) in parts.iter().enumerate() {
        let Some(d) = part else { continue };
        let shift = bits * index as u32;
        let slot = &mut warp.regs[*d as usize];
        for lane in lanes(exec) {
            slot[lane] = (source[lane] >> shift) & keep;
        }
    }
}

fn pack(warp: &mut Warp, exec: u32, d: Reg, bits: u32, parts: &[Reg]) {
    let keep = mask(bits);
    for lane in lanes(exec) {
        let mut value = 0u64;
        for (index, part) in parts.iter().enumerate() {
            value |= (warp.regs[*part as usize][lane] & keep) << (bits * index as u32);
        }
        warp.regs[d as usize][lane] = value;
    }
}

fn selp(warp: &mut Warp, exec: u32, d: Reg, sources: [Reg; 2], p: Guard) {
    let chosen = warp.guard(p);
    let a = warp.regs[sources[0] as usize];
    let b = warp.regs[sources[1] as usize];
    let slot = &mut warp.regs[d as usize];
    for lane in lanes(exec) {
        slot[lane] = if chosen >> lane & 1 == 1 { a[lane] } else { b[lane] };
    }
}

/// Boolean logic on masks.
pub(crate) fn logic(f: PredFn, a: u32, b: u32) -> u32 {
    match f {
        PredFn::And => a & b,
        PredFn::Or => a | b,
        PredFn::Xor => a ^ b,
    }
}

fn is_space(warp: &mut Warp, exec: u32, d: u32, a: Reg, space: Space) {
    let mut value = 0;
    for lane in lanes(exec) {
        let (found, _) = map::resolve(warp.regs[a as usize][lane]);
        value |= u32::from(found == space) << lane;
    }
    warp.set_pred(d, exec, value);
}
