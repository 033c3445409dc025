//! Turns a number per thread into an expression of the thread's index, and a set of threads into conditions on it.
//!
//! Most of them are expressed by digits of the index. The others are looked up in a table, so that none is refused.

mod fit;
mod sets;
mod shuffle;

use num_integer::Integer;
use tilewright_diag::Span;
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Cond, Stmt};

use crate::builder::Builder;
use crate::conditions::under;

pub(crate) use fit::{Fitted, fit};
pub(crate) use shuffle::shuffle_from;

/// The number of each thread as an expression; where it is `None`, the expression may have any value. A lookup, if it
/// takes one, is added to `out`. If `multiple` divides the numbers, it divides the expression.
pub(crate) fn number(
    values: &[Option<i64>],
    multiple: i64,
    thread: &Expr,
    builder: &mut Builder,
    out: &mut Vec<Stmt>,
) -> Expr {
    match fit(values, thread, multiple) {
        Some(expr) => normalize(&expr),
        None => looked_up(values, thread, builder, out),
    }
}

/// The number of each thread, looked up in a table.
pub(crate) fn looked_up(values: &[Option<i64>], thread: &Expr, builder: &mut Builder, out: &mut Vec<Stmt>) -> Expr {
    let numbers: Vec<i64> = values.iter().map(|value| value.unwrap_or(0)).collect();
    let (least, most) = (numbers.iter().min().copied().unwrap_or(0), numbers.iter().max().copied().unwrap_or(0));
    let common = numbers.iter().fold(0, |common: i64, number| common.gcd(number)).max(1);
    let table = builder.table("of_thread", numbers, Span::here());
    let var = Var::multiple_of(builder.fresh("entry"), least, most, common);
    out.push(Stmt::Lookup { vars: vec![var.clone()], table, index: thread.clone() });
    Expr::var(&var)
}

/// Conditions that hold exactly for the threads of a set; empty if it has all of them. A lookup, if it takes one, is
/// added to `out`.
pub(crate) fn members(set: &[bool], thread: &Expr, builder: &mut Builder, out: &mut Vec<Stmt>) -> Vec<Cond> {
    sets::conditions(set, thread).unwrap_or_else(|| {
        let members = set.iter().map(|is_in| i64::from(*is_in)).collect();
        let table = builder.table("takes_part", members, Span::here());
        let var = Var::new(builder.fresh("part"), 0, 1);
        out.push(Stmt::Lookup { vars: vec![var.clone()], table, index: thread.clone() });
        vec![Cond::Equal(Expr::var(&var), Expr::constant(1))]
    })
}

/// Adds statements that the threads of `set` execute, and that threads for which `may` is true may execute as well.
pub(crate) fn by_threads(
    set: &[bool],
    may: impl Fn(usize) -> bool,
    body: Vec<Stmt>,
    thread: &Expr,
    builder: &mut Builder,
    out: &mut Vec<Stmt>,
) {
    if set.iter().enumerate().all(|(thread, is_in)| *is_in || may(thread)) {
        out.extend(body);
        return;
    }
    let conditions = members(set, thread, builder, out);
    out.extend(under(&conditions, body));
}
