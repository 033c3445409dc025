//! Operands of a product in memory: where each lane finds what it has of an atom.

use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::Handle;
use tilewright_ir::product::{Matrix, Part, Product};
use tilewright_ir::thread::{RegArray, Stmt};

use crate::builder::{Builder, regs};
use crate::fragment::ThreadIndices;
use crate::operand::MemoryTile;

/// An operand in memory, as a lane sees it.
pub(super) struct Staged<'a> {
    tile: &'a MemoryTile,
    part: Part,
    /// Where an element is, in terms of the three variables and of the thread.
    index: Expr,
    /// Which eight of the warp's lines.
    eight: Var,
    /// Which stretch of a line.
    stretch: Var,
    /// Which neighbour in the lane's run.
    neighbour: Var,
    /// Neighbours are adjacent in memory.
    is_adjacent: bool,
}

impl<'a> Staged<'a> {
    pub(super) fn of(
        builder: &mut Builder,
        tile: &'a MemoryTile,
        product: &Product,
        matrix: Matrix,
        indices: &ThreadIndices,
    ) -> Staged<'a> {
        let part = product.part(matrix);
        let eight = Var::new("#eight", 0, part.atoms[0] * part.eights - 1);
        let stretch = Var::new("#stretch", 0, part.atoms[1] * part.stretches - 1);
        let neighbour = Var::new("#neighbour", 0, part.run - 1);
        let (lane, [row, column]) = (Expr::var(&indices.lane), warps(product, indices));
        let [by_row, by_column] = product.steps(matrix);
        let of_warp = |dimension: usize| &row * by_row[dimension] + &column * by_column[dimension];
        let line = of_warp(0) + Expr::var(&eight) * 8 + &lane / 4;
        let along = of_warp(1) + (Expr::var(&stretch) * 4 + &lane % 4) * part.run + Expr::var(&neighbour);
        let [lines, length] = product.extents(matrix);
        let flat = if product.is_turned(matrix) { along * lines + line } else { line * length + along };
        let position = builder.simplifier.simplify(&position(tile, &flat));
        let at = |neighbours: i64| position.with(&neighbour, neighbours);
        let is_next = |neighbours: i64| normalize(&(at(neighbours) - at(0))).as_const() == Some(neighbours);
        // A swizzle keeps so many elements together.
        let kept = tile.placed.swizzle.map_or(part.run, |swizzle| 1 << swizzle.per_element());
        let is_adjacent = part.run > 1 && kept % part.run == 0 && (1..part.run).all(is_next);
        let index = match tile.placed.swizzle {
            None => position,
            Some(swizzle) => builder.simplifier.simplify(&swizzle.apply_expr(position)),
        };
        Staged { tile, part, index, eight, stretch, neighbour, is_adjacent }
    }

    /// Moves what a lane has of an atom to or from registers, in the order of the instruction's registers. The atom is
    /// counted across the lines and along them; the registers begin at a slot of an array.
    pub(super) fn moves(
        &self,
        builder: &mut Builder,
        [across, along]: [&Expr; 2],
        (array, slot): (Handle<RegArray>, i64),
        is_store: bool,
    ) -> Vec<Stmt> {
        let Part { eights, stretches, run, .. } = self.part;
        let mut body = Vec::new();
        for at in (0..self.part.held()).step_by(run as usize) {
            let [eight, stretch, _] = self.part.digits(at);
            let (eight, stretch) = (across * eights + eight, along * stretches + stretch);
            let first = self.index(builder, &eight, &stretch, 0);
            if self.is_adjacent && self.is_aligned(&first) {
                body.push(self.access(array, slot + at, run, first, is_store));
                continue;
            }
            for neighbour in 0..run {
                let index = self.index(builder, &eight, &stretch, neighbour);
                body.push(self.access(array, slot + at + neighbour, 1, index, is_store));
            }
        }
        body
    }

    fn index(&self, builder: &mut Builder, eight: &Expr, stretch: &Expr, neighbour: i64) -> Expr {
        let value = |var: &Var| {
            if *var == self.eight {
                Some(eight.clone())
            } else if *var == self.stretch {
                Some(stretch.clone())
            } else {
                (*var == self.neighbour).then(|| Expr::constant(neighbour))
            }
        };
        builder.simplifier.simplify(&self.index.substitute(&value))
    }

    fn is_aligned(&self, index: &Expr) -> bool {
        let bytes = self.part.run * self.tile.dtype.bytes();
        index.multiple() % self.part.run == 0 && self.tile.alignment % bytes == 0
    }

    fn access(&self, array: Handle<RegArray>, first: i64, count: i64, index: Expr, is_store: bool) -> Stmt {
        let (memory, part) = (self.tile.memory, regs(array, first, count));
        match is_store {
            true => Stmt::Store { memory, index, from: part },
            false => Stmt::Load { to: part, memory, index },
        }
    }
}

/// The place of the warp along M and along N.
fn warps(product: &Product, indices: &ThreadIndices) -> [Expr; 2] {
    let warp = Expr::var(&indices.warp);
    match product.warps {
        [1, 1] => [Expr::constant(0), Expr::constant(0)],
        [_, 1] => [warp, Expr::constant(0)],
        [rows, _] => [&warp % rows, &warp / rows],
    }
}

/// Where element `flat` of a tile is in its memory, before a swizzle. Tiles laid out by tables were refused.
fn position(tile: &MemoryTile, flat: &Expr) -> Expr {
    match tile.placed.iters() {
        Some(layout) => &tile.placed.start + &tile.placed.relative_expr(layout, flat),
        None => flat.clone(),
    }
}
