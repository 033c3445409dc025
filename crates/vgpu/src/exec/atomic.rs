//! `atom` and `red`: lanes execute one after another, each of them atomically.

use crate::exec::access::{Access, WarpAccess, resolve_spaces};
use crate::exec::float::read_element;
use crate::exec::machine::Machine;
use crate::exec::memory::{MAX_BYTES, little_endian};
use crate::exec::undefined::{upwards, whole};
use crate::exec::warp::Warp;
use crate::fault::ExecResult;
use crate::float::{F32, add_odd, bits32, maximum, minimum, narrow};
use crate::isa::{Round, Space, mask, sign_extend};
use crate::lanes::lanes;
use crate::op::{AtomFn, Atomic, FloatType};
use crate::report::AccessKind;
use crate::undefined::Undefined;

impl Machine<'_> {
    pub(crate) fn atomic(&mut self, warp: &mut Warp, exec: u32, op: &Atomic) -> ExecResult<()> {
        let (addresses, parts) = resolve_spaces(&warp.regs, &op.at, exec);
        let size = op.size as usize;
        let len = size * op.b.len();
        let pc = warp.pc;
        for (space, part) in parts {
            if part == 0 {
                continue;
            }
            self.must_be_defined(warp, op.at.base, part, "decide which memory is modified")?;
            for operand in op.b.iter().chain([&op.c]) {
                self.must_be_defined(warp, *operand, part, "are an operand of an atomic operation")?;
            }
            let (kind, bytes) = (AccessKind::Atomic, len as u32);
            warp.loops.note_read(pc, space, (&addresses, part), len);
            self.tally(pc, &WarpAccess::new(space, kind, (&addresses, part), bytes));
            for lane in lanes(part) {
                let plain = Access::new(warp, lane, addresses[lane], len, true);
                let access = Access { strong: Some(op.strong), is_update: true, is_load: false, ..plain };
                let slot = self.locate(space, &access)?;
                let mut bytes = [0u8; MAX_BYTES];
                let undefined = self.fetch(&slot, &access, &mut bytes[..len])?;
                if let Some(byte) = undefined.iter().flatten().find(|byte| byte.is_some()) {
                    return Err(self.undefined_use(byte.origin, pc, "are modified by an atomic operation"));
                }
                let old = bytes;
                let c = warp.regs[op.c as usize][lane];
                // Shared memory keeps subnormal sums of f32, global memory does not (PTX ISA, section 9.7.13.5).
                let ftz = op.ftz && space == Space::Global;
                for (chunk, b) in bytes[..len].chunks_mut(size).zip(op.b.iter()) {
                    let b = warp.regs[*b as usize][lane];
                    let new = updated(op.f, little_endian(chunk), b, c, op.size * 8, ftz).to_le_bytes();
                    chunk.copy_from_slice(&new[..size]);
                }
                let write = Access { is_read: false, ..access };
                self.put(&slot, &write, &bytes[..len], &[])?;
                for (chunk, d) in old.chunks(size).zip(op.d.iter()) {
                    warp.regs[*d as usize][lane] = little_endian(chunk);
                    warp.mark(*d, lane, Undefined::default());
                }
            }
        }
        Ok(())
    }
}

/// The new value of a word, with f32 subnormals flushed if `ftz` is set.
fn updated(f: AtomFn, old: u64, b: u64, c: u64, bits: u32, ftz: bool) -> u64 {
    if !ftz {
        return combine(f, old, b, c, bits);
    }
    let flush = |value: u64| u64::from(F32.flush_bits(value as u32));
    flush(combine(f, flush(old), flush(b), c, bits))
}

/// The undefined bits of the new value of a word, from those of both operands.
pub(crate) fn undefined_result(f: AtomFn, operands: Undefined, bits: u32) -> Undefined {
    match f {
        AtomFn::And | AtomFn::Or | AtomFn::Xor => operands,
        AtomFn::Add => upwards(operands, mask(bits)),
        _ => whole(operands, mask(bits)),
    }
}

/// The new value of a word (PTX ISA, section 9.7.13.5).
pub(crate) fn combine(f: AtomFn, old: u64, b: u64, c: u64, bits: u32) -> u64 {
    let keep = mask(bits);
    let (old, b, c) = (old & keep, b & keep, c & keep);
    let less = sign_extend(b, bits) < sign_extend(old, bits);
    let result = match f {
        AtomFn::Add => old.wrapping_add(b),
        AtomFn::Min { signed: true } => pick(less, b, old),
        AtomFn::Max { signed: true } => pick(less, old, b),
        AtomFn::Min { signed: false } => old.min(b),
        AtomFn::Max { signed: false } => old.max(b),
        AtomFn::Exch => b,
        AtomFn::Cas => pick(old == b, c, old),
        AtomFn::Inc => pick(old >= b, 0, old.wrapping_add(1)),
        AtomFn::Dec => pick(old == 0 || old > b, b, old.wrapping_sub(1)),
        AtomFn::And => old & b,
        AtomFn::Or => old | b,
        AtomFn::Xor => old ^ b,
        // Rounding to odd first is needed for narrower results only.
        AtomFn::AddFloat(FloatType::F64, _) => (f64::from_bits(old) + f64::from_bits(b)).to_bits(),
        AtomFn::AddFloat(element, packed) => float(element, packed, old, b, add_odd),
        AtomFn::MinFloat(element, packed) => float(element, packed, old, b, minimum),
        AtomFn::MaxFloat(element, packed) => float(element, packed, old, b, maximum),
    };
    result & keep
}

fn pick(first: bool, a: u64, b: u64) -> u64 {
    if first { a } else { b }
}

fn float(element: FloatType, packed: bool, a: u64, b: u64, f: fn(f64, f64) -> f64) -> u64 {
    if !packed {
        return float_element(element, a, b, f);
    }
    let bits = if matches!(element, FloatType::Half(_)) { 16 } else { 32 };
    let low = float_element(element, a & mask(bits), b & mask(bits), f);
    float_element(element, a >> bits, b >> bits, f) << bits | low
}

fn float_element(element: FloatType, a: u64, b: u64, f: fn(f64, f64) -> f64) -> u64 {
    let (x, y) = (read_element(a, element), read_element(b, element));
    match element {
        FloatType::F32 => bits32(f(x, y) as f32),
        FloatType::F64 => f(x, y).to_bits(),
        FloatType::Half(format) => u64::from(narrow(f(x, y), format, Round::Nearest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_wrap_at_their_bound() {
        assert_eq!(combine(AtomFn::Inc, 3, 3, 0, 32), 0);
        assert_eq!(combine(AtomFn::Inc, 2, 3, 0, 32), 3);
        assert_eq!(combine(AtomFn::Dec, 0, 7, 0, 32), 7);
    }

    #[test]
    fn comparisons_follow_the_sign() {
        let minus = 0xffff_ffff;
        assert_eq!(combine(AtomFn::Min { signed: true }, 1, minus, 0, 32), minus);
        assert_eq!(combine(AtomFn::Min { signed: false }, 1, minus, 0, 32), 1);
    }

    #[test]
    fn packed_halves_add_apart() {
        let f = AtomFn::AddFloat(FloatType::Half(crate::float::F16), true);
        assert_eq!(combine(f, 0x4000_3c00, 0x3c00_3c00, 0, 32), 0x4200_4000);
    }
}
