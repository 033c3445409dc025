//! The common f32 instructions, with the host's f32 arithmetic and in all lanes at once.

use crate::exec::lanewise::map3;
use crate::float::{bits32, flush};
use crate::isa::{Round, mask};
use crate::lanes::Lanes;
use crate::op::{FloatFn, FloatMode, FloatType, MinMaxMode, Reg};

/// The plain forms of `min` and `max`.
const PLAIN: MinMaxMode = MinMaxMode { nan: false, abs: false, xorsign: false };

/// Executes an instruction if it is one of them; false for the others, which are computed in `f64`.
pub(super) fn execute(regs: &mut [Lanes], exec: u32, f: FloatFn, mode: &FloatMode, d: Reg, s: &[Reg; 3]) -> bool {
    if mode.element != FloatType::F32 || mode.round != Round::Nearest || mode.sat || mode.relu {
        return false;
    }
    let mut all = Instruction { regs, exec, packed: mode.packed, ftz: mode.ftz, d, s };
    match f {
        FloatFn::Add => all.apply(|a, b, _| a + b),
        FloatFn::Sub => all.apply(|a, b, _| a - b),
        FloatFn::Mul => all.apply(|a, b, _| a * b),
        FloatFn::Fma => all.apply(f32::mul_add),
        FloatFn::FmaSub => all.apply(|a, b, c| a.mul_add(b, -c)),
        FloatFn::FmaFrom => all.apply(|a, b, c| (-a).mul_add(b, c)),
        FloatFn::Div => all.apply(|a, b, _| a / b),
        FloatFn::Rcp => all.apply(|a, _, _| 1.0 / a),
        FloatFn::Sqrt => all.apply(|a, _, _| a.sqrt()),
        FloatFn::Rsqrt => all.apply(|a, _, _| (1.0 / f64::from(a).sqrt()) as f32),
        FloatFn::Ex2 => all.apply(|a, _, _| f64::from(a).exp2() as f32),
        FloatFn::Lg2 => all.apply(|a, _, _| f64::from(a).log2() as f32),
        FloatFn::Min(PLAIN) => all.apply(|a, b, _| minimum(a, b)),
        FloatFn::Max(PLAIN) => all.apply(|a, b, _| -minimum(-a, -b)),
        FloatFn::Min3(PLAIN) => all.apply(|a, b, c| minimum(minimum(a, b), c)),
        FloatFn::Max3(PLAIN) => all.apply(|a, b, c| -minimum(minimum(-a, -b), -c)),
        FloatFn::Neg => all.apply(|a, _, _| -a),
        FloatFn::Abs => all.apply(|a, _, _| a.abs()),
        _ => return false,
    }
    true
}

struct Instruction<'a> {
    regs: &'a mut [Lanes],
    exec: u32,
    packed: bool,
    ftz: bool,
    d: Reg,
    s: &'a [Reg; 3],
}

impl Instruction<'_> {
    /// `d = f(a, b, c)` for each element; a function of fewer operands ignores the others.
    fn apply(&mut self, f: impl Fn(f32, f32, f32) -> f32) {
        let read = |bits: u64| f32::from_bits(bits as u32);
        if self.ftz {
            let read = |bits: u64| flush(read(bits));
            self.elements(|a, b, c| bits32(flush(f(read(a), read(b), read(c)))));
        } else {
            self.elements(|a, b, c| bits32(f(read(a), read(b), read(c))));
        }
    }

    fn elements(&mut self, f: impl Fn(u64, u64, u64) -> u64) {
        if self.packed {
            let low = mask(32);
            let pair = |a: u64, b: u64, c: u64| f(a >> 32, b >> 32, c >> 32) << 32 | f(a & low, b & low, c & low);
            map3(self.regs, self.exec, self.d, *self.s, pair);
        } else {
            map3(self.regs, self.exec, self.d, *self.s, f);
        }
    }
}

/// Minimum as `min.f32` defines it: NaN is ignored if the other operand is a number, and -0 is less than +0.
fn minimum(a: f32, b: f32) -> f32 {
    let zero = f32::from_bits(a.to_bits() | b.to_bits());
    let number = if a < b { a } else { b };
    let least = if a == b { zero } else { number };
    if b.is_nan() { a } else { least }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimum_ignores_nan_and_orders_zeros() {
        let found = [(f32::NAN, 2.0), (2.0, f32::NAN), (0.0, -0.0), (-0.0, 0.0), (3.0, 3.0), (1.0, 2.0)]
            .map(|(a, b)| minimum(a, b).to_bits());
        let wanted: [f32; 6] = [2.0, 2.0, -0.0, -0.0, 3.0, 1.0];
        assert_eq!(found, wanted.map(f32::to_bits));
        assert!(minimum(f32::NAN, f32::NAN).is_nan());
    }
}
