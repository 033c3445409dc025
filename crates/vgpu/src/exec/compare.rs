//! Comparisons and tests.

use std::num::FpCategory;

use crate::exec::float::{flush_element, read_element};
use crate::exec::warp::Warp;
use crate::isa::{CmpOp, mask, sign_extend};
use crate::lanes::{Lanes, lanes};
use crate::op::{Comparison, IntegerType, NumberType, Set, Setp, TestFn};

/// Position of the high element of a packed type; only 16-bit types have packed comparisons.
const HIGH: u32 = 16;

/// `setp`: the second predicate receives the negated comparison, or that of the high element, combined in the same way.
pub(crate) fn setp(warp: &mut Warp, exec: u32, op: &Setp) {
    let first = compare(warp, exec, &op.compare, 0);
    let second = if op.compare.packed { compare(warp, exec, &op.compare, HIGH) } else { !first };
    let (first, second) = (combined(warp, &op.compare, first), combined(warp, &op.compare, second));
    warp.set_pred(op.d, exec, first);
    if let Some(q) = op.q {
        warp.set_pred(q, exec, second);
    }
}

/// `set`: writes all ones or 1.0 for each element whose comparison is true.
pub(crate) fn set(warp: &mut Warp, exec: u32, op: &Set) {
    let compared = |first: u32| combined(warp, &op.compare, compare(warp, exec, &op.compare, first));
    let (low, high) = (compared(0), if op.compare.packed { compared(HIGH) } else { 0 });
    let out = &mut warp.regs[op.d as usize];
    for lane in lanes(exec) {
        let value = |holds: u32| if holds >> lane & 1 == 1 { op.true_value } else { 0 };
        out[lane] = value(low) | value(high) << HIGH;
    }
}

fn combined(warp: &Warp, op: &Comparison, result: u32) -> u32 {
    op.combine.map_or(result, |(f, guard)| f.apply(result, warp.guard(guard)))
}

/// One bit for each lane of `exec`: whether the comparison is true for the elements that start at bit `first`.
fn compare(warp: &Warp, exec: u32, op: &Comparison, first: u32) -> u32 {
    let a = &warp.regs[op.a as usize];
    let b = &warp.regs[op.b as usize];
    match op.number {
        NumberType::Float(element) => {
            let read = |bits: u64| {
                let value = read_element(bits >> first, element);
                if op.ftz { flush_element(value, element) } else { value }
            };
            gather(exec, |lane| floats(op.cmp, read(a[lane]), read(b[lane])))
        }
        NumberType::Integer(IntegerType { signed: true, bits }) => {
            gather(exec, |lane| ordered(op.cmp, &sign_extend(a[lane], bits), &sign_extend(b[lane], bits)))
        }
        NumberType::Integer(IntegerType { signed: false, bits }) => {
            gather(exec, |lane| ordered(op.cmp, &(a[lane] & mask(bits)), &(b[lane] & mask(bits))))
        }
    }
}

fn gather(exec: u32, holds: impl Fn(usize) -> bool) -> u32 {
    let mut found = 0;
    for lane in lanes(exec) {
        found |= u32::from(holds(lane)) << lane;
    }
    found
}

fn ordered<T: PartialOrd>(cmp: CmpOp, a: &T, b: &T) -> bool {
    match cmp {
        CmpOp::Eq | CmpOp::Equ => a == b,
        CmpOp::Ne | CmpOp::Neu => a != b,
        CmpOp::Lt | CmpOp::Ltu => a < b,
        CmpOp::Le | CmpOp::Leu => a <= b,
        CmpOp::Gt | CmpOp::Gtu => a > b,
        CmpOp::Ge | CmpOp::Geu => a >= b,
        CmpOp::Num => true,
        CmpOp::Nan => false,
    }
}

fn floats(cmp: CmpOp, a: f64, b: f64) -> bool {
    let unordered = a.is_nan() || b.is_nan();
    if !unordered {
        return ordered(cmp, &a, &b);
    }
    matches!(cmp, CmpOp::Equ | CmpOp::Neu | CmpOp::Ltu | CmpOp::Leu | CmpOp::Gtu | CmpOp::Geu | CmpOp::Nan)
}

/// Lanes whose value, an f64 if `double` is set or else an f32, belongs to the class that `f` tests for.
pub(crate) fn testp(values: &Lanes, f: TestFn, double: bool) -> u32 {
    gather(u32::MAX, |lane| {
        let bits = values[lane];
        let class = if double { f64::from_bits(bits).classify() } else { f32::from_bits(bits as u32).classify() };
        match f {
            TestFn::Finite => !matches!(class, FpCategory::Nan | FpCategory::Infinite),
            TestFn::Infinite => class == FpCategory::Infinite,
            TestFn::Number => class != FpCategory::Nan,
            TestFn::NotANumber => class == FpCategory::Nan,
            TestFn::Normal => matches!(class, FpCategory::Normal | FpCategory::Zero),
            TestFn::Subnormal => class == FpCategory::Subnormal,
        }
    })
}
