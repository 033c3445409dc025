//! How operations are written in C++, and functions that CUDA does not provide without headers.

use tilewright_ir::tile::{ElementOp, Function};
use tilewright_layout::DType;

use super::activations::Activation;
use super::atomics::compare_exchange;
use super::wrapping::Wrapping;
use crate::dtype::c_type;
use crate::index::Level;
use crate::statements::MOST_COLUMNS;

/// How an operation is written.
pub(super) enum Spelling {
    /// An infix operator, and its binding strength.
    Infix(&'static str, Level),
    /// A function of its operands.
    Function(&'static str),
    /// A function that is defined in front of the kernel, of its operands.
    Helper(Helper),
    /// An operator in front of its operand.
    Prefix(&'static str),
    /// The operand is the result.
    Same,
    /// `a ? b : c`
    Choice,
}

/// How `op` is written for operands of this dtype; narrow floats are computed as `float`.
pub(super) fn spelling(op: ElementOp, dtype: DType) -> Spelling {
    let is_float = dtype.is_float();
    let is_unsigned = matches!(dtype, DType::U8 | DType::U16 | DType::U32 | DType::U64);
    let real = |single: &'static str, double: &'static str| {
        Spelling::Function(if dtype == DType::F64 { double } else { single })
    };
    match op {
        ElementOp::Add => Spelling::Infix(" + ", Level::Sum),
        ElementOp::Sub => Spelling::Infix(" - ", Level::Sum),
        ElementOp::Mul => Spelling::Infix("*", Level::Product),
        ElementOp::Div => Spelling::Infix("/", Level::Product),
        ElementOp::Rem if is_float => real("fmodf", "fmod"),
        ElementOp::Rem => Spelling::Infix("%", Level::Product),
        ElementOp::And => Spelling::Infix(" & ", Level::And),
        ElementOp::Or => Spelling::Infix(" | ", Level::Or),
        ElementOp::Xor => Spelling::Infix(" ^ ", Level::Xor),
        ElementOp::Not => Spelling::Prefix("~"),
        ElementOp::Shl => Spelling::Infix(" << ", Level::Shift),
        ElementOp::Shr => Spelling::Infix(" >> ", Level::Shift),
        ElementOp::Max if is_float => real("fmaxf", "fmax"),
        ElementOp::Max => Spelling::Function("max"),
        ElementOp::Min if is_float => real("fminf", "fmin"),
        ElementOp::Min => Spelling::Function("min"),
        ElementOp::Neg => Spelling::Prefix("-"),
        ElementOp::Abs if is_float => real("fabsf", "fabs"),
        ElementOp::Abs if is_unsigned => Spelling::Same,
        ElementOp::Abs if dtype == DType::I64 => Spelling::Function("llabs"),
        ElementOp::Abs => Spelling::Function("abs"),
        ElementOp::Fma => real("fmaf", "fma"),
        ElementOp::Function(function) => real_function(function, dtype),
        ElementOp::Rounded => Spelling::Same,
        ElementOp::Lt => Spelling::Infix(" < ", Level::Relation),
        ElementOp::Le => Spelling::Infix(" <= ", Level::Relation),
        ElementOp::Gt => Spelling::Infix(" > ", Level::Relation),
        ElementOp::Ge => Spelling::Infix(" >= ", Level::Relation),
        ElementOp::Eq => Spelling::Infix(" == ", Level::Equality),
        ElementOp::Ne => Spelling::Infix(" != ", Level::Equality),
        ElementOp::Select => Spelling::Choice,
    }
}

/// How a function is written for operands of this dtype.
fn real_function(function: Function, dtype: DType) -> Spelling {
    let is_double = dtype == DType::F64;
    if let Some(exact) = function.exact().filter(|_| is_double) {
        return real_function(exact, dtype);
    }
    let name = match (function, is_double) {
        (Function::Exp, false) => "expf",
        (Function::Exp, true) => "exp",
        (Function::FastExp, _) => "__expf",
        (Function::Exp2, true) => "exp2",
        (Function::Expm1, false) => "expm1f",
        (Function::Expm1, true) => "expm1",
        (Function::Log, false) => "logf",
        (Function::Log, true) => "log",
        (Function::FastLog, _) => "__logf",
        (Function::Log2, false) => "log2f",
        (Function::Log2, true) => "log2",
        (Function::FastLog2, _) => "__log2f",
        (Function::Log1p, false) => "log1pf",
        (Function::Log1p, true) => "log1p",
        (Function::Sqrt, false) => "sqrtf",
        (Function::Sqrt, true) => "sqrt",
        (Function::Rsqrt, false) => "rsqrtf",
        (Function::Rsqrt, true) => "rsqrt",
        (Function::Sin, false) => "sinf",
        (Function::Sin, true) => "sin",
        (Function::FastSin, _) => "__sinf",
        (Function::Cos, false) => "cosf",
        (Function::Cos, true) => "cos",
        (Function::FastCos, _) => "__cosf",
        (Function::Tanh, false) => "tanhf",
        (Function::Tanh, true) => "tanh",
        (Function::Erf, false) => "erff",
        (Function::Erf, true) => "erf",
        (Function::Pow, false) => "powf",
        (Function::Pow, true) => "pow",
        (Function::FastPow, _) => "__powf",
        (Function::FastDiv, false) => "__fdividef",
        (Function::FastDiv, true) => return Spelling::Infix("/", Level::Product),
        (Function::Floor, false) => "floorf",
        (Function::Floor, true) => "floor",
        (Function::Ceil, false) => "ceilf",
        (Function::Ceil, true) => "ceil",
        (Function::Trunc, false) => "truncf",
        (Function::Trunc, true) => "trunc",
        (Function::Round, false) => "roundf",
        (Function::Round, true) => "round",
        (Function::RoundTiesEven, false) => "rintf",
        (Function::RoundTiesEven, true) => "rint",
        (Function::Exp2, false) => return Spelling::Helper(Helper::Exp2),
        (Function::FastExp2, _) => return Spelling::Helper(Helper::FastExp2),
        (Function::PolynomialExp2, _) => return Spelling::Helper(Helper::PolynomialExp2),
        (Function::FastSqrt, _) => return Spelling::Helper(Helper::FastSqrt),
        (Function::FastTanh, _) => return Spelling::Helper(Helper::FastTanh),
        (Function::Sigmoid | Function::FastSigmoid | Function::Silu | Function::FastSilu, _)
        | (Function::Gelu | Function::GeluTanh | Function::FastGeluTanh, _) => {
            return Spelling::Helper(Helper::Activation(Activation { function, is_double }));
        }
    };
    Spelling::Function(name)
}

/// A function that is defined in front of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Helper {
    FromF16,
    FromBf16,
    /// From an 8-bit float.
    FromByte(DType),
    /// From an 8-bit float to the same number as a half.
    ByteToF16(DType),
    FloatToF16,
    DoubleToF16,
    FloatsToF16,
    Pair,
    Word,
    TwoBytes,
    Halves,
    OfHalves {
        name: &'static str,
        ptx: &'static str,
    },
    Twice,
    Exp2,
    FastExp2,
    PolynomialExp2,
    FastSqrt,
    FastTanh,
    Activation(Activation),
    Max3,
    Min3,
    FloatToBf16,
    FloatsToBf16,
    /// To an 8-bit float.
    FloatToByte(DType),
    /// Two at once.
    FloatsToBytes(DType),
    DoubleToByte(DType),
    DoubleToBf16,
    SignedToBf16,
    UnsignedToBf16,
    AddF16,
    CompareExchange,
    AddBf16,
    FloatToInteger(DType),
    DoubleToInteger(DType),
    Divide(DType),
    Remainder(DType),
    ShiftLeft(DType),
    ShiftRight(DType),
    SignedByte,
    Wrapping(Wrapping, DType),
}

impl Helper {
    pub(super) fn name(self) -> &'static str {
        match self {
            Helper::FromF16 => "from_f16",
            Helper::FromBf16 => "from_bf16",
            Helper::FloatToF16 | Helper::DoubleToF16 => "to_f16",
            Helper::FloatToBf16 | Helper::DoubleToBf16 | Helper::SignedToBf16 | Helper::UnsignedToBf16 => "to_bf16",
            Helper::FromByte(DType::E5M2) => "from_e5m2",
            Helper::FromByte(_) => "from_e4m3",
            Helper::ByteToF16(DType::E5M2) => "e5m2_to_f16",
            Helper::ByteToF16(_) => "e4m3_to_f16",
            Helper::FloatToByte(DType::E5M2) | Helper::DoubleToByte(DType::E5M2) => "to_e5m2",
            Helper::FloatToByte(_) | Helper::DoubleToByte(_) => "to_e4m3",
            Helper::FloatsToBytes(DType::E5M2) => "to_e5m2x2",
            Helper::FloatsToBytes(_) => "to_e4m3x2",
            Helper::TwoBytes => "two_bytes",
            Helper::Pair => "pair",
            Helper::Word => "word",
            Helper::Halves => "halves",
            Helper::OfHalves { name, .. } => name,
            Helper::Twice => "twice",
            Helper::Exp2 => "exp2_approx",
            Helper::FastExp2 => "fast_exp2",
            Helper::PolynomialExp2 => "polynomial_exp2",
            Helper::FastSqrt => "fast_sqrt",
            Helper::FastTanh => "fast_tanh",
            Helper::Activation(activation) => activation.function.name(),
            Helper::Max3 => "max3",
            Helper::Min3 => "min3",
            Helper::FloatsToF16 => "to_f16x2",
            Helper::FloatsToBf16 => "to_bf16x2",
            Helper::AddF16 => "add_f16",
            Helper::CompareExchange => "compare_exchange",
            Helper::AddBf16 => "add_bf16",
            Helper::FloatToInteger(to) | Helper::DoubleToInteger(to) => match to {
                DType::I32 => "to_i32",
                DType::U32 => "to_u32",
                DType::U64 => "to_u64",
                _ => "to_i64",
            },
            Helper::Divide(_) => "divide",
            Helper::Remainder(_) => "remainder_of",
            Helper::ShiftLeft(_) => "shift_left",
            Helper::ShiftRight(_) => "shift_right",
            Helper::SignedByte => "signed_byte",
            Helper::Wrapping(Wrapping::Add, _) => "wrapping_add",
            Helper::Wrapping(Wrapping::Sub, _) => "wrapping_sub",
            Helper::Wrapping(Wrapping::Mul, _) => "wrapping_mul",
            Helper::Wrapping(Wrapping::Neg, _) => "wrapping_neg",
            Helper::Wrapping(Wrapping::Abs, _) => "wrapping_abs",
        }
    }

    /// The lines that define it, followed by an empty line.
    pub(super) fn definition(self) -> Vec<String> {
        let name = self.name();
        match self {
            Helper::FromF16 => conversion("float", 'f', name, "unsigned short", 'h', "cvt.f32.f16"),
            Helper::FromBf16 => function(
                &format!("float {name}(unsigned short x)"),
                &["return __uint_as_float((unsigned int)x << 16);".to_string()],
            ),
            Helper::FromByte(from) => from_byte(name, from),
            Helper::ByteToF16(from) => byte_to_f16(name, from),
            Helper::FloatToByte(to) => to_byte(&format!("unsigned char {name}(float x)"), &[], to),
            Helper::DoubleToByte(to) => to_byte(&format!("unsigned char {name}(double number)"), &ROUNDED_TO_ODD, to),
            Helper::FloatsToBytes(to) => to_bytes(name, to),
            Helper::TwoBytes => function(
                &format!("unsigned short& {name}(void* low)"),
                &["return *static_cast<unsigned short*>(low);".to_string()],
            ),
            Helper::FloatToF16 => to_half(name, "float", 'f', "cvt.rn.f16.f32"),
            Helper::DoubleToF16 => to_half(name, "double", 'd', "cvt.rn.f16.f64"),
            Helper::FloatToBf16 => to_half(name, "float", 'f', "cvt.rn.bf16.f32"),
            Helper::DoubleToBf16 => to_half(name, "double", 'd', "cvt.rn.bf16.f64"),
            Helper::SignedToBf16 => to_half(name, "long long", 'l', "cvt.rn.bf16.s64"),
            Helper::UnsignedToBf16 => to_half(name, "unsigned long long", 'l', "cvt.rn.bf16.u64"),
            Helper::Pair => function(
                &format!("float2& {name}(float* low)"),
                &["return *reinterpret_cast<float2*>(low);".to_string()],
            ),
            Helper::Word => function(
                &format!("unsigned int& {name}(void* low)"),
                &["return *static_cast<unsigned int*>(low);".to_string()],
            ),
            Helper::Halves => function(
                &format!("unsigned int {name}(unsigned short low, unsigned short high)"),
                &["return low | (unsigned int)high << 16;".to_string()],
            ),
            Helper::OfHalves { name, ptx } => of_words(name, ptx),
            Helper::Exp2 => of_one(name, "ex2.approx.f32"),
            Helper::FastExp2 => of_one(name, "ex2.approx.ftz.f32"),
            Helper::PolynomialExp2 => polynomial_exp2(name),
            Helper::FastSqrt => of_one(name, "sqrt.approx.f32"),
            Helper::FastTanh => of_one(name, "tanh.approx.f32"),
            Helper::Activation(activation) => activation.definition().unwrap_or_default(),
            Helper::Max3 => of_three(name, "max.f32"),
            Helper::Min3 => of_three(name, "min.f32"),
            Helper::Twice => function(&format!("float2 {name}(float x)"), &["return make_float2(x, x);".to_string()]),
            Helper::FloatsToF16 => to_halves(name, "cvt.rn.f16x2.f32"),
            Helper::FloatsToBf16 => to_halves(name, "cvt.rn.bf16x2.f32"),
            Helper::CompareExchange => compare_exchange(name),
            Helper::AddF16 => addition(name, "red.add.noftz.f16"),
            Helper::AddBf16 => addition(name, "red.add.noftz.bf16"),
            Helper::FloatToInteger(to) => truncation(name, "float", to),
            Helper::DoubleToInteger(to) => truncation(name, "double", to),
            Helper::Divide(dtype) => division(name, dtype),
            Helper::Remainder(dtype) => remainder(name, dtype),
            Helper::ShiftLeft(dtype) => shift_left(name, dtype),
            Helper::ShiftRight(dtype) => shift_right(name, dtype),
            Helper::SignedByte => signed_byte(name),
            Helper::Wrapping(op, dtype) => wrapping(name, op, dtype),
        }
    }
}

/// The lines of a function, on one line if it only returns something and fits.
pub(super) fn function(head: &str, body: &[String]) -> Vec<String> {
    let head = format!("__device__ __forceinline__ {head} {{");
    if let [only] = body
        && head.len() + only.len() + 3 <= MOST_COLUMNS
    {
        return vec![format!("{head} {only} }}"), String::new()];
    }
    let body = body.iter().map(|line| format!("  {line}"));
    std::iter::once(head).chain(body).chain(["}".to_string(), String::new()]).collect()
}

/// 2 raised to a value. The sum with 1.5*2^23, rounded down, has the integer part in its low bits, which are added to the exponent of 2
/// raised to the rest: a polynomial with the least relative error on [0, 1] among those of degree 3 that are 1 at 0, found by
/// weighted least squares (Lawson's iteration).
fn polynomial_exp2(name: &str) -> Vec<String> {
    let body = [
        "x = fmaxf(fminf(x, 128.0f), -127.0f);",
        "const float whole = __fadd_rd(x, 12582912.0f);",
        "const float rest = x - (whole - 12582912.0f);",
        "const float power = fmaf(fmaf(fmaf(0.07706813f, rest, 0.2276438f), rest, 0.69511706f), rest, 1.0f);",
        "return __int_as_float(__float_as_int(power) + (__float_as_int(whole) << 23));",
    ];
    function(&format!("float {name}(float x)"), &body.map(str::to_string))
}

/// A function of one PTX instruction of a float.
fn of_one(name: &str, ptx: &str) -> Vec<String> {
    let body = [format!("asm(\"{ptx} %0, %0;\" : \"+f\"(x));"), "return x;".to_string()];
    function(&format!("float {name}(float x)"), &body)
}

/// A function of one PTX instruction from `x` to `y`, with their constraint letters in inline assembly.
fn conversion(result: &str, y: char, name: &str, parameter: &str, x: char, ptx: &str) -> Vec<String> {
    let body = [
        format!("{result} y;"),
        format!("asm(\"{ptx} %0, %1;\" : \"={y}\"(y) : \"{x}\"(x));"),
        "return y;".to_string(),
    ];
    function(&format!("{result} {name}({parameter} x)"), &body)
}

/// A conversion to an integer: towards zero, saturated, 0 for NaN.
fn truncation(name: &str, parameter: &str, to: DType) -> Vec<String> {
    let integer = match to {
        DType::I32 => "int",
        DType::U32 => "uint",
        DType::U64 => "ull",
        _ => "ll",
    };
    let body = format!("return x == x ? __{parameter}2{integer}_rz(x) : 0;");
    function(&format!("{} {name}({parameter} x)", c_type(to)), &[body])
}

/// A quotient by 0 is 0, and one by -1 wraps: C++ defines neither for all dividends.
fn division(name: &str, dtype: DType) -> Vec<String> {
    let c_type = c_type(dtype);
    let body = match dtype {
        DType::I32 => "return b == 0 ? 0 : b == -1 ? (int)(0u - (unsigned int)a) : a/b;",
        DType::I64 => "return b == 0 ? 0 : b == -1 ? (long long)(0ull - (unsigned long long)a) : a/b;",
        _ => "return b == 0 ? 0 : a/b;",
    };
    function(&format!("{c_type} {name}({c_type} a, {c_type} b)"), &[body.to_string()])
}

/// C++ does not define a remainder by 0, nor that of the least integer by -1.
fn remainder(name: &str, dtype: DType) -> Vec<String> {
    let c_type = c_type(dtype);
    let body = match dtype {
        DType::I32 | DType::I64 => "return b == 0 ? a : b == -1 ? 0 : a%b;",
        _ => "return b == 0 ? a : a%b;",
    };
    function(&format!("{c_type} {name}({c_type} a, {c_type} b)"), &[body.to_string()])
}

/// The unsigned C++ type of this dtype's width, and the number of its bits.
fn unsigned_type(dtype: DType) -> (&'static str, i64) {
    let is_long = dtype.bytes() == 8;
    if is_long { ("unsigned long long", 64) } else { ("unsigned int", 32) }
}

/// C++ does not define shifts by counts that are negative or too large, nor a signed result that does not fit.
fn shift_left(name: &str, dtype: DType) -> Vec<String> {
    let (c_type, (unsigned, bits)) = (c_type(dtype), unsigned_type(dtype));
    let body = format!("return ({unsigned})b < {bits} ? ({c_type})(({unsigned})a << b) : 0;");
    function(&format!("{c_type} {name}({c_type} a, {c_type} b)"), &[body])
}

/// The same to the right: copies of the sign remain.
fn shift_right(name: &str, dtype: DType) -> Vec<String> {
    let (c_type, (unsigned, bits)) = (c_type(dtype), unsigned_type(dtype));
    let body = match dtype {
        DType::I32 | DType::I64 => format!("return a >> (({unsigned})b < {bits} ? b : {});", bits - 1),
        _ => format!("return b < {bits} ? a >> b : 0;"),
    };
    function(&format!("{c_type} {name}({c_type} a, {c_type} b)"), &[body])
}

/// The low byte, sign-extended. In `(signed char)(a + 1)`, where `a` is the low byte of a loaded word, NVRTC 13.5 for
/// `sm_90a` may compute with the low 16 bits of the word. It does not do so after shifts of an `int` that stays an
/// `int`.
fn signed_byte(name: &str) -> Vec<String> {
    let body = "return (int)((unsigned int)a << 24) >> 24;";
    function(&format!("int {name}(int a)"), &[body.to_string()])
}

/// An operation on unsigned numbers, which wraps.
fn wrapping(name: &str, op: Wrapping, dtype: DType) -> Vec<String> {
    let (signed, unsigned, zero) = match dtype {
        DType::I64 => ("long long", "unsigned long long", "0ull"),
        _ => ("int", "unsigned int", "0u"),
    };
    let negative = format!("({signed})({zero} - ({unsigned})a)");
    let infix = |sign: &str| format!("({signed})(({unsigned})a {sign} ({unsigned})b)");
    let (parameters, result) = match op {
        Wrapping::Neg => (format!("{signed} a"), negative),
        Wrapping::Abs => (format!("{signed} a"), format!("a < 0 ? {negative} : a")),
        Wrapping::Add => (format!("{signed} a, {signed} b"), infix("+")),
        Wrapping::Sub => (format!("{signed} a, {signed} b"), infix("-")),
        Wrapping::Mul => (format!("{signed} a, {signed} b"), infix("*")),
    };
    function(&format!("{signed} {name}({parameters})"), &[format!("return {result};")])
}

fn to_half(name: &str, parameter: &str, x: char, ptx: &str) -> Vec<String> {
    conversion("unsigned short", 'h', name, parameter, x, ptx)
}

/// Two conversions at once. The first operand of the instruction becomes the upper half.
fn to_halves(name: &str, ptx: &str) -> Vec<String> {
    let body = [
        "unsigned int y;".to_string(),
        format!("asm(\"{ptx} %0, %1, %2;\" : \"=r\"(y) : \"f\"(high), \"f\"(low));"),
        "return y;".to_string(),
    ];
    function(&format!("unsigned int {name}(float low, float high)"), &body)
}

/// There are instructions for two 8-bit floats only, and only from and to halves.
fn from_byte(name: &str, from: DType) -> Vec<String> {
    let mut body = to_two_halves(from).to_vec();
    body.extend([
        "float y;".to_string(),
        "asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"((unsigned short)halves));".to_string(),
        "return y;".to_string(),
    ]);
    function(&format!("float {name}(unsigned char x)"), &body)
}

/// The half with the same number is the lower one of two.
fn byte_to_f16(name: &str, from: DType) -> Vec<String> {
    let mut body = to_two_halves(from).to_vec();
    body.push("return halves;".to_string());
    function(&format!("unsigned short {name}(unsigned char x)"), &body)
}

/// Lines that define `halves`, whose lower half is the number of the byte `x`.
fn to_two_halves(from: DType) -> [String; 2] {
    [
        "unsigned int halves;".to_string(),
        format!("asm(\"cvt.rn.f16x2.{from}x2 %0, %1;\" : \"=r\"(halves) : \"h\"((unsigned short)x));"),
    ]
}

/// Lines that define `x` as `number` rounded to odd, which is rounded once more to the number that rounding it once gives.
const ROUNDED_TO_ODD: [&str; 2] =
    ["float x = __double2float_rz(number);", "if ((double)x != number) x = __uint_as_float(__float_as_uint(x) | 1);"];

/// A function that ends with the conversion of the float `x`.
fn to_byte(head: &str, first: &[&str], to: DType) -> Vec<String> {
    let first = first.iter().map(|line| line.to_string());
    function(head, &first.chain(rounded_bytes(to, ["x", "0.0f"])).collect::<Vec<String>>())
}

/// Two conversions at once.
fn to_bytes(name: &str, to: DType) -> Vec<String> {
    function(&format!("unsigned short {name}(float low, float high)"), &rounded_bytes(to, ["low", "high"]))
}

/// Lines that return two floats as bytes. The first operand of the instruction becomes the upper one.
fn rounded_bytes(to: DType, [low, high]: [&str; 2]) -> [String; 3] {
    [
        "unsigned short y;".to_string(),
        format!("asm(\"cvt.rn.satfinite.{to}x2.f32 %0, %1, %2;\" : \"=h\"(y) : \"f\"({high}), \"f\"({low}));"),
        "return y;".to_string(),
    ]
}

/// A function of one PTX instruction of three floats.
fn of_three(name: &str, ptx: &str) -> Vec<String> {
    let body = [format!("asm(\"{ptx} %0, %0, %1, %2;\" : \"+f\"(a) : \"f\"(b), \"f\"(c));"), "return a;".to_string()];
    function(&format!("float {name}(float a, float b, float c)"), &body)
}

/// The function of two words that are two halves each, if there is one for the operation.
pub(super) fn of_halves(op: ElementOp, dtype: DType) -> Option<Helper> {
    let (name, ptx) = match (op, dtype) {
        (ElementOp::Add, DType::F16) => ("add_f16x2", "add.rn.f16x2"),
        (ElementOp::Add, DType::BF16) => ("add_bf16x2", "add.rn.bf16x2"),
        (ElementOp::Sub, DType::F16) => ("sub_f16x2", "sub.rn.f16x2"),
        (ElementOp::Sub, DType::BF16) => ("sub_bf16x2", "sub.rn.bf16x2"),
        (ElementOp::Mul, DType::F16) => ("mul_f16x2", "mul.rn.f16x2"),
        (ElementOp::Max, DType::F16) => ("max_f16x2", "max.f16x2"),
        (ElementOp::Max, DType::BF16) => ("max_bf16x2", "max.bf16x2"),
        (ElementOp::Min, DType::F16) => ("min_f16x2", "min.f16x2"),
        (ElementOp::Min, DType::BF16) => ("min_bf16x2", "min.bf16x2"),
        _ => return None,
    };
    Some(Helper::OfHalves { name, ptx })
}

/// A function of one PTX instruction of two words.
fn of_words(name: &str, ptx: &str) -> Vec<String> {
    let body = [format!("asm(\"{ptx} %0, %0, %1;\" : \"+r\"(a) : \"r\"(b));"), "return a;".to_string()];
    function(&format!("unsigned int {name}(unsigned int a, unsigned int b)"), &body)
}

fn addition(name: &str, ptx: &str) -> Vec<String> {
    let body = [format!("asm volatile(\"{ptx} [%0], %1;\" : : \"l\"(to), \"h\"(x) : \"memory\");")];
    function(&format!("void {name}(unsigned short* to, unsigned short x)"), &body)
}
