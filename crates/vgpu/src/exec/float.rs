//! Floating-point instructions. What [`single`] does not execute is computed in `f64`.

use crate::exec::single;
use crate::float::{
    F32, Format, add_odd, bits32, div_odd, double, flush, fma_odd, maximum, minimum, narrow, power_of_two, relu,
    saturate, sqrt_odd, to_f32, widen,
};
use crate::isa::{Round, mask};
use crate::lanes::{Lanes, lanes};
use crate::op::{FloatFn, FloatMode, FloatType, MinMaxMode, Reg};

/// The NaN of `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64` (PTX ISA, section 9.7.3.14).
const GROSS_NAN: u64 = 0x7fff_ffff_0000_0000;
/// The bit of an f64 NaN that says that it is quiet.
const QUIET64: u64 = 1 << 51;
/// The bits of the least normal f32.
const LEAST_NORMAL: u32 = 0x0080_0000;

/// Executes a floating-point instruction.
pub(crate) fn execute(regs: &mut [Lanes], exec: u32, f: FloatFn, mode: &FloatMode, d: Reg, s: &[Reg; 3]) {
    let sources = mode.ftz.then(|| s.map(|reg| regs[reg as usize]));
    if single::execute(regs, exec, f, mode, d, s) {
        if let Some(sources) = sources {
            let least = lanes_of_least(&regs[d as usize], exec);
            one_by_one(regs, least, f, mode, d, &sources);
        }
        return;
    }
    let sources = sources.unwrap_or_else(|| s.map(|reg| regs[reg as usize]));
    one_by_one(regs, exec, f, mode, d, &sources);
}

fn one_by_one(regs: &mut [Lanes], exec: u32, f: FloatFn, mode: &FloatMode, d: Reg, sources: &[Lanes; 3]) {
    let out = &mut regs[d as usize];
    for lane in lanes(exec) {
        let values = [sources[0][lane], sources[1][lane], sources[2][lane]];
        out[lane] = lane_value(f, mode, values);
    }
}

/// The lanes with the least normal f32 in one half of a result: it may have been rounded up from a number that `.ftz` flushes.
fn lanes_of_least(result: &Lanes, exec: u32) -> u32 {
    let is_least =
        |word: u64| [word, word >> 32].iter().any(|half| half << 1 & mask(32) == u64::from(LEAST_NORMAL) << 1);
    lanes(exec).filter(|lane| is_least(result[*lane])).fold(0, |found, lane| found | 1 << lane)
}

/// The result of one lane; the elements of a packed register are computed separately.
fn lane_value(f: FloatFn, mode: &FloatMode, s: [u64; 3]) -> u64 {
    let bits = mode.element.bits();
    if !mode.packed {
        return element_value(f, mode, s) & mask(bits);
    }
    let low = element_value(f, mode, s.map(|value| value & mask(bits))) & mask(bits);
    let high = element_value(f, mode, s.map(|value| value >> bits & mask(bits))) & mask(bits);
    high << bits | low
}

/// One element. The bits of a NaN are those that an H200 gives, where the PTX ISA leaves them open.
fn element_value(f: FloatFn, mode: &FloatMode, s: [u64; 3]) -> u64 {
    let sign = 1u64 << (mode.element.bits() - 1);
    if let Some(nan) = double_nan(f, mode, s) {
        return nan;
    }
    match f {
        FloatFn::Neg if mode.element == FloatType::F64 => return s[0] ^ sign,
        FloatFn::Abs if mode.element == FloatType::F64 => return s[0] & !sign,
        // The first operand gives the sign (PTX ISA, section 9.7.3.2).
        FloatFn::CopySign => return (s[0] & sign) | (s[1] & !sign),
        FloatFn::Rcp | FloatFn::Rsqrt if mode.ftz && mode.element == FloatType::F64 => return gross(f, s[0]),
        _ => {}
    }
    let read = |bits: u64| {
        let value = read_element(bits, mode.element);
        if mode.ftz { flush_element(value, mode.element) } else { value }
    };
    let [a, b, c] = s.map(read);
    let exact = match (mode.element, mode.round) {
        (FloatType::F64, Round::Nearest) => common(f, a, b, c),
        (FloatType::F64, round) => directed(f, round, a, b, c),
        (FloatType::F32 | FloatType::Half(_), _) => single(f, a, b, c),
    };
    let is_single = mode.element != FloatType::F64;
    let exact =
        if is_single && exact == 0.0 && mode.round == Round::Down { zero_below(f, [a, b, c], exact) } else { exact };
    let exact = if mode.sat { saturate(exact) } else { exact };
    let exact = if mode.relu { relu(exact) } else { exact };
    write_element(exact, mode)
}

/// The NaN that an f64 instruction passes on, with its sign and its quiet bit set: that of the second factor, of the addend, or
/// of the first factor, in this order.
fn double_nan(f: FloatFn, mode: &FloatMode, [a, b, c]: [u64; 3]) -> Option<u64> {
    if mode.element != FloatType::F64 {
        return None;
    }
    let first = |order: &[u64]| order.iter().copied().find(|bits| f64::from_bits(*bits).is_nan());
    let found = match f {
        FloatFn::Fma | FloatFn::FmaSub | FloatFn::FmaFrom => first(&[b, c, a]),
        FloatFn::Add | FloatFn::Sub | FloatFn::Mul => first(&[b, a]),
        FloatFn::Neg | FloatFn::Abs => first(&[a]),
        FloatFn::Min(_) | FloatFn::Max(_) => first(&[b]).filter(|_| f64::from_bits(a).is_nan()),
        _ => None,
    };
    found.map(|bits| bits | QUIET64)
}

/// An exact sum of zero, rounded down: negative unless both addends are positive zeros (IEEE 754, section 6.3).
fn zero_below(f: FloatFn, [a, b, c]: [f64; 3], exact: f64) -> f64 {
    let (x, y) = match f {
        FloatFn::Add => (a, b),
        FloatFn::Sub => (a, -b),
        FloatFn::Fma => (a * b, c),
        FloatFn::FmaSub => (a * b, -c),
        FloatFn::FmaFrom => (-a * b, c),
        _ => return exact,
    };
    if x.is_sign_positive() && y.is_sign_positive() { exact } else { -0.0 }
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: they read and write only the upper 32 bits of a number.
fn gross(f: FloatFn, a: u64) -> u64 {
    let upper = |x: f64| if x.is_subnormal() { 0.0f64.copysign(x).to_bits() } else { x.to_bits() & !mask(32) };
    let source = f64::from_bits(a);
    let result = common(f, f64::from_bits(upper(source)), 0.0, 0.0);
    if source.is_nan() || result.is_nan() { GROSS_NAN } else { upper(result) }
}

/// The value of an element.
pub(crate) fn read_element(bits: u64, element: FloatType) -> f64 {
    match element {
        FloatType::F32 => f64::from(f32::from_bits(bits as u32)),
        FloatType::F64 => f64::from_bits(bits),
        FloatType::Half(format) => widen(bits as u32, format),
    }
}

/// Replaces a number that is subnormal in its type by a zero of the same sign; f64 is returned unchanged.
pub(crate) fn flush_element(value: f64, element: FloatType) -> f64 {
    match element {
        FloatType::F32 => f64::from(flush(value as f32)),
        FloatType::F64 => value,
        FloatType::Half(format) => format.flush(value),
    }
}

fn write_element(value: f64, mode: &FloatMode) -> u64 {
    let kept = |format: Format| if mode.ftz { format.flush_result(value, mode.round) } else { value };
    match mode.element {
        FloatType::F64 => value.to_bits(),
        FloatType::Half(format) => u64::from(narrow(kept(format), format, mode.round)),
        FloatType::F32 => bits32(to_f32(kept(F32), mode.round)),
    }
}

/// Functions that are the same for all types.
fn common(f: FloatFn, a: f64, b: f64, c: f64) -> f64 {
    match f {
        FloatFn::Rsqrt => 1.0 / a.sqrt(),
        FloatFn::Ex2 => a.exp2(),
        FloatFn::Lg2 => a.log2(),
        FloatFn::Sin => a.sin(),
        FloatFn::Cos => a.cos(),
        FloatFn::Tanh => a.tanh(),
        FloatFn::Min(mode) => min_max(minimum, mode, &[a, b]),
        FloatFn::Max(mode) => min_max(maximum, mode, &[a, b]),
        FloatFn::Min3(mode) => min_max(minimum, mode, &[a, b, c]),
        FloatFn::Max3(mode) => min_max(maximum, mode, &[a, b, c]),
        FloatFn::Neg => -a,
        FloatFn::Abs => a.abs(),
        FloatFn::CopySign => b.copysign(a),
        FloatFn::Add => a + b,
        FloatFn::Sub => a - b,
        FloatFn::Mul => a * b,
        FloatFn::Fma => a.mul_add(b, c),
        FloatFn::FmaSub => a.mul_add(b, -c),
        FloatFn::FmaFrom => (-a).mul_add(b, c),
        FloatFn::Div | FloatFn::DivApprox => a / b,
        FloatFn::Rcp => 1.0 / a,
        FloatFn::Sqrt => a.sqrt(),
    }
}

/// `min` or `max` of two or three values; `f` is the function of two numbers.
fn min_max(f: fn(f64, f64) -> f64, mode: MinMaxMode, values: &[f64]) -> f64 {
    if mode.nan && values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    let magnitude = |value: &f64| if mode.abs { value.abs() } else { *value };
    let result = values.iter().map(magnitude).reduce(f).unwrap_or(f64::NAN);
    if !mode.xorsign || result.is_nan() {
        return result;
    }
    let negative = values.iter().filter(|value| value.is_sign_negative()).count() % 2 == 1;
    if negative { -result.abs() } else { result.abs() }
}

/// The result for f64 in a directed rounding mode.
fn directed(f: FloatFn, round: Round, a: f64, b: f64, c: f64) -> f64 {
    match f {
        FloatFn::Add => double::fma(a, 1.0, b, round),
        FloatFn::Sub => double::fma(a, 1.0, -b, round),
        // Adding a zero of the product's sign does not change it.
        FloatFn::Mul => double::fma(a, b, 0.0f64.copysign(a) * 1.0f64.copysign(b), round),
        FloatFn::Fma => double::fma(a, b, c, round),
        FloatFn::FmaSub => double::fma(a, b, -c, round),
        FloatFn::FmaFrom => double::fma(-a, b, c, round),
        FloatFn::Div => double::div(a, b, round),
        FloatFn::Rcp => double::div(1.0, a, round),
        FloatFn::Sqrt => double::sqrt(a, round),
        _ => common(f, a, b, c),
    }
}

/// The result for f32 and narrower types, as a value that rounds correctly to the type.
fn single(f: FloatFn, a: f64, b: f64, c: f64) -> f64 {
    match f {
        FloatFn::Add => add_odd(a, b),
        FloatFn::Sub => add_odd(a, -b),
        FloatFn::Fma => fma_odd(a, b, c),
        FloatFn::FmaSub => fma_odd(a, b, -c),
        FloatFn::FmaFrom => fma_odd(-a, b, c),
        // The reciprocal of such a large divisor is taken as zero (PTX ISA, section 9.7.3.8).
        FloatFn::DivApprox if b.is_finite() && b.abs() > power_of_two(126) => a * 0.0f64.copysign(b),
        FloatFn::Div | FloatFn::DivApprox => div_odd(a, b),
        FloatFn::Rcp => div_odd(1.0, a),
        FloatFn::Sqrt => sqrt_odd(a),
        _ => common(f, a, b, c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::F16;

    fn mode(element: FloatType) -> FloatMode {
        FloatMode { element, packed: false, round: Round::Nearest, ftz: false, sat: false, relu: false }
    }

    fn f32_of(f: FloatFn, mode: &FloatMode, a: f32, b: f32) -> f32 {
        f32::from_bits(lane_value(f, mode, [u64::from(a.to_bits()), u64::from(b.to_bits()), 0]) as u32)
    }

    #[test]
    fn division_is_correctly_rounded() {
        assert_eq!(f32_of(FloatFn::Div, &mode(FloatType::F32), 1.0, 3.0), 1.0 / 3.0);
        let up = FloatMode { round: Round::Up, ..mode(FloatType::F32) };
        assert!(f32_of(FloatFn::Div, &up, 1.0, 3.0) > 1.0 / 3.0 - f32::EPSILON);
    }

    #[test]
    fn packed_halves_are_separate() {
        let packed = FloatMode { packed: true, ..mode(FloatType::Half(F16)) };
        // (1.0, 2.0) + (1.0, 1.0), low half first.
        assert_eq!(lane_value(FloatFn::Add, &packed, [0x4000_3c00, 0x3c00_3c00, 0]), 0x4200_4000);
    }

    #[test]
    fn subnormals_are_flushed_on_request() {
        let ftz = FloatMode { ftz: true, ..mode(FloatType::F32) };
        assert_eq!(f32_of(FloatFn::Add, &ftz, 1e-40, 0.0), 0.0);
        assert_eq!(f32_of(FloatFn::Add, &mode(FloatType::F32), 1e-40, 0.0), 1e-40);
    }
}
