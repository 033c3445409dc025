//! Tensors of which each iteration of a loop over tiles accesses blocks of its own.

use std::collections::BTreeMap;

use tilewright_expr::linear::{linear, lower_bound, normalize, upper_bound};
use tilewright_expr::{Expr, Var};

use crate::arena::Handle;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::kernel::{Kernel, Loop, Stmt};
use crate::tile::value::{Access, Coord};

/// How the variables of a place divide a tensor: for each, the dimension along which it counts blocks, and their side in elements.
pub type Blocks = Vec<(usize, i64)>;

impl Kernel {
    /// The tensors of which an iteration of a loop over tiles accesses elements of the block alone that belongs to its place. Other
    /// iterations have other places, so that they access other elements, if their blocks are these.
    pub fn own_blocks(&self, inner: &Loop) -> BTreeMap<Handle<Buffer>, Blocks> {
        let mut walk = Walk { kernel: self, place: &inner.place, found: BTreeMap::new() };
        if !inner.place.is_empty() {
            walk.body(&inner.body);
        }
        walk.found.into_iter().filter_map(|(tensor, blocks)| Some((tensor, blocks?))).collect()
    }
}

struct Walk<'a> {
    kernel: &'a Kernel,
    place: &'a [Var],
    /// The blocks of each tensor; `None` if accesses to it are not all in the same.
    found: BTreeMap<Handle<Buffer>, Option<Blocks>>,
}

impl Walk<'_> {
    fn body(&mut self, body: &[Stmt]) {
        let kernel = self.kernel;
        for stmt in body {
            match stmt {
                Stmt::Op(op) => {
                    for tile in &kernel.ops[*op].operands {
                        let index = tile.starts.iter().zip(&tile.extents).map(|(start, extent)| Some((start, *extent)));
                        self.access(tile.buffer, index.collect());
                    }
                }
                Stmt::Parallel(parallel) => {
                    kernel.parallels[*parallel].body.iter().for_each(|element| {
                        element.for_each_access(&mut |access, _| self.element(access));
                    });
                }
                Stmt::EachThread(elements) => {
                    elements.iter().for_each(|element| element.for_each_access(&mut |access, _| self.element(access)));
                }
                Stmt::Loop(inner) => self.body(&inner.body),
                Stmt::If(branch) => {
                    branch.cond.for_each_load(&mut |access| self.element(access));
                    self.body(&branch.then);
                    self.body(&branch.otherwise);
                }
                Stmt::Begin(_) | Stmt::End(_) => {}
            }
        }
    }

    fn element(&mut self, access: &Access) {
        let index = access.index.iter().map(|coord| match coord {
            Coord::At(at) => Some((at, 1)),
            Coord::Data(_) => None,
        });
        self.access(access.buffer, index.collect());
    }

    /// Elements from an index on are accessed, so many in each dimension.
    fn access(&mut self, buffer: Handle<Buffer>, index: Vec<Option<(&Expr, i64)>>) {
        let storage = self.kernel.storage(buffer);
        if !matches!(self.kernel.buffers[storage].space, Space::Global(_)) {
            return;
        }
        // A view has dimensions of its own.
        let blocks = if storage == buffer { self.blocks(&index) } else { None };
        let known = self.found.entry(storage).or_insert_with(|| blocks.clone());
        if *known != blocks {
            *known = None;
        }
    }

    fn blocks(&self, index: &[Option<(&Expr, i64)>]) -> Option<Blocks> {
        let along = |var: &Var| {
            let mut sides = index.iter().map(|at| at.and_then(|(start, extent)| self.side(start, extent, var)));
            let dimension = sides.position(|side| side.is_some())?;
            let (start, extent) = index[dimension]?;
            Some((dimension, self.side(start, extent, var)?))
        };
        // A variable with one value tells no tiles apart.
        let differs = |var: &&Var| var.range().lo < var.range().hi;
        self.place.iter().filter(differs).map(along).collect()
    }

    /// The side of the blocks that a variable counts, if `extent` elements from `start` on are in the one that is its number.
    fn side(&self, start: &Expr, extent: i64, var: &Var) -> Option<i64> {
        let terms = linear(start).terms;
        let (side, _) = terms.iter().find(|(_, atom)| *atom == Expr::var(var))?;
        let within = normalize(&(start - &(Expr::var(var) * *side)));
        let depends = self.place.iter().any(|other| within.mentions(other));
        let last = upper_bound(&within).checked_add(extent - 1)?;
        (!depends && lower_bound(&within) >= 0 && last < *side).then_some(*side)
    }
}
