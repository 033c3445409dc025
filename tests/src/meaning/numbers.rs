//! Arithmetic on elements as specified in `docs/arithmetic.md`, from bits to bits.

use tilewright::ir::Scalar;
use tilewright::ir::tile::{ElementOp, Function, Narrowing};
use tilewright::layout::DType;

use std::cmp::Ordering;
use std::sync::LazyLock;

use half::{bf16, f16};

/// The integer represented by bits.
pub fn integer(dtype: DType, bits: u64) -> i128 {
    let spare = 64 - 8 * dtype.bytes() as u32;
    match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => i128::from((bits << spare) as i64 >> spare),
        _ => i128::from(bits << spare >> spare),
    }
}

/// The low bits of an integer.
pub fn wrapped(dtype: DType, value: i128) -> u64 {
    let spare = 64 - 8 * dtype.bytes() as u32;
    (value as u64) << spare >> spare
}

/// The number represented by the bits of a float.
pub fn real(dtype: DType, bits: u64) -> f64 {
    match dtype {
        DType::F64 => f64::from_bits(bits),
        DType::F32 => f64::from(f32::from_bits(bits as u32)),
        DType::E4M3 | DType::E5M2 => byte_value(dtype, bits as u8),
        _ => half_value(dtype, bits),
    }
}

/// An 8-bit float by its definition: e5m2 is the upper byte of an f16, e4m3 has no infinities.
fn byte_value(dtype: DType, bits: u8) -> f64 {
    if dtype == DType::E5M2 {
        return f16::from_bits(u16::from(bits) << 8).to_f64();
    }
    let (exponent, mantissa) = (i32::from(bits >> 3 & 15), f64::from(bits & 7));
    let sign = if bits & 0x80 != 0 { -1.0 } else { 1.0 };
    match (exponent, bits & 7) {
        (15, 7) => f64::NAN,
        (0, _) => sign * mantissa / 512.0,
        _ => sign * (1.0 + mantissa / 8.0) * 2f64.powi(exponent - 7),
    }
}

/// The finite 8-bit floats without a sign, in ascending order, as their bits are: those of e4m3, and those of e5m2.
static BYTES: LazyLock<[Vec<f64>; 2]> = LazyLock::new(|| {
    let finite = |dtype| (0..0x80).map(move |bits| byte_value(dtype, bits)).take_while(|value| value.is_finite());
    [DType::E4M3, DType::E5M2].map(|dtype| finite(dtype).collect())
});

/// The nearest 8-bit float; of two that are equally near, the even one. Infinities and numbers that are too large become the
/// greatest number.
fn byte_bits(dtype: DType, value: f64) -> u64 {
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    if value.is_nan() {
        return sign | 0x7f;
    }
    let values = &BYTES[usize::from(dtype == DType::E5M2)];
    let above = values.partition_point(|byte| *byte < value.abs());
    let distance = |bits: usize| (values[bits] - value.abs()).abs();
    let neighbours = above.saturating_sub(1)..=above.min(values.len() - 1);
    let nearest =
        neighbours.min_by(|one, other| distance(*one).total_cmp(&distance(*other)).then((one % 2).cmp(&(other % 2))));
    sign | nearest.unwrap_or(0) as u64
}

fn half_value(dtype: DType, bits: u64) -> f64 {
    if dtype == DType::BF16 { bf16::from_bits(bits as u16).to_f64() } else { f16::from_bits(bits as u16).to_f64() }
}

fn half_bits(dtype: DType, value: f32) -> u64 {
    let bits = if dtype == DType::BF16 { bf16::from_f32(value).to_bits() } else { f16::from_f32(value).to_bits() };
    u64::from(bits)
}

/// Rounds to odd: the nearest `f32`, made odd if it is inexact, so that rounding it again equals rounding the number
/// once. `magnitude` is how its absolute value compares with the number's.
fn to_odd(nearest: f32, magnitude: Ordering) -> f32 {
    match magnitude {
        Ordering::Equal => nearest,
        Ordering::Greater => f32::from_bits((nearest.to_bits() - 1) | 1),
        Ordering::Less => f32::from_bits(nearest.to_bits() | 1),
    }
}

/// The bits of the nearest float.
pub fn rounded(dtype: DType, value: f64) -> u64 {
    match dtype {
        DType::F64 => value.to_bits(),
        DType::F32 => u64::from((value as f32).to_bits()),
        DType::E4M3 | DType::E5M2 => byte_bits(dtype, value),
        _ => {
            let nearest = value as f32;
            let magnitude = f64::from(nearest).abs().partial_cmp(&value.abs());
            half_bits(dtype, to_odd(nearest, magnitude.unwrap_or(Ordering::Equal)))
        }
    }
}

/// Converts an integer to an element.
pub fn of_integer(dtype: DType, value: i128) -> u64 {
    match dtype {
        DType::F64 => (value as f64).to_bits(),
        DType::F32 => u64::from((value as f32).to_bits()),
        DType::E4M3 | DType::E5M2 => byte_bits(dtype, value as f64),
        DType::F16 | DType::BF16 => {
            let nearest = value as f32;
            let magnitude = (nearest as i128).unsigned_abs().cmp(&value.unsigned_abs());
            half_bits(dtype, to_odd(nearest, magnitude))
        }
        _ => wrapped(dtype, value),
    }
}

/// Converts a constant to an element.
pub fn constant(dtype: DType, value: Scalar) -> u64 {
    match value {
        Scalar::Int(value) => of_integer(dtype, i128::from(value)),
        Scalar::Float(value) => rounded(dtype, value),
    }
}

/// Converts an element to another dtype.
pub fn cast(from: DType, to: DType, narrowing: Narrowing, bits: u64) -> u64 {
    match (from.is_float(), to.integers()) {
        (true, Some((least, most))) => {
            let value = real(from, bits);
            let whole = if value.is_nan() { 0 } else { (value.trunc() as i128).clamp(least, most) };
            wrapped(to, whole)
        }
        (true, None) => rounded(to, real(from, bits)),
        (false, Some((least, most))) if narrowing == Narrowing::Saturates => {
            wrapped(to, integer(from, bits).clamp(least, most))
        }
        (false, _) => of_integer(to, integer(from, bits)),
    }
}

/// Applies an operation to elements of one dtype. Comparisons give 1 or 0; a selection returns one of its last two
/// operands.
pub fn apply(op: ElementOp, dtype: DType, operands: &[u64]) -> Result<u64, String> {
    if op == ElementOp::Select {
        let [cond, then, otherwise] = operands else { return Err("a selection needs 3 operands".to_string()) };
        return Ok(if *cond != 0 { *then } else { *otherwise });
    }
    match dtype {
        DType::F64 => doubles(op, operands),
        DType::F32 | DType::F16 | DType::BF16 | DType::E4M3 | DType::E5M2 => singles(op, dtype, operands),
        _ => integers(op, dtype, operands),
    }
}

fn integers(op: ElementOp, dtype: DType, operands: &[u64]) -> Result<u64, String> {
    let values: Vec<i128> = operands.iter().map(|bits| integer(dtype, *bits)).collect();
    match (exact(op, &values), &values[..]) {
        (Some(value), _) => Ok(wrapped(dtype, value)),
        (None, [a, b]) => compared(op, a.partial_cmp(b)),
        (None, _) => Err(format!("`{op}` is not an operation on integers")),
    }
}

/// Applies an operation to truth values, which are 1 or 0.
pub fn of_truths(op: ElementOp, operands: &[u64]) -> Result<u64, String> {
    let truths: Vec<i128> = operands.iter().map(|truth| i128::from(*truth)).collect();
    let bits = exact(op, &truths).ok_or_else(|| format!("`{op}` is not an operation on truth values"))?;
    Ok(wrapped(DType::U8, bits & 1))
}

/// An operation on integers of any size; `None` if its result is not an integer.
pub fn exact(op: ElementOp, values: &[i128]) -> Option<i128> {
    Some(match (op, values) {
        (ElementOp::Add, [a, b]) => a + b,
        (ElementOp::Sub, [a, b]) => a - b,
        // Beyond 128 bits, only the low 64 bits count.
        (ElementOp::Mul, [a, b]) => a.wrapping_mul(*b),
        (ElementOp::Div, [_, 0]) => 0,
        (ElementOp::Div, [a, b]) => a / b,
        (ElementOp::Rem, [a, 0]) => *a,
        (ElementOp::Rem, [a, b]) => a % b,
        (ElementOp::And, [a, b]) => a & b,
        (ElementOp::Or, [a, b]) => a | b,
        (ElementOp::Xor, [a, b]) => a ^ b,
        (ElementOp::Not, [a]) => !a,
        // Beyond 128 bits, only the low 64 bits count.
        (ElementOp::Shl, [a, b]) => {
            if (0..64).contains(b) {
                a << b
            } else {
                0
            }
        }
        (ElementOp::Shr, [a, b]) => a >> if (0..64).contains(b) { *b } else { 127 },
        (ElementOp::Max, [a, b]) => *a.max(b),
        (ElementOp::Min, [a, b]) => *a.min(b),
        (ElementOp::Neg, [a]) => -a,
        (ElementOp::Abs, [a]) => a.abs(),
        (ElementOp::Rounded, [a]) => *a,
        _ => return None,
    })
}

fn compared(op: ElementOp, order: Option<std::cmp::Ordering>) -> Result<u64, String> {
    let holds = match op {
        ElementOp::Lt => order.is_some_and(|order| order.is_lt()),
        ElementOp::Le => order.is_some_and(|order| order.is_le()),
        ElementOp::Gt => order.is_some_and(|order| order.is_gt()),
        ElementOp::Ge => order.is_some_and(|order| order.is_ge()),
        ElementOp::Eq => order.is_some_and(|order| order.is_eq()),
        ElementOp::Ne => !order.is_some_and(|order| order.is_eq()),
        _ => return Err(format!("`{op}` is not a comparison")),
    };
    Ok(u64::from(holds))
}

/// Arithmetic in a floating-point type of Rust: the result, or 1 or 0 for a comparison, converted to bits by `bits`.
macro_rules! floating {
    ($op:expr, $values:expr, $bits:expr) => {{
        let (op, values) = ($op, $values);
        let value = match (op, &values[..]) {
            (ElementOp::Add, [a, b]) => a + b,
            (ElementOp::Sub, [a, b]) => a - b,
            (ElementOp::Mul, [a, b]) => a * b,
            (ElementOp::Div, [a, b]) => a / b,
            (ElementOp::Fma, [a, b, c]) => a.mul_add(*b, *c),
            (ElementOp::Max, [a, b]) => extreme(*a, *b, a > b || (a == b && !a.is_sign_negative())),
            (ElementOp::Min, [a, b]) => extreme(*a, *b, a < b || (a == b && a.is_sign_negative())),
            (ElementOp::Neg, [a]) => -a,
            (ElementOp::Abs, [a]) => a.abs(),
            (ElementOp::Function(Function::Sqrt), [a]) => a.sqrt(),
            (ElementOp::Function(Function::Floor), [a]) => a.floor(),
            (ElementOp::Function(Function::Ceil), [a]) => a.ceil(),
            (ElementOp::Function(Function::Trunc), [a]) => a.trunc(),
            (ElementOp::Function(Function::Round), [a]) => a.round(),
            (ElementOp::Function(Function::RoundTiesEven), [a]) => a.round_ties_even(),
            (ElementOp::Rem, [a, b]) => a % b,
            (ElementOp::Rounded, [a]) => *a,
            (_, [a, b]) => return compared(op, a.partial_cmp(b)),
            _ => return Err(format!("`{op}` is not exact")),
        };
        Ok($bits(value))
    }};
}

fn doubles(op: ElementOp, operands: &[u64]) -> Result<u64, String> {
    let values: Vec<f64> = operands.iter().map(|bits| f64::from_bits(*bits)).collect();
    floating!(op, values, f64::to_bits)
}

/// Floats of 16 and 8 bits are computed in `f32`, whose results round to the same narrower values.
fn singles(op: ElementOp, dtype: DType, operands: &[u64]) -> Result<u64, String> {
    let values: Vec<f32> = operands.iter().map(|bits| real(dtype, *bits) as f32).collect();
    floating!(op, values, |value| rounded(dtype, f64::from(value)))
}

/// `a` if `wins` is true or `b` is a NaN, otherwise `b`. -0 is less than 0.
fn extreme<T: PartialOrd + Copy>(a: T, b: T, wins: bool) -> T {
    let is_nan = b.partial_cmp(&b).is_none();
    if wins || is_nan { a } else { b }
}

/// Whether an element is a NaN.
pub fn is_nan(dtype: DType, bits: u64) -> bool {
    dtype.is_float() && real(dtype, bits).is_nan()
}

/// Whether two elements are equal: all NaNs are equal, and so are zeros of either sign.
pub fn same(dtype: DType, one: u64, other: u64) -> bool {
    if one == other || !dtype.is_float() {
        return one == other;
    }
    let (a, b) = (real(dtype, one), real(dtype, other));
    a == b || (a.is_nan() && b.is_nan())
}

/// Converts an integer without a dtype to an element.
pub fn cast_integer(to: DType, narrowing: Narrowing, value: i128) -> u64 {
    match to.integers() {
        Some((least, most)) if narrowing == Narrowing::Saturates => wrapped(to, value.clamp(least, most)),
        _ => of_integer(to, value),
    }
}
