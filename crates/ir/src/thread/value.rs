//! Values that a thread computes.

use tilewright_expr::Expr;
use tilewright_layout::DType;

use crate::arena::{Arena, Handle};
use crate::scalar::Scalar;
use crate::thread::registers::RegArray;
use crate::tile::{ElementClass, ElementOp, Narrowing};

/// A value of one thread. Truth values have no dtype, and occur only in conditions and selections.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number of this dtype.
    Const(DType, Scalar),
    /// An index expression, as a number of this dtype.
    Index(DType, Expr),
    /// An element of a register array. Its index is a constant in every iteration of the unrolled loops around it.
    Reg(Handle<RegArray>, Expr),
    /// An operation; its operands have one dtype, except for the condition of a selection.
    Op(ElementOp, Vec<Value>),
    /// The value converted to another dtype: rounded to the nearest, or towards zero if to integers.
    Cast(DType, Narrowing, Box<Value>),
    /// The bits of the value, reinterpreted as a dtype of the same size.
    Bits(DType, Box<Value>),
    /// A part of the bits of the value, as wide as the narrower dtype: part 0 is the lowest.
    Part(DType, Box<Value>, i64),
    /// The first value with one of its parts, counted from the lowest, replaced by the bits of the second, narrower
    /// value.
    With(Box<Value>, i64, Box<Value>),
}

impl Value {
    /// The element of a register array at this index.
    pub fn reg(array: Handle<RegArray>, at: i64) -> Value {
        Value::Reg(array, Expr::constant(at))
    }

    /// Its dtype; `None` for truth values.
    pub fn dtype(&self, registers: &Arena<RegArray>) -> Option<DType> {
        match self {
            Value::Const(dtype, _)
            | Value::Index(dtype, _)
            | Value::Cast(dtype, ..)
            | Value::Bits(dtype, _)
            | Value::Part(dtype, _, _) => Some(*dtype),
            Value::Reg(array, _) => Some(registers[*array].dtype),
            Value::With(of, _, _) => of.dtype(registers),
            Value::Op(op, operands) => match op.class() {
                ElementClass::Comparison => None,
                ElementClass::Arithmetic | ElementClass::Floating | ElementClass::Integral | ElementClass::Bitwise => {
                    operands.first()?.dtype(registers)
                }
                ElementClass::Choice => operands.get(1)?.dtype(registers),
            },
        }
    }

    /// Its operands; for [`Value::With`], only the value whose part is replaced.
    pub fn operands(&self) -> &[Value] {
        match self {
            Value::Const(..) | Value::Index(..) | Value::Reg(..) => &[],
            Value::Op(_, operands) => operands,
            Value::Cast(_, _, of) | Value::Bits(_, of) | Value::Part(_, of, _) => std::slice::from_ref(of),
            Value::With(of, _, _) => std::slice::from_ref(of),
        }
    }

    /// Calls `visit` on it and on every value inside.
    pub fn for_each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(self);
        for operand in self.operands() {
            operand.for_each(visit);
        }
        if let Value::With(_, _, part) = self {
            part.for_each(visit);
        }
    }

    /// Calls `visit` on the array and the index of every register inside, mutably.
    pub fn for_each_register_mut(&mut self, visit: &mut dyn FnMut(&mut Handle<RegArray>, &mut Expr)) {
        match self {
            Value::Reg(array, at) => visit(array, at),
            Value::Const(..) | Value::Index(..) => {}
            Value::Op(_, operands) => operands.iter_mut().for_each(|operand| operand.for_each_register_mut(visit)),
            Value::Cast(_, _, of) | Value::Bits(_, of) | Value::Part(_, of, _) => of.for_each_register_mut(visit),
            Value::With(of, _, part) => {
                of.for_each_register_mut(visit);
                part.for_each_register_mut(visit);
            }
        }
    }

    /// Calls `visit` on every index expression inside, mutably.
    pub fn for_each_index_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            Value::Const(..) | Value::Reg(..) => {}
            Value::Index(_, index) => visit(index),
            Value::Op(_, operands) => operands.iter_mut().for_each(|operand| operand.for_each_index_mut(visit)),
            Value::Cast(_, _, of) | Value::Bits(_, of) | Value::Part(_, of, _) => of.for_each_index_mut(visit),
            Value::With(of, _, part) => {
                of.for_each_index_mut(visit);
                part.for_each_index_mut(visit);
            }
        }
    }
}
