use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{MemorySpace, RegArray, Value, verify};
use tilewright_ir::tile::Narrowing;
use tilewright_ir::{Arena, Scalar, Target};
use tilewright_layout::DType;

use super::*;

/// The CUDA of two floats that are rounded to halves 0 and 1; `second` makes the second value, of a register of `f` and
/// the array of halves. With `as_words`, both are stored at once.
fn rounded(as_words: bool, second: impl Fn(Value, Handle<RegArray>) -> Value) -> String {
    let (mut memories, mut registers) = (Arena::new(), Arena::new());
    let y = memories.push(Memory {
        name: "y".to_string(),
        dtype: DType::F16,
        elements: 64,
        space: MemorySpace::Global { read_only: false, may_alias: false },
        values: Vec::new(),
        alignment: 16,
        span: Span::here(),
    });
    let mut array = |name: &str, dtype| registers.push(RegArray { name: name.to_string(), dtype, len: 2, vector: 1 });
    let (f, h) = (array("f", DType::F32), array("h", DType::F16));
    let part = |array, first: i64, count| Regs { array, first: Expr::constant(first), count, step: 1 };
    let half = |value| Value::Cast(DType::F16, Narrowing::Fits, Box::new(value));
    let tid = Expr::var(&Var::new("tid", 0, 31));
    let assign = |at: i64, value| Stmt::Assign { to: part(h, at, 1), value };
    let store = |at: i64, count: i64| Stmt::Store { memory: y, index: &tid * 2 + at, from: part(h, at, count) };
    let mut body = vec![Stmt::Declare(f), Stmt::Declare(h)];
    body.extend([f, h].map(|array| Stmt::Set { to: part(array, 0, 2), value: Scalar::Float(1.0) }));
    body.push(assign(0, half(Value::reg(f, 0))));
    body.push(assign(1, second(Value::reg(f, 1), h)));
    body.extend(if as_words { vec![store(0, 2)] } else { vec![store(0, 1), store(1, 1)] });
    let program = Program {
        name: "k".to_string(),
        target: Target::Sm100a,
        sizes: Vec::new(),
        grid: [1, 1, 1].map(Expr::constant),
        threads: 32,
        memories,
        registers,
        notes: Arena::new(),
        body,
        plans: Vec::new(),
    };
    crate::emit(&verify(program).expect("a valid program")).expect("its text").cuda
}

fn half(value: Value) -> Value {
    Value::Cast(DType::F16, Narrowing::Fits, Box::new(value))
}

#[test]
fn two_floats_are_rounded_to_a_word_that_moves_as_a_whole() {
    let text = rounded(true, |value, _| half(value));
    assert!(text.contains("  reinterpret_cast<unsigned int&>(h[0]) = to_f16x2(f[0], f[1]);\n"), "{text}");
}

#[test]
fn halves_that_move_one_by_one_are_rounded_one_by_one() {
    let text = rounded(false, |value, _| half(value));
    assert!(text.contains("  h[0] = to_f16(f[0]);\n  h[1] = to_f16(f[1]);\n"), "{text}");
}

#[test]
fn a_half_that_the_other_value_reads_is_rounded_first() {
    let text = rounded(true, |_, h| half(Value::Cast(DType::F32, Narrowing::Fits, Box::new(Value::reg(h, 0)))));
    assert!(text.contains("  h[0] = to_f16(f[0]);\n  h[1] = to_f16(from_f16(h[0]));\n"), "{text}");
}

#[test]
fn other_values_are_assigned_one_by_one() {
    let text = rounded(true, |_, _| Value::Const(DType::F16, Scalar::Float(2.0)));
    assert!(text.contains("  h[0] = to_f16(f[0]);\n  h[1] = "), "{text}");
}
