//! Neighbouring steps together: accesses that are adjacent in memory become one.

use std::rc::Rc;

use tilewright_expr::Expr;
use tilewright_ir::thread::{RegArray, Stmt};
use tilewright_ir::tile::{Access, Buffer, Coord, Element, Space, Value};
use tilewright_ir::{Handle, Scalar};

use super::memory::{bounds, widest};
use super::points::Mask;
use super::{Lowering, Place};
use crate::builder::regs;
use crate::conditions::under;
use crate::refusal::Refusal;

/// An access that several steps do together, through registers: one per step.
#[derive(Clone)]
pub(super) struct Moved {
    buffer: Handle<Buffer>,
    index: Vec<Expr>,
    writes: bool,
    array: Handle<RegArray>,
    /// The steps that it is done for.
    steps: std::ops::Range<usize>,
}

/// Steps that are done together, and the threads that do them.
struct Chunk {
    steps: std::ops::Range<usize>,
    mask: Mask,
}

impl Lowering<'_> {
    /// All steps.
    pub(super) fn steps(&mut self) -> Result<(), Refusal> {
        let (loads, stores) = self.movable();
        let widths = loads.iter().chain(&stores).map(|access| self.widest(access));
        let together = widths.max().unwrap_or(1);
        let count = self.nest.steps.slots();
        let everyone = vec![true; self.nest.steps.threads()];
        let mut step = 0;
        while step < count {
            let mask = self.mask(step);
            let end = (step + together).min(count);
            let alike = (step + 1..end).all(|next| self.mask(next) == mask);
            let chunk = Chunk { steps: step..if alike { end } else { step + 1 }, mask: mask.clone() };
            step = chunk.steps.end;
            let body = self.aside(|this| this.chunk(&chunk, &loads, &stores))?;
            self.guarded(&mask, &everyone, body);
        }
        Ok(())
    }

    fn chunk(&mut self, chunk: &Chunk, loads: &[Access], stores: &[Access]) -> Result<(), Refusal> {
        if self.copied(chunk)? || self.copied_through(chunk) {
            return Ok(());
        }
        for access in loads {
            let width = self.width(access, chunk, &chunk.mask);
            if width > 1 {
                let moved = self.moved_through(access, false, chunk);
                self.move_all(&moved, width, chunk);
            }
        }
        let mut after = Vec::new();
        for access in stores {
            let mask = self.firsts_of(chunk);
            let width = mask.as_ref().map_or(1, |mask| self.width(access, chunk, mask));
            if let Some(mask) = mask.filter(|_| width > 1) {
                let moved = self.moved_through(access, true, chunk);
                after.push((moved, width, mask));
            }
        }
        for step in chunk.steps.clone() {
            let nest = self.nest;
            self.elements(&nest.body, &Place { step, mask: chunk.mask.clone() })?;
        }
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

    /// Accesses of memory that every iteration does once and that no other statement of the nest can meet.
    fn movable(&self) -> (Vec<Access>, Vec<Access>) {
        let mut all: Vec<(Handle<Buffer>, bool)> = Vec::new();
        for element in &self.nest.body {
            element.for_each_access(&mut |access, writes| all.push((self.kernel.storage(access.buffer), writes)));
        }
        let (mut loads, mut stores) = (Vec::new(), Vec::new());
        for element in &self.nest.body {
            let (to, value) = match element {
                Element::Let { value, .. } => (None, value),
                Element::Store { to, value, .. } => (Some(to), value),
                Element::AtomicAdd { value, .. } => (None, value),
                Element::If { .. } | Element::For { .. } => continue,
            };
            value.for_each_load(&mut |access| {
                let storage = self.kernel.storage(access.buffer);
                let is_known = loads.iter().any(|known: &Access| same_element(known, access));
                if self.is_movable(access) && !all.contains(&(storage, true)) && !is_known {
                    loads.push(access.clone());
                }
            });
            if let Some(to) = to.filter(|to| self.is_movable(to)) {
                let storage = self.kernel.storage(to.buffer);
                if all.iter().filter(|(known, _)| *known == storage).count() == 1 {
                    stores.push(to.clone());
                }
            }
        }
        (loads, stores)
    }

    fn is_movable(&self, access: &Access) -> bool {
        let in_memory = self.kernel.buffers[access.buffer].space != Space::Fragment;
        in_memory && access.index.iter().all(|coord| matches!(coord, Coord::At(_)))
    }

    fn widest(&self, access: &Access) -> usize {
        widest(self.kernel.buffers[access.buffer].dtype, self.nest.vector)
    }

    /// Elements that are moved at once in all steps of a chunk, by the threads of `mask`.
    fn width(&mut self, access: &Access, chunk: &Chunk, mask: &Mask) -> usize {
        let index = known_index(access);
        let buffer = &self.kernel.buffers[access.buffer];
        let alignment = self.builder.program.memories[self.builder.memory(access.buffer)].alignment;
        let address = self.address_of(access.buffer, &index);
        let limits = bounds(self.kernel, buffer, &index, &mut self.points);
        let mut width = self.widest(access);
        while width > 1 {
            let fits = chunk.steps.len().is_multiple_of(width)
                && alignment % (width as i64 * buffer.dtype.bytes()) == 0
                && chunk.steps.clone().step_by(width).all(|step| {
                    address.is_vector(step, width, mask, &self.points)
                        && limits.iter().all(|bound| bound.is_whole(step, width, mask, &mut self.points))
                });
            if fits {
                return width;
            }
            width /= 2;
        }
        1
    }

    /// The threads that are the first to do their iterations, if these are the same in all steps.
    fn firsts_of(&self, chunk: &Chunk) -> Option<Mask> {
        let first = &self.firsts[chunk.steps.start];
        let alike = chunk.steps.clone().all(|step| self.firsts[step] == *first);
        alike.then(|| Rc::clone(first))
    }

    /// The registers through which an access goes.
    fn moved_through(&mut self, access: &Access, writes: bool, chunk: &Chunk) -> Moved {
        let index = known_index(access);
        let array = self.new_registers("r", self.kernel.buffers[access.buffer].dtype, chunk.steps.len() as i64);
        let moved = Moved { buffer: access.buffer, index, writes, array, steps: chunk.steps.clone() };
        self.moved.push(moved.clone());
        moved
    }

    /// The register of an access that is moved together with others.
    pub(super) fn moved_register(&self, access: &Access, step: usize, writes: bool) -> Option<(Handle<RegArray>, i64)> {
        let is_meant = |moved: &&Moved| {
            let same = moved.buffer == access.buffer && moved.writes == writes && moved.steps.contains(&step);
            same && is_at(access, &moved.index)
        };
        let moved = self.moved.iter().find(is_meant)?;
        Some((moved.array, (step - moved.steps.start) as i64))
    }

    /// All steps of a chunk, `width` at a time, through a register for each.
    fn move_all(&mut self, moved: &Moved, width: usize, chunk: &Chunk) {
        for step in chunk.steps.clone().step_by(width) {
            self.move_vector(moved, (step - chunk.steps.start) as i64, width, (step, &chunk.mask));
        }
    }

    /// The steps from `step` on that one access does, from or to the registers from `first` on. What lies outside reads as
    /// zero.
    fn move_vector(&mut self, moved: &Moved, first: i64, width: usize, (step, mask): (usize, &Mask)) {
        let part = regs(moved.array, first, width as i64);
        let conditions = self.inside(moved, step, mask);
        let (memory, index) = (self.builder.memory(moved.buffer), self.address(moved, width, step, mask));
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

    fn inside(&mut self, moved: &Moved, step: usize, mask: &Mask) -> Vec<tilewright_ir::thread::Cond> {
        let buffer = &self.kernel.buffers[moved.buffer];
        let mut conditions = Vec::new();
        for bound in bounds(self.kernel, buffer, &moved.index, &mut self.points) {
            conditions.extend(bound.conditions(step, mask, &mut self.points, self.builder, &mut self.out));
        }
        conditions
    }

    fn address(&mut self, moved: &Moved, width: usize, step: usize, mask: &Mask) -> Expr {
        let width = width as i64;
        let buffer = &self.kernel.buffers[moved.buffer];
        let address = self.address_of(moved.buffer, &moved.index);
        address.at(buffer.layout.as_ref(), width, (step, mask), &mut self.points, self.builder, &mut self.out)
    }

    /// A nest that does nothing but copy from memory to other memory: as wide as both sides allow, through one array.
    fn copied_through(&mut self, chunk: &Chunk) -> bool {
        let nest = self.nest;
        let [Element::Store { to, value: Value::Load(from), .. }] = &nest.body[..] else { return false };
        let is_apart = self.kernel.storage(to.buffer) != self.kernel.storage(from.buffer);
        let Some(mask) = self.firsts_of(chunk).filter(|_| is_apart && self.is_movable(to) && self.is_movable(from))
        else {
            return false;
        };
        let width = self.width(to, chunk, &mask).min(self.width(from, chunk, &mask));
        let loads = self.moved_through(from, false, chunk);
        let stores = Moved { buffer: to.buffer, index: known_index(to), writes: true, ..loads.clone() };
        let part = Chunk { steps: chunk.steps.clone(), mask: mask.clone() };
        let outer = std::mem::take(&mut self.out);
        self.move_all(&loads, width, &part);
        self.move_all(&stores, width, &part);
        let body = std::mem::replace(&mut self.out, outer);
        self.guarded(&mask, &chunk.mask, body);
        self.moved.clear();
        true
    }

    /// A nest that does nothing but copy between memory and a fragment: straight from and to its registers.
    fn copied(&mut self, chunk: &Chunk) -> Result<bool, Refusal> {
        let nest = self.nest;
        let [Element::Store { to, value: Value::Load(from), .. }] = &nest.body[..] else { return Ok(false) };
        let is_fragment = |access: &Access| self.kernel.buffers[access.buffer].space == Space::Fragment;
        let (writes, memory, fragment) = match (is_fragment(to), is_fragment(from)) {
            (true, false) if self.is_movable(from) => (false, from, to),
            (false, true) if self.is_movable(to) => (true, to, from),
            _ => return Ok(false),
        };
        let mask = if writes { self.firsts_of(chunk) } else { Some(chunk.mask.clone()) };
        let Some(mask) = mask else { return Ok(false) };
        let held = self.fragment(fragment.buffer)?;
        let mut registers = Vec::new();
        for step in chunk.steps.clone() {
            let place = Place { step, mask: mask.clone() };
            match &self.ways(fragment, &place)?[..] {
                [way] if way.conditions.is_empty() && held.is_plain() => registers.push(way.slot.register),
                _ => return Ok(false),
            }
        }
        let mut width = self.width(memory, chunk, &mask);
        let adjacent =
            |group: &[i64]| group[0] % group.len() as i64 == 0 && group.windows(2).all(|pair| pair[1] == pair[0] + 1);
        while !registers.chunks(width).all(adjacent) {
            width /= 2;
        }
        let moved = Moved {
            buffer: memory.buffer,
            index: known_index(memory),
            writes,
            array: held.array,
            steps: chunk.steps.clone(),
        };
        let body = self.aside(|this| {
            for (step, group) in chunk.steps.clone().step_by(width).zip(registers.chunks(width)) {
                this.move_vector(&moved, group[0], width, (step, &mask));
            }
            Ok(())
        })?;
        self.guarded(&mask, &chunk.mask, body);
        Ok(true)
    }
}

/// Whether an access is at this index.
fn is_at(access: &Access, index: &[Expr]) -> bool {
    let same = |(coord, known): (&Coord, &Expr)| matches!(coord, Coord::At(at) if at == known);
    access.index.len() == index.len() && access.index.iter().zip(index).all(same)
}

/// Whether two accesses, of which no data decides the index, are of one element.
fn same_element(one: &Access, other: &Access) -> bool {
    one.buffer == other.buffer && is_at(other, &known_index(one))
}

/// The index of an access that no data decides.
fn known_index(access: &Access) -> Vec<Expr> {
    let at = |coord: &Coord| match coord {
        Coord::At(expr) => expr.clone(),
        Coord::Data(_) => Expr::constant(0),
    };
    access.index.iter().map(at).collect()
}
