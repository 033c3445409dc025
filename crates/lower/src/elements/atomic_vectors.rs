//! Atomic additions to neighbouring elements, as one instruction.
//!
//! Elements of f32, f16 or bf16 in global memory, up to 16 bytes of them, whose first is aligned to all of them, can be added
//! to at once, which takes one request of the warp instead of several to the same sectors. Each element is still changed on its
//! own.

use tilewright_expr::linear::normalize;
use tilewright_ir::thread::{Call, Inst, Memory, Program, Regs, Resource, Stmt};
use tilewright_ir::tile::MemoryOrdering;
use tilewright_layout::DType;

/// The instructions for several elements of a type, by their number, the widest first.
fn widths(dtype: DType) -> &'static [(usize, Inst)] {
    match dtype {
        DType::F32 => &[(4, Inst::AtomicAddX4), (2, Inst::AtomicAddX2)],
        DType::F16 => &[(8, Inst::AtomicAddF16X8), (4, Inst::AtomicAddF16X4), (2, Inst::AtomicAddF16X2)],
        DType::BF16 => &[(8, Inst::AtomicAddBf16X8), (4, Inst::AtomicAddBf16X4), (2, Inst::AtomicAddBf16X2)],
        _ => &[],
    }
}

/// The statements with neighbouring additions joined. An addition may come after statements on registers that follow it.
pub(super) fn with_atomic_vectors(program: &Program, body: Vec<Stmt>) -> Vec<Stmt> {
    let (mut out, mut run) = (Vec::with_capacity(body.len()), Run { program, calls: Vec::new() });
    for stmt in body {
        let stmt = stmt.map_inner(|inner| with_atomic_vectors(program, inner));
        match stmt {
            Stmt::Inst(call) if is_addition(program, &call) => {
                if !run.continues(&call) {
                    run.end(&mut out);
                }
                run.calls.push(*call);
            }
            stmt => {
                if !run.may_follow(&stmt) {
                    run.end(&mut out);
                }
                out.push(stmt);
            }
        }
    }
    run.end(&mut out);
    out
}

/// Whether it is an addition to an element in global memory of a type that has vectors.
fn is_addition(program: &Program, call: &Call) -> bool {
    let is_one = |memory: &Memory| memory.is_global() && !widths(memory.dtype).is_empty();
    let is_plain = call.to.is_none() && call.ordering == MemoryOrdering::default();
    is_plain && call.inst == Inst::AtomicAdd && call.memory.iter().all(|(memory, _)| is_one(&program.memories[*memory]))
}

/// Additions to neighbouring elements, in order.
struct Run<'a> {
    program: &'a Program,
    calls: Vec<Call>,
}

impl Run<'_> {
    /// Whether an addition is to the element behind the last one.
    fn continues(&self, call: &Call) -> bool {
        let (Some(last), [(memory, index)]) = (self.calls.last(), &call.memory[..]) else { return true };
        matches!(&last.memory[..], [(of_last, before)]
            if of_last == memory && normalize(&(index - before)).as_const() == Some(1))
    }

    /// Whether the additions may come after a statement: it touches only registers, and none that they add.
    fn may_follow(&self, stmt: &Stmt) -> bool {
        let added = |regs: &Regs| self.calls.iter().flat_map(|call| &call.from).any(|added| may_overlap(added, regs));
        let is_on_registers = matches!(
            stmt,
            Stmt::Let { .. }
                | Stmt::Declare(_)
                | Stmt::Set { .. }
                | Stmt::Move { .. }
                | Stmt::Assign { .. }
                | Stmt::AssignPair { .. }
        );
        let mut writes_added = false;
        stmt.writes(&mut |resource| {
            writes_added |= matches!(resource, Resource::Registers(regs) if added(regs));
        });
        is_on_registers && !writes_added
    }

    /// Adds the additions to `out`, as few as the alignment of their elements allows.
    fn end(&mut self, out: &mut Vec<Stmt>) {
        let mut calls = std::mem::take(&mut self.calls);
        while let Some(first) = calls.first() {
            let fits = |width: usize| calls.len() >= width && self.is_aligned(first, width);
            let memory = first.memory.clone();
            let dtype = memory.first().map(|(memory, _)| self.program.memories[*memory].dtype);
            let widths = dtype.map_or(&[][..], widths).iter().copied();
            let (width, inst) = widths.into_iter().find(|(width, _)| fits(*width)).unwrap_or((1, Inst::AtomicAdd));
            let from = calls.drain(..width).flat_map(|call| call.from).collect();
            out.push(Stmt::from(Call { from, memory, ..Call::plain(inst) }));
        }
    }

    /// Whether so many elements from the one of an addition on begin at a multiple of their bytes.
    fn is_aligned(&self, call: &Call, width: usize) -> bool {
        let width = width as i64;
        call.memory.iter().all(|(memory, index)| {
            let memory = &self.program.memories[*memory];
            index.multiple() % width == 0 && memory.alignment % (width * memory.dtype.bytes()) == 0
        })
    }
}

/// Whether one register may be among others.
fn may_overlap(one: &Regs, others: &Regs) -> bool {
    let number = |regs: &Regs, at: i64| normalize(&(&regs.first + at * regs.step)).as_const();
    let are_apart = |at: i64| number(one, 0).zip(number(others, at)).is_some_and(|(one, other)| one != other);
    one.array == others.array && !(0..others.count).all(are_apart)
}

#[cfg(test)]
mod tests;
