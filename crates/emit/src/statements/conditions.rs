//! Conditions in C++, and the heads of loops.

use tilewright_expr::Expr;
use tilewright_ir::Counter;
use tilewright_ir::thread::{Cond, Stmt};

use crate::index::{c_index, needs_64_bits};

fn condition(cond: &Cond) -> String {
    match cond {
        Cond::Less(a, b) => format!("{} < {}", grouped(a), grouped(b)),
        Cond::Equal(a, b) => format!("{} == {}", grouped(a), grouped(b)),
    }
}

/// The head of a loop. The variable is a `long long` if it passes what an `int` holds before the loop ends.
pub(super) fn loop_head(counter: &Counter) -> String {
    let Counter { var, begin, end, step } = counter;
    let name = var.name();
    let is_narrow = i32::try_from(var.range().hi.saturating_add(*step)).is_ok() && !needs_64_bits(begin);
    let kind = if is_narrow { "int" } else { "long long" };
    let next = if *step == 1 { format!("++{name}") } else { format!("{name} += {step}") };
    let goes_on = condition(&Cond::Less(Expr::var(var), end.clone()));
    format!("for ({kind} {name} = {}; {goes_on}; {next})", c_index(begin))
}

/// Conditions that all hold.
pub(super) fn all_of<'a>(conds: impl IntoIterator<Item = &'a Cond>) -> String {
    conds.into_iter().map(condition).collect::<Vec<_>>().join(" && ")
}

/// The statements inside a branch under these conditions, one nested in the other.
pub(super) fn under_all<'a>(stmt: &'a Stmt, conds: &[Cond]) -> Option<&'a [Stmt]> {
    let (first, others) = conds.split_first()?;
    match stmt {
        Stmt::If { cond, body } if cond == first => match (others, &body[..]) {
            ([], body) => Some(body),
            (others, [inner]) => under_all(inner, others),
            _ => None,
        },
        _ => None,
    }
}

/// Comparison binds tighter than `&` and `^`, so such operands need parentheses.
fn grouped(expr: &Expr) -> String {
    let text = c_index(expr);
    let mut depth = 0;
    let binds_weaker = text.chars().any(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0 && (c == '&' || c == '^')
    });
    if binds_weaker { format!("({text})") } else { text }
}
