//! Integer instructions. Registers hold zero-extended values; results are truncated to the width of the instruction.

use crate::exec::lanewise::{map1, map2, map3};
use crate::float::flush;
use crate::isa::{mask, sign_extend};
use crate::lanes::{Lanes, lanes};
use crate::op::{IntFn, Packed16Fn, PrmtMode, Reg};

/// Executes an integer instruction of width `bits`.
pub(crate) fn execute(regs: &mut [Lanes], exec: u32, f: IntFn, bits: u32, d: Reg, s: &[Reg; 4]) {
    let keep = mask(bits);
    let keep_wide = mask(bits * 2);
    let one = s[0];
    let two = [s[0], s[1]];
    let three = [s[0], s[1], s[2]];
    match f {
        IntFn::Add => map2(regs, exec, d, two, |a, b| a.wrapping_add(b) & keep),
        IntFn::Sub => map2(regs, exec, d, two, |a, b| a.wrapping_sub(b) & keep),
        IntFn::Mul => map2(regs, exec, d, two, |a, b| a.wrapping_mul(b) & keep),
        IntFn::Mad => map3(regs, exec, d, three, |a, b, c| a.wrapping_mul(b).wrapping_add(c) & keep),
        IntFn::And => map2(regs, exec, d, two, |a, b| a & b),
        IntFn::Or => map2(regs, exec, d, two, |a, b| a | b),
        IntFn::Xor => map2(regs, exec, d, two, |a, b| a ^ b),
        IntFn::Not => map1(regs, exec, d, one, |a| !a & keep),
        IntFn::Cnot => map1(regs, exec, d, one, |a| u64::from(a & keep == 0)),
        IntFn::Shl => map2(regs, exec, d, two, |a, b| if b >= u64::from(bits) { 0 } else { (a << b) & keep }),
        IntFn::Shr { signed } => map2(regs, exec, d, two, |a, b| shift_right(a, b, bits, signed)),
        IntFn::Abs => map1(regs, exec, d, one, |a| sign_extend(a, bits).unsigned_abs() & keep),
        IntFn::Neg => map1(regs, exec, d, one, |a| a.wrapping_neg() & keep),
        IntFn::Min { signed } => map2(regs, exec, d, two, |a, b| pick(less(a, b, bits, signed), a, b)),
        IntFn::Max { signed } => map2(regs, exec, d, two, |a, b| pick(less(a, b, bits, signed), b, a)),
        IntFn::Div { signed } => map2(regs, exec, d, two, |a, b| quotient(a, b, bits, signed)),
        IntFn::Rem { signed } => map2(regs, exec, d, two, |a, b| remainder(a, b, bits, signed)),
        IntFn::AddSat => {
            map2(regs, exec, d, two, |a, b| clamp(sign_extend(a, bits).saturating_add(sign_extend(b, bits)), bits))
        }
        IntFn::SubSat => {
            map2(regs, exec, d, two, |a, b| clamp(sign_extend(a, bits).saturating_sub(sign_extend(b, bits)), bits))
        }
        IntFn::MulWide { signed } => map2(regs, exec, d, two, |a, b| wide(a, b, bits, signed) & keep_wide),
        IntFn::MadWide { signed } => {
            map3(regs, exec, d, three, |a, b, c| wide(a, b, bits, signed).wrapping_add(c) & keep_wide);
        }
        IntFn::MulHi { signed } => map2(regs, exec, d, two, |a, b| high(a, b, bits, signed)),
        IntFn::MadHi { signed } => {
            map3(regs, exec, d, three, |a, b, c| high(a, b, bits, signed).wrapping_add(c) & keep);
        }
        IntFn::MadHiSat => map3(regs, exec, d, three, |a, b, c| {
            clamp(sign_extend(high(a, b, bits, true), bits).saturating_add(sign_extend(c, bits)), bits)
        }),
        IntFn::Mul24 { signed, hi } => map2(regs, exec, d, two, |a, b| product24(a, b, signed, hi)),
        IntFn::Mad24 { signed, hi } => {
            map3(regs, exec, d, three, |a, b, c| product24(a, b, signed, hi).wrapping_add(c) & keep);
        }
        IntFn::Funnel { left, wrap } => map3(regs, exec, d, three, |a, b, c| funnel(a, b, c, left, wrap)),
        IntFn::Bfe { signed } => map3(regs, exec, d, three, |a, b, c| bfe(a, b, c, bits, signed)),
        IntFn::Bfi => bfi(regs, exec, bits, d, s),
        IntFn::Bfind { signed, shift } => map1(regs, exec, d, one, |a| bfind(a, bits, signed, shift)),
        IntFn::Brev => map1(regs, exec, d, one, |a| a.reverse_bits() >> (64 - bits)),
        IntFn::Clz => map1(regs, exec, d, one, |a| u64::from((a & keep).leading_zeros()) - u64::from(64 - bits)),
        IntFn::Popc => map1(regs, exec, d, one, |a| u64::from((a & keep).count_ones())),
        IntFn::Prmt(mode) => map3(regs, exec, d, three, |a, b, c| prmt(a, b, c, mode)),
        IntFn::Lop3(table) => map3(regs, exec, d, three, |a, b, c| lop3(a, b, c, table)),
        IntFn::Sad { signed } => {
            map3(regs, exec, d, three, |a, b, c| difference(a, b, bits, signed).wrapping_add(c) & keep)
        }
        IntFn::Dp4a { a_signed, b_signed } => {
            map3(regs, exec, d, three, |a, b, c| dot(a, b, c, (a_signed, 8), (b_signed, 0), 4));
        }
        IntFn::Dp2a { a_signed, b_signed, hi } => {
            let first = if hi { 16 } else { 0 };
            map3(regs, exec, d, three, |a, b, c| dot(a, b, c, (a_signed, 16), (b_signed, first), 2));
        }
        IntFn::Packed16(f) => map2(regs, exec, d, two, |a, b| packed16(a, b, f)),
        IntFn::Bmsk { wrap } => map2(regs, exec, d, two, |a, b| bmsk(a, b, wrap)),
        IntFn::Select { float, ftz } => map3(regs, exec, d, three, |a, b, c| {
            let single = f32::from_bits(c as u32);
            let single = if ftz { flush(single) } else { single };
            let not_negative = if float { single >= 0.0 } else { sign_extend(c, 32) >= 0 };
            if not_negative { a } else { b }
        }),
        IntFn::Fns => map3(regs, exec, d, three, |a, b, c| nth_set(a as u32, b as u32, c as i32)),
    }
}

/// Applies a function to the 16-bit halves of two words.
fn packed16(a: u64, b: u64, f: Packed16Fn) -> u64 {
    let half = |a: u64, b: u64| {
        let less = |signed: bool| if signed { (a as u16 as i16) < (b as u16 as i16) } else { (a as u16) < (b as u16) };
        let value = match f {
            Packed16Fn::Add => a.wrapping_add(b),
            Packed16Fn::Sub => a.wrapping_sub(b),
            Packed16Fn::Min { signed } => pick(less(signed), a, b),
            Packed16Fn::Max { signed } => pick(less(signed), b, a),
        };
        value & mask(16)
    };
    half(a >> 16, b >> 16) << 16 | half(a, b)
}

fn pick(first: bool, a: u64, b: u64) -> u64 {
    if first { a } else { b }
}

/// Shifts clamp their amount to the width (PTX ISA, section 9.7.7).
fn shift_right(a: u64, amount: u64, bits: u32, signed: bool) -> u64 {
    let amount = amount.min(u64::from(bits));
    if signed {
        return (sign_extend(a, bits) >> amount.min(63)) as u64 & mask(bits);
    }
    if amount >= 64 { 0 } else { (a & mask(bits)) >> amount }
}

fn clamp(value: i64, bits: u32) -> u64 {
    let top = (mask(bits) >> 1) as i64;
    value.clamp(-top - 1, top) as u64 & mask(bits)
}

fn less(a: u64, b: u64, bits: u32, signed: bool) -> bool {
    if signed { sign_extend(a, bits) < sign_extend(b, bits) } else { a < b }
}

/// Division by zero gives all ones, as on the hardware.
fn quotient(a: u64, b: u64, bits: u32, signed: bool) -> u64 {
    if !signed {
        return a.checked_div(b).unwrap_or(mask(bits));
    }
    let (a, b) = (sign_extend(a, bits), sign_extend(b, bits));
    if b == 0 { mask(bits) } else { a.wrapping_div(b) as u64 & mask(bits) }
}

/// All ones for a divisor of 0, as on an H200; the PTX ISA leaves it open.
fn remainder(a: u64, b: u64, bits: u32, signed: bool) -> u64 {
    if b & mask(bits) == 0 {
        return mask(bits);
    }
    match signed {
        false => a % b,
        true => sign_extend(a, bits).wrapping_rem(sign_extend(b, bits)) as u64 & mask(bits),
    }
}

/// The exact product of two values of width `bits`.
pub(crate) fn exact(a: u64, b: u64, bits: u32, signed: bool) -> i128 {
    if signed {
        return i128::from(sign_extend(a, bits)) * i128::from(sign_extend(b, bits));
    }
    (u128::from(a & mask(bits)) * u128::from(b & mask(bits))) as i128
}

pub(crate) fn high(a: u64, b: u64, bits: u32, signed: bool) -> u64 {
    (exact(a, b, bits, signed) >> bits) as u64 & mask(bits)
}

/// The product modulo 2^64.
fn wide(a: u64, b: u64, bits: u32, signed: bool) -> u64 {
    exact(a, b, bits, signed) as u64
}

/// 32 bits of the 48-bit product of two 24-bit values.
fn product24(a: u64, b: u64, signed: bool, hi: bool) -> u64 {
    let value = exact(a, b, 24, signed);
    (if hi { value >> 16 } else { value }) as u64 & mask(32)
}

fn funnel(a: u64, b: u64, c: u64, left: bool, wrap: bool) -> u64 {
    let pair = (b & mask(32)) << 32 | (a & mask(32));
    let amount = if wrap { c & 31 } else { (c & mask(32)).min(32) };
    if left { (pair << amount) >> 32 } else { (pair >> amount) & mask(32) }
}

/// The position or the length of a field. From 256 on, where the PTX ISA leaves it open, an H200 takes the lower 8 bits in
/// forms of 32 bits, and the whole number in those of 64.
fn field_number(operand: u64, bits: u32) -> u32 {
    let number = operand as u32;
    if bits == 64 { number } else { number & 0xff }
}

fn bfe(a: u64, position: u64, length: u64, bits: u32, signed: bool) -> u64 {
    let (position, length) = (field_number(position, bits), field_number(length, bits));
    if length == 0 {
        return 0;
    }
    if !signed {
        return if position >= bits { 0 } else { (a >> position) & mask(length) & mask(bits) };
    }
    let value = sign_extend(a, bits) >> position.min(63);
    let top = (position.saturating_add(length) - 1).min(bits - 1);
    // Above the field, its top bit is repeated, or the top bit of the operand if the field ends beyond it.
    let sign = a >> top & 1 == 1;
    let field = value as u64 & mask(length);
    (if sign { field | !mask(length) } else { field }) & mask(bits)
}

fn bfi(regs: &mut [Lanes], exec: u32, bits: u32, d: Reg, s: &[Reg; 4]) {
    let [a, b, c, length] = s.map(|reg| regs[reg as usize]);
    let out = &mut regs[d as usize];
    for lane in lanes(exec) {
        let (position, length) = (field_number(c[lane], bits), field_number(length[lane], bits));
        out[lane] = if position >= bits {
            b[lane]
        } else {
            let field = (mask(length) << position) & mask(bits);
            (b[lane] & !field) | ((a[lane] << position) & field)
        };
    }
}

fn bfind(a: u64, bits: u32, signed: bool, shift: bool) -> u64 {
    let magnitude = if signed && sign_extend(a, bits) < 0 { !a } else { a };
    let value = magnitude & mask(bits);
    if value == 0 {
        return mask(32);
    }
    let top = 63 - value.leading_zeros();
    u64::from(if shift { bits - 1 - top } else { top })
}

fn prmt(a: u64, b: u64, c: u64, mode: PrmtMode) -> u64 {
    let source = (b & mask(32)) << 32 | (a & mask(32));
    let byte = |index: u64| source >> (index % 8 * 8) & 0xff;
    let s = c & 3;
    let choose = |f: &dyn Fn(u64) -> u64| (0..4u64).fold(0u64, |out, at| out | byte(f(at)) << (at * 8));
    match mode {
        PrmtMode::Index => (0..4u64).fold(0u64, |out, at| {
            let selector = c >> (at * 4) & 0xf;
            let value = byte(selector & 7);
            let value = if selector & 8 == 0 {
                value
            } else if value & 0x80 == 0 {
                0
            } else {
                0xff
            };
            out | value << (at * 8)
        }),
        PrmtMode::F4e => choose(&|at| s + at),
        PrmtMode::B4e => choose(&|at| s + 8 - at),
        PrmtMode::Rc8 => choose(&|_| s),
        PrmtMode::Ecl => choose(&|at| at.max(s)),
        PrmtMode::Ecr => choose(&|at| at.min(s)),
        PrmtMode::Rc16 => choose(&|at| (s & 1) * 2 + at % 2),
    }
}

fn lop3(a: u64, b: u64, c: u64, table: u8) -> u64 {
    let mut out = 0;
    for index in 0..8u32 {
        if table >> index & 1 == 1 {
            let pick = |value: u64, bit: u32| if index >> bit & 1 == 1 { value } else { !value };
            out |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    out & mask(32)
}

fn difference(a: u64, b: u64, bits: u32, signed: bool) -> u64 {
    if signed {
        return sign_extend(a, bits).abs_diff(sign_extend(b, bits));
    }
    (a & mask(bits)).abs_diff(b & mask(bits))
}

/// `c` plus the sum of `count` products of parts of `a` (of the given width) with bytes of `b` (from the given bit).
fn dot(a: u64, b: u64, c: u64, (a_signed, width): (bool, u32), (b_signed, first): (bool, u32), count: u32) -> u64 {
    let part = |value: u64, shift: u32, bits: u32, signed: bool| {
        let field = value >> shift & mask(bits);
        if signed { sign_extend(field, bits) } else { field as i64 }
    };
    let mut sum = sign_extend(c, 32);
    for index in 0..count {
        let x = part(a, index * width, width, a_signed);
        sum = sum.wrapping_add(x * part(b, first + index * 8, 8, b_signed));
    }
    sum as u64 & mask(32)
}

fn bmsk(position: u64, length: u64, wrap: bool) -> u64 {
    let (position, length) = if wrap { (position & 31, length & 31) } else { (position.min(32), length.min(32)) };
    (mask(length as u32) << position) & mask(32)
}

/// `fns`: the position of the `offset`-th set bit from `base` on, counted from 1, downwards if `offset` is negative;
/// for offset 0, `base` itself if that bit is set. All ones if there is none.
fn nth_set(word: u32, base: u32, offset: i32) -> u64 {
    let set = |at: &u32| word.checked_shr(*at).is_some_and(|rest| rest & 1 == 1);
    let skipped = (offset.unsigned_abs() as usize).saturating_sub(1);
    let found = match offset.signum() {
        _ if base > 31 => None,
        0 => Some(base).filter(set),
        1 => (base..32).filter(set).nth(skipped),
        _ => (0..=base).rev().filter(set).nth(skipped),
    };
    u64::from(found.unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_clamp() {
        assert_eq!(shift_right(0x8000_0000, 40, 32, true), 0xffff_ffff);
        assert_eq!(shift_right(0x8000_0000, 40, 32, false), 0);
        assert_eq!(shift_right(u64::MAX, 64, 64, false), 0);
    }

    #[test]
    fn permutes_choose_bytes() {
        let (a, b) = (0x3322_1100, 0x7766_5544);
        assert_eq!(prmt(a, b, 0x7410, PrmtMode::Index), 0x7744_1100);
        assert_eq!(prmt(0x80, 0, 0x8888, PrmtMode::Index), 0xffff_ffff);
        assert_eq!(prmt(a, b, 1, PrmtMode::F4e), 0x4433_2211);
        assert_eq!(prmt(a, b, 1, PrmtMode::B4e), 0x6677_0011);
        assert_eq!(prmt(a, b, 2, PrmtMode::Rc8), 0x2222_2222);
        assert_eq!(prmt(a, b, 1, PrmtMode::Rc16), 0x3322_3322);
    }

    #[test]
    fn fields_are_extracted_with_their_sign() {
        assert_eq!(bfe(0xf0, 4, 4, 32, true), 0xffff_ffff);
        assert_eq!(bfe(0xf0, 4, 4, 32, false), 0xf);
        assert_eq!(bfe(0xf0, 4, 0, 32, true), 0);
    }

    #[test]
    fn funnel_shifts_take_the_other_word() {
        assert_eq!(funnel(0x8000_0000, 1, 1, true, true), 3);
        assert_eq!(funnel(2, 1, 1, false, true), 0x8000_0001);
        assert_eq!(funnel(7, 9, 32, true, false), 7);
    }

    #[test]
    fn truth_tables_follow_the_operands() {
        let (a, b, c) = (0xf0, 0xcc, 0xaa);
        assert_eq!(lop3(a, b, c, 0xf0) & 0xff, 0xf0);
        assert_eq!(lop3(a, b, c, 0x96) & 0xff, 0xf0 ^ 0xcc ^ 0xaa);
    }

    #[test]
    fn set_bits_are_counted_from_the_base() {
        let bits = 0b1011_0100;
        let places = [(0, 1), (0, 2), (3, 1), (7, -1), (7, -3), (7, 0), (6, 0), (0, 5), (31, -9), (40, 1)];
        let none = u64::from(u32::MAX);
        let found = places.map(|(base, offset)| nth_set(bits, base, offset));
        assert_eq!(found, [2, 4, 4, 7, 4, 7, none, none, none, none]);
    }

    #[test]
    fn halves_do_not_carry_into_each_other() {
        assert_eq!(packed16(0x0001_ffff, 0x0001_0001, Packed16Fn::Add), 0x0002_0000);
        assert_eq!(packed16(0x0001_0000, 0x0001_0001, Packed16Fn::Sub), 0x0000_ffff);
        assert_eq!(packed16(0xffff_0001, 0x0001_ffff, Packed16Fn::Min { signed: true }), 0xffff_ffff);
        assert_eq!(packed16(0xffff_0001, 0x0001_ffff, Packed16Fn::Min { signed: false }), 0x0001_0001);
        assert_eq!(packed16(0xffff_0001, 0x0001_ffff, Packed16Fn::Max { signed: true }), 0x0001_0001);
    }
}
