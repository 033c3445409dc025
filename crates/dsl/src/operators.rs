//! `+ - * / % ^ &` between expressions, values, sizes and numbers in all mixtures. What is made of indices and integers is
//! an expression; with a value or a number with a fraction in it, it is a value.

use std::ops::{Add, BitAnd, BitXor, Div, Mul, Neg, Rem, Sub};

use crate::expr::Expr;
use crate::size::Size;
use crate::value::Value;

macro_rules! expression {
    ($left:ty: $($right:ty),*; $operators:tt) => {$(
        expression!(@ $left, $right, $operators);
    )*};
    (@ $left:ty, $right:ty, [$($operator:ident $method:ident $sign:tt),*]) => {$(
        impl $operator<$right> for $left {
            type Output = Expr;

            #[track_caller]
            fn $method(self, other: $right) -> Expr {
                Expr::of(Expr::from(self).made() $sign Expr::from(other).made())
            }
        }
    )*};
}

macro_rules! value {
    ($left:ty: $($right:ty),*; $operators:tt) => {$(
        value!(@ $left, $right, $operators);
    )*};
    (@ $left:ty, $right:ty, [$($operator:ident $method:ident $sign:tt),*]) => {$(
        impl $operator<$right> for $left {
            type Output = Value;

            #[track_caller]
            fn $method(self, other: $right) -> Value {
                Value::of(Value::from(self).resolved() $sign Value::from(other).resolved())
            }
        }
    )*};
}

macro_rules! expressions {
    ($($left:ty),*) => {$(
        // One type of integer and one of fraction each, so that a literal has a type.
        expression!($left: Expr, &Expr, Size, &Size, i64;
            [Add add +, Sub sub -, Mul mul *, Div div /, Rem rem %, BitXor bitxor ^, BitAnd bitand &]);
        value!($left: Value, &Value, f64; [Add add +, Sub sub -, Mul mul *, Div div /]);

        impl Neg for $left {
            type Output = Expr;

            #[track_caller]
            fn neg(self) -> Expr {
                Expr::of(Expr::from(self).made() * -1)
            }
        }
    )*};
}

/// A value and whatever a value can be made of.
macro_rules! values {
    ($left:ty, [$($operator:ident $method:ident $sign:tt),*]) => {
        $(
            impl<T: Into<Value>> $operator<T> for $left {
                type Output = Value;

                #[track_caller]
                fn $method(self, other: T) -> Value {
                    Value::of(self.resolved() $sign other.into().resolved())
                }
            }
        )*

        impl Neg for $left {
            type Output = Value;

            #[track_caller]
            fn neg(self) -> Value {
                Value::of(-self.resolved())
            }
        }
    };
}

expressions!(Expr, &Expr, Size, &Size);
expression!(i64: Expr, &Expr, Size, &Size;
    [Add add +, Sub sub -, Mul mul *, Div div /, Rem rem %, BitXor bitxor ^, BitAnd bitand &]);
value!(i64: Value, &Value; [Add add +, Sub sub -, Mul mul *, Div div /]);
value!(f64: Value, &Value, Expr, &Expr, Size, &Size; [Add add +, Sub sub -, Mul mul *, Div div /]);
values!(Value, [Add add +, Sub sub -, Mul mul *, Div div /]);
values!(&Value, [Add add +, Sub sub -, Mul mul *, Div div /]);
