//! Pairs of values as C++: two floats, or the roundings of two floats to halves.

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Packed, RegArray, Regs, Value, halves};
use tilewright_ir::tile::ElementOp;
use tilewright_layout::DType;

use super::Values;
use super::functions::Helper;
use crate::defect::unprintable;
use crate::registers::{pointer, vector_name};

impl Values<'_> {
    /// The assignment of two values to adjacent registers.
    pub(crate) fn assigned_pair(&mut self, to: &Regs, values: [&Value; 2]) -> Result<String, Diagnostic> {
        let array = &self.program.registers[to.array];
        let (name, dtype) = (&array.name, array.dtype);
        if let Some([low, high]) = halves(&self.program.registers, values) {
            let (low, high) = (self.assigned(to.array, low)?, self.assigned(to.array, high)?);
            let helper = self.helper(if dtype == DType::BF16 { Helper::FloatsToBf16 } else { Helper::FloatsToF16 });
            let target = self.word(&pointer(self.program, to.array, &to.first));
            return Ok(format!("{target} = {helper}({low}, {high})"));
        }
        if dtype != DType::F32 {
            return Err(unprintable(format!("`{name}` is assigned a pair of {dtype}")));
        }
        let packed = Packed::of(&self.program.registers, values);
        let (target, value) = (self.pair(to.array, &to.first), self.packed(&packed)?);
        Ok(format!("{target} = {value}"))
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
                Ok(format!("{}({low}, {high})", self.function("make_float2")))
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
            return Ok(format!("{}({a}, {b})", self.function("__fadd2_rn")));
        }
        if let (ElementOp::Sub, [a, b]) = (op, operands) {
            let (a, b) = (self.packed(a)?, self.packed(b)?);
            let minus_one = self.twice("-1.0f");
            return Ok(format!("{}({b}, {minus_one}, {a})", self.function("__ffma2_rn")));
        }
        let function = match op {
            ElementOp::Add => "__fadd2_rn",
            ElementOp::Mul => "__fmul2_rn",
            ElementOp::Fma => "__ffma2_rn",
            _ => return Err(unprintable(format!("`{op}` of pairs"))),
        };
        let operands: Result<Vec<String>, Diagnostic> = operands.iter().map(|operand| self.packed(operand)).collect();
        Ok(format!("{}({})", self.function(function), operands?.join(", ")))
    }

    fn twice(&mut self, value: &str) -> String {
        format!("{}({value})", self.helper(Helper::Twice))
    }
}
