//! The canonical form of sums: `c1*atom1 + c2*atom2 + ... + constant`, coefficients descending, then atoms in order.
//!
//! An atom is anything that is not a sum or a product with a number. Sums are flattened, sorted and merged here, and
//! split over division and remainder by a number, so that egg never needs associativity (six terms would cost it a
//! thousand nodes, ten terms two hundred thousand).

use std::collections::BTreeMap;

use crate::expr::{Expr, Node, Var};
use crate::range::{ValueRange, gcd};

/// A sum in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Linear {
    /// Atoms with their coefficients (never 0): largest absolute coefficient first, ties in the order of atoms.
    pub terms: Vec<(i64, Expr)>,
    /// The constant term.
    pub constant: i64,
}

impl Linear {
    fn of_constant(constant: i64) -> Linear {
        Linear { terms: Vec::new(), constant }
    }

    fn of_atom(atom: Expr) -> Linear {
        match atom.as_const() {
            Some(value) => Linear::of_constant(value),
            None => Linear { terms: vec![(1, atom)], constant: 0 },
        }
    }

    /// The expression, in canonical order.
    pub fn to_expr(&self) -> Expr {
        let mut sum: Option<Expr> = None;
        for (coefficient, atom) in &self.terms {
            let term = atom * *coefficient;
            sum = Some(match sum {
                None => term,
                Some(sum) => sum + term,
            });
        }
        match sum {
            None => Expr::constant(self.constant),
            Some(sum) => sum + self.constant,
        }
    }

    fn range(&self) -> ValueRange {
        self.terms.iter().fold(ValueRange::point(self.constant), |range, (c, atom)| {
            range.add(ValueRange::point(*c).mul(atom.range()))
        })
    }

    /// The sum times `factor`; `None` if a number overflows.
    pub fn scaled(mut self, factor: i64) -> Option<Linear> {
        if factor == 0 {
            return Some(Linear::of_constant(0));
        }
        for (coefficient, _) in &mut self.terms {
            *coefficient = coefficient.checked_mul(factor)?;
        }
        self.constant = self.constant.checked_mul(factor)?;
        Some(self)
    }

    /// The sum of both; `None` if a number overflows.
    pub fn plus(&self, other: &Linear) -> Option<Linear> {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        terms.extend_from_slice(&self.terms);
        for (coefficient, atom) in &other.terms {
            match terms.iter_mut().find(|(_, known)| known == atom) {
                Some((sum, _)) => *sum = sum.checked_add(*coefficient)?,
                None => terms.push((*coefficient, atom.clone())),
            }
        }
        let constant = self.constant.checked_add(other.constant)?;
        Some(Linear { terms, constant }.sorted())
    }

    fn sorted(mut self) -> Linear {
        self.terms.retain(|(c, _)| *c != 0);
        self.terms.sort_by(|(c, a), (d, b)| d.unsigned_abs().cmp(&c.unsigned_abs()).then_with(|| a.cmp(b)));
        self
    }

    /// Splits into (quotient, rest) with `self = quotient * divisor + rest`: terms that the divisor divides go to the
    /// quotient, and the constant of the rest lies in `0..divisor`.
    fn split(self, divisor: i64) -> (Linear, Linear) {
        let (whole, rest): (Vec<_>, Vec<_>) = self.terms.into_iter().partition(|(c, _)| c % divisor == 0);
        let whole = whole.into_iter().map(|(c, atom)| (c / divisor, atom)).collect();
        (
            Linear { terms: whole, constant: self.constant.div_euclid(divisor) }.sorted(),
            Linear { terms: rest, constant: self.constant.rem_euclid(divisor) }.sorted(),
        )
    }

    /// Greatest number that divides every coefficient; 1 for a constant.
    pub fn common_factor(&self) -> i64 {
        self.common_divisor(0).max(1)
    }

    /// Greatest divisor of `bound` that divides every coefficient.
    fn common_divisor(&self, bound: i64) -> i64 {
        self.terms.iter().fold(bound, |g, (c, _)| gcd(g, *c))
    }

    /// Divides coefficients by `g` (which divides them), and the constant by floor division.
    fn reduced(self, g: i64) -> Linear {
        let terms = self.terms.into_iter().map(|(c, atom)| (c / g, atom)).collect();
        Linear { terms, constant: self.constant.div_euclid(g) }
    }
}

/// The weight from which on the sum of a part is remembered, since the part may be used several times.
const REMEMBERED: u32 = 64;

/// The canonical sum equal to `expr`; operations that overflow are left as atoms.
pub fn linear(expr: &Expr) -> Linear {
    let mut known = BTreeMap::new();
    linear_of(expr, &mut known)
}

/// The same value with every sum inside in canonical form.
pub fn normalize(expr: &Expr) -> Expr {
    linear(expr).to_expr()
}

/// The most `min` and `max` that are related to the other terms of a sum.
const MOST_CHOICES: usize = 6;

/// A number that no value of `expr` exceeds. Each `min` that is added, and each `max` that is subtracted, is related to the
/// other terms: `min(n, t) - t` does not exceed 0.
pub fn upper_bound(expr: &Expr) -> i64 {
    upper_bound_of(&linear(expr), MOST_CHOICES)
}

/// A number that no value of `expr` falls below, related in the same way.
pub fn lower_bound(expr: &Expr) -> i64 {
    upper_bound(&(expr * -1)).saturating_neg()
}

fn upper_bound_of(sum: &Linear, choices: usize) -> i64 {
    let bounded = |(factor, atom): &(i64, Expr)| match atom.node() {
        Node::Min(a, b) if *factor > 0 => Some([a.clone(), b.clone()]),
        Node::Max(a, b) if *factor < 0 => Some([a.clone(), b.clone()]),
        _ => None,
    };
    let plain = sum.range().hi;
    let Some((at, either)) = sum.terms.iter().enumerate().find_map(|(at, term)| Some((at, bounded(term)?))) else {
        return plain;
    };
    let with = |operand: Expr| {
        let mut rest = sum.clone();
        let (factor, _) = rest.terms.remove(at);
        let whole = linear(&operand).scaled(factor).and_then(|operand| rest.plus(&operand));
        whole.map_or(i64::MAX, |whole| upper_bound_of(&recombined(whole), choices - 1))
    };
    if choices == 0 { plain } else { either.into_iter().map(with).fold(plain, i64::min) }
}

impl Expr {
    /// Replaces one variable by a number and folds what became constant.
    pub fn with(&self, var: &Var, value: i64) -> Expr {
        normalize(&self.substitute(&|v| (v == var).then(|| Expr::constant(value))))
    }
}

/// The sums of large parts, by their addresses.
type Known = BTreeMap<usize, Linear>;

fn linear_of(expr: &Expr, known: &mut Known) -> Linear {
    // Expressions are made of a few terms in many ways: a term that is found again is not looked into.
    if expr.is_term() {
        return Linear::of_atom(expr.clone());
    }
    if let Some(sum) = known.get(&expr.place()) {
        return sum.clone();
    }
    let sum = linear_of_node(expr, known);
    if matches!(&sum.terms[..], [(1, atom)] if sum.constant == 0 && atom == expr) {
        expr.set_term();
    } else if expr.weight() >= REMEMBERED {
        known.insert(expr.place(), sum.clone());
    }
    sum
}

fn normalized(expr: &Expr, known: &mut Known) -> Expr {
    linear_of(expr, known).to_expr()
}

fn linear_of_node(expr: &Expr, known: &mut Known) -> Linear {
    match expr.node() {
        Node::Const(value) => Linear::of_constant(*value),
        Node::Var(var) => match var.range().constant() {
            Some(value) => Linear::of_constant(value),
            None => Linear::of_atom(expr.clone()),
        },
        Node::Add(a, b) => {
            let (a, b) = (linear_of(a, known), linear_of(b, known));
            let sum = a.plus(&b).map(recombined);
            sum.unwrap_or_else(|| Linear::of_atom(Expr::from_node(Node::Add(a.to_expr(), b.to_expr()))))
        }
        Node::Mul(a, b) => product(linear_of(a, known), linear_of(b, known)),
        Node::Div(a, b) => quotient(linear_of(a, known), normalized(b, known)),
        Node::Mod(a, b) => remainder(linear_of(a, known), normalized(b, known)),
        Node::Xor(a, b) => {
            let (a, b) = (normalized(a, known), normalized(b, known));
            match (a.as_const(), b.as_const()) {
                (Some(bits), None) => flipped(bits, b),
                (None, Some(bits)) => flipped(bits, a),
                _ if a == b => Linear::of_constant(0),
                _ => Linear::of_atom(if a <= b { a ^ b } else { b ^ a }),
            }
        }
        Node::And(a, b) => masked(normalized(a, known), normalized(b, known)),
        Node::Min(a, b) => chosen(normalized(a, known), normalized(b, known), Expr::at_most),
        Node::Max(a, b) => chosen(normalized(a, known), normalized(b, known), Expr::at_least),
    }
}

/// The lesser or the greater of two, in a fixed order; one of them if their difference has a sign.
fn chosen(a: Expr, b: Expr, choose: fn(Expr, Expr) -> Expr) -> Linear {
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    let rest = normalize(&(&a - &b)).range();
    match choose(a.clone(), b.clone()) {
        made if made == a || made == b => linear(&made),
        made if rest.lo >= 0 || rest.hi <= 0 => {
            let is_first = matches!(made.node(), Node::Min(..)) == (rest.hi <= 0);
            linear(if is_first { &a } else { &b })
        }
        made => Linear::of_atom(made),
    }
}

fn product(a: Linear, b: Linear) -> Linear {
    let (number, other) = match (a.terms.is_empty(), b.terms.is_empty()) {
        (true, _) => (a.constant, &b),
        (_, true) => (b.constant, &a),
        (false, false) => {
            let (a, b) = (a.to_expr(), b.to_expr());
            return Linear::of_atom(if a <= b { a * b } else { b * a });
        }
    };
    let scaled = other.clone().scaled(number).and_then(without_exact_quotients);
    scaled.unwrap_or_else(|| Linear::of_atom(a.to_expr() * b.to_expr()))
}

/// `c*k*(x / k) = c*x` for a variable `x` that `k` divides. `None` if a number overflows.
fn without_exact_quotients(sum: Linear) -> Option<Linear> {
    let exact = |(coefficient, atom): &(i64, Expr)| {
        let Node::Div(value, divisor) = atom.node() else { return None };
        let divides = |k: &i64| *k > 0 && coefficient % k == 0 && value.multiple() % k == 0;
        let k = divisor.as_const().filter(divides).filter(|_| matches!(value.node(), Node::Var(_)))?;
        Some((coefficient / k, value.clone()))
    };
    if !sum.terms.iter().any(|term| exact(term).is_some()) {
        return Some(sum.sorted());
    }
    let (whole, rest): (Vec<_>, Vec<_>) = sum.terms.into_iter().partition(|term| exact(term).is_some());
    let rest = Linear { terms: rest, constant: sum.constant }.sorted();
    whole.iter().filter_map(exact).try_fold(rest, |sum, (factor, value)| sum.plus(&linear(&value).scaled(factor)?))
}

/// `floor((c*q + rest) / c) = q + floor(rest / c)`, then common factors of rest and divisor cancel.
fn quotient(value: Linear, divisor: Expr) -> Linear {
    let Some(c) = divisor.as_const().filter(|c| *c > 0) else {
        return Linear::of_atom(value.to_expr() / divisor);
    };
    let original = value.clone();
    let (whole, rest) = value.split(c);
    let range = rest.range();
    if range.lo.div_euclid(c) == range.hi.div_euclid(c) {
        let known = Linear::of_constant(range.lo.div_euclid(c));
        return whole.plus(&known).unwrap_or_else(|| Linear::of_atom(original.to_expr() / c));
    }
    let g = rest.common_divisor(c);
    let atom = Linear::of_atom(rest.reduced(g).to_expr() / (c / g));
    whole.plus(&atom).unwrap_or_else(|| Linear::of_atom(original.to_expr() / c))
}

/// `(c*q + rest) mod c = rest mod c`, then common factors of rest and divisor move out.
fn remainder(value: Linear, divisor: Expr) -> Linear {
    let Some(c) = divisor.as_const().filter(|c| *c > 0) else {
        return Linear::of_atom(value.to_expr() % divisor);
    };
    let (_, rest) = value.split(c);
    let range = rest.range();
    if range.lo.div_euclid(c) == range.hi.div_euclid(c) {
        let below = Linear::of_constant(-(range.lo.div_euclid(c) * c));
        return rest.plus(&below).unwrap_or_else(|| Linear::of_atom(rest.to_expr() % c));
    }
    let g = rest.common_divisor(c);
    let low = Linear::of_constant(rest.constant.rem_euclid(g));
    let atom = Linear::of_atom(rest.clone().reduced(g).to_expr() % (c / g));
    let high = atom.scaled(g);
    high.and_then(|high| high.plus(&low)).unwrap_or_else(|| Linear::of_atom(rest.to_expr() % c))
}

/// Exclusive or with a number: bits that cannot be set in the value are added.
fn flipped(bits: i64, value: Expr) -> Linear {
    let may_be_set = value.facts().possible_bits();
    let (met, apart) = if bits < 0 { (bits, 0) } else { (bits & may_be_set, bits & !may_be_set) };
    let atom = if met == 0 { linear(&value) } else { Linear::of_atom(Expr::constant(met) ^ value.clone()) };
    atom.plus(&Linear::of_constant(apart)).unwrap_or_else(|| Linear::of_atom(Expr::constant(bits) ^ value))
}

/// A mask of adjacent ones is a remainder of a quotient; other masks stay.
fn masked(a: Expr, b: Expr) -> Linear {
    let (value, mask) = if a.as_const().is_some() { (b, a) } else { (a, b) };
    match mask.as_const() {
        Some(bits) if bits > 0 && value.range().is_non_negative() && is_run_of_ones(bits) => {
            let low = 1i64 << bits.trailing_zeros();
            linear(&((value / low % (bits / low + 1)) * low))
        }
        Some(_) => Linear::of_atom(value & mask),
        None if value == mask => Linear::of_atom(value),
        None if value <= mask => Linear::of_atom(value & mask),
        None => Linear::of_atom(mask & value),
    }
}

fn is_run_of_ones(bits: i64) -> bool {
    let shifted = bits >> bits.trailing_zeros();
    shifted != i64::MAX && (shifted & (shifted + 1)) == 0
}

/// `c*k*(x / k) + c*(x mod k) = c*x` and `c*k*((x / k) mod m) + c*(x mod k) = c*(x mod k*m)`, wherever both terms occur.
fn recombined(mut sum: Linear) -> Linear {
    while let Some((quotient, remainder, whole)) = find_recombination(&sum) {
        let mut rest = sum.clone();
        rest.terms.remove(quotient.max(remainder));
        rest.terms.remove(quotient.min(remainder));
        match rest.plus(&whole) {
            Some(joined) => sum = joined,
            // The numbers of the joined sum do not fit, so the terms stay apart.
            None => return sum,
        }
    }
    sum
}

fn find_recombination(sum: &Linear) -> Option<(usize, usize, Linear)> {
    for (at, (coefficient, atom)) in sum.terms.iter().enumerate() {
        let Node::Mod(value, divisor) = atom.node() else { continue };
        let Some(k) = divisor.as_const() else { continue };
        let partner = value.clone() / k;
        let Some(wanted) = coefficient.checked_mul(k) else { continue };
        let found = sum.terms.iter().position(|(c, other)| *c == wanted && *other == partner);
        if let Some(other) = found
            && let Some(whole) = linear(value).scaled(*coefficient)
        {
            return Some((other, at, whole));
        }
        let digit = sum.terms.iter().enumerate().find_map(|(place, (c, other))| match other.node() {
            Node::Mod(quotient, m) if *c == wanted && *quotient == partner => Some((place, m.as_const()?)),
            _ => None,
        });
        let joined = digit.and_then(|(place, m)| Some((place, value.clone() % k.checked_mul(m)?)));
        if let Some((other, joined)) = joined
            && let Some(whole) = linear(&joined).scaled(*coefficient)
        {
            return Some((other, at, whole));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(name: &str, hi: i64) -> Expr {
        Expr::var(&Var::new(name, 0, hi))
    }

    #[test]
    fn an_expression_that_is_doubled_often_is_one_term() {
        let x = Expr::var(&Var::new("x", 0, 1));
        let doubled = (0..60).fold(x.clone(), |sum, _| sum.clone() + sum);
        assert_eq!((doubled.weight(), normalize(&doubled)), (u32::MAX, x * (1 << 60)));
    }

    #[test]
    fn remainders_inside_each_other_are_looked_at_once() {
        let scattered = (0..100).fold(v("x", 31), |hash, step| (hash * 5 + step) % 256);
        assert_eq!(normalize(&scattered).weight(), 595);
    }

    #[test]
    fn terms_are_merged_and_sorted_by_coefficient() {
        let e = v("lane", 31) + v("s", 3) * 128 + v("lane", 31) * 3 + 5 - 2;
        assert_eq!(normalize(&e).to_string(), "s*128 + lane*4 + 3");
    }

    #[test]
    fn division_splits_what_the_divisor_divides() {
        assert_eq!(normalize(&((v("lane", 31) + v("j", 3) * 32) / 32)).to_string(), "j");
        assert_eq!(normalize(&((v("lane", 63) + v("j", 3) * 32) / 32)).to_string(), "j + lane/32");
    }

    #[test]
    fn a_quotient_of_a_multiple_times_its_divisor_is_the_multiple() {
        let n = Expr::var(&Var::multiple_of("n", 64, 4096, 64));
        assert_eq!(normalize(&((&n / 64 - 1) * 128 + 3)).to_string(), "n*2 - 125");
        assert_eq!(normalize(&(v("m", 99) / 64 * 64)).to_string(), "m/64*64");
    }

    #[test]
    fn the_lesser_of_two_is_known_by_their_difference() {
        let (t, n) = (v("t", 9), v("n", 99));
        assert_eq!(normalize(&(&t + &n).at_most(&n + 4 + &t * 2)).to_string(), "n + t");
        assert_eq!(normalize(&(&t + &n).at_least(&n + 4 + &t * 2)).to_string(), "t*2 + n + 4");
        assert_eq!(normalize(&t.at_most(n)).to_string(), "min(n, t)");
    }

    #[test]
    fn bounds_relate_the_lesser_of_two_to_the_other_terms() {
        let (t, n) = (v("t", 9), v("n", 99));
        let least = (&t + 3).at_most(&n);
        assert_eq!((upper_bound(&(&least - &t)), upper_bound(&(&least - &n)), upper_bound(&least)), (3, 0, 12));
        assert_eq!((lower_bound(&(&n - &least)), lower_bound(&(t.at_least(n.clone()) - n))), (0, 0));
    }

    #[test]
    fn quotient_and_remainder_recombine() {
        let t = v("tid", 127);
        assert_eq!(normalize(&(&t / 32 * 32 + &t % 32)).to_string(), "tid");
    }

    #[test]
    fn neighbouring_digits_are_one() {
        let t = v("tid", 127);
        assert_eq!(normalize(&(&t / 8 * 8 + &t / 2 % 4 * 2 + &t % 2)).to_string(), "tid");
        assert_eq!(normalize(&(&t / 3 % 5 * 6 + &t % 3 * 2)).to_string(), "tid%15*2");
    }

    #[test]
    fn terms_stay_apart_where_joining_them_overflows() {
        let x = Var::new("x", -64, -10);
        let t = Expr::var(&x) + 5;
        let e = &t / 32 * 32 + (i64::MAX - 3) + &t % 32;
        let at = |expr: &Expr| expr.eval(&|_| Some(-54));
        assert_eq!(at(&e), Ok(i64::MAX - 52));
        assert_eq!(at(&normalize(&e)), at(&e));
        assert_eq!(linear(&e).terms.len(), 2);
    }

    #[test]
    fn a_mask_of_adjacent_ones_becomes_quotient_and_remainder() {
        assert_eq!(normalize(&(v("x", 1000) & 0b1110000)).to_string(), "x/16%8*16");
    }

    #[test]
    fn common_factors_cancel() {
        assert_eq!(normalize(&((v("x", 99) * 6 + 3) / 9)).to_string(), "(x*2 + 1)/3");
        assert_eq!(normalize(&((v("x", 99) * 6 + 4) % 9)).to_string(), "(x*2 + 1)%3*3 + 1");
    }
}
