//! What values cost: the arithmetic that NVRTC makes of indices and conditions, each distinct value once.
//!
//! The rules are what NVRTC 13 was seen to do: it knows the ranges of hardware indices and what a branch says of them,
//! divides by multiplying, in 16 bits where they suffice, and adds a product in one instruction.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_expr::linear::{Linear, linear, normalize};
use tilewright_expr::{Expr, Node, Var};
use tilewright_ir::HwIndex;
use tilewright_ir::thread::{Cond, Program, Stmt, for_each_expr};
use tilewright_layout::access::LANES;

/// The values that are there.
#[derive(Default)]
pub(super) struct Values {
    /// Sizes, which are loaded.
    sizes: Vec<Var>,
    /// Lane and warp are parts of the thread's index.
    has_warps: bool,
    /// Terms of sums and their partial sums.
    sums: BTreeSet<Expr>,
    /// Operations that are no sums, and named values.
    atoms: BTreeSet<Expr>,
    /// Dividends that were narrowed to 16 bits.
    narrow: BTreeSet<Expr>,
    /// Remainders, and the sums that they are terms of.
    remainders: BTreeMap<Expr, BTreeSet<Expr>>,
}

impl Values {
    /// No value, before statements that are counted.
    pub(super) fn before(program: &Program, body: &[Stmt]) -> Values {
        let has_warps = program.threads > LANES as i64;
        let mut values = Values { sizes: program.sizes.clone(), has_warps, ..Values::default() };
        for_each_expr(body, &mut |expr| {
            if !has(expr, &is_remainder) {
                return;
            }
            let sum = Linear { constant: 0, ..linear(expr) };
            for (_, atom) in sum.terms.iter().filter(|(_, atom)| matches!(atom.node(), Node::Mod(..))) {
                values.remainders.entry(atom.clone()).or_default().insert(sum.to_expr());
            }
        });
        values
    }

    /// The sum that NVRTC makes of an expression under conditions.
    pub(super) fn folded(&self, expr: &Expr, guards: &[Cond]) -> Linear {
        let known: Vec<(Var, Var)> = guards.iter().filter_map(narrowed).collect();
        let inner = |var: &Var| known.iter().find(|(outer, _)| outer == var).map(|(_, inner)| Expr::var(inner));
        let outer = |var: &Var| known.iter().find(|(_, inner)| inner == var).map(|(outer, _)| Expr::var(outer));
        let bounded = match known.is_empty() {
            true => expr.clone(),
            false => normalize(&expr.substitute(&inner)).substitute(&outer),
        };
        let sum = linear(&if has(&bounded, &is_bits) { split(&bounded) } else { bounded });
        if sum.terms.iter().any(|(_, atom)| is_remainder(atom)) { self.joined(sum) } else { sum }
    }

    /// `f*(x mod c) = f*x - f*c*(x / c)`, where the quotient takes two values, or is another term and no other sum needs
    /// the remainder.
    fn joined(&self, sum: Linear) -> Linear {
        let is_joined = |factor: &i64, atom: &Expr| match atom.node() {
            Node::Mod(x, c) if is_remainder(atom) => {
                let quotient = x / c;
                let is_only = self.remainders.get(atom).is_none_or(|sums| sums.len() == 1);
                let is_met = sum.terms.iter().any(|(_, other)| *other == quotient);
                (is_choice(&quotient) || is_only && is_met).then(|| x * *factor - (&quotient * c) * *factor)
            }
            _ => None,
        };
        let terms = sum.terms.iter().map(|(factor, atom)| is_joined(factor, atom).unwrap_or_else(|| atom * *factor));
        linear(&terms.fold(Expr::constant(sum.constant), |sum, term| sum + term))
    }

    /// Instructions for the sum without its constant.
    pub(super) fn sum(&mut self, sum: &Linear) -> i64 {
        let terms = &sum.terms;
        let each: i64 = terms.iter().map(|(factor, atom)| self.term(*factor, atom, terms.len() > 1)).sum();
        let parts = (2..=terms.len()).map(|end| Linear { terms: terms[..end].to_vec(), constant: 0 }.to_expr());
        each + parts.map(|part| once(&mut self.sums, part)).sum::<i64>()
    }

    /// An instruction if the constant of the sum has yet to be added.
    pub(super) fn constant(&mut self, sum: &Linear) -> i64 {
        let is_added = sum.constant != 0 && !sum.terms.is_empty();
        if is_added { once(&mut self.sums, sum.to_expr()) } else { 0 }
    }

    /// One term of a sum. A multiplication and the addition to it are one instruction; a multiple of an exclusive or with
    /// a number is the exclusive or with a multiple; a multiple of a quotient of two values is selected.
    fn term(&mut self, factor: i64, atom: &Expr, is_added: bool) -> i64 {
        if once(&mut self.sums, atom * factor) == 0 {
            return 0;
        }
        match atom.node() {
            Node::Xor(bits, value) if bits.as_const().is_some() => {
                1 + linear(value).scaled(factor).map_or(0, |multiple| self.sum(&multiple))
            }
            Node::Div(dividend, _) if is_choice(atom) => {
                1 + once(&mut self.atoms, atom.clone()) + self.operand(dividend)
            }
            _ => i64::from(factor != 1 && (!is_added || is_power(factor))) + self.atom(atom),
        }
    }

    fn operand(&mut self, operand: &Expr) -> i64 {
        let sum = linear(operand);
        self.sum(&sum) + self.constant(&sum)
    }

    /// What is no sum: a size is loaded, lane and warp are parts of the thread's index, other names are there.
    fn atom(&mut self, atom: &Expr) -> i64 {
        if let Node::Var(var) = atom.node() {
            let is_part = self.has_warps && matches!(HwIndex::of(var), Some(HwIndex::Lane | HwIndex::Warp));
            let is_made = is_part || self.sizes.contains(var);
            return if is_made { once(&mut self.atoms, atom.clone()) } else { 0 };
        }
        let Some((a, b)) = atom.operands() else { return 0 };
        if once(&mut self.atoms, atom.clone()) == 0 {
            return 0;
        }
        self.operation(atom) + self.operand(a) + self.operand(b)
    }

    /// Division by a number that is no power of two is a multiplication, of which the upper half is shifted; its
    /// remainder is multiplied back and subtracted. In 16 bits dividend and result are converted, remainders of bytes
    /// masked.
    fn operation(&mut self, atom: &Expr) -> i64 {
        let (Node::Div(a, b) | Node::Mod(a, b)) = atom.node() else { return 1 };
        if b.as_const().is_some_and(is_power) {
            return 1;
        }
        let quotient = a / b;
        if is_choice(&quotient) {
            // The remainder is the dividend, or the divisor less.
            return 2 + once(&mut self.atoms, quotient);
        }
        let is_narrow = a.range().within(0, 1 << 16);
        let converted = if is_narrow { 1 + once(&mut self.narrow, a.clone()) } else { 0 };
        let of_remainder = match atom.node() {
            Node::Mod(..) => 2 * once(&mut self.atoms, quotient) + i64::from(a.range().within(0, 1 << 8)),
            _ => 0,
        };
        2 + converted + of_remainder
    }
}

/// A variable, and the same where a condition holds that bounds it.
fn narrowed(guard: &Cond) -> Option<(Var, Var)> {
    let Cond::Less(a, b) = guard else { return None };
    let (Node::Var(var), Some(end)) = (a.node(), b.as_const()) else { return None };
    let bounded = Var::multiple_of(var.name(), var.range().lo, var.range().hi.min(end - 1), var.multiple());
    Some((var.clone(), bounded))
}

/// The expression with bits of an exclusive or as an exclusive or of bits, and bits of a sum as bits of what they depend
/// on.
fn split(expr: &Expr) -> Expr {
    let Some((a, b)) = expr.operands() else { return expr.clone() };
    let (a, b) = (split(a), split(b));
    let bits = b.as_const().is_some_and(is_power);
    match (expr.node(), a.node()) {
        (Node::Mod(..), Node::Add(..)) if bits => unmasked(&linear(&a), b.as_const().unwrap_or(1)) % b,
        (Node::Mod(..), Node::Xor(x, y)) if bits => split(&(x % &b)) ^ split(&(y % &b)),
        (Node::Div(..), Node::Xor(x, y)) if bits => split(&(x / &b)) ^ split(&(y / &b)),
        (Node::Mod(..), _) => a % b,
        (Node::Add(..), _) => a + b,
        (Node::Mul(..), _) => a * b,
        (Node::Div(..), _) => a / b,
        (Node::Xor(..), _) => a ^ b,
        (Node::And(..), _) => a & b,
        (Node::Const(_) | Node::Var(_), _) => expr.clone(),
    }
}

/// The sum without masks that do not change its last bits: `k*(y mod n) = k*y` modulo what divides `k*n`.
fn unmasked(sum: &Linear, modulus: i64) -> Expr {
    let whole = |factor: &i64, atom: &Expr| match atom.node() {
        Node::Mod(y, n) if n.as_const().is_some_and(|n| factor * n % modulus == 0) => y * *factor,
        _ => atom * *factor,
    };
    sum.terms.iter().fold(Expr::constant(sum.constant), |sum, (factor, atom)| sum + whole(factor, atom))
}

/// A remainder of a division that is no mask.
fn is_remainder(expr: &Expr) -> bool {
    matches!(expr.node(), Node::Mod(_, divisor) if !divisor.as_const().is_some_and(is_power))
}

/// A mask or shift of an exclusive or, or a mask of a sum.
fn is_bits(expr: &Expr) -> bool {
    match expr.node() {
        Node::Mod(a, _) => matches!(a.node(), Node::Xor(..) | Node::Add(..)),
        Node::Div(a, _) => matches!(a.node(), Node::Xor(..)),
        _ => false,
    }
}

/// Whether `is` holds of the expression or a part of it.
fn has(expr: &Expr, is: &dyn Fn(&Expr) -> bool) -> bool {
    is(expr) || expr.operands().is_some_and(|(a, b)| has(a, is) || has(b, is))
}

/// A quotient that takes two values, which a comparison decides.
fn is_choice(expr: &Expr) -> bool {
    let Node::Div(_, divisor) = expr.node() else { return false };
    let range = expr.range();
    divisor.as_const().is_some_and(|c| !is_power(c)) && range.hi - range.lo == 1
}

fn is_power(number: i64) -> bool {
    number > 0 && number & (number - 1) == 0
}

/// One if the value is not there yet.
fn once(known: &mut BTreeSet<Expr>, value: Expr) -> i64 {
    i64::from(known.insert(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size() -> Var {
        Var::new("n", 1, 1 << 20)
    }

    fn values() -> Values {
        Values { sizes: vec![size()], ..Values::default() }
    }

    fn costs(expr: Expr, guards: &[Cond]) -> i64 {
        let mut values = values();
        let sum = values.folded(&expr, guards);
        values.sum(&sum) + values.constant(&sum)
    }

    fn lane() -> Expr {
        Expr::var(&Var::new("lane", 0, 31))
    }

    #[test]
    fn a_product_and_a_sum_are_one_instruction() {
        assert_eq!(costs(lane() * 7 + lane() / 16, &[]), 2);
    }

    #[test]
    fn a_remainder_costs_its_quotient_once() {
        let (quotient, remainder) = (lane() / 10, lane() % 10);
        let mut values = values();
        let first = values.sum(&linear(&quotient));
        let second = values.sum(&linear(&remainder));
        assert_eq!((first, second, costs(remainder, &[])), (4, 4, 7));
    }

    #[test]
    fn a_remainder_that_meets_its_quotient_alone_is_the_dividend_less_a_multiple() {
        let (row, column) = (lane() / 10, lane() % 10);
        let pitched = row * 16 + column.clone();
        assert_eq!(costs(pitched.clone(), &[]), 5);
        let mut values = values();
        let elsewhere = BTreeSet::from([column.clone(), pitched.clone()]);
        values.remainders.insert(column, elsewhere);
        let sum = values.folded(&pitched, &[]);
        assert_eq!(values.sum(&sum), 10);
    }

    #[test]
    fn a_quotient_of_two_values_is_a_comparison_and_a_choice() {
        assert_eq!(costs(lane() / 20 * 3, &[]), 2);
    }

    #[test]
    fn a_branch_bounds_what_it_compares() {
        let below = Cond::Less(lane(), Expr::constant(10));
        assert_eq!(costs(lane() % 10, &[below]), 0);
    }

    #[test]
    fn bits_of_an_exclusive_or_are_taken_apart() {
        let row = (Expr::constant(3) ^ lane()) / 16;
        assert_eq!(costs(row.clone(), &[]), costs(lane() / 16, &[]));
    }

    #[test]
    fn a_size_is_loaded() {
        assert_eq!(costs(Expr::var(&size()), &[]), 1);
    }
}
