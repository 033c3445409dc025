//! Neighbouring steps in chunks: accesses that are adjacent in memory become one vector access.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Cond, RegArray, Regs, Stmt};
use tilewright_ir::tile::vectors::{Chunk, Mask, Movable, Places, StaticAccess, Vectors, chunks, common_mask, widest};
use tilewright_ir::tile::{Access, Buffer, ElementStmt, Space, Value};
use tilewright_ir::{Handle, Scalar};
use tilewright_layout::map::Map;

use super::active_step::ActiveStep;
use super::lowering::{Lowering, NamedTogether};
use super::memory::inside;
use super::moved::VectorAccess;
use super::names::Name;
use crate::builder::regs;
use crate::conditions::under;
use crate::refusal::Refusal;
use crate::reorder::{evenly_apart, reordered, restored, word_of};

/// Steps that are lowered together if no access to memory determines how many.
const IN_REGISTERS: usize = 8;

/// An access to memory that neighbouring steps may make together.
struct VectorizableAccess<'a> {
    known: StaticAccess,
    /// Where each iteration accesses the memory.
    places: Places,
    /// The steps of the nest, each as many as the iteration has elements.
    steps: Cow<'a, Map>,
    /// The most elements of one access.
    widest: usize,
}

/// The accesses of a nest that neighbouring steps may make together.
struct VectorizableAccesses<'a> {
    loads: Vec<VectorizableAccess<'a>>,
    stores: Vec<VectorizableAccess<'a>>,
}

impl<'a> VectorizableAccesses<'a> {
    fn of<'b>(known: &'b [VectorizableAccess<'a>], access: &Access) -> Option<&'b VectorizableAccess<'a>> {
        known.iter().find(|one| one.known.element(access).is_some())
    }
}

impl<'a> Lowering<'a> {
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

    fn vectorizable(&mut self, accesses: &[StaticAccess]) -> Vec<VectorizableAccess<'a>> {
        let one = |known: &StaticAccess| {
            let (dtype, bytes) = (self.kernel.buffers[known.buffer].dtype, self.kernel.widest_access(known.buffer));
            let places = Places::of(self.kernel, known, &mut self.points.splits);
            let steps = match known.elements.len() {
                1 => Cow::Borrowed(&self.nest.steps),
                elements => Cow::Owned(self.nest.steps.with_turns(elements)),
            };
            VectorizableAccess { known: known.clone(), places, steps, widest: widest(dtype, bytes, self.nest.vector) }
        };
        accesses.iter().map(one).collect()
    }

    fn chunk(&mut self, chunk: &Chunk, accesses: &VectorizableAccesses<'_>) -> Result<(), Refusal> {
        if self.copied(chunk, accesses)? || self.copied_through(chunk, accesses)? {
            return Ok(());
        }
        self.loads_in_vectors(accesses, None, chunk, &chunk.mask)?;
        let mut after = Vec::new();
        for store in &accesses.stores {
            let Some(mask) = self.firsts_of(chunk) else { continue };
            let vectors = self.vectors(store, chunk, &mask);
            if vectors.width > 1 || self.matrices(&store.known, &vectors, &mask).is_some() {
                after.push((self.moved_through(&store.known, true, vectors), mask));
            }
        }
        self.step_bodies(chunk)?;
        for (moved, mask) in after {
            let body = self.aside(|this| this.move_all(&moved, &mask))?;
            self.guarded(&mask, &chunk.mask, body);
        }
        self.moved.clear();
        Ok(())
    }

    /// Adds the loads of a chunk that are vectors, for the threads of `mask`, but for that of an access.
    fn loads_in_vectors(
        &mut self,
        accesses: &VectorizableAccesses<'_>,
        except: Option<&Access>,
        chunk: &Chunk,
        mask: &Mask,
    ) -> Result<(), Refusal> {
        let is_left = |load: &&VectorizableAccess<'_>| except.is_none_or(|other| load.known.element(other).is_none());
        for load in accesses.loads.iter().filter(is_left) {
            let vectors = self.vectors(load, chunk, mask);
            if vectors.width > 1 {
                let moved = self.moved_through(&load.known, false, vectors);
                self.move_all(&moved, mask)?;
            }
        }
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
        let mut names: Vec<Vec<Name>> = vec![self.names.clone(); places.len()];
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

    /// The vectors of one access, in all steps of a chunk and for the threads of `mask`.
    fn vectors(&self, one: &VectorizableAccess<'_>, chunk: &Chunk, mask: &Mask) -> Vectors {
        let (elements, Range { start, end }) = (one.known.elements.len(), chunk.steps.clone());
        one.places.vectors(&one.steps, &(start * elements..end * elements), mask, one.widest)
    }

    /// The threads that are the first to execute their iterations, if they are the same threads in all steps.
    fn firsts_of(&self, chunk: &Chunk) -> Option<Mask> {
        common_mask(&self.firsts, chunk).map(Arc::clone)
    }

    /// Declares the registers of an access that the steps of a chunk make together, and records it.
    fn moved_through(&mut self, known: &StaticAccess, writes: bool, vectors: Vectors) -> VectorAccess {
        let dtype = self.kernel.buffers[known.buffer].dtype;
        let array = self.new_registers("r", dtype, vectors.steps.len() as i64);
        let moved = VectorAccess { known: known.clone(), writes, array, vectors, words: None };
        self.moved.push(moved.clone());
        moved
    }

    /// The register of step `step` in an access that several steps make together; `None` if it is not such an access.
    pub(super) fn moved_register(&self, access: &Access, step: usize, writes: bool) -> Option<(Handle<RegArray>, i64)> {
        let of = |moved: &VectorAccess| {
            let element = moved.known.element(access).filter(|_| moved.writes == writes)?;
            let step = step * moved.known.elements.len() + element;
            let register = moved.vectors.steps.iter().position(|own| *own == step)?;
            Some((moved.array, register as i64))
        };
        self.moved.iter().find_map(of)
    }

    /// Adds an access in all its steps, for the threads of `mask`.
    fn move_all(&mut self, moved: &VectorAccess, mask: &Mask) -> Result<(), Refusal> {
        let width = moved.vectors.width;
        let registers: Vec<i64> = (0..moved.vectors.steps.len() as i64).collect();
        if moved.writes
            && moved.words.is_none()
            && let Some(matrices) = self.matrices(&moved.known, &moved.vectors, mask)
            && let Some(stores) = self.matrix_stores(&matrices, moved, &registers)
        {
            self.out.extend(stores);
            return Ok(());
        }
        let dtype = self.kernel.buffers[moved.known.buffer].dtype;
        let mut vectors = moved.vectors.steps.chunks(width).enumerate();
        vectors.try_for_each(|(at, vector)| self.move_vector(moved, moved.regs(dtype, at), vector[0], mask))
    }

    /// Adds the access of the vector that begins with an element, from or to these registers. Elements outside of the
    /// tensor read as zero.
    fn move_vector(&mut self, moved: &VectorAccess, part: Regs, first: usize, mask: &Mask) -> Result<(), Refusal> {
        let (step, index) = moved.element(first);
        let place = ActiveStep { step, mask: mask.clone() };
        // An index that is data is kept inside of shared memory by the kernel, which was verified.
        let is_shared = self.kernel.buffers[moved.known.buffer].space == Space::Shared;
        let checked = moved.known.gathered.as_ref().filter(|_| is_shared).map(|gathered| gathered.without_data(index));
        let index = self.with_data(&moved.known, index, &place)?;
        let conditions = self.inside(moved.known.buffer, checked.as_ref().unwrap_or(&index), &place);
        let address = self.address_of(moved.known.buffer, &index);
        let width = moved.vectors.width as i64;
        let index = address.at(width, &place, &mut self.points, self.builder, &mut self.out);
        let memory = self.builder.memory(moved.known.buffer);
        let access = if moved.writes {
            Stmt::Store { memory, index, from: part }
        } else {
            if !conditions.is_empty() {
                self.out.push(Stmt::Set { to: part.clone(), value: Scalar::Int(0) });
            }
            Stmt::Load { to: part, memory, index }
        };
        self.out.extend(under(&conditions, vec![access]));
        Ok(())
    }

    /// The index of an access, with the data that belongs to it.
    fn with_data(&mut self, known: &StaticAccess, index: &[Expr], place: &ActiveStep) -> Result<Vec<Expr>, Refusal> {
        let Some(gathered) = &known.gathered else { return Ok(index.to_vec()) };
        let mut index = index.to_vec();
        for (var, value) in &gathered.data {
            let data = self.named_integer(value, place)?;
            let replaced = |known: &Var| (known == var).then(|| data.clone());
            index.iter_mut().for_each(|coord| *coord = coord.substitute(&replaced));
        }
        Ok(index)
    }

    /// The conditions under which an index is in bounds.
    fn inside(&mut self, buffer: Handle<Buffer>, index: &[Expr], place: &ActiveStep) -> Vec<Cond> {
        let mut conditions = Vec::new();
        for bound in self.bounds(buffer, index) {
            conditions.extend(inside(&bound, place, &mut self.points, self.builder, &mut self.out));
        }
        conditions
    }

    /// Lowers a nest that only copies from memory to memory: each side as wide as it allows, through one array. False
    /// if the nest is not such a copy.
    fn copied_through(&mut self, chunk: &Chunk, accesses: &VectorizableAccesses<'_>) -> Result<bool, Refusal> {
        let nest = self.nest;
        let [ElementStmt::Store { to, value: Value::Load(from), .. }] = &nest.body[..] else { return Ok(false) };
        let sides = VectorizableAccesses::of(&accesses.loads, from).zip(VectorizableAccesses::of(&accesses.stores, to));
        let Some(((load, store), mask)) = sides.zip(self.firsts_of(chunk)) else { return Ok(false) };
        let [loaded, stored] = [load, store].map(|one| self.vectors(one, chunk, &mask));
        let body = self.aside(|this| {
            this.loads_in_vectors(accesses, Some(from), chunk, &mask)?;
            if let Some([loads, stores]) = this.through_words([load, store], [&loaded, &stored]) {
                this.move_all(&loads, &mask)?;
                return this.move_all(&stores, &mask);
            }
            let loads = this.moved_through(&load.known, false, loaded);
            this.move_all(&loads, &mask)?;
            let stores = if stored.steps == loads.vectors.steps {
                VectorAccess { known: store.known.clone(), writes: true, vectors: stored, ..loads }
            } else {
                let stores = this.moved_through(&store.known, true, stored);
                this.reorder(&loads, &stores);
                stores
            };
            this.move_all(&stores, &mask)
        })?;
        self.guarded(&mask, &chunk.mask, body);
        self.moved.clear();
        Ok(true)
    }

    /// Loads and stores of a copy in another order, through an array of words of which every store takes some that are
    /// evenly apart. `None` if the order is the same, stores are single words, or no such words are what they store.
    fn through_words(
        &mut self,
        sides: [&VectorizableAccess<'_>; 2],
        [loaded, stored]: [&Vectors; 2],
    ) -> Option<[VectorAccess; 2]> {
        let dtype = self.kernel.buffers[sides[0].known.buffer].dtype;
        let (word, per_word) = word_of(dtype);
        if stored.steps == loaded.steps || stored.width as i64 <= per_word {
            return None;
        }
        let place = |step: &usize| loaded.steps.iter().position(|known| known == step);
        let places: Vec<usize> = stored.steps.iter().map(place).collect::<Option<_>>()?;
        let in_order: Vec<usize> = (0..places.len()).collect();
        let orders = [(&in_order, loaded), (&places, stored)];
        let words = orders.map(|(places, vectors)| evenly_apart(dtype, places, vectors.width));
        let [Some(of_loads), Some(of_stores)] = words else { return None };
        let array = self.new_registers("r", word, places.len() as i64 / per_word);
        let access = |side: usize, vectors: &Vectors, words| {
            let (known, vectors) = (sides[side].known.clone(), vectors.clone());
            VectorAccess { known, writes: side == 1, array, vectors, words: Some(words) }
        };
        Some([access(0, loaded, of_loads), access(1, stored, of_stores)])
    }

    /// Copies between memory and registers of a fragment that are in another order, through an array in the order of
    /// memory.
    fn copied_reordered(&mut self, moved: &VectorAccess, held: &[i64], mask: &Mask) -> Result<(), Refusal> {
        let through = self.moved_through(&moved.known, moved.writes, moved.vectors.clone());
        let dtype = self.builder.program.registers[moved.array].dtype;
        let places: Vec<usize> = held.iter().map(|register| *register as usize).collect();
        if moved.writes {
            self.out.extend(reordered([through.array, moved.array], dtype, 0, &places));
            self.move_all(&through, mask)?;
        } else {
            self.move_all(&through, mask)?;
            self.out.extend(restored([moved.array, through.array], dtype, &places));
        }
        self.moved.clear();
        Ok(())
    }

    /// Moves the registers of loads to those of stores.
    fn reorder(&mut self, loads: &VectorAccess, stores: &VectorAccess) {
        let place = |step: &usize| loads.vectors.steps.iter().position(|loaded| loaded == step);
        let places: Vec<usize> = stores.vectors.steps.iter().filter_map(place).collect();
        let dtype = self.builder.program.registers[loads.array].dtype;
        self.out.extend(reordered([stores.array, loads.array], dtype, 0, &places));
    }

    /// Lowers a nest that only copies between memory and a fragment whose registers are in the order of memory:
    /// directly from or to the registers. False if the nest is not such a copy.
    fn copied(&mut self, chunk: &Chunk, accesses: &VectorizableAccesses<'_>) -> Result<bool, Refusal> {
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
        let vectors = self.vectors(memory, chunk, &mask);
        let mut registers = Vec::new();
        for step in &vectors.steps {
            let place = ActiveStep { step: *step, mask: mask.clone() };
            match &self.slot_cases(fragment, &place)?[..] {
                [case] if case.conditions.is_empty() && held.is_plain() => registers.push(case.slot.register),
                _ => return Ok(false),
            }
        }
        let width = vectors.width;
        let moved = VectorAccess { known: memory.known.clone(), writes, array: held.array, vectors, words: None };
        if writes
            && let Some(matrices) = self.matrices(&moved.known, &moved.vectors, &mask)
            && let Some(stores) = self.matrix_stores(&matrices, &moved, &registers)
        {
            self.guarded(&mask, &chunk.mask, stores);
            return Ok(true);
        }
        let adjacent =
            |group: &[i64]| group[0] % group.len() as i64 == 0 && group.windows(2).all(|pair| pair[1] == pair[0] + 1);
        if !registers.chunks(width).all(adjacent) {
            let body = self.aside(|this| {
                this.loads_in_vectors(accesses, Some(from), chunk, &mask)?;
                this.copied_reordered(&moved, &registers, &mask)
            })?;
            self.guarded(&mask, &chunk.mask, body);
            return Ok(true);
        }
        let body = self.aside(|this| {
            this.loads_in_vectors(accesses, Some(from), chunk, &mask)?;
            let mut vectors = moved.vectors.steps.chunks(width).zip(registers.chunks(width));
            vectors.try_for_each(|(vector, group)| {
                let part = regs(moved.array, group[0], width as i64);
                this.move_vector(&moved, part, vector[0], &mask)
            })
        })?;
        self.guarded(&mask, &chunk.mask, body);
        self.moved.clear();
        Ok(true)
    }
}
