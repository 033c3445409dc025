//! The nests of loops and ops: what their statements touch, for all iterations.

use std::sync::Arc;

use tilewright_diag::Span;
use tilewright_expr::Var;
use tilewright_expr::linear::{Linear, linear};
use tilewright_expr::points::{Splits, counts, extent, values};
use tilewright_ir::tile::vectors::{Movable, Places, StaticAccess};
use tilewright_ir::tile::{
    Access, Coord, Effect, ElementStmt, Kernel, Op, Operand, Parallel, Space, Tile, Value, access_title,
};
use tilewright_layout::map::NONE;

use crate::effect::both;
use crate::nest::{MemoryTouch, Nest, Scanned, Touch};
use crate::pattern::Pattern;
use crate::storage::Storages;

impl Nest {
    /// The nest of a parallel loop.
    pub(crate) fn of_parallel(kernel: &Kernel, storages: &Storages, parallel: &Parallel) -> Nest {
        let ranges: Vec<&str> = parallel.vars.iter().map(Var::name).collect();
        let title = format!("parallel {}", ranges.join(", "));
        let mut nest = Nest::empty(title, parallel.span, parallel.extents());
        nest.vector = parallel.vector;
        let (vars, body) = parallel.unfolded(kernel);
        nest.turns = parallel.inner_loop(kernel).map_or(1, |(inner, _)| extent(inner));
        let movable = Movable::of(kernel, body, &mut Splits::by(&vars));
        nest.together = movable.together(kernel, nest.vector);
        Walk::new((kernel, storages), &vars, &movable, &mut nest).elements(&parallel.body);
        nest.is_alone = nest.reads_what_it_writes(kernel);
        nest
    }

    /// The nest of an elementwise op.
    pub(crate) fn of_op(kernel: &Kernel, storages: &Storages, op: &Op) -> Nest {
        let tiles = op.tiles().take(op.operands.len() - op.carries().len());
        let tiles: Vec<(Effect, &Tile)> = tiles.map(|(operand, tile)| (operand.effect, tile)).collect();
        Nest { scanned: scanned(op), ..Nest::of_tiles((kernel, storages), op, &tiles) }
    }

    /// The nest of a reduction of tuples, for its sources, which it reads, or its destinations, which it updates: the thread
    /// that takes a tuple has all of its elements.
    pub(crate) fn of_tuples(kernel: &Kernel, storages: &Storages, op: &Op, effect: Effect) -> Nest {
        let is_one = |(operand, _): &(&Operand, &Tile)| operand.effect.writes() == effect.writes();
        let tiles: Vec<(Effect, &Tile)> = op.tiles().filter(is_one).map(|(_, tile)| (effect, tile)).collect();
        Nest::of_tiles((kernel, storages), op, &tiles)
    }

    /// The nest of an op that does something to an element of each of these tiles, at one index.
    fn of_tiles((kernel, storages): (&Kernel, &Storages), op: &Op, tiles: &[(Effect, &Tile)]) -> Nest {
        let vars = tiles.first().map_or_else(Vec::new, |(_, tile)| tile.vars());
        let extents = if vars.is_empty() { vec![1] } else { vars.iter().map(|var| extent(var) as i64).collect() };
        let movable = Movable::of(kernel, kernel.op_element(op, &vars).as_slice(), &mut Splits::by(&vars));
        let mut nest = Nest::empty(kernel.op_title(op), op.span, extents);
        nest.together = movable.together(kernel, None);
        let mut walk = Walk::new((kernel, storages), &vars, &movable, &mut nest);
        tiles.iter().for_each(|(effect, tile)| walk.tile(tile, op.span, *effect));
        walk.carries(op);
        nest
    }
}

/// The rows of a scan; `None` for other ops.
fn scanned(op: &Op) -> Option<Scanned> {
    let order = op.kind.scan_order()?;
    // All sources have the same extents.
    let src = op.source()?;
    let extent = src.extents[order.dimension] as usize;
    let mut rows = vec![0; src.elements() as usize];
    let mut in_order = rows.clone();
    for (element, slot) in rows.iter_mut().enumerate() {
        let (row, at) = order.place_of(&src.extents, element);
        *slot = row as u32;
        in_order[row * extent + at] = element as u32;
    }
    let rows = Arc::new(Pattern::of_table(rows.len() / extent, 1, rows));
    Some(Scanned { rows, in_order, extent })
}

/// Visits the statements of a nest and records their accesses.
struct Walk<'a> {
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
    fn new(
        (kernel, storages): (&'a Kernel, &'a Storages),
        all: &'a [Var],
        movable: &'a Movable,
        nest: &'a mut Nest,
    ) -> Walk<'a> {
        let vars = &all[..nest.extents.len().min(all.len())];
        Walk { kernel, storages, vars, conditions: Vec::new(), turns: 1, splits: Splits::by(all), movable, nest }
    }

    /// An op's operand: the variables move through the extents that are not 1.
    fn tile(&mut self, tile: &Tile, span: Span, effect: Effect) {
        self.access(&tile.access(self.vars, span), effect);
    }

    /// Every element of a scan needs the carry of its row.
    fn carries(&mut self, op: &Op) {
        let (Some(order), Some(src)) = (op.kind.scan_order(), op.source()) else { return };
        let along = src.non_unit_place(order.dimension);
        let others = self.vars.iter().enumerate().filter(|(at, _)| Some(*at) != along);
        let row: Vec<Var> = others.map(|(_, var)| var.clone()).collect();
        for carry in op.carries() {
            self.access(&carry.access(&row, op.span), Effect::Read);
        }
    }

    fn elements(&mut self, body: &'a [ElementStmt]) {
        for element in body {
            match element {
                ElementStmt::Let { value, .. } => self.value(value),
                ElementStmt::Store { to, value, .. } => self.written(to, value, Effect::Write),
                ElementStmt::Atomic(atomic) => {
                    atomic.condition.iter().chain(&atomic.expected).for_each(|value| self.value(value));
                    self.written(&atomic.to, &atomic.value, Effect::Update);
                }
                ElementStmt::If { cond, then, otherwise, .. } => {
                    self.value(cond);
                    for (branch, holds) in [(then, true), (otherwise, false)] {
                        self.conditions.push((cond, holds));
                        self.elements(branch);
                        self.conditions.pop();
                    }
                }
                ElementStmt::For { counter, body, .. } => {
                    let outside = self.turns;
                    let is_iteration = self.splits.vars().contains(&counter.var);
                    let turns = usize::try_from(counter.assumed_trips()).unwrap_or(1).max(1);
                    self.turns = if is_iteration { outside } else { outside.saturating_mul(turns) };
                    self.elements(body);
                    self.turns = outside;
                }
            }
        }
    }

    fn written(&mut self, to: &Access, value: &Value, effect: Effect) {
        self.value(value);
        to.for_each_load(&mut |load| self.access(load, Effect::Read));
        self.access(to, effect);
    }

    fn value(&mut self, value: &Value) {
        value.for_each_load(&mut |load| self.access(load, Effect::Read));
    }

    fn access(&mut self, access: &Access, effect: Effect) {
        let buffer = &self.kernel.buffers[access.buffer];
        match buffer.space {
            Space::Fragment => {
                let flat = access.flat(&buffer.shape).map(|flat| linear(&flat));
                self.fragment(access, effect, flat.as_ref());
            }
            Space::Global(_) | Space::Shared | Space::Tensor => self.memory(access, effect.writes()),
        }
    }

    fn fragment(&mut self, access: &Access, effect: Effect, flat: Option<&Linear>) {
        let storage = self.kernel.storage(access.buffer);
        let pattern = self.pattern(access, flat);
        if pattern.is_nothing() {
            return;
        }
        let same = |known: &&mut Touch| known.storage == storage && *known.pattern == pattern;
        if let Some(known) = self.nest.touches.iter_mut().find(same) {
            known.effect = both(known.effect, effect);
            return;
        }
        let is_alike = |known: &&mut Touch| known.storage == storage && known.effect.writes() == effect.writes();
        let mut alike = self.nest.touches.iter_mut().filter(is_alike);
        match alike.find_map(|known| Some((known.pattern.joined(&pattern)?, known))) {
            Some((joined, known)) => {
                known.pattern = Arc::new(joined);
                known.effect = both(known.effect, effect);
            }
            None => {
                let title = access_title(self.kernel, access);
                let pattern = Arc::new(pattern);
                self.nest.touches.push(Touch { storage, effect, pattern, span: access.span, title });
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
        // Where the index cannot be listed, as one of data, it may be that of any element.
        let any = || (0..iterations).flat_map(|_| (0..elements).map(granule)).collect();
        let mut table = flat.and_then(|flat| self.listed(access, flat, &granule)).unwrap_or_else(any);
        let trips = table.len() / iterations.max(1);
        self.leave_out(&mut table, trips);
        Pattern::of_table(storage.granules, trips, table)
    }

    /// The granules at an index, for all iterations and all values of the other variables; `None` if the index cannot be
    /// listed.
    fn listed(&self, access: &Access, flat: &Linear, granule: &dyn Fn(i64) -> u32) -> Option<Vec<u32>> {
        let shape = &self.kernel.buffers[access.buffer].shape;
        let others = self.others(flat);
        let all: Vec<&Var> = self.vars.iter().chain(&others).collect();
        let inside = 0..shape.iter().product::<i64>();
        let place = |element: i64| if inside.contains(&element) { granule(element) } else { NONE };
        let mut table: Vec<u32> = values(flat, &all)?.into_iter().map(place).collect();
        leave_out_outside(access, shape, &all, &mut table);
        Some(table)
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
        let joined = self.movable.with(access, writes);
        if joined.is_some_and(|joined| joined.element(access) != Some(0)) {
            return;
        }
        let known = joined.cloned().or_else(|| StaticAccess::of(self.kernel, access));
        let elements = known.as_ref().map_or(1, |known| known.elements.len());
        let places = known.map_or(Places::unknown(), |known| Places::of(self.kernel, &known, &mut self.splits));
        self.nest.memory.push(MemoryTouch {
            buffer: access.buffer,
            writes,
            is_shared: buffer.space == Space::Shared,
            places: Arc::new(places),
            dtype: buffer.dtype,
            widest: self.kernel.widest_access(access.buffer),
            is_plain: self.turns == 1 && self.conditions.is_empty(),
            is_movable: joined.is_some(),
            elements,
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
        // An index that cannot be listed may be inside everywhere.
        let Some(listed) = values(&linear(index), vars) else { continue };
        for (granule, at) in table.iter_mut().zip(listed) {
            if !(0..*extent).contains(&at) {
                *granule = NONE;
            }
        }
    }
}
