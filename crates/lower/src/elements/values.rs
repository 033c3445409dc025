//! Lowers values of elements to values of a thread.

use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, ValueRange, Var};
use tilewright_ir::Scalar;
use tilewright_ir::thread::{Stmt, Value as ThreadValue};
use tilewright_ir::tile::{ElementClass, ElementOp, IndexOp, Narrowing, Space, Value};
use tilewright_layout::DType;

use super::active_step::ActiveStep;
use super::lowering::Lowering;
use super::names::{Name, Named};
use crate::builder::regs;
use crate::refusal::Refusal;

impl Lowering<'_> {
    /// `let name = value`
    pub(super) fn name(&mut self, name: &str, value: &Value, place: &ActiveStep) -> Result<(), Refusal> {
        let named = match (self.dtype_of(value), self.is_truth(value)) {
            (_, true) => {
                let array = self.new_registers(name, DType::I32, 1);
                self.keep_truth(value, array, place)?;
                let zero = ThreadValue::Const(DType::I32, Scalar::Int(0));
                Named::Truth(ThreadValue::Op(ElementOp::Ne, vec![ThreadValue::reg(array, 0), zero]))
            }
            (Some(dtype), false) => {
                let value = self.value(value, Some(dtype), place)?;
                let (array, at) = self.named_register(name, dtype, place.step);
                self.out.push(Stmt::Assign { to: regs(array, at, 1), value });
                Named::Kept(ThreadValue::reg(array, at), dtype)
            }
            (None, false) => Named::Index(self.without_names(value)),
        };
        self.names.push(Name { name: name.to_string(), value: named });
        Ok(())
    }

    /// An untyped value with names replaced by the values they stand for.
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
            Value::Op(op, operands) => match op.class() {
                ElementClass::Comparison => true,
                ElementClass::Bitwise => operands.iter().any(|operand| self.is_truth(operand)),
                ElementClass::Arithmetic | ElementClass::Floating | ElementClass::Integral | ElementClass::Choice => {
                    false
                }
            },
            Value::Named(name) => matches!(self.named(name), Some(Named::Truth(_))),
            Value::Const(_) | Value::Index(_) | Value::Load(_) | Value::Cast(..) => false,
        }
    }

    fn named(&self, name: &str) -> Option<Named> {
        self.names.iter().rev().find(|known| known.name == name).map(|known| known.value.clone())
    }

    /// The dtype of a value; `None` for untyped numbers, whose dtype depends on their use, and for truth values.
    fn dtype_of(&self, value: &Value) -> Option<DType> {
        let named = |name: &str| match self.named(name)? {
            Named::Kept(_, dtype) => Some(dtype),
            Named::Truth(_) | Named::Index(_) => None,
        };
        value.dtype(&self.kernel.buffers, &named)
    }

    /// The range of an untyped integer; `None` for other values.
    fn integer_range(&self, value: &Value) -> Option<ValueRange> {
        match value {
            Value::Const(Scalar::Int(number)) => Some(ValueRange::point(*number)),
            Value::Index(expr) => Some(expr.range()),
            Value::Named(name) => match self.named(name)? {
                Named::Index(value) => self.integer_range(&value),
                Named::Kept(..) | Named::Truth(_) => None,
            },
            Value::Op(op, operands) => {
                let numbers = if op.class() == ElementClass::Choice { operands.get(1..)? } else { operands };
                let ranges: Option<Vec<ValueRange>> =
                    numbers.iter().map(|operand| self.integer_range(operand)).collect();
                op.integer_range(&ranges?)
            }
            Value::Const(Scalar::Float(_)) | Value::Load(_) | Value::Cast(..) => None,
        }
    }

    /// The dtype in which untyped integers are computed, so that the result is exact.
    fn exact_dtype(&self, value: &Value) -> DType {
        let is_narrow = |value: &Value| {
            let range = self.integer_range(value);
            range.is_none_or(|range| [range.lo, range.hi].iter().all(|end| Scalar::Int(*end).fits(DType::I32)))
        };
        let all_narrow = match value {
            Value::Op(_, operands) => is_narrow(value) && operands.iter().all(|of| self.exact_dtype(of) == DType::I32),
            Value::Const(_) | Value::Index(_) | Value::Named(_) | Value::Load(_) | Value::Cast(..) => is_narrow(value),
        };
        if all_narrow { DType::I32 } else { DType::I64 }
    }

    /// An untyped integer as an index expression, if its operations allow it.
    fn expr_of(&self, value: &Value) -> Option<Expr> {
        match value {
            Value::Const(Scalar::Int(number)) => Some(Expr::constant(*number)),
            Value::Index(expr) => Some(expr.clone()),
            Value::Named(name) => match self.named(name)? {
                Named::Index(value) => self.expr_of(&value),
                Named::Kept(..) | Named::Truth(_) => None,
            },
            Value::Op(op, operands) => match (op.index_op()?, &operands[..]) {
                (IndexOp::Add, [a, b]) => Some(self.expr_of(a)? + self.expr_of(b)?),
                (IndexOp::Sub, [a, b]) => Some(self.expr_of(a)? - self.expr_of(b)?),
                (IndexOp::Mul, [a, b]) => Some(self.expr_of(a)? * self.expr_of(b)?),
                (IndexOp::Neg, [a]) => Some(self.expr_of(a)? * -1),
                (IndexOp::Add | IndexOp::Sub | IndexOp::Mul | IndexOp::Neg, _) => None,
            },
            Value::Const(Scalar::Float(_)) | Value::Load(_) | Value::Cast(..) => None,
        }
    }

    /// An untyped integer, computed exactly and then converted.
    fn integer(&mut self, value: &Value, wanted: Option<DType>, place: &ActiveStep) -> Result<ThreadValue, Refusal> {
        let exact = self.exact_dtype(value);
        if let Some(expr) = self.expr_of(value) {
            return Ok(ThreadValue::Index(wanted.unwrap_or(exact), self.index(&normalize(&expr), place)));
        }
        let Value::Op(op, operands) = value else { return Err("an integer that is not an operation".into()) };
        let computed = self.operands(*op, operands, exact, place)?;
        Ok(match wanted {
            Some(dtype) if dtype != exact => ThreadValue::Cast(dtype, Narrowing::Wraps, Box::new(computed)),
            _ => computed,
        })
    }

    fn common_dtype(&self, operands: &[Value]) -> Option<DType> {
        operands.iter().find_map(|operand| self.dtype_of(operand))
    }

    /// Lowers a value; `wanted` is the dtype of untyped numbers.
    pub(super) fn value(
        &mut self,
        value: &Value,
        wanted: Option<DType>,
        place: &ActiveStep,
    ) -> Result<ThreadValue, Refusal> {
        match value {
            Value::Const(number) => {
                let own = |number: &Scalar| match number {
                    Scalar::Int(_) => self.exact_dtype(value),
                    Scalar::Float(_) => DType::F32,
                };
                Ok(ThreadValue::Const(wanted.unwrap_or_else(|| own(number)), *number))
            }
            Value::Index(_) => self.integer(value, wanted, place),
            Value::Named(name) => match self.named(name) {
                Some(Named::Kept(value, _) | Named::Truth(value)) => Ok(value),
                Some(Named::Index(value)) => self.value(&value, wanted, place),
                None => Err(format!("`{name}` is not defined here").into()),
            },
            Value::Load(access) => match self.kernel.buffers[access.buffer].space {
                Space::Fragment => self.read_fragment(access, place),
                Space::Global(_) | Space::Shared => self.load(access, place),
                Space::Tensor => Err("an element of tensor memory".into()),
            },
            Value::Cast(dtype, narrowing, inner) => {
                let from = match self.integer_range(inner) {
                    // Values that the dtype can represent need no conversion.
                    Some(range) if [range.lo, range.hi].iter().all(|end| Scalar::Int(*end).fits(*dtype)) => *dtype,
                    Some(_) => self.exact_dtype(inner),
                    None => self.dtype_of(inner).unwrap_or(if dtype.is_float() { *dtype } else { DType::F32 }),
                };
                let inner = self.value(inner, Some(from), place)?;
                Ok(if from == *dtype { inner } else { ThreadValue::Cast(*dtype, *narrowing, Box::new(inner)) })
            }
            Value::Op(..) if self.integer_range(value).is_some() => self.integer(value, wanted, place),
            Value::Op(op, operands) => self.operation(*op, operands, wanted, place),
        }
    }

    fn operation(
        &mut self,
        op: ElementOp,
        operands: &[Value],
        wanted: Option<DType>,
        place: &ActiveStep,
    ) -> Result<ThreadValue, Refusal> {
        let numbers = if op.class() == ElementClass::Choice { operands.get(1..).unwrap_or_default() } else { operands };
        let all_integers = numbers.iter().all(|operand| self.integer_range(operand).is_some());
        let is_wide = numbers.iter().any(|operand| self.exact_dtype(operand) == DType::I64);
        let untyped = match (all_integers, is_wide) {
            (false, _) => DType::F32,
            (true, false) => DType::I32,
            (true, true) => DType::I64,
        };
        let dtype = match op.class() {
            ElementClass::Comparison => self.common_dtype(numbers).unwrap_or(untyped),
            ElementClass::Floating => self.common_dtype(numbers).or(wanted).unwrap_or(DType::F32),
            ElementClass::Arithmetic | ElementClass::Choice | ElementClass::Integral | ElementClass::Bitwise => {
                self.common_dtype(numbers).or(wanted).unwrap_or(untyped)
            }
        };
        self.operands(op, operands, dtype, place)
    }

    /// Lowers an operation, with its numbers in one dtype.
    fn operands(
        &mut self,
        op: ElementOp,
        operands: &[Value],
        dtype: DType,
        place: &ActiveStep,
    ) -> Result<ThreadValue, Refusal> {
        let mut made = Vec::new();
        for (at, operand) in operands.iter().enumerate() {
            let (is_choice, is_arm) = match op.class() {
                ElementClass::Choice => (at == 0, at > 0),
                ElementClass::Arithmetic | ElementClass::Floating | ElementClass::Comparison => (false, false),
                ElementClass::Integral | ElementClass::Bitwise => (false, false),
            };
            self.arms += usize::from(is_arm);
            let value = self.value(operand, (!is_choice).then_some(dtype), place);
            self.arms -= usize::from(is_arm);
            made.push(value?);
        }
        Ok(with_product(op, dtype, made))
    }

    pub(super) fn index(&mut self, expr: &Expr, place: &ActiveStep) -> Expr {
        self.points.at(expr, place, self.builder, &mut self.out)
    }

    /// An integer read from data, bound to a variable that indices may use.
    pub(super) fn named_integer(&mut self, value: &Value, place: &ActiveStep) -> Result<Expr, Refusal> {
        if let Value::Index(expr) = self.without_names(value) {
            return Ok(expr);
        }
        let dtype = self.dtype_of(value).unwrap_or_else(|| self.exact_dtype(value));
        let value = self.value(value, Some(dtype), place)?;
        let most = if dtype.bytes() >= 4 { i64::from(i32::MAX) } else { 1 << (8 * dtype.bytes()) };
        let var = Var::new(self.builder.fresh("at"), -most, most);
        self.out.push(Stmt::LetValue { var: var.clone(), value });
        Ok(Expr::var(&var))
    }

    fn load(&mut self, access: &tilewright_ir::tile::Access, place: &ActiveStep) -> Result<ThreadValue, Refusal> {
        if let Some((array, register)) = self.moved_register(access, place.step, false) {
            return Ok(ThreadValue::reg(array, register));
        }
        let dtype = self.kernel.buffers[access.buffer].dtype;
        let index = self.coordinates(access, place)?;
        let array = self.new_registers("r", dtype, 1);
        let to = regs(array, 0, 1);
        let limits = self.limits(access, &index);
        let zero = Stmt::Set { to: to.clone(), value: Scalar::Int(0) };
        if !limits.is_empty() {
            self.out.push(zero.clone());
        }
        let is_done =
            self.at_memory(access, (&index, &limits), place, |memory, index| Stmt::Load { to, memory, index });
        if !is_done && limits.is_empty() {
            self.out.push(zero);
        }
        Ok(ThreadValue::reg(array, 0))
    }
}

/// The operation; a quotient by a power of two as the product with its reciprocal, which is the same number.
pub(crate) fn with_product(op: ElementOp, dtype: DType, mut operands: Vec<ThreadValue>) -> ThreadValue {
    if let (ElementOp::Div, DType::F32 | DType::F64, [_, ThreadValue::Const(_, divisor)]) = (op, dtype, &operands[..]) {
        let divisor = divisor.real(dtype);
        let is_power_of_two = divisor.to_bits().trailing_zeros() >= f64::MANTISSA_DIGITS - 1;
        // Far from the ends of both dtypes, so that the reciprocal is normal.
        if is_power_of_two && (1e-30..1e30).contains(&divisor) {
            operands[1] = ThreadValue::Const(dtype, Scalar::Float(1.0 / divisor));
            return ThreadValue::Op(ElementOp::Mul, operands);
        }
    }
    ThreadValue::Op(op, operands)
}
