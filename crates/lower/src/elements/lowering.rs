//! A nest while it is lowered: what was found so far, and the statements so far.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Cond, RegArray, Regs, Stmt, Value as ThreadValue};
use tilewright_ir::tile::vectors::{Mask, firsts};
use tilewright_ir::tile::{Buffer, Kernel, ScalarParameter, Value};
use tilewright_layout::DType;

use super::active_step::ActiveStep;
use super::atomic_vectors::with_atomic_vectors;
use super::known_slots::KnownSlots;
use super::memory::Address;
use super::moved::VectorAccess;
use super::names::{Name, Named};
use super::nest::Nest;
use super::points::Points;
use crate::builder::{Builder, regs};
use crate::conditions::{merged, under};
use crate::fragment_registers::FragmentRegisters;
use crate::refusal::Refusal;
use crate::threads::members;

/// Lowers a nest, step by step. Error: why it cannot be lowered.
pub(super) fn written_out(kernel: &Kernel, builder: &mut Builder, nest: &Nest) -> Result<Vec<Stmt>, Refusal> {
    let mut lowering = Lowering::new(kernel, builder, nest);
    lowering.steps()?;
    let Lowering { builder, declared, out, .. } = lowering;
    let out = with_atomic_vectors(&builder.program, merged(out));
    Ok(declared.into_iter().chain(out).collect())
}

/// Lowers a value that every thread computes: the statements before it, and the value. Error: why it cannot be lowered.
pub(crate) fn lower_value(
    kernel: &Kernel,
    builder: &mut Builder,
    value: &Value,
) -> Result<(Vec<Stmt>, ThreadValue), Refusal> {
    let nest = Nest::of_condition(kernel);
    let mut lowering = Lowering::new(kernel, builder, &nest);
    let place = ActiveStep { step: 0, mask: lowering.mask(0) };
    let value = lowering.value(value, None, &place)?;
    Ok((lowering.declared.into_iter().chain(merged(lowering.out)).collect(), value))
}

/// Steps for which one statement is lowered in a row.
pub(super) struct NamedTogether {
    pub(super) steps: Range<usize>,
    /// The registers of the value that it names, one for each step.
    pub(super) array: Option<Handle<RegArray>>,
}

/// A nest while it is lowered.
pub(super) struct Lowering<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) builder: &'a mut Builder,
    pub(super) nest: &'a Nest,
    pub(super) points: Points<'a>,
    /// By step, the threads that are the first to execute their iteration: only these write memory.
    pub(super) firsts: Vec<Mask>,
    /// The slots found for the last access to each fragment.
    pub(super) slots: BTreeMap<Handle<Buffer>, KnownSlots>,
    /// The addresses found so far: buffer, index and address.
    pub(super) addresses: Vec<(Handle<Buffer>, Vec<Expr>, Address)>,
    /// The named values in scope, innermost last.
    pub(super) names: Vec<Name>,
    /// The steps of the statement that is lowered, if it is lowered for several steps in a row.
    pub(super) named_together: Option<NamedTogether>,
    /// Declarations, which precede all steps.
    pub(super) declared: Vec<Stmt>,
    /// Accesses that the current steps make together.
    pub(super) moved: Vec<VectorAccess>,
    /// The number of `select` arms around the current value, which is computed even if its arm is not taken.
    pub(super) arms: usize,
    /// The statements so far.
    pub(super) out: Vec<Stmt>,
    /// How many statements of the nest were lowered, one for each step and iteration of loops that are written out.
    pub(super) lowered: usize,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(kernel: &'a Kernel, builder: &'a mut Builder, nest: &'a Nest) -> Lowering<'a> {
        let points = Points::new(&nest.vars, &nest.steps, Expr::var(&kernel.thread()));
        let firsts = firsts(&nest.steps, &nest.steps.owners());
        let of_scalar = |(scalar, array): (&ScalarParameter, &Handle<RegArray>)| Name {
            name: scalar.name.clone(),
            value: Named::Kept(ThreadValue::reg(*array, 0), scalar.dtype),
        };
        let names = kernel.scalars.iter().zip(&builder.program.scalars).map(of_scalar).collect();
        Lowering {
            kernel,
            builder,
            nest,
            points,
            firsts,
            slots: BTreeMap::new(),
            addresses: Vec::new(),
            names,
            named_together: None,
            declared: Vec::new(),
            moved: Vec::new(),
            arms: 0,
            out: Vec::new(),
            lowered: 0,
        }
    }

    /// The threads that have an iteration in a step.
    pub(super) fn mask(&self, step: usize) -> Mask {
        let steps = &self.nest.steps;
        Arc::new((0..steps.threads()).map(|thread| steps.at(thread, step).is_some()).collect())
    }

    /// The statements that `make` adds, kept apart from those added so far.
    pub(super) fn aside(&mut self, make: impl FnOnce(&mut Self) -> Result<(), Refusal>) -> Result<Vec<Stmt>, Refusal> {
        let outer = std::mem::take(&mut self.out);
        let result = make(self);
        let inner = std::mem::replace(&mut self.out, outer);
        result.map(|()| inner)
    }

    /// Adds statements that only the threads of `mask` execute; the threads of `all` are active here.
    pub(super) fn guarded(&mut self, mask: &[bool], all: &[bool], body: Vec<Stmt>) {
        if mask == all {
            self.out.extend(body);
            return;
        }
        if body.is_empty() || !mask.contains(&true) {
            return;
        }
        let conditions = self.conditions(mask);
        self.out.extend(under(&conditions, body));
    }

    /// Conditions that hold exactly for the threads of a set, looked up in a table if necessary.
    pub(super) fn conditions(&mut self, set: &[bool]) -> Vec<Cond> {
        let thread = self.points.thread().clone();
        members(set, &thread, self.builder, &mut self.out)
    }

    /// A register that holds a value: the one that the value is, or a new one.
    pub(super) fn in_register(&mut self, value: ThreadValue, dtype: DType) -> Regs {
        if let ThreadValue::Reg(array, at) = value {
            return Regs { array, first: at, count: 1, step: 1 };
        }
        let array = self.new_registers("r", dtype, 1);
        self.out.push(Stmt::Assign { to: regs(array, 0, 1), value });
        regs(array, 0, 1)
    }

    pub(super) fn new_registers(&mut self, base: &str, dtype: DType, len: i64) -> Handle<RegArray> {
        self.builder.registers(base, dtype, len, 1, &mut self.declared)
    }

    /// The register of a named value in a step: of an array of its own, or of one for all steps that the statement is
    /// lowered for.
    pub(super) fn named_register(&mut self, name: &str, dtype: DType, step: usize) -> (Handle<RegArray>, i64) {
        let Some(NamedTogether { steps, array }) = self.named_together.take() else {
            return (self.new_registers(name, dtype, 1), 0);
        };
        let array = array.unwrap_or_else(|| self.new_registers(name, dtype, steps.len() as i64));
        let at = (step - steps.start) as i64;
        self.named_together = Some(NamedTogether { steps, array: Some(array) });
        (array, at)
    }

    pub(super) fn fragment(&mut self, buffer: Handle<Buffer>) -> Result<Arc<FragmentRegisters>, Refusal> {
        Ok(self.builder.fragment_registers(self.kernel, buffer)?)
    }
}
