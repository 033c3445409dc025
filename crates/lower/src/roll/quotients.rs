//! Names for what follows from the variable of a loop by a division that is not by a number.
//!
//! The row of a tile is `tile/columns`, if CTAs go through all tiles of a matrix, and every statement of the loop's body needs it.
//! NVRTC divides once in any case; with a name, so does the reader.

use std::collections::BTreeSet;

use tilewright_expr::{Expr, Node, Var};
use tilewright_ir::HwIndex;
use tilewright_ir::thread::{Stmt, for_each_stmt};

use crate::builder::Builder;

/// The statements, with such quotients named where the body of a loop begins.
pub(super) fn quotients_named(builder: &mut Builder, body: Vec<Stmt>) -> Vec<Stmt> {
    let named = |stmt: Stmt| match stmt {
        Stmt::For { counter, unroll, mut body } => {
            // What differs from one thread to the next, or changes in the body.
            let mut inside: BTreeSet<Var> = BTreeSet::new();
            for_each_stmt(&body, &mut |stmt| inside.extend(stmt.defines().iter().cloned()));
            inside.extend(builder.program.cursors.iter().flat_map(|(_, of)| [of.stage.clone(), of.phase.clone()]));
            let mut names = Names { builder: &mut *builder, var: counter.var.clone(), inside, named: Vec::new() };
            names.list(&mut body);
            let named = std::mem::take(&mut names.named);
            let lets = named.into_iter().map(|(value, var)| Stmt::Let { var, value });
            let body = lets.chain(quotients_named(builder, body)).collect();
            Stmt::For { counter, unroll, body }
        }
        other => other.map_inner(|inner| quotients_named(builder, inner)),
    };
    body.into_iter().map(named).collect()
}

/// The quotients of one loop.
struct Names<'a> {
    builder: &'a mut Builder,
    /// The variable of the loop.
    var: Var,
    inside: BTreeSet<Var>,
    named: Vec<(Expr, Var)>,
}

impl Names<'_> {
    fn list(&mut self, body: &mut [Stmt]) {
        for stmt in body {
            // A value that has a name needs no other.
            if matches!(stmt, Stmt::Let { .. }) {
                continue;
            }
            stmt.exprs_mut(&mut |expr| *expr = self.replaced(expr));
            self.list(stmt.inner_mut());
        }
    }

    fn replaced(&mut self, expr: &Expr) -> Expr {
        if !has_quotient(expr) {
            return expr.clone();
        }
        expr.replace(&mut |part| (has_quotient(part) && is_total(part) && self.is_known(part)).then(|| self.name(part)))
    }

    /// Whether all that an expression mentions has its value where the body begins, the same for all threads, and it mentions the
    /// loop.
    fn is_known(&self, expr: &Expr) -> bool {
        let is_of_thread = |var: &Var| {
            matches!(HwIndex::named(var.name()), Some(HwIndex::Tid | HwIndex::Lane | HwIndex::Warp))
                || self.inside.contains(var)
        };
        let mut is_known = expr.mentions(&self.var);
        expr.for_each_var(&mut |var| is_known &= !is_of_thread(var));
        is_known
    }

    fn name(&mut self, value: &Expr) -> Expr {
        if let Some((_, var)) = self.named.iter().find(|(known, _)| known == value) {
            return Expr::var(var);
        }
        let range = value.range();
        let name = self.builder.fresh(&format!("of_{}", self.var.name()));
        let var = Var::multiple_of(name, range.lo, range.hi, value.multiple());
        self.named.push((value.clone(), var.clone()));
        Expr::var(&var)
    }
}

/// Whether a part of an expression is divided by something that is not a number.
fn has_quotient(expr: &Expr) -> bool {
    let is_quotient = divisor(expr).is_some_and(|by| by.as_const().is_none());
    is_quotient || expr.operands().is_some_and(|(a, b)| has_quotient(a) || has_quotient(b))
}

/// Whether an expression has a value without the conditions that it may stand under: all divisors are positive.
fn is_total(expr: &Expr) -> bool {
    let is_positive = divisor(expr).is_none_or(|by| by.range().lo > 0);
    is_positive && expr.operands().is_none_or(|(a, b)| is_total(a) && is_total(b))
}

fn divisor(expr: &Expr) -> Option<&Expr> {
    match expr.node() {
        Node::Div(_, by) | Node::Mod(_, by) => Some(by),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn var(name: &str, least: i64) -> Expr {
        Expr::var(&Var::new(name, least, 99))
    }

    #[test]
    fn quotients_by_numbers_need_no_name() {
        assert!(!has_quotient(&(var("t", 0) / 4 * 128 + var("t", 0) % 3)));
        assert!(has_quotient(&(var("t", 0) / var("n", 1) * 128)));
        assert!(has_quotient(&(var("x", 0) + var("t", 0) % var("n", 1))));
    }

    #[test]
    fn a_quotient_stays_under_the_condition_that_its_divisor_needs() {
        assert!(is_total(&(var("t", 0) / var("n", 1) + var("t", 0) / 3)));
        assert!(!is_total(&(var("t", 0) / var("n", 1) + var("t", 0) % var("rest", 0))));
    }
}
