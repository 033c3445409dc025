//! Products that are operands of sums. The ones that form one operation with their sum are marked in the kernel, and
//! are printed as `fmaf`; every other product that reaches a sum is printed so that no compiler fuses the two,
//! whatever its flags: `__fmul_rn(a, b) + c`.

use std::collections::BTreeSet;

use tilewright_ir::Handle;
use tilewright_ir::thread::{Memory, Program, RegArray, Resource, Stmt, Value};
use tilewright_ir::tile::{ElementClass, ElementOp};
use tilewright_layout::DType;

/// Whether an operand of `op` reaches a sum: the op is a sum, or passes its operand on to one.
pub(super) fn reaches_sum(op: ElementOp, reached: bool) -> bool {
    match op {
        ElementOp::Add | ElementOp::Sub => true,
        ElementOp::Neg | ElementOp::Rounded | ElementOp::Select | ElementOp::Abs => reached,
        ElementOp::Max | ElementOp::Min => reached,
        ElementOp::Mul | ElementOp::Div | ElementOp::Rem | ElementOp::Fma | ElementOp::Function(_) => false,
        ElementOp::And | ElementOp::Or | ElementOp::Xor | ElementOp::Not | ElementOp::Shl | ElementOp::Shr => false,
        ElementOp::Lt | ElementOp::Le | ElementOp::Gt | ElementOp::Ge | ElementOp::Eq | ElementOp::Ne => false,
    }
}

/// The function for a product that reaches a sum. A compiler makes a product of a quotient by a constant whose
/// reciprocal is exact.
pub(super) fn rounded(op: ElementOp, dtype: DType, operands: &[Value]) -> Option<&'static str> {
    let by_constant = matches!(operands, [_, Value::Const(..) | Value::Index(..)]);
    match (op, dtype) {
        (ElementOp::Mul, DType::F32) => Some("__fmul_rn"),
        (ElementOp::Mul, DType::F64) => Some("__dmul_rn"),
        (ElementOp::Div, DType::F32) if by_constant => Some("__fdiv_rn"),
        (ElementOp::Div, DType::F64) if by_constant => Some("__ddiv_rn"),
        _ => None,
    }
}

/// Where values of register arrays go. Memories are numbered after the arrays.
pub(crate) struct Flows<'a> {
    program: &'a Program,
    /// Arrays and memories whose values are operands of sums.
    summed: BTreeSet<usize>,
    /// Pairs of arrays of which the second takes values of the first, up to their sign.
    moves: BTreeSet<(usize, usize)>,
}

impl<'a> Flows<'a> {
    pub(crate) fn new(program: &'a Program) -> Flows<'a> {
        Flows { program, summed: BTreeSet::new(), moves: BTreeSet::new() }
    }

    /// The register arrays whose values may become operands of sums, also through memory: NVRTC forwards what a thread
    /// stored to its own loads.
    pub(crate) fn summed_arrays(&self) -> BTreeSet<Handle<RegArray>> {
        let mut summed = self.summed.clone();
        loop {
            let is_new = |(from, to): &&(usize, usize)| summed.contains(to) && !summed.contains(from);
            let more: Vec<usize> = self.moves.iter().filter(is_new).map(|(from, _)| *from).collect();
            if more.is_empty() {
                let arrays = self.program.registers.iter().map(|(array, _)| array);
                return arrays.filter(|array| summed.contains(&array.index())).collect();
            }
            summed.extend(more);
        }
    }

    /// Adds where a statement moves values.
    pub(crate) fn stmt(&mut self, stmt: &Stmt) {
        let mut to = None;
        stmt.writes(&mut |resource| {
            if let Resource::Registers(regs) = resource {
                to = Some(regs.array.index());
            }
        });
        stmt.values().iter().for_each(|value| self.value(value, false, to));
        let moved = match stmt {
            Stmt::Move { to, from } => Some((from.array.index(), to.array.index())),
            Stmt::Store { memory, from, .. } => Some((from.array.index(), self.memory(*memory))),
            Stmt::Load { to, memory, .. } => Some((self.memory(*memory), to.array.index())),
            _ => None,
        };
        self.moves.extend(moved);
    }

    fn memory(&self, memory: Handle<Memory>) -> usize {
        self.program.registers.len() + self.program.owner(memory).index()
    }

    /// `reached`: the value goes into a sum. `to`: it goes into this array, up to its sign.
    fn value(&mut self, value: &Value, reached: bool, to: Option<usize>) {
        match value {
            Value::Const(..) | Value::Index(..) => {}
            Value::Reg(array, _) => {
                if reached {
                    self.summed.insert(array.index());
                }
                self.moves.extend(to.map(|to| (array.index(), to)));
            }
            Value::Op(op, operands) => {
                let inside = reaches_sum(*op, reached);
                let handed_on = reaches_sum(*op, true) && op.class() != ElementClass::Comparison;
                let to = to.filter(|_| handed_on && !reaches_sum(*op, false));
                operands.iter().for_each(|operand| self.value(operand, inside, to));
            }
            Value::Cast(_, _, of) | Value::Bits(_, of) | Value::Part(_, of, _) => self.value(of, reached, to),
            Value::With(of, _, part) => {
                self.value(of, reached, to);
                self.value(part, reached, to);
            }
        }
    }
}
