//! Values of an expression at all points of a box of its variables.

use crate::expr::{Expr, Node, Var};
use crate::linear::linear;

/// The values for all combinations of values of the variables, the last variable fastest. Variables that are not among
/// them, and what has no value, count as 0.
pub fn values(expr: &Expr, vars: &[&Var]) -> Vec<i64> {
    let extent = |var: &Var| (var.range().hi - var.range().lo + 1).max(0) as usize;
    let count: usize = vars.iter().map(|var| extent(var)).product();
    let strides: Vec<usize> =
        (0..vars.len()).map(|at| vars[at + 1..].iter().map(|var| extent(var)).product()).collect();
    let digit = |at: usize, point: usize| vars[at].range().lo + (point / strides[at] % extent(vars[at])) as i64;
    let sum = linear(expr);
    let mut values = vec![sum.constant; count];
    for (factor, atom) in &sum.terms {
        let place = match atom.node() {
            Node::Var(var) => vars.iter().position(|known| *known == var),
            _ => None,
        };
        for (point, value) in values.iter_mut().enumerate() {
            let of_atom = match place {
                Some(at) => digit(at, point),
                None => {
                    let env = |var: &Var| vars.iter().position(|known| *known == var).map(|at| digit(at, point));
                    atom.eval(&env).unwrap_or(0)
                }
            };
            *value += factor * of_atom;
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_variable_is_fastest() {
        let (i, j) = (Var::new("i", 0, 1), Var::new("j", 1, 3));
        let expr = Expr::var(&i) * 10 + (Expr::var(&j) ^ Expr::constant(1));
        assert_eq!(values(&expr, &[&i, &j]), [0, 3, 2, 10, 13, 12]);
    }
}
