//! What statements read, write, define and order. All analyses of a program derive this from here: a new statement gets
//! an arm in each match below, and what an instruction does comes from its row of the instruction table.
//!
//! All methods describe a statement alone, without the statements inside it; [`for_each_stmt`] visits those too.

use std::collections::BTreeMap;

use tilewright_expr::{Expr, Var};
use tilewright_layout::access::LANES;
use tilewright_layout::axis::Scope;

use crate::arena::{Arena, Handle};
use crate::thread::inst::{InstInfo, RegisterOperand};
use crate::thread::packed::{Packed, WORD, is_word};
use crate::thread::program::{Call, Cond, Memory, Mma, Program, Stmt};
use crate::thread::registers::{RegArray, Regs};
use crate::thread::ring::TensorCopy;
use crate::thread::tensor::{Accumulates, TensorLeft};
use crate::thread::value::Value;
use crate::thread::wgmma::{LeftMatrix, WarpgroupMma};
use crate::tile::{Effect, MemoryOrder};

/// Something that a statement reads or writes.
#[derive(Clone, Copy, Debug)]
pub enum Resource<'a> {
    /// Registers of the thread.
    Registers(&'a Regs),
    /// Elements of a memory.
    Memory(MemoryAccess<'a>),
}

/// An access of one thread to adjacent elements of a memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryAccess<'a> {
    /// The memory.
    pub memory: Handle<Memory>,
    /// The first element.
    pub index: &'a Expr,
    /// How much is accessed.
    pub moved: Moved<'a>,
    /// How many lanes of a warp access it, from lane 0 on.
    pub lanes: usize,
    /// What is done to the elements.
    pub effect: Effect,
}

/// How much an access moves.
#[derive(Clone, Copy, Debug)]
pub enum Moved<'a> {
    /// As many bytes as these registers hold.
    Registers(&'a Regs),
    /// This many elements of the memory.
    Elements(i64),
    /// This many bytes.
    Bytes(i64),
    /// A box of this many bytes, which the copy engine moves.
    Box(i64),
}

impl MemoryAccess<'_> {
    /// Bytes that one thread accesses.
    pub fn bytes(&self, program: &Program) -> i64 {
        self.bytes_in(&program.registers, &program.memories)
    }

    fn bytes_in(&self, registers: &Arena<RegArray>, memories: &Arena<Memory>) -> i64 {
        match self.moved {
            Moved::Registers(regs) => regs.count * registers[regs.array].dtype.bytes(),
            Moved::Elements(count) => count * memories[self.memory].dtype.bytes(),
            Moved::Bytes(bytes) | Moved::Box(bytes) => bytes,
        }
    }
}

impl Stmt {
    /// Calls `visit` on what it reads: registers, including those inside values, then memory.
    pub fn reads(&self, visit: &mut dyn FnMut(Resource<'_>)) {
        self.for_each_resource(&mut |effect, resource| {
            if effect.reads() {
                visit(resource);
            }
        });
    }

    /// Calls `visit` on what it writes: registers, then memory.
    pub fn writes(&self, visit: &mut dyn FnMut(Resource<'_>)) {
        self.for_each_resource(&mut |effect, resource| {
            if effect.writes() {
                visit(resource);
            }
        });
    }

    /// Calls `visit` on what it reads, writes or updates: registers, including those inside values, then memory.
    pub fn for_each_resource(&self, visit: &mut dyn FnMut(Effect, Resource<'_>)) {
        self.for_each_registers(&mut |effect, regs| visit(effect, Resource::Registers(regs)));
        for access in self.accesses() {
            visit(access.effect, Resource::Memory(access));
        }
    }

    fn for_each_registers(&self, visit: &mut dyn FnMut(Effect, &Regs)) {
        match self {
            Stmt::Load { to, .. } | Stmt::Set { to, .. } => visit(Effect::Write, to),
            Stmt::Store { from, .. } => visit(Effect::Read, from),
            Stmt::Move { to, from } => {
                visit(Effect::Read, from);
                visit(Effect::Write, to);
            }
            Stmt::Inst(call) => {
                call.from.iter().for_each(|regs| visit(Effect::Read, regs));
                call.to.iter().for_each(|regs| visit(Effect::Write, regs));
            }
            Stmt::Mma(product) => {
                let Mma { sums, a, b, .. } = &**product;
                visit(Effect::Update, sums);
                visit(Effect::Read, a);
                visit(Effect::Read, b);
            }
            Stmt::WarpgroupMma(product) => {
                let effect = if product.accumulates { Effect::Update } else { Effect::Write };
                product.left_registers().into_iter().for_each(|regs| visit(Effect::Read, regs));
                visit(effect, &product.sums);
            }
            Stmt::TensorMma(product) => {
                if let Accumulates::If(flag) = &product.accumulates {
                    visit(Effect::Read, flag);
                }
            }
            Stmt::TensorMove(moved) => visit(moved.effect(), &moved.registers),
            Stmt::Assign { to, .. } | Stmt::AssignPair { to, .. } => {
                self.values().iter().for_each(|value| registers_of(value, visit));
                visit(Effect::Write, to);
            }
            Stmt::LetValue { value, .. } | Stmt::IfValue { cond: value, .. } => registers_of(value, visit),
            Stmt::Op { .. } | Stmt::Let { .. } | Stmt::Declare(_) | Stmt::Lookup { .. } | Stmt::For { .. } => {}
            Stmt::If { .. }
            | Stmt::Unless { .. }
            | Stmt::Role { .. }
            | Stmt::Elect { .. }
            | Stmt::TensorCopy(_)
            | Stmt::Advance { .. } => {}
        }
    }

    /// Calls `visit` on the array and the first index of all its registers, also of those inside values.
    pub fn for_each_regs_mut(&mut self, visit: &mut dyn FnMut(&mut Handle<RegArray>, &mut Expr)) {
        let mut regs = |regs: &mut Regs| visit(&mut regs.array, &mut regs.first);
        match self {
            Stmt::Load { to, .. } | Stmt::Set { to, .. } => regs(to),
            Stmt::Assign { to, .. } | Stmt::AssignPair { to, .. } => regs(to),
            Stmt::Store { from, .. } => regs(from),
            Stmt::Move { to, from } => [to, from].into_iter().for_each(regs),
            Stmt::Mma(product) => {
                let Mma { sums, a, b, .. } = &mut **product;
                [sums, a, b].into_iter().for_each(regs);
            }
            Stmt::WarpgroupMma(product) => {
                let WarpgroupMma { sums, a, .. } = &mut **product;
                regs(sums);
                if let LeftMatrix::Registers(a) = a {
                    regs(a);
                }
            }
            Stmt::TensorMma(product) => {
                if let Accumulates::If(flag) = &mut product.accumulates {
                    regs(flag);
                }
            }
            Stmt::TensorMove(moved) => regs(&mut moved.registers),
            Stmt::Inst(call) => call.to.iter_mut().chain(&mut call.from).for_each(regs),
            Stmt::Op { .. } | Stmt::Let { .. } | Stmt::Declare(_) | Stmt::Lookup { .. } | Stmt::For { .. } => {}
            Stmt::If { .. } | Stmt::Unless { .. } | Stmt::LetValue { .. } | Stmt::IfValue { .. } => {}
            Stmt::Role { .. } | Stmt::Elect { .. } | Stmt::TensorCopy(_) | Stmt::Advance { .. } => {}
        }
        self.values_mut().iter_mut().for_each(|value| value.for_each_register_mut(visit));
    }

    /// Its accesses to memory, each once, whether it reads, writes, or does both.
    pub fn accesses(&self) -> impl Iterator<Item = MemoryAccess<'_>> {
        let access = |memory: &Handle<Memory>, index, moved, effect| {
            Some(MemoryAccess { memory: *memory, index, moved, lanes: LANES, effect })
        };
        let (own, call) = match self {
            Stmt::Load { to, memory, index } => {
                ([access(memory, index, Moved::Registers(to), Effect::Read), None], None)
            }
            Stmt::Store { memory, index, from } => {
                ([access(memory, index, Moved::Registers(from), Effect::Write), None], None)
            }
            Stmt::Lookup { vars, table, index } => {
                ([access(table, index, Moved::Elements(vars.len() as i64), Effect::Read), None], None)
            }
            Stmt::TensorCopy(copy) => {
                let TensorCopy { shared: (memory, at), bytes, .. } = &**copy;
                let effect = if copy.full().is_some() { Effect::Write } else { Effect::Read };
                let barrier = copy.full();
                let full = barrier.and_then(|(memory, at)| access(memory, at, Moved::Elements(1), Effect::Update));
                ([access(memory, at, Moved::Box(*bytes), effect), full], None)
            }
            Stmt::WarpgroupMma(product) => {
                let mut all = product
                    .shared()
                    .map(|part| access(&part.memory, &part.first, Moved::Box(part.bytes), Effect::Read));
                ([all.next().flatten(), all.next().flatten()], None)
            }
            Stmt::TensorMma(product) => {
                let mut all = product
                    .shared()
                    .map(|part| access(&part.memory, &part.first, Moved::Box(part.bytes), Effect::Read));
                ([all.next().flatten(), all.next().flatten()], None)
            }
            Stmt::Inst(call) => ([None, None], Some(&**call)),
            Stmt::Op { .. } | Stmt::Let { .. } | Stmt::Declare(_) | Stmt::Set { .. } => ([None, None], None),
            Stmt::Move { .. } | Stmt::For { .. } | Stmt::If { .. } | Stmt::Unless { .. } => ([None, None], None),
            Stmt::IfValue { .. } | Stmt::Role { .. } | Stmt::Elect { .. } => ([None, None], None),
            Stmt::Assign { .. } | Stmt::AssignPair { .. } => ([None, None], None),
            Stmt::LetValue { .. } | Stmt::Mma(_) | Stmt::TensorMove(_) | Stmt::Advance { .. } => ([None, None], None),
        };
        own.into_iter().flatten().chain(call.into_iter().flat_map(Call::accesses))
    }

    /// Calls `visit` on each array through which it moves vectors, or from which its instruction takes them, with the bytes
    /// of a vector.
    pub fn for_each_vector(
        &self,
        registers: &Arena<RegArray>,
        memories: &Arena<Memory>,
        visit: &mut dyn FnMut(Handle<RegArray>, i64),
    ) {
        let bytes = |array: Handle<RegArray>| registers[array].dtype.bytes();
        for access in self.accesses() {
            if let Moved::Registers(regs) = access.moved {
                visit(regs.array, access.bytes_in(registers, memories));
            }
        }
        match self {
            Stmt::Inst(call) => {
                let Call { inst, to, from, .. } = &**call;
                let InstInfo { result, registers, .. } = inst.info();
                for (regs, operand) in to.iter().zip(&result).chain(from.iter().zip(registers)) {
                    if matches!(operand, RegisterOperand::Words(_)) {
                        visit(regs.array, WORD);
                    }
                }
            }
            Stmt::Mma(product) => {
                let Mma { sums, a, b, .. } = &**product;
                [sums, a, b].iter().for_each(|regs| visit(regs.array, bytes(regs.array).max(WORD)));
            }
            Stmt::WarpgroupMma(product) => {
                let all = product.left_registers().into_iter().chain([&product.sums]);
                all.for_each(|regs| visit(regs.array, bytes(regs.array).max(WORD)));
            }
            Stmt::TensorMove(moved) => visit(moved.registers.array, WORD),
            Stmt::TensorMma(_) => {}
            Stmt::Move { to, from } if is_word(registers, [to, from]) => {
                [to, from].iter().for_each(|regs| visit(regs.array, WORD));
            }
            Stmt::AssignPair { to, values } => {
                visit(to.array, 2 * bytes(to.array));
                let packed = Packed::of(registers, values.each_ref());
                packed.for_each_pair(&mut |array| visit(array, 2 * bytes(array)));
            }
            Stmt::Op { .. } | Stmt::Let { .. } | Stmt::Declare(_) | Stmt::Load { .. } | Stmt::Store { .. } => {}
            Stmt::Lookup { .. } | Stmt::Set { .. } | Stmt::Move { .. } | Stmt::For { .. } | Stmt::If { .. } => {}
            Stmt::Unless { .. } | Stmt::IfValue { .. } | Stmt::Assign { .. } | Stmt::LetValue { .. } => {}
            Stmt::Role { .. } | Stmt::Elect { .. } | Stmt::TensorCopy(_) | Stmt::Advance { .. } => {}
        }
    }

    /// The variables that it defines: that of a loop for the statements inside it, all others for the statements that
    /// follow.
    pub fn defines(&self) -> &[Var] {
        match self {
            Stmt::Let { var, .. } | Stmt::LetValue { var, .. } => std::slice::from_ref(var),
            Stmt::For { counter, .. } => std::slice::from_ref(&counter.var),
            Stmt::Lookup { vars, .. } => vars,
            Stmt::Op { .. } | Stmt::Declare(_) | Stmt::Load { .. } | Stmt::Store { .. } | Stmt::Set { .. } => &[],
            Stmt::Move { .. } | Stmt::If { .. } | Stmt::Unless { .. } | Stmt::IfValue { .. } => &[],
            Stmt::Assign { .. }
            | Stmt::Role { .. }
            | Stmt::Elect { .. }
            | Stmt::TensorCopy(_)
            | Stmt::Advance { .. } => &[],
            Stmt::AssignPair { .. }
            | Stmt::Mma(_)
            | Stmt::WarpgroupMma(_)
            | Stmt::TensorMma(_)
            | Stmt::TensorMove(_)
            | Stmt::Inst(_) => &[],
        }
    }

    /// The variables that it defines, mutably.
    pub fn defines_mut(&mut self) -> &mut [Var] {
        match self {
            Stmt::Let { var, .. } | Stmt::LetValue { var, .. } => std::slice::from_mut(var),
            Stmt::For { counter, .. } => std::slice::from_mut(&mut counter.var),
            Stmt::Lookup { vars, .. } => vars,
            Stmt::Op { .. } | Stmt::Declare(_) | Stmt::Load { .. } | Stmt::Store { .. } | Stmt::Set { .. } => &mut [],
            Stmt::Move { .. } | Stmt::If { .. } | Stmt::Unless { .. } | Stmt::IfValue { .. } => &mut [],
            Stmt::Assign { .. }
            | Stmt::Role { .. }
            | Stmt::Elect { .. }
            | Stmt::TensorCopy(_)
            | Stmt::Advance { .. } => &mut [],
            Stmt::AssignPair { .. }
            | Stmt::Mma(_)
            | Stmt::WarpgroupMma(_)
            | Stmt::TensorMma(_)
            | Stmt::TensorMove(_)
            | Stmt::Inst(_) => &mut [],
        }
    }

    /// Whether the variables that it defines stand for data, which is known only when the program runs.
    pub fn names_data(&self) -> bool {
        !self.defines().is_empty() && !self.values().is_empty()
    }

    /// The values that it computes.
    pub fn values(&self) -> &[Value] {
        match self {
            Stmt::Assign { value, .. } | Stmt::LetValue { value, .. } | Stmt::IfValue { cond: value, .. } => {
                std::slice::from_ref(value)
            }
            Stmt::AssignPair { values, .. } => values,
            Stmt::Op { .. } | Stmt::Let { .. } | Stmt::Declare(_) | Stmt::Load { .. } | Stmt::Store { .. } => &[],
            Stmt::Lookup { .. } | Stmt::Set { .. } | Stmt::Move { .. } | Stmt::For { .. } | Stmt::If { .. } => &[],
            Stmt::Unless { .. } | Stmt::Role { .. } | Stmt::Elect { .. } => &[],
            Stmt::Mma(_) | Stmt::TensorCopy(_) | Stmt::Inst(_) | Stmt::Advance { .. } | Stmt::WarpgroupMma(_) => &[],
            Stmt::TensorMma(_) | Stmt::TensorMove(_) => &[],
        }
    }

    /// The values that it computes, mutably.
    pub fn values_mut(&mut self) -> &mut [Value] {
        match self {
            Stmt::Assign { value, .. } | Stmt::LetValue { value, .. } | Stmt::IfValue { cond: value, .. } => {
                std::slice::from_mut(value)
            }
            Stmt::AssignPair { values, .. } => values,
            Stmt::Op { .. } | Stmt::Let { .. } | Stmt::Declare(_) | Stmt::Load { .. } | Stmt::Store { .. } => &mut [],
            Stmt::Lookup { .. } | Stmt::Set { .. } | Stmt::Move { .. } | Stmt::For { .. } | Stmt::If { .. } => &mut [],
            Stmt::Unless { .. } | Stmt::Role { .. } | Stmt::Elect { .. } => &mut [],
            Stmt::Mma(_) | Stmt::TensorCopy(_) | Stmt::Inst(_) | Stmt::Advance { .. } | Stmt::WarpgroupMma(_) => {
                &mut []
            }
            Stmt::TensorMma(_) | Stmt::TensorMove(_) => &mut [],
        }
    }

    /// Calls `visit` on the expressions of its named values, indices, bounds and conditions, in order. Register indices are
    /// not visited: they only contain variables of unrolled loops.
    pub fn exprs(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            Stmt::Let { value, .. } => visit(value),
            Stmt::Load { index, .. } | Stmt::Store { index, .. } | Stmt::Lookup { index, .. } => visit(index),
            Stmt::Assign { .. } | Stmt::AssignPair { .. } | Stmt::LetValue { .. } | Stmt::IfValue { .. } => {
                let mut index = |part: &Value| {
                    if let Value::Index(_, index) = part {
                        visit(index);
                    }
                };
                self.values().iter().for_each(|value| value.for_each(&mut index));
            }
            Stmt::Inst(call) => call.memory.iter().map(|(_, index)| index).chain(&call.arguments).for_each(visit),
            Stmt::If { cond, .. } => cond.sides().into_iter().for_each(visit),
            Stmt::Unless { conds, .. } => conds.iter().flat_map(Cond::sides).for_each(visit),
            Stmt::For { counter, .. } => [&counter.begin, &counter.end].into_iter().for_each(visit),
            Stmt::TensorCopy(copy) => {
                let full = copy.full().map(|(_, stage)| stage);
                std::iter::once(&copy.shared.1).chain(full).chain(copy.part.exprs()).for_each(visit)
            }
            Stmt::WarpgroupMma(product) => {
                product.shared().flat_map(|part| [&part.first, &part.offset]).for_each(visit);
            }
            Stmt::TensorMma(product) => {
                let factors = product.shared().flat_map(|part| [&part.first, &part.offset]);
                factors.chain(product.addresses()).for_each(visit);
            }
            Stmt::TensorMove(moved) => visit(&moved.address),
            Stmt::Advance { by, .. } => visit(by),
            Stmt::Op { .. } | Stmt::Declare(_) | Stmt::Set { .. } | Stmt::Move { .. } | Stmt::Mma(_) => {}
            Stmt::Role { .. } | Stmt::Elect { .. } => {}
        }
    }

    /// The same as [`exprs`](Stmt::exprs), mutably.
    pub fn exprs_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            Stmt::Let { value, .. } => visit(value),
            Stmt::Load { index, .. } | Stmt::Store { index, .. } | Stmt::Lookup { index, .. } => visit(index),
            Stmt::Assign { .. } | Stmt::AssignPair { .. } | Stmt::LetValue { .. } | Stmt::IfValue { .. } => {
                self.values_mut().iter_mut().for_each(|value| value.for_each_index_mut(visit));
            }
            Stmt::Inst(call) => {
                call.memory.iter_mut().map(|(_, index)| index).chain(&mut call.arguments).for_each(visit);
            }
            Stmt::If { cond, .. } => cond.sides_mut().into_iter().for_each(visit),
            Stmt::Unless { conds, .. } => conds.iter_mut().flat_map(Cond::sides_mut).for_each(visit),
            Stmt::For { counter, .. } => [&mut counter.begin, &mut counter.end].into_iter().for_each(visit),
            Stmt::TensorCopy(copy) => copy.exprs_mut().for_each(visit),
            Stmt::WarpgroupMma(product) => {
                product.shared_mut().flat_map(|part| [&mut part.first, &mut part.offset]).for_each(visit);
            }
            Stmt::TensorMma(product) => {
                visit(&mut product.sums);
                if let TensorLeft::Tensor(a) = &mut product.a {
                    visit(a);
                }
                product.shared_mut().flat_map(|part| [&mut part.first, &mut part.offset]).for_each(visit);
            }
            Stmt::TensorMove(moved) => visit(&mut moved.address),
            Stmt::Advance { by, .. } => visit(by),
            Stmt::Op { .. } | Stmt::Declare(_) | Stmt::Set { .. } | Stmt::Move { .. } | Stmt::Mma(_) => {}
            Stmt::Role { .. } | Stmt::Elect { .. } => {}
        }
    }

    /// Calls `visit` on the memory and the index of each of its accesses, mutably.
    pub fn for_each_place_mut(&mut self, visit: &mut dyn FnMut(Handle<Memory>, &mut Expr)) {
        match self {
            Stmt::Load { memory, index, .. } | Stmt::Store { memory, index, .. } => visit(*memory, index),
            Stmt::Lookup { table, index, .. } => visit(*table, index),
            Stmt::Inst(call) => call.memory.iter_mut().for_each(|(memory, index)| visit(*memory, index)),
            Stmt::TensorCopy(copy) => copy.places_mut().for_each(|(memory, index)| visit(*memory, index)),
            Stmt::WarpgroupMma(product) => {
                product.shared_mut().for_each(|part| visit(part.memory, &mut part.first));
            }
            Stmt::TensorMma(product) => {
                product.shared_mut().for_each(|part| visit(part.memory, &mut part.first));
            }
            Stmt::Op { .. } | Stmt::Let { .. } | Stmt::Declare(_) | Stmt::Set { .. } | Stmt::Move { .. } => {}
            Stmt::For { .. } | Stmt::If { .. } | Stmt::Unless { .. } | Stmt::IfValue { .. } => {}
            Stmt::Role { .. } | Stmt::Elect { .. } | Stmt::Advance { .. } => {}
            Stmt::Assign { .. } | Stmt::AssignPair { .. } | Stmt::LetValue { .. } | Stmt::Mma(_) => {}
            Stmt::TensorMove(_) => {}
        }
    }

    /// The scope in which it orders accesses to memory: `Thread` for everything except barriers, since the accesses of
    /// one thread are in order anyway.
    pub fn orders(&self) -> Scope {
        match self {
            Stmt::Inst(call) => call.inst.info().orders,
            Stmt::Op { .. } | Stmt::Let { .. } | Stmt::Declare(_) | Stmt::Load { .. } => Scope::Thread,
            Stmt::Store { .. } | Stmt::Lookup { .. } | Stmt::Set { .. } | Stmt::Move { .. } => Scope::Thread,
            Stmt::For { .. } | Stmt::If { .. } | Stmt::Unless { .. } | Stmt::IfValue { .. } => Scope::Thread,
            Stmt::Assign { .. } | Stmt::AssignPair { .. } | Stmt::LetValue { .. } => Scope::Thread,
            Stmt::Mma(_) | Stmt::Role { .. } | Stmt::Elect { .. } | Stmt::TensorCopy(_) => Scope::Thread,
            Stmt::WarpgroupMma(_) | Stmt::TensorMma(_) | Stmt::TensorMove(_) | Stmt::Advance { .. } => Scope::Thread,
        }
    }

    /// How it, alone, orders the accesses of its thread for other threads. Only instructions do.
    pub fn memory_order(&self) -> MemoryOrder {
        if let Stmt::Inst(call) = self { call.ordering.order } else { MemoryOrder::Relaxed }
    }
}

impl Call {
    /// Its accesses to memory, one for each operand in memory.
    fn accesses(&self) -> impl Iterator<Item = MemoryAccess<'_>> {
        self.memory.iter().zip(self.inst.info().memory).map(|((memory, index), row)| {
            let moved = row.bytes.map_or(Moved::Elements(1), Moved::Bytes);
            MemoryAccess { memory: *memory, index, moved, lanes: row.lanes, effect: row.effect }
        })
    }
}

/// Calls `visit` on the registers that a value reads.
fn registers_of(value: &Value, visit: &mut dyn FnMut(Effect, &Regs)) {
    value.for_each(&mut |part| {
        if let Value::Reg(array, at) = part {
            visit(Effect::Read, &Regs { array: *array, first: at.clone(), count: 1, step: 1 });
        }
    });
}

/// Calls `visit` on every statement of `body`, before those inside it.
pub fn for_each_stmt<'a>(body: &'a [Stmt], visit: &mut dyn FnMut(&'a Stmt)) {
    for stmt in body {
        visit(stmt);
        for_each_stmt(stmt.inner(), visit);
    }
}

/// Calls `visit` on every statement of `body`, before those inside it.
pub fn for_each_stmt_mut(body: &mut [Stmt], visit: &mut dyn FnMut(&mut Stmt)) {
    for stmt in body {
        visit(stmt);
        for_each_stmt_mut(stmt.inner_mut(), visit);
    }
}

/// Calls `visit` on the expressions of every statement of `body`, in order; see [`Stmt::exprs`].
pub fn for_each_expr(body: &[Stmt], visit: &mut dyn FnMut(&Expr)) {
    for_each_stmt(body, &mut |stmt| stmt.exprs(visit));
}

/// Bytes of the widest vector that moves through each array of registers, or that an instruction takes from it.
pub fn widest_accesses(
    registers: &Arena<RegArray>,
    memories: &Arena<Memory>,
    body: &[Stmt],
) -> BTreeMap<Handle<RegArray>, i64> {
    let mut widest: BTreeMap<Handle<RegArray>, i64> = BTreeMap::new();
    for_each_stmt(body, &mut |stmt| {
        stmt.for_each_vector(registers, memories, &mut |array, bytes| {
            let most = widest.entry(array).or_insert(0);
            *most = bytes.max(*most);
        });
    });
    widest
}

#[cfg(test)]
mod tests {
    use tilewright_diag::Span;
    use tilewright_layout::DType;

    use super::*;
    use crate::thread::inst::Inst;
    use crate::thread::mma::MmaInst;
    use crate::thread::program::{MemorySpace, Unroll};

    fn regs(first: i64) -> Regs {
        let array = Arena::new().push(RegArray { name: "r".to_string(), dtype: DType::F32, len: 64, vector: 1 });
        Regs { array, first: Expr::constant(first), count: 1, step: 1 }
    }

    fn memory() -> Handle<Memory> {
        Arena::new().push(Memory::new("t", DType::F32, 64, (MemorySpace::Shared, 16), Span::here()))
    }

    fn reads(stmt: &Stmt) -> Vec<String> {
        let mut found = Vec::new();
        stmt.reads(&mut |resource| found.push(text(resource)));
        found
    }

    fn writes(stmt: &Stmt) -> Vec<String> {
        let mut found = Vec::new();
        stmt.writes(&mut |resource| found.push(text(resource)));
        found
    }

    fn text(resource: Resource<'_>) -> String {
        match resource {
            Resource::Registers(regs) => format!("r[{}]", regs.first),
            Resource::Memory(access) => format!("t[{}]", access.index),
        }
    }

    #[test]
    fn an_atomic_addition_reads_and_writes_in_one_access() {
        let at = vec![(memory(), Expr::constant(7))];
        let stmt = Stmt::from(Call { from: vec![regs(0)], memory: at, ..Call::plain(Inst::AtomicAdd) });
        assert_eq!((reads(&stmt), writes(&stmt)), (vec!["r[0]".into(), "t[7]".into()], vec!["t[7]".into()]));
        assert_eq!(stmt.accesses().count(), 1);
    }

    #[test]
    fn a_product_reads_and_writes_its_sums() {
        let stmt = Stmt::from(Mma { inst: MmaInst::F16K16F32, sums: regs(0), a: regs(16), b: regs(32) });
        assert_eq!((reads(&stmt).len(), writes(&stmt)), (3, vec!["r[0]".into()]));
    }

    #[test]
    fn a_value_reads_all_registers_inside() {
        let part = |at: i64| Box::new(Value::reg(regs(0).array, at));
        let cond = Value::With(part(3), 0, part(5));
        let stmt = Stmt::IfValue { cond, is_uniform: true, body: vec![Stmt::from(Call::plain(Inst::SyncWarp))] };
        assert_eq!(reads(&stmt), ["r[3]", "r[5]"]);
        assert_eq!(stmt.orders(), Scope::Thread);
        assert_eq!(stmt.inner()[0].orders(), Scope::Warp);
    }

    #[test]
    fn only_names_of_values_stand_for_data() {
        let var = Var::new("x", 0, 7);
        let value = Value::reg(regs(0).array, 0);
        let counted = Stmt::For { counter: crate::Counter::of(var.clone()), unroll: Unroll::Auto, body: Vec::new() };
        assert!(Stmt::LetValue { var, value }.names_data());
        assert!(!counted.names_data());
    }
}
