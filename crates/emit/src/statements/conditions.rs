//! Conditions in C++, and the heads of loops.

use tilewright_expr::Expr;
use tilewright_expr::linear::{Linear, linear};
use tilewright_ir::Counter;
use tilewright_ir::thread::{Cond, Stmt};

use crate::index::{c_index, needs_64_bits};

fn condition(cond: &Cond) -> String {
    match cond {
        Cond::Less(a, b) => match a.as_const() {
            Some(limit) => above(limit, b),
            None => format!("{} < {}", grouped(a), grouped(b)),
        },
        Cond::Equal(a, b) => format!("{} == {}", grouped(a), grouped(b)),
    }
}

/// A sum is greater than a number: `n > 127` for `0 < n - 127`, and `at >= 0` for `-1 < at`.
fn above(limit: i64, sum: &Expr) -> String {
    let Linear { terms, constant } = linear(sum);
    let terms = Linear { terms, constant: 0 }.to_expr();
    let fits = |expr: &Expr| i32::try_from(expr.range().lo).is_ok() && i32::try_from(expr.range().hi).is_ok();
    let (of, than) = match limit.checked_sub(constant) {
        Some(than) if fits(sum) && fits(&terms) && i32::try_from(than).is_ok() => (&terms, than),
        _ => (sum, limit),
    };
    if than == -1 { format!("{} >= 0", grouped(of)) } else { format!("{} > {than}", grouped(of)) }
}

/// The head of a loop, the next value of which may be in a register. The variable is a `long long` if it passes what an `int` holds
/// before the loop ends.
pub(super) fn loop_head(counter: &Counter, next: Option<&str>) -> String {
    let Counter { var, begin, end, step } = counter;
    let name = var.name();
    let is_narrow = i32::try_from(var.range().hi.saturating_add(*step)).is_ok() && !needs_64_bits(begin);
    let kind = if is_narrow { "int" } else { "long long" };
    let next = match next {
        Some(next) => format!("{name} = {next}"),
        None if *step == 1 => format!("++{name}"),
        None => format!("{name} += {step}"),
    };
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

#[cfg(test)]
mod tests {
    use tilewright_expr::Var;

    use super::*;

    #[test]
    fn numbers_stand_on_the_right() {
        let (n, at) = (Expr::var(&Var::new("n", 1, 1 << 30)), Expr::var(&Var::new("at", -(1 << 31), 1 << 20)));
        let less = |limit: i64, sum: &Expr| condition(&Cond::Less(Expr::constant(limit), sum.clone()));
        assert_eq!(less(0, &(&n - 127)), "n > 127");
        assert_eq!(less(-1, &at), "at >= 0");
        assert_eq!(less(3, &(&n % 8)), "(n & 7) > 3");
        assert_eq!(less(-1, &(&n - 1)), "n > 0");
        // The sum without the number does not fit into an `int`.
        assert_eq!(less(0, &(&n * 2 - 5)), "(long long)n*2 - 5 > 0");
        assert_eq!(condition(&Cond::Less(at, n)), "at < n");
    }
}
