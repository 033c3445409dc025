//! What a condition says of tiles: where it holds, some are inside of their tensor.

use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Node};

use super::Masks;
use crate::scalar::Scalar;
use crate::tile::bounds::value_of;
use crate::tile::integers::Comparison;
use crate::tile::kernel::Kernel;
use crate::tile::valid_extents::Valid;
use crate::tile::value::Value;

impl Masks {
    /// A branch begins, in which a condition holds or not: buffers are valid everywhere where it says that their tiles end inside of the
    /// tensor.
    pub(super) fn enter_branch(&mut self, cond: &Value, holds: bool) {
        let mut facts = Vec::new();
        add_facts(cond, holds, &mut facts);
        let kernel = &self.kernel;
        for (buffer, valid) in self.state.iter_mut().filter(|_| !facts.is_empty()) {
            let shape = &kernel.buffers[*buffer].shape;
            let bounds = valid.bounds.filtered(|sum, limit| {
                let last = value_of(sum, |dimension| Expr::constant(shape[*dimension] - 1));
                !follows(kernel, &(limit - &last - 1), &facts)
            });
            *valid = Valid { bounds, ..valid.clone() };
        }
        self.state.retain(|_, valid| !valid.is_everywhere());
    }
}

/// Whether a sum is not negative where each of these sums is not.
fn follows(kernel: &Kernel, sum: &Expr, facts: &[Expr]) -> bool {
    facts.iter().any(|fact| kernel.is_never_negative(&normalize(&(sum - fact))))
}

/// Adds sums that are not negative where a condition holds, or does not hold.
fn add_facts(cond: &Value, holds: bool, facts: &mut Vec<Expr>) {
    if let Some(parts) = cond.implied(holds) {
        parts.into_iter().for_each(|(part, holds)| add_facts(part, holds, facts));
        return;
    }
    let Value::Op(op, operands) = cond else { return };
    let (Some(comparison), [a, b]) = (op.comparison(), &operands[..]) else { return };
    let (Some(a), Some(b)) = (as_index(a), as_index(b)) else { return };
    match if holds { comparison } else { comparison.opposite() } {
        Comparison::Lt => not_less(&b, &(a + 1), facts),
        Comparison::Le => not_less(&b, &a, facts),
        Comparison::Gt => not_less(&a, &(b + 1), facts),
        Comparison::Ge => not_less(&a, &b, facts),
        Comparison::Eq => {
            not_less(&a, &b, facts);
            not_less(&b, &a, facts);
        }
        Comparison::Ne => {}
    }
}

fn as_index(value: &Value) -> Option<Expr> {
    match value {
        Value::Index(expr) => Some(expr.clone()),
        Value::Const(Scalar::Int(number)) => Some(Expr::constant(*number)),
        Value::Const(Scalar::Float(_)) | Value::Named(_) | Value::Load(_) | Value::Op(..) | Value::Cast(..) => None,
    }
}

/// Adds that a number is not less than another: each of those of which it is the least, than each of those of which the other is the greatest.
fn not_less(number: &Expr, other: &Expr, facts: &mut Vec<Expr>) {
    match (number.node(), other.node()) {
        (Node::Min(a, b), _) => [a, b].into_iter().for_each(|number| not_less(number, other, facts)),
        (_, Node::Max(a, b)) => [a, b].into_iter().for_each(|other| not_less(number, other, facts)),
        _ => facts.push(normalize(&(number - other))),
    }
}
