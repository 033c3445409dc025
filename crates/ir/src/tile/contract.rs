//! Contraction: a product and the sum around it become one operation that is rounded once.
//!
//! It is decided here, on values as the user wrote them, so that the result is the same whatever later stages, NVRTC
//! and ptxas do: in `x + y` and `x - y` the left operand is fused if it is a product, else the right one. Products that
//! were stored or named are not fused. 16-bit floats are rounded after every operation, and integers are exact.

use std::sync::Arc;

use tilewright_layout::DType;

use crate::arena::Arena;
use crate::tile::buffer::Buffer;
use crate::tile::combiner::{Combiner, Parameter};
use crate::tile::element::ElementStmt;
use crate::tile::kernel::{If, Kernel, Stmt};
use crate::tile::value::{ElementClass, ElementOp, Value};

/// The kernel with products fused into sums, unless the user disabled contraction.
pub(super) fn contract(mut kernel: Kernel) -> Kernel {
    if !kernel.contracts {
        return kernel;
    }
    let Kernel { buffers, parallels, combiners, body, .. } = &mut kernel;
    combiners.iter_mut().for_each(|combiner| of_function(combiner, buffers));
    let handles: Vec<_> = parallels.iter().map(|(handle, _)| handle).collect();
    for handle in handles {
        Contraction { buffers, names: Vec::new() }.elements(&mut parallels[handle].body);
    }
    Contraction { buffers, names: Vec::new() }.body(body);
    kernel
}

/// What a function of tuples computes, with products fused.
fn of_function(combiner: &mut Combiner, buffers: &Arena<Buffer>) {
    let mut contraction = Contraction { buffers, names: Vec::new() };
    for Parameter { names, dtype } in &combiner.parameters {
        contraction.names.extend(names.iter().map(|name| (name.clone(), *dtype)));
    }
    for (name, value) in &mut combiner.named {
        *value = contraction.value(value, None);
        contraction.names.extend(contraction.dtype(value).map(|dtype| (name.clone(), dtype)));
    }
    for (result, parameter) in combiner.results.iter_mut().zip(&combiner.parameters) {
        *result = contraction.value(result, Some(parameter.dtype));
    }
}

struct Contraction<'a> {
    /// The buffers of the kernel, for the dtypes of their elements.
    buffers: &'a Arena<Buffer>,
    /// Named values in scope that have a dtype.
    names: Vec<(String, DType)>,
}

impl Contraction<'_> {
    fn body(&mut self, body: &mut [Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Op(_) | Stmt::Parallel(_) | Stmt::Begin(_) | Stmt::End(_) => {}
                Stmt::Loop(inner) => self.body(&mut inner.body),
                Stmt::EachThread(elements) => self.elements(elements),
                Stmt::If(If { cond, then, otherwise, .. }) => {
                    *cond = self.value(cond, None);
                    self.body(then);
                    self.body(otherwise);
                }
            }
        }
    }

    fn elements(&mut self, body: &mut [ElementStmt]) {
        let names = self.names.len();
        for element in body {
            match element {
                ElementStmt::Let { name, value, .. } => {
                    *value = self.value(value, None);
                    self.names.extend(self.dtype(value).map(|dtype| (name.clone(), dtype)));
                }
                ElementStmt::Store { to, value, .. } => {
                    *value = self.value(value, Some(self.buffers[to.buffer].dtype));
                }
                ElementStmt::Atomic(atomic) => {
                    let dtype = self.buffers[atomic.to.buffer].dtype;
                    atomic.condition.iter_mut().for_each(|condition| *condition = self.value(condition, None));
                    let values = atomic.expected.iter_mut().chain([&mut atomic.value]);
                    values.for_each(|value| *value = self.value(value, Some(dtype)));
                    self.names.extend(atomic.old.iter().map(|old| (old.name.clone(), dtype)));
                }
                ElementStmt::If { cond, then, otherwise, .. } => {
                    *cond = self.value(cond, None);
                    self.elements(then);
                    self.elements(otherwise);
                }
                ElementStmt::For { body, .. } => self.elements(body),
            }
        }
        self.names.truncate(names);
    }

    fn dtype(&self, value: &Value) -> Option<DType> {
        let named = |name: &str| self.names.iter().rev().find(|(known, _)| known == name).map(|(_, dtype)| *dtype);
        value.dtype(self.buffers, &named)
    }

    /// The value with products fused; `wanted` is the dtype that numbers without one take.
    fn value(&self, value: &Value, wanted: Option<DType>) -> Value {
        match value {
            Value::Const(_) | Value::Index(_) | Value::Named(_) | Value::Load(_) => value.clone(),
            Value::Cast(dtype, narrowing, of) => {
                Value::Cast(*dtype, *narrowing, Arc::new(self.value(of, Some(*dtype))))
            }
            Value::Op(op, operands) => {
                let dtype = match op.class() {
                    ElementClass::Comparison => operands.iter().find_map(|operand| self.dtype(operand)),
                    ElementClass::Bitwise => self.dtype(value),
                    ElementClass::Arithmetic
                    | ElementClass::Floating
                    | ElementClass::Integral
                    | ElementClass::Choice => self.dtype(value).or(wanted),
                };
                let operands = operands.iter().map(|operand| self.value(operand, dtype)).collect();
                match dtype {
                    Some(DType::F32 | DType::F64) => fused(*op, operands),
                    _ => Value::Op(*op, operands.into()),
                }
            }
        }
    }
}

/// The operation, fused with a product among its operands if there is one.
fn fused(op: ElementOp, operands: Vec<Value>) -> Value {
    let negative = |value: &Value| Value::Op(ElementOp::Neg, [value.clone()].into());
    let (is_sum, is_difference) = (op == ElementOp::Add, op == ElementOp::Sub);
    let fma = |a: &Value, b: &Value, c: Value| Value::Op(ElementOp::Fma, [a.clone(), b.clone(), c].into());
    match &operands[..] {
        [Value::Op(ElementOp::Mul, product), y] if is_sum || is_difference => match &product[..] {
            [a, b] => fma(a, b, if is_sum { y.clone() } else { negative(y) }),
            _ => Value::Op(op, operands.into()),
        },
        [x, Value::Op(ElementOp::Mul, product)] if is_sum || is_difference => match &product[..] {
            [a, b] if is_sum => fma(a, b, x.clone()),
            [a, b] => fma(&negative(a), b, x.clone()),
            _ => Value::Op(op, operands.into()),
        },
        _ => Value::Op(op, operands.into()),
    }
}
