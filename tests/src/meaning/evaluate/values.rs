//! Values of elements, and the conditions and indices computed from them.

use tilewright::expr::{Expr, Var};
use tilewright::ir::Scalar;
use tilewright::ir::tile::{Access, Coord, ElementClass, ElementOp, Value};
use tilewright::layout::DType;

use super::machine::{Machine, Meaningless, Number, Outcome, unknown};
use crate::meaning::numbers;

impl Machine<'_> {
    pub(super) fn expr(&self, expr: &Expr) -> Outcome<i64> {
        let value = |var: &Var| self.env.iter().rev().find(|(known, _)| known == var).map(|(_, value)| *value);
        expr.eval(&value).or_else(|why| unknown(format!("{expr}: {why}")))
    }

    pub(super) fn index(&mut self, access: &Access) -> Outcome<Vec<i64>> {
        let mut index = Vec::new();
        for coord in &access.index {
            index.push(match coord {
                Coord::At(expr) => self.expr(expr)?,
                Coord::Data(value) => match self.value(value, None)? {
                    Number::Integer(value) => value as i64,
                    Number::Of(dtype, bits) if dtype.is_integer() => numbers::integer(dtype, bits) as i64,
                    _ => return unknown("an index must be an integer"),
                },
            });
        }
        Ok(index)
    }

    pub(super) fn holds(&mut self, cond: &Value) -> Outcome<bool> {
        match self.value(cond, None)? {
            Number::Truth(holds) => Ok(holds),
            _ => unknown("a condition must be a truth value"),
        }
    }

    pub(super) fn value(&mut self, value: &Value, wanted: Option<DType>) -> Outcome<Number> {
        match value {
            Value::Const(Scalar::Int(value)) => Ok(Number::Integer(i128::from(*value))),
            Value::Const(Scalar::Float(value)) => Ok(Number::Real(*value)),
            Value::Index(expr) => Ok(Number::Integer(i128::from(self.expr(expr)?))),
            Value::Named(name) => match self.names.iter().rev().find(|(known, _)| known == name) {
                Some((_, value)) => Ok(*value),
                None => unknown(format!("unknown name `{name}`")),
            },
            Value::Load(access) => {
                let index = self.index(access)?;
                let dtype = self.kernel.buffers[access.buffer].dtype;
                Ok(Number::Of(dtype, self.get(access.buffer, &index)?))
            }
            Value::Cast(dtype, narrowing, of) => {
                let bits = match self.value(of, Some(*dtype))? {
                    Number::Of(from, bits) => numbers::cast(from, *dtype, *narrowing, bits),
                    Number::Integer(value) => numbers::cast_integer(*dtype, *narrowing, value),
                    Number::Real(value) if dtype.is_float() => numbers::rounded(*dtype, value),
                    Number::Real(value) => numbers::cast(DType::F64, *dtype, *narrowing, value.to_bits()),
                    Number::Truth(_) => return unknown("a truth value as a number"),
                };
                Ok(Number::Of(*dtype, bits))
            }
            Value::Op(ElementOp::Select, operands) => {
                let [cond, then, otherwise] = &operands[..] else { return unknown("a malformed selection") };
                let dtype = self.dtype(then).or(self.dtype(otherwise)).or(wanted);
                let chosen = if self.holds(cond)? { then } else { otherwise };
                let chosen = self.value(chosen, dtype)?;
                match (self.dtype(then).or(self.dtype(otherwise)), chosen) {
                    (Some(dtype), number) => Ok(Number::Of(dtype, converted(number, dtype)?)),
                    (None, number) => Ok(number),
                }
            }
            Value::Op(op, operands) => self.operation(*op, operands, wanted),
        }
    }

    pub(super) fn dtype(&self, value: &Value) -> Option<DType> {
        let named = |name: &str| match self.names.iter().rev().find(|(known, _)| known == name)?.1 {
            Number::Of(dtype, _) => Some(dtype),
            _ => None,
        };
        value.dtype(&self.kernel.buffers, &named)
    }

    pub(super) fn operation(&mut self, op: ElementOp, operands: &[Value], wanted: Option<DType>) -> Outcome<Number> {
        let common = operands.iter().find_map(|operand| self.dtype(operand));
        let inner = common.or(wanted.filter(|_| op.class() != ElementClass::Comparison));
        let mut given = Vec::new();
        for operand in operands {
            given.push(self.value(operand, inner)?);
        }
        let truths: Option<Vec<u64>> = given
            .iter()
            .map(|number| match number {
                Number::Truth(holds) => Some(u64::from(*holds)),
                _ => None,
            })
            .collect();
        if let Some(truths) = truths {
            let holds = numbers::of_truths(op, &truths).map_err(Meaningless::Unknown)?;
            return Ok(Number::Truth(holds != 0));
        }
        let whole: Option<Vec<i128>> = given
            .iter()
            .map(|number| match number {
                Number::Integer(value) => Some(*value),
                _ => None,
            })
            .collect();
        if let (None, Some(values)) = (common, whole) {
            return exact(op, &values);
        }
        let dtype = common.or(wanted.filter(|dtype| dtype.is_float())).unwrap_or(DType::F32);
        let bits: Vec<u64> = given.into_iter().map(|number| converted(number, dtype)).collect::<Outcome<_>>()?;
        let result = numbers::apply(op, dtype, &bits).map_err(Meaningless::Unknown)?;
        Ok(if op.class() == ElementClass::Comparison { Number::Truth(result != 0) } else { Number::Of(dtype, result) })
    }
}

/// Integers without a dtype, computed exactly.
fn exact(op: ElementOp, values: &[i128]) -> Outcome<Number> {
    match (numbers::exact(op, values), values) {
        (Some(value), _) => Ok(Number::Integer(value)),
        (None, [a, b]) => match op.comparison() {
            Some(comparison) => Ok(Number::Truth(comparison.holds(*a as i64, *b as i64))),
            None => unknown(format!("`{op}` of integers")),
        },
        (None, _) => unknown(format!("`{op}` of integers")),
    }
}

pub(super) fn converted(number: Number, dtype: DType) -> Outcome<u64> {
    match number {
        Number::Of(known, bits) if known == dtype => Ok(bits),
        Number::Of(known, _) => unknown(format!("{known} where {dtype} is expected")),
        Number::Integer(value) => Ok(numbers::of_integer(dtype, value)),
        Number::Real(value) if dtype.is_float() => Ok(numbers::rounded(dtype, value)),
        Number::Real(_) | Number::Truth(_) => unknown("a number of another kind"),
    }
}
