//! Random kernels, built with the user-facing API.

mod boxes;
mod buffers;
mod folds;
mod layouts;
mod maker;
mod streams;
mod tiles;
mod values;

use tilewright::dsl::Bounds;
use tilewright::ir::Scalar;
use tilewright::prelude::*;

use crate::rng::Rng;
use boxes::random_boxes;
use layouts::{Open, fragment_layout, memory_layout, narrower, own_of_warps, staged_layout};
use maker::{DTYPES, Held, Maker, Scope, random_roles};
use streams::random_stream;
use values::CastTo;

/// Threads of a CTA.
const THREADS: [i64; 10] = [1, 3, 8, 32, 32, 33, 40, 64, 96, 128];
/// Extents of a dimension.
const EXTENTS: [i64; 14] = [1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32, 33, 64];

/// A random kernel.
pub fn random_kernel(rng: &mut Rng) -> Kernel {
    match rng.below(100) {
        0..10 => return random_stream(rng),
        10..16 => return random_boxes(rng),
        _ => {}
    }
    kernel("random", |k| {
        let threads = *rng.pick(&THREADS);
        k.threads(threads);
        if rng.percent(50) {
            k.share_storage();
        }
        let ctas = if rng.percent(8) { rng.within(2..=3) } else { 1 };
        let [bx] = k.grid([ctas]);
        if rng.percent(15) {
            k.no_contraction();
        }
        let size = rng.percent(40).then(|| k.size("n").multiple_of(*rng.pick(&[1, 1, 2, 4])).max(rng.within(4..=12)));
        let mut maker = Maker::declare(k, rng, threads, bx);
        maker.size = size;
        for _ in 0..maker.rng.within(1..=5) {
            maker.step(k, 2);
        }
        maker.finish(k);
    })
}

impl<'r> Maker<'r> {
    fn declare(k: &mut KernelBuilder, rng: &'r mut Rng, threads: i64, bx: Expr) -> Maker<'r> {
        let dtype = *rng.pick(&DTYPES);
        let shape = |rng: &mut Rng| {
            let rows = if rng.percent(60) { 1 } else { *rng.pick(&EXTENTS[..9]) };
            [rows, *if rng.percent(30) { rng.pick(&[16, 32, 64]) } else { rng.pick(&EXTENTS) }]
        };
        let main = shape(rng);
        let storages = std::cell::Cell::new(0);
        let viewed = |buffer: Buffer, dtype: DType, extents: [i64; 2]| {
            let (is_flat, storage) = (extents[0] == 1, storages.get());
            Held { buffer, dtype, extents, is_flat, stages: 0, storage, role: None }
        };
        let held = |buffer: Buffer, dtype: DType, extents: [i64; 2]| {
            storages.set(storages.get() + 1);
            viewed(buffer, dtype, extents)
        };
        let listed = |extents: [i64; 2]| if extents[0] == 1 { vec![extents[1]] } else { extents.to_vec() };
        let indices = held(k.input("at", I32, [64]), I32, [1, 64]);
        let mut inputs = Vec::new();
        for number in 0..rng.within(1..=2) {
            let extents = if rng.percent(70) { main } else { shape(rng) };
            let dtype = if rng.percent(80) { dtype } else { *rng.pick(&DTYPES) };
            let input = k.input(&format!("x{number}"), dtype, listed(extents));
            inputs.push(held(randomly_cached(rng, input), dtype, extents));
        }
        let mut outputs = Vec::new();
        for number in 0..rng.within(1..=2) {
            let output = k.output(&format!("y{number}"), dtype, listed(main));
            outputs.push(held(randomly_cached(rng, output), dtype, main));
        }
        if rng.percent(20) {
            // A view of part of an output, which other accesses may overlap.
            let of = outputs[0];
            let count = of.extents[0] * of.extents[1];
            let size = rng.within(1..=count);
            let offset = rng.within(0..=count - size);
            let layout = S([size], [1]) + offset * M;
            outputs.push(Held { storage: of.storage, ..viewed(k.view("part", of.buffer, layout), dtype, [1, size]) });
        }
        let mut shared = Vec::new();
        for number in 0..rng.within(0..=2) {
            let extents = if rng.percent(70) { main } else { shape(rng) };
            let name = format!("s{number}");
            if rng.percent(25) {
                let stages = rng.within(2..=3);
                let shape: Vec<i64> = std::iter::once(stages).chain(listed(extents)).collect();
                let buffer = match staged_layout(rng, stages, listed(extents)) {
                    Some(layout) => k.shared(&name, dtype, layout),
                    None => k.shared(&name, dtype, shape),
                };
                shared.push(Held { stages, ..held(buffer, dtype, extents) });
                continue;
            }
            let layout = memory_layout(rng, listed(extents));
            let buffer = match layout {
                Some(layout) => k.shared(&name, dtype, layout),
                None => k.shared(&name, dtype, listed(extents)),
            };
            shared.push(held(buffer, dtype, extents));
            if rng.percent(20) {
                let (narrow, factor) = narrower(dtype);
                let count = extents[0] * extents[1] * factor;
                let view = k.view_as(&format!("v{number}"), buffer, narrow, vec![count]);
                shared.push(viewed(view, narrow, [1, count]));
            }
        }
        let mut fragments = Vec::new();
        let roles = random_roles(rng, threads);
        for number in 0..rng.within(1..=3) {
            let role = if roles.is_empty() || rng.percent(20) { None } else { Some(rng.below(roles.len())) };
            let threads = role.map_or(threads, |role| roles[role] * 32);
            let first = fragments.len();
            let extents = if rng.percent(80) { main } else { shape(rng) };
            let name = format!("f{number}");
            let layout = if rng.percent(25) { fragment_layout(rng, listed(extents), threads) } else { None };
            let buffer = match layout {
                Some(layout) => k.fragment(&name, dtype, layout),
                None => k.fragment(&name, dtype, Open(listed(extents))),
            };
            fragments.push(held(buffer, dtype, extents));
            if rng.percent(15) {
                let (narrow, factor) = narrower(dtype);
                let count = extents[0] * extents[1] * factor;
                let view = k.view_as(&format!("w{number}"), buffer, narrow, Open(vec![count]));
                fragments.push(viewed(view, narrow, [1, count]));
            }
            fragments[first..].iter_mut().for_each(|held: &mut Held| held.role = role);
        }
        let (mut own, mut rows) = (Vec::new(), Vec::new());
        if threads > 32 && threads % 32 == 0 && rng.percent(30) {
            let extents = [threads / 32, *rng.pick(&EXTENTS)];
            // The same layout for both: no warp op moves elements between lanes.
            let layout = own_of_warps(rng, extents[0], extents[1]);
            for name in ["o0", "o1"] {
                if let Some(layout) = layout.clone() {
                    own.push(Held { is_flat: false, ..held(k.fragment(name, dtype, layout), dtype, extents) });
                }
            }
            let shape = extents.to_vec();
            rows.push(Held { is_flat: false, ..held(k.input("p", dtype, shape.clone()), dtype, extents) });
            rows.push(Held { is_flat: false, ..held(k.output("q", dtype, shape.clone()), dtype, extents) });
            rows.push(Held { is_flat: false, ..held(k.shared("r", dtype, shape), dtype, extents) });
            fragments.extend(own.clone());
        }
        let scope = Scope { vars: vec![(bx, 3)], names: Vec::new() };
        let names = 0;
        let mut maker = Maker {
            rng,
            threads,
            dtype,
            inputs,
            indices,
            fragments,
            shared,
            outputs,
            own,
            rows,
            scope,
            names,
            target: 0,
            size: None,
            roles,
            role: None,
        };
        for held in [maker.fragments.clone(), maker.shared.clone()].concat() {
            match held.role {
                None => maker.start(k, held),
                Some(role) => maker.in_role(k, role, |maker, k| maker.start(k, held)),
            }
        }
        if let [.., shared] = maker.rows[..] {
            maker.start(k, shared);
        }
        maker
    }

    pub(super) fn small(&mut self, dtype: DType) -> Scalar {
        let value = self.rng.within(0..=9);
        if dtype.is_float() { Scalar::Float(value as f64 * 0.5) } else { Scalar::Int(value) }
    }

    pub(super) fn step(&mut self, k: &mut KernelBuilder, depth: usize) {
        if self.role.is_none() && !self.roles.is_empty() && self.rng.percent(60) {
            let (role, steps) = (self.rng.below(self.roles.len()), self.rng.within(1..=2));
            return self.in_role(k, role, |maker, k| (0..steps).for_each(|_| maker.step(k, depth)));
        }
        if self.role.is_none() && self.rng.percent(6) {
            return self.with_own_buffer(k, depth);
        }
        match self.rng.below(if depth > 0 { 14 } else { 11 }) {
            0..=5 => self.nest(k),
            6 | 7 => self.copy(k),
            8 => match self.rng.below(10) {
                0 | 1 => self.scan(k),
                2 => self.scan_by(k),
                3 | 4 => self.reduce_by(k),
                _ => self.reduce(k),
            },
            // Statements of single warps and of all threads stand outside of roles, and so does what conditions use.
            9 | 13 if self.role.is_some() => self.nest(k),
            9 if !self.own.is_empty() => self.by_warps(k),
            9 if self.rng.percent(30) => self.by_one_warp(k),
            9 => self.each_thread(k),
            10 => self.fill(k),
            11 => self.stream(k, depth - 1),
            12 => self.repeat(k, depth - 1),
            _ => self.branch(k, depth - 1),
        }
    }

    fn fill(&mut self, k: &mut KernelBuilder) {
        let held = *self.rng.pick(&[self.held(), self.shared.clone(), self.outputs.clone()].concat());
        let value = self.small(held.dtype);
        let tile = self.tile(held);
        k.fill(tile, value);
    }

    /// All of a buffer, or one of its stages.
    fn tile(&mut self, held: Held) -> Region {
        match (held.stages, held.is_flat) {
            (0, _) => held.buffer.into(),
            (_, true) => held.buffer.sub((self.stage(held), ..)),
            (_, false) => held.buffer.sub((self.stage(held), .., ..)),
        }
    }

    /// The index of a stage, usually from the variable of an enclosing loop.
    fn stage(&mut self, held: Held) -> Expr {
        let (var, _) = *self.rng.pick(&self.scope.vars.clone());
        if self.rng.percent(70) { var % held.stages } else { Expr::from(self.rng.within(0..=held.stages - 1)) }
    }

    fn copy(&mut self, k: &mut KernelBuilder) {
        let to = *self.rng.pick(&[self.held(), self.shared.clone(), self.outputs.clone()].concat());
        let all = [self.held(), self.shared.clone(), self.inputs.clone()].concat();
        let alike: Vec<Held> = all
            .into_iter()
            .filter(|from| from.dtype == to.dtype && from.extents == to.extents)
            .filter(|from| from.storage != to.storage)
            .collect();
        if !alike.is_empty() {
            let from = *self.rng.pick(&alike);
            let (to, from) = (self.tile(to), self.tile(from));
            if self.rng.percent(50) {
                k.copy_async(to, from)
            } else {
                k.copy(to, from)
            };
        }
    }

    /// Each warp copies or fills its own row.
    fn by_warps(&mut self, k: &mut KernelBuilder) {
        let warp = k.warp_id();
        let row = |held: Held| held.buffer.sub((warp, ..));
        let [input, output, shared] = self.rows[..] else { return };
        let all = [&self.own[..], &[output, shared]].concat();
        let to = *self.rng.pick(&all);
        if self.rng.percent(20) {
            let value = self.small(to.dtype);
            k.warp().fill(row(to), value);
            return;
        }
        let sources: Vec<Held> = [&self.own[..], &[input, shared]].concat();
        let from = *self.rng.pick(&sources);
        if from.storage != to.storage {
            k.warp().copy(row(to), row(from));
        }
    }

    /// A single warp executes an op, given by its number.
    fn by_one_warp(&mut self, k: &mut KernelBuilder) {
        let warps = (self.threads + 31) / 32;
        if self.threads % 32 != 0 {
            return self.copy(k);
        }
        let warp = self.rng.within(0..=warps - 1);
        let to = *self.rng.pick(&[self.held(), self.shared.clone(), self.outputs.clone()].concat());
        let value = self.small(to.dtype);
        let from = self.inputs.iter().copied().find(|x| x.dtype == to.dtype && x.extents == to.extents);
        let to = self.tile(to);
        match from {
            Some(from) => k.warp_at(warp).copy(to, from.buffer),
            None => k.warp_at(warp).fill(to, value),
        };
    }

    fn repeat(&mut self, k: &mut KernelBuilder, depth: usize) {
        let extent = *self.rng.pick(&[0, 1, 2, 2, 3, 4]);
        let first = if self.rng.percent(20) { self.rng.within(-2..=3) } else { 0 };
        let name = self.name("t");
        let is_unrolled = self.rng.percent(25);
        let counted = self.counted(first, extent, is_unrolled);
        let steps = self.rng.within(1..=2);
        let body = |k: &mut KernelBuilder, t: Expr| {
            self.scope.vars.push((t, extent));
            let known = self.fragments.len();
            for _ in 0..steps {
                self.step(k, depth);
            }
            self.fragments.truncate(known);
            self.scope.vars.pop();
        };
        if is_unrolled { k.unroll(&name, counted, body) } else { k.serial(&name, counted, body) }
    }

    /// A pipelined loop that fills buffers of its own from inputs, and uses them.
    fn stream(&mut self, k: &mut KernelBuilder, depth: usize) {
        let extent = *self.rng.pick(&[0, 1, 2, 3, 3, 5, 7]);
        let (name, counted) = (self.name("p"), self.counted(0, extent, false));
        let stages = *self.rng.pick(&[1, 2, 2, 3, 3, 4, 6]);
        let count = self.rng.within(1..=2);
        let filled: Vec<(Held, Held)> = (0..count).map(|_| self.streamed(k)).collect();
        k.pipelined(&name, counted, stages, |k, t| {
            self.scope.vars.push((t, extent));
            for (to, from) in &filled {
                self.load_ahead(k, *to, *from, t);
            }
            let known = (self.fragments.len(), self.shared.len());
            self.shared.extend(filled.iter().map(|(to, _)| *to));
            for _ in 0..self.rng.within(1..=2) {
                self.step(k, depth);
            }
            self.fragments.truncate(known.0);
            self.shared.truncate(known.1);
            self.scope.vars.pop();
        });
    }

    /// A new buffer for tiles of an input.
    fn streamed(&mut self, k: &mut KernelBuilder) -> (Held, Held) {
        let from = *self.rng.pick(&self.inputs.clone());
        let name = self.name("tile");
        // Rows of whole 16 bytes are what the copy engine takes.
        let columns = *if self.rng.percent(60) { self.rng.pick(&[8, 16, 32, 64]) } else { self.rng.pick(&EXTENTS) };
        let rows = if from.is_flat { 1 } else { *self.rng.pick(&EXTENTS[..8]) };
        let shape = if from.is_flat { vec![columns] } else { vec![rows, columns] };
        let buffer = match memory_layout(self.rng, shape.clone()) {
            Some(layout) => k.shared(&name, from.dtype, layout),
            None => k.shared(&name, from.dtype, shape),
        };
        (Held { buffer, extents: [rows, columns], stages: 0, storage: 1000 + self.names, role: None, ..from }, from)
    }

    /// Fills a buffer with a tile of an input, or with elements of which some are beyond its edge.
    fn load_ahead(&mut self, k: &mut KernelBuilder, to: Held, from: Held, t: Expr) {
        let [rows, columns] = to.extents;
        let is_inside =
            (0..2).all(|dimension| to.extents[dimension] <= from.extents[dimension]) && self.rng.percent(70);
        let mut start = |dimension: usize| {
            let extent = to.extents[dimension];
            let start = t * *self.rng.pick(&[0, 1, extent, extent]) + self.rng.within(0..=2);
            if is_inside { start % (from.extents[dimension] - extent + 1) } else { start }
        };
        let (top, left) = (start(0), start(1));
        match (from.is_flat, is_inside && self.rng.percent(80)) {
            (true, true) => {
                k.copy(to.buffer, from.buffer.sub((at(left, columns),)));
            }
            (false, true) => {
                k.copy(to.buffer, from.buffer.sub((at(top, rows), at(left, columns))));
            }
            (true, false) => {
                k.parallel([columns], |k, [j]| k.store(to.buffer, (&j,), from.buffer.at((left + j,))));
            }
            (false, false) => {
                k.parallel([rows, columns], |k, [i, j]| {
                    k.store(to.buffer, (&i, &j), from.buffer.at((top + i, left + j)));
                });
            }
        }
    }

    /// What a loop counts through: numbers, or up to an expression of the size and of variables around, with a step.
    fn counted(&mut self, first: i64, extent: i64, is_constant: bool) -> Bounds {
        let step = *self.rng.pick(&[1, 1, 1, 2, 3]);
        if is_constant || self.rng.percent(60) {
            return (first..first + extent).step(step);
        }
        let (var, _) = *self.rng.pick(&self.scope.vars.clone());
        let outer = var + self.rng.within(-1..=2);
        let end = match self.size {
            Some(size) => match self.rng.below(4) {
                0 => Expr::from(size),
                1 => size.ceil_div(self.rng.within(2..=5)),
                2 => Expr::from(size) - outer,
                _ => outer.at_most(size),
            },
            None => outer.at_most(extent + 1),
        };
        match self.rng.below(3) {
            0 => (var, end).step(step),
            _ => (first, end).step(step),
        }
    }

    fn branch(&mut self, k: &mut KernelBuilder, depth: usize) {
        let warp = k.warp_id();
        let cond = match self.rng.below(4) {
            0 => self.inputs[0].at_zero().gt(self.small(self.inputs[0].dtype)),
            1 if self.rng.percent(30) => Value::from(warp).eq(0),
            _ => self.comparison(),
        };
        let known = self.fragments.len();
        let has_otherwise = self.rng.percent(30);
        let this = std::cell::RefCell::new(self);
        k.if_else(
            cond,
            |k| this.borrow_mut().step(k, depth),
            |k| {
                if has_otherwise {
                    this.borrow_mut().step(k, depth);
                }
            },
        );
        this.into_inner().fragments.truncate(known);
    }

    fn each_thread(&mut self, k: &mut KernelBuilder) {
        let warp = k.warp_id();
        let targets = [self.held(), self.shared.clone(), self.outputs.clone()].concat();
        let to = *self.rng.pick(&targets);
        let uses_warp = self.rng.percent(40);
        k.each_thread(|k| {
            let scope = self.scope.clone();
            if uses_warp {
                self.scope.vars.push((warp, (self.threads + 31) / 32));
            }
            self.statement(k, to, 1);
            self.scope = scope;
        });
    }

    pub(super) fn name(&mut self, base: &str) -> String {
        self.names += 1;
        format!("{base}{}", self.names)
    }

    fn nest(&mut self, k: &mut KernelBuilder) {
        let targets = [self.held(), self.shared.clone(), self.outputs.clone()].concat();
        let to = *self.rng.pick(&targets);
        let scope = self.scope.clone();
        let extents = to.extents;
        let shrink = if self.rng.percent(15) { self.rng.within(0..=extents[1] - 1) } else { 0 };
        let statements = *self.rng.pick(&[1, 1, 1, 2, 3]);
        let vector = self.rng.percent(15).then(|| *self.rng.pick(&[1i64, 2, 4, 8]));
        let mut body = |k: &mut Elements, vars: &[Expr]| {
            let spans = [extents[0], extents[1] - shrink];
            let first = if vars.len() == 1 { 1 } else { 0 };
            self.scope.vars.extend(vars.iter().cloned().zip(spans[first..].iter().copied()));
            for number in 0..statements {
                let to = if number == 0 || self.rng.percent(60) { to } else { *self.rng.pick(&targets) };
                self.statement(k, to, 2);
            }
        };
        let parallel = if to.is_flat {
            k.parallel([extents[1] - shrink], |k, [i]| body(k, &[i]))
        } else {
            k.parallel([extents[0], extents[1] - shrink], |k, [i, j]| body(k, &[i, j]))
        };
        if let Some(vector) = vector {
            parallel.vector(vector);
        }
        self.scope = scope;
    }

    fn statement(&mut self, k: &mut Elements, to: Held, depth: usize) {
        match self.rng.below(if depth > 0 { 12 } else { 8 }) {
            8 => {
                let value = self.value(self.dtype, 2);
                let name = self.name("n");
                let named = k.named(&name, value.cast_to(self.dtype));
                self.scope.names.push((named, self.dtype));
                self.statement(k, to, depth - 1);
            }
            9 => {
                let cond = self.condition();
                let (names, has_otherwise) = (self.scope.names.len(), self.rng.percent(40));
                let this = std::cell::RefCell::new(&mut *self);
                k.if_else(
                    cond,
                    |k| {
                        let mut this = this.borrow_mut();
                        this.statement(k, to, depth - 1);
                        this.scope.names.truncate(names);
                    },
                    |k| {
                        if has_otherwise {
                            let mut this = this.borrow_mut();
                            this.statement(k, to, depth - 1);
                            this.scope.names.truncate(names);
                        }
                    },
                );
            }
            10 => {
                let extent = *self.rng.pick(&[0, 1, 2, 3, 9]);
                let name = self.name("u");
                let counted = self.counted(0, extent, false);
                k.serial(&name, counted, |k, u| {
                    let scope = self.scope.clone();
                    self.scope.vars.push((u, extent));
                    self.statement(k, to, depth - 1);
                    self.scope = scope;
                });
            }
            11 => self.atomic(k, to),
            _ => self.store(k, to),
        }
    }

    fn atomic(&mut self, k: &mut Elements, to: Held) {
        let is_legal = matches!(to.dtype, I32 | U32) && !self.fragments.iter().any(|f| f.buffer == to.buffer);
        if !is_legal {
            return self.store(k, to);
        }
        let index = self.index(to, 50);
        let value = self.value(to.dtype, 1);
        let operation = match self.rng.within(0..=13) {
            0 => k.atomic_min(to.buffer, index, value),
            1 => k.atomic_max(to.buffer, index, value),
            2 => k.atomic_and(to.buffer, index, value),
            3 => k.atomic_or(to.buffer, index, value),
            4 => k.atomic_xor(to.buffer, index, value),
            5 => k.atomic_exchange(to.buffer, index, value),
            6 => k.atomic_compare_exchange(to.buffer, index, self.rng.within(0..=2), value),
            _ => k.atomic_add(to.buffer, index, value),
        };
        let operation = match self.rng.within(0..=9) {
            0 => operation.order(*self.rng.pick(&MemoryOrder::ALL)),
            _ => operation,
        };
        if self.rng.within(0..=2) == 0 {
            let name = self.name("old");
            self.scope.names.push((operation.old(&name), to.dtype));
            let targets = [self.held(), self.shared.clone(), self.outputs.clone()].concat();
            let other = *self.rng.pick(&targets);
            self.store(k, other);
        }
    }

    fn store(&mut self, k: &mut Elements, to: Held) {
        self.target = to.storage;
        let index = self.index(to, 93);
        let value = self.value(to.dtype, 3);
        let store = k.store(to.buffer, index, value);
        match self.rng.below(20) {
            0 => store.any_wins(),
            1 => store.unique(),
            _ => {}
        }
    }
}

/// A tensor, the accesses to which are sometimes cached in another way.
fn randomly_cached(rng: &mut Rng, tensor: Buffer) -> Buffer {
    match rng.within(0..=19) {
        0 => tensor.streamed(),
        1 => tensor.in_l2(),
        _ => tensor,
    }
}
