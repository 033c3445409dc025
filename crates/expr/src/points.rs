//! The values of sums for all values of their variables.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::expr::{Expr, Node, Var};
use crate::linear::{Linear, linear};

/// A sum split into a part that depends on some variables, listed for all of their values, and a part that does not.
#[derive(Clone, Debug)]
pub struct Split {
    /// The part that depends on the variables, with the constant; the last variable is the fastest.
    pub own: Arc<Vec<i64>>,
    /// The least and the greatest value of that part; `None` if the variables have no values.
    pub ends: Option<[i64; 2]>,
    /// The part that does not depend on the variables.
    pub other: Expr,
}

impl Split {
    /// The sum of a part with these values and another part.
    pub fn new(own: Vec<i64>, other: Expr) -> Split {
        let ends = own.iter().min().zip(own.iter().max()).map(|(least, most)| [*least, *most]);
        Split { own: Arc::new(own), ends, other }
    }
}

/// Expressions split by the same variables, each of them once.
#[derive(Clone, Debug)]
pub struct Splits<'a> {
    vars: &'a [Var],
    /// Splits by expression; `None` if there is none.
    known: IndexMap<Expr, Option<Split>, FxBuildHasher>,
    /// The parts that depend on the variables, each with 0 as the other part: many expressions have the same. `None` for
    /// one without a value.
    parts: IndexMap<Linear, Option<Split>, FxBuildHasher>,
}

impl<'a> Splits<'a> {
    /// Splits by these variables, none of them computed yet.
    pub fn by(vars: &'a [Var]) -> Splits<'a> {
        Splits { vars, known: IndexMap::default(), parts: IndexMap::default() }
    }

    /// The variables.
    pub fn vars(&self) -> &'a [Var] {
        self.vars
    }

    /// The expression as a sum of both parts; `None` if one term depends on these variables and on
    /// others, or has no value for some of theirs.
    pub fn of(&mut self, expr: &Expr) -> Option<Split> {
        if let Some(split) = self.known.get(expr) {
            return split.clone();
        }
        let split = self.split(expr);
        self.known.insert(expr.clone(), split.clone());
        split
    }

    fn split(&mut self, expr: &Expr) -> Option<Split> {
        let sum = linear(expr);
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for (factor, atom) in sum.terms {
            let (mut owns, mut others) = (false, false);
            atom.for_each_var(&mut |var| if self.vars.contains(var) { owns = true } else { others = true });
            match (owns, others) {
                (true, true) => return None,
                (true, false) => own.push((factor, atom)),
                (false, _) => other.push((factor, atom)),
            }
        }
        let part = self.part(Linear { terms: own, constant: sum.constant })?;
        Some(Split { other: Linear { terms: other, constant: 0 }.to_expr(), ..part })
    }

    /// A sum that depends on the variables only, listed.
    fn part(&mut self, own: Linear) -> Option<Split> {
        if let Some(part) = self.parts.get(&own) {
            return part.clone();
        }
        let vars: Vec<&Var> = self.vars.iter().collect();
        let part = values(&own, &vars).map(|values| Split::new(values, Expr::constant(0)));
        self.parts.insert(own, part.clone());
        part
    }
}

/// How many values a variable can take.
pub fn extent(var: &Var) -> usize {
    let distance = var.range().hi.saturating_sub(value(var, 0));
    (distance.max(-var.multiple()).div_euclid(var.multiple()) + 1).max(0) as usize
}

/// The value number `at` of those that a variable can take, counted from 0.
pub fn value(var: &Var, at: i64) -> i64 {
    let multiple = var.multiple();
    let rest = var.range().lo.rem_euclid(multiple);
    let first = if rest == 0 { var.range().lo } else { var.range().lo.saturating_add(multiple - rest) };
    first.saturating_add(at.saturating_mul(multiple))
}

/// The values of a sum for all values of the variables, the last fastest. `None` if it has other variables, or if
/// something in it has no value or does not fit in 64 bits.
pub fn values(sum: &Linear, vars: &[&Var]) -> Option<Vec<i64>> {
    let mut factors = vec![0i64; vars.len()];
    let mut others = Vec::new();
    for (factor, atom) in &sum.terms {
        match place(atom, vars) {
            Some(at) => factors[at] = factors[at].checked_add(*factor)?,
            None => others.push((*factor, Listed::of(atom, vars)?)),
        }
    }
    let of_vars = factors.iter().zip(vars).map(|(factor, var)| magnitude(*factor, [var.range().lo, var.range().hi]));
    let of_others = others.iter().map(|(factor, listed)| magnitude(*factor, listed.table.iter().copied()));
    let greatest = of_vars.chain(of_others).fold(i128::from(sum.constant).abs(), i128::saturating_add);
    if greatest > i128::from(i64::MAX) {
        return None;
    }
    let first: i64 = vars.iter().zip(&factors).map(|(var, factor)| value(var, 0) * factor).sum();
    let factors: Vec<i64> = vars.iter().zip(&factors).map(|(var, factor)| var.multiple() * factor).collect();
    let mut values = straight(sum.constant + first, &factors, vars);
    for (factor, Listed { strides, table }) in &others {
        for (sum, point) in values.iter_mut().zip(straight(0, strides, vars)) {
            *sum += factor * table[point as usize];
        }
    }
    Some(values)
}

/// The greatest magnitude of a factor times one of these values.
fn magnitude(factor: i64, values: impl IntoIterator<Item = i64>) -> i128 {
    let greatest = values.into_iter().map(|value| i128::from(value).abs()).max().unwrap_or(0);
    i128::from(factor).abs().saturating_mul(greatest)
}

/// Whether the sum numbers the values of the variables in row-major order, from 0 on.
pub fn counts(sum: &Linear, vars: &[&Var]) -> bool {
    let mut stride = 1;
    let mut expected = Vec::new();
    for var in vars.iter().rev().filter(|var| extent(var) > 1) {
        if var.range().lo != 0 || var.multiple() != 1 {
            return false;
        }
        expected.push((stride, *var));
        stride *= extent(var) as i64;
    }
    let is_expected = |(factor, atom): &(i64, Expr)| match atom.node() {
        Node::Var(var) => expected.contains(&(*factor, var)),
        _ => false,
    };
    sum.constant == 0 && sum.terms.len() == expected.len() && sum.terms.iter().all(is_expected)
}

/// The index of the variable that an atom is, if it is one of `vars`.
fn place(atom: &Expr, vars: &[&Var]) -> Option<usize> {
    match atom.node() {
        Node::Var(var) => vars.iter().position(|known| *known == var),
        _ => None,
    }
}

/// `first`, plus each factor times the index of the variable's value, for all values, the last variable fastest.
fn straight(first: i64, factors: &[i64], vars: &[&Var]) -> Vec<i64> {
    let mut values = vec![first];
    for (var, factor) in vars.iter().zip(factors) {
        let steps = extent(var) as i64;
        let mut longer = Vec::with_capacity(values.len() * steps as usize);
        for value in values {
            longer.extend((0..steps).map(|step| value + factor * step));
        }
        values = longer;
    }
    values
}

/// The values of a term that is not a variable, once for all values of the variables that it depends on.
struct Listed {
    /// The distance in `table` from one value of each variable to the next; 0 for those that it does not depend on.
    strides: Vec<i64>,
    table: Vec<i64>,
}

impl Listed {
    /// `None` if the term has no value somewhere.
    fn of(atom: &Expr, vars: &[&Var]) -> Option<Listed> {
        let (mut strides, mut points) = (vec![0i64; vars.len()], 1i64);
        for at in (0..vars.len()).rev().filter(|at| atom.mentions(vars[*at])) {
            strides[at] = points;
            points *= extent(vars[at]) as i64;
        }
        let evaluated = |point: i64| {
            let digit = |at: usize| value(vars[at], point / strides[at].max(1) % extent(vars[at]) as i64);
            let env = |var: &Var| vars.iter().position(|known| *known == var).map(digit);
            atom.eval(&env).ok()
        };
        let table: Option<Vec<i64>> = (0..points).map(evaluated).collect();
        Some(Listed { strides, table: table? })
    }
}

#[cfg(test)]
mod tests {
    use crate::linear::linear;

    use super::*;

    fn listed(expr: &Expr, vars: &[&Var]) -> Vec<i64> {
        values(&linear(expr), vars).unwrap()
    }

    #[test]
    fn sums_are_listed_row_major() {
        let (i, j) = (Var::new("i", 0, 1), Var::new("j", 0, 2));
        let flat = Expr::var(&i) * 10 + Expr::var(&j) + 5;
        assert_eq!(listed(&flat, &[&i, &j]), [5, 6, 7, 15, 16, 17]);
        assert_eq!(listed(&flat, &[&j, &i]), [5, 15, 6, 16, 7, 17]);
    }

    #[test]
    fn terms_that_are_no_variables_are_listed_too() {
        let (i, j) = (Var::new("i", 0, 3), Var::new("j", 1, 2));
        let flat = Expr::var(&i) / 2 * 10 + Expr::var(&j);
        assert_eq!(listed(&flat, &[&i, &j]), [1, 2, 1, 2, 11, 12, 11, 12]);
    }

    #[test]
    fn row_major_order_counts() {
        let (i, j, one) = (Var::new("i", 0, 1), Var::new("j", 0, 2), Var::new("k", 0, 0));
        let flat = Expr::var(&i) * 3 + Expr::var(&j);
        assert!(counts(&linear(&flat), &[&i, &one, &j]));
        assert!(!counts(&linear(&flat), &[&j, &i]));
        assert!(!counts(&linear(&(flat + 1)), &[&i, &j]));
    }

    #[test]
    fn what_has_no_value_is_not_listed() {
        let (i, other) = (Var::new("i", 0, 3), Var::new("n", -1, 3));
        let unknown = linear(&(Expr::var(&i) + Expr::var(&other)));
        assert_eq!(values(&unknown, &[&i]), None);
        let divided = linear(&(Expr::var(&i) / Expr::var(&other)));
        assert_eq!(values(&divided, &[&i, &other]), None);
        let large = linear(&(Expr::var(&i) * (i64::MAX / 2)));
        assert_eq!(values(&large, &[&i]), None);
    }

    #[test]
    fn multiples_are_listed_without_what_is_between_them() {
        let (i, t) = (Var::new("i", 0, 1), Var::multiple_of("t", -5, 9, 4));
        assert_eq!((extent(&t), value(&t, 0), value(&t, 3)), (4, -4, 8));
        let both = Expr::var(&i) * 100 + Expr::var(&t) + Expr::var(&t) / 8 * 10;
        assert_eq!(listed(&both, &[&i, &t]), [-14, 0, 4, 18, 86, 100, 104, 118]);
    }

    #[test]
    fn a_variable_without_values_has_no_points() {
        let (i, none) = (Var::new("i", 0, 3), Var::new("k", 0, -1));
        assert_eq!(listed(&(Expr::var(&i) / 2 + Expr::var(&none)), &[&i, &none]), []);
    }
}
