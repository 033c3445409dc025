//! Records the operands of traced instructions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::fault::ExecResult;
use crate::float::widen32;
use crate::isa::{Space, mask, sign_extend};
use crate::lanes::lanes;
use crate::memory::map;
use crate::program::{NumberKind, Operand, OperandPlace};
use crate::trace::{MOST_TRACED, Trace, Traced, TracedOperand, TracedValue};

/// A trace that grows.
#[derive(Debug, Default)]
pub(crate) struct Tracer {
    /// The first executions.
    trace: Trace,
    /// The last ones.
    last: VecDeque<Traced>,
    /// What warps are executing, by the number of their CTA and their index: an instruction may be several operations, and
    /// may wait for other threads.
    open: BTreeMap<(u32, u32), Vec<Open>>,
}

/// An execution that has not ended.
#[derive(Debug)]
struct Open {
    traced: Traced,
    operands: Arc<[Operand]>,
}

impl Tracer {
    fn add(&mut self, traced: Traced) {
        if self.trace.executions.len() < MOST_TRACED / 2 {
            return self.trace.executions.push(traced);
        }
        self.last.push_back(traced);
        if self.last.len() > MOST_TRACED / 2 {
            self.last.pop_front();
            self.trace.omitted += 1;
        }
    }

    /// The trace at the end of a run: what still waits has the values from before.
    pub(super) fn end(mut self) -> Trace {
        for open in std::mem::take(&mut self.open).into_values().flatten() {
            self.add(open.traced);
        }
        self.trace.executions.extend(self.last);
        self.trace
    }
}

impl Machine<'_> {
    /// Executes the instruction at the warp's program counter, and records its operands if it is traced.
    pub(super) fn step_traced(&mut self, warp: &mut Warp) -> ExecResult<()> {
        let (pc, program) = (warp.pc, self.program);
        if program.starts_instruction(pc) {
            self.close_traced(warp);
        }
        let Some(operands) = program.traced.get(&pc) else { return self.execute_next(warp) };
        if program.starts_instruction(pc) {
            let lanes = warp.active;
            let info = &program.info[pc as usize];
            let operand = |operand: &Operand| {
                let before = self.values(warp, lanes, operand);
                TracedOperand { name: operand.name.clone(), after: before.clone(), before }
            };
            let shown = operands.iter().map(operand).collect();
            let (ptx_line, ptx, cta) = (info.line, info.text.clone(), self.cta.index);
            let traced = Traced { ptx_line, ptx, cta, warp: warp.id, lanes, has_faulted: false, operands: shown };
            let open = Open { traced, operands: Arc::clone(operands) };
            let key = (self.cta.number, warp.id);
            if let Some(tracer) = &mut self.tracer {
                tracer.open.entry(key).or_default().push(open);
            }
        }
        let result = self.execute_next(warp);
        let key = (self.cta.number, warp.id);
        if result.is_err()
            && let Some(last) = self.tracer.as_mut().and_then(|tracer| tracer.open.get_mut(&key)?.last_mut())
        {
            last.traced.has_faulted = true;
        }
        if result.is_err() || program.starts_instruction(pc + 1) {
            self.close_traced(warp);
        }
        result
    }

    /// Adds the executions of a warp whose lanes do not wait any more.
    fn close_traced(&mut self, warp: &Warp) {
        let key = (self.cta.number, warp.id);
        let open = self.tracer.as_mut().and_then(|tracer| tracer.open.remove(&key)).unwrap_or_default();
        let waits = |open: &Open| lanes(open.traced.lanes).any(|lane| warp.waits[lane].is_some());
        let (waiting, done): (Vec<Open>, Vec<Open>) = open.into_iter().partition(waits);
        for Open { mut traced, operands } in done {
            for (shown, operand) in traced.operands.iter_mut().zip(operands.iter()) {
                shown.after = self.values(warp, traced.lanes, operand);
            }
            if let Some(tracer) = &mut self.tracer {
                tracer.add(traced);
            }
        }
        if let Some(tracer) = self.tracer.as_mut().filter(|_| !waiting.is_empty()) {
            tracer.open.insert(key, waiting);
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
                match kind {
                    NumberKind::Half(format) => TracedValue::Single(widen32(value as u32, format)),
                    NumberKind::Single => TracedValue::Single(f32::from_bits(value as u32)),
                    NumberKind::Double => TracedValue::Double(f64::from_bits(value)),
                    NumberKind::Signed => TracedValue::Integer(i128::from(sign_extend(value, bits))),
                    NumberKind::Bits => TracedValue::Integer(i128::from(value)),
                }
            }
            OperandPlace::Address { space, may_be_shared, base, offset } => {
                let address = warp.regs[base as usize][lane].wrapping_add(offset as u64);
                let (space, address) = match space {
                    // The shared window is above the addresses of the shared space.
                    Space::Generic if may_be_shared && address < 1 << 32 => (Space::Shared, address),
                    Space::Generic => map::resolve(address),
                    space => (space, address),
                };
                self.named(space, address)
            }
            OperandPlace::Variable { space, address } => self.named(space, address),
        }
    }

    fn named(&self, space: Space, address: u64) -> TracedValue {
        let (name, offset, _) = self.nearest(space, address);
        if name.is_empty() { TracedValue::Integer(i128::from(address)) } else { TracedValue::At(name, offset) }
    }
}
