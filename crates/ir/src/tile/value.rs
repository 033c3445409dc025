//! Values of single elements: what parallel loops compute.

use std::fmt;
use std::sync::Arc;

use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};
use tilewright_layout::DType;

use crate::arena::{Arena, Handle};
use crate::scalar::Scalar;
use crate::tile::buffer::Buffer;
use crate::tile::function::Function;

/// The operand and result types of an element op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementClass {
    /// Numbers of one dtype give a number of that dtype.
    Arithmetic,
    /// Floating-point numbers of one dtype give one of that dtype.
    Floating,
    /// Integers of one dtype give one of that dtype.
    Integral,
    /// Integers of one dtype give one of that dtype, and truth values give a truth value.
    Bitwise,
    /// Numbers of one dtype give a truth value.
    Comparison,
    /// A truth value and two numbers of one dtype give one of the numbers.
    Choice,
}

macro_rules! element_ops {
    ($($(#[$doc:meta])* $kind:ident = $name:literal $arity:literal $class:ident $sign:expr;)*) => {
        /// An operation on elements. Results are those of exact arithmetic, rounded once to the dtype, except for
        /// functions, each of which has an accuracy of its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ElementOp {
            $($(#[$doc])* $kind,)*
            /// A function of real numbers.
            Function(Function),
        }

        impl ElementOp {
            /// Every op that is not a function.
            pub const PLAIN: &'static [ElementOp] = &[$(ElementOp::$kind),*];

            /// Its name in messages and in the printed IR.
            pub fn name(self) -> &'static str {
                match self {
                    $(ElementOp::$kind => $name,)*
                    ElementOp::Function(function) => function.name(),
                }
            }

            /// Number of operands.
            pub fn arity(self) -> usize {
                match self {
                    $(ElementOp::$kind => $arity,)*
                    ElementOp::Function(function) => function.arity(),
                }
            }

            /// The operator that it is written with, if it has one: between two operands, or in front of one.
            pub fn sign(self) -> Option<&'static str> {
                match self {
                    $(ElementOp::$kind => $sign,)*
                    ElementOp::Function(_) => None,
                }
            }

            /// Its operand and result types.
            pub fn class(self) -> ElementClass {
                match self {
                    $(ElementOp::$kind => ElementClass::$class,)*
                    ElementOp::Function(_) => ElementClass::Floating,
                }
            }
        }
    };
}

element_ops! {
    /// Sum.
    Add = "add" 2 Arithmetic Some("+");
    /// Difference.
    Sub = "sub" 2 Arithmetic Some("-");
    /// Product.
    Mul = "mul" 2 Arithmetic Some("*");
    /// Quotient; of integers, towards zero. An integer divided by 0 gives 0.
    Div = "div" 2 Arithmetic Some("/");
    /// What the quotient, rounded towards zero, leaves: it has the sign of the first operand. The remainder of an integer
    /// divided by 0 is that integer.
    Rem = "rem" 2 Arithmetic Some("%");
    /// The greater; if one operand is NaN, the other.
    Max = "max" 2 Arithmetic None;
    /// The lesser; if one operand is NaN, the other.
    Min = "min" 2 Arithmetic None;
    /// The negative.
    Neg = "neg" 1 Arithmetic Some("-");
    /// The absolute value.
    Abs = "abs" 1 Arithmetic None;
    /// The product of the first two operands plus the third, rounded once; only for f32 and f64.
    Fma = "fma" 3 Floating None;
    /// The value itself, rounded before it is used: a product in it is not fused with a sum around it.
    Rounded = "rounded" 1 Arithmetic None;
    /// Bitwise and; of truth values, whether both hold.
    And = "and" 2 Bitwise Some("&");
    /// Bitwise or; of truth values, whether at least one holds.
    Or = "or" 2 Bitwise Some("|");
    /// Bitwise exclusive or; of truth values, whether exactly one holds.
    Xor = "xor" 2 Bitwise Some("^");
    /// The complement of every bit; of a truth value, whether it does not hold.
    Not = "not" 1 Bitwise Some("!");
    /// The bits moved towards the high end by the second operand; all of them are lost if it is negative or at least the
    /// number of bits.
    Shl = "shl" 2 Integral Some("<<");
    /// The bits moved towards the low end by the second operand, with copies of the sign behind them; nothing else is left
    /// if it is negative or at least the number of bits.
    Shr = "shr" 2 Integral Some(">>");
    /// Less.
    Lt = "lt" 2 Comparison Some("<");
    /// Less or equal.
    Le = "le" 2 Comparison Some("<=");
    /// Greater.
    Gt = "gt" 2 Comparison Some(">");
    /// Greater or equal.
    Ge = "ge" 2 Comparison Some(">=");
    /// Equal.
    Eq = "eq" 2 Comparison Some("==");
    /// Not equal.
    Ne = "ne" 2 Comparison Some("!=");
    /// The second where the first holds, else the third.
    Select = "select" 3 Choice None;
}

/// How a cast treats integers that its dtype cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Narrowing {
    /// There are none: the dtype represents all integers of the other. Floating-point numbers are truncated towards
    /// zero and saturate; NaN becomes 0.
    Fits,
    /// They become the nearest integer that the dtype represents.
    Saturates,
    /// Their low bits are kept.
    Wraps,
}

impl Narrowing {
    /// The cast as it is printed: `i8`, `i8.saturated`, `i8.wrapped`.
    pub fn title(self, dtype: DType) -> String {
        match self {
            Narrowing::Fits => dtype.to_string(),
            Narrowing::Saturates => format!("{dtype}.saturated"),
            Narrowing::Wraps => format!("{dtype}.wrapped"),
        }
    }
}

/// An element of a buffer.
#[derive(Clone, Debug)]
pub struct Access {
    /// The buffer.
    pub buffer: Handle<Buffer>,
    /// One index per dimension.
    pub index: Vec<Coord>,
    /// Whether the user wrote `.or_zero()`: reading 0 outside of a tensor in global memory is intended.
    pub or_zero: bool,
    /// Where it was written.
    pub span: Span,
}

/// An index of an element.
#[derive(Clone, Debug)]
pub enum Coord {
    /// An expression of variables.
    At(Expr),
    /// A value that depends on data, known only when the kernel runs.
    Data(Value),
}

/// A value of one element; cheap to clone. Its operands may be shared:
/// [`name_common_values`](super::name_common_values) names those that one statement uses several times.
#[derive(Clone, Debug)]
pub enum Value {
    /// A number, which takes the dtype that its context requires.
    Const(Scalar),
    /// An integer expression of variables.
    Index(Expr),
    /// A named value.
    Named(String),
    /// An element of a buffer.
    Load(Access),
    /// An operation.
    Op(ElementOp, Arc<[Value]>),
    /// The value converted to another dtype: rounded to the nearest, ties to even, or towards zero if to integers.
    Cast(DType, Narrowing, Arc<Value>),
}

/// The dtype of the result of an operation, where `of` gives those of its operands.
pub(crate) fn op_dtype(op: ElementOp, operands: &[Value], of: &dyn Fn(&Value) -> Option<DType>) -> Option<DType> {
    match op.class() {
        ElementClass::Comparison => None,
        ElementClass::Arithmetic | ElementClass::Floating | ElementClass::Integral | ElementClass::Bitwise => {
            operands.iter().find_map(of)
        }
        ElementClass::Choice => operands.get(1..)?.iter().find_map(of),
    }
}

impl Value {
    /// Its dtype, where `named` gives those of named values; `None` for truth values, and for numbers that take the
    /// dtype that their context requires.
    pub fn dtype(&self, buffers: &Arena<Buffer>, named: &dyn Fn(&str) -> Option<DType>) -> Option<DType> {
        match self {
            Value::Const(_) | Value::Index(_) => None,
            Value::Named(name) => named(name),
            Value::Load(access) => buffers.get(access.buffer).map(|buffer| buffer.dtype),
            Value::Cast(dtype, ..) => Some(*dtype),
            Value::Op(op, operands) => op_dtype(*op, operands, &|operand| operand.dtype(buffers, named)),
        }
    }

    /// Calls `visit` on every access in it, indices of accesses first.
    pub fn for_each_load(&self, visit: &mut dyn FnMut(&Access)) {
        match self {
            Value::Const(_) | Value::Index(_) | Value::Named(_) => {}
            Value::Load(access) => {
                access.for_each_load(visit);
                visit(access);
            }
            Value::Op(_, arguments) => arguments.iter().for_each(|argument| argument.for_each_load(visit)),
            Value::Cast(_, _, value) => value.for_each_load(visit),
        }
    }

    /// Calls `visit` on every index expression in it.
    pub fn for_each_expr(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            Value::Const(_) | Value::Named(_) => {}
            Value::Index(expr) => visit(expr),
            Value::Load(access) => access.index.iter().for_each(|coord| match coord {
                Coord::At(expr) => visit(expr),
                Coord::Data(value) => value.for_each_expr(visit),
            }),
            Value::Op(_, operands) => operands.iter().for_each(|operand| operand.for_each_expr(visit)),
            Value::Cast(_, _, value) => value.for_each_expr(visit),
        }
    }

    /// The same value with every index expression replaced.
    pub fn map_exprs(&self, to: &dyn Fn(&Expr) -> Expr) -> Value {
        match self {
            Value::Const(_) | Value::Named(_) => self.clone(),
            Value::Index(expr) => Value::Index(to(expr)),
            Value::Load(access) => Value::Load(access.map_exprs(to)),
            Value::Op(op, operands) => Value::Op(*op, operands.iter().map(|operand| operand.map_exprs(to)).collect()),
            Value::Cast(dtype, narrowing, value) => Value::Cast(*dtype, *narrowing, Arc::new(value.map_exprs(to))),
        }
    }

    /// Whether it holds, if comparisons of integer expressions in it decide that; `None` if they do not, or `env` lacks a
    /// variable.
    pub fn truth(&self, env: &dyn Fn(&Var) -> Option<i64>) -> Option<bool> {
        let Value::Op(op, operands) = self else { return None };
        match (op, &operands[..]) {
            (ElementOp::Not, [of]) => of.truth(env).map(|holds| !holds),
            (ElementOp::And | ElementOp::Or, [a, b]) => {
                let deciding = *op == ElementOp::Or;
                match (a.truth(env), b.truth(env)) {
                    (Some(one), Some(other)) => Some(if deciding { one || other } else { one && other }),
                    (Some(known), None) | (None, Some(known)) => (known == deciding).then_some(deciding),
                    (None, None) => None,
                }
            }
            (ElementOp::Xor, [a, b]) => Some(a.truth(env)? != b.truth(env)?),
            (_, [a, b]) => Some(op.comparison()?.holds(a.integer(env)?, b.integer(env)?)),
            _ => None,
        }
    }

    /// The parts of a condition that are known to hold, or not to hold, where the whole is: both operands of `and` where it
    /// holds, both of `or` where it does not, and the operand of `not`. `None` if it has no such parts.
    pub(crate) fn implied(&self, holds: bool) -> Option<Vec<(&Value, bool)>> {
        let Value::Op(op, operands) = self else { return None };
        match op {
            ElementOp::And if holds => Some(operands.iter().map(|part| (part, true)).collect()),
            ElementOp::Or if !holds => Some(operands.iter().map(|part| (part, false)).collect()),
            ElementOp::Not => Some(operands.iter().map(|part| (part, !holds)).collect()),
            _ => None,
        }
    }

    fn integer(&self, env: &dyn Fn(&Var) -> Option<i64>) -> Option<i64> {
        match self {
            Value::Const(Scalar::Int(value)) => Some(*value),
            Value::Index(expr) => expr.eval(env).ok(),
            Value::Const(Scalar::Float(_)) | Value::Named(_) | Value::Load(_) | Value::Op(..) | Value::Cast(..) => None,
        }
    }

    fn unary(self, op: ElementOp) -> Value {
        Value::Op(op, [self].into())
    }

    fn binary(self, op: ElementOp, other: impl Into<Value>) -> Value {
        Value::Op(op, [self, other.into()].into())
    }

    /// A function of this value, and of `others` if it has more operands.
    pub fn function(self, function: Function, others: impl IntoIterator<Item = Value>) -> Value {
        Value::Op(ElementOp::Function(function), std::iter::once(self).chain(others).collect())
    }

    /// `self * factor + term`, rounded once.
    pub fn mul_add(self, factor: impl Into<Value>, term: impl Into<Value>) -> Value {
        Value::Op(ElementOp::Fma, [self, factor.into(), term.into()].into())
    }

    /// The value, rounded to its dtype before it is used: a product is not fused with the sum around it.
    pub fn rounded(self) -> Value {
        self.unary(ElementOp::Rounded)
    }

    /// Its absolute value.
    pub fn abs(self) -> Value {
        self.unary(ElementOp::Abs)
    }

    /// The greater of the two.
    pub fn max(self, other: impl Into<Value>) -> Value {
        self.binary(ElementOp::Max, other)
    }

    /// The lesser of the two.
    pub fn min(self, other: impl Into<Value>) -> Value {
        self.binary(ElementOp::Min, other)
    }

    /// Whether it is less than `other`.
    pub fn lt(self, other: impl Into<Value>) -> Value {
        self.binary(ElementOp::Lt, other)
    }

    /// Whether it is less than or equal to `other`.
    pub fn le(self, other: impl Into<Value>) -> Value {
        self.binary(ElementOp::Le, other)
    }

    /// Whether it is greater than `other`.
    pub fn gt(self, other: impl Into<Value>) -> Value {
        self.binary(ElementOp::Gt, other)
    }

    /// Whether it is greater than or equal to `other`.
    pub fn ge(self, other: impl Into<Value>) -> Value {
        self.binary(ElementOp::Ge, other)
    }

    /// Whether the two are equal.
    pub fn eq(self, other: impl Into<Value>) -> Value {
        self.binary(ElementOp::Eq, other)
    }

    /// Whether the two differ.
    pub fn ne(self, other: impl Into<Value>) -> Value {
        self.binary(ElementOp::Ne, other)
    }

    /// `then` where it holds, else `otherwise`.
    pub fn select(self, then: impl Into<Value>, otherwise: impl Into<Value>) -> Value {
        Value::Op(ElementOp::Select, [self, then.into(), otherwise.into()].into())
    }

    /// The value converted to another dtype, rounded to the nearest, ties to even. A floating-point number becomes an
    /// integer by truncation and saturates; NaN becomes 0. An integer dtype must represent all values of the other;
    /// otherwise use [`Value::saturating_cast`] or [`Value::wrapping_cast`].
    pub fn cast(self, dtype: DType) -> Value {
        Value::Cast(dtype, Narrowing::Fits, Arc::new(self))
    }

    /// An integer converted to another integer dtype, as the nearest value of that dtype.
    pub fn saturating_cast(self, dtype: DType) -> Value {
        Value::Cast(dtype, Narrowing::Saturates, Arc::new(self))
    }

    /// An integer converted to another integer dtype, keeping the low bits.
    pub fn wrapping_cast(self, dtype: DType) -> Value {
        Value::Cast(dtype, Narrowing::Wraps, Arc::new(self))
    }
}

/// The row-major position of an index in a shape.
pub fn flat(index: &[Expr], shape: &[i64]) -> Expr {
    index.iter().zip(shape).fold(Expr::constant(0), |flat, (at, extent)| flat * *extent + at.clone())
}

impl Access {
    /// The row-major position of the element in a buffer of this shape; `None` if it depends on data.
    pub fn flat(&self, shape: &[i64]) -> Option<Expr> {
        self.known_index().map(|index| flat(&index, shape))
    }

    /// The index, if it does not depend on data.
    pub fn known_index(&self) -> Option<Vec<Expr>> {
        let at = |coord: &Coord| match coord {
            Coord::At(expr) => Some(expr.clone()),
            Coord::Data(_) => None,
        };
        self.index.iter().map(at).collect()
    }

    /// Whether its index consists of exactly these expressions.
    pub fn is_at(&self, index: &[Expr]) -> bool {
        let same = |(coord, known): (&Coord, &Expr)| matches!(coord, Coord::At(at) if at == known);
        self.index.len() == index.len() && self.index.iter().zip(index).all(same)
    }

    /// The same access with every index expression replaced.
    pub fn map_exprs(&self, to: &dyn Fn(&Expr) -> Expr) -> Access {
        let coord = |coord: &Coord| match coord {
            Coord::At(expr) => Coord::At(to(expr)),
            Coord::Data(value) => Coord::Data(value.map_exprs(to)),
        };
        Access { index: self.index.iter().map(coord).collect(), ..self.clone() }
    }

    /// Calls `visit` on every access in its indices.
    pub fn for_each_load(&self, visit: &mut dyn FnMut(&Access)) {
        for coord in &self.index {
            if let Coord::Data(value) = coord {
                value.for_each_load(visit);
            }
        }
    }
}

macro_rules! operators {
    ($($operator:ident $method:ident $op:ident;)*) => {$(
        impl<T: Into<Value>> std::ops::$operator<T> for Value {
            type Output = Value;

            fn $method(self, other: T) -> Value {
                self.binary(ElementOp::$op, other)
            }
        }
    )*};
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
    Rem rem Rem;
    BitAnd bitand And;
    BitOr bitor Or;
    BitXor bitxor Xor;
    Shl shl Shl;
    Shr shr Shr;
}

impl std::ops::Not for Value {
    type Output = Value;

    fn not(self) -> Value {
        self.unary(ElementOp::Not)
    }
}

impl std::ops::Neg for Value {
    type Output = Value;

    fn neg(self) -> Value {
        self.unary(ElementOp::Neg)
    }
}

impl From<Scalar> for Value {
    fn from(value: Scalar) -> Value {
        Value::Const(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Const(Scalar::Float(value))
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Const(Scalar::Int(value))
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::from(i64::from(value))
    }
}

impl From<Expr> for Value {
    fn from(value: Expr) -> Value {
        Value::Index(value)
    }
}

impl From<&Expr> for Value {
    fn from(value: &Expr) -> Value {
        Value::Index(value.clone())
    }
}

impl From<&Value> for Value {
    fn from(value: &Value) -> Value {
        value.clone()
    }
}

impl From<Expr> for Coord {
    fn from(index: Expr) -> Coord {
        Coord::At(index)
    }
}

impl From<&Expr> for Coord {
    fn from(index: &Expr) -> Coord {
        Coord::At(index.clone())
    }
}

impl From<i64> for Coord {
    fn from(index: i64) -> Coord {
        Coord::At(Expr::constant(index))
    }
}

impl From<i32> for Coord {
    fn from(index: i32) -> Coord {
        Coord::from(i64::from(index))
    }
}

impl From<Value> for Coord {
    fn from(index: Value) -> Coord {
        match index {
            Value::Index(expr) => Coord::At(expr),
            other => Coord::Data(other),
        }
    }
}

impl fmt::Display for ElementOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
