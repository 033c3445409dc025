use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};
use tilewright_ir::Handle;
use tilewright_ir::thread::{MemorySpace, RegArray, Value};
use tilewright_ir::{Scalar, Target};

use super::*;
use crate::builder::regs;

/// A program with a tensor that is aligned to 16 bytes, and an array of registers.
fn program(dtype: DType) -> (Program, Handle<Memory>, Handle<RegArray>) {
    let mut program = Program::new("k", Target::Sm90a, 32);
    let space = MemorySpace::Global { read_only: false, may_alias: false };
    let memory = program.memories.push(Memory::new("x", dtype, 1024, (space, 16), Span::here()));
    let array = program.registers.push(RegArray { name: "r".to_string(), dtype, len: 8, vector: 1 });
    (program, memory, array)
}

/// The first element of a thread: a multiple of 4.
fn first() -> Expr {
    Expr::var(&Var::new("t", 0, 31)) * 4
}

fn addition(memory: Handle<Memory>, array: Handle<RegArray>, index: Expr, register: i64) -> Stmt {
    let memory = vec![(memory, normalize(&index))];
    Stmt::from(Call { from: vec![regs(array, register, 1)], memory, ..Call::plain(Inst::AtomicAdd) })
}

/// The instructions of the additions to `count` elements from one on.
fn joined(dtype: DType, from: i64, count: i64) -> Vec<Inst> {
    let (program, memory, array) = program(dtype);
    let body = (0..count).map(|at| addition(memory, array, first() + (from + at), at)).collect();
    insts(&with_atomic_vectors(&program, body))
}

fn insts(body: &[Stmt]) -> Vec<Inst> {
    let inst = |stmt: &Stmt| match stmt {
        Stmt::Inst(call) => Some(call.inst),
        _ => None,
    };
    body.iter().filter_map(inst).collect()
}

#[test]
fn neighbours_are_joined_as_far_as_they_are_aligned() {
    use Inst::{AtomicAdd, AtomicAddX2, AtomicAddX4};
    assert_eq!(joined(DType::F32, 0, 8), [AtomicAddX4, AtomicAddX4]);
    assert_eq!(joined(DType::F32, 0, 3), [AtomicAddX2, AtomicAdd]);
    assert_eq!(joined(DType::F32, 1, 4), [AtomicAdd, AtomicAddX2, AtomicAdd]);
    assert_eq!(joined(DType::F32, 2, 4), [AtomicAddX2, AtomicAddX2]);
}

#[test]
fn halves_are_joined_up_to_16_bytes() {
    use Inst::{AtomicAdd, AtomicAddBf16X4, AtomicAddF16X2, AtomicAddF16X4};
    assert_eq!(joined(DType::F16, 0, 8), [AtomicAddF16X4, AtomicAddF16X4], "the first is a multiple of 4");
    assert_eq!(joined(DType::F16, 2, 3), [AtomicAddF16X2, AtomicAdd]);
    assert_eq!(joined(DType::BF16, 0, 4), [AtomicAddBf16X4]);
}

#[test]
fn other_types_have_no_vectors() {
    assert_eq!(joined(DType::F64, 0, 2), [Inst::AtomicAdd; 2]);
    assert_eq!(joined(DType::I32, 0, 2), [Inst::AtomicAdd; 2]);
}

/// What is added may be computed between the additions, but not changed.
#[test]
fn additions_follow_statements_on_other_registers() {
    let (program, memory, array) = program(DType::F32);
    let assigned =
        |register: i64| Stmt::Assign { to: regs(array, register, 1), value: Value::Const(DType::F32, Scalar::Int(1)) };
    let add = |at: i64, register: i64| addition(memory, array, first() + at, register);
    let apart = vec![assigned(0), add(0, 0), assigned(1), add(1, 1)];
    assert_eq!(insts(&with_atomic_vectors(&program, apart)), [Inst::AtomicAddX2]);
    let same = vec![assigned(0), add(0, 0), assigned(0), add(1, 0)];
    assert_eq!(insts(&with_atomic_vectors(&program, same)), [Inst::AtomicAdd; 2]);
}
