//! Pairs of values as C++: two floats, two halves, or the roundings of two floats to narrower ones.

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Packed, RegArray, Regs, Value, are_rounded};
use tilewright_ir::tile::ElementOp;
use tilewright_layout::DType;

use super::Values;
use super::functions::{Helper, of_halves};
use crate::defect::unprintable;
use crate::registers::{pointer, vector_name};

impl Values<'_> {
    /// The assignment of two values to adjacent registers.
    pub(crate) fn assigned_pair(&mut self, to: &Regs, values: [&Value; 2]) -> Result<String, Diagnostic> {
        let array = &self.program.registers[to.array];
        let (name, dtype) = (&array.name, array.dtype);
        let packed = Packed::of(&self.program.registers, values);
        let (target, value) = match dtype {
            DType::F32 => (self.pair(to.array, &to.first), self.packed(&packed)?),
            DType::F16 | DType::BF16 => {
                let target = self.word(&pointer(self.program, to.array, &to.first));
                (target, self.assigned_halves(to.array, &packed, dtype)?)
            }
            DType::E4M3 | DType::E5M2 => {
                let target =
                    format!("{}({})", self.helper(Helper::TwoBytes), pointer(self.program, to.array, &to.first));
                (target, self.rounded_floats(values, dtype, Helper::FloatsToBytes(dtype))?)
            }
            _ => return Err(unprintable(format!("`{name}` is assigned a pair of {dtype}"))),
        };
        Ok(format!("{target} = {value}"))
    }

    /// Two halves as a word that is assigned to registers of an array.
    fn assigned_halves(
        &mut self,
        array: Handle<RegArray>,
        packed: &Packed<'_>,
        dtype: DType,
    ) -> Result<String, Diagnostic> {
        self.reaches_sum = self.summed.contains(&array);
        let text = self.packed_halves(packed, dtype);
        self.reaches_sum = false;
        text
    }

    /// Two floats, rounded to halves in a word.
    fn rounded_halves(&mut self, values: [&Value; 2], dtype: DType) -> Result<String, Diagnostic> {
        let helper = if dtype == DType::BF16 { Helper::FloatsToBf16 } else { Helper::FloatsToF16 };
        self.rounded_floats(values, dtype, helper)
    }

    /// Two floats, rounded to a narrower dtype by a function of both.
    fn rounded_floats(&mut self, values: [&Value; 2], dtype: DType, helper: Helper) -> Result<String, Diagnostic> {
        let helper = self.helper(helper);
        let [low, high] = values.map(|value| match value {
            Value::Op(op, operands) => Ok(self.computed(*op, operands, dtype, false)?.text),
            Value::Cast(_, _, of) => self.text(of),
            _ => Err(unprintable(format!("a {dtype} that is not computed as a float"))),
        });
        Ok(format!("{helper}({}, {})", low?, high?))
    }

    /// Two halves as a word.
    fn packed_halves(&mut self, packed: &Packed<'_>, dtype: DType) -> Result<String, Diagnostic> {
        match packed {
            Packed::Registers(array, at) => Ok(self.word(&pointer(self.program, *array, at))),
            Packed::Twice(value) => self.joined_halves([value, value]),
            Packed::Separate(values) if are_rounded(&self.program.registers, *values) => {
                self.rounded_halves(*values, dtype)
            }
            Packed::Separate(values) => self.joined_halves(*values),
            Packed::Op(op, operands) => {
                let Some(helper) = of_halves(*op, dtype) else {
                    return Err(unprintable(format!("`{op}` of pairs of {dtype}")));
                };
                let operands = operands.iter().map(|operand| self.packed_halves(operand, dtype));
                let operands: Vec<String> = operands.collect::<Result<_, _>>()?;
                Ok(format!("{}({})", self.helper(helper), operands.join(", ")))
            }
        }
    }

    fn joined_halves(&mut self, [low, high]: [&Value; 2]) -> Result<String, Diagnostic> {
        let (low, high) = (self.text(low)?, self.text(high)?);
        Ok(format!("{}({low}, {high})", self.helper(Helper::Halves)))
    }

    /// Two adjacent registers as one.
    fn pair(&mut self, array: Handle<RegArray>, at: &Expr) -> String {
        let RegArray { name, len, vector, .. } = &self.program.registers[array];
        match at.as_const() {
            Some(at) if *vector == 2 => vector_name(name, len / vector, at / vector),
            _ => format!("{}({})", self.helper(Helper::Pair), pointer(self.program, array, at)),
        }
    }

    /// Adjacent registers that are a word, as one.
    pub(crate) fn word(&mut self, pointer: &str) -> String {
        format!("{}({pointer})", self.helper(Helper::Word))
    }

    fn packed(&mut self, packed: &Packed<'_>) -> Result<String, Diagnostic> {
        match packed {
            Packed::Registers(array, at) => Ok(self.pair(*array, at)),
            Packed::Twice(value) => {
                let value = self.text(value)?;
                Ok(self.twice(&value))
            }
            Packed::Separate([low, high]) => {
                let (low, high) = (self.text(low)?, self.text(high)?);
                Ok(format!("{}({low}, {high})", self.uses.visible("make_float2")))
            }
            Packed::Op(op, operands) => self.packed_operation(*op, operands),
        }
    }

    fn packed_operation(&mut self, op: ElementOp, operands: &[Packed<'_>]) -> Result<String, Diagnostic> {
        // There is no difference of pairs: it is a sum with the negative number, which a product by -1 gives exactly.
        if let (ElementOp::Sub, [a, Packed::Twice(b)]) = (op, operands) {
            let a = self.packed(a)?;
            let negative = Value::Op(ElementOp::Neg, vec![(*b).clone()]);
            let negative = self.text(&negative)?;
            let b = self.twice(&negative);
            return Ok(format!("{}({a}, {b})", self.uses.visible("__fadd2_rn")));
        }
        if let (ElementOp::Sub, [a, b]) = (op, operands) {
            let (a, b) = (self.packed(a)?, self.packed(b)?);
            let minus_one = self.twice("-1.0f");
            return Ok(format!("{}({b}, {minus_one}, {a})", self.uses.visible("__ffma2_rn")));
        }
        let function = match op {
            ElementOp::Add => "__fadd2_rn",
            ElementOp::Mul => "__fmul2_rn",
            ElementOp::Fma => "__ffma2_rn",
            _ => return Err(unprintable(format!("`{op}` of pairs"))),
        };
        let operands: Result<Vec<String>, Diagnostic> = operands.iter().map(|operand| self.packed(operand)).collect();
        Ok(format!("{}({})", self.uses.visible(function), operands?.join(", ")))
    }

    fn twice(&mut self, value: &str) -> String {
        format!("{}({value})", self.helper(Helper::Twice))
    }
}
