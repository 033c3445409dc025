//! Operands of a product in memory: where each lane finds its elements of an atom.

use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::Handle;
use tilewright_ir::product::{Matrix, Product, WarpPart};
use tilewright_ir::thread::{RegArray, Stmt};
use tilewright_layout::TileLayout;

use crate::builder::{Builder, regs};
use crate::fragment::ThreadIndices;
use crate::operand::MemoryTile;

/// An operand in memory, as a lane sees it.
pub(super) struct Staged<'a> {
    tile: &'a MemoryTile,
    part: WarpPart<'a>,
    /// The position of an element, in terms of the three variables below and of the thread.
    index: Expr,
    /// The line of the warp's part at which the lanes begin, in units of `units[0]`.
    line: Var,
    /// The index along a line at which they begin, in units of `units[1]`.
    place: Var,
    /// The index of an element in the lane's run.
    neighbour: Var,
    /// The units of `line` and `place`: so many lines, and so many indices along a line.
    units: [i64; 2],
    /// The number of elements in a lane's run.
    run: i64,
    /// Whether the elements of a run are adjacent in memory.
    is_adjacent: bool,
}

impl<'a> Staged<'a> {
    pub(super) fn of(
        builder: &mut Builder,
        (tile, layout): (&'a MemoryTile, &TileLayout),
        product: &'a Product,
        matrix: Matrix,
        indices: &ThreadIndices,
    ) -> Staged<'a> {
        let part = product.part(matrix);
        let (run, units) = (part.atom.run(), part.atom.alignment());
        let [lines, along] = part.atom.extents();
        let lines = (part.atoms[0] - 1) * part.lines_apart + lines;
        let line = Var::new("#line", 0, lines / units[0] - 1);
        let place = Var::new("#place", 0, part.atoms[1] * along / units[1] - 1);
        let neighbour = Var::new("#neighbour", 0, run - 1);
        let [lane_line, lane_place] = part.atom.lane_position(&Expr::var(&indices.lane));
        let across = Expr::var(&line) * units[0] + lane_line;
        let along = Expr::var(&place) * units[1] + lane_place + Expr::var(&neighbour);
        let flat = flat_index(product, matrix, indices, [across, along]);
        let position = builder.simplifier.simplify(&(&tile.placed.start + &tile.placed.relative_expr(layout, &flat)));
        let at = |neighbours: i64| position.with(&neighbour, neighbours);
        let is_next = |neighbours: i64| normalize(&(at(neighbours) - at(0))).as_const() == Some(neighbours);
        // The number of consecutive elements that a swizzle keeps together.
        let kept = tile.placed.swizzle.map_or(run, |swizzle| 1 << swizzle.per_element());
        let is_adjacent = run > 1 && kept % run == 0 && (1..run).all(is_next);
        let index = match tile.placed.swizzle {
            None => position,
            Some(swizzle) => builder.simplifier.simplify(&swizzle.apply_expr(position)),
        };
        Staged { tile, part, index, line, place, neighbour, units, run, is_adjacent }
    }

    /// Loads or stores a lane's elements of an atom, in the order of the instruction's registers. `across` and `along`
    /// are the number of the atom across the lines and along them; the registers begin at `slot` of `array`.
    pub(super) fn moves(
        &self,
        builder: &mut Builder,
        [across, along]: [&Expr; 2],
        (array, slot): (Handle<RegArray>, i64),
        is_store: bool,
    ) -> Vec<Stmt> {
        let WarpPart { atom, lines_apart, .. } = self.part;
        let [of_lines, of_places] = self.units;
        let [_, length] = atom.extents();
        let mut body = Vec::new();
        for at in (0..atom.elements_per_lane()).step_by(self.run as usize) {
            let [line, place] = atom.position(0, at);
            let line = across * (lines_apart / of_lines) + line / of_lines;
            let place = along * (length / of_places) + place / of_places;
            let first = self.index(builder, &line, &place, 0);
            if self.is_adjacent && self.is_aligned(&first) {
                body.push(self.access(array, slot + at, self.run, first, is_store));
                continue;
            }
            for neighbour in 0..self.run {
                let index = self.index(builder, &line, &place, neighbour);
                body.push(self.access(array, slot + at + neighbour, 1, index, is_store));
            }
        }
        body
    }

    fn index(&self, builder: &mut Builder, line: &Expr, place: &Expr, neighbour: i64) -> Expr {
        let value = |var: &Var| {
            if *var == self.line {
                Some(line.clone())
            } else if *var == self.place {
                Some(place.clone())
            } else {
                (*var == self.neighbour).then(|| Expr::constant(neighbour))
            }
        };
        builder.simplifier.simplify(&self.index.substitute(&value))
    }

    fn is_aligned(&self, index: &Expr) -> bool {
        let bytes = self.run * self.tile.dtype.bytes();
        index.multiple() % self.run == 0 && self.tile.alignment % bytes == 0
    }

    fn access(&self, array: Handle<RegArray>, first: i64, count: i64, index: Expr, is_store: bool) -> Stmt {
        let (memory, part) = (self.tile.memory, regs(array, first, count));
        match is_store {
            true => Stmt::Store { memory, index, from: part },
            false => Stmt::Load { to: part, memory, index },
        }
    }
}

/// The index, in row-major order of the stored matrix, of the element at a position in the warp's part: the line, and the
/// index along it.
pub(super) fn flat_index(
    product: &Product,
    matrix: Matrix,
    indices: &ThreadIndices,
    [across, along]: [Expr; 2],
) -> Expr {
    let [row, column] = warps(product, indices);
    let [by_row, by_column] = product.steps(matrix);
    let of_warp = |side: usize| &row * by_row[side] + &column * by_column[side];
    let (across, along) = (of_warp(0) + across, of_warp(1) + along);
    let [lines, length] = product.extents(matrix);
    if product.is_turned(matrix) { along * lines + across } else { across * length + along }
}

/// The position of the warp along M and along N.
fn warps(product: &Product, indices: &ThreadIndices) -> [Expr; 2] {
    let warp = Expr::var(&indices.warp);
    match product.warps {
        [1, 1] => [Expr::constant(0), Expr::constant(0)],
        [_, 1] => [warp, Expr::constant(0)],
        [rows, _] => [&warp % rows, &warp / rows],
    }
}
