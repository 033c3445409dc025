//! An interpreter that computes with real values: it executes thread programs directly, one CTA after the other.
//!
//! Between barriers and exchanges, threads run one after the other, forwards or backwards: a missing barrier gives a
//! different result in one of the two orders. An asynchronous copy arrives at once if threads run forwards, and when its
//! thread waits for it if they run backwards; so do the copies of boxes, for which threads wait at barriers or by groups. After
//! every op, all copies of an element of a fragment must be equal.

mod instructions;

use std::collections::BTreeMap;

use tilewright::expr::{Expr, Var};
use tilewright::ir::thread::{Cond, Inst, Memory, MemorySpace, Program, Regs, Stmt, Value};
use tilewright::ir::tile::{ElementOp, Role};
use tilewright::ir::{Counter, Handle, HwIndex};
use tilewright::layout::{DType, axis};

use super::engine::Barriers;
use super::evaluate::size_at_launch;
use super::numbers;
use super::pending::{PendingCopies, PendingCopy};
use super::stores::PendingStores;

/// The bytes of each memory, by its number; `None` for bytes that were never written.
pub type Memories = BTreeMap<usize, Vec<Option<u8>>>;

/// The order in which threads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From thread 0 to the last.
    Forwards,
    /// From the last thread to thread 0.
    Backwards,
}

/// A fragment whose copies are compared: its register array, and for each element the threads and registers that hold
/// it.
#[derive(Clone, Debug)]
pub struct Copies {
    /// The name of the fragment and of its register array.
    pub name: String,
    /// For each element, the threads that hold it and its first byte in the array.
    pub places: Vec<Vec<(usize, usize)>>,
    /// Bytes of an element.
    pub bytes: usize,
}

/// Runs a program on every CTA of its grid; `memories` holds its parameters.
pub fn execute(program: &Program, memories: &mut Memories, order: Order, copies: &[Copies]) -> Result<(), String> {
    let ctas = |dimension: usize| program.grid[dimension].as_const().unwrap_or(1);
    for z in 0..ctas(2) {
        for y in 0..ctas(1) {
            for x in 0..ctas(0) {
                let threads = (0..program.threads).map(|_| Thread::new(program)).collect();
                let barriers = Barriers::default();
                let cta = [x, y, z];
                let mut machine = Machine { program, cta, threads, memories, barriers, order, copies, first_warp: 0 };
                machine.begin();
                let all: Vec<usize> = (0..program.threads as usize).collect();
                machine.body(&program.body, &all)?;
                machine.end()?;
            }
        }
    }
    Ok(())
}

pub(super) struct Thread {
    env: Vec<(Var, i64)>,
    registers: Vec<Vec<Option<u8>>>,
    copies: PendingCopies,
    pub(super) stores: PendingStores,
}

impl Thread {
    fn new(program: &Program) -> Thread {
        let arrays = &program.registers;
        let registers =
            arrays.iter().map(|(_, array)| vec![None; (array.len * array.dtype.bytes()) as usize]).collect();
        let env = program.sizes.iter().map(|size| (size.clone(), size_at_launch(size))).collect();
        Thread { env, registers, copies: PendingCopies::default(), stores: PendingStores::default() }
    }
}

pub(super) struct Machine<'a> {
    pub(super) program: &'a Program,
    cta: [i64; 3],
    pub(super) threads: Vec<Thread>,
    pub(super) memories: &'a mut Memories,
    pub(super) barriers: Barriers,
    pub(super) order: Order,
    copies: &'a [Copies],
    /// The first warp of the role whose statements are executed; 0 outside of roles.
    first_warp: i64,
}

impl Machine<'_> {
    fn begin(&mut self) {
        for (handle, memory) in self.program.memories.iter() {
            let bytes = (memory.elements * memory.dtype.bytes()) as usize;
            match memory.space {
                MemorySpace::Shared => {
                    self.memories.insert(handle.index(), vec![None; bytes]);
                }
                MemorySpace::Global { .. } | MemorySpace::Table => {}
                MemorySpace::SharedView { .. } | MemorySpace::SharedInside { .. } => {}
            }
        }
    }

    fn end(&mut self) -> Result<(), String> {
        self.threads.iter_mut().try_for_each(|thread| thread.stores.end(self.memories))
    }

    fn body(&mut self, body: &[Stmt], active: &[usize]) -> Result<(), String> {
        let mut rest = body;
        while let Some(first) = rest.first() {
            let roles = rest.iter().take_while(|stmt| matches!(stmt, Stmt::Role { .. })).count();
            if roles > 0 {
                self.roles(&rest[..roles], active)?;
                rest = &rest[roles..];
                continue;
            }
            let alone = rest.iter().take_while(|stmt| !exchanges(stmt)).count();
            if alone == 0 {
                self.together(first, active)?;
                rest = &rest[1..];
                continue;
            }
            let mut order = active.to_vec();
            if self.order == Order::Backwards {
                order.reverse();
            }
            for thread in order {
                self.run(&rest[..alone], thread)?;
            }
            rest = &rest[alone..];
        }
        Ok(())
    }

    /// Executes branches of roles between which there is no barrier, role by role: if threads run backwards, the last one first.
    fn roles(&mut self, branches: &[Stmt], active: &[usize]) -> Result<(), String> {
        let of_roles = branches.iter().filter_map(|stmt| match stmt {
            Stmt::Role { role, body } => Some((&self.program.roles[*role], body)),
            _ => None,
        });
        let mut order: Vec<(&Role, &Vec<Stmt>)> = of_roles.collect();
        match self.order {
            Order::Forwards => order.sort_by_key(|(role, _)| role.first),
            Order::Backwards => order.sort_by_key(|(role, _)| -role.first),
        }
        for (role, body) in order {
            let is_member = |at: &&usize| role.has_warp(**at as i64 / 32);
            let inside: Vec<usize> = active.iter().filter(is_member).copied().collect();
            self.first_warp = role.first;
            self.body(body, &inside)?;
            self.first_warp = 0;
        }
        Ok(())
    }

    /// Executes a statement in which threads synchronize.
    fn together(&mut self, stmt: &Stmt, active: &[usize]) -> Result<(), String> {
        match stmt {
            Stmt::Op { body, note } => {
                self.body(body, active)?;
                let all = active.len() == self.threads.len();
                if all { self.compare(&self.program.notes[*note].title) } else { Ok(()) }
            }
            Stmt::For { counter, body, .. } => {
                let var = &counter.var;
                let Some(first) = active.first() else { return Ok(()) };
                for value in self.counted(counter, *first)? {
                    active.iter().for_each(|at| self.threads[*at].env.push((var.clone(), value)));
                    self.body(body, active)?;
                    active.iter().for_each(|at| self.leave(*at, var));
                }
                Ok(())
            }
            Stmt::If { cond, body } => {
                let holds = |at: &&usize| self.holds(**at, cond);
                let inside = kept(active, holds)?;
                self.body(body, &inside)
            }
            Stmt::Unless { conds, body } => {
                let inside = kept(active, |at| Ok(!self.all_hold(**at, conds)?))?;
                self.body(body, &inside)
            }
            Stmt::IfValue { cond, body, .. } => {
                let holds = |at: &&usize| Ok(self.value(**at, cond)? != 0);
                let inside = kept(active, holds)?;
                self.body(body, &inside)
            }
            Stmt::Elect { body } => {
                let one = |warp: &[usize]| match self.order {
                    Order::Forwards => warp[0],
                    Order::Backwards => warp[warp.len() - 1],
                };
                let elected: Vec<usize> = active.chunk_by(|one, next| one / 32 == next / 32).map(one).collect();
                self.body(body, &elected)
            }
            Stmt::Inst(call) if call.inst == Inst::BarrierWait => active.iter().try_for_each(|at| self.wait(call, *at)),
            Stmt::Inst(call) => self.call_together(call, active),
            _ => Err("a statement that this machine does not know".to_string()),
        }
    }

    /// Removes a loop's variable, and the names defined inside the loop.
    fn leave(&mut self, thread: usize, var: &Var) {
        let env = &mut self.threads[thread].env;
        if let Some(at) = env.iter().rposition(|(known, _)| known == var) {
            env.truncate(at);
        }
    }

    /// Executes statements of a single thread.
    fn run(&mut self, body: &[Stmt], at: usize) -> Result<(), String> {
        for stmt in body {
            match stmt {
                Stmt::Declare(_) => {}
                Stmt::Let { var, value } => {
                    let value = self.expr(at, value)?;
                    self.threads[at].env.push((var.clone(), value));
                }
                Stmt::LetValue { var, value } => {
                    let dtype = self.dtype(value);
                    let value = numbers::integer(dtype, self.value(at, value)?) as i64;
                    self.threads[at].env.push((var.clone(), value));
                }
                Stmt::Lookup { vars, table, index } => {
                    let first = self.expr(at, index)?;
                    let values = &self.program.memories[*table].values;
                    for (place, var) in vars.iter().enumerate() {
                        let value = usize::try_from(first).ok().and_then(|first| values.get(first + place));
                        let value = *value.ok_or_else(|| format!("entry {first} of a table of {}", values.len()))?;
                        self.threads[at].env.push((var.clone(), value));
                    }
                }
                Stmt::Load { to, memory, index } => {
                    let (number, bytes) = self.memory(at, *memory, index, to)?;
                    let found: Vec<Option<u8>> = self.memories[&number][bytes].to_vec();
                    self.put(at, to, &found)?;
                }
                Stmt::Store { memory, index, from } => {
                    let (number, bytes) = self.memory(at, *memory, index, from)?;
                    let stored = self.get(at, from)?;
                    if let Some(held) = self.memories.get_mut(&number) {
                        held[bytes].copy_from_slice(&stored);
                    }
                }
                Stmt::Inst(call) => self.call(call, at)?,
                Stmt::Set { to, value } => {
                    let dtype = self.program.registers[to.array].dtype;
                    let bits = numbers::constant(dtype, *value).to_le_bytes();
                    let element = (0..dtype.bytes() as usize).map(|part| bits.get(part).copied().unwrap_or(0));
                    let bytes: Vec<u8> = (0..to.count).flat_map(|_| element.clone()).collect();
                    self.write(at, to, &bytes)?;
                }
                Stmt::Move { to, from } => {
                    let bytes = self.get(at, from)?;
                    self.put(at, to, &bytes)?;
                }
                Stmt::Assign { to, value } => {
                    let bits = self.value(at, value)?.to_le_bytes();
                    let bytes = self.program.registers[to.array].dtype.bytes() as usize;
                    self.write(at, to, &bits[..bytes])?;
                }
                Stmt::AssignPair { to, values } => {
                    let bytes = self.program.registers[to.array].dtype.bytes() as usize;
                    let bits = [self.value(at, &values[0])?, self.value(at, &values[1])?];
                    let both = bits.map(|bits| bits.to_le_bytes()[..bytes].to_vec());
                    self.write(at, to, &both.concat())?;
                }
                Stmt::For { counter, body, .. } => {
                    for value in self.counted(counter, at)? {
                        self.threads[at].env.push((counter.var.clone(), value));
                        self.run(body, at)?;
                        self.leave(at, &counter.var);
                    }
                }
                Stmt::If { cond, body } => {
                    if self.holds(at, cond)? {
                        self.run(body, at)?;
                    }
                }
                Stmt::Unless { conds, body } => {
                    if !self.all_hold(at, conds)? {
                        self.run(body, at)?;
                    }
                }
                Stmt::IfValue { cond, body, .. } => {
                    if self.value(at, cond)? != 0 {
                        self.run(body, at)?;
                    }
                }
                Stmt::TensorCopy(copy) => self.tensor_copy(copy, at)?,
                Stmt::Op { .. }
                | Stmt::Mma(_)
                | Stmt::WarpgroupMma(_)
                | Stmt::TensorMma(_)
                | Stmt::TensorMove(_)
                | Stmt::Elect { .. }
                | Stmt::Role { .. }
                | Stmt::Advance { .. } => {
                    return Err("a statement that this machine does not know".to_string());
                }
            }
        }
        Ok(())
    }

    /// The values of a loop's variable.
    fn counted(&self, counter: &Counter, at: usize) -> Result<Vec<i64>, String> {
        let (begin, end) = (self.expr(at, &counter.begin)?, self.expr(at, &counter.end)?);
        Ok((begin..end).step_by(counter.step as usize).collect())
    }

    pub(super) fn expr(&self, at: usize, expr: &Expr) -> Result<i64, String> {
        let value = |var: &Var| match HwIndex::of(var) {
            Some(HwIndex::Lane) => Some(at as i64 % 32),
            Some(HwIndex::Warp) => Some(at as i64 / 32 - self.first_warp),
            Some(HwIndex::Tid) => Some(at as i64 - self.first_warp * 32),
            Some(HwIndex::Block(dim)) => Some(self.cta[dim.index()]),
            None => self.threads[at].env.iter().rev().find(|(known, _)| known == var).map(|(_, value)| *value),
        };
        expr.eval(&value).map_err(|why| format!("{expr}: {why}"))
    }

    fn holds(&self, at: usize, cond: &Cond) -> Result<bool, String> {
        Ok(match cond {
            Cond::Less(a, b) => self.expr(at, a)? < self.expr(at, b)?,
            Cond::Equal(a, b) => self.expr(at, a)? == self.expr(at, b)?,
        })
    }

    fn all_hold(&self, at: usize, conds: &[Cond]) -> Result<bool, String> {
        for cond in conds {
            if !self.holds(at, cond)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn dtype(&self, value: &Value) -> DType {
        value.dtype(&self.program.registers).unwrap_or(DType::I32)
    }

    fn value(&self, at: usize, value: &Value) -> Result<u64, String> {
        match value {
            Value::Const(dtype, value) => Ok(numbers::constant(*dtype, *value)),
            Value::Index(dtype, expr) => Ok(numbers::of_integer(*dtype, i128::from(self.expr(at, expr)?))),
            Value::Reg(array, place) => {
                let regs = Regs { array: *array, first: place.clone(), count: 1, step: 1 };
                Ok(joined(&self.read(at, &regs)?))
            }
            Value::Op(ElementOp::Select, operands) => {
                let [cond, then, otherwise] = &operands[..] else { return Err("bad selection".to_string()) };
                // Hardware computes both; here only the chosen one, since the other may be unwritten.
                self.value(at, if self.value(at, cond)? != 0 { then } else { otherwise })
            }
            Value::Op(op, operands) => {
                let dtype = operands.last().map_or(DType::I32, |operand| self.dtype(operand));
                let bits =
                    operands.iter().map(|operand| self.value(at, operand)).collect::<Result<Vec<u64>, String>>()?;
                let are_truths = operands.iter().all(|operand| operand.dtype(&self.program.registers).is_none());
                if are_truths {
                    return numbers::of_truths(*op, &bits);
                }
                numbers::apply(*op, dtype, &bits)
            }
            Value::Cast(to, narrowing, of) => Ok(numbers::cast(self.dtype(of), *to, *narrowing, self.value(at, of)?)),
            Value::Bits(_, of) => self.value(at, of),
            Value::Part(to, of, part) => {
                let bits = self.value(at, of)? >> (8 * to.bytes() * part);
                Ok(numbers::wrapped(*to, i128::from(bits)))
            }
            Value::With(of, part, with) => {
                let dtype = self.dtype(with);
                let (shift, bits) = (8 * dtype.bytes() * part, self.value(at, with)?);
                let mask = (u64::MAX >> (64 - 8 * dtype.bytes())) << shift;
                Ok(self.value(at, of)? & !mask | bits << shift)
            }
        }
    }

    fn places(&self, at: usize, regs: &Regs) -> Result<Vec<usize>, String> {
        let bytes = self.program.registers[regs.array].dtype.bytes();
        let first = self.expr(at, &regs.first)?;
        let elements = (0..regs.count).map(|place| (first + place * regs.step) * bytes);
        Ok(elements.flat_map(|start| (start..start + bytes).map(|byte| byte as usize)).collect())
    }

    fn get(&self, at: usize, regs: &Regs) -> Result<Vec<Option<u8>>, String> {
        let held = &self.threads[at].registers[regs.array.index()];
        Ok(self.places(at, regs)?.into_iter().map(|place| held.get(place).copied().flatten()).collect())
    }

    fn read(&self, at: usize, regs: &Regs) -> Result<Vec<u8>, String> {
        let name = || {
            format!(
                "thread {at} reads `{}[{}]`, which was never written",
                self.program.registers[regs.array].name, regs.first
            )
        };
        self.get(at, regs)?.into_iter().map(|byte| byte.ok_or_else(name)).collect()
    }

    fn put(&mut self, at: usize, regs: &Regs, bytes: &[Option<u8>]) -> Result<(), String> {
        let places = self.places(at, regs)?;
        let held = &mut self.threads[at].registers[regs.array.index()];
        for (place, byte) in places.into_iter().zip(bytes) {
            *held.get_mut(place).ok_or("a register out of bounds of its array")? = *byte;
        }
        Ok(())
    }

    fn write(&mut self, at: usize, regs: &Regs, bytes: &[u8]) -> Result<(), String> {
        let bytes: Vec<Option<u8>> = bytes.iter().copied().map(Some).collect();
        self.put(at, regs, &bytes)
    }

    pub(super) fn arrive(&mut self, (number, place, bytes): PendingCopy) {
        if let Some(held) = self.memories.get_mut(&number) {
            held[place].copy_from_slice(&bytes);
        }
    }

    /// The bytes of memory that an access with these registers touches.
    fn memory(
        &self,
        at: usize,
        handle: Handle<Memory>,
        index: &Expr,
        regs: &Regs,
    ) -> Result<(usize, std::ops::Range<usize>), String> {
        let bytes = regs.count * self.program.registers[regs.array].dtype.bytes();
        self.bytes(at, &(handle, index.clone()), bytes)
    }

    /// So many bytes of memory from an element on, which a thread may access at once.
    pub(super) fn bytes(
        &self,
        at: usize,
        place: &(Handle<Memory>, Expr),
        bytes: i64,
    ) -> Result<(usize, std::ops::Range<usize>), String> {
        let (number, range) = self.range(at, place, bytes)?;
        if range.start as i64 % bytes != 0 && bytes.count_ones() == 1 {
            let name = &self.program.memories[place.0].name;
            return Err(format!("misaligned: thread {at} moves {bytes} bytes at byte {} of `{name}`", range.start));
        }
        Ok((number, range))
    }

    /// So many bytes of memory from an element on.
    pub(super) fn range(
        &self,
        at: usize,
        (handle, index): &(Handle<Memory>, Expr),
        bytes: i64,
    ) -> Result<(usize, std::ops::Range<usize>), String> {
        let memory = &self.program.memories[*handle];
        let number = self.program.owner(*handle).index();
        let first = self.expr(at, index)? * memory.dtype.bytes();
        let size = self.memories.get(&number).map_or(0, Vec::len) as i64;
        if first < 0 || first + bytes > size {
            return Err(format!("thread {at} accesses byte {first} of `{}`, which has {size}", memory.name));
        }
        Ok((number, first as usize..(first + bytes) as usize))
    }

    fn compare(&self, title: &str) -> Result<(), String> {
        for copies in self.copies {
            let array = self.program.registers.iter().find(|(_, array)| array.name == copies.name);
            let Some((array, _)) = array else { continue };
            let held = |(thread, first): &(usize, usize)| {
                let bytes = &self.threads[*thread].registers[array.index()];
                bytes.get(*first..first + copies.bytes).map(<[Option<u8>]>::to_vec)
            };
            for (element, places) in copies.places.iter().enumerate() {
                let Some(first) = places.first() else { continue };
                let dtype = self.program.registers[array].dtype;
                let is_same = |place: &&(usize, usize)| match (held(place), held(first)) {
                    (Some(one), Some(other)) => are_copies(dtype, &one, &other),
                    (one, other) => one == other,
                };
                if let Some(other) = places.iter().find(|place| !is_same(place)) {
                    return Err(format!(
                        "after `{title}` threads {} and {} hold different copies of element {element} of `{}`",
                        first.0, other.0, copies.name
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Whether elements are the same, or both are NaN, whose bits are not specified.
fn are_copies(dtype: DType, one: &[Option<u8>], other: &[Option<u8>]) -> bool {
    let width = dtype.bytes() as usize;
    let is_nan = |bytes: &[Option<u8>]| word(bytes).is_some_and(|bits| numbers::is_nan(dtype, bits));
    one.chunks(width).zip(other.chunks(width)).all(|(one, other)| one == other || is_nan(one) && is_nan(other))
}

/// Whether threads synchronize in a statement, or a check follows it.
fn exchanges(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Mma(_) | Stmt::Op { .. } | Stmt::Elect { .. } | Stmt::Role { .. } => true,
        Stmt::Inst(call) => call.inst == Inst::BarrierWait || call.inst.info().issued_by > axis::Scope::Thread,
        _ => stmt.inner().iter().any(exchanges),
    }
}

fn kept(active: &[usize], holds: impl Fn(&&usize) -> Result<bool, String>) -> Result<Vec<usize>, String> {
    let mut inside = Vec::new();
    for at in active {
        if holds(&at)? {
            inside.push(*at);
        }
    }
    Ok(inside)
}

/// The number given by little-endian bytes.
fn joined(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

pub(super) fn word(bytes: &[Option<u8>]) -> Option<u64> {
    bytes.iter().rev().try_fold(0, |bits, byte| Some(bits << 8 | u64::from((*byte)?)))
}
