//! Additions and multiplications with the carry flag.

use crate::exec::int::{exact, high};
use crate::exec::warp::Warp;
use crate::isa::mask;
use crate::lanes::lanes;
use crate::op::{Carry, CarryFn};

/// Executes an instruction that reads or writes the carry flag.
pub(crate) fn execute(warp: &mut Warp, exec: u32, op: &Carry) {
    let Carry { f, bits, read, write, d, s } = op;
    let [a, b, c] = s.map(|reg| warp.regs[reg as usize]);
    for lane in lanes(exec) {
        let flag = if *read { u64::from(warp.carry >> lane & 1) } else { 0 };
        let (value, out) = carry_one(*f, *bits, [a[lane], b[lane], c[lane]], flag);
        warp.regs[*d as usize][lane] = value;
        if *write {
            warp.carry = (warp.carry & !(1 << lane)) | u32::from(out) << lane;
        }
    }
}

/// The result and the new carry flag. For subtraction, the flag is the borrow.
fn carry_one(f: CarryFn, bits: u32, [a, b, c]: [u64; 3], flag: u64) -> (u64, bool) {
    let keep = mask(bits);
    let (left, right) = match f {
        CarryFn::Sub => {
            let need = u128::from(b & keep) + u128::from(flag);
            let value = a.wrapping_sub(b).wrapping_sub(flag) & keep;
            return (value, u128::from(a & keep) < need);
        }
        CarryFn::Add => (a & keep, b & keep),
        CarryFn::MadLo { signed } => (exact(a, b, bits, signed) as u64 & keep, c & keep),
        CarryFn::MadHi { signed } => (high(a, b, bits, signed), c & keep),
    };
    let sum = u128::from(left) + u128::from(right) + u128::from(flag);
    (sum as u64 & keep, sum > u128::from(keep))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carries_pass_on() {
        assert_eq!(carry_one(CarryFn::Add, 32, [0xffff_ffff, 1, 0], 0), (0, true));
        assert_eq!(carry_one(CarryFn::Sub, 32, [0, 1, 0], 0), (0xffff_ffff, true));
        assert_eq!(carry_one(CarryFn::Add, 64, [u64::MAX, 0, 0], 1), (0, true));
    }
}
