//! Checks of the types of values.

use tilewright_layout::DType;

use super::checker::Checker;
use crate::thread::packed::{Packed, are_rounded};
use crate::thread::registers::Regs;
use crate::thread::value::Value;
use crate::tile::{ElementClass, ElementOp};

impl Checker<'_> {
    /// The dtype of a value, `None` for truth values; checks that its operands fit.
    pub(super) fn value(&mut self, value: &Value) -> Option<DType> {
        match value {
            Value::Const(dtype, _) | Value::Index(dtype, _) => Some(*dtype),
            Value::Reg(array, _) => Some(self.program.registers[*array].dtype),
            Value::Cast(to, _, of) => {
                if self.value(of).is_none() {
                    self.report("V0319", "a truth value where a number is needed".to_string());
                }
                Some(*to)
            }
            Value::Bits(to, of) => {
                if self.value(of).is_none_or(|from| from.bytes() != to.bytes()) {
                    self.report("V0319", format!("the bits of a value of another size as {to}"));
                }
                Some(*to)
            }
            Value::Part(to, of, at) => {
                let inside = self.value(of).is_some_and(|from| (at + 1) * to.bytes() <= from.bytes() && *at >= 0);
                if !inside {
                    self.report("V0319", format!("part {at} as {to} lies outside of the value"));
                }
                Some(*to)
            }
            Value::With(of, at, part) => {
                let (whole, part) = (self.value(of), self.value(part));
                let fits = |(whole, part): (DType, DType)| (at + 1) * part.bytes() <= whole.bytes() && *at >= 0;
                if !whole.zip(part).is_some_and(fits) {
                    self.report("V0319", format!("part {at} lies outside of the value"));
                }
                whole
            }
            Value::Op(op, operands) => self.operation(*op, operands),
        }
    }

    /// Whether instructions compute these two values for adjacent registers: two floats, two halves, or the roundings of
    /// two floats to halves.
    pub(super) fn is_pair(&mut self, to: &Regs, values: &[Value; 2]) -> bool {
        let dtype = self.dtype_of(to);
        if values.iter().any(|value| self.value(value) != Some(dtype)) {
            return false;
        }
        let registers = &self.program.registers;
        match dtype {
            DType::F32 => {
                let target = self.program.target;
                if Packed::of(registers, values.each_ref()).operations() > 0 && !target.has_pairs_of_f32() {
                    self.report("V0314", format!("an instruction on pairs of f32 does not exist on {target}"));
                }
                true
            }
            _ => {
                let values = values.each_ref();
                are_rounded(registers, values) || Packed::of(registers, values).operations() > 0
            }
        }
    }

    fn operation(&mut self, op: ElementOp, operands: &[Value]) -> Option<DType> {
        let dtypes: Vec<Option<DType>> = operands.iter().map(|operand| self.value(operand)).collect();
        let numbers = match op.class() {
            ElementClass::Choice => dtypes.get(1..).unwrap_or_default(),
            ElementClass::Arithmetic | ElementClass::Floating | ElementClass::Comparison => &dtypes,
            ElementClass::Integral | ElementClass::Bitwise => &dtypes,
        };
        if op.class() == ElementClass::Bitwise
            && dtypes.len() == op.arity()
            && dtypes.iter().all(|dtype| dtype.is_none())
        {
            return None;
        }
        let first = numbers.first().copied().flatten();
        let of_one = first.is_some() && numbers.iter().all(|dtype| *dtype == first);
        let decided = op.class() != ElementClass::Choice || dtypes.first() == Some(&None);
        let is_accepted = match op.class() {
            ElementClass::Floating => first.is_some_and(DType::is_float),
            ElementClass::Integral | ElementClass::Bitwise => first.is_some_and(DType::is_integer),
            ElementClass::Arithmetic | ElementClass::Comparison | ElementClass::Choice => true,
        };
        if operands.len() != op.arity() || !of_one || !decided || !is_accepted {
            self.report("V0319", format!("`{op}` has operands that it does not accept"));
        }
        if op.class() == ElementClass::Comparison { None } else { first }
    }
}
