//! The meaning of a kernel, evaluated from its source: one CTA after the other, ops in program order on logical
//! elements, and iterations without an order. Copies on several threads, steps, vectors and barriers do not occur here.
//!
//! A program has no meaning if an iteration accesses what another one writes, or if it reads memory that was never
//! written. Reads out of bounds of a global tensor give zero, writes there are dropped, and elements of a fragment that
//! were never written are zero.

mod machine;
mod marks;
mod rings;
mod tuples;
mod values;

use std::collections::BTreeMap;

use tilewright::expr::{Expr, Var};
use tilewright::ir::tile::{
    Atomic, AtomicChange, Buffer, Claim, ElementOp, ElementStmt, Kernel, Op, OpKind, Parallel, ReduceKind, Space, Stmt,
    Tile, Value,
};
use tilewright::ir::{Counter, Dim, Handle};
use tilewright::layout::DType;
use tilewright::layout::axis::Scope;

pub use machine::{Bytes, Meaningless, Rules};

use super::numbers;
use machine::{Machine, Number, Outcome, Running, Touch, unknown};
use values::converted;

/// Runs a kernel whose parameters hold these bytes; what they hold in the end.
pub fn evaluate(kernel: &Kernel, parameters: Bytes, rules: Rules) -> Result<Bytes, Meaningless> {
    let sizes = kernel.sizes.iter().map(|size| (size.var.clone(), size_at_launch(&size.var))).collect();
    evaluate_for(kernel, parameters, rules, sizes)
}

/// Whether a kernel has a meaning for every value of its sizes.
pub fn has_meaning(kernel: &Kernel, parameters: &Bytes, rules: Rules) -> bool {
    let all = kernel.sizes.iter().fold(vec![Vec::new()], |points: Vec<Vec<(Var, i64)>>, size| {
        let (range, multiple) = (size.var.range(), size.var.multiple());
        let values = (range.lo..=range.hi).filter(move |value| value % multiple == 0);
        let with = |point: Vec<(Var, i64)>| {
            values.clone().map(move |value| [&point[..], &[(size.var.clone(), value)]].concat())
        };
        points.into_iter().flat_map(with).collect()
    });
    all.into_iter().all(|sizes| evaluate_for(kernel, parameters.clone(), rules, sizes).is_ok())
}

fn evaluate_for(
    kernel: &Kernel,
    parameters: Bytes,
    rules: Rules,
    sizes: Vec<(Var, i64)>,
) -> Result<Bytes, Meaningless> {
    let (env, names, ctas) = (Vec::new(), Vec::new(), BTreeMap::new());
    let (nans, published, places) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut machine = Machine {
        kernel,
        sizes,
        storages: parameters,
        env,
        names,
        marks: None,
        nans,
        published,
        places,
        ctas,
        cta: 0,
        rules,
    };
    let ctas = |dimension: usize| kernel.grid[dimension].as_const().unwrap_or(1);
    for z in 0..ctas(2) {
        for y in 0..ctas(1) {
            for x in 0..ctas(0) {
                machine.cta += 1;
                machine.begin_cta([x, y, z]);
                machine.body(&kernel.body)?;
            }
        }
    }
    machine.storages.retain(|handle, _| matches!(kernel.buffers[*handle].space, Space::Global(_)));
    Ok(machine.storages)
}

/// The value that a size has at the launch that is checked: one in the middle of those allowed.
pub fn size_at_launch(size: &Var) -> i64 {
    let (range, multiple) = (size.range(), size.multiple());
    ((range.lo + range.hi) / 2 / multiple * multiple).max(multiple)
}

impl<'a> Machine<'a> {
    fn begin_cta(&mut self, at: [i64; 3]) {
        let is_global = |handle: Handle<Buffer>| matches!(self.kernel.buffers[handle].space, Space::Global(_));
        self.published.clear();
        self.places.clear();
        self.nans.retain(|(handle, _), _| is_global(*handle));
        self.env = Dim::ALL.into_iter().zip(at).map(|(dimension, at)| (self.kernel.block(dimension), at)).collect();
        self.env.extend(self.sizes.iter().cloned());
        for (handle, buffer) in self.kernel.buffers.iter().filter(|(_, buffer)| buffer.view_of.is_none()) {
            let bytes = buffer.dtype.bytes() as usize;
            match buffer.space {
                Space::Global(_) | Space::Tensor => {}
                Space::Shared => {
                    self.storages.insert(handle, vec![None; buffer.span_elements() as usize * bytes]);
                }
                Space::Fragment => {
                    let elements = buffer.shape.iter().product::<i64>() as usize;
                    self.storages.insert(handle, vec![Some(0); elements * bytes]);
                }
            }
        }
    }

    fn body(&mut self, body: &'a [Stmt]) -> Outcome<()> {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Outcome<()> {
        match stmt {
            Stmt::Op(op) => self.op(&self.kernel.ops[*op]),
            Stmt::Loop(inner) => {
                for value in self.counted(&inner.counter)? {
                    self.env.push((inner.counter.var.clone(), value));
                    self.body(&inner.body)?;
                    self.env.pop();
                }
                Ok(())
            }
            Stmt::Parallel(parallel) => self.parallel(&self.kernel.parallels[*parallel]),
            Stmt::EachThread(body) => self.each_thread(body),
            Stmt::Begin(hold) => self.begin_hold(*hold),
            Stmt::End(hold) => {
                self.end_hold(*hold);
                Ok(())
            }
            Stmt::If(branch) => {
                let (first, rest) = (self.of_thread(0, &branch.cond)?, 1..self.kernel.threads);
                for thread in rest {
                    let other = self.of_thread(thread, &branch.cond)?;
                    if other != first && self.rules.divergence {
                        return Err(Meaningless::Divergent("a condition that contains ops".to_string()));
                    }
                }
                self.body(if first { &branch.then } else { &branch.otherwise })
            }
        }
    }

    fn of_thread(&mut self, thread: i64, cond: &Value) -> Outcome<bool> {
        let depth = self.env.len();
        self.enter_thread(thread);
        let holds = self.holds(cond);
        self.env.truncate(depth);
        holds
    }

    fn enter_thread(&mut self, thread: i64) {
        self.env.push((self.kernel.lane(), thread % 32));
        self.env.push((self.kernel.warp(), thread / 32));
        self.env.push((self.kernel.tid(), thread));
    }

    fn parallel(&mut self, parallel: &'a Parallel) -> Outcome<()> {
        let extents = parallel.extents();
        self.marks = Some(Running { iteration: 0, by_threads: false, bytes: BTreeMap::new() });
        for iteration in 0..extents.iter().product::<i64>() {
            let depth = self.env.len();
            let mut rest = iteration;
            for (var, extent) in parallel.vars.iter().zip(&extents).rev() {
                self.env.push((var.clone(), rest % extent));
                rest /= extent;
            }
            self.start(iteration);
            self.elements(&parallel.body)?;
            self.env.truncate(depth);
        }
        self.marks = None;
        Ok(())
    }

    fn start(&mut self, iteration: i64) {
        if let Some(marks) = &mut self.marks {
            marks.iteration = iteration;
        }
    }

    /// Every thread starts with the same fragments, and all must end with equal ones.
    fn each_thread(&mut self, body: &'a [ElementStmt]) -> Outcome<()> {
        self.marks = Some(Running { iteration: 0, by_threads: true, bytes: BTreeMap::new() });
        let (before, nans) = (self.fragments(), self.nans.clone());
        let mut after: Option<Bytes> = None;
        for thread in 0..self.kernel.threads {
            self.storages.extend(before.clone());
            self.nans.clone_from(&nans);
            let depth = self.env.len();
            self.enter_thread(thread);
            self.start(thread);
            self.elements(body)?;
            self.env.truncate(depth);
            let left = self.fragments();
            if after.as_ref().is_some_and(|known| *known != left) && self.rules.divergence {
                return Err(Meaningless::Divergent("copies of a fragment".to_string()));
            }
            after = Some(left);
        }
        self.marks = None;
        Ok(())
    }

    fn fragments(&self) -> Bytes {
        let is_fragment = |handle: &Handle<Buffer>| self.kernel.buffers[*handle].space == Space::Fragment;
        let fragments = self.storages.iter().filter(|(handle, _)| is_fragment(handle));
        fragments.map(|(handle, bytes)| (*handle, bytes.clone())).collect()
    }

    fn elements(&mut self, body: &'a [ElementStmt]) -> Outcome<()> {
        let names = self.names.len();
        for element in body {
            self.element(element)?;
        }
        self.names.truncate(names);
        Ok(())
    }

    fn element(&mut self, element: &'a ElementStmt) -> Outcome<()> {
        match element {
            ElementStmt::Let { name, value, .. } => {
                let value = self.value(value, None)?;
                self.names.push((name.clone(), value));
                Ok(())
            }
            ElementStmt::Store { to, value, claim } => {
                let dtype = self.kernel.buffers[to.buffer].dtype;
                let value = self.value(value, Some(dtype))?;
                let index = self.index(to)?;
                self.put(to.buffer, &index, converted(value, dtype)?, Touch::Store(*claim))
            }
            ElementStmt::Atomic(atomic) => self.atomic(atomic),
            ElementStmt::If { cond, then, otherwise, .. } => {
                let body = if self.holds(cond)? { then } else { otherwise };
                self.elements(body)
            }
            ElementStmt::For { counter, body, .. } => {
                for value in self.counted(counter)? {
                    self.env.push((counter.var.clone(), value));
                    self.elements(body)?;
                    self.env.pop();
                }
                Ok(())
            }
        }
    }

    /// The values of a loop's variable.
    fn counted(&self, counter: &Counter) -> Outcome<Vec<i64>> {
        let (begin, end) = (self.expr(&counter.begin)?, self.expr(&counter.end)?);
        Ok((begin..end).step_by(counter.step as usize).collect())
    }

    /// The position of an element in its storage; `None` out of bounds of a global tensor.
    fn place(&self, handle: Handle<Buffer>, index: &[i64]) -> Outcome<Option<usize>> {
        let buffer = &self.kernel.buffers[handle];
        let of_launch = |expr: &Expr| {
            let value = |var: &Var| self.sizes.iter().find(|(size, _)| size == var).map(|(_, value)| *value);
            expr.eval(&value).unwrap_or(0)
        };
        let extents: Vec<i64> = match &buffer.dynamic_shape {
            None => buffer.shape.clone(),
            Some(shape) => shape.extents.iter().map(of_launch).collect(),
        };
        if index.iter().zip(&extents).any(|(at, extent)| !(0..*extent).contains(at)) {
            return match buffer.space {
                Space::Global(_) => Ok(None),
                Space::Shared | Space::Fragment | Space::Tensor => {
                    Err(Meaningless::Outside(format!("{}{index:?}", buffer.name)))
                }
            };
        }
        let flat = index.iter().zip(&buffer.shape).fold(0, |flat, (at, extent)| flat * extent + at);
        let position = match (buffer.space, &buffer.layout) {
            (Space::Global(_), _) if buffer.dynamic_shape.is_some() => {
                let strides = buffer.dynamic_shape.iter().flat_map(|shape| &shape.strides).map(of_launch);
                index.iter().zip(strides).map(|(at, stride)| at * stride).sum()
            }
            (Space::Fragment | Space::Tensor, _) | (_, None) => flat,
            (Space::Global(_) | Space::Shared, Some(layout)) => layout.memory_position(flat),
        };
        Ok(Some(position as usize * buffer.dtype.bytes() as usize))
    }

    fn get(&mut self, handle: Handle<Buffer>, index: &[i64]) -> Outcome<u64> {
        let Some(first) = self.place(handle, index)? else { return Ok(0) };
        let (storage, dtype) = (self.kernel.storage(handle), self.kernel.buffers[handle].dtype);
        let mut bits = 0;
        for at in (first..first + dtype.bytes() as usize).rev() {
            self.touch(storage, at, Touch::Read)?;
            if self.nans.get(&(storage, at)).is_some_and(|written| *written != dtype) {
                return Err(Meaningless::Payload(format!("{}{index:?}", self.kernel.buffers[handle].name)));
            }
            let byte = match self.storages[&storage].get(at) {
                Some(Some(byte)) => *byte,
                _ if self.rules.unwritten => {
                    return Err(Meaningless::Unwritten(format!("{}{index:?}", self.kernel.buffers[handle].name)));
                }
                _ => 0,
            };
            bits = bits << 8 | u64::from(byte);
        }
        Ok(bits)
    }

    fn put(&mut self, handle: Handle<Buffer>, index: &[i64], bits: u64, touch: Touch) -> Outcome<()> {
        let Some(first) = self.place(handle, index)? else { return Ok(()) };
        let (storage, dtype) = (self.kernel.storage(handle), self.kernel.buffers[handle].dtype);
        let is_nan = numbers::is_nan(dtype, bits);
        for (part, at) in (first..first + dtype.bytes() as usize).enumerate() {
            if is_nan {
                self.nans.insert((storage, at), dtype);
            } else {
                self.nans.remove(&(storage, at));
            }
            let is_second = self.touch(storage, at, touch)?;
            let held = self.storages.get(&storage).and_then(|held| held.get(at)).copied().flatten();
            if is_second && held != Some((bits >> (8 * part)) as u8) {
                return Err(Meaningless::Chance(format!("{}{index:?}", self.kernel.buffers[handle].name)));
            }
            if let Some(byte) = self.storages.get_mut(&storage).and_then(|held| held.get_mut(at)) {
                *byte = Some((bits >> (8 * part)) as u8);
            }
        }
        Ok(())
    }

    fn atomic(&mut self, atomic: &Atomic) -> Outcome<()> {
        let to = &atomic.to;
        let dtype = self.kernel.buffers[to.buffer].dtype;
        let mut number = |value: &Value| converted(self.value(value, Some(dtype))?, dtype);
        let expected = atomic.expected.as_ref().map(&mut number).transpose()?;
        let value = number(&atomic.value)?;
        let index = self.index(to)?;
        let is_ordered = atomic.old.is_some() || !matches!(atomic.change, AtomicChange::Combine(_));
        let touch = Touch::Atomic(atomic.change, is_ordered);
        let old = self.change(touch, to.buffer, &index, &|held| match atomic.change {
            AtomicChange::Combine(op) => numbers::apply(op.element_op(), dtype, &[held, value]),
            AtomicChange::Exchange => Ok(value),
            AtomicChange::CompareExchange => Ok(if expected == Some(held) { value } else { held }),
        })?;
        self.names.extend(atomic.old.iter().map(|named| (named.name.clone(), Number::Of(dtype, old))));
        Ok(())
    }

    /// Changes an element atomically, and returns the old one.
    fn change(
        &mut self,
        touch: Touch,
        handle: Handle<Buffer>,
        index: &[i64],
        change: &dyn Fn(u64) -> Result<u64, String>,
    ) -> Outcome<u64> {
        let Some(first) = self.place(handle, index)? else { return Ok(0) };
        let dtype = self.kernel.buffers[handle].dtype;
        let storage = self.kernel.storage(handle);
        for at in first..first + dtype.bytes() as usize {
            self.touch(storage, at, touch)?;
        }
        let marks = self.marks.take();
        let held = self.get(handle, index)?;
        let result = change(held).map_err(Meaningless::Unknown)?;
        self.put(handle, index, result, touch)?;
        self.marks = marks;
        Ok(held)
    }

    /// The elements of a tile, in order.
    fn tile(&self, tile: &Tile) -> Outcome<Vec<Vec<i64>>> {
        let starts = tile.starts.iter().map(|start| self.expr(start)).collect::<Outcome<Vec<i64>>>()?;
        let mut all = vec![Vec::new()];
        for (start, extent) in starts.iter().zip(&tile.extents) {
            let longer = all.iter().flat_map(|index: &Vec<i64>| {
                (0..*extent).map(|at| index.iter().copied().chain([start + at]).collect::<Vec<i64>>())
            });
            all = longer.collect();
        }
        Ok(all)
    }

    /// Executes a warp op: each warp that takes part executes it on its own tile.
    fn op(&mut self, op: &'a Op) -> Outcome<()> {
        let warps = match (op.scope, op.warp) {
            (Scope::Warp, None) => 0..self.kernel.warps(),
            (Scope::Warp, Some(warp)) => warp..warp + 1,
            _ => return self.once(op),
        };
        for warp in warps {
            self.env.push((self.kernel.warp(), warp));
            self.once(op)?;
            self.env.pop();
        }
        Ok(())
    }

    fn once(&mut self, op: &'a Op) -> Outcome<()> {
        let to = self.tile(&op.operands[0])?;
        let dst = op.operands[0].buffer;
        let dtype = self.kernel.buffers[dst].dtype;
        match op.kind {
            OpKind::Fill(value) => to
                .iter()
                .try_for_each(|index| self.put(dst, index, numbers::constant(dtype, value), Touch::Store(Claim::None))),
            OpKind::Copy | OpKind::CopyAsync | OpKind::PermuteLayout | OpKind::ConvertLayout => {
                let values = self.all(&op.operands[1])?;
                to.iter()
                    .zip(values)
                    .try_for_each(|(index, bits)| self.put(dst, index, bits, Touch::Store(Claim::None)))
            }
            OpKind::Atomic(by) => {
                let values = self.all(&op.operands[1])?;
                to.iter().zip(values).try_for_each(|(index, bits)| {
                    let touch = Touch::Atomic(AtomicChange::Combine(by), false);
                    let combined = |held| numbers::apply(by.element_op(), dtype, &[held, bits]);
                    self.change(touch, dst, index, &combined).map(drop)
                })
            }
            OpKind::Reduce(reduce) => {
                let src = &op.operands[1];
                let values = self.all(src)?;
                let mut rows: BTreeMap<Vec<i64>, Vec<u64>> = BTreeMap::new();
                for (index, value) in self.tile(src)?.into_iter().zip(values) {
                    let kept = index.into_iter().enumerate().filter(|(at, _)| !reduce.dimensions.contains(*at));
                    rows.entry(kept.map(|(_, at)| at).collect()).or_default().push(value);
                }
                for (row, index) in rows.values().zip(&to) {
                    let mut result = if reduce.clear { None } else { Some(self.get(dst, index)?) };
                    for value in row {
                        result = Some(joined(reduce.kind, dtype, result, *value)?);
                    }
                    self.put(dst, index, result.unwrap_or(0), Touch::Store(Claim::None))?;
                }
                Ok(())
            }
            OpKind::ReduceBy(by) => self.reduce_by(op, by),
            OpKind::Scan(scan) => {
                let src = &op.operands[1];
                let values = self.all(src)?;
                let mut rows: BTreeMap<Vec<i64>, Vec<(&Vec<i64>, u64)>> = BTreeMap::new();
                for (index, (to, value)) in self.tile(src)?.into_iter().zip(to.iter().zip(values)) {
                    let others = index.iter().enumerate().filter(|(at, _)| *at != scan.order.dimension);
                    rows.entry(others.map(|(_, at)| *at).collect()).or_default().push((to, value));
                }
                let start = scan.kind.start(dtype).map_or(0, |start| numbers::constant(dtype, start));
                let carries = self.carries(op)?;
                for (at, mut row) in rows.into_values().enumerate() {
                    if scan.order.is_reverse {
                        row.reverse();
                    }
                    let mut result = carries.first().map(|carry| carry[at].1);
                    for (to, value) in row {
                        let before = result.unwrap_or(start);
                        let next = joined(scan.kind, dtype, result, value)?;
                        result = Some(next);
                        let kept = if scan.order.is_exclusive { before } else { next };
                        self.put(dst, to, kept, Touch::Store(Claim::None))?;
                    }
                    if let Some((place, _)) = carries.first().map(|carry| &carry[at]) {
                        self.put(op.carries()[0].buffer, place, result.unwrap_or(start), Touch::Store(Claim::None))?;
                    }
                }
                Ok(())
            }
            OpKind::ScanBy(by) => self.scan_by(op, by),
            OpKind::Gemm(_) | OpKind::GemmAsync(_) => unknown(op.kind.info().name),
        }
    }

    /// The carries of a scan, for each value of the tuples.
    fn carries(&mut self, op: &Op) -> Outcome<Vec<Carries>> {
        let of = |tile: &Tile| Ok(self.tile(tile)?.into_iter().zip(self.all(tile)?).collect());
        op.carries().iter().map(of).collect()
    }

    fn all(&mut self, tile: &Tile) -> Outcome<Vec<u64>> {
        self.tile(tile)?.iter().map(|index| self.get(tile.buffer, index)).collect()
    }
}

/// By row, where its carry is and what it is.
type Carries = Vec<(Vec<i64>, u64)>;

fn joined(kind: ReduceKind, dtype: DType, result: Option<u64>, value: u64) -> Outcome<u64> {
    let apply = |op, operands: &[u64]| numbers::apply(op, dtype, operands).map_err(Meaningless::Unknown);
    let value = match kind {
        ReduceKind::AbsMax | ReduceKind::AbsSum => apply(ElementOp::Abs, &[value])?,
        ReduceKind::SquareSum => apply(ElementOp::Mul, &[value, value])?,
        ReduceKind::Sum | ReduceKind::Max | ReduceKind::Min | ReduceKind::Product => value,
        ReduceKind::And | ReduceKind::Or | ReduceKind::Xor => value,
    };
    let Some(result) = result else { return Ok(value) };
    match kind {
        ReduceKind::Sum | ReduceKind::AbsSum | ReduceKind::SquareSum => apply(ElementOp::Add, &[result, value]),
        ReduceKind::Max | ReduceKind::AbsMax => apply(ElementOp::Max, &[result, value]),
        ReduceKind::Min => apply(ElementOp::Min, &[result, value]),
        ReduceKind::Product => apply(ElementOp::Mul, &[result, value]),
        ReduceKind::And => apply(ElementOp::And, &[result, value]),
        ReduceKind::Or => apply(ElementOp::Or, &[result, value]),
        ReduceKind::Xor => apply(ElementOp::Xor, &[result, value]),
    }
}
