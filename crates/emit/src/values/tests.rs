use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Call, Inst, Memory, MemorySpace, Program, RegArray, Regs, Stmt, Value, verify};
use tilewright_ir::tile::ElementOp::{self, Abs, Add, Div, Fma, Lt, Max, Mul, Neg, Select, Sub};
use tilewright_ir::tile::Function;
use tilewright_ir::tile::MemoryOrdering;
use tilewright_ir::tile::Narrowing;
use tilewright_ir::{Handle, Scalar, Target};
use tilewright_layout::DType::{self, B32, B64, B128, BF16, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};

use super::Values;
use super::wrapping::Wrapping;
use crate::emit;
use crate::uses::Uses;

const EXP: ElementOp = ElementOp::Function(Function::FastExp);
const SQRT: ElementOp = ElementOp::Function(Function::Sqrt);

fn empty() -> Program {
    Program::new("k", Target::Sm100a, 32)
}

fn array(program: &mut Program, name: &str, dtype: DType) -> Handle<RegArray> {
    program.registers.push(RegArray { name: name.to_string(), dtype, len: 1, vector: 1 })
}

/// The text of a value made of three registers `a`, `b` and `c` of this dtype.
fn text(dtype: DType, build: impl Fn(Value, Value, Value) -> Value) -> String {
    let mut program = empty();
    let [a, b, c] = ["a", "b", "c"].map(|name| Value::reg(array(&mut program, name, dtype), 0));
    Values::new(&program, &Uses::of(&program)).text(&build(a, b, c)).unwrap()
}

fn of<const N: usize>(op: ElementOp, operands: [Value; N]) -> Value {
    Value::Op(op, operands.to_vec())
}

fn real(dtype: DType, value: f64) -> Value {
    Value::Const(dtype, Scalar::Float(value))
}

fn whole(dtype: DType, value: i64) -> Value {
    Value::Const(dtype, Scalar::Int(value))
}

fn index() -> Expr {
    Expr::var(&Var::new("i", 0, 3)) * 4 + 1
}

#[test]
fn parentheses_stand_where_precedence_needs_them() {
    let seen = [
        text(F32, |a, b, c| of(Mul, [of(Add, [a, b]), c])),
        text(F32, |a, b, c| of(Sub, [a, of(Sub, [b, c])])),
        text(F32, |a, b, c| of(Add, [of(Add, [a, b]), c])),
        text(F32, |a, b, c| of(Div, [a, of(Mul, [b, c])])),
        text(F32, |a, b, _| of(Neg, [of(Add, [a, b])])),
        text(F32, |a, _, _| of(Neg, [of(Neg, [a])])),
        text(F32, |a, b, _| of(EXP, [of(Sub, [a, b])])),
        text(F64, |a, b, _| of(Max, [of(EXP, [a]), b])),
    ];
    let wanted =
        ["(a + b)*c", "a - (b - c)", "a + b + c", "a/(b*c)", "-(a + b)", "-(-a)", "__expf(a - b)", "fmax(exp(a), b)"];
    assert_eq!(seen, wanted);
}

#[test]
fn selections_bind_weakest() {
    let seen = [
        text(F32, |a, b, c| of(Select, [of(Lt, [of(Add, [a.clone(), b.clone()]), c]), a, b])),
        text(F32, |a, b, c| of(Mul, [of(Select, [of(Lt, [a.clone(), b.clone()]), a, b]), c])),
        text(F32, |a, b, c| {
            let last = of(Select, [of(Lt, [b.clone(), c.clone()]), b.clone(), c]);
            of(Select, [of(Lt, [a.clone(), b]), a, last])
        }),
        text(F16, |a, b, c| of(Select, [of(Lt, [a, b]), c, real(F16, 1.0)])),
    ];
    let wanted = [
        "a + b < c ? a : b",
        "(a < b ? a : b)*c",
        "a < b ? a : b < c ? b : c",
        "from_f16(a) < from_f16(b) ? c : 0x3c00",
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn halves_are_floats_that_every_operation_rounds() {
    let seen = [
        text(F16, |a, b, _| of(Add, [a, b])),
        text(BF16, |a, _, _| of(SQRT, [a])),
        text(F16, |a, b, c| of(Mul, [of(Add, [a, b]), c])),
        text(F16, |a, b, _| of(Max, [a, of(Neg, [b])])),
        text(F16, |a, _, _| of(Mul, [a, real(F16, 0.1)])),
    ];
    let wanted = [
        "to_f16(from_f16(a) + from_f16(b))",
        "to_bf16(sqrtf(from_bf16(a)))",
        "to_f16(from_f16(to_f16(from_f16(a) + from_f16(b)))*from_f16(c))",
        "to_f16(fmaxf(from_f16(a), -from_f16(b)))",
        "to_f16(from_f16(a)*0.099975586f)",
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn signed_bytes_are_narrowed_by_shifts_for_sm_90a() {
    let mut program = Program { target: Target::Sm90a, ..empty() };
    let [a, b, c] = ["a", "b", "c"].map(|name| Value::reg(array(&mut program, name, I8), 0));
    let value = of(Mul, [of(Add, [a, b]), of(Max, [c.clone(), c])]);
    let uses = Uses::of(&program);
    let mut values = Values::new(&program, &uses);
    assert_eq!(values.text(&value).unwrap(), "signed_byte(signed_byte(a + b)*max(c, c))");
    assert_eq!(values.function_names().collect::<Vec<_>>(), ["signed_byte"]);
}

#[test]
fn narrow_integers_are_narrowed_again() {
    let seen = [
        text(I8, |a, b, _| of(Add, [a, b])),
        text(I8, |a, b, c| of(Mul, [of(Add, [a, b]), c])),
        text(U16, |a, b, _| of(Mul, [a, b])),
        text(I16, |a, b, _| of(Max, [a, b])),
        text(I8, |a, _, _| of(Neg, [a])),
        text(I8, |a, _, _| of(Abs, [a])),
        text(U8, |a, _, _| of(Abs, [a])),
        text(I64, |a, _, _| of(Abs, [a])),
        text(I32, |a, b, _| of(Div, [a, b])),
    ];
    let wanted = [
        "(signed char)(a + b)",
        "(signed char)((signed char)(a + b)*c)",
        "(unsigned short)((unsigned int)a*b)",
        "max(a, b)",
        "(signed char)-a",
        "(signed char)abs(a)",
        "a",
        "wrapping_abs(a)",
        "divide(a, b)",
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn indices_are_numbers_of_every_dtype() {
    let of_index = |dtype| text(dtype, |_, _, _| Value::Index(dtype, index()));
    let wanted = ["(float)(i*4 + 1)", "i*4 + 1", "(long long)(i*4 + 1)", "to_bf16((float)(i*4 + 1))"];
    assert_eq!([F32, U8, I64, BF16].map(of_index), wanted);
    let large = Expr::var(&Var::new("n", 0, 1 << 25));
    let seen = [
        text(I32, |a, _, _| of(Mul, [Value::Index(I32, index()), a])),
        text(F16, |a, _, _| of(Add, [a, Value::Index(F16, index())])),
        text(BF16, |_, _, _| Value::Index(BF16, large.clone())),
        text(F32, |_, _, _| Value::Index(F32, Expr::constant(3))),
    ];
    let wanted =
        ["wrapping_mul(i*4 + 1, a)", "to_f16(from_f16(a) + (float)(i*4 + 1))", "to_bf16((long long)n)", "3.0f"];
    assert_eq!(seen, wanted);
}

#[test]
fn least_integers_are_differences() {
    let least = i64::from(i32::MIN);
    assert_eq!(text(I32, |a, _, _| of(Max, [a, whole(I32, least)])), "max(a, -2147483647 - 1)");
    assert_eq!(text(I32, |a, _, _| of(Mul, [a, whole(I32, least)])), "wrapping_mul(a, -2147483647 - 1)");
}

#[test]
fn signed_integers_wrap_where_they_may_overflow() {
    let short = |value: Value| Value::Cast(I32, Narrowing::Fits, Box::new(value));
    let seen = [
        text(I32, |a, b, _| of(Sub, [a, b])),
        text(I64, |a, _, _| of(Neg, [a])),
        text(U32, |a, b, _| of(Add, [a, b])),
        text(I32, |_, _, _| of(Mul, [Value::Index(I32, index()), whole(I32, 1000)])),
        text(I32, |a, _, _| of(Add, [of(ElementOp::Min, [a, whole(I32, 7)]), whole(I32, 1)])),
        text(I32, |a, _, _| of(Add, [of(ElementOp::Max, [a, whole(I32, 7)]), whole(I32, 1)])),
        text(I32, |a, _, _| of(Div, [a, whole(I32, -7)])),
        text(I32, |a, _, _| of(Add, [of(Div, [a, whole(I32, i64::from(i32::MIN))]), whole(I32, 1)])),
        text(I16, |a, b, _| of(Add, [short(a), short(b)])),
        text(I16, |a, b, _| of(Mul, [short(a), of(Add, [short(b), whole(I32, 1 << 16)])])),
    ];
    let wanted = [
        "wrapping_sub(a, b)",
        "wrapping_neg(a)",
        "a + b",
        "(i*4 + 1)*1000",
        "min(a, 7) + 1",
        "wrapping_add(max(a, 7), 1)",
        "a/-7",
        "a/(-2147483647 - 1) + 1",
        "(int)a + (int)b",
        "wrapping_mul((int)a, (int)b + 65536)",
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn casts_round_once() {
    let casts = [
        (F32, I32, "__float2int_rz(a)"),
        (F32, U32, "__float2uint_rz(a)"),
        (F32, I64, "to_i64(a)"),
        (F64, U32, "to_u32(a)"),
        (F32, I8, "(signed char)max(min(__float2int_rz(a), 127), -128)"),
        (F64, F16, "to_f16(a)"),
        (F16, F32, "from_f16(a)"),
        (F16, BF16, "to_bf16(from_f16(a))"),
        (F16, U8, "(unsigned char)min(__float2uint_rz(from_f16(a)), 255u)"),
        (BF16, F64, "(double)from_bf16(a)"),
        (I32, BF16, "to_bf16((long long)a)"),
        (I32, F16, "to_f16((float)a)"),
        (U64, F32, "(float)a"),
        (I32, I32, "a"),
    ];
    for (from, to, wanted) in casts {
        assert_eq!(text(from, |a, _, _| Value::Cast(to, Narrowing::Wraps, Box::new(a))), wanted, "{from} to {to}");
    }
}

#[test]
fn integers_saturate_at_the_ends_that_they_can_pass() {
    let casts = [
        (I32, I8, "(signed char)max(min(a, 127), -128)"),
        (I32, U32, "(unsigned int)max(a, 0)"),
        (U32, I32, "(int)min(a, 2147483647u)"),
        (U8, I8, "(signed char)min(a, 127)"),
        (I64, U8, "(unsigned char)max(min(a, 255ll), 0ll)"),
        (I8, I32, "(int)a"),
    ];
    for (from, to, wanted) in casts {
        let seen = text(from, |a, _, _| Value::Cast(to, Narrowing::Saturates, Box::new(a)));
        assert_eq!(seen, wanted, "{from} to {to}");
    }
}

#[test]
fn a_product_that_reaches_a_sum_is_not_left_to_the_compiler() {
    let product = |a, b| of(Mul, [a, b]);
    let seen = [
        text(F32, |a, b, _| product(a, b)),
        text(F32, |a, b, c| of(Add, [product(a, b), c])),
        text(F64, |a, b, c| of(Sub, [c, of(Neg, [product(a, b)])])),
        text(F32, |a, b, c| of(Add, [of(EXP, [product(a, b)]), c])),
        text(F32, |a, b, c| of(Fma, [a.clone(), b.clone(), product(a, c)])),
        text(I32, |a, b, c| of(Add, [product(a, b), c])),
    ];
    let wanted = [
        "a*b",
        "__fmul_rn(a, b) + c",
        "c - -__dmul_rn(a, b)",
        "__expf(a*b) + c",
        "fmaf(a, b, a*c)",
        "wrapping_add(wrapping_mul(a, b), c)",
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn a_product_in_a_register_that_is_summed_is_rounded_there() {
    let mut program = empty();
    let [a, b, c] = ["a", "b", "c"].map(|name| array(&mut program, name, F32));
    let reg = |array: Handle<RegArray>| Value::reg(array, 0);
    let to = |array: Handle<RegArray>| Regs { array, first: Expr::constant(0), count: 1, step: 1 };
    let product = of(Mul, [reg(a), reg(a)]);
    program.body = vec![
        Stmt::Assign { to: to(b), value: product.clone() },
        Stmt::Assign { to: to(c), value: of(Add, [reg(b), reg(a)]) },
    ];
    let uses = Uses::of(&program);
    let mut values = Values::new(&program, &uses);
    assert_eq!(values.assigned(b, &product).unwrap(), "__fmul_rn(a, a)");
    assert_eq!(values.assigned(c, &product).unwrap(), "a*a");
}

#[test]
fn a_divisor_that_may_be_zero_is_asked_for() {
    let seen = [
        text(I32, |a, b, _| of(Div, [a, b])),
        text(I32, |a, _, _| of(Div, [a, whole(I32, 3)])),
        text(U64, |a, b, _| of(Div, [a, b])),
        text(I8, |a, b, _| of(Div, [a, b])),
        text(F32, |a, b, _| of(Div, [a, b])),
    ];
    let wanted = ["divide(a, b)", "a/3", "divide(a, b)", "(signed char)divide(a, b)", "a/b"];
    assert_eq!(seen, wanted);
}

#[test]
fn bits_are_read_in_other_ways() {
    let ways = [
        (F32, I32, "__float_as_int(a)"),
        (F64, U64, "(unsigned long long)__double_as_longlong(a)"),
        (B32, F32, "__uint_as_float(a)"),
        (I16, F16, "(unsigned short)a"),
        (U32, I32, "(int)a"),
    ];
    for (from, to, wanted) in ways {
        assert_eq!(text(from, |a, _, _| Value::Bits(to, Box::new(a))), wanted, "{from} as {to}");
    }
}

#[test]
fn parts_are_cut_out_of_unsigned_integers() {
    let parts = [
        (B32, F16, 1, "(unsigned short)(a >> 16)"),
        (I32, I8, 0, "(signed char)a"),
        (I32, I8, 2, "(signed char)((unsigned int)a >> 16)"),
        (F32, U8, 3, "(unsigned char)(__float_as_uint(a) >> 24)"),
        (B64, F32, 1, "__uint_as_float((unsigned int)(a >> 32))"),
        (B128, B32, 2, "a.z"),
        (B128, F16, 3, "(unsigned short)(a.y >> 16)"),
        (B128, I64, 1, "(long long)((unsigned long long)a.w << 32 | a.z)"),
    ];
    for (from, to, at, wanted) in parts {
        assert_eq!(text(from, |a, _, _| Value::Part(to, Box::new(a), at)), wanted, "part {at} of {from} as {to}");
    }
}

#[test]
fn parts_are_joined_as_unsigned_integers() {
    let with = |dtype: DType, at: i64, part: Value| {
        text(dtype, |a, _, _| Value::With(Box::new(a), at, Box::new(part.clone())))
    };
    let seen = [
        with(B32, 1, real(F16, 1.0)),
        with(U16, 0, whole(I8, -1)),
        with(B64, 1, real(F32, 1.0)),
        with(B128, 1, whole(U32, 7)),
        with(B128, 7, real(F16, 1.0)),
    ];
    let wanted = [
        "(a & 0x0000ffffu) | (unsigned int)0x3c00 << 16",
        "(unsigned short)((a & 0xff00) | (unsigned int)(unsigned char)-1)",
        "(a & 0x00000000ffffffffull) | (unsigned long long)__float_as_uint(1.0f) << 32",
        "make_uint4(a.x, 7u, a.z, a.w)",
        "make_uint4(a.x, a.y, a.z, (a.w & 0x0000ffffu) | (unsigned int)0x3c00 << 16)",
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn a_name_of_the_kernel_does_not_hide_a_function() {
    let mut program = empty();
    let named = Value::reg(array(&mut program, "fmaxf", F32), 0);
    let larger = of(Max, [named, real(F32, 0.0)]);
    assert_eq!(Values::new(&program, &Uses::of(&program)).text(&larger).unwrap(), "::fmaxf(fmaxf, 0.0f)");
}

#[test]
fn names_of_8_bytes_are_wide() {
    let mut program = empty();
    let of_long = Value::reg(array(&mut program, "a", I64), 0);
    let var = Var::new("v", 0, 9);
    let uses = Uses::of(&program);
    let mut values = Values::new(&program, &uses);
    assert_eq!(values.named(&var, &of_long).unwrap(), "const long long v = a");
    assert_eq!(values.text(&Value::Index(I32, Expr::var(&var) * 2)).unwrap(), "(int)(v*2)");
    assert_eq!(values.named(&Var::new("w", 0, 9), &whole(I32, 5)).unwrap(), "const int w = 5");
}

#[test]
fn sums_in_memory_have_the_type_that_cuda_has() {
    let program = empty();
    let uses = Uses::of(&program);
    let mut values = Values::new(&program, &uses);
    let seen = [F32, I64, BF16]
        .map(|dtype| values.atomic((Inst::AtomicAdd, MemoryOrdering::default()), dtype, "x[i]", &["a".to_string()]));
    let wanted =
        ["atomicAdd(&x[i], a)", "atomicAdd(reinterpret_cast<unsigned long long*>(&x[i]), a)", "add_bf16(&x[i], a)"];
    assert_eq!(seen, wanted);
}

/// The CUDA text of a program with a global array `x` and a register `a`.
fn emitted(dtype: DType, body: impl Fn(Handle<Memory>, Handle<RegArray>) -> Vec<Stmt>) -> String {
    let mut program = empty();
    let space = MemorySpace::Global { read_only: false, may_alias: false };
    let x = program.memories.push(Memory::new("x", dtype, 32, (space, 16), Span::here()));
    let a = array(&mut program, "a", dtype);
    program.body = body(x, a);
    let program = verify(program).unwrap_or_else(|found| panic!("{found:?}"));
    emit(&program).unwrap_or_else(|finding| panic!("{finding}")).cuda
}

fn register(array: Handle<RegArray>) -> Regs {
    Regs { array, first: Expr::constant(0), count: 1, step: 1 }
}

#[test]
fn functions_stand_in_front_of_the_kernel() {
    let text = emitted(F16, |memory, a| {
        let index = Expr::var(&Var::new("tid", 0, 31));
        let set = Stmt::Set { to: register(a), value: Scalar::Float(1.0) };
        vec![
            Stmt::Declare(a),
            set,
            Stmt::from(Call { from: vec![register(a)], memory: vec![(memory, index)], ..Call::plain(Inst::AtomicAdd) }),
        ]
    });
    let (front, kernel) = text.split_once("extern \"C\"").unwrap_or_default();
    let wanted = "// k for sm_100a
__device__ __forceinline__ void add_f16(unsigned short* to, unsigned short x) {
  asm volatile(\"red.add.noftz.f16 [%0], %1;\" : : \"l\"(to), \"h\"(x) : \"memory\");
}

";
    assert_eq!(front, wanted);
    assert!(kernel.contains("\n  unsigned short a = 0x3c00;\n  add_f16(&x[tid], a);\n}"), "{kernel}");
}

#[test]
fn conditions_on_data_are_branches() {
    let text = emitted(F32, |_, a| {
        let (set, held) = (Stmt::Set { to: register(a), value: Scalar::Int(0) }, Value::reg(a, 0));
        let cond = of(Lt, [held.clone(), real(F32, 1.0)]);
        let body = vec![Stmt::Assign { to: register(a), value: of(EXP, [held]) }];
        vec![Stmt::Declare(a), set, Stmt::IfValue { cond, is_uniform: false, body }]
    });
    assert!(text.contains("\n  if (a < 1.0f) {\n    a = __expf(a);\n  }\n"), "{text}");
}

#[test]
fn values_that_mean_nothing_are_our_defects() {
    let mut program = empty();
    let [a, b] = ["a", "b"].map(|name| Value::reg(array(&mut program, name, F32), 0));
    let wide = Value::reg(array(&mut program, "w", B128), 0);
    let cases = [
        (of(Sub, [a.clone()]), "`sub` of 1 operands"),
        (of(Max, [a.clone(), a.clone(), a.clone()]), "`max` of 3 operands"),
        (of(Add, [a.clone(), of(Lt, [a, b])]), "a truth value stands where a number is needed"),
        (Value::Part(B32, Box::new(wide.clone()), 4), "16 bytes have no word 4"),
        (Value::With(Box::new(wide), 2, Box::new(whole(B64, 0))), "16 bytes have no word 5"),
    ];
    for (value, note) in cases {
        let finding = Values::new(&program, &Uses::of(&program)).text(&value).unwrap_err();
        assert_eq!((finding.code, finding.notes[1].as_str()), ("E0502", note));
    }
}

#[test]
fn a_sum_whose_range_is_not_known_wraps() {
    let mut program = empty();
    let a = Value::reg(array(&mut program, "a", I32), 0);
    let truth = of(Lt, [a.clone(), a.clone()]);
    assert_eq!(Wrapping::of(&program, Add, I32, &[a, truth]), Some(Wrapping::Add));
}
