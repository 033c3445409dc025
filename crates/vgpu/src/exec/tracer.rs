//! Records the operands of traced instructions.

use std::collections::BTreeMap;

use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::fault::ExecResult;
use crate::isa::{Space, mask, sign_extend};
use crate::lanes::lanes;
use crate::memory::map;
use crate::program::{NumberKind, Operand, OperandPlace};
use crate::trace::{MOST_TRACED, Trace, Traced, TracedOperand, TracedValue};

/// A trace that grows.
#[derive(Debug, Default)]
pub(crate) struct Tracer {
    pub(crate) trace: Trace,
    /// What warps are executing, by the number of their CTA and their index: an instruction may be several operations.
    open: BTreeMap<(u32, u32), Traced>,
}

impl Machine<'_> {
    /// Executes the instruction at the warp's program counter, and records its operands if it is traced.
    pub(super) fn step_traced(&mut self, warp: &mut Warp) -> ExecResult<()> {
        let (pc, program) = (warp.pc, self.program);
        let Some(operands) = program.traced.get(&pc) else { return self.execute_next(warp) };
        let guard = program.code[pc as usize].guard;
        let exec = guard.map_or(warp.active, |guard| warp.active & warp.guard(guard));
        let key = (self.cta.number, warp.id);
        if program.starts_instruction(pc) {
            let info = &program.info[pc as usize];
            let operand = |operand: &Operand| {
                let before = self.values(warp, exec, operand);
                TracedOperand { name: operand.name.clone(), before, after: Vec::new() }
            };
            let operands = operands.iter().map(operand).collect();
            let (ptx_line, ptx, cta) = (info.line, info.text.clone(), self.cta.index);
            let traced = Traced { ptx_line, ptx, cta, warp: warp.id, lanes: exec, operands };
            self.tracer.as_mut().map(|tracer| tracer.open.insert(key, traced));
        }
        let result = self.execute_next(warp);
        let is_last = program.starts_instruction(pc + 1);
        let open = self.tracer.as_mut().and_then(|tracer| if is_last { tracer.open.remove(&key) } else { None });
        if let Some(mut traced) = open {
            for (shown, operand) in traced.operands.iter_mut().zip(operands.iter()) {
                shown.after = self.values(warp, exec, operand);
            }
            self.add_to_trace(traced);
        }
        result
    }

    fn add_to_trace(&mut self, traced: Traced) {
        let Some(tracer) = &mut self.tracer else { return };
        if traced.lanes == 0 {
            return;
        }
        match tracer.trace.executions.len() < MOST_TRACED {
            true => tracer.trace.executions.push(traced),
            false => tracer.trace.more += 1,
        }
    }

    /// The values of an operand in the lanes of `exec`.
    fn values(&self, warp: &Warp, exec: u32, operand: &Operand) -> Vec<TracedValue> {
        lanes(exec).map(|lane| self.value(warp, lane, operand.place)).collect()
    }

    fn value(&self, warp: &Warp, lane: usize, place: OperandPlace) -> TracedValue {
        let marks = warp.marks.as_ref();
        match place {
            OperandPlace::Predicate(index) if marks.is_some_and(|marks| marks.pred(index, lane).is_some()) => {
                TracedValue::Undefined
            }
            OperandPlace::Predicate(index) => TracedValue::Flag(warp.preds[index as usize] >> lane & 1 == 1),
            OperandPlace::Register { index, .. } | OperandPlace::Address { base: index, .. }
                if marks.is_some_and(|marks| marks.reg(index, lane).is_some()) =>
            {
                TracedValue::Undefined
            }
            OperandPlace::Register { index, kind, bits } => {
                let value = warp.regs[index as usize][lane] & mask(bits);
                match (kind, bits) {
                    (NumberKind::Float, 32) => TracedValue::Float(f64::from(f32::from_bits(value as u32))),
                    (NumberKind::Float, 64) => TracedValue::Float(f64::from_bits(value)),
                    (NumberKind::Signed, _) => TracedValue::Integer(i128::from(sign_extend(value, bits))),
                    (NumberKind::Float | NumberKind::Bits, _) => TracedValue::Integer(i128::from(value)),
                }
            }
            OperandPlace::Address { space, base, offset } => {
                let address = warp.regs[base as usize][lane].wrapping_add(offset as u64);
                let (space, address) = if space == Space::Generic { map::resolve(address) } else { (space, address) };
                let (name, offset, _) = self.nearest(space, address);
                if name.is_empty() { TracedValue::Integer(i128::from(address)) } else { TracedValue::At(name, offset) }
            }
        }
    }
}
