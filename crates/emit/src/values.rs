//! Values as C++.
//!
//! C++ computes narrow integers as `int`, and has no half-precision types: halves are held as their bits. So results in
//! narrow dtypes are narrowed again, and halves are computed as `float` and rounded after every operation, which gives
//! the correct result because a `float` has more than twice as many digits. Two halves at once have instructions of their
//! own ([`pairs`]).

mod activations;
mod atomics;
mod bits;
mod functions;
mod pairs;
pub(crate) mod products;
#[cfg(test)]
mod tests;
mod text;
mod wrapping;

use std::collections::BTreeSet;

use tilewright_diag::Diagnostic;
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Program, RegArray, Value};
use tilewright_ir::tile::{ElementClass, ElementOp, Narrowing};
use tilewright_ir::{Handle, Scalar, Target};
use tilewright_layout::DType;

use self::functions::{Helper, Spelling, spelling};
use self::text::{Printed, Text};
use self::wrapping::Wrapping;
use crate::defect::unprintable;
use crate::dtype::{c_type, literal, widened_literal};
use crate::index::{Level, c_operand, needs_64_bits};
use crate::registers::register;
use crate::uses::Uses;

/// Prints values, and records the functions that they need.
pub(crate) struct Values<'a> {
    program: &'a Program,
    uses: &'a Uses<'a>,
    /// Names of the kernel that have type `long long`.
    long_names: BTreeSet<String>,
    /// Functions that the printed values call.
    helpers: BTreeSet<Helper>,
    /// Register arrays whose values may become operands of sums.
    summed: BTreeSet<Handle<RegArray>>,
    /// Whether the value that is printed now becomes an operand of a sum.
    reaches_sum: bool,
    /// A call that is printed in place of the register that it writes.
    inside: Option<(Handle<RegArray>, String)>,
}

impl<'a> Values<'a> {
    pub(crate) fn new(program: &'a Program, uses: &'a Uses<'a>) -> Values<'a> {
        Values {
            program,
            uses,
            long_names: BTreeSet::new(),
            helpers: BTreeSet::new(),
            summed: uses.summed_arrays(),
            reaches_sum: false,
            inside: None,
        }
    }

    /// The lines that define the functions that were needed.
    pub(crate) fn functions(&self) -> Vec<String> {
        self.helpers.iter().flat_map(|helper| helper.definition()).collect()
    }

    /// The names of those functions.
    pub(crate) fn function_names(&self) -> impl Iterator<Item = &'static str> {
        self.helpers.iter().map(|helper| helper.name())
    }

    /// The value as a C++ expression.
    pub(crate) fn text(&mut self, value: &Value) -> Result<String, Diagnostic> {
        Ok(self.print(value)?.text)
    }

    /// The value as a C++ expression that is assigned to a register of this array.
    pub(crate) fn assigned(&mut self, array: Handle<RegArray>, value: &Value) -> Result<String, Diagnostic> {
        self.reaches_sum = self.summed.contains(&array);
        let text = self.text(value);
        self.reaches_sum = false;
        text
    }

    /// The same, with a call in place of the register that it writes.
    pub(crate) fn assigned_with(
        &mut self,
        array: Handle<RegArray>,
        value: &Value,
        call: (Handle<RegArray>, String),
    ) -> Result<String, Diagnostic> {
        self.inside = Some(call);
        let text = self.assigned(array, value);
        self.inside = None;
        text
    }

    /// The declaration of a name for an integer.
    pub(crate) fn named(&mut self, var: &Var, value: &Value) -> Result<String, Diagnostic> {
        let is_long = self.dtype(value)?.bytes() == 8;
        let text = self.text(value)?;
        if is_long {
            self.long_names.insert(var.name().to_string());
        }
        let c_type = if is_long { "long long" } else { "int" };
        Ok(format!("const {c_type} {} = {text}", var.name()))
    }

    fn print(&mut self, value: &Value) -> Printed {
        match value {
            Value::Const(dtype, value) => Ok(constant(*dtype, *value)),
            Value::Index(dtype, index) => Ok(self.index_value(*dtype, index)),
            Value::Reg(array, at) => match &self.inside {
                Some((inside, call)) if inside == array => Ok(Text::new(call.clone(), Level::Postfix)),
                Some(_) | None => Ok(Text::new(register(self.program, *array, at)?, Level::Postfix)),
            },
            Value::Op(op, operands) => self.operation(*op, operands),
            Value::Cast(to, narrowing, of) => self.cast(*to, *narrowing, of),
            Value::Bits(to, of) => self.bits(*to, of),
            Value::Part(to, of, at) => self.part(*to, of, *at),
            Value::With(of, at, part) => self.with_part(of, *at, part),
        }
    }

    /// The dtype of a number. Error: a truth value.
    fn dtype(&self, value: &Value) -> Result<DType, Diagnostic> {
        let truth = || unprintable("a truth value stands where a number is needed");
        value.dtype(&self.program.registers).ok_or_else(truth)
    }

    fn helper(&mut self, helper: Helper) -> String {
        self.helpers.insert(helper);
        self.uses.visible(helper.name())
    }

    fn index_value(&mut self, dtype: DType, index: &Expr) -> Text {
        if let Some(value) = index.as_const() {
            return constant(dtype, Scalar::Int(value));
        }
        let (text, level) = c_operand(index);
        let text = Text::new(text, level);
        let range = index.range();
        if dtype.is_narrow_float() {
            // An integer that a float would round is beyond the numbers of the other dtypes, but not of bf16.
            if dtype != DType::BF16 || range.within(-FLOAT_INTEGERS, FLOAT_INTEGERS + 1) {
                return self.narrowed(dtype, DType::F32, Text::cast("float", text));
            }
            return self.narrowed(dtype, DType::I64, Text::cast("long long", text));
        }
        let fits = Scalar::Int(range.lo).fits(dtype) && Scalar::Int(range.hi).fits(dtype);
        let is_int = dtype == DType::I32 || (dtype.is_integer() && dtype.bytes() < 4);
        if is_int && fits && !self.is_long(index) { text } else { Text::cast(c_type(dtype), text) }
    }

    /// Whether the index is a `long long`.
    fn is_long(&self, index: &Expr) -> bool {
        let mut mentions = false;
        index.for_each_var(&mut |var| mentions |= self.long_names.contains(var.name()));
        mentions || needs_64_bits(index)
    }

    fn operation(&mut self, op: ElementOp, operands: &[Value]) -> Printed {
        let outer = self.reaches_sum;
        self.reaches_sum = products::reaches_sum(op, outer);
        let text = self.inner_operation(op, operands, outer);
        self.reaches_sum = outer;
        text
    }

    fn inner_operation(&mut self, op: ElementOp, operands: &[Value], in_sum: bool) -> Printed {
        if let (ElementOp::Rounded, [of]) = (op, operands) {
            return self.print(of);
        }
        if let (ElementOp::Select, [cond, then, otherwise]) = (op, operands) {
            // Narrow floats are selected as bits, without a conversion.
            return Ok(Text::choice(self.print(cond)?, self.print(then)?, self.print(otherwise)?));
        }
        let last = operands.last().ok_or_else(|| wrong_arity(op, operands))?;
        if op.class() == ElementClass::Bitwise && last.dtype(&self.program.registers).is_none() {
            return self.condition(op, operands);
        }
        let dtype = self.dtype(last)?;
        let result = self.computed(op, operands, dtype, in_sum)?;
        Ok(match op.class() {
            ElementClass::Comparison | ElementClass::Choice => result,
            ElementClass::Arithmetic | ElementClass::Floating if dtype.is_narrow_float() => {
                self.narrowed(dtype, DType::F32, result)
            }
            ElementClass::Arithmetic | ElementClass::Floating | ElementClass::Integral | ElementClass::Bitwise => {
                let is_operand = stays_narrow(op) || matches!(spelling(op, dtype), Spelling::Same);
                let is_narrow = dtype.is_integer() && dtype.bytes() < 4;
                if !is_narrow || is_operand {
                    result
                } else if dtype == DType::I8 && self.program.target == Target::Sm90a {
                    Text::call(&self.helper(Helper::SignedByte), &result.text)
                } else {
                    Text::cast(c_type(dtype), result)
                }
            }
        })
    }

    /// A condition made of other conditions.
    fn condition(&mut self, op: ElementOp, operands: &[Value]) -> Printed {
        let (sign, level) = match (op, operands) {
            (ElementOp::Not, [of]) => {
                return Ok(Text::new(format!("!{}", self.print(of)?.at(Level::Unary)), Level::Unary));
            }
            (ElementOp::And, [_, _]) => (" && ", Level::Both),
            (ElementOp::Or, [_, _]) => (" || ", Level::Either),
            (ElementOp::Xor, [_, _]) => (" != ", Level::Equality),
            _ => return Err(wrong_arity(op, operands)),
        };
        // Compilers warn about `&&` in `||` without parentheses, and readers stumble.
        let least = if op == ElementOp::Or { Level::Or } else { level };
        let [left, right] = [self.print(&operands[0])?, self.print(&operands[1])?];
        let side = |side: Text| if op == ElementOp::Xor { side.above(level) } else { side.at(least) };
        Ok(Text::new(format!("{}{sign}{}", side(left), side(right)), level))
    }

    /// The result in the type in which C++ computes: `float` for narrow floats, `int` for narrow integers.
    fn computed(&mut self, op: ElementOp, operands: &[Value], dtype: DType, in_sum: bool) -> Printed {
        if let Some(helper) = self.defined_everywhere(op, operands, dtype) {
            let helper = self.helper(helper);
            return Ok(Text::call(&helper, &self.arguments(op, operands)?));
        }
        if let Some(wrapping) = Wrapping::of(self.program, op, dtype, operands) {
            let helper = self.helper(Helper::Wrapping(wrapping, dtype));
            return Ok(Text::call(&helper, &self.arguments(op, operands)?));
        }
        if let Some(name) = products::rounded(op, dtype, operands).filter(|_| in_sum) {
            return Ok(Text::call(&self.uses.visible(name), &self.arguments(op, operands)?));
        }
        if let Some((helper, [a, b, c])) = self.of_three(op, dtype, operands) {
            let numbers = [self.number(a)?.text, self.number(b)?.text, self.number(c)?.text];
            return Ok(Text::call(&self.helper(helper), &numbers.join(", ")));
        }
        match (spelling(op, dtype), operands) {
            (Spelling::Infix(sign, level), [left, right]) => {
                let left = self.number(left)?;
                // The product of two as `int` could overflow.
                let is_short = op == ElementOp::Mul && dtype == DType::U16;
                let left = if is_short { Text::cast("unsigned int", left) } else { left };
                let right = self.number(right)?.above(level);
                Ok(Text::new(format!("{}{sign}{right}", left.at(level)), level))
            }
            (Spelling::Function(name), _) => {
                let arguments = self.arguments(op, operands)?;
                Ok(Text::call(&self.uses.visible(name), &arguments))
            }
            (Spelling::Helper(helper), _) => {
                let arguments = self.arguments(op, operands)?;
                Ok(Text::call(&self.helper(helper), &arguments))
            }
            (Spelling::Prefix(sign), [of]) => {
                let of = self.number(of)?.at(Level::Unary);
                let of = if of.starts_with('-') { format!("({of})") } else { of };
                Ok(Text::new(format!("{sign}{of}"), Level::Unary))
            }
            (Spelling::Same, [of]) => self.number(of),
            (Spelling::Choice, [cond, then, otherwise]) => {
                Ok(Text::choice(self.print(cond)?, self.number(then)?, self.number(otherwise)?))
            }
            (Spelling::Infix(..) | Spelling::Prefix(_) | Spelling::Same | Spelling::Choice, _) => {
                Err(wrong_arity(op, operands))
            }
        }
    }

    /// The function for an operation on integers that C++ does not define for these operands.
    fn defined_everywhere(&self, op: ElementOp, operands: &[Value], dtype: DType) -> Option<Helper> {
        let computing = computing_type(dtype);
        let second = operands.get(1).filter(|_| dtype.is_integer())?;
        let is_count = || {
            let counts = (0, i128::from(8 * computing.bytes() - 1));
            wrapping::range(self.program, second).is_some_and(|range| wrapping::is_inside(range, counts))
        };
        let is_held = || {
            let (exact, held) = (wrapping::exact(self.program, op, operands), computing.integers());
            exact.zip(held).is_some_and(|(exact, held)| wrapping::is_inside(exact, held))
        };
        let is_unsigned = computing.integers().is_some_and(|(least, _)| least == 0);
        match op {
            ElementOp::Div => (!is_plain_divisor(second)).then_some(Helper::Divide(computing)),
            ElementOp::Rem => (!is_plain_divisor(second)).then_some(Helper::Remainder(computing)),
            ElementOp::Shl => (!(is_count() && (is_unsigned || is_held()))).then_some(Helper::ShiftLeft(computing)),
            ElementOp::Shr => (!is_count()).then_some(Helper::ShiftRight(computing)),
            _ => None,
        }
    }

    /// The function for the maximum or minimum of three floats, and these, if the target has an instruction for it.
    fn of_three<'v>(&self, op: ElementOp, dtype: DType, operands: &'v [Value]) -> Option<(Helper, [&'v Value; 3])> {
        let helper = match op {
            ElementOp::Max => Helper::Max3,
            ElementOp::Min => Helper::Min3,
            _ => return None,
        };
        let [Value::Op(inner, both), c] = operands else { return None };
        let [a, b] = &both[..] else { return None };
        (dtype == DType::F32 && *inner == op && self.program.target.has_max_of_three()).then_some((helper, [a, b, c]))
    }

    /// The operands of an operation as the arguments of a function.
    fn arguments(&mut self, op: ElementOp, operands: &[Value]) -> Result<String, Diagnostic> {
        if operands.len() != op.arity() {
            return Err(wrong_arity(op, operands));
        }
        let arguments: Result<Vec<String>, Diagnostic> =
            operands.iter().map(|operand| Ok(self.number(operand)?.text)).collect();
        Ok(arguments?.join(", "))
    }

    /// The value in the type in which C++ computes.
    fn number(&mut self, value: &Value) -> Printed {
        let dtype = self.dtype(value)?;
        if dtype.is_narrow_float() { self.widened(dtype, value) } else { self.print(value) }
    }

    /// A narrow float as a `float`.
    fn widened(&mut self, dtype: DType, value: &Value) -> Printed {
        match value {
            Value::Const(_, value) => return Ok(Text::constant(widened_literal(dtype, *value))),
            Value::Index(_, index) => {
                if let Some(value) = index.as_const() {
                    return Ok(Text::constant(widened_literal(dtype, Scalar::Int(value))));
                }
                let exact = exact_integers(dtype);
                if index.range().within(-exact, exact + 1) {
                    let (text, level) = c_operand(index);
                    return Ok(Text::cast("float", Text::new(text, level)));
                }
            }
            Value::Op(op, operands) if is_exact(*op) => return self.computed(*op, operands, dtype, false),
            Value::Cast(_, _, of) if self.dtype(of)? == dtype => return self.widened(dtype, of),
            Value::Reg(..) | Value::Op(..) | Value::Cast(..) => {}
            Value::Bits(..) | Value::Part(..) | Value::With(..) => {}
        }
        let helper = match dtype {
            DType::BF16 => Helper::FromBf16,
            DType::E4M3 | DType::E5M2 => Helper::FromByte(dtype),
            _ => Helper::FromF16,
        };
        let held = self.print(value)?;
        Ok(Text::call(&self.helper(helper), &held.text))
    }

    fn cast(&mut self, to: DType, narrowing: Narrowing, of: &Value) -> Printed {
        let from = self.dtype(of)?;
        if to == from {
            return self.print(of);
        }
        if to == DType::F16 && from.saturation().is_some() {
            let held = self.print(of)?;
            return Ok(Text::call(&self.helper(Helper::ByteToF16(from)), &held.text));
        }
        let number = self.number(of)?;
        if to.is_narrow_float() {
            return Ok(self.narrowed(to, from, number));
        }
        if from.is_narrow_float() && to == DType::F32 {
            return Ok(number);
        }
        if from.is_float() && to.is_integer() {
            return Ok(self.truncated(to, from, number));
        }
        Ok(match narrowing {
            Narrowing::Saturates => {
                let clamped = self.clamped(to, from, number);
                Text::cast(c_type(to), clamped)
            }
            Narrowing::Fits | Narrowing::Wraps => Text::cast(c_type(to), number),
        })
    }

    /// A `float` or `double` as an integer: towards zero, saturated, 0 for NaN. The conversions to 32 bits do that; those
    /// from or to 64 bits give another number for NaN (PTX ISA, section 9.7.9.21).
    fn truncated(&mut self, to: DType, from: DType, number: Text) -> Text {
        let is_signed = to.integers().is_some_and(|(least, _)| least < 0);
        let is_double = from == DType::F64;
        let whole = match (is_double, to.bytes() == 8, is_signed) {
            (false, false, true) => self.uses.visible("__float2int_rz"),
            (false, false, false) => self.uses.visible("__float2uint_rz"),
            (_, false, true) => self.helper(Helper::DoubleToInteger(DType::I32)),
            (_, false, false) => self.helper(Helper::DoubleToInteger(DType::U32)),
            (false, true, _) => self.helper(Helper::FloatToInteger(to)),
            (true, true, _) => self.helper(Helper::DoubleToInteger(to)),
        };
        let whole = Text::call(&whole, &number.text);
        if to.bytes() >= 4 {
            return whole;
        }
        let clamped = self.clamped(to, if is_signed { DType::I32 } else { DType::U32 }, whole);
        Text::cast(c_type(to), clamped)
    }

    /// The nearest integer that `to` holds, in the type in which C++ computes with `from`.
    fn clamped(&mut self, to: DType, from: DType, number: Text) -> Text {
        let (Some((least, most)), Some((lo, hi))) = (to.integers(), from.integers()) else { return number };
        let bound = |bound: i128| constant(computing_type(from), Scalar::Int(bound as i64)).text;
        let mut text = number;
        if most < hi {
            text = Text::call(&self.uses.visible("min"), &format!("{}, {}", text.text, bound(most)));
        }
        if least > lo {
            text = Text::call(&self.uses.visible("max"), &format!("{}, {}", text.text, bound(least)));
        }
        text
    }

    /// A number, computed from values of dtype `from`, as a narrow float.
    fn narrowed(&mut self, to: DType, from: DType, number: Text) -> Text {
        if to.saturation().is_some() {
            return self.narrowed_to_byte(to, from, number);
        }
        let is_brain = to == DType::BF16;
        let of_float = if is_brain { Helper::FloatToBf16 } else { Helper::FloatToF16 };
        let (helper, number) = match from {
            DType::F32 | DType::F16 | DType::BF16 | DType::E4M3 | DType::E5M2 => (of_float, number),
            DType::F64 if is_brain => (Helper::DoubleToBf16, number),
            DType::F64 => (Helper::DoubleToF16, number),
            DType::I64 if is_brain => (Helper::SignedToBf16, number),
            DType::U64 if is_brain => (Helper::UnsignedToBf16, number),
            DType::I32 | DType::U32 if is_brain => (Helper::SignedToBf16, Text::cast("long long", number)),
            // An integer that a float would round is infinite as f16.
            DType::I32 | DType::U32 | DType::I64 | DType::U64 => (of_float, Text::cast("float", number)),
            DType::I8 | DType::I16 | DType::U8 | DType::U16 => (of_float, Text::cast("float", number)),
            DType::B8 | DType::B16 | DType::B32 | DType::B64 | DType::B128 => (of_float, Text::cast("float", number)),
        };
        Text::call(&self.helper(helper), &number.text)
    }

    /// The same as an 8-bit float. Integers that a `float` rounds are beyond its numbers.
    fn narrowed_to_byte(&mut self, to: DType, from: DType, number: Text) -> Text {
        let (helper, number) = match from {
            DType::F64 => (Helper::DoubleToByte(to), number),
            from if from.is_float() => (Helper::FloatToByte(to), number),
            _ => (Helper::FloatToByte(to), Text::cast("float", number)),
        };
        Text::call(&self.helper(helper), &number.text)
    }
}

/// The error for an operation with another number of operands than it takes.
fn wrong_arity(op: ElementOp, operands: &[Value]) -> Diagnostic {
    unprintable(format!("`{}` of {} operands", op.name(), operands.len()))
}

/// A `float` holds every integer up to this one.
const FLOAT_INTEGERS: i64 = 1 << 24;

/// A narrow float holds every integer up to this one.
fn exact_integers(dtype: DType) -> i64 {
    match dtype {
        DType::BF16 => 1 << 8,
        DType::E4M3 => 1 << 4,
        DType::E5M2 => 1 << 3,
        _ => 1 << 11,
    }
}

fn constant(dtype: DType, value: Scalar) -> Text {
    // The magnitude of the least integer is too large for its type.
    if dtype == DType::I32 && value == Scalar::Int(i64::from(i32::MIN)) {
        return Text::new(format!("{} - 1", i32::MIN + 1), Level::Sum);
    }
    if dtype == DType::I64 && value == Scalar::Int(i64::MIN) {
        return Text::new(format!("{}ll - 1", i64::MIN + 1), Level::Sum);
    }
    Text::constant(literal(dtype, value))
}

/// The type in which C++ computes with integers of this dtype.
fn computing_type(dtype: DType) -> DType {
    match dtype {
        DType::U32 | DType::U64 | DType::I64 => dtype,
        _ => DType::I32,
    }
}

/// Whether the result for narrow integers, which C++ computes as `int`, is in their range.
fn stays_narrow(op: ElementOp) -> bool {
    matches!(op, ElementOp::Max | ElementOp::Min | ElementOp::Rem | ElementOp::Shr)
        || matches!(op, ElementOp::And | ElementOp::Or | ElementOp::Xor)
}

/// Whether C++ defines the quotient by this integer for all dividends: it is neither 0 nor -1.
fn is_plain_divisor(divisor: &Value) -> bool {
    match divisor {
        Value::Const(_, Scalar::Int(value)) => !(-1..=0).contains(value),
        Value::Index(_, index) => index.range().lo > 0 || index.range().hi < -1,
        _ => false,
    }
}

/// Whether the result is an operand or its negative, so that no rounding is needed.
fn is_exact(op: ElementOp) -> bool {
    matches!(
        op,
        ElementOp::Max | ElementOp::Min | ElementOp::Neg | ElementOp::Abs | ElementOp::Rounded | ElementOp::Select
    )
}
