//! Races: unordered iterations of which one touches what another writes. Decided exactly, or rejected.
//!
//! Two accesses meet where they touch a common byte, so views of one buffer are compared by position. An access outside
//! of a global tensor touches nothing, nor does one under a condition that does not hold. Atomic operations of one
//! kind do not conflict with each other. What the user claims about a store ([`Claim`]) is trusted here; the virtual GPU
//! checks it.
//!
//! Where an index depends on data, or where more than [`MOST_POINTS`] accesses would have to be listed and algebra does
//! not decide, the loop is rejected.

mod iterations;
mod meeting;
mod report;
mod touches;

use std::collections::BTreeMap;

use tilewright_diag::Diagnostic;
use tilewright_expr::linear::linear;
use tilewright_expr::points::extent;
use tilewright_expr::{Node, Var};
use tilewright_layout::{Iter, TileLayout};

use crate::arena::Handle;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::kernel::Kernel;
use crate::tile::value::{Value, flat};
pub(super) use iterations::{Iterations, MOST_POINTS, Who};
pub(super) use report::WARPS_HELP;
use touches::{Kind, Touch, collect, is_excused};

/// Reports conflicting accesses of two iterations; `around` are the enclosing conditions.
pub(super) fn check(kernel: &Kernel, iterations: &Iterations, around: &[(&Value, bool)], found: &mut Vec<Diagnostic>) {
    let mut by_storage: BTreeMap<Handle<Buffer>, Vec<Touch>> = BTreeMap::new();
    for touch in collect(kernel, iterations, around) {
        by_storage.entry(kernel.storage(touch.access.buffer)).or_default().push(touch);
    }
    for (storage, touches) in by_storage {
        let own_copies = iterations.who != Who::Turns && kernel.buffers[storage].space == Space::Fragment;
        if !own_copies && touches.iter().any(|touch| touch.kind != Kind::Read) {
            found.extend(of_storage(kernel, iterations, &touches));
        }
    }
}

/// The first conflict among the accesses to one storage.
fn of_storage(kernel: &Kernel, iterations: &Iterations, touches: &[Touch]) -> Option<Diagnostic> {
    for (at, one) in touches.iter().enumerate() {
        let meets = |other: &&Touch| (one.index.is_none() || other.index.is_none()) && !is_excused(kernel, one, other);
        if let Some(other) = touches[at..].iter().find(meets) {
            return Some(report::depends_on_data(kernel, one, other));
        }
    }
    let known: Vec<&Touch> = touches.iter().filter(|touch| touch.index.is_some()).collect();
    if known.iter().all(|one| known.iter().all(|other| is_excused(kernel, one, other)))
        || is_one_place(kernel, iterations, &known)
    {
        return None;
    }
    meeting::find(kernel, iterations, &known)
}

/// Whether all accesses are at one index, and algebra shows that no two iterations have the same: a sum of multiples of
/// all variables whose strides do not collide.
fn is_one_place(kernel: &Kernel, iterations: &Iterations, touches: &[&Touch]) -> bool {
    let [first, rest @ ..] = touches else { return true };
    let Some(index) = &first.index else { return false };
    let same = |touch: &&Touch| touch.access.buffer == first.access.buffer && touch.index.as_ref() == Some(index);
    if !rest.iter().all(same) {
        return false;
    }
    let shape = &kernel.buffers[first.access.buffer].shape;
    let flat = flat(index, shape);
    let mut vars = iterations.vars.clone();
    for inner in touches.iter().flat_map(|touch| &touch.inner) {
        if flat.mentions(inner) && !vars.contains(inner) {
            vars.push(inner.clone());
        }
    }
    let sum = linear(&flat);
    let is_affine = sum.terms.iter().all(|(_, atom)| match atom.node() {
        Node::Var(_) => true,
        _ => !vars.iter().any(|var| atom.mentions(var)),
    });
    let stride = |var: &Var| {
        let term = sum.terms.iter().find(|(_, atom)| matches!(atom.node(), Node::Var(known) if known == var));
        term.map_or(0, |(stride, _)| *stride)
    };
    let shard =
        vars.iter().map(|var| Iter::memory(extent(var) as i64, stride(var).saturating_mul(var.multiple()))).collect();
    is_affine && TileLayout::new(shard, Vec::new(), []).is_ok_and(|layout| matches!(layout.collision(), Ok(None)))
}
