//! `cvt`: integers, floats and packed pairs.

use crate::exec::float::read_element;
use crate::exec::lanewise::{map1, map2};
use crate::float::{
    BF16, F32, Packed, bits32, flush, narrow, narrow_at_random, relu, round_integral, saturate, to_f32,
};
use crate::isa::{Round, mask, sign_extend};
use crate::lanes::{Lanes, lanes};
use crate::op::{Convert, ConvertAtRandom, ConvertPair, FloatType, IntegerType, NumberType, PairSource, Reg};

/// Converts one value in each lane.
pub(crate) fn one(regs: &mut [Lanes], exec: u32, op: &Convert) {
    let keep = mask(op.width);
    match (op.from, op.to) {
        (NumberType::Integer(from), NumberType::Integer(to)) if !op.sat && from.signed => {
            map1(regs, exec, op.d, op.a, |a| resize(sign_extend(a, from.bits) as u64, to) & keep);
        }
        (NumberType::Integer(from), NumberType::Integer(to)) if !op.sat => {
            map1(regs, exec, op.d, op.a, |a| resize(a & mask(from.bits), to) & keep);
        }
        (NumberType::Integer(from), NumberType::Integer(to)) => {
            map1(regs, exec, op.d, op.a, |a| resize(saturate_integer(integer(a, from), to), to) & keep);
        }
        (NumberType::Integer(from), NumberType::Float(to)) => {
            map1(regs, exec, op.d, op.a, |a| from_integer(integer(a, from), to, op));
        }
        (NumberType::Float(from), NumberType::Integer(to)) => {
            map1(regs, exec, op.d, op.a, |a| resize(to_integer(float(a, from, op), to, op), to) & keep);
        }
        (NumberType::Float(from), NumberType::Float(to)) if passes_nan_on(from, to, op) => {
            map1(regs, exec, op.d, op.a, |a| match converted_nan(a, from, to) {
                Some(nan) => nan,
                None => to_float(float(a, from, op), to, op),
            });
        }
        (NumberType::Float(from), NumberType::Float(to)) => {
            map1(regs, exec, op.d, op.a, |a| to_float(float(a, from, op), to, op));
        }
    }
}

/// Whether a conversion of NaN keeps its sign and its upper bits, as on an H200; else it becomes the canonical NaN. The PTX ISA
/// leaves this open.
fn passes_nan_on(from: FloatType, to: FloatType, op: &Convert) -> bool {
    let is_widened_bf16 = (from, to) == (FloatType::Half(BF16), FloatType::F32);
    let is_of_doubles = (from == FloatType::F64) != (to == FloatType::F64) && from != FloatType::F32;
    (is_widened_bf16 || is_of_doubles) && !op.sat && !op.relu && !op.ftz
}

/// The bits of a NaN in another type, if `a` is one: its sign, and the upper bits of its mantissa or zeros below it. It becomes
/// quiet, except from bf16 to f32, where bits are only moved.
fn converted_nan(a: u64, from: FloatType, to: FloatType) -> Option<u64> {
    if !read_element(a, from).is_nan() {
        return None;
    }
    let mantissa = |kind: FloatType| match kind {
        FloatType::F64 => 52,
        FloatType::F32 => 23,
        FloatType::Half(format) => format.mantissa_bits(),
    };
    let (own, other) = (mantissa(from), mantissa(to));
    let kept = (a & mask(own)) << (52 - own) >> (52 - other);
    let quiet = if (from, to) == (FloatType::Half(BF16), FloatType::F32) { 0 } else { 1 << (other - 1) };
    let sign = a >> (from.bits() - 1) & 1;
    let exponent = mask(to.bits() - 1) >> other << other;
    Some(sign << (to.bits() - 1) | exponent | kept | quiet)
}

/// Truncates to the destination type, then sign- or zero-extends according to that type.
fn resize(value: u64, to: IntegerType) -> u64 {
    if to.signed { sign_extend(value, to.bits) as u64 } else { value & mask(to.bits) }
}

fn integer(a: u64, from: IntegerType) -> i128 {
    if from.signed { i128::from(sign_extend(a, from.bits)) } else { i128::from(a & mask(from.bits)) }
}

fn float(a: u64, from: FloatType, op: &Convert) -> f64 {
    let value = read_element(a, from);
    if op.ftz && from == FloatType::F32 { f64::from(flush(value as f32)) } else { value }
}

/// The range of an integer type.
fn range(to: IntegerType) -> (i128, i128) {
    if to.signed {
        let top = i128::from(mask(to.bits) >> 1);
        (-top - 1, top)
    } else {
        (0, i128::from(mask(to.bits)))
    }
}

fn saturate_integer(value: i128, to: IntegerType) -> u64 {
    let (least, most) = range(to);
    value.clamp(least, most) as u64
}

/// Converts a float to an integer with clamping; NaN becomes 0, or only the top bit set if one of the two types has 64
/// bits (PTX ISA, section 9.7.9.21).
fn to_integer(value: f64, to: IntegerType, op: &Convert) -> u64 {
    if value.is_nan() {
        return if op.from == NumberType::Float(FloatType::F64) || to.bits == 64 { 1 << (to.bits - 1) } else { 0 };
    }
    let rounded = round_integral(value, op.round);
    saturate_integer(rounded as i128, to)
}

/// Converts an integer to a float. It is first rounded to odd with 53 bits, so that the second rounding gives the
/// correct result.
fn from_integer(value: i128, to: FloatType, op: &Convert) -> u64 {
    if to == FloatType::F64 {
        return directed_double(value, op.round).to_bits();
    }
    let magnitude = value.unsigned_abs();
    let spare = (128 - magnitude.leading_zeros()).saturating_sub(53);
    let kept = magnitude >> spare << spare;
    let odd = if kept == magnitude { magnitude } else { kept | 1 << spare };
    let exact = odd as f64;
    to_float(if value < 0 { -exact } else { exact }, to, op)
}

fn directed_double(value: i128, round: Round) -> f64 {
    let nearest = value as f64;
    let error = value - nearest as i128;
    let toward_zero = (error < 0) == (value > 0);
    let step = match round {
        Round::Nearest | Round::Away => false,
        Round::Zero => error != 0 && toward_zero,
        Round::Down => error < 0,
        Round::Up => error > 0,
    };
    if !step {
        return nearest;
    }
    let bits = nearest.to_bits();
    f64::from_bits(if toward_zero { bits - 1 } else { bits + 1 })
}

fn to_float(value: f64, to: FloatType, op: &Convert) -> u64 {
    let value = if op.integral { round_integral(value, op.round) } else { value };
    let value = if op.sat { saturate(value) } else { value };
    let value = if op.relu { relu(value) } else { value };
    let value = op.limit.map_or(value, |limit| value.clamp(-limit, limit));
    let round = if op.integral { Round::Nearest } else { op.round };
    match to {
        FloatType::F64 => value.to_bits(),
        FloatType::Half(format) => u64::from(narrow(value, format, round)),
        FloatType::F32 => bits32(to_f32(if op.ftz { F32.flush_result(value, round) } else { value }, round)),
    }
}

/// Converts to a packed pair.
pub(crate) fn pair(regs: &mut [Lanes], exec: u32, op: &ConvertPair) {
    let width = op.to.stride();
    match op.source {
        PairSource::Singles(a, b) => map2(regs, exec, op.d, [a, b], |a, b| {
            let half = |bits: u64| element(f64::from(f32::from_bits(bits as u32)), op);
            half(a) << width | half(b)
        }),
        PairSource::Packed(a, from) => map1(regs, exec, op.d, a, |a| {
            let half = |bits: u64| element(from.value(bits), op);
            half(a >> from.stride()) << width | half(a)
        }),
    }
}

/// One element of a pair.
fn element(value: f64, op: &ConvertPair) -> u64 {
    let value = if op.sat { saturate(value) } else { value };
    let value = if op.relu { relu(value) } else { value };
    op.to.bits(value, op.round, op.finite)
}

/// Converts to packed elements, each rounded by random bits.
pub(crate) fn at_random(regs: &mut [Lanes], exec: u32, op: &ConvertAtRandom) {
    let (bits, share) = (op.random_bits(), 32 / op.sources.len());
    let stride = Packed::Float(op.to).stride() as usize;
    for lane in lanes(exec) {
        let random = regs[op.random as usize][lane];
        let element = |(at, source): (usize, &Reg)| {
            let value = f64::from(f32::from_bits(regs[*source as usize][lane] as u32));
            let value = if op.relu { relu(value) } else { value };
            let random = (random >> (at * share) & mask(bits)) as u32;
            u64::from(narrow_at_random(value, op.to, (random, bits), op.finite)) << (at * stride)
        };
        regs[op.d as usize][lane] = op.sources.iter().enumerate().map(element).fold(0, |all, element| all | element);
    }
}

/// The bits of the largest tf32.
const LARGEST_TF32: u32 = 0x7f7f_e000;
/// The canonical NaN, without the bits that a tf32 does not have.
const NAN_TF32: u64 = 0x7fff_e000;

/// f32 bits rounded to 10 bits of mantissa. NaN becomes what it becomes on an H200, since the PTX ISA leaves it open.
pub(crate) fn to_tf32(a: u64, round: Round, relu: bool, finite: bool) -> u64 {
    let bits = a as u32;
    let value = f32::from_bits(bits);
    if value.is_nan() {
        let cut = u64::from(bits & !0x1fff);
        return match (round, finite) {
            (Round::Away, true) => cut - 0x2000,
            (Round::Away, false) => cut,
            _ => NAN_TF32,
        };
    }
    if relu && value <= 0.0 {
        return 0;
    }
    let rest = bits & 0x1fff;
    let odd = bits >> 13 & 1;
    let up = match round {
        Round::Away => rest >= 0x1000,
        Round::Nearest => rest > 0x1000 || (rest == 0x1000 && odd == 1),
        Round::Zero => false,
        Round::Down => bits >> 31 == 1 && rest != 0,
        Round::Up => bits >> 31 == 0 && rest != 0,
    };
    let kept = (bits & !0x1fff).wrapping_add(if up { 0x2000 } else { 0 });
    let too_large = finite && f32::from_bits(kept).is_infinite();
    u64::from(if too_large { (kept & 0x8000_0000) | LARGEST_TF32 } else { kept })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(name: &str) -> NumberType {
        let integer = |signed: bool, bits: u32| NumberType::Integer(IntegerType { signed, bits });
        match name {
            "s32" => integer(true, 32),
            "u32" => integer(false, 32),
            "s64" => integer(true, 64),
            "u64" => integer(false, 64),
            "f32" => NumberType::Float(FloatType::F32),
            "f64" => NumberType::Float(FloatType::F64),
            other => panic!("{other}"),
        }
    }

    fn convert(from: &str, to: &str, a: u64) -> u64 {
        let (from, to) = (number(from), number(to));
        let truncates = matches!((from, to), (NumberType::Float(_), NumberType::Integer(_)));
        let round = if truncates { Round::Zero } else { Round::Nearest };
        let op = Convert {
            d: 0,
            a: 0,
            from,
            to,
            width: to.bits(),
            round,
            integral: false,
            ftz: false,
            sat: false,
            relu: false,
            limit: None,
        };
        let mut regs = [[a; 32]];
        one(&mut regs, 1, &op);
        regs[0][0]
    }

    #[test]
    fn integers_extend_by_the_source_type() {
        assert_eq!(convert("s32", "s64", 0xffff_ffff), u64::MAX);
        assert_eq!(convert("u32", "u64", 0xffff_ffff), 0xffff_ffff);
        assert_eq!(convert("u64", "u32", 0x1_0000_0002), 2);
    }

    #[test]
    fn floats_clamp_to_the_integer_range() {
        assert_eq!(convert("f32", "s32", u64::from(3e9f32.to_bits())), 0x7fff_ffff);
        assert_eq!(convert("f32", "u32", u64::from((-1.5f32).to_bits())), 0);
    }

    #[test]
    fn not_a_number_becomes_zero_or_the_top_bit() {
        let single = u64::from(f32::NAN.to_bits());
        let found = ["s32", "u32", "s64", "u64"].map(|to| convert("f32", to, single));
        assert_eq!(found, [0, 0, 1 << 63, 1 << 63]);
        let found = ["s32", "u32", "s64", "u64"].map(|to| convert("f64", to, f64::NAN.to_bits()));
        assert_eq!(found, [1 << 31, 1 << 31, 1 << 63, 1 << 63]);
    }

    #[test]
    fn large_integers_round_once() {
        for value in [0x7fff_ff40u64, 0x7fff_ffc0, 0x4000_0040, 0x4000_0041, u64::MAX, 0x8000_0080_0000_0001] {
            assert_eq!(convert("u64", "f32", value), u64::from((value as f32).to_bits()));
        }
    }

    #[test]
    fn tf32_keeps_ten_bits() {
        let rounded = |bits: u64, round: Round| to_tf32(bits, round, false, false);
        assert_eq!(rounded(0x3f80_1000, Round::Away), 0x3f80_2000);
        assert_eq!(rounded(0x3f80_0fff, Round::Away), 0x3f80_0000);
        assert_eq!(rounded(0x3f80_1000, Round::Nearest), 0x3f80_0000);
        assert_eq!(rounded(0x3f80_3000, Round::Nearest), 0x3f80_4000);
        assert_eq!(rounded(0xff7f_ffff, Round::Away), 0xff80_0000);
        assert_eq!(to_tf32(0xff7f_ffff, Round::Away, false, true), 0xff7f_e000);
        assert_eq!(to_tf32(0xbf80_0000, Round::Nearest, true, false), 0);
    }
}
