//! `+ - * / % ^ & | << >>` between expressions, values, sizes and numbers in all combinations. Indices and integers give an
//! expression; with a value or a floating-point number as an operand, the result is a value.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

use crate::expr::Expr;
use crate::size::Size;
use crate::value::Value;

/// Operators between a type and others; `as` names the type of the result, and the method that gives it its operands.
macro_rules! operators {
    ($left:ty as $made:ident.$taken:ident: $($right:ty),*; $operators:tt) => {$(
        operators!(@ $left, $right, $made, $taken, $operators);
    )*};
    (@ $left:ty, $right:ty, $made:ident, $taken:ident, [$($operator:ident $method:ident $sign:tt),*]) => {$(
        impl $operator<$right> for $left {
            type Output = $made;

            #[track_caller]
            fn $method(self, other: $right) -> $made {
                let (one, other) = ($made::from(self), $made::from(other));
                $made::of(one.$taken() $sign other.$taken(), one.body().and(other.body()))
            }
        }
    )*};
}

/// Operators on whole numbers give an expression.
macro_rules! expression {
    ($left:ty: $($right:ty),*) => {
        operators!($left as Expr.unnormalized: $($right),*;
            [Add add +, Sub sub -, Mul mul *, Div div /, Rem rem %, BitXor bitxor ^, BitAnd bitand &]);
    };
}

/// Operators with a value or a floating-point number on either side give a value.
macro_rules! value {
    ($left:ty: $($right:ty),*) => {
        operators!($left as Value.resolved: $($right),*; [Add add +, Sub sub -, Mul mul *, Div div /, Rem rem %,
            BitAnd bitand &, BitOr bitor |, BitXor bitxor ^, Shl shl <<, Shr shr >>]);
    };
}

macro_rules! expressions {
    ($($left:ty),*) => {$(
        // Only one integer and one floating-point type, so that the type of a literal can be inferred.
        expression!($left: Expr, &Expr, Size, &Size, i64);
        value!($left: Value, &Value, f64);

        impl Neg for $left {
            type Output = Expr;

            #[track_caller]
            fn neg(self) -> Expr {
                let of = Expr::from(self);
                Expr::of(of.unnormalized() * -1, of.body())
            }
        }
    )*};
}

/// Operators between a value and anything that converts to a value.
macro_rules! values {
    ($left:ty, [$($operator:ident $method:ident $sign:tt),*]) => {
        $(
            impl<T: Into<Value>> $operator<T> for $left {
                type Output = Value;

                #[track_caller]
                fn $method(self, other: T) -> Value {
                    let other = other.into();
                    Value::of(self.resolved() $sign other.resolved(), self.body().and(other.body()))
                }
            }
        )*

        impl Neg for $left {
            type Output = Value;

            #[track_caller]
            fn neg(self) -> Value {
                Value::of(-self.resolved(), self.body())
            }
        }

        impl Not for $left {
            type Output = Value;

            #[track_caller]
            fn not(self) -> Value {
                Value::of(!self.resolved(), self.body())
            }
        }
    };
}

expressions!(Expr, &Expr, Size, &Size);
expression!(i64: Expr, &Expr, Size, &Size);
value!(i64: Value, &Value);
value!(f64: Value, &Value, Expr, &Expr, Size, &Size);
values!(Value, [Add add +, Sub sub -, Mul mul *, Div div /, Rem rem %,
    BitAnd bitand &, BitOr bitor |, BitXor bitxor ^, Shl shl <<, Shr shr >>]);
values!(&Value, [Add add +, Sub sub -, Mul mul *, Div div /, Rem rem %,
    BitAnd bitand &, BitOr bitor |, BitXor bitxor ^, Shl shl <<, Shr shr >>]);
