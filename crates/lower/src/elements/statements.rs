//! Lowers statements on elements.

use std::sync::Arc;

use tilewright_diag::Span;
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Call, Inst, RegArray, Regs, Stmt, Unroll, Value as ThreadValue};
use tilewright_ir::tile::{
    Access, Atomic, AtomicChange, AtomicOp, Coord, ElementOp, ElementStmt, Space, Value, iteration_exists,
};
use tilewright_ir::{Counter, Handle, Scalar};
use tilewright_layout::DType;

use super::active_step::ActiveStep;
use super::lowering::Lowering;
use super::names::{Name, Named};
use crate::builder::regs;
use crate::refusal::{MOST_STATEMENTS, Refusal, too_many_statements};

/// The most statements of a nest that are lowered, one for each step and iteration: twice what a program may have, since
/// vectors combine some of them.
const MOST_LOWERED: usize = 2 * MOST_STATEMENTS;
/// An inner loop of up to this many iterations is unrolled.
const MOST_WRITTEN_OUT: i64 = 8;

/// Whether a condition holds for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    /// The thread does not execute the statement.
    Absent,
    /// The iteration decides.
    Known(bool),
    /// It depends on more than the iteration.
    OfData,
}

impl Lowering<'_> {
    /// Lowers the statements of one step, for the threads of `place`.
    pub(super) fn elements(&mut self, body: &[ElementStmt], place: &ActiveStep) -> Result<(), Refusal> {
        let names = self.names.len();
        for element in body {
            self.element(element, place)?;
        }
        self.names.truncate(names);
        Ok(())
    }

    pub(super) fn element(&mut self, element: &ElementStmt, place: &ActiveStep) -> Result<(), Refusal> {
        self.lowered += 1;
        if self.lowered > MOST_LOWERED {
            return Err(too_many_statements());
        }
        match element {
            ElementStmt::Let { name, value, .. } => self.name(name, value, place),
            ElementStmt::Store { to, value, .. } => {
                let dtype = self.kernel.buffers[to.buffer].dtype;
                match self.kernel.buffers[to.buffer].space {
                    Space::Fragment => {
                        let value = self.value(value, Some(dtype), place)?;
                        self.write_fragment(to, place, &value)
                    }
                    Space::Tensor => Err("an element of tensor memory".into()),
                    Space::Global(_) | Space::Shared => {
                        let first = self.first_only(place);
                        let inner = self.aside(|this| this.store(to, value, &first))?;
                        self.guarded(&first.mask, &place.mask, inner);
                        Ok(())
                    }
                }
            }
            ElementStmt::Atomic(atomic) => self.atomic(atomic, place),
            ElementStmt::If { cond, then, otherwise, .. } => self.branch(cond, then, otherwise, place),
            ElementStmt::For { counter, body, span } => self.repeat(counter, body, *span, place),
        }
    }

    /// The place without the threads that are not the first to execute their iteration.
    fn first_only(&self, place: &ActiveStep) -> ActiveStep {
        let firsts = &self.firsts[place.step];
        let mask = place.mask.iter().zip(firsts.iter()).map(|(here, first)| *here && *first).collect();
        ActiveStep { step: place.step, mask: Arc::new(mask) }
    }

    fn atomic(&mut self, atomic: &Atomic, place: &ActiveStep) -> Result<(), Refusal> {
        let dtype = self.kernel.buffers[atomic.to.buffer].dtype;
        if let AtomicChange::Combine(op) = atomic.change
            && self.kernel.buffers[atomic.to.buffer].space == Space::Fragment
        {
            // No other thread changes its registers.
            let (to, value) = (&atomic.to, &atomic.value);
            let result = Value::Op(op.element_op(), [Value::Load(to.clone()), value.clone()].into());
            let result = self.value(&result, Some(dtype), place)?;
            return self.write_fragment(to, place, &result);
        }
        let old = atomic.old.as_ref().map(|old| (old, self.named_register(&old.name, dtype, place.step)));
        let to = old.as_ref().map(|(_, (array, at))| regs(*array, *at, 1));
        let first = self.first_only(place);
        let inner = self.aside(|this| match &atomic.condition {
            None => this.changed(atomic, to.as_ref(), &first),
            Some(condition) => this.either(condition, &first, &mut |this, holds, place| match holds {
                true => this.changed(atomic, to.as_ref(), place),
                false => Ok(()),
            }),
        })?;
        let is_certain =
            first.mask == place.mask && inner.iter().any(|stmt| matches!(stmt, Stmt::Inst(call) if call.to == to));
        if let Some(to) = to.filter(|_| !is_certain) {
            self.out.push(Stmt::Set { to, value: Scalar::Int(0) });
        }
        self.guarded(&first.mask, &place.mask, inner);
        self.names.extend(old.map(|(old, (array, at))| Name {
            name: old.name.clone(),
            value: Named::Kept(ThreadValue::reg(array, at), dtype),
        }));
        Ok(())
    }

    /// Changes an element atomically, and keeps the old one in a register, if there is one for it.
    fn changed(&mut self, atomic: &Atomic, old: Option<&Regs>, place: &ActiveStep) -> Result<(), Refusal> {
        let to = &atomic.to;
        let dtype = self.kernel.buffers[to.buffer].dtype;
        let mut from = Vec::new();
        for value in atomic.expected.iter().chain([&atomic.value]) {
            let value = self.value(value, Some(dtype), place)?;
            from.push(self.in_register(value, dtype));
        }
        let index = self.coordinates(to, place)?;
        let limits = self.limits(to, &index);
        let (old, ordering) = (old.cloned(), atomic.ordering);
        self.at_memory(to, (&index, &limits), place, |memory, index| {
            let memory = vec![(memory, index)];
            Stmt::from(Call { to: old, from, memory, ordering, ..Call::plain(inst_of(atomic.change)) })
        });
        Ok(())
    }

    fn store(&mut self, to: &Access, value: &Value, place: &ActiveStep) -> Result<(), Refusal> {
        let dtype = self.kernel.buffers[to.buffer].dtype;
        if let Some((array, register)) = self.moved_register(to, place.step, true) {
            let value = self.value(value, Some(dtype), place)?;
            self.out.push(Stmt::Assign { to: regs(array, register, 1), value });
            return Ok(());
        }
        let value = self.value(value, Some(dtype), place)?;
        let from = self.in_register(value, dtype);
        let index = self.coordinates(to, place)?;
        let limits = self.limits(to, &index);
        self.at_memory(to, (&index, &limits), place, |memory, index| Stmt::Store { memory, index, from });
        Ok(())
    }

    fn branch(
        &mut self,
        cond: &Value,
        then: &[ElementStmt],
        otherwise: &[ElementStmt],
        place: &ActiveStep,
    ) -> Result<(), Refusal> {
        self.either(cond, place, &mut |this, holds, place| this.elements(if holds { then } else { otherwise }, place))
    }

    /// What `body` adds where a condition holds, and where it does not.
    fn either(
        &mut self,
        cond: &Value,
        place: &ActiveStep,
        body: &mut dyn FnMut(&mut Self, bool, &ActiveStep) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let truths = self.truths(cond, place);
        if !truths.contains(&Truth::OfData) {
            for holds in [true, false] {
                let mask: Vec<bool> = truths.iter().map(|truth| *truth == Truth::Known(holds)).collect();
                if mask.contains(&true) {
                    let inner = ActiveStep { step: place.step, mask: Arc::new(mask.clone()) };
                    let body = self.aside(|this| body(this, holds, &inner))?;
                    self.guarded(&mask, &place.mask, body);
                }
            }
            return Ok(());
        }
        let cond = self.value(cond, None, place)?;
        let mut branch = |holds: bool| {
            // Threads for which one part of the condition decides need nothing for the other branch.
            let mask = truths.iter().map(|truth| [Truth::Known(holds), Truth::OfData].contains(truth)).collect();
            let inner = ActiveStep { step: place.step, mask: Arc::new(mask) };
            self.aside(|this| body(this, holds, &inner))
        };
        let (then, otherwise) = (branch(true)?, branch(false)?);
        let under = |cond: ThreadValue, body: Vec<Stmt>| Stmt::IfValue { cond, is_uniform: false, body };
        if otherwise.is_empty() {
            self.out.extend((!then.is_empty()).then(|| under(cond, then)));
            return Ok(());
        }
        // The condition is kept in a register, so that the first branch cannot change it before the second tests it.
        let array = self.new_registers("holds", DType::I32, 1);
        self.out.push(Stmt::Assign { to: regs(array, 0, 1), value: as_number(cond) });
        for (body, holds) in [(then, 1), (otherwise, 0)] {
            let compared = vec![ThreadValue::reg(array, 0), number(holds)];
            if !body.is_empty() {
                self.out.push(under(ThreadValue::Op(ElementOp::Eq, compared), body));
            }
        }
        Ok(())
    }

    /// Sets a register to 1 where a condition holds, else to 0.
    pub(super) fn keep_truth(
        &mut self,
        cond: &Value,
        holds: Handle<RegArray>,
        place: &ActiveStep,
    ) -> Result<(), Refusal> {
        let cond = self.value(cond, None, place)?;
        self.out.push(Stmt::Assign { to: regs(holds, 0, 1), value: as_number(cond) });
        Ok(())
    }

    /// Whether a condition holds, by thread.
    fn truths(&self, cond: &Value, place: &ActiveStep) -> Vec<Truth> {
        let vars = &self.nest.vars;
        let extents: Vec<i64> = vars.iter().map(|var| var.range().hi + 1).collect();
        let digit = |var: &Var, iteration: usize| {
            let at = vars.iter().position(|known| known == var)?;
            let stride: i64 = extents[at + 1..].iter().product();
            Some(iteration as i64 / stride % extents[at])
        };
        let holds = |thread: usize| {
            let iteration = self.nest.steps.at(thread, place.step)?;
            cond.truth(&|var| digit(var, iteration))
        };
        let of = |(thread, here): (usize, &bool)| match here {
            true => holds(thread).map_or(Truth::OfData, Truth::Known),
            false => Truth::Absent,
        };
        place.mask.iter().enumerate().map(of).collect()
    }

    fn repeat(
        &mut self,
        counter: &Counter,
        body: &[ElementStmt],
        span: Span,
        place: &ActiveStep,
    ) -> Result<(), Refusal> {
        let var = &counter.var;
        let is_short = counter.values().is_some() && counter.most_trips() <= MOST_WRITTEN_OUT;
        if is_short || body.iter().any(|element| self.indexes_fragment(element, var)) {
            for value in counter.possible() {
                let Some(conditions) = iteration_exists(counter, value) else { continue };
                let written = body.iter().map(|element| substituted(element, var, value)).collect();
                let written = conditions
                    .into_iter()
                    .fold(written, |then, cond| vec![ElementStmt::If { cond, then, otherwise: Vec::new(), span }]);
                self.elements(&written, place)?;
            }
            return Ok(());
        }
        let fresh = Var::multiple_of(self.builder.fresh(var.name()), var.range().lo, var.range().hi, var.multiple());
        let renamed: Vec<ElementStmt> = body.iter().map(|element| renamed(element, var, &fresh)).collect();
        let body = self.aside(|this| this.elements(&renamed, place))?;
        let [begin, end] = [&counter.begin, &counter.end].map(|bound| self.index(&normalize(bound), place));
        // For threads without an iteration of the nest, the bounds may be anything; for the others this changes nothing.
        let (begin, end) = (begin.at_least(fresh.range().lo), end.at_most(fresh.range().hi.saturating_add(1)));
        let counter = Counter { var: fresh, begin, end, step: counter.step };
        self.out.push(Stmt::For { counter, unroll: Unroll::Auto, body });
        Ok(())
    }

    fn indexes_fragment(&self, element: &ElementStmt, var: &Var) -> bool {
        let mut found = false;
        element.for_each_access(&mut |access, _| {
            let mentions = access.index.iter().any(|coord| matches!(coord, Coord::At(expr) if expr.mentions(var)));
            found |= mentions && self.kernel.buffers[access.buffer].space == Space::Fragment;
        });
        found
    }
}

fn number(value: i64) -> ThreadValue {
    ThreadValue::Const(DType::I32, Scalar::Int(value))
}

/// 1 where a condition holds, else 0.
fn as_number(cond: ThreadValue) -> ThreadValue {
    ThreadValue::Op(ElementOp::Select, vec![cond, number(1), number(0)])
}

fn substituted(element: &ElementStmt, var: &Var, value: i64) -> ElementStmt {
    element.map_exprs(&|expr| normalize(&expr.with(var, value)))
}

fn renamed(element: &ElementStmt, var: &Var, to: &Var) -> ElementStmt {
    element.map_exprs(&|expr| expr.substitute(&|known| (known == var).then(|| Expr::var(to))))
}

/// The instruction of an atomic operation.
fn inst_of(change: AtomicChange) -> Inst {
    match change {
        AtomicChange::Combine(AtomicOp::Add) => Inst::AtomicAdd,
        AtomicChange::Combine(AtomicOp::Min) => Inst::AtomicMin,
        AtomicChange::Combine(AtomicOp::Max) => Inst::AtomicMax,
        AtomicChange::Combine(AtomicOp::And) => Inst::AtomicAnd,
        AtomicChange::Combine(AtomicOp::Or) => Inst::AtomicOr,
        AtomicChange::Combine(AtomicOp::Xor) => Inst::AtomicXor,
        AtomicChange::Exchange => Inst::AtomicExchange,
        AtomicChange::CompareExchange => Inst::AtomicCompareExchange,
    }
}
