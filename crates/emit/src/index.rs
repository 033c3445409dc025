//! Index expressions as C++.

use tilewright_expr::linear::{Linear, linear};
use tilewright_expr::{Expr, Node};

/// Binding strength of C++ operators, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Choice,
    /// `||`
    Either,
    /// `&&`
    Both,
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
    let patterns = matches!(expr.node(), Node::Xor(a, _) if a.as_const().is_some_and(|value| value >= PATTERN));
    Printer { patterns }.print(expr)
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
        Node::Min(..) | Node::Max(..) => false,
    }
}

fn is_pitch(factor: i64) -> bool {
    factor > 2 && factor & (factor - 1) != 0
}

/// From this number on, an operand of exclusive or is printed as a bit pattern.
const PATTERN: i64 = 0x1000;

/// Whether what `c_index` prints for the expression is a `long long`.
pub(crate) fn needs_64_bits(expr: &Expr) -> bool {
    takes_64_bits(&in_lines(expr))
}

/// Whether the expression, as it stands, is computed as `long long`.
fn takes_64_bits(expr: &Expr) -> bool {
    let fits = |value: i64| i32::try_from(value).is_ok();
    let range = expr.range();
    let Some((a, b)) = expr.operands() else { return !(fits(range.lo) && fits(range.hi)) };
    let is_narrow = match expr.node() {
        Node::Mod(..) | Node::Div(..) if needs_floor_correction(a, b) => is_narrow_floor(a, b),
        _ => true,
    };
    !is_narrow || !fits(range.lo) || !fits(range.hi) || takes_64_bits(a) || takes_64_bits(b)
}

/// Whether an `int` holds what `quotient` and `remainder` write for floor division beside the value of the expression.
fn is_narrow_floor(a: &Expr, b: &Expr) -> bool {
    let rest = b.range().hi - 1;
    let (least, most) = (a.range().lo.saturating_sub(rest), rest.saturating_add(b.range().hi));
    i32::try_from(least).is_ok() && i32::try_from(most).is_ok()
}

/// Whether floor division or its remainder takes more than the operator of C++, which rounds towards zero.
fn needs_floor_correction(a: &Expr, b: &Expr) -> bool {
    power_of_two(b).is_none() && !a.range().is_non_negative()
}

struct Printer {
    /// Whether large numbers are printed as bit patterns, in hexadecimal.
    patterns: bool,
}

impl Printer {
    fn print(&self, expr: &Expr) -> (String, Level) {
        match expr.node() {
            Node::Const(value) => self.constant(*value),
            Node::Var(var) => (var.name().to_string(), Level::Unary),
            Node::Add(..) => self.sum(expr),
            Node::Mul(a, b) => match self.negated(expr) {
                Some(negated) => (format!("-({negated})"), Level::Unary),
                None => (self.product(a, b, takes_64_bits(expr)), Level::Product),
            },
            Node::Div(a, b) => self.quotient(a, b),
            Node::Mod(a, b) => self.remainder(a, b),
            Node::Xor(a, b) => (format!("{} ^ {}", self.at(a, Level::Product), self.at(b, Level::Product)), Level::Xor),
            Node::And(a, b) => (format!("{} & {}", self.bits(a), self.bits(b)), Level::And),
            Node::Min(a, b) => (self.chosen("min", a, b), Level::Postfix),
            Node::Max(a, b) => (self.chosen("max", a, b), Level::Postfix),
        }
    }

    /// A product, which is computed as `long long` if one of its factors is.
    fn product(&self, a: &Expr, b: &Expr, is_wide: bool) -> String {
        let a = if is_wide && !takes_64_bits(b) { self.wide(a, Level::Product) } else { self.at(a, Level::Product) };
        format!("{a}*{}", self.at(b, Level::Unary))
    }

    /// A call of CUDA's `min` or `max`, whose arguments have one type.
    fn chosen(&self, function: &str, a: &Expr, b: &Expr) -> String {
        let is_wide = takes_64_bits(a) || takes_64_bits(b);
        let argument = |of: &Expr| if is_wide { self.wide(of, Level::Choice) } else { self.print(of).0 };
        format!("{function}({}, {})", argument(a), argument(b))
    }

    /// The expression as a `long long`, in parentheses if it binds less tightly than `least`.
    fn wide(&self, expr: &Expr, least: Level) -> String {
        match expr.node() {
            _ if takes_64_bits(expr) => self.at(expr, least),
            Node::Mul(a, b) if least <= Level::Product && negative(expr).is_none() => self.product(a, b, true),
            _ => format!("(long long){}", self.at(expr, Level::Unary)),
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

    /// The same of what is divided by a power of two, as a `long long` if that is one.
    fn bits_beside(&self, expr: &Expr, power: &Expr) -> String {
        if takes_64_bits(power) { self.wide(expr, Level::Product) } else { self.bits(expr) }
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
        let is_wide = takes_64_bits(term);
        Some(match negative(term)? {
            (Some(of), 1) if is_wide => self.wide(of, Level::Product),
            (Some(of), 1) => self.at(of, Level::Product),
            (Some(of), factor) if is_wide => format!("{}*{factor}", self.wide(of, Level::Product)),
            (Some(of), factor) => format!("{}*{factor}", self.at(of, Level::Product)),
            (None, number) => number.to_string(),
        })
    }

    /// A sum, with what is subtracted at its end: NVRTC 13.5 for `sm_90a` miscompiles `r[i*(-4) + 5]` in unrolled loops,
    /// but not `r[5 - i*4]`. The order stays as it is where the other one may overflow.
    fn sum(&self, expr: &Expr) -> (String, Level) {
        let mut terms = Vec::new();
        terms_of(expr, &mut terms);
        if takes_64_bits(expr) {
            return (self.wide_sum(terms), Level::Sum);
        }
        if let (false, Node::Add(a, b)) = (are_narrow_in_any_order(&terms), expr.node()) {
            return (self.continued(self.at(a, Level::Sum), &[b]), Level::Sum);
        }
        terms.sort_by_key(|term| negative(term).is_some());
        (self.continued(self.at(terms[0], Level::Sum), &terms[1..]), Level::Sum)
    }

    /// A sum that is computed as `long long`. The terms that need not be are added as an `int` if that holds their sum:
    /// `(long long)row*n + (bx*64 + tid)`.
    fn wide_sum(&self, terms: Vec<&Expr>) -> String {
        let is_negative = |term: &&Expr| negative(term).is_some();
        let (wide, mut narrow): (Vec<&Expr>, Vec<&Expr>) = terms.into_iter().partition(|term| takes_64_bits(term));
        let (subtracted, added): (Vec<&Expr>, Vec<&Expr>) = wide.into_iter().partition(is_negative);
        narrow.sort_by_key(is_negative);
        let is_group = narrow.len() > 1 && !is_negative(&narrow[0]) && are_narrow_in_any_order(&narrow);
        if is_group && !added.is_empty() {
            let group = self.continued(self.at(narrow[0], Level::Sum), &narrow[1..]);
            let text = self.continued(self.at(added[0], Level::Sum), &added[1..]);
            return self.continued(format!("{text} + ({group})"), &subtracted);
        }
        let terms = [added, narrow, subtracted].concat();
        self.continued(self.wide(terms[0], Level::Sum), &terms[1..])
    }

    /// A sum with more terms.
    fn continued(&self, mut text: String, terms: &[&Expr]) -> String {
        for term in terms {
            text.push_str(&match self.negated(term) {
                Some(negated) => format!(" - {negated}"),
                None => format!(" + {}", self.at(term, Level::Product)),
            });
        }
        text
    }

    /// Floor division. C++ rounds towards zero, so a numerator that may be negative is first reduced to a
    /// multiple of the divisor.
    fn quotient(&self, a: &Expr, b: &Expr) -> (String, Level) {
        if let Some(bits) = power_of_two(b) {
            return (format!("{} >> {bits}", self.bits_beside(a, b)), Level::Shift);
        }
        if !needs_floor_correction(a, b) {
            return (format!("{}/{}", self.at(a, Level::Product), self.at(b, Level::Unary)), Level::Product);
        }
        let (value, rest) = (self.dividend(a, b, Level::Sum), self.remainder(a, b).0);
        (format!("({value} - {rest})/{}", self.at(b, Level::Unary)), Level::Product)
    }

    /// What is divided by `b`, as a `long long` if one of the steps of floor division exceeds an `int`.
    fn dividend(&self, a: &Expr, b: &Expr, least: Level) -> String {
        let is_wide = !is_narrow_floor(a, b) && !takes_64_bits(b);
        if is_wide { self.wide(a, least) } else { self.at(a, least) }
    }

    fn remainder(&self, a: &Expr, b: &Expr) -> (String, Level) {
        if let Some(bits) = power_of_two(b) {
            return (format!("{} & {}", self.bits_beside(a, b), (1i64 << bits) - 1), Level::And);
        }
        let divisor = self.at(b, Level::Unary);
        if !needs_floor_correction(a, b) {
            return (format!("{}%{divisor}", self.at(a, Level::Product)), Level::Product);
        }
        let once = format!("{}%{divisor}", self.dividend(a, b, Level::Product));
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

/// Whether an `int` holds the sum of any of these terms.
fn are_narrow_in_any_order(terms: &[&Expr]) -> bool {
    let size = |term: &&Expr| term.range().lo.unsigned_abs().max(term.range().hi.unsigned_abs());
    i32::try_from(terms.iter().map(size).fold(0, u64::saturating_add)).is_ok()
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
mod tests;
