//! Every op and loop as a nest: iterations without an order, and which elements each of them touches.

use num_integer::Integer;
use tilewright_diag::Span;
use tilewright_expr::linear::{Linear, linear};
use tilewright_expr::{Expr, Node, Var};
use tilewright_ir::Handle;
use tilewright_ir::tile::{Access, Buffer, Coord, Element, Kernel, Op, Parallel, Space, Tile, Value, access_title};
use tilewright_layout::{Layout, TileLayout};

use crate::storage::Storages;

/// Iterations that touch nothing.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// What the iterations of a nest do to a fragment.
#[derive(Clone, Debug)]
pub(crate) struct Touch {
    /// The fragment that owns the storage.
    pub(crate) storage: Handle<Buffer>,
    pub(crate) writes: bool,
    /// The granule that each iteration touches in each of its trips, trips fastest.
    pub(crate) granules: Vec<u32>,
    /// Values of inner and outer loop variables that the index depends on.
    pub(crate) trips: usize,
    pub(crate) span: Span,
    pub(crate) title: String,
}

impl Touch {
    /// Whether every iteration touches a granule of its own.
    pub(crate) fn is_own(&self) -> bool {
        let mut granules = self.granules.clone();
        granules.sort_unstable();
        self.trips == 1 && granules.windows(2).all(|pair| pair[0] != pair[1])
    }

    pub(crate) fn of(&self, iteration: usize) -> impl Iterator<Item = usize> + '_ {
        let trips = &self.granules[iteration * self.trips..(iteration + 1) * self.trips];
        trips.iter().filter(|granule| **granule != NOWHERE).map(|granule| *granule as usize)
    }
}

/// What the iterations of a nest do to global or shared memory.
#[derive(Clone, Debug)]
pub(crate) struct MemoryTouch {
    /// The position of each iteration, from the first on; `None` where data says it, or inner loops move it.
    pub(crate) positions: Option<Vec<i64>>,
    /// A number that divides where the positions begin; 0 where they begin at 0.
    pub(crate) aligned: i64,
    pub(crate) bytes: i64,
}

/// Iterations, and what they touch.
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    pub(crate) title: String,
    pub(crate) span: Span,
    pub(crate) extents: Vec<i64>,
    pub(crate) touches: Vec<Touch>,
    pub(crate) memory: Vec<MemoryTouch>,
    /// Elements that a thread takes together, at most, if the user says so.
    pub(crate) vector: Option<i64>,
}

impl Nest {
    pub(crate) fn iterations(&self) -> usize {
        self.extents.iter().product::<i64>().max(0) as usize
    }

    /// The nest of a parallel loop.
    pub(crate) fn of_parallel(kernel: &Kernel, storages: &Storages, parallel: &Parallel) -> Nest {
        let extents = parallel.extents();
        let ranges: Vec<&str> = parallel.vars.iter().map(Var::name).collect();
        let mut nest = Nest {
            title: format!("parallel {}", ranges.join(", ")),
            span: parallel.span,
            extents,
            touches: Vec::new(),
            memory: Vec::new(),
            vector: parallel.vector,
        };
        let mut walk = Walk { kernel, storages, vars: &parallel.vars, conditions: Vec::new(), nest: &mut nest };
        walk.elements(&parallel.body);
        nest
    }

    /// The nest of an op whose operands move together: copy, fill, atomic_add.
    pub(crate) fn of_op(kernel: &Kernel, storages: &Storages, op: &Op) -> Nest {
        let extents = op.operands.first().map(Tile::moving_extents).unwrap_or_default();
        let extents = if extents.is_empty() { vec![1] } else { extents };
        let vars: Vec<Var> = extents.iter().enumerate().map(|(at, e)| Var::new(format!("#{at}"), 0, e - 1)).collect();
        let mut nest = Nest {
            title: kernel.op_title(op),
            span: op.span,
            extents,
            touches: Vec::new(),
            memory: Vec::new(),
            vector: None,
        };
        let mut walk = Walk { kernel, storages, vars: &vars, conditions: Vec::new(), nest: &mut nest };
        for (operand, tile) in op.kind.info().operands.iter().zip(&op.operands) {
            walk.access(&walk.tile(tile, op.span), operand.effect.writes());
        }
        nest
    }
}

struct Walk<'a> {
    kernel: &'a Kernel,
    storages: &'a Storages,
    vars: &'a [Var],
    /// Conditions on variables, and whether they hold.
    conditions: Vec<(&'a Value, bool)>,
    nest: &'a mut Nest,
}

impl<'a> Walk<'a> {
    /// The access of an op's operand: the variables move through the extents that are not 1.
    fn tile(&self, tile: &Tile, span: Span) -> Access {
        let mut vars = self.vars.iter();
        let index = tile.starts.iter().zip(&tile.extents).map(|(start, extent)| match extent {
            1 => Coord::At(start.clone()),
            _ => Coord::At(start.clone() + vars.next().map_or(Expr::constant(0), Expr::var)),
        });
        Access { buffer: tile.buffer, index: index.collect(), span }
    }

    fn elements(&mut self, body: &'a [Element]) {
        for element in body {
            match element {
                Element::Let { value, .. } => self.value(value),
                Element::Store { to, value, .. } | Element::AtomicAdd { to, value } => {
                    self.value(value);
                    to.for_each_load(&mut |load| self.access(load, false));
                    self.access(to, true);
                }
                Element::If { cond, then, otherwise, .. } => {
                    self.value(cond);
                    for (branch, holds) in [(then, true), (otherwise, false)] {
                        self.conditions.push((cond, holds));
                        self.elements(branch);
                        self.conditions.pop();
                    }
                }
                Element::For { body, .. } => self.elements(body),
            }
        }
    }

    fn value(&mut self, value: &Value) {
        value.for_each_load(&mut |load| self.access(load, false));
    }

    fn access(&mut self, access: &Access, writes: bool) {
        let buffer = &self.kernel.buffers[access.buffer];
        let flat = access.flat(&buffer.shape);
        match buffer.space {
            Space::Fragment => self.fragment(access, writes, flat.as_ref()),
            Space::Global(_) | Space::Shared => self.memory(access, flat.as_ref()),
        }
    }

    fn fragment(&mut self, access: &Access, writes: bool, flat: Option<&Expr>) {
        let buffer = &self.kernel.buffers[access.buffer];
        let storage = self.kernel.storage(access.buffer);
        let all = buffer.shape.iter().product::<i64>();
        let granule = |element: i64| self.storages.granule(storage, element, buffer.dtype.bytes());
        let iterations = self.nest.iterations();
        let (granules, trips) = match flat {
            Some(flat) => {
                let others = self.others(flat);
                let values = values(flat, self.vars, &others, iterations);
                let trips = values.len() / iterations.max(1);
                (values.into_iter().map(|e| if (0..all).contains(&e) { granule(e) } else { NOWHERE }).collect(), trips)
            }
            // Data may lead to any element.
            None => ((0..iterations).flat_map(|_| (0..all).map(granule)).collect(), all as usize),
        };
        let mut touch =
            Touch { storage, writes, granules, trips, span: access.span, title: access_title(self.kernel, access) };
        for (cond, holds) in &self.conditions {
            for iteration in 0..iterations {
                if cond.truth(&|var| self.digit(var, iteration)).is_some_and(|known| known != *holds) {
                    touch.granules[iteration * trips..(iteration + 1) * trips].fill(NOWHERE);
                }
            }
        }
        let same = |known: &&mut Touch| known.storage == storage && known.granules == touch.granules;
        match self.nest.touches.iter_mut().find(same) {
            Some(known) => known.writes |= writes,
            None => self.nest.touches.push(touch),
        }
    }

    /// Variables of an index that are not the nest's: of loops inside and outside.
    fn others(&self, expr: &Expr) -> Vec<Var> {
        let mut others: Vec<Var> = Vec::new();
        expr.for_each_var(&mut |var| {
            if !self.vars.contains(var) && !others.contains(var) {
                others.push(var.clone());
            }
        });
        others
    }

    /// The value of one of the nest's variables.
    fn digit(&self, var: &Var, iteration: usize) -> Option<i64> {
        let at = self.vars.iter().position(|known| known == var)?;
        let stride: i64 = self.nest.extents[at + 1..].iter().product();
        Some(iteration as i64 / stride % self.nest.extents[at])
    }

    fn memory(&mut self, access: &Access, flat: Option<&Expr>) {
        let buffer = &self.kernel.buffers[access.buffer];
        let (positions, aligned) = match flat {
            Some(flat) => self.positions(buffer, flat),
            None => (None, 1),
        };
        self.nest.memory.push(MemoryTouch { positions, aligned, bytes: buffer.dtype.bytes() });
    }

    /// Where the iterations are in memory from the first on, and what divides where that is; `None` where the layout
    /// makes the distances depend on more than the iteration.
    fn positions(&self, buffer: &Buffer, flat: &Expr) -> (Option<Vec<i64>>, i64) {
        let iterations = self.nest.iterations();
        let sum = linear(flat);
        let (own, others): (Vec<_>, Vec<_>) =
            sum.terms.into_iter().partition(|(_, atom)| self.vars.iter().any(|var| atom.mentions(var)));
        let row_major = TileLayout::row_major(&buffer.shape).map(Layout::Tile).ok();
        if buffer.run_time.is_none() && buffer.layout == row_major {
            let divides =
                |aligned: i64, (factor, atom): &(i64, Expr)| aligned.gcd(&factor.saturating_mul(atom.multiple()));
            let aligned = others.iter().fold(sum.constant.saturating_abs(), divides);
            let own = Linear { terms: own, constant: 0 }.to_expr();
            return (Some(values(&own, self.vars, &[], iterations)), aligned);
        }
        let Some(layout) = buffer.layout.as_ref().filter(|_| buffer.run_time.is_none() && others.is_empty()) else {
            return (None, 1);
        };
        let inside = 0..layout.size();
        let place = |element: i64| inside.contains(&element).then(|| layout.memory_position(element));
        (values(flat, self.vars, &[], iterations).into_iter().map(place).collect(), 0)
    }
}

/// The values of an expression for all iterations of `vars`, and all values of `others`, which are fastest.
fn values(expr: &Expr, vars: &[Var], others: &[Var], iterations: usize) -> Vec<i64> {
    let extent = |var: &Var| (var.range().hi - var.range().lo + 1).max(1) as usize;
    let trips: usize = others.iter().map(extent).product();
    let all: Vec<&Var> = vars.iter().chain(others).collect();
    let mut strides = vec![1usize; all.len()];
    for at in (0..all.len().saturating_sub(1)).rev() {
        strides[at] = strides[at + 1] * extent(all[at + 1]);
    }
    let digit = |at: usize, point: usize| all[at].range().lo + (point / strides[at] % extent(all[at])) as i64;
    let sum = linear(expr);
    let mut values = vec![sum.constant; iterations * trips];
    for (factor, atom) in &sum.terms {
        let place = match atom.node() {
            Node::Var(var) => all.iter().position(|known| *known == var),
            _ => None,
        };
        for (point, value) in values.iter_mut().enumerate() {
            let of_atom = match place {
                Some(at) => digit(at, point),
                None => {
                    let env = |var: &Var| all.iter().position(|known| *known == var).map(|at| digit(at, point));
                    atom.eval(&env).unwrap_or(0)
                }
            };
            *value += factor * of_atom;
        }
    }
    values
}
