use tilewright_expr as expr;

use crate::nodes::{self, BodyId, NodeId};

/// From this number of operations on, an expression is brought into its canonical form before it is used.
const LARGE: u32 = 64;

/// An integer made of block indices, loop variables, sizes and numbers: an index, or a part of one. It is a handle in
/// the kernel being built, and can be copied freely.
///
/// Its value is known only when the kernel runs, so Rust does not compare expressions; `i.eq(0)` is a [`Value`](crate::Value):
///
/// ```compile_fail,E0369
/// use tilewright_dsl::kernel;
/// use tilewright_layout::DType::F32;
///
/// let first = kernel("first", |k| {
///     let y = k.output("y", F32, [64]);
///     k.parallel([64], |k, [i]| {
///         if i == 0.into() {
///             k.store(y, (i,), 1.0);
///         }
///     });
/// });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Expr(Repr);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repr {
    Number(i64),
    Node(NodeId),
    /// Made outside of any kernel.
    OutsideKernel,
}

impl Expr {
    /// The handle of an expression that is valid in a body.
    pub(crate) fn of(of: expr::Expr, body: BodyId) -> Expr {
        match of.as_const() {
            Some(number) => Expr(Repr::Number(number)),
            None => Expr(nodes::add(of, body).map_or(Repr::OutsideKernel, Repr::Node)),
        }
    }

    /// The variable of a loop, in its body.
    pub(crate) fn of_loop(var: &expr::Var) -> Expr {
        Expr::of(expr::Expr::var(var), nodes::innermost())
    }

    /// The body in which it is valid.
    pub(crate) fn body(self) -> BodyId {
        match self.0 {
            Repr::Node(number) => number.body(),
            Repr::Number(_) | Repr::OutsideKernel => BodyId::KERNEL,
        }
    }

    /// The expression in the compiler's form. Using one of another kernel is a mistake at the caller's line.
    #[track_caller]
    pub fn resolved(self) -> expr::Expr {
        match self.0 {
            Repr::Number(number) => expr::Expr::constant(number),
            Repr::Node(number) => {
                let found: expr::Expr = nodes::get(number);
                if found.weight() < LARGE { found } else { expr::linear::normalize(&found) }
            }
            Repr::OutsideKernel => {
                nodes::mistake(nodes::foreign("a value", tilewright_diag::Span::here(), None));
                expr::Expr::var(&nodes::unknown())
            }
        }
    }

    /// The expression as it was built, not normalized.
    #[track_caller]
    pub(crate) fn unnormalized(self) -> expr::Expr {
        match self.0 {
            Repr::Node(number) => nodes::get(number),
            Repr::Number(_) | Repr::OutsideKernel => self.resolved(),
        }
    }

    /// The least and the greatest value.
    #[track_caller]
    pub fn range(self) -> expr::ValueRange {
        self.resolved().range()
    }

    /// `self / divisor`, rounded up; `self` is not negative and `divisor` is positive.
    #[track_caller]
    pub fn ceil_div(self, divisor: i64) -> Expr {
        Expr::of(self.unnormalized().ceil_div(divisor), self.body())
    }

    /// The lesser of both: `(t * 64 + 64).at_most(n)`.
    #[track_caller]
    pub fn at_most(self, other: impl Into<Expr>) -> Expr {
        let other = other.into();
        Expr::of(self.unnormalized().at_most(other.unnormalized()), self.body().and(other.body()))
    }

    /// The greater of both.
    #[track_caller]
    pub fn at_least(self, other: impl Into<Expr>) -> Expr {
        let other = other.into();
        Expr::of(self.unnormalized().at_least(other.unnormalized()), self.body().and(other.body()))
    }
}

macro_rules! from_numbers {
    ($($number:ty),*) => {$(
        impl From<$number> for Expr {
            fn from(number: $number) -> Expr {
                Expr(Repr::Number(i64::from(number)))
            }
        }
    )*};
}

from_numbers!(i32, i64);

impl From<&Expr> for Expr {
    fn from(of: &Expr) -> Expr {
        *of
    }
}

impl From<expr::Expr> for Expr {
    fn from(of: expr::Expr) -> Expr {
        Expr::of(of, BodyId::KERNEL)
    }
}

impl From<&expr::Expr> for Expr {
    fn from(of: &expr::Expr) -> Expr {
        Expr::from(of.clone())
    }
}

impl From<&expr::Var> for Expr {
    fn from(of: &expr::Var) -> Expr {
        Expr::from(expr::Expr::var(of))
    }
}
