//! What a condition says of tiles: where it holds, some are inside of their tensor.

use tilewright_expr::linear::{linear, normalize};
use tilewright_expr::{Expr, Node};

use super::Masks;
use crate::tile::bounds::value_of;
use crate::tile::kernel::Kernel;
use crate::tile::valid_extents::Valid;
use crate::tile::value::Value;
use crate::tile::verify::bounds::facts_under;

/// Once there are so many sums, no more are split at a `min` or `max`: one that is kept whole proves less.
const MOST_FACTS: usize = 16;

impl Masks {
    /// A branch begins, in which a condition holds or not: buffers are valid everywhere where it says that their tiles end inside of the
    /// tensor.
    pub(super) fn enter_branch(&mut self, cond: &Value, holds: bool) {
        let (kernel, mut facts) = (&self.kernel, Vec::new());
        for fact in facts_under(kernel, cond, holds) {
            without_extremes(normalize(&fact), &mut facts);
        }
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

/// A sum that is not negative, as sums without the lesser or greater of two: it is not with each of them.
fn without_extremes(fact: Expr, facts: &mut Vec<Expr>) {
    let is_bound = |(factor, atom): &(i64, Expr)| match atom.node() {
        Node::Min(a, b) if *factor > 0 => Some((*factor, atom.clone(), [a.clone(), b.clone()])),
        Node::Max(a, b) if *factor < 0 => Some((*factor, atom.clone(), [a.clone(), b.clone()])),
        _ => None,
    };
    match linear(&fact).terms.iter().find_map(is_bound) {
        Some((factor, atom, sides)) if facts.len() < MOST_FACTS => {
            for side in sides {
                without_extremes(normalize(&(fact.clone() + (side - atom.clone()) * factor)), facts);
            }
        }
        Some(_) | None => facts.push(fact),
    }
}
