//! Zeros that no op reads. A copy from global to shared memory writes zeros for elements outside of the tensor. If the tile
//! only leaves shared memory by copies that leave out the same elements, these zeros need not be written.

use tilewright_expr::linear::normalize;
use tilewright_expr::points::Splits;
use tilewright_expr::{Expr, Var};

use crate::hw_index::HwIndex;
use crate::tile::buffer::Space;
use crate::tile::kernel::Kernel;
use crate::tile::op::{Op, OpKind};
use crate::tile::tiles::Tile;

impl Kernel {
    /// Whether no op reads the zeros that `op`, a copy from global to shared memory, writes for elements outside of its
    /// tensor.
    pub fn zeros_are_unread(&self, op: &Op) -> bool {
        let [to, from] = &op.operands[..] else { return false };
        let spaces = [to, from].map(|tile| self.buffers[tile.buffer].space);
        let [Space::Shared, Space::Global(_)] = spaces else { return false };
        let Some(written) = self.inside_of_copy(op, 0) else { return false };
        let storage = self.storage(to.buffer);
        let is_read_inside = |op: &&Op| {
            let is_writer = op.kind == OpKind::Copy && self.storage(op.operands[1].buffer) != storage;
            is_writer || self.inside_of_copy(op, 1).is_some_and(|read| written.contains(&read))
        };
        self.ops_on(storage).is_some_and(|ops| ops.iter().all(is_read_inside))
    }

    /// The elements that a copy between shared memory, its operand at `place`, and global memory moves. `None` if that
    /// differs between iterations of loops, or the tile is not one of the dimensions of its storage.
    fn inside_of_copy(&self, op: &Op, place: usize) -> Option<Inside> {
        if op.kind != OpKind::Copy {
            return None;
        }
        let (shared, global) = (&op.operands[place], &op.operands[1 - place]);
        let Space::Global(_) = self.buffers[global.buffer].space else { return None };
        let dimensions = self.dimensions_of_storage(shared)?;
        let ranged = || dimensions.iter().enumerate().filter(|(at, _)| shared.extents[*at] != 1);
        let vars: Vec<Var> =
            ranged().map(|(at, owner)| Var::new(format!("#{owner}"), 0, shared.extents[at] - 1)).collect();
        let mut tile: Vec<(usize, Expr, i64)> =
            ranged().map(|(at, owner)| (*owner, normalize(&shared.starts[at]), shared.extents[at])).collect();
        tile.sort();
        let index = global.access(&vars, op.span).known_index()?;
        let bounds = self.bounds(&self.buffers[global.buffer], &index, &mut Splits::by(&vars));
        let bounds: Vec<[Expr; 2]> = bounds.iter().map(|bound| [&bound.index, &bound.extent].map(normalize)).collect();
        let exprs = tile.iter().map(|(_, start, _)| start).chain(bounds.iter().flatten());
        exprs.into_iter().all(|expr| self.is_fixed(expr, &vars)).then_some(Inside { tile, bounds })
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

    /// Whether an expression has one value for a thread, besides these variables.
    fn is_fixed(&self, expr: &Expr, vars: &[Var]) -> bool {
        let is_size = |var: &Var| self.sizes.iter().any(|size| size.var == *var);
        let mut is_fixed = true;
        expr.for_each_var(&mut |var| is_fixed &= vars.contains(var) || is_size(var) || HwIndex::of(var).is_some());
        is_fixed
    }
}

/// What a copy moves, in terms of the dimensions of the storage in shared memory.
struct Inside {
    /// The dimensions that the tile has more than one index of, with its first index and their number.
    tile: Vec<(usize, Expr, i64)>,
    /// Index and extent of each dimension of the tensor that the tile may exceed.
    bounds: Vec<[Expr; 2]>,
}

impl Inside {
    /// Whether all elements that `other` moves are among those that this copy moves.
    fn contains(&self, other: &Inside) -> bool {
        self.tile == other.tile && self.bounds.iter().all(|bound| other.bounds.contains(bound))
    }
}
