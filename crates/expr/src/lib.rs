//! Index expressions: integers with floor semantics over variables whose ranges are known.
//!
//! An address in a kernel is an [`Expr`]: built with Rust operators, evaluated exactly, and simplified by a
//! [`Simplifier`] before it is printed. Simplification has two halves that take turns: sums live in a canonical
//! sorted linear form ([`linear`]), which needs no search; division, remainder, exclusive or and masks are rewritten
//! by egg ([`mod@rules`]), which never sees associativity and so cannot explode.
//!
//! ```
//! use tilewright_expr::{Expr, Simplifier, Var};
//! let lane = Expr::var(&Var::new("lane", 0, 31));
//! let r = Expr::var(&Var::new("r", 0, 3));
//! let index = lane.clone() + (r.clone() ^ ((lane.clone() / 8) % 4)) * 32;
//! let row = (index.clone() / 32) % 4;
//! assert_eq!(Simplifier::new().simplify(&row).to_string(), "r ^ lane/8");
//! assert_eq!(Simplifier::new().simplify(&(index % 32)).to_string(), "lane");
//! ```

mod expr;
mod facts;
pub mod linear;
mod ops;
pub mod points;
mod range;
pub mod rules;
mod simplify;

pub use expr::{EvalError, Expr, Node, Var};
pub use facts::Facts;
pub use range::ValueRange;
pub use simplify::Simplifier;
