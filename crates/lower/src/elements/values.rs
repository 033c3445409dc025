//! Values of elements as values of a thread.

use tilewright_expr::{Expr, Var};
use tilewright_ir::Scalar;
use tilewright_ir::thread::{Stmt, Value as ThreadValue};
use tilewright_ir::tile::{ElementClass, ElementOp, Space, Value};
use tilewright_layout::DType;

use super::{Lowering, Place};
use crate::builder::regs;

/// A value that was named.
#[derive(Clone)]
pub(super) struct Name {
    name: String,
    value: Named,
}

/// What a name stands for.
#[derive(Clone)]
enum Named {
    /// A value in a register.
    Kept(ThreadValue, DType),
    /// A truth value.
    Truth(ThreadValue),
    /// An integer of indices, of whatever dtype is needed.
    Index(Value),
}

impl Lowering<'_> {
    /// `let name = value`
    pub(super) fn name(&mut self, name: &str, value: &Value, place: &Place) -> Result<(), String> {
        let named = match (self.dtype_of(value), self.is_truth(value)) {
            (_, true) => {
                let array = self.new_registers(name, DType::I32, 1);
                self.keep_truth(value, array, place)?;
                let zero = ThreadValue::Const(DType::I32, Scalar::Int(0));
                Named::Truth(ThreadValue::Op(ElementOp::Ne, vec![ThreadValue::Reg(array, 0), zero]))
            }
            (Some(dtype), false) => {
                let value = self.value(value, Some(dtype), place)?;
                let array = self.new_registers(name, dtype, 1);
                self.out.push(Stmt::Assign { to: regs(array, 0, 1), value });
                Named::Kept(ThreadValue::Reg(array, 0), dtype)
            }
            (None, false) => Named::Index(self.without_names(value)),
        };
        self.names.push(Name { name: name.to_string(), value: named });
        Ok(())
    }

    /// An untyped value whose names are replaced by what they stand for.
    fn without_names(&self, value: &Value) -> Value {
        match value {
            Value::Named(name) => match self.named(name) {
                Some(Named::Index(value)) => value,
                Some(Named::Kept(..) | Named::Truth(_)) | None => value.clone(),
            },
            Value::Op(op, operands) => {
                Value::Op(*op, operands.iter().map(|operand| self.without_names(operand)).collect())
            }
            Value::Const(_) | Value::Index(_) | Value::Load(_) | Value::Cast(..) => value.clone(),
        }
    }

    fn is_truth(&self, value: &Value) -> bool {
        match value {
            Value::Op(op, _) => op.class() == ElementClass::Comparison,
            Value::Named(name) => matches!(self.named(name), Some(Named::Truth(_))),
            Value::Const(_) | Value::Index(_) | Value::Load(_) | Value::Cast(..) => false,
        }
    }

    fn named(&self, name: &str) -> Option<Named> {
        self.names.iter().rev().find(|known| known.name == name).map(|known| known.value.clone())
    }

    /// The dtype of a value; `None` for numbers that have whatever dtype is needed, and for truth values.
    fn dtype_of(&self, value: &Value) -> Option<DType> {
        match value {
            Value::Const(_) | Value::Index(_) => None,
            Value::Named(name) => match self.named(name)? {
                Named::Kept(_, dtype) => Some(dtype),
                Named::Truth(_) | Named::Index(_) => None,
            },
            Value::Load(access) => Some(self.kernel.buffers[access.buffer].dtype),
            Value::Cast(dtype, _) => Some(*dtype),
            Value::Op(op, operands) => match op.class() {
                ElementClass::Comparison => None,
                ElementClass::Arithmetic | ElementClass::Floating => self.common_dtype(operands),
                ElementClass::Choice => self.common_dtype(operands.get(1..)?),
            },
        }
    }

    fn common_dtype(&self, operands: &[Value]) -> Option<DType> {
        operands.iter().find_map(|operand| self.dtype_of(operand))
    }

    /// A value of a thread; `wanted` is the dtype of numbers that have none of their own.
    pub(super) fn value(&mut self, value: &Value, wanted: Option<DType>, place: &Place) -> Result<ThreadValue, String> {
        match value {
            Value::Const(number) => Ok(ThreadValue::Const(wanted.unwrap_or_else(|| of_constant(*number)), *number)),
            Value::Index(expr) => Ok(ThreadValue::Index(wanted.unwrap_or(DType::I32), self.index(expr, place))),
            Value::Named(name) => match self.named(name) {
                Some(Named::Kept(value, _) | Named::Truth(value)) => Ok(value),
                Some(Named::Index(value)) => self.value(&value, wanted, place),
                None => Err(format!("`{name}` is not defined here")),
            },
            Value::Load(access) => match self.kernel.buffers[access.buffer].space {
                Space::Fragment => self.read_fragment(access, place),
                Space::Global(_) | Space::Shared => self.load(access, place),
            },
            Value::Cast(dtype, inner) => {
                let from = self.dtype_of(inner);
                let inner = self.value(inner, from.or(Some(*dtype)), place)?;
                Ok(if from.is_none_or(|from| from == *dtype) {
                    inner
                } else {
                    ThreadValue::Cast(*dtype, Box::new(inner))
                })
            }
            Value::Op(op, operands) => self.operation(*op, operands, wanted, place),
        }
    }

    fn operation(
        &mut self,
        op: ElementOp,
        operands: &[Value],
        wanted: Option<DType>,
        place: &Place,
    ) -> Result<ThreadValue, String> {
        let numbers = if op.class() == ElementClass::Choice { operands.get(1..).unwrap_or_default() } else { operands };
        let real = operands.iter().any(|operand| matches!(operand, Value::Const(Scalar::Float(_))));
        let untyped = if real { DType::F32 } else { DType::I32 };
        let dtype = match op.class() {
            ElementClass::Comparison => self.common_dtype(numbers).unwrap_or(untyped),
            ElementClass::Floating => self.common_dtype(numbers).or(wanted).unwrap_or(DType::F32),
            ElementClass::Arithmetic | ElementClass::Choice => self.common_dtype(numbers).or(wanted).unwrap_or(untyped),
        };
        let mut made = Vec::new();
        for (at, operand) in operands.iter().enumerate() {
            let is_choice = op.class() == ElementClass::Choice && at == 0;
            made.push(self.value(operand, (!is_choice).then_some(dtype), place)?);
        }
        Ok(ThreadValue::Op(op, made))
    }

    fn index(&mut self, expr: &Expr, place: &Place) -> Expr {
        self.points.at(expr, place.step, &place.mask, self.builder, &mut self.out)
    }

    /// An integer that data says, under a name that may stand in indices.
    pub(super) fn named_integer(&mut self, value: &Value, place: &Place) -> Result<Expr, String> {
        if let Value::Index(expr) = self.without_names(value) {
            return Ok(expr);
        }
        let dtype = self.dtype_of(value).unwrap_or(DType::I32);
        let value = self.value(value, Some(dtype), place)?;
        let most = if dtype.bytes() >= 4 { i64::from(i32::MAX) } else { 1 << (8 * dtype.bytes()) };
        let var = Var::new(self.builder.fresh("at"), -most, most);
        self.out.push(Stmt::Name { var: var.clone(), value });
        Ok(Expr::var(&var))
    }

    fn load(&mut self, access: &tilewright_ir::tile::Access, place: &Place) -> Result<ThreadValue, String> {
        if let Some((array, register)) = self.moved_register(access, place.step, false) {
            return Ok(ThreadValue::Reg(array, register));
        }
        let dtype = self.kernel.buffers[access.buffer].dtype;
        let index = self.coordinates(access, place)?;
        let array = self.new_registers("r", dtype, 1);
        let to = regs(array, 0, 1);
        let may_be_outside =
            !super::bounds(self.kernel, &self.kernel.buffers[access.buffer], &index, &mut self.points).is_empty();
        if may_be_outside {
            self.out.push(Stmt::Set { to: to.clone(), value: Scalar::Int(0) });
        }
        self.at_memory(access, &index, place, |memory, index| Stmt::Load { to, memory, index })?;
        Ok(ThreadValue::Reg(array, 0))
    }
}

fn of_constant(number: Scalar) -> DType {
    match number {
        Scalar::Int(_) => DType::I32,
        Scalar::Float(_) => DType::F32,
    }
}
