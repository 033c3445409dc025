//! Index expressions as C++.

use tilewright_expr::linear::{Linear, linear};
use tilewright_expr::{Expr, Node};

/// Binding strength of C++ operators, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Choice,
    Or,
    Xor,
    And,
    Equality,
    Relation,
    Shift,
    Sum,
    Product,
    Unary,
    Postfix,
}

/// The expression as C++, of type `int`, or `long long` where its values need that.
pub(crate) fn c_index(expr: &Expr) -> String {
    c_operand(expr).0
}

/// The same, with the binding strength of its outermost operator.
pub(crate) fn c_operand(expr: &Expr) -> (String, Level) {
    let expr = &in_lines(expr);
    let wide = needs_64_bits(expr);
    let patterns = matches!(expr.node(), Node::Xor(a, _) if a.as_const().is_some_and(|value| value >= PATTERN));
    Printer { wide, patterns }.print(expr)
}

/// The expression with the lines of padded tiles counted before they are multiplied by the pitch:
/// `((warp & 1)*32 + (lane & 15))*144` for `(warp & 1)*4608 + (lane & 15)*144`. The sum is then often one mask of the
/// thread.
fn in_lines(expr: &Expr) -> Expr {
    if !has_pitch(expr) {
        return expr.clone();
    }
    let Linear { mut terms, constant } = linear(expr);
    let count = terms.len();
    let mut at = 0;
    while at + 1 < terms.len() {
        let ((more, lines), (pitch, line)) = (&terms[at], &terms[at + 1]);
        let ratio = if is_pitch(*pitch) && more % pitch == 0 { more / pitch } else { 0 };
        if ratio > 1 && ratio & (ratio - 1) == 0 && line.range().lo >= 0 && line.range().hi < ratio {
            terms[at] = (*pitch, lines * ratio + line.clone());
            terms.remove(at + 1);
        } else {
            at += 1;
        }
    }
    if terms.len() == count { expr.clone() } else { Linear { terms, constant }.to_expr() }
}

/// Whether a term of a sum has a factor that may be a pitch.
fn has_pitch(expr: &Expr) -> bool {
    match expr.node() {
        Node::Add(a, b) => has_pitch(a) || has_pitch(b),
        Node::Mul(_, factor) => factor.as_const().is_some_and(is_pitch),
        Node::Const(_) | Node::Var(_) | Node::Div(..) | Node::Mod(..) | Node::Xor(..) | Node::And(..) => false,
    }
}

fn is_pitch(factor: i64) -> bool {
    factor > 2 && factor & (factor - 1) != 0
}

/// From this number on, an operand of exclusive or is printed as a bit pattern.
const PATTERN: i64 = 0x1000;

/// Whether the expression is computed as `long long`.
pub(crate) fn needs_64_bits(expr: &Expr) -> bool {
    let fits = |value: i64| i32::try_from(value).is_ok();
    let range = expr.range();
    let Some((a, b)) = expr.operands() else { return !(fits(range.lo) && fits(range.hi)) };
    // What `quotient` and `remainder` write beside the value of the expression.
    let (least, most) = match expr.node() {
        Node::Mod(..) | Node::Div(..) if needs_floor_correction(a, b) => {
            let rest = b.range().hi - 1;
            (a.range().lo.saturating_sub(rest), rest.saturating_add(b.range().hi))
        }
        _ => (0, 0),
    };
    let is_narrow = [range.lo, range.hi, least, most].into_iter().all(fits);
    !is_narrow || needs_64_bits(a) || needs_64_bits(b)
}

/// Whether floor division or its remainder takes more than the operator of C++, which rounds towards zero.
fn needs_floor_correction(a: &Expr, b: &Expr) -> bool {
    power_of_two(b).is_none() && !a.range().is_non_negative()
}

struct Printer {
    /// Whether variables are printed as `long long`.
    wide: bool,
    /// Whether large numbers are printed as bit patterns, in hexadecimal.
    patterns: bool,
}

impl Printer {
    fn print(&self, expr: &Expr) -> (String, Level) {
        match expr.node() {
            Node::Const(value) => self.constant(*value),
            Node::Var(var) if self.wide => (format!("(long long){}", var.name()), Level::Unary),
            Node::Var(var) => (var.name().to_string(), Level::Unary),
            Node::Add(a, b) => self.sum(a, b),
            Node::Mul(a, b) => match self.negated(expr) {
                Some(negated) => (format!("-({negated})"), Level::Unary),
                None => (format!("{}*{}", self.at(a, Level::Product), self.at(b, Level::Unary)), Level::Product),
            },
            Node::Div(a, b) => self.quotient(a, b),
            Node::Mod(a, b) => self.remainder(a, b),
            Node::Xor(a, b) => (format!("{} ^ {}", self.at(a, Level::Product), self.at(b, Level::Product)), Level::Xor),
            Node::And(a, b) => (format!("{} & {}", self.bits(a), self.bits(b)), Level::And),
        }
    }

    /// The expression, in parentheses if it binds less tightly than `least`.
    fn at(&self, expr: &Expr, least: Level) -> String {
        let (text, level) = self.print(expr);
        if level < least { format!("({text})") } else { text }
    }

    /// An operand of a shift or mask: sums get parentheses that C++ does not need, but a reader does.
    fn bits(&self, expr: &Expr) -> String {
        let (text, level) = self.print(expr);
        if level < Level::Shift || level == Level::Sum { format!("({text})") } else { text }
    }

    fn constant(&self, value: i64) -> (String, Level) {
        let suffix = if i32::try_from(value).is_err() { "ll" } else { "" };
        if self.patterns && value >= PATTERN {
            return (format!("{value:#06x}{suffix}"), Level::Unary);
        }
        (format!("{value}{suffix}"), if value < 0 { Level::Sum } else { Level::Unary })
    }

    /// A term with a minus sign, without the sign; `None` if it has none.
    fn negated(&self, term: &Expr) -> Option<String> {
        Some(match negative(term)? {
            (Some(of), 1) => self.at(of, Level::Product),
            (Some(of), factor) => format!("{}*{factor}", self.at(of, Level::Product)),
            (None, number) => number.to_string(),
        })
    }

    /// A sum, with what is subtracted at its end: NVRTC 13.5 for `sm_90a` miscompiles `r[i*(-4) + 5]` in unrolled loops,
    /// but not `r[5 - i*4]`. The order stays as it is where the other one may overflow.
    fn sum(&self, a: &Expr, b: &Expr) -> (String, Level) {
        let mut terms = Vec::new();
        terms_of(a, &mut terms);
        terms_of(b, &mut terms);
        let size = |term: &&Expr| term.range().lo.unsigned_abs().max(term.range().hi.unsigned_abs());
        let fits = i32::try_from(terms.iter().map(size).fold(0, u64::saturating_add)).is_ok();
        if self.wide || fits {
            terms.sort_by_key(|term| negative(term).is_some());
        }
        let mut text = self.at(terms[0], Level::Sum);
        for term in &terms[1..] {
            text.push_str(&match self.negated(term) {
                Some(negated) => format!(" - {negated}"),
                None => format!(" + {}", self.at(term, Level::Sum)),
            });
        }
        (text, Level::Sum)
    }

    /// Floor division. C++ rounds towards zero, so a numerator that may be negative is first reduced to a
    /// multiple of the divisor.
    fn quotient(&self, a: &Expr, b: &Expr) -> (String, Level) {
        if let Some(bits) = power_of_two(b) {
            return (format!("{} >> {bits}", self.bits(a)), Level::Shift);
        }
        if !needs_floor_correction(a, b) {
            return (format!("{}/{}", self.at(a, Level::Product), self.at(b, Level::Unary)), Level::Product);
        }
        let (value, rest) = (self.at(a, Level::Sum), self.remainder(a, b).0);
        (format!("({value} - {rest})/{}", self.at(b, Level::Unary)), Level::Product)
    }

    fn remainder(&self, a: &Expr, b: &Expr) -> (String, Level) {
        if let Some(bits) = power_of_two(b) {
            return (format!("{} & {}", self.bits(a), (1i64 << bits) - 1), Level::And);
        }
        let divisor = self.at(b, Level::Unary);
        let once = format!("{}%{divisor}", self.at(a, Level::Product));
        if !needs_floor_correction(a, b) {
            return (once, Level::Product);
        }
        (format!("({once} + {divisor})%{divisor}"), Level::Product)
    }
}

/// The terms of a sum, in order.
fn terms_of<'a>(expr: &'a Expr, terms: &mut Vec<&'a Expr>) {
    match expr.node() {
        Node::Add(a, b) => {
            terms_of(a, terms);
            terms_of(b, terms);
        }
        _ => terms.push(expr),
    }
}

/// A negative number, or a product by one: what else is multiplied, and the number without its sign. A product that is
/// -2^31 has no `int` without its sign.
fn negative(term: &Expr) -> Option<(Option<&Expr>, u64)> {
    let number = |of: &Expr| of.as_const().filter(|value| *value < 0).map(i64::unsigned_abs);
    match term.node() {
        Node::Const(_) => Some((None, number(term)?)),
        Node::Mul(..) if term.range().lo == i64::from(i32::MIN) => None,
        Node::Mul(a, b) => number(b).map(|factor| (Some(a), factor)).or_else(|| Some((Some(b), number(a)?))),
        _ => None,
    }
}

fn power_of_two(expr: &Expr) -> Option<u32> {
    expr.as_const().filter(|c| *c > 0 && c & (c - 1) == 0).map(i64::trailing_zeros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_expr::Var;

    fn v(name: &str, lo: i64, hi: i64) -> Expr {
        Expr::var(&Var::new(name, lo, hi))
    }

    #[test]
    fn shifts_and_masks_stand_for_powers_of_two() {
        let lane = v("lane", 0, 31);
        assert_eq!(c_index(&(&lane / 8 % 4)), "lane >> 3 & 3");
        assert_eq!(c_index(&((1 ^ v("x", 0, 3)) * 32 + lane)), "(1 ^ x)*32 + lane");
    }

    #[test]
    fn lines_are_counted_before_they_are_multiplied_by_a_pitch() {
        let (warp, lane, t) = (v("warp", 0, 3), v("lane", 0, 31), v("t", 0, 9));
        let text = |lines: i64| c_index(&(&warp % 2 * (lines * 144) + &lane % 16 * 144 + &t * 5 + 7));
        assert_eq!(text(32), "((warp & 1)*32 + (lane & 15))*144 + t*5 + 7");
        assert_eq!(text(8), "(warp & 1)*1152 + (lane & 15)*144 + t*5 + 7", "the lanes have more lines than that");
        assert_eq!(text(24), "(warp & 1)*3456 + (lane & 15)*144 + t*5 + 7", "no mask");
        assert_eq!(c_index(&(&warp * 256 + &lane % 16 * 16)), "warp*256 + (lane & 15)*16", "no pitch");
    }

    #[test]
    fn other_divisors_are_written_out() {
        let t = v("t", 0, 99);
        assert_eq!(c_index(&(&t / 12 * 7 + &t % 12)), "t/12*7 + t%12");
    }

    #[test]
    fn floor_division_of_what_may_be_negative() {
        let t = v("t", -9, 9);
        assert_eq!(c_index(&(&t % 3)), "(t%3 + 3)%3");
        assert_eq!(c_index(&(&t / 3)), "(t - (t%3 + 3)%3)/3");
        assert_eq!(c_index(&(&t / 4)), "t >> 2");
    }

    #[test]
    fn steps_of_floor_division_that_exceed_32_bits_are_64_bits_wide() {
        let (t, n) = (v("t", -9, 9), v("n", 1, i64::from(i32::MAX)));
        assert_eq!(c_index(&(&t % &n)), "((long long)t%(long long)n + (long long)n)%(long long)n");
        let (near, three) = (v("near", i64::from(i32::MIN) + 1, 0), Expr::constant(3));
        assert_eq!(c_index(&(&near / &three)), "((long long)near - ((long long)near%3 + 3)%3)/3");
        assert_eq!(c_index(&(&t / &v("m", 1, 1 << 30))), "(t - (t%m + m)%m)/m");
    }

    #[test]
    fn what_is_subtracted_stands_at_the_end() {
        let (i, t) = (v("i", 0, 3), v("t", 0, 9));
        assert_eq!(c_index(&(&i * -4 + 15)), "15 - i*4");
        assert_eq!(c_index(&(&i * -4 + &t * 2 - &t % 3 + 7)), "t*2 + 7 - i*4 - t%3");
        assert_eq!(c_index(&(&t - &i - 2)), "t - i - 2");
        assert_eq!(c_index(&(&i * -4)), "-(i*4)");
        assert_eq!(c_index(&((&i * -4) / 3)), "(-(i*4) - (-(i*4)%3 + 3)%3)/3");
    }

    #[test]
    fn an_order_in_which_sums_overflow_is_not_taken() {
        let (far, near) = (v("far", 0, i64::from(i32::MAX)), v("near", i64::from(i32::MAX) - 9, i64::from(i32::MAX)));
        assert_eq!(c_index(&(far + &near * -1 + 9)), "far - near + 9");
        assert_eq!(c_index(&(v("i", 0, 2) * -(1 << 30))), "i*(-1073741824)");
    }

    #[test]
    fn large_indices_are_64_bits_wide() {
        assert_eq!(c_index(&(v("bx", 0, 1 << 20) * 4096 + 3)), "(long long)bx*4096 + 3");
    }
}
