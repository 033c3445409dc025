//! Instructions that access only registers, predicates and the carry flags of the warp.

use crate::exec::warp::Warp;
use crate::exec::{carry, compare, convert, float, int, lanewise};
use crate::isa::{Space, mask};
use crate::lanes::lanes;
use crate::memory::map;
use crate::op::{Guard, Reg, ScalarOp};

/// Executes an instruction in the lanes of `exec`.
pub(crate) fn execute(warp: &mut Warp, exec: u32, op: &ScalarOp) {
    match op {
        ScalarOp::Mov { d, a } => lanewise::map1(&mut warp.regs, exec, *d, *a, |a| a),
        ScalarOp::MovMany(moves) => mov_many(warp, exec, moves),
        ScalarOp::Unpack { a, bits, parts } => {
            let (bits, keep) = (*bits, mask(*bits));
            lanewise::split(&mut warp.regs, exec, *a, parts, |value, index| value >> (bits * index as u32) & keep);
        }
        ScalarOp::Pack { d, bits, parts } => pack(warp, exec, *d, *bits, parts),
        ScalarOp::Int { f, bits, d, s } => int::execute(&mut warp.regs, exec, *f, *bits, *d, s),
        ScalarOp::Carry(op) => carry::execute(warp, exec, op),
        ScalarOp::Selp { d, a, b, p } => selp(warp, exec, *d, [*a, *b], *p),
        ScalarOp::MovPred { d, a } => {
            let value = warp.guard(*a);
            warp.set_pred(*d, exec, value);
        }
        ScalarOp::Pred { f, d, a, b } => {
            let value = f.apply(warp.guard(*a), warp.guard(*b));
            warp.set_pred(*d, exec, value);
        }
        ScalarOp::Setp(setp) => compare::setp(warp, exec, setp),
        ScalarOp::Set(set) => compare::set(warp, exec, set),
        ScalarOp::Testp { f, double, d, a } => {
            let value = compare::testp(&warp.regs[*a as usize], *f, *double);
            warp.set_pred(*d, exec, value);
        }
        ScalarOp::Float { f, mode, d, s } => float::execute(&mut warp.regs, exec, *f, mode, *d, s),
        ScalarOp::Convert(convert) => convert::one(&mut warp.regs, exec, convert),
        ScalarOp::ConvertPair(pair) => convert::pair(&mut warp.regs, exec, pair),
        ScalarOp::ConvertAtRandom(op) => convert::at_random(&mut warp.regs, exec, op),
        ScalarOp::ToTf32 { d, a, round, relu, finite } => {
            lanewise::map1(&mut warp.regs, exec, *d, *a, |a| convert::to_tf32(a, *round, *relu, *finite));
        }
        ScalarOp::IsSpace { d, a, space } => is_space(warp, exec, *d, *a, *space),
        ScalarOp::Cvta { d, a, space, to_generic, bits } => {
            let window = map::window(*space);
            let (add, keep) = (if *to_generic { window } else { window.wrapping_neg() }, mask(*bits));
            lanewise::map1(&mut warp.regs, exec, *d, *a, |a| a.wrapping_add(add) & keep);
        }
        ScalarOp::ActiveMask { d } => warp.fill(*d, exec, u64::from(exec)),
    }
}

fn mov_many(warp: &mut Warp, exec: u32, moves: &[(Reg, Reg)]) {
    for lane in lanes(exec) {
        let values: Vec<u64> = moves.iter().map(|(_, a)| warp.regs[*a as usize][lane]).collect();
        for ((d, _), value) in moves.iter().zip(values) {
            warp.regs[*d as usize][lane] = value;
        }
    }
}

fn pack(warp: &mut Warp, exec: u32, d: Reg, bits: u32, parts: &[Reg]) {
    let keep = mask(bits);
    if let [low, high] = parts {
        return lanewise::map2(&mut warp.regs, exec, d, [*low, *high], |low, high| {
            (low & keep) | (high & keep) << bits
        });
    }
    for lane in lanes(exec) {
        let mut value = 0u64;
        for (index, part) in parts.iter().enumerate() {
            value |= (warp.regs[*part as usize][lane] & keep) << (bits * index as u32);
        }
        warp.regs[d as usize][lane] = value;
    }
}

fn selp(warp: &mut Warp, exec: u32, d: Reg, sources: [Reg; 2], p: Guard) {
    let chosen = warp.guard(p);
    let a = warp.regs[sources[0] as usize];
    let b = warp.regs[sources[1] as usize];
    let slot = &mut warp.regs[d as usize];
    for lane in lanes(exec) {
        slot[lane] = if chosen >> lane & 1 == 1 { a[lane] } else { b[lane] };
    }
}

fn is_space(warp: &mut Warp, exec: u32, d: u32, a: Reg, space: Space) {
    let mut value = 0;
    for lane in lanes(exec) {
        let (found, _) = map::resolve(warp.regs[a as usize][lane]);
        value |= u32::from(found == space) << lane;
    }
    warp.set_pred(d, exec, value);
}
