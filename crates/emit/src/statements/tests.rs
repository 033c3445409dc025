use tilewright_expr::Expr;
use tilewright_ir::thread::{RegArray, Unroll, Value, verify};
use tilewright_ir::tile::{ElementOp, Narrowing};
use tilewright_ir::{Arena, Scalar, Target};
use tilewright_layout::DType;

use super::*;

/// The CUDA of two registers of `to` that are assigned these values at once; the values are made of `f`, two floats.
fn paired(to: DType, values: impl Fn(Handle<RegArray>) -> [Value; 2]) -> String {
    let mut registers = Arena::new();
    let mut array = |name: &str, dtype| registers.push(RegArray { name: name.to_string(), dtype, len: 2, vector: 1 });
    let (f, h) = (array("f", DType::F32), array("h", to));
    let whole = |array| Regs { array, first: Expr::constant(0), count: 2, step: 1 };
    let body = vec![
        Stmt::Declare(f),
        Stmt::Declare(h),
        Stmt::Set { to: whole(f), value: Scalar::Float(1.0) },
        Stmt::AssignPair { to: whole(h), values: values(f) },
    ];
    let program = Program { registers, body, ..Program::new("k", Target::Sm100a, 32) };
    crate::emit(&verify(program).expect("a valid program")).expect("its text").cuda
}

#[test]
fn two_floats_are_rounded_to_a_word() {
    let half = |value| Value::Cast(DType::F16, Narrowing::Fits, Box::new(value));
    let text = paired(DType::F16, |f| [0, 1].map(|at| half(Value::reg(f, at))));
    assert!(text.contains("  word(h) = to_f16x2(f[0], f[1]);\n"), "{text}");
}

#[test]
fn two_floats_are_computed_as_a_pair() {
    let number = |value| Value::Const(DType::F32, Scalar::Float(value));
    let of = |op, operands: [Value; 2]| Value::Op(op, operands.to_vec());
    let text = |op: ElementOp, other: fn(Handle<RegArray>, i64) -> Value| {
        let text = paired(DType::F32, |f| [0, 1].map(|at| of(op, [Value::reg(f, at), other(f, at)])));
        text.lines().rev().nth(1).unwrap_or_default().trim().to_string()
    };
    assert_eq!(text(ElementOp::Mul, Value::reg), "pair(h) = __fmul2_rn(pair(f), pair(f));");
    assert_eq!(text(ElementOp::Sub, |f, _| Value::reg(f, 1)), "pair(h) = __fadd2_rn(pair(f), twice(-f[1]));");
    let difference = "pair(h) = __ffma2_rn(make_float2(f[1], f[0]), twice(-1.0f), pair(f));";
    assert_eq!(text(ElementOp::Sub, |f, at| Value::reg(f, 1 - at)), difference);
    let fused = paired(DType::F32, |f| {
        [0, 1].map(|at| Value::Op(ElementOp::Fma, vec![Value::reg(f, at), number(2.0), number(at as f64)]))
    });
    let fused_line = "pair(h) = __ffma2_rn(pair(f), twice(2.0f), make_float2(0.0f, 1.0f));";
    assert!(fused.contains(fused_line), "{fused}");
}

/// The CUDA of a store of 1.0 under `tid < 4`, and of another one unless `conds` hold.
fn choice(conds: Vec<Cond>) -> String {
    let mut program = Program::new("k", Target::Sm100a, 32);
    let r = program.registers.push(RegArray { name: "r".to_string(), dtype: DType::F32, len: 1, vector: 1 });
    let to = |value: f64| Stmt::Set {
        to: Regs { array: r, first: Expr::constant(0), count: 1, step: 1 },
        value: Scalar::Float(value),
    };
    let tid = Expr::var(&Var::new("tid", 0, 31));
    let inside = Stmt::If { cond: Cond::Less(tid, Expr::constant(4)), body: vec![to(1.0)] };
    program.body = vec![Stmt::Declare(r), inside, Stmt::Unless { conds, body: vec![to(2.0)] }];
    let text = crate::emit(&verify(program).expect("a valid program")).expect("its text").cuda;
    text.split_once("float r;\n").map_or(String::new(), |(_, body)| body.to_string())
}

#[test]
fn statements_for_the_other_threads_follow_else() {
    let tid = Expr::var(&Var::new("tid", 0, 31));
    let below = |most: i64| Cond::Less(tid.clone(), Expr::constant(most));
    let both = "  if (tid < 4) {\n    r = 1.0f;\n  } else {\n    r = 2.0f;\n  }\n}\n";
    assert_eq!(choice(vec![below(4)]), both);
    let others = "  if (tid < 4) {\n    r = 1.0f;\n  }\n  if (!(tid < 4 && tid < 3)) {\n    r = 2.0f;\n  }\n}\n";
    assert_eq!(choice(vec![below(4), below(3)]), others);
}

#[test]
fn an_array_is_declared_with_its_values() {
    let text = values_of(2, &[0, 1]);
    assert!(text.contains("  float h[2] = {1.0f, 1.0f};\n"), "{text}");
    let text = values_of(2, &[1, 0]);
    assert!(text.contains("  float h[2];\n  h[1] = 1.0f;\n"), "{text}");
}

/// The CUDA of an array of registers that are assigned in this order.
fn values_of(len: i64, order: &[i64]) -> String {
    let mut registers = Arena::new();
    let h = registers.push(RegArray { name: "h".to_string(), dtype: DType::F32, len, vector: 1 });
    let one = Value::Const(DType::F32, Scalar::Float(1.0));
    let assigned = |at: &i64| Stmt::Assign {
        to: Regs { array: h, first: Expr::constant(*at), count: 1, step: 1 },
        value: one.clone(),
    };
    let body = std::iter::once(Stmt::Declare(h)).chain(order.iter().map(assigned)).collect();
    let program = Program { registers, body, ..Program::new("k", Target::Sm100a, 32) };
    crate::emit(&verify(program).expect("a valid program")).expect("its text").cuda
}

#[test]
fn a_loop_of_one_short_statement_is_on_one_line() {
    let looped = |name: &str| {
        let mut registers = Arena::new();
        let h = registers.push(RegArray { name: name.to_string(), dtype: DType::F32, len: 4, vector: 1 });
        let var = Var::new("i", 0, 3);
        let to = Regs { array: h, first: Expr::var(&var), count: 1, step: 1 };
        let value = Value::Const(DType::F32, Scalar::Float(1.0));
        let inner = vec![Stmt::Assign { to, value }];
        let body = vec![Stmt::Declare(h), Stmt::For { counter: Counter::of(var), unroll: Unroll::Full, body: inner }];
        let program = Program { registers, body, ..Program::new("k", Target::Sm100a, 32) };
        crate::emit(&verify(program).expect("a valid program")).expect("its text").cuda
    };
    let short = looped("h");
    assert!(short.contains("  #pragma unroll\n  for (int i = 0; i < 4; ++i) h[i] = 1.0f;\n"), "{short}");
    let name = "h".repeat(90);
    let long = looped(&name);
    assert!(long.contains(&format!("++i) {{\n    {name}[i] = 1.0f;\n  }}\n")), "{long}");
}
