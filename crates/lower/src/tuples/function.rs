//! The function that combines two tuples, as values of a thread.

use tilewright_expr::ValueRange;
use tilewright_ir::thread::Value as ThreadValue;
use tilewright_ir::tile::{Combiner, ElementClass, ElementOp, Kernel, Value};
use tilewright_ir::{Arena, Scalar};
use tilewright_layout::DType;

use crate::builder::Builder;
use crate::elements::with_product;
use crate::refusal::Refusal;

/// A name in the function, and what it stands for in a thread.
pub(super) type Known = (String, ThreadValue, DType);

/// The function, and the scalar parameters of the kernel that it may use.
pub(crate) struct Function {
    pub(super) combiner: Combiner,
    /// Whether exchanging the two tuples changes no bit of the results.
    pub(crate) is_symmetric: bool,
    /// The order in which the results are computed, where they may overwrite the first tuple.
    pub(super) order: Vec<usize>,
    /// The results that would overwrite what a later one uses: they are kept elsewhere until the others are computed.
    pub(super) waiting: Vec<usize>,
    scalars: Vec<Known>,
}

impl Function {
    pub(crate) fn of(combiner: &Combiner, kernel: &Kernel, builder: &Builder) -> Function {
        let scalars = kernel.scalars.iter().zip(&builder.program.scalars);
        let scalars = scalars.map(|(scalar, array)| (scalar.name.clone(), ThreadValue::reg(*array, 0), scalar.dtype));
        let (order, waiting) = ordered(combiner);
        let is_symmetric = combiner.is_symmetric();
        Function { combiner: combiner.clone(), is_symmetric, order, waiting, scalars: scalars.collect() }
    }

    /// The names of both tuples, which have these values.
    pub(super) fn known(&self, tuples: [&[ThreadValue]; 2]) -> Vec<Known> {
        let mut known = self.scalars.clone();
        for (side, tuple) in tuples.into_iter().enumerate() {
            for (parameter, value) in self.combiner.parameters.iter().zip(tuple) {
                known.push((parameter.names[side].clone(), value.clone(), parameter.dtype));
            }
        }
        known
    }

    /// The dtype of a value of the function; `None` for truth values and untyped numbers.
    pub(super) fn dtype(&self, value: &Value, known: &[Known]) -> Option<DType> {
        let named = |name: &str| find(known, name).map(|(_, _, dtype)| *dtype);
        value.dtype(&Arena::new(), &named)
    }

    /// A value of the function; numbers without a dtype take the one that is wanted.
    pub(super) fn value(&self, value: &Value, wanted: DType, known: &[Known]) -> Result<ThreadValue, Refusal> {
        if let Some(number) = integer(value) {
            return Ok(ThreadValue::Const(wanted, Scalar::Int(number)));
        }
        match value {
            Value::Const(number) => Ok(ThreadValue::Const(wanted, *number)),
            Value::Index(index) => Err(format!("`{index}` is not a value of the tuples").into()),
            Value::Named(name) => match find(known, name) {
                Some((_, value, _)) => Ok(value.clone()),
                None => Err(format!("`{name}` is not defined here").into()),
            },
            Value::Load(_) => Err("an element of a buffer is not a value of the tuples".into()),
            Value::Cast(dtype, narrowing, inner) => {
                let from = self.dtype(inner, known).unwrap_or_else(|| untyped(inner, *dtype));
                let inner = self.value(inner, from, known)?;
                Ok(if from == *dtype { inner } else { ThreadValue::Cast(*dtype, *narrowing, Box::new(inner)) })
            }
            Value::Op(op, operands) => self.operation(*op, operands, wanted, known),
        }
    }

    fn operation(
        &self,
        op: ElementOp,
        operands: &[Value],
        wanted: DType,
        known: &[Known],
    ) -> Result<ThreadValue, Refusal> {
        let numbers = match op.class() {
            ElementClass::Choice => operands.get(1..).unwrap_or_default(),
            ElementClass::Arithmetic | ElementClass::Floating | ElementClass::Integral => operands,
            ElementClass::Bitwise | ElementClass::Comparison => operands,
        };
        let common = numbers.iter().find_map(|operand| self.dtype(operand, known));
        let dtype = match op.class() {
            ElementClass::Comparison => {
                common.unwrap_or(if numbers.iter().any(is_real) { DType::F32 } else { DType::I64 })
            }
            ElementClass::Arithmetic | ElementClass::Floating | ElementClass::Integral => common.unwrap_or(wanted),
            ElementClass::Bitwise | ElementClass::Choice => common.unwrap_or(wanted),
        };
        let made: Result<Vec<ThreadValue>, Refusal> =
            operands.iter().map(|operand| self.value(operand, dtype, known)).collect();
        Ok(with_product(op, dtype, made?))
    }
}

/// An integer without a dtype, computed exactly; `None` for any other value.
fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Const(Scalar::Int(number)) => Some(*number),
        Value::Index(index) => index.as_const(),
        Value::Op(op, operands) => {
            let ranges: Option<Vec<ValueRange>> =
                operands.iter().map(|operand| integer(operand).map(ValueRange::point)).collect();
            op.integer_range(&ranges?)?.constant()
        }
        Value::Const(Scalar::Float(_)) | Value::Named(_) | Value::Load(_) | Value::Cast(..) => None,
    }
}

/// The dtype in which a number without one is computed before it is converted to `dtype`: that dtype if it holds the number.
fn untyped(value: &Value, dtype: DType) -> DType {
    let is_held = |in_dtype: DType| integer(value).is_some_and(|number| Scalar::Int(number).fits(in_dtype));
    match (integer(value), dtype.is_float()) {
        (Some(_), _) if is_held(dtype) => dtype,
        (Some(_), _) if is_held(DType::I32) => DType::I32,
        (Some(_), _) => DType::I64,
        (None, true) => dtype,
        (None, false) => DType::F32,
    }
}

/// Whether an untyped number is, or is made of, a floating-point number.
fn is_real(value: &Value) -> bool {
    match value {
        Value::Const(Scalar::Float(_)) => true,
        Value::Op(_, operands) => operands.iter().any(is_real),
        Value::Const(Scalar::Int(_)) | Value::Index(_) | Value::Named(_) | Value::Load(_) | Value::Cast(..) => false,
    }
}

fn find<'k>(known: &'k [Known], name: &str) -> Option<&'k Known> {
    known.iter().rev().find(|(of, ..)| of == name)
}

/// An order of the results in which few overwrite a value of the first tuple that a later one uses, and those that do.
fn ordered(combiner: &Combiner) -> (Vec<usize>, Vec<usize>) {
    let is_needed = |at: usize, left: &[usize]| {
        let name = &combiner.parameters[at].names[0];
        left.iter().any(|other| *other != at && mentions(&combiner.results[*other], name))
    };
    let mut left: Vec<usize> = (0..combiner.results.len()).collect();
    let (mut order, mut waiting) = (Vec::new(), Vec::new());
    while let Some(first) = left.first().copied() {
        let free = left.iter().copied().find(|at| !is_needed(*at, &left));
        let next = free.unwrap_or(first);
        if free.is_none() {
            waiting.push(next);
        }
        order.push(next);
        left.retain(|at| *at != next);
    }
    (order, waiting)
}

/// Whether a value mentions a name.
fn mentions(value: &Value, name: &str) -> bool {
    match value {
        Value::Named(of) => of == name,
        Value::Op(_, operands) => operands.iter().any(|operand| mentions(operand, name)),
        Value::Cast(_, _, inner) => mentions(inner, name),
        Value::Const(_) | Value::Index(_) | Value::Load(_) => false,
    }
}
