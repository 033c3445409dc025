use tilewright_diag::{Diagnostic, Span};
use tilewright_expr as expr;
use tilewright_ir::Scalar;
use tilewright_ir::tile::{self, Access, Function};
use tilewright_layout::DType;

use crate::expr::Expr;
use crate::nodes::{self, BodyId, NodeId};
use crate::size::Size;

/// A value of one element: what statements on elements compute. It is a handle in the kernel being built, and can be
/// copied freely.
#[derive(Clone, Copy, Debug)]
pub struct Value(Repr);

#[derive(Clone, Copy, Debug)]
enum Repr {
    Number(Scalar),
    Node(NodeId),
    /// Made outside of any kernel.
    OutsideKernel,
}

impl Value {
    /// The handle of a value that is valid in a body.
    pub(crate) fn of(of: tile::Value, body: BodyId) -> Value {
        match of {
            tile::Value::Const(number) => Value(Repr::Number(number)),
            of => Value(nodes::add(of, body).map_or(Repr::OutsideKernel, Repr::Node)),
        }
    }

    /// The body in which it is valid.
    pub(crate) fn body(self) -> BodyId {
        match self.0 {
            Repr::Node(number) => number.body(),
            Repr::Number(_) | Repr::OutsideKernel => BodyId::KERNEL,
        }
    }

    /// The value in the compiler's form. Using one of another kernel is a mistake at the caller's line.
    #[track_caller]
    pub fn resolved(self) -> tile::Value {
        self.resolved_at(Span::here())
    }

    /// The value in the compiler's form, used at this line.
    pub(crate) fn resolved_at(self, span: Span) -> tile::Value {
        match self.0 {
            Repr::Number(number) => tile::Value::Const(number),
            Repr::Node(number) => nodes::get_at(number, span),
            Repr::OutsideKernel => {
                nodes::mistake(nodes::foreign("a value", span, None));
                tile::Value::from(expr::Expr::var(&nodes::unknown()))
            }
        }
    }

    /// The same element of a tensor in global memory, where an index outside of the tensor is intended to read as 0.
    /// Such an index then gives no warning.
    #[track_caller]
    pub fn or_zero(self) -> Value {
        let Repr::Node(number) = self.0 else { return not_an_element(self) };
        match nodes::get::<tile::Value>(number) {
            tile::Value::Load(access) => Value::of(tile::Value::Load(Access { or_zero: true, ..access }), self.body()),
            _ => not_an_element(self),
        }
    }

    /// `self * factor + term`, rounded once.
    #[track_caller]
    pub fn mul_add(self, factor: impl Into<Value>, term: impl Into<Value>) -> Value {
        let (factor, term) = (factor.into(), term.into());
        let body = self.body().and(factor.body()).and(term.body());
        Value::of(self.resolved().mul_add(factor.resolved(), term.resolved()), body)
    }

    /// `then` where it holds, else `otherwise`.
    #[track_caller]
    pub fn select(self, then: impl Into<Value>, otherwise: impl Into<Value>) -> Value {
        let (then, otherwise) = (then.into(), otherwise.into());
        let body = self.body().and(then.body()).and(otherwise.body());
        Value::of(self.resolved().select(then.resolved(), otherwise.resolved()), body)
    }

    /// The value converted to another dtype, rounded to the nearest, ties to even. A floating-point number becomes an
    /// integer by truncation and saturates; NaN becomes 0. An integer dtype must represent all values of the other;
    /// otherwise use [`Value::saturating_cast`] or [`Value::wrapping_cast`].
    #[track_caller]
    pub fn cast(self, dtype: DType) -> Value {
        Value::of(self.resolved().cast(dtype), self.body())
    }

    /// An integer converted to another integer dtype, as the nearest value of that dtype.
    #[track_caller]
    pub fn saturating_cast(self, dtype: DType) -> Value {
        Value::of(self.resolved().saturating_cast(dtype), self.body())
    }

    /// An integer converted to another integer dtype, keeping the low bits.
    #[track_caller]
    pub fn wrapping_cast(self, dtype: DType) -> Value {
        Value::of(self.resolved().wrapping_cast(dtype), self.body())
    }
}

/// Reports `.or_zero()` at the caller's line.
#[track_caller]
fn not_an_element(value: Value) -> Value {
    let message = "`.or_zero()` on a value that is not an element of a buffer";
    let finding = Diagnostic::error("K0267", message).label(Span::here(), "called here");
    nodes::mistake(finding.help("call it on the element itself: x.at((i - 1,)).or_zero()"));
    value
}

macro_rules! functions {
    ($($(#[$doc:meta])* $method:ident;)*) => {
        impl Value {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $method(self) -> Value {
                Value::of(self.resolved().$method(), self.body())
            }
        )*}
    };
}

functions! {
    /// Its absolute value.
    abs;
    /// The value, rounded to its dtype before it is used: a product is not fused with the sum around it.
    rounded;
}

/// The methods of the table of functions.
macro_rules! real_functions {
    ($($(#[$doc:meta])* $kind:ident = $name:ident [$($other:ident)?] $(of $exact:ident)?;)*) => {
        impl Value {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(self $(, $other: impl Into<Value>)?) -> Value {
                real_functions!(@ self, $kind $(, $other)?)
            }
        )*}
    };
    (@ $of:ident, $kind:ident) => {
        Value::of($of.resolved().function(Function::$kind, []), $of.body())
    };
    (@ $of:ident, $kind:ident, $other:ident) => {{
        let other = $other.into();
        Value::of($of.resolved().function(Function::$kind, [other.resolved()]), $of.body().and(other.body()))
    }};
}

tilewright_ir::element_functions!(real_functions);

/// Values made of others.
impl Value {
    /// One divided by this value, which is a floating-point number.
    #[track_caller]
    pub fn reciprocal(self) -> Value {
        1.0 / self
    }

    /// The same by [`fast_div`](Value::fast_div).
    #[track_caller]
    pub fn fast_reciprocal(self) -> Value {
        Value::from(1.0).fast_div(self)
    }

    /// The nearest number from `least` to `most`; `least` for NaN.
    #[track_caller]
    pub fn clamp(self, least: impl Into<Value>, most: impl Into<Value>) -> Value {
        self.max(least).min(most)
    }
}

/// Functions of two values, or of an index and a value.
macro_rules! binary {
    ($($(#[$doc:meta])* $method:ident;)*) => {
        impl Value {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $method(self, other: impl Into<Value>) -> Value {
                let other = other.into();
                Value::of(self.resolved().$method(other.resolved()), self.body().and(other.body()))
            }
        )*}

        impl Expr {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $method(self, other: impl Into<Value>) -> Value {
                Value::from(self).$method(other)
            }
        )*}
    };
}

binary! {
    /// The greater of the two.
    max;
    /// The lesser of the two.
    min;
    /// Whether it is less than `other`.
    lt;
    /// Whether it is less than or equal to `other`.
    le;
    /// Whether it is greater than `other`.
    gt;
    /// Whether it is greater than or equal to `other`.
    ge;
    /// Whether the two are equal.
    eq;
    /// Whether the two differ.
    ne;
}

/// An index as a value of a dtype.
impl Expr {
    /// The number converted to a dtype. An integer dtype must represent its whole range; otherwise use
    /// [`Expr::saturating_cast`] or [`Expr::wrapping_cast`].
    #[track_caller]
    pub fn cast(self, dtype: DType) -> Value {
        Value::from(self).cast(dtype)
    }

    /// The nearest number that an integer dtype represents.
    #[track_caller]
    pub fn saturating_cast(self, dtype: DType) -> Value {
        Value::from(self).saturating_cast(dtype)
    }

    /// The low bits of the number, in an integer dtype.
    #[track_caller]
    pub fn wrapping_cast(self, dtype: DType) -> Value {
        Value::from(self).wrapping_cast(dtype)
    }
}

macro_rules! from_numbers {
    ($($number:ty as $how:ident),*) => {$(
        impl From<$number> for Value {
            fn from(number: $number) -> Value {
                Value(Repr::Number(Scalar::$how(number.into())))
            }
        }
    )*};
}

from_numbers!(i32 as Int, i64 as Int, f32 as Float, f64 as Float);

impl From<Scalar> for Value {
    fn from(number: Scalar) -> Value {
        Value(Repr::Number(number))
    }
}

impl From<&Value> for Value {
    fn from(of: &Value) -> Value {
        *of
    }
}

impl From<tile::Value> for Value {
    fn from(of: tile::Value) -> Value {
        Value::of(of, BodyId::KERNEL)
    }
}

macro_rules! from_indices {
    ($($index:ty),*) => {$(
        impl From<$index> for Value {
            #[track_caller]
            fn from(index: $index) -> Value {
                let index = Expr::from(index);
                Value::of(tile::Value::Index(index.resolved()), index.body())
            }
        }
    )*};
}

from_indices!(Expr, &Expr, Size, &Size, expr::Expr, &expr::Expr);
