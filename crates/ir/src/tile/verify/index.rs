//! Index expressions that cannot be computed: they divide by something that is not positive, exceed 2^60, or use a variable that
//! has no value there.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::{Expr, Node, ValueRange, Var};

use crate::hw_index::HwIndex;
use crate::tile::kernel::Kernel;

/// The greatest magnitude of a sum or product of indices. It leaves room in 64 bits, so that terms may be added in any
/// order.
const MAX_MAGNITUDE: i64 = 1 << 60;

/// The error for an expression that is part of `title`, if it cannot be computed.
pub(super) fn wrong(expr: &Expr, title: &str, span: Span) -> Option<Diagnostic> {
    let divisor = bad_divisor(expr).map(|divisor| divisor_finding(title, divisor, span));
    divisor.or_else(|| too_large(expr).map(|part| too_large_finding(title, &part.to_string(), span)))
}

/// A divisor in an index that may be 0 or less: indices are divided by positive numbers only, rounding down.
fn bad_divisor(index: &Expr) -> Option<&Expr> {
    let (a, b) = index.operands()?;
    let divides = matches!(index.node(), Node::Div(..) | Node::Mod(..));
    let own = (divides && b.range().lo < 1).then_some(b);
    own.or_else(|| bad_divisor(a)).or_else(|| bad_divisor(b))
}

fn divisor_finding(title: &str, divisor: &Expr, span: Span) -> Diagnostic {
    let range = divisor.range();
    let known = match range.constant() {
        Some(_) => String::new(),
        None => format!(", which ranges from {} to {}", range.lo, range.hi),
    };
    Diagnostic::error("K0244", format!("`{title}` divides by `{divisor}`{known}"))
        .label(span, "used here")
        .help("the divisor of an index must be positive; division rounds down")
}

/// The innermost sum or product that exceeds [`MAX_MAGNITUDE`].
fn too_large(expr: &Expr) -> Option<&Expr> {
    let (a, b) = expr.operands()?;
    let own = || {
        let is_sum = matches!(expr.node(), Node::Add(..) | Node::Mul(..));
        (is_sum && !is_held(expr.range())).then_some(expr)
    };
    too_large(a).or_else(|| too_large(b)).or_else(own)
}

/// Whether integers of this range are computed exactly.
pub(super) fn is_held(range: ValueRange) -> bool {
    range.within(-MAX_MAGNITUDE, MAX_MAGNITUDE + 1)
}

pub(super) fn too_large_finding(title: &str, part: &str, span: Span) -> Diagnostic {
    let message = match part == title {
        true => format!("`{title}` exceeds 2^60"),
        false => format!("`{part}` in `{title}` exceeds 2^60"),
    };
    Diagnostic::error("K0269", message)
        .label(span, "used here")
        .note("indices are computed exactly, with numbers of up to 2^60 in magnitude")
        .help("compute it as a value of a dtype, which wraps: Value::from(i).wrapping_cast(I64) * ..")
}

/// The error for an index that depends on the warp in a role, without a label.
pub(super) fn of_the_warp(title: &str) -> Diagnostic {
    let message = format!("`{title}` depends on the warp, in a role whose warps execute it together");
    Diagnostic::error("K0275", message)
        .help("use the variables of k.parallel, or give each of the warps a role of its own")
}

/// The error for a variable that has no value where an index uses it, without a label.
pub(super) fn undefined(kernel: &Kernel, var: &Var, title: &str) -> Diagnostic {
    if HwIndex::of(var) == Some(HwIndex::Warp) && kernel.seen_by.is_some() {
        return of_the_warp(title);
    }
    let message = format!("`{}` is not defined where `{title}` uses it", var.name());
    Diagnostic::error("K0217", message)
        .help("a loop variable is known only inside its loop, block and warp indices only after k.grid and k.threads")
}

#[cfg(test)]
mod tests {
    use tilewright_expr::Var;

    use super::*;

    fn said(expr: &Expr) -> Option<String> {
        wrong(expr, "x[..]", Span::here()).map(|finding| finding.message)
    }

    #[test]
    fn sums_and_products_are_held_in_any_order() {
        let i = Expr::var(&Var::new("i", 0, 7));
        assert_eq!(said(&(&i * (1 << 57))), None);
        let beyond = "`i*288230376151711744` in `x[..]` exceeds 2^60".to_string();
        assert_eq!(said(&(&(&i * (1 << 58)) % 1000)), Some(beyond));
        assert!(said(&(&i * (1 << 57) + (1 << 58))).is_some());
        assert!(said(&(&i * (1 << 62))).is_some());
    }

    #[test]
    fn exclusive_or_with_a_negative_number_is_as_large_as_its_operands() {
        let (i, m) = (Expr::var(&Var::new("i", 0, 7)), Expr::var(&Var::new("m", 0, 1 << 40)));
        let flipped = &i ^ &Expr::constant(-3);
        assert_eq!(said(&(&flipped + 1)), None);
        assert_eq!(said(&(&(&flipped * &m) * &m)).as_deref(), Some("`(i ^ -3)*m*m` in `x[..]` exceeds 2^60"));
    }
}
