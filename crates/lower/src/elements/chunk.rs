//! Neighbouring steps in chunks: accesses that are adjacent in memory become one vector access.

use std::rc::Rc;

use tilewright_expr::Expr;
use tilewright_ir::thread::{RegArray, Stmt};
use tilewright_ir::tile::vectors::{Chunk, Mask, Movable, Places, StaticAccess, chunks, common_mask, widest};
use tilewright_ir::tile::{Access, ElementStmt, Space, Value};
use tilewright_ir::{Handle, Scalar};

use super::active_step::ActiveStep;
use super::lowering::{Lowering, NamedTogether};
use super::memory::inside;
use super::moved::VectorAccess;
use super::names::Name;
use crate::builder::regs;
use crate::conditions::under;
use crate::refusal::Refusal;

/// Steps that are lowered together if no access to memory determines how many.
const IN_REGISTERS: usize = 8;

/// An access to memory that neighbouring steps may make together.
struct VectorizableAccess {
    known: StaticAccess,
    /// Where each iteration accesses the memory.
    places: Places,
    /// The most elements of one access.
    widest: usize,
}

/// The accesses of a nest that neighbouring steps may make together.
struct VectorizableAccesses {
    loads: Vec<VectorizableAccess>,
    stores: Vec<VectorizableAccess>,
}

impl VectorizableAccesses {
    fn of<'a>(known: &'a [VectorizableAccess], access: &Access) -> Option<&'a VectorizableAccess> {
        known.iter().find(|one| one.known.is(access))
    }
}

impl Lowering<'_> {
    /// Lowers all steps, chunk by chunk.
    pub(super) fn steps(&mut self) -> Result<(), Refusal> {
        let movable = Movable::of(self.kernel, &self.nest.body, &mut self.points.splits);
        let is_in_registers = movable.loads.is_empty() && movable.stores.is_empty();
        let together = if is_in_registers { IN_REGISTERS } else { movable.together(self.kernel, self.nest.vector) };
        let accesses = VectorizableAccesses {
            loads: self.vectorizable(&movable.loads),
            stores: self.vectorizable(&movable.stores),
        };
        let everyone = vec![true; self.nest.steps.threads()];
        for chunk in chunks(&self.nest.steps, together) {
            let body = self.aside(|this| this.chunk(&chunk, &accesses))?;
            self.guarded(&chunk.mask, &everyone, body);
        }
        Ok(())
    }

    fn vectorizable(&mut self, accesses: &[StaticAccess]) -> Vec<VectorizableAccess> {
        let one = |known: &StaticAccess| {
            let (dtype, bytes) = (self.kernel.buffers[known.buffer].dtype, self.kernel.widest_access(known.buffer));
            let places = Places::of(self.kernel, known, &mut self.points.splits);
            VectorizableAccess { known: known.clone(), places, widest: widest(dtype, bytes, self.nest.vector) }
        };
        accesses.iter().map(one).collect()
    }

    fn chunk(&mut self, chunk: &Chunk, accesses: &VectorizableAccesses) -> Result<(), Refusal> {
        if self.copied(chunk, accesses)? || self.copied_through(chunk, accesses) {
            return Ok(());
        }
        for load in &accesses.loads {
            let width = self.width(load, chunk, &chunk.mask);
            if width > 1 {
                let moved = self.moved_through(&load.known, false, chunk);
                self.move_all(&moved, width, chunk);
            }
        }
        let mut after = Vec::new();
        for store in &accesses.stores {
            let mask = self.firsts_of(chunk);
            let width = mask.as_ref().map_or(1, |mask| self.width(store, chunk, mask));
            if let Some(mask) = mask.filter(|_| width > 1) {
                let moved = self.moved_through(&store.known, true, chunk);
                after.push((moved, width, mask));
            }
        }
        self.step_bodies(chunk)?;
        for (moved, width, mask) in after {
            let body = self.aside(|this| {
                this.move_all(&moved, width, &Chunk { steps: chunk.steps.clone(), mask: mask.clone() });
                Ok(())
            })?;
            self.guarded(&mask, &chunk.mask, body);
        }
        self.moved.clear();
        Ok(())
    }

    /// Lowers the statements of all steps of a chunk: each statement for all steps, so that neighbouring registers are
    /// assigned together; if there are branches or loops, each step on its own.
    fn step_bodies(&mut self, chunk: &Chunk) -> Result<(), Refusal> {
        let body = &self.nest.body;
        let places: Vec<ActiveStep> =
            chunk.steps.clone().map(|step| ActiveStep { step, mask: chunk.mask.clone() }).collect();
        let is_plain = |element: &ElementStmt| matches!(element, ElementStmt::Let { .. } | ElementStmt::Store { .. });
        if !body.iter().all(is_plain) {
            return places.iter().try_for_each(|place| self.elements(body, place));
        }
        let mut names: Vec<Vec<Name>> = vec![Vec::new(); places.len()];
        for element in body {
            self.named_together = Some(NamedTogether { steps: chunk.steps.clone(), array: None });
            for (place, names) in places.iter().zip(&mut names) {
                std::mem::swap(&mut self.names, names);
                let lowered = self.element(element, place);
                std::mem::swap(&mut self.names, names);
                lowered?;
            }
        }
        self.named_together = None;
        Ok(())
    }

    /// The elements of one access, in all steps of a chunk and for the threads of `mask`.
    fn width(&self, one: &VectorizableAccess, chunk: &Chunk, mask: &Mask) -> usize {
        one.places.width(&self.nest.steps, &chunk.steps, mask, one.widest)
    }

    /// The threads that are the first to execute their iterations, if they are the same threads in all steps.
    fn firsts_of(&self, chunk: &Chunk) -> Option<Mask> {
        common_mask(&self.firsts, chunk).map(Rc::clone)
    }

    /// Declares the registers of an access that the steps of a chunk make together, and records it.
    fn moved_through(&mut self, known: &StaticAccess, writes: bool, chunk: &Chunk) -> VectorAccess {
        let dtype = self.kernel.buffers[known.buffer].dtype;
        let array = self.new_registers("r", dtype, chunk.steps.len() as i64);
        let moved = VectorAccess { known: known.clone(), writes, array, steps: chunk.steps.clone() };
        self.moved.push(moved.clone());
        moved
    }

    /// The register of step `step` in an access that several steps make together; `None` if it is not such an access.
    pub(super) fn moved_register(&self, access: &Access, step: usize, writes: bool) -> Option<(Handle<RegArray>, i64)> {
        let is_meant =
            |moved: &&VectorAccess| moved.known.is(access) && moved.writes == writes && moved.steps.contains(&step);
        let moved = self.moved.iter().find(is_meant)?;
        Some((moved.array, (step - moved.steps.start) as i64))
    }

    /// Adds the accesses of all steps of a chunk, `width` steps at a time, through one register per step.
    fn move_all(&mut self, moved: &VectorAccess, width: usize, chunk: &Chunk) {
        for step in chunk.steps.clone().step_by(width) {
            let place = ActiveStep { step, mask: chunk.mask.clone() };
            self.move_vector(moved, (step - chunk.steps.start) as i64, width, &place);
        }
    }

    /// Adds one access for the `width` steps from `step` on, from or to the registers from `first` on. Elements
    /// outside of the tensor read as zero.
    fn move_vector(&mut self, moved: &VectorAccess, first: i64, width: usize, place: &ActiveStep) {
        let part = regs(moved.array, first, width as i64);
        let conditions = self.inside(moved, place);
        let (memory, index) = (self.builder.memory(moved.known.buffer), self.address(moved, width, place));
        let access = if moved.writes {
            Stmt::Store { memory, index, from: part }
        } else {
            if !conditions.is_empty() {
                self.out.push(Stmt::Set { to: part.clone(), value: Scalar::Int(0) });
            }
            Stmt::Load { to: part, memory, index }
        };
        self.out.extend(under(&conditions, vec![access]));
    }

    fn inside(&mut self, moved: &VectorAccess, place: &ActiveStep) -> Vec<tilewright_ir::thread::Cond> {
        let buffer = &self.kernel.buffers[moved.known.buffer];
        let mut conditions = Vec::new();
        for bound in self.kernel.bounds(buffer, &moved.known.index, &mut self.points.splits) {
            conditions.extend(inside(&bound, place, &mut self.points, self.builder, &mut self.out));
        }
        conditions
    }

    fn address(&mut self, moved: &VectorAccess, width: usize, place: &ActiveStep) -> Expr {
        let width = width as i64;
        let address = self.address_of(moved.known.buffer, &moved.known.index);
        address.at(width, place, &mut self.points, self.builder, &mut self.out)
    }

    /// Lowers a nest that only copies from memory to memory: each side as wide as it allows, through one array. False
    /// if the nest is not such a copy.
    fn copied_through(&mut self, chunk: &Chunk, accesses: &VectorizableAccesses) -> bool {
        let nest = self.nest;
        let [ElementStmt::Store { to, value: Value::Load(from), .. }] = &nest.body[..] else { return false };
        let sides = VectorizableAccesses::of(&accesses.loads, from).zip(VectorizableAccesses::of(&accesses.stores, to));
        let Some(((load, store), mask)) = sides.zip(self.firsts_of(chunk)) else { return false };
        let widths = [load, store].map(|one| self.width(one, chunk, &mask));
        let loads = self.moved_through(&load.known, false, chunk);
        let stores = VectorAccess { known: store.known.clone(), writes: true, ..loads.clone() };
        let part = Chunk { steps: chunk.steps.clone(), mask: mask.clone() };
        let outer = std::mem::take(&mut self.out);
        self.move_all(&loads, widths[0], &part);
        self.move_all(&stores, widths[1], &part);
        let body = std::mem::replace(&mut self.out, outer);
        self.guarded(&mask, &chunk.mask, body);
        self.moved.clear();
        true
    }

    /// Lowers a nest that only copies between memory and a fragment whose registers are in the order of memory:
    /// directly from or to the registers. False if the nest is not such a copy.
    fn copied(&mut self, chunk: &Chunk, accesses: &VectorizableAccesses) -> Result<bool, Refusal> {
        let nest = self.nest;
        let [ElementStmt::Store { to, value: Value::Load(from), .. }] = &nest.body[..] else { return Ok(false) };
        let sides =
            match (VectorizableAccesses::of(&accesses.loads, from), VectorizableAccesses::of(&accesses.stores, to)) {
                (Some(load), None) => Some((false, load, to)),
                (None, Some(store)) => Some((true, store, from)),
                _ => None,
            };
        let is_fragment = |access: &Access| self.kernel.buffers[access.buffer].space == Space::Fragment;
        let is_plain = |fragment: &Access| is_fragment(fragment) && fragment.known_index().is_some();
        let Some((writes, memory, fragment)) = sides.filter(|(.., fragment)| is_plain(fragment)) else {
            return Ok(false);
        };
        let mask = if writes { self.firsts_of(chunk) } else { Some(chunk.mask.clone()) };
        let Some(mask) = mask else { return Ok(false) };
        let held = self.fragment(fragment.buffer)?;
        let mut registers = Vec::new();
        for step in chunk.steps.clone() {
            let place = ActiveStep { step, mask: mask.clone() };
            match &self.slot_cases(fragment, &place)?[..] {
                [case] if case.conditions.is_empty() && held.is_plain() => registers.push(case.slot.register),
                _ => return Ok(false),
            }
        }
        let width = self.width(memory, chunk, &mask);
        let adjacent =
            |group: &[i64]| group[0] % group.len() as i64 == 0 && group.windows(2).all(|pair| pair[1] == pair[0] + 1);
        if !registers.chunks(width).all(adjacent) {
            return Ok(false);
        }
        let moved = VectorAccess { known: memory.known.clone(), writes, array: held.array, steps: chunk.steps.clone() };
        let body = self.aside(|this| {
            for (step, group) in chunk.steps.clone().step_by(width).zip(registers.chunks(width)) {
                this.move_vector(&moved, group[0], width, &ActiveStep { step, mask: mask.clone() });
            }
            Ok(())
        })?;
        self.guarded(&mask, &chunk.mask, body);
        Ok(true)
    }
}
