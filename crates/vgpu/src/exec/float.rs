//! Floating instructions. f32 and f64 in the usual mode use the host's IEEE arithmetic; the rest goes through `f64`.

use crate::exec::int::{map1, map2, map3};
use crate::exec::warp::{Lanes, lanes};
use crate::float::{
    BF16, F16, add_odd, bits32, div_odd, flush, fma_odd, maximum, minimum, narrow, saturate, sqrt_odd, to_f32, widen,
};
use crate::isa::{DType, Kind, Round, mask};
use crate::op::{Element, FloatFn, FloatMode, Reg};

/// Executes a floating instruction.
pub(crate) fn execute(regs: &mut [Lanes], exec: u32, f: FloatFn, mode: &FloatMode, d: Reg, s: &[Reg; 3]) {
    if is_plain(mode) && plain(regs, exec, f, d, s) {
        return;
    }
    let sources = s.map(|reg| regs[reg as usize]);
    let out = &mut regs[d as usize];
    for lane in lanes(exec) {
        let values = [sources[0][lane], sources[1][lane], sources[2][lane]];
        out[lane] = lane_value(f, mode, values);
    }
}

fn is_plain(mode: &FloatMode) -> bool {
    let changed = mode.packed || mode.ftz || mode.sat || mode.relu;
    !changed && mode.element == Element::F32 && mode.round == Round::Nearest
}

/// The common f32 instructions; false for the others.
fn plain(regs: &mut [Lanes], exec: u32, f: FloatFn, d: Reg, s: &[Reg; 3]) -> bool {
    let read = |bits: u64| f32::from_bits(bits as u32);
    let two = [s[0], s[1]];
    match f {
        FloatFn::Add => map2(regs, exec, d, two, |a, b| bits32(read(a) + read(b))),
        FloatFn::Sub => map2(regs, exec, d, two, |a, b| bits32(read(a) - read(b))),
        FloatFn::Mul => map2(regs, exec, d, two, |a, b| bits32(read(a) * read(b))),
        FloatFn::Fma => map3(regs, exec, d, *s, |a, b, c| bits32(read(a).mul_add(read(b), read(c)))),
        FloatFn::Neg => map1(regs, exec, d, s[0], |a| (a ^ 0x8000_0000) & mask(32)),
        FloatFn::Abs => map1(regs, exec, d, s[0], |a| a & 0x7fff_ffff),
        _ => return false,
    }
    true
}

/// One lane: each element of the register on its own.
fn lane_value(f: FloatFn, mode: &FloatMode, s: [u64; 3]) -> u64 {
    let bits = element_bits(mode.element);
    if !mode.packed {
        return element_value(f, mode, s) & mask(bits);
    }
    let low = element_value(f, mode, s.map(|value| value & mask(bits))) & mask(bits);
    let high = element_value(f, mode, s.map(|value| value >> bits & mask(bits))) & mask(bits);
    high << bits | low
}

fn element_bits(element: Element) -> u32 {
    match element {
        Element::F32 => 32,
        Element::F64 => 64,
        Element::Half(_) => 16,
    }
}

/// One element. Sign operations keep the bits of NaN.
fn element_value(f: FloatFn, mode: &FloatMode, s: [u64; 3]) -> u64 {
    let sign = 1u64 << (element_bits(mode.element) - 1);
    match f {
        FloatFn::Neg if !mode.ftz => return s[0] ^ sign,
        FloatFn::Abs if !mode.ftz => return s[0] & !sign,
        // The first operand gives the sign (PTX ISA, section 9.7.3.2).
        FloatFn::CopySign => return (s[0] & sign) | (s[1] & !sign),
        _ => {}
    }
    let read = |bits: u64| {
        let value = read_element(bits, mode.element);
        if mode.ftz && mode.element == Element::F32 { f64::from(flush(value as f32)) } else { value }
    };
    let exact = if mode.element == Element::F64 {
        common(f, read(s[0]), read(s[1]), read(s[2]))
    } else {
        single(f, read(s[0]), read(s[1]), read(s[2]))
    };
    let exact = if mode.sat { saturate(exact) } else { exact };
    let exact = if mode.relu && exact < 0.0 { 0.0 } else { exact };
    write_element(exact, mode)
}

/// The value of an element.
pub(crate) fn read_element(bits: u64, element: Element) -> f64 {
    match element {
        Element::F32 => f64::from(f32::from_bits(bits as u32)),
        Element::F64 => f64::from_bits(bits),
        Element::Half(format) => widen(bits as u32, format),
    }
}

/// The element that a scalar type names.
pub(crate) fn unpack_mode(dtype: DType) -> Element {
    match (dtype.kind, dtype.bits) {
        (Kind::Bfloat, _) => Element::Half(BF16),
        (_, 16) => Element::Half(F16),
        (_, 64) => Element::F64,
        _ => Element::F32,
    }
}

fn write_element(value: f64, mode: &FloatMode) -> u64 {
    match mode.element {
        Element::F64 => value.to_bits(),
        Element::Half(format) => u64::from(narrow(value, format, mode.round)),
        Element::F32 => {
            let result = to_f32(value, mode.round);
            bits32(if mode.ftz { flush(result) } else { result })
        }
    }
}

/// Functions that are the same for all types.
fn common(f: FloatFn, a: f64, b: f64, c: f64) -> f64 {
    let pick = |nan: bool, value: f64, any_nan: bool| if nan && any_nan { f64::NAN } else { value };
    let nan2 = a.is_nan() || b.is_nan();
    match f {
        FloatFn::Rsqrt => 1.0 / a.sqrt(),
        FloatFn::Ex2 => a.exp2(),
        FloatFn::Lg2 => a.log2(),
        FloatFn::Sin => a.sin(),
        FloatFn::Cos => a.cos(),
        FloatFn::Tanh => a.tanh(),
        FloatFn::Min { nan } => pick(nan, minimum(a, b), nan2),
        FloatFn::Max { nan } => pick(nan, maximum(a, b), nan2),
        FloatFn::Min3 { nan } => pick(nan, minimum(minimum(a, b), c), nan2 || c.is_nan()),
        FloatFn::Max3 { nan } => pick(nan, maximum(maximum(a, b), c), nan2 || c.is_nan()),
        FloatFn::Neg => -a,
        FloatFn::Abs => a.abs(),
        FloatFn::CopySign => b.copysign(a),
        FloatFn::Add => a + b,
        FloatFn::Sub => a - b,
        FloatFn::Mul => a * b,
        FloatFn::Fma => a.mul_add(b, c),
        FloatFn::Div => a / b,
        FloatFn::Rcp => 1.0 / a,
        FloatFn::Sqrt => a.sqrt(),
    }
}

/// f32 and narrower: a value that rounds correctly to the type.
fn single(f: FloatFn, a: f64, b: f64, c: f64) -> f64 {
    match f {
        FloatFn::Add => add_odd(a, b),
        FloatFn::Sub => add_odd(a, -b),
        FloatFn::Fma => fma_odd(a, b, c),
        FloatFn::Div => div_odd(a, b),
        FloatFn::Rcp => div_odd(1.0, a),
        FloatFn::Sqrt => sqrt_odd(a),
        _ => common(f, a, b, c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(element: Element) -> FloatMode {
        FloatMode { element, packed: false, round: Round::Nearest, ftz: false, sat: false, relu: false }
    }

    fn f32_of(f: FloatFn, mode: &FloatMode, a: f32, b: f32) -> f32 {
        f32::from_bits(lane_value(f, mode, [u64::from(a.to_bits()), u64::from(b.to_bits()), 0]) as u32)
    }

    #[test]
    fn division_is_correctly_rounded() {
        assert_eq!(f32_of(FloatFn::Div, &mode(Element::F32), 1.0, 3.0), 1.0 / 3.0);
        let up = FloatMode { round: Round::Up, ..mode(Element::F32) };
        assert!(f32_of(FloatFn::Div, &up, 1.0, 3.0) > 1.0 / 3.0 - f32::EPSILON);
    }

    #[test]
    fn packed_halves_are_separate() {
        let packed = FloatMode { packed: true, ..mode(Element::Half(F16)) };
        // (1.0, 2.0) + (1.0, 1.0), low half first.
        assert_eq!(lane_value(FloatFn::Add, &packed, [0x4000_3c00, 0x3c00_3c00, 0]), 0x4200_4000);
    }

    #[test]
    fn subnormals_are_flushed_on_request() {
        let ftz = FloatMode { ftz: true, ..mode(Element::F32) };
        assert_eq!(f32_of(FloatFn::Add, &ftz, 1e-40, 0.0), 0.0);
        assert_eq!(f32_of(FloatFn::Add, &mode(Element::F32), 1e-40, 0.0), 1e-40);
    }
}
