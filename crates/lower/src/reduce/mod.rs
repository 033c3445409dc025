//! `reduce`: every thread combines its part of a row, then shuffles combine parts within warps, and shared memory
//! combines them across warps.

mod neutral;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tilewright_diag::{Diagnostic, counted};
use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{Call, Inst, Memory, MemorySpace, RegArray, Stmt, Value};
use tilewright_ir::tile::{ElementOp, Kernel, Narrowing, Op, OpKind, Reduce, ReduceKind, Space, tile_title};
use tilewright_layout::DType;

use crate::builder::{Builder, regs};
use crate::fragment_registers::{FragmentRegisters, Slot};
use crate::operand::other_operands;
use crate::refusal::Refusal;
use crate::threads::{by_threads, number};
use crate::variant::{AcrossLoop, Schedule, Variant, VariantList};
use neutral::{combine, neutral};
use rows::{Order, Rows, ShuffleMask};

/// What the variants of `reduce` decide on.
pub(crate) struct Context {
    /// What to reduce: the kind, the dimension, and whether the old result is cleared.
    attributes: Reduce,
    /// The fragment that is reduced.
    source: Rc<FragmentRegisters>,
    /// The fragment of the results.
    result: Rc<FragmentRegisters>,
    /// By thread, the rows whose result it must hold, and the slot of each.
    owned: Vec<BTreeMap<usize, Slot>>,
    /// The parts of all rows.
    rows: Rc<Rows>,
    /// The same, with every element counted on only one of its threads.
    single: Rc<Rows>,
    /// The index of a thread in its CTA.
    thread: Expr,
    /// Type in which parts are combined.
    dtype: DType,
    /// Types of the result's and of the source's elements.
    dtypes: [DType; 2],
    op: Op,
}

/// How the parts of rows are combined.
pub(crate) struct ReduceSchedule {
    /// The parts that are combined.
    rows: Rc<Rows>,
    /// The shuffles within warps.
    exchange: ShuffleMask,
    /// By row, the threads that put their part in shared memory; `None` if the shuffles complete the rows.
    leaders: Option<Vec<Vec<usize>>>,
}

pub(crate) static VARIANTS: VariantList<Context, ReduceSchedule> = VariantList {
    context: Context::new,
    floor: |_| None,
    variants: &[
        Variant { name: "shuffles", accept: |c| Ok(accept_shuffles(c)?) },
        Variant { name: "across_warps", accept: |c| Ok(accept_across(c)?) },
        Variant { name: "single_owners", accept: |c| Ok(accept_single(c)?) },
    ],
};

fn accept_shuffles(context: &Context) -> Result<Vec<ReduceSchedule>, Vec<Reason>> {
    let has_parts = |(thread, rows): (usize, &BTreeMap<usize, Slot>)| {
        rows.keys().all(|row| context.rows.place(thread, *row).is_some())
    };
    let reason = |text: &str| {
        vec![Reason {
            text: text.to_string(),
            accepted: "rows held by lanes of one warp whose numbers differ only in some bits".to_string(),
        }]
    };
    if !context.owned.iter().enumerate().all(has_parts) {
        return Err(reason("a thread must hold a result but has no part of its row"));
    }
    match context.rows.complete() {
        Some(exchange) => Ok(vec![ReduceSchedule { rows: Rc::clone(&context.rows), exchange, leaders: None }]),
        None => Err(reason("rows span warps, or lanes whose parts no shuffles combine")),
    }
}

fn accept_across(context: &Context) -> Result<Vec<ReduceSchedule>, Vec<Reason>> {
    let exchange = context.rows.partial();
    let leaders = context.rows.leaders(exchange).map_err(|text| {
        vec![Reason {
            text,
            accepted: "rows whose elements have one owner each, or owners in equal groups".to_string(),
        }]
    })?;
    Ok(vec![ReduceSchedule { rows: Rc::clone(&context.rows), exchange, leaders: Some(leaders) }])
}

/// Counts every element on the first of its threads, and combines all parts through shared memory: this accepts any
/// layout.
fn accept_single(context: &Context) -> Result<Vec<ReduceSchedule>, Vec<Reason>> {
    let exchange = ShuffleMask { bits: 0 };
    let leaders = context
        .single
        .leaders(exchange)
        .map_err(|text| vec![Reason { text, accepted: "sources in which every element has an owner".to_string() }])?;
    Ok(vec![ReduceSchedule { rows: Rc::clone(&context.single), exchange, leaders: Some(leaders) }])
}

impl Context {
    /// Resolves the operands of a `reduce`. Error: one of them is not a whole fragment, or has no layout.
    fn new(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<Context, Diagnostic> {
        let (OpKind::Reduce(attributes), [dst, src]) = (op.kind, &op.operands[..]) else {
            return Err(other_operands(kernel, op));
        };
        let refused = |why: String| Refusal::from(why).diagnostic(&kernel.op_title(op), op.span);
        for tile in [dst, src] {
            let buffer = &kernel.buffers[tile.buffer];
            if buffer.space != Space::Fragment || tile.extents != buffer.shape {
                return Err(refused(format!("`{}` is not a whole fragment", tile_title(kernel, tile))));
            }
        }
        let held = |handle| builder.fragment_registers(kernel, handle).map_err(refused);
        let (source, result) = (held(src.buffer)?, held(dst.buffer)?);
        let below: i64 = src.extents[attributes.dimension + 1..].iter().product();
        let extent = src.extents[attributes.dimension];
        let row_of = |element: usize| (element as i64 / below / extent * below + element as i64 % below) as usize;
        let map = source.map(src.elements() as usize);
        let is_idempotent = combine(attributes.kind) != ElementOp::Add;
        let in_order = |order| Rows::of(&map, dst.elements() as usize, row_of, is_idempotent, order);
        let single = Rows::of(&map.once_in_place(), dst.elements() as usize, row_of, is_idempotent, Order::Rows);
        let (by_slot, by_row) = (in_order(Order::Slots), in_order(Order::Rows));
        let rows = if by_slot.complete().is_none() && by_row.complete().is_some() { by_row } else { by_slot };
        let (rows, single) = (Rc::new(rows), Rc::new(single));
        let mut owned = vec![BTreeMap::new(); map.threads()];
        for (thread, _, row) in result.map(dst.elements() as usize).entries() {
            let slot = result.slot(thread, row as i64);
            owned[thread]
                .insert(row, slot.ok_or_else(|| refused(format!("thread {thread} has no slot for row {row}")))?);
        }
        let dtypes = [dst, src].map(|tile| kernel.buffers[tile.buffer].dtype);
        let thread = Expr::var(&kernel.thread());
        Ok(Context {
            attributes,
            source,
            result,
            owned,
            rows,
            single,
            thread,
            dtype: made_in(dtypes[1]),
            dtypes,
            op: op.clone(),
        })
    }
}

/// The type in which elements of a dtype are combined.
fn made_in(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        DType::I8 | DType::I16 | DType::I32 | DType::U8 | DType::U16 => DType::I32,
        DType::F64 | DType::I64 | DType::U32 | DType::U64 => dtype,
        DType::B8 | DType::B16 | DType::B32 | DType::B64 | DType::B128 => dtype,
    }
}

fn cast(dtype: DType, from: DType, value: Value) -> Value {
    if dtype == from { value } else { Value::Cast(dtype, Narrowing::Fits, Box::new(value)) }
}

impl Schedule<Context> for ReduceSchedule {
    fn summary(&self, _: &Context) -> String {
        let shuffles = self.exchange.masks().count();
        let rows = counted(self.rows.most_parts(), "row");
        let own = format!("{rows} per thread, {} each", counted(shuffles, "shuffle"));
        match &self.leaders {
            None => own,
            Some(leaders) => {
                let most = leaders.iter().map(Vec::len).max().unwrap_or(0);
                format!("{own}, then {} of each row through shared memory", counted(most, "part"))
            }
        }
    }

    fn build(&self, context: &Context, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        let mut make = Make { context, rows: &self.rows, builder, out: Vec::new() };
        let parts = make.parts()?;
        make.exchanged(parts, self.exchange);
        make.completed(parts, self.leaders.as_deref())?;
        Ok(make.out)
    }

    /// Every thread combines its parts of all iterations, and the parts are combined once after the loop. Not for
    /// results that are rounded each time they are stored.
    fn build_across(&self, context: &Context, builder: &mut Builder) -> Option<Result<AcrossLoop, Refusal>> {
        let most = self.rows.most_parts();
        if most == 0 || context.attributes.clear || context.dtypes[0] != context.dtype {
            return None;
        }
        Some(Make { context, rows: &self.rows, builder, out: Vec::new() }.across_loop(self))
    }
}

struct Make<'a> {
    context: &'a Context,
    rows: &'a Rows,
    builder: &'a mut Builder,
    out: Vec<Stmt>,
}

impl Make<'_> {
    fn combined(&self, a: Value, b: Value) -> Value {
        Value::Op(combine(self.context.attributes.kind), vec![a, b])
    }

    /// Adds statements that the threads of `set` execute, and that threads for which `may` is true may execute as
    /// well.
    fn by(&mut self, set: &[bool], may: impl Fn(usize) -> bool, body: Vec<Stmt>) {
        by_threads(set, may, body, &self.context.thread, self.builder, &mut self.out);
    }

    fn set(&self, is_in: impl Fn(usize) -> bool) -> Vec<bool> {
        (0..self.rows.threads()).map(is_in).collect()
    }

    fn across_loop(mut self, schedule: &ReduceSchedule) -> Result<AcrossLoop, Refusal> {
        let (dtype, most) = (self.context.dtype, self.rows.most_parts() as i64);
        let array = self.builder.registers("part", dtype, most, 1, &mut self.out);
        self.out.push(Stmt::Set { to: regs(array, 0, most), value: neutral(self.context.attributes.kind, dtype)? });
        let before = std::mem::take(&mut self.out);
        for place in 0..self.rows.most_parts() {
            for (slot, set) in self.sources(place) {
                self.add(array, place, slot, &set);
            }
        }
        let within = std::mem::take(&mut self.out);
        self.exchanged(array, schedule.exchange);
        self.completed(array, schedule.leaders.as_deref())?;
        Ok(AcrossLoop { before, within, after: self.out })
    }

    /// Stores the results, of which every thread has its parts after the shuffles.
    fn completed(&mut self, parts: Handle<RegArray>, leaders: Option<&[Vec<usize>]>) -> Result<(), Refusal> {
        match leaders {
            None => self.results(parts),
            Some(leaders) => self.across(parts, leaders),
        }
    }

    /// The slots of the elements in the threads' rows at `place`, each with the threads that have one there.
    fn sources(&self, place: usize) -> Vec<(usize, Vec<bool>)> {
        let rows = self.rows;
        let parts = (0..rows.threads()).filter_map(|thread| rows.at(thread, place));
        let slots: BTreeSet<usize> = parts.flat_map(|(_, part)| part.iter().copied()).collect();
        let has = |thread: usize, slot: usize| rows.at(thread, place).is_some_and(|(_, part)| part.contains(&slot));
        slots.into_iter().map(|slot| (slot, self.set(|thread| has(thread, slot)))).collect()
    }

    /// The threads of `set` combine an element with their part.
    fn add(&mut self, parts: Handle<RegArray>, place: usize, slot: usize, set: &[bool]) {
        let value = self.combined(Value::Reg(parts, place as i64), self.context.element(slot));
        self.by(set, |_| false, vec![Stmt::Assign { to: regs(parts, place as i64, 1), value }]);
    }

    /// Registers with the combined parts of each thread's rows, in order.
    fn parts(&mut self) -> Result<Handle<RegArray>, Refusal> {
        let context = self.context;
        let most = self.rows.most_parts();
        let array = self.builder.registers("part", context.dtype, most.max(1) as i64, 1, &mut self.out);
        for place in 0..most {
            for (at, (slot, set)) in self.sources(place).into_iter().enumerate() {
                if at > 0 {
                    self.add(array, place, slot, &set);
                    continue;
                }
                let to = regs(array, place as i64, 1);
                // The value so far of threads without the first slot; threads without part in this row never read it.
                if set.contains(&false) {
                    let value = neutral(context.attributes.kind, context.dtype)?;
                    self.out.push(Stmt::Set { to: to.clone(), value });
                }
                self.by(&set, |_| false, vec![Stmt::Assign { to, value: context.element(slot) }]);
            }
        }
        Ok(array)
    }

    fn exchanged(&mut self, parts: Handle<RegArray>, exchange: ShuffleMask) {
        let most = self.rows.most_parts() as i64;
        if exchange.bits == 0 || most == 0 {
            return;
        }
        let other = self.builder.registers("other", self.context.dtype, 1, 1, &mut self.out);
        for mask in exchange.masks() {
            for place in 0..most {
                self.out.push(Stmt::Inst(Call {
                    to: Some(regs(other, 0, 1)),
                    from: vec![regs(parts, place, 1)],
                    arguments: vec![Expr::constant(mask as i64)],
                    ..Call::plain(Inst::ShuffleXor)
                }));
                let value = self.combined(Value::Reg(parts, place), Value::Reg(other, 0));
                self.out.push(Stmt::Assign { to: regs(parts, place, 1), value });
            }
        }
    }

    /// Writes the results that each thread must hold; its rows are complete. Error: a thread must hold a result, but has
    /// no part of its row.
    fn results(&mut self, parts: Handle<RegArray>) -> Result<(), Refusal> {
        let context = self.context;
        let mut sets: BTreeMap<(Slot, usize), Vec<bool>> = BTreeMap::new();
        for (thread, rows) in context.owned.iter().enumerate() {
            for (row, slot) in rows {
                let place = self.rows.place(thread, *row);
                let place =
                    place.ok_or_else(|| format!("thread {thread} has no part of row {row}, whose result it holds"))?;
                let none = || vec![false; context.owned.len()];
                sets.entry((*slot, place)).or_insert_with(none)[thread] = true;
            }
        }
        for ((slot, place), set) in sets {
            let statement = self.result(slot, Value::Reg(parts, place as i64));
            let may = |thread: usize| context.may_write(thread, slot);
            self.by(&set, may, vec![statement]);
        }
        Ok(())
    }

    /// Writes a result, combined with the old one unless that is cleared.
    fn result(&self, slot: Slot, value: Value) -> Stmt {
        let context = self.context;
        let known = cast(context.dtype, context.dtypes[0], context.result.read(slot));
        let value = if context.attributes.clear { value } else { self.combined(known, value) };
        let value = context.result.written(slot, cast(context.dtypes[0], context.dtype, value));
        Stmt::Assign { to: regs(context.result.array, slot.register, 1), value }
    }

    /// Passes the leaders' parts through shared memory to the threads that must hold results. Parts of neighbouring
    /// rows are adjacent.
    fn across(&mut self, parts: Handle<RegArray>, leaders: &[Vec<usize>]) -> Result<(), Refusal> {
        let context = self.context;
        let most = leaders.iter().map(Vec::len).max().unwrap_or(0);
        let memory = self.scratch(leaders.len() * most);
        let place_of = |row: usize, thread: usize| {
            let at = leaders[row].iter().position(|leader| *leader == thread)?;
            Some((at * leaders.len() + row) as i64)
        };
        for place in 0..self.rows.most_parts() {
            let at = |thread: usize| self.rows.at(thread, place).and_then(|(row, _)| place_of(row, thread));
            let positions: Vec<Option<i64>> = (0..self.rows.threads()).map(at).collect();
            if positions.iter().all(Option::is_none) {
                continue;
            }
            let mut body = Vec::new();
            let index = number(&positions, 1, &context.thread, self.builder, &mut body);
            body.push(Stmt::Store { memory, index, from: regs(parts, place as i64, 1) });
            let set: Vec<bool> = positions.iter().map(Option::is_some).collect();
            self.by(&set, |_| false, body);
        }
        self.out.push(Stmt::Inst(Call::plain(Inst::SyncThreads)));
        let slots: BTreeSet<Slot> =
            (0..context.owned.len()).flat_map(|thread| context.slots(thread)).map(|(slot, _)| slot).collect();
        for slot in slots {
            self.gathered(slot, memory, leaders, most)?;
        }
        Ok(())
    }

    fn scratch(&mut self, elements: usize) -> Handle<Memory> {
        let name = self.builder.fresh("parts");
        self.builder.program.memories.push(Memory {
            name,
            dtype: self.context.dtype,
            elements: elements as i64,
            space: MemorySpace::Shared,
            values: Vec::new(),
            // Not aligned any further: NVRTC would combine loads, and read more parts than there are.
            alignment: self.context.dtype.bytes(),
            span: self.context.op.span,
        })
    }

    /// Combines the parts of a row into one slot of the result. Every row has at least one part.
    fn gathered(
        &mut self,
        slot: Slot,
        memory: Handle<Memory>,
        leaders: &[Vec<usize>],
        most: usize,
    ) -> Result<(), Refusal> {
        let context = self.context;
        let row_of = |thread: usize| context.slots(thread).find(|(at, _)| *at == slot).map(|(_, row)| row);
        let has_row = self.set(|thread| row_of(thread).is_some());
        let sum = self.builder.registers("sum", context.dtype, 1, 1, &mut self.out);
        let part = if most > 1 { self.builder.registers("part", context.dtype, 1, 1, &mut self.out) } else { sum };
        if has_row.contains(&false) {
            self.out.push(Stmt::Set { to: regs(sum, 0, 1), value: neutral(context.attributes.kind, context.dtype)? });
        }
        for at in 0..most {
            let position = |thread: usize| {
                let row = row_of(thread)?;
                (at < leaders[row].len()).then_some((at * leaders.len() + row) as i64)
            };
            let positions: Vec<Option<i64>> = (0..context.owned.len()).map(position).collect();
            let mut body = Vec::new();
            let index = number(&positions, 1, &context.thread, self.builder, &mut body);
            body.push(Stmt::Load { to: regs(if at == 0 { sum } else { part }, 0, 1), memory, index });
            if at > 0 {
                let value = self.combined(Value::Reg(sum, 0), Value::Reg(part, 0));
                body.push(Stmt::Assign { to: regs(sum, 0, 1), value });
            }
            let set: Vec<bool> = positions.iter().map(Option::is_some).collect();
            self.by(&set, |_| false, body);
        }
        let statement = self.result(slot, Value::Reg(sum, 0));
        self.by(&has_row, |thread| context.may_write(thread, slot), vec![statement]);
        Ok(())
    }
}

impl Context {
    /// The element of the source in a slot, in the type in which parts are combined. `absmax` takes the absolute value
    /// in the source's dtype, where that of the least integer is itself; `abssum` uses only the low bits, which are
    /// the same in both types.
    fn element(&self, slot: usize) -> Value {
        let made = |value: Value| cast(self.dtype, self.dtypes[1], value);
        let absolute = |value: Value| Value::Op(ElementOp::Abs, vec![value]);
        let element = self.source.in_slot(slot);
        match self.attributes.kind {
            ReduceKind::AbsMax => made(absolute(element)),
            ReduceKind::AbsSum => absolute(made(element)),
            ReduceKind::Sum | ReduceKind::Max | ReduceKind::Min => made(element),
        }
    }

    /// Whether a thread may write any value to a register: it has no result there, and the old value is not read.
    fn may_write(&self, thread: usize, slot: Slot) -> bool {
        self.attributes.clear && !self.slots(thread).any(|(known, _)| known.register == slot.register)
    }

    /// The slots of a thread's results, and their rows.
    fn slots(&self, thread: usize) -> impl Iterator<Item = (Slot, usize)> + '_ {
        self.owned[thread].iter().map(|(row, slot)| (*slot, *row))
    }
}
