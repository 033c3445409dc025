//! Rust operators on [`Expr`], with the folding that can never be wrong: constants and neutral elements.

use std::ops::{Add, BitAnd, BitXor, Div, Mul, Neg, Rem, Sub};

use crate::expr::{Expr, Node};

fn add(a: Expr, b: Expr) -> Expr {
    match (a.as_const(), b.as_const()) {
        (Some(0), _) => b,
        (_, Some(0)) => a,
        (Some(x), Some(y)) => fold(x.checked_add(y), Node::Add(a, b)),
        _ => Expr::from_node(Node::Add(a, b)),
    }
}

fn mul(a: Expr, b: Expr) -> Expr {
    match (a.as_const(), b.as_const()) {
        (Some(0), _) | (_, Some(0)) => Expr::constant(0),
        (Some(1), _) => b,
        (_, Some(1)) => a,
        (Some(x), Some(y)) => fold(x.checked_mul(y), Node::Mul(a, b)),
        _ => Expr::from_node(Node::Mul(a, b)),
    }
}

fn div(a: Expr, b: Expr) -> Expr {
    match (a.as_const(), b.as_const()) {
        (_, Some(1)) => a,
        (Some(x), Some(y)) if y > 0 => Expr::constant(x.div_euclid(y)),
        _ => Expr::from_node(Node::Div(a, b)),
    }
}

fn rem(a: Expr, b: Expr) -> Expr {
    match (a.as_const(), b.as_const()) {
        (_, Some(1)) => Expr::constant(0),
        (Some(x), Some(y)) if y > 0 => Expr::constant(x.rem_euclid(y)),
        _ => Expr::from_node(Node::Mod(a, b)),
    }
}

fn xor(a: Expr, b: Expr) -> Expr {
    match (a.as_const(), b.as_const()) {
        (Some(0), _) => b,
        (_, Some(0)) => a,
        (Some(x), Some(y)) => Expr::constant(x ^ y),
        _ => Expr::from_node(Node::Xor(a, b)),
    }
}

fn and(a: Expr, b: Expr) -> Expr {
    match (a.as_const(), b.as_const()) {
        (Some(0), _) | (_, Some(0)) => Expr::constant(0),
        (Some(x), Some(y)) => Expr::constant(x & y),
        _ => Expr::from_node(Node::And(a, b)),
    }
}

fn fold(value: Option<i64>, node: Node) -> Expr {
    value.map_or_else(|| Expr::from_node(node), Expr::constant)
}

macro_rules! operator {
    ($trait:ident, $method:ident, $build:ident) => {
        impl $trait<Expr> for Expr {
            type Output = Expr;
            fn $method(self, other: Expr) -> Expr {
                $build(self, other)
            }
        }
        impl $trait<&Expr> for &Expr {
            type Output = Expr;
            fn $method(self, other: &Expr) -> Expr {
                $build(self.clone(), other.clone())
            }
        }
        impl $trait<i64> for Expr {
            type Output = Expr;
            fn $method(self, other: i64) -> Expr {
                $build(self, Expr::constant(other))
            }
        }
        impl $trait<i64> for &Expr {
            type Output = Expr;
            fn $method(self, other: i64) -> Expr {
                $build(self.clone(), Expr::constant(other))
            }
        }
        impl $trait<Expr> for i64 {
            type Output = Expr;
            fn $method(self, other: Expr) -> Expr {
                $build(Expr::constant(self), other)
            }
        }
        impl $trait<&Expr> for i64 {
            type Output = Expr;
            fn $method(self, other: &Expr) -> Expr {
                $build(Expr::constant(self), other.clone())
            }
        }
    };
}

fn sub(a: Expr, b: Expr) -> Expr {
    add(a, mul(Expr::constant(-1), b))
}

operator!(Add, add, add);
operator!(Sub, sub, sub);
operator!(Mul, mul, mul);
operator!(Div, div, div);
operator!(Rem, rem, rem);
operator!(BitXor, bitxor, xor);
operator!(BitAnd, bitand, and);

impl Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        mul(Expr::constant(-1), self)
    }
}
