//! What statements touch: every access of a nest, for all its iterations.

use std::rc::Rc;

use tilewright_diag::Span;
use tilewright_expr::Var;
use tilewright_expr::linear::{Linear, linear};
use tilewright_expr::points::{Splits, counts, extent, values};
use tilewright_ir::tile::vectors::{Movable, Places, StaticAccess};
use tilewright_ir::tile::{Access, Coord, ElementStmt, Kernel, Space, Tile, Value, access_title};
use tilewright_layout::map::NONE;

use crate::nest::{MemoryTouch, Nest, Touch};
use crate::pattern::Pattern;
use crate::storage::Storages;

/// Visits the statements of a nest and records their accesses.
pub(crate) struct Walk<'a> {
    kernel: &'a Kernel,
    storages: &'a Storages,
    /// The variables of the nest, one for each dimension.
    vars: &'a [Var],
    /// The conditions around the current statement, and whether they hold there.
    conditions: Vec<(&'a Value, bool)>,
    /// Turns of the inner loops around the current statement, other than those that count as iterations.
    turns: usize,
    /// Indices, split by the variables of the iterations and of the turns that count as iterations.
    splits: Splits<'a>,
    /// Accesses that neighbouring iterations may do together.
    movable: &'a Movable,
    nest: &'a mut Nest,
}

impl<'a> Walk<'a> {
    /// `all` begins with the variables of the nest; the others are those of turns that count as iterations too.
    pub(crate) fn new(
        (kernel, storages): (&'a Kernel, &'a Storages),
        all: &'a [Var],
        movable: &'a Movable,
        nest: &'a mut Nest,
    ) -> Walk<'a> {
        let vars = &all[..nest.extents.len().min(all.len())];
        Walk { kernel, storages, vars, conditions: Vec::new(), turns: 1, splits: Splits::by(all), movable, nest }
    }

    /// An op's operand: the variables move through the extents that are not 1.
    pub(crate) fn tile(&mut self, tile: &Tile, span: Span, writes: bool) {
        self.access(&tile.access(self.vars, span), writes);
    }

    pub(crate) fn elements(&mut self, body: &'a [ElementStmt]) {
        for element in body {
            match element {
                ElementStmt::Let { value, .. } => self.value(value),
                ElementStmt::Store { to, value, .. } | ElementStmt::AtomicAdd { to, value } => {
                    self.value(value);
                    to.for_each_load(&mut |load| self.access(load, false));
                    self.access(to, true);
                }
                ElementStmt::If { cond, then, otherwise, .. } => {
                    self.value(cond);
                    for (branch, holds) in [(then, true), (otherwise, false)] {
                        self.conditions.push((cond, holds));
                        self.elements(branch);
                        self.conditions.pop();
                    }
                }
                ElementStmt::For { var, body, .. } => {
                    let outside = self.turns;
                    let is_iteration = self.splits.vars().contains(var);
                    self.turns = if is_iteration { outside } else { outside.saturating_mul(extent(var)) };
                    self.elements(body);
                    self.turns = outside;
                }
            }
        }
    }

    fn value(&mut self, value: &Value) {
        value.for_each_load(&mut |load| self.access(load, false));
    }

    fn access(&mut self, access: &Access, writes: bool) {
        let buffer = &self.kernel.buffers[access.buffer];
        match buffer.space {
            Space::Fragment => {
                let flat = access.flat(&buffer.shape).map(|flat| linear(&flat));
                self.fragment(access, writes, flat.as_ref());
            }
            Space::Global(_) | Space::Shared => self.memory(access, writes),
        }
    }

    fn fragment(&mut self, access: &Access, writes: bool, flat: Option<&Linear>) {
        let storage = self.kernel.storage(access.buffer);
        let pattern = self.pattern(access, flat);
        if pattern.is_nothing() {
            return;
        }
        let same = |known: &&mut Touch| known.storage == storage && *known.pattern == pattern;
        if let Some(known) = self.nest.touches.iter_mut().find(same) {
            known.writes |= writes;
            return;
        }
        let mut alike = self.nest.touches.iter_mut().filter(|known| known.storage == storage && known.writes == writes);
        match alike.find_map(|known| Some((known.pattern.joined(&pattern)?, known))) {
            Some((joined, known)) => known.pattern = Rc::new(joined),
            None => {
                let title = access_title(self.kernel, access);
                let pattern = Rc::new(pattern);
                self.nest.touches.push(Touch { storage, writes, pattern, span: access.span, title });
            }
        }
    }

    /// The granules that an access of a fragment touches.
    fn pattern(&self, access: &Access, flat: Option<&Linear>) -> Pattern {
        let buffer = &self.kernel.buffers[access.buffer];
        let storage = self.storages.get(self.kernel.storage(access.buffer));
        let elements = buffer.shape.iter().product::<i64>();
        let iterations = self.nest.iterations();
        let granule = |element: i64| (element * buffer.dtype.bytes() / storage.bytes) as u32;
        let own: Vec<&Var> = self.vars.iter().collect();
        let is_all = storage.granules == iterations && elements == iterations as i64;
        if is_all && self.conditions.is_empty() && flat.is_some_and(|flat| counts(flat, &own)) {
            return Pattern::identity(iterations);
        }
        let mut table: Vec<u32> = match flat {
            Some(flat) => {
                let others = self.others(flat);
                let all: Vec<&Var> = own.into_iter().chain(&others).collect();
                let inside = 0..elements;
                let place = |element: i64| if inside.contains(&element) { granule(element) } else { NONE };
                let mut table: Vec<u32> = values(flat, &all).into_iter().map(place).collect();
                leave_out_outside(access, &buffer.shape, &all, &mut table);
                table
            }
            // Data may select any element.
            None => (0..iterations).flat_map(|_| (0..elements).map(granule)).collect(),
        };
        let trips = table.len() / iterations.max(1);
        self.leave_out(&mut table, trips);
        Pattern::of_table(storage.granules, trips, table)
    }

    /// Removes the iterations for which an enclosing condition is known not to hold.
    fn leave_out(&self, table: &mut [u32], trips: usize) {
        for (cond, holds) in &self.conditions {
            for iteration in 0..self.nest.iterations() {
                if cond.truth(&|var| self.digit(var, iteration)).is_some_and(|known| known != *holds) {
                    table[iteration * trips..(iteration + 1) * trips].fill(NONE);
                }
            }
        }
    }

    /// Variables of an index that are not the nest's: those of inner and outer loops.
    fn others(&self, flat: &Linear) -> Vec<Var> {
        let mut others: Vec<Var> = Vec::new();
        for (_, atom) in &flat.terms {
            atom.for_each_var(&mut |var| {
                if !self.vars.contains(var) && !others.contains(var) {
                    others.push(var.clone());
                }
            });
        }
        others
    }

    /// The value of one of the nest's variables.
    fn digit(&self, var: &Var, iteration: usize) -> Option<i64> {
        let at = self.vars.iter().position(|known| known == var)?;
        let stride: i64 = self.nest.extents[at + 1..].iter().product();
        Some(iteration as i64 / stride % self.nest.extents[at])
    }

    fn memory(&mut self, access: &Access, writes: bool) {
        let buffer = &self.kernel.buffers[access.buffer];
        let known = StaticAccess::of(self.kernel, access);
        let places = known.map_or(Places::unknown(), |known| Places::of(self.kernel, &known, &mut self.splits));
        self.nest.memory.push(MemoryTouch {
            buffer: access.buffer,
            writes,
            is_shared: buffer.space == Space::Shared,
            places: Rc::new(places),
            dtype: buffer.dtype,
            is_plain: self.turns == 1 && self.conditions.is_empty(),
            is_movable: self.movable.has(access, writes),
            turns: self.turns,
        });
    }
}

/// Removes the points at which an index is out of bounds in one of the dimensions, although the flat index is in
/// bounds: the access is not done there, or its value is not used.
fn leave_out_outside(access: &Access, shape: &[i64], vars: &[&Var], table: &mut [u32]) {
    for (coord, extent) in access.index.iter().zip(shape) {
        let Coord::At(index) = coord else { continue };
        let mut is_known = true;
        index.for_each_var(&mut |var| is_known &= vars.contains(&var));
        if !is_known || index.range().within(0, *extent) {
            continue;
        }
        for (granule, at) in table.iter_mut().zip(values(&linear(index), vars)) {
            if !(0..*extent).contains(&at) {
                *granule = NONE;
            }
        }
    }
}
