//! Zeros that no op reads. A copy from global to shared memory writes zeros for elements outside of the tensor. If the tile
//! only leaves shared memory by copies that leave out the same elements, these zeros need not be written.

use std::collections::BTreeMap;

use tilewright_expr::linear::{Linear, linear, normalize};
use tilewright_expr::points::Splits;
use tilewright_expr::{Expr, Node, Var};
use tilewright_layout::axis::Scope;

use crate::arena::Handle;
use crate::hw_index::HwIndex;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::kernel::Kernel;
use crate::tile::op::Op;
use crate::tile::tiles::Tile;

/// What copies read of each storage in shared memory that is read: the elements that all of them may read, or `None` if
/// they read different tiles, or other statements access the storage.
#[derive(Debug)]
pub struct CopiedTiles(BTreeMap<Handle<Buffer>, Option<Elements>>);

impl CopiedTiles {
    /// The tiles of a kernel.
    pub fn of(kernel: &Kernel) -> CopiedTiles {
        let mut tiles: BTreeMap<Handle<Buffer>, Option<Elements>> = BTreeMap::new();
        kernel.for_each_use(&mut |buffer, writes, op| {
            if kernel.buffers[buffer].space != Space::Shared {
                return;
            }
            let copy = op.filter(|op| op.kind.is_copy());
            if writes && copy.is_some() {
                return;
            }
            let read = copy.and_then(|op| kernel.copied_elements(op, 1));
            tiles
                .entry(kernel.storage(buffer))
                .and_modify(|known| *known = known.take().zip(read.as_ref()).and_then(|(known, read)| known.or(read)))
                .or_insert(read);
        });
        CopiedTiles(tiles)
    }

    /// Whether no op reads the zeros that `op`, a copy from global to shared memory, writes for elements outside of its
    /// tensor.
    pub fn have_no_zeros_of(&self, kernel: &Kernel, op: &Op) -> bool {
        let Some(to) = op.operands.first().filter(|to| kernel.buffers[to.buffer].space == Space::Shared) else {
            return false;
        };
        let Some(written) = kernel.copied_elements(op, 0) else { return false };
        match self.0.get(&kernel.storage(to.buffer)) {
            Some(read) => read.as_ref().is_some_and(|read| written.contain(read)),
            None => true,
        }
    }
}

impl Kernel {
    /// The elements that a copy between shared memory, its operand at `place`, and global memory moves. `None` if that
    /// differs between iterations of loops, or the tile is not one of the dimensions of its storage.
    fn copied_elements(&self, op: &Op, place: usize) -> Option<Elements> {
        if !op.kind.is_copy() {
            return None;
        }
        let (shared, global) = (&op.operands[place], &op.operands[1 - place]);
        let Space::Global(_) = self.buffers[global.buffer].space else { return None };
        let dimensions = self.dimensions_of_storage(shared)?;
        let ranged = || dimensions.iter().enumerate().filter(|(at, _)| shared.extents[*at] != 1);
        let vars: Vec<Var> =
            ranged().map(|(at, owner)| Var::new(format!("#{owner}"), 0, shared.extents[at] - 1)).collect();
        // Where a single index is taken, it matters only which warp takes it.
        let matters = |at: usize| shared.extents[at] != 1 || names_threads(&shared.starts[at]);
        let dimensions = dimensions.iter().enumerate().filter(|(at, _)| matters(*at));
        let mut tile: Vec<(usize, Expr, i64)> =
            dimensions.map(|(at, owner)| (*owner, normalize(&shared.starts[at]), shared.extents[at])).collect();
        tile.sort();
        let index = global.access(&vars, op.span).known_index()?;
        let bounds = self.bounds(&self.buffers[global.buffer], &index, &mut Splits::by(&vars));
        let bounds: Vec<[Expr; 2]> = bounds.iter().map(|bound| [&bound.index, &bound.extent].map(normalize)).collect();
        let exprs = tile.iter().map(|(_, start, _)| start).chain(bounds.iter().flatten());
        let are_fixed = exprs.into_iter().all(|expr| self.is_fixed(expr, &vars));
        let is_of_one_warp = !bounds.iter().flatten().any(names_threads) || tile.iter().any(is_own_part);
        (are_fixed && is_of_one_warp).then_some(Elements { tile, bounds })
    }

    /// For each dimension of a tile, the dimension of its storage; `None` if its buffer is another kind of view.
    fn dimensions_of_storage(&self, tile: &Tile) -> Option<Vec<usize>> {
        let mut dimensions: Vec<usize> = (0..tile.extents.len()).collect();
        let mut buffer = &self.buffers[tile.buffer];
        while let Some(owner) = buffer.view_of {
            let order = buffer.order.as_ref()?;
            dimensions.iter_mut().for_each(|dimension| *dimension = order[*dimension]);
            buffer = &self.buffers[owner];
        }
        Some(dimensions)
    }

    /// Whether an expression depends, besides these variables, only on what is the same for a thread throughout a launch.
    fn is_fixed(&self, expr: &Expr, vars: &[Var]) -> bool {
        let of_cta = self.vars_of_ctas();
        let mut is_fixed = true;
        expr.for_each_var(&mut |var| {
            is_fixed &= vars.contains(var) || of_cta.contains(var) || HwIndex::of(var).is_some();
        });
        is_fixed
    }
}

/// Whether an expression differs between the threads of a CTA.
fn names_threads(expr: &Expr) -> bool {
    let mut found = false;
    expr.for_each_var(&mut |var| found |= HwIndex::of(var).is_some_and(|index| index.uniform_in() < Scope::Cta));
    found
}

/// Whether each warp has a part of a dimension of its own, which no other warp accesses.
fn is_own_part((_, start, extent): &(usize, Expr, i64)) -> bool {
    let Linear { terms, .. } = linear(start);
    let is_warp = |atom: &Expr| matches!(atom.node(), Node::Var(var) if HwIndex::of(var) == Some(HwIndex::Warp));
    let mut of_threads = terms.iter().filter(|(_, atom)| names_threads(atom));
    matches!((of_threads.next(), of_threads.next()), (Some((factor, atom)), None) if is_warp(atom) && factor.abs() >= *extent)
}

/// Elements of a storage that a copy moves, in terms of the dimensions of the storage.
#[derive(Debug)]
struct Elements {
    /// The dimensions of which the tile has more than one index, or one that depends on the warp, with the first index and
    /// their number.
    tile: Vec<(usize, Expr, i64)>,
    /// Index and extent of each dimension of the tensor that the tile may exceed.
    bounds: Vec<[Expr; 2]>,
}

impl Elements {
    /// All of these elements and others of the same tile; `None` if they are of another tile.
    fn or(mut self, other: &Elements) -> Option<Elements> {
        self.bounds.retain(|bound| other.bounds.contains(bound));
        (self.tile == other.tile).then_some(self)
    }

    /// Whether the other elements are among these.
    fn contain(&self, other: &Elements) -> bool {
        self.tile == other.tile && self.bounds.iter().all(|bound| other.bounds.contains(bound))
    }
}
