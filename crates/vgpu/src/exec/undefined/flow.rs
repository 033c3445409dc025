//! How undefined bits propagate through instructions that access only registers.
//!
//! A result bit is undefined if it depends on the choice of the undefined source bits. This is exact for logic, moves,
//! shifts and permutations; a sum is undefined from the lowest undefined source bit upwards; for everything else, one
//! undefined source bit makes the whole result undefined.

use crate::exec::int;
use crate::exec::undefined::marks::{Marks, UndefinedLanes, Update};
use crate::exec::warp::Warp;
use crate::float::Packed;
use crate::isa::{mask, sign_extend};
use crate::lanes::{Lanes, lanes};
use crate::op::{
    Carry, Convert, DoubleMma, FloatMode, Guard, IntFn, Mma, NumberType, PairSource, PredFn, Reg, ScalarOp, Setp,
};
use crate::undefined::Undefined;

/// The sources of an instruction, and their undefined bits.
struct Flow<'a> {
    warp: &'a Warp,
    marks: &'a Marks,
    /// Mask of the executing lanes.
    exec: u32,
}

/// The undefined bits of the results of an instruction, determined before it is executed.
pub(crate) fn undefined_results(warp: &Warp, exec: u32, op: &ScalarOp) -> Vec<Update> {
    let Some(marks) = &warp.marks else { return Vec::new() };
    let flow = Flow { warp, marks, exec };
    match op {
        ScalarOp::Int { f, d, s, .. } if flow.are_defined(&s[..f.arity()]) => flow.defined(*d),
        ScalarOp::Float { f, d, s, .. } if flow.are_defined(&s[..f.arity()]) => flow.defined(*d),
        ScalarOp::Mov { d, a } => vec![flow.reg(*d, |lane| flow.at(*a, lane))],
        ScalarOp::MovMany(moves) => moves.iter().map(|(d, a)| flow.reg(*d, |lane| flow.at(*a, lane))).collect(),
        ScalarOp::Unpack { a, bits, parts } => flow.unpack(*a, *bits, parts),
        ScalarOp::Pack { d, bits, parts } => vec![flow.pack(*d, *bits, parts)],
        ScalarOp::ActiveMask { d } => vec![flow.reg(*d, |_| Undefined::default())],
        ScalarOp::Int { f, bits, d, s } => vec![flow.int(*f, *bits, *d, s)],
        ScalarOp::Selp { d, a, b, p } => vec![flow.reg(*d, |lane| flow.selected(lane, *a, *b, *p))],
        ScalarOp::Carry(carry) => flow.carry(carry),
        ScalarOp::Pred { f, d, a, b } => vec![flow.pred(*d, |lane| {
            let undefined = |guard: &Guard| flow.marks.pred(guard.index, lane);
            flow.joined(*f, (undefined(a), flow.holds(*a, lane)), (undefined(b), flow.holds(*b, lane)))
        })],
        ScalarOp::MovPred { d, a } => vec![flow.pred(*d, |lane| flow.marks.pred(a.index, lane))],
        ScalarOp::Setp(setp) => flow.setp(setp),
        ScalarOp::Set(set) => {
            let combined = |lane: usize| match set.compare.combine {
                Some((_, guard)) => marks.pred(guard.index, lane),
                None => Undefined::default(),
            };
            let compared = |lane: usize| flow.any(&[set.compare.a, set.compare.b], u64::MAX, lane);
            vec![flow.reg(set.d, |lane| whole(compared(lane).or(combined(lane)), u64::MAX))]
        }
        ScalarOp::Float { f, mode, d, s } => vec![flow.reg(*d, |lane| flow.float(mode, &s[..f.arity()], lane))],
        ScalarOp::Testp { d, a, .. } | ScalarOp::IsSpace { d, a, .. } => {
            vec![flow.pred(*d, |lane| whole(flow.at(*a, lane), 1))]
        }
        ScalarOp::Convert(convert) => vec![flow.reg(convert.d, |lane| converted(convert, flow.at(convert.a, lane)))],
        ScalarOp::ConvertPair(pair) => {
            let sources: Vec<Reg> = match pair.source {
                PairSource::Singles(upper, lower) => vec![lower, upper],
                PairSource::Packed(a, _) => vec![a],
            };
            let bits = pair.to.stride();
            vec![flow.reg(pair.d, |lane| match sources[..] {
                [lower, upper] => {
                    let upper = whole(flow.at(upper, lane), mask(bits) << bits);
                    whole(flow.at(lower, lane), mask(bits)).or(upper)
                }
                _ => whole(flow.any(&sources, u64::MAX, lane), mask(2 * bits)),
            })]
        }
        ScalarOp::ConvertAtRandom(op) => {
            let stride = Packed::Float(op.to).stride();
            let element = |at: usize, source: Reg, lane: usize| {
                whole(flow.any(&[source, op.random], u64::MAX, lane), mask(stride) << (at as u32 * stride))
            };
            vec![flow.reg(op.d, |lane| {
                let all = op.sources.iter().enumerate().map(|(at, source)| element(at, *source, lane));
                all.fold(Undefined::default(), Undefined::or)
            })]
        }
        ScalarOp::ToTf32 { d, a, .. } => vec![flow.reg(*d, |lane| whole(flow.at(*a, lane), mask(32)))],
        ScalarOp::Cvta { d, a, bits, .. } => vec![flow.reg(*d, |lane| whole(flow.at(*a, lane), mask(*bits)))],
    }
}

/// All of `bits` if any bit is undefined.
pub(crate) fn whole(undefined: Undefined, bits: u64) -> Undefined {
    if undefined.is_some() { undefined.with(bits) } else { undefined }
}

/// All bits of `keep` from the lowest undefined bit upwards.
pub(crate) fn upwards(undefined: Undefined, keep: u64) -> Undefined {
    let lowest = undefined.bits & undefined.bits.wrapping_neg();
    undefined.with(if undefined.is_some() { lowest.wrapping_neg() & keep } else { 0 })
}

impl Flow<'_> {
    fn at(&self, reg: Reg, lane: usize) -> Undefined {
        Undefined { is_late: false, ..self.marks.reg(reg, lane) }
    }

    /// Whether none of these registers has undefined bits.
    fn are_defined(&self, regs: &[Reg]) -> bool {
        regs.iter().all(|reg| self.marks.in_lanes(*reg).is_none())
    }

    /// A register becomes defined.
    fn defined(&self, d: Reg) -> Vec<Update> {
        if self.are_defined(&[d]) { Vec::new() } else { vec![self.reg(d, |_| Undefined::default())] }
    }

    fn lanes(&self, of: impl Fn(usize) -> Undefined) -> Box<UndefinedLanes> {
        let mut out = Box::new([Undefined::default(); 32]);
        lanes(self.exec).for_each(|lane| out[lane] = of(lane));
        out
    }

    fn reg(&self, d: Reg, of: impl Fn(usize) -> Undefined) -> Update {
        Update::Reg(d, self.lanes(of))
    }

    fn pred(&self, d: u32, of: impl Fn(usize) -> Undefined) -> Update {
        Update::Pred(d, self.lanes(of))
    }

    /// The undefined bits of any of the registers, among the bits of `keep`.
    fn any(&self, regs: &[Reg], keep: u64, lane: usize) -> Undefined {
        let of = |reg: &Reg| self.at(*reg, lane);
        regs.iter().map(of).map(|all| all.with(all.bits & keep)).fold(Undefined::default(), Undefined::or)
    }

    fn holds(&self, guard: Guard, lane: usize) -> bool {
        self.warp.guard(guard) >> lane & 1 == 1
    }

    fn unpack(&self, a: Reg, bits: u32, parts: &[Option<Reg>]) -> Vec<Update> {
        let part = |(index, d): (usize, &Option<Reg>)| {
            let of = |lane: usize| {
                let all = self.at(a, lane);
                all.with(all.bits >> (bits * index as u32) & mask(bits))
            };
            d.map(|d| self.reg(d, of))
        };
        parts.iter().enumerate().filter_map(part).collect()
    }

    fn pack(&self, d: Reg, bits: u32, parts: &[Reg]) -> Update {
        self.reg(d, |lane| {
            let part = |(index, part): (usize, &Reg)| {
                let all = self.at(*part, lane);
                all.with((all.bits & mask(bits)) << (bits * index as u32))
            };
            parts.iter().enumerate().map(part).fold(Undefined::default(), Undefined::or)
        })
    }

    fn selected(&self, lane: usize, a: Reg, b: Reg, p: Guard) -> Undefined {
        let (first, second) = (self.at(a, lane), self.at(b, lane));
        let chooses = self.marks.pred(p.index, lane);
        if !chooses.is_some() {
            return if self.holds(p, lane) { first } else { second };
        }
        let differ = self.warp.regs[a as usize][lane] ^ self.warp.regs[b as usize][lane];
        first.or(second).or(chooses.with(differ))
    }

    /// Logic on two predicates, each given by its undefined bit and its value.
    fn joined(&self, f: PredFn, (a, x): (Undefined, bool), (b, y): (Undefined, bool)) -> Undefined {
        let decides = |undefined: Undefined, value: bool| match f {
            PredFn::And => !undefined.is_some() && !value,
            PredFn::Or => !undefined.is_some() && value,
            PredFn::Xor => false,
        };
        if decides(a, x) || decides(b, y) { Undefined::default() } else { a.or(b) }
    }

    fn carry(&self, carry: &Carry) -> Vec<Update> {
        let sources = |lane: usize| {
            let flag = if carry.read { self.marks.carry(lane) } else { Undefined::default() };
            self.any(&carry.s, u64::MAX, lane).or(flag)
        };
        let mut updates = vec![self.reg(carry.d, |lane| whole(sources(lane), mask(carry.bits)))];
        if carry.write {
            updates.push(Update::Carry(self.lanes(|lane| whole(sources(lane), 1))));
        }
        updates
    }

    fn setp(&self, setp: &Setp) -> Vec<Update> {
        let compare = &setp.compare;
        let bits = compare.number.bits();
        let of = |keep: u64| {
            move |lane: usize| {
                let compared = whole(self.any(&[compare.a, compare.b], keep, lane), 1);
                let Some((f, guard)) = compare.combine else { return compared };
                // The value of a defined comparison is not known yet, so that only the other operand may decide.
                let other = self.marks.pred(guard.index, lane);
                let value = self.holds(guard, lane);
                let decides = !other.is_some() && matches!((f, value), (PredFn::And, false) | (PredFn::Or, true));
                if decides { Undefined::default() } else { compared.or(other) }
            }
        };
        let (low, high) = if compare.packed { (mask(16), mask(16) << 16) } else { (mask(bits), mask(bits)) };
        let mut updates = vec![self.pred(setp.d, of(low))];
        updates.extend(setp.q.map(|q| self.pred(q, of(high))));
        updates
    }

    fn float(&self, mode: &FloatMode, sources: &[Reg], lane: usize) -> Undefined {
        let bits = mode.element.bits();
        let part = |shift: u32| whole(self.any(sources, mask(bits) << shift, lane), mask(bits) << shift);
        if mode.packed { part(0).or(part(bits)) } else { part(0) }
    }

    fn int(&self, f: IntFn, bits: u32, d: Reg, s: &[Reg; 4]) -> Update {
        let sources = &s[..f.arity()];
        match propagation(f) {
            Propagation::Bitwise => self.logic(f, bits, d, s),
            Propagation::Permute(controls) => {
                let is_control = |at: &usize| controls.contains(at);
                let control: Vec<Reg> = (0..sources.len()).filter(is_control).map(|at| sources[at]).collect();
                let moved = self.moved(f, bits, s, controls);
                self.reg(d, |lane| {
                    let chooses = self.any(&control, u64::MAX, lane);
                    let all = self.any(sources, u64::MAX, lane);
                    if chooses.is_some() { all.with(mask(bits)) } else { all.with(moved[lane]) }
                })
            }
            Propagation::Upwards(factor) => {
                self.reg(d, |lane| upwards(self.any(sources, u64::MAX, lane), mask((bits * factor).min(64))))
            }
            Propagation::All(factor) => {
                self.reg(d, |lane| whole(self.any(sources, u64::MAX, lane), mask((bits * factor).min(64))))
            }
        }
    }

    /// Each bit of the result depends on the same bit of the sources: all choices of the undefined bits are tried.
    fn logic(&self, f: IntFn, bits: u32, d: Reg, s: &[Reg; 4]) -> Update {
        let arity = f.arity();
        let result = |choice: usize| {
            let source = |at: usize| {
                let mut values: Lanes = self.warp.regs[s[at] as usize];
                let flips = choice >> at & 1 == 1 && at < arity;
                lanes(self.exec).filter(|_| flips).for_each(|lane| values[lane] ^= self.at(s[at], lane).bits);
                values
            };
            self.computed(f, bits, [0, 1, 2, 3].map(source))
        };
        let first = result(0);
        let mut changed: Lanes = [0; 32];
        for choice in 1..1 << arity {
            let other = result(choice);
            lanes(self.exec).for_each(|lane| changed[lane] |= other[lane] ^ first[lane]);
        }
        self.reg(d, |lane| self.any(&s[..arity], u64::MAX, lane).with(changed[lane] & mask(bits)))
    }

    /// The marks of the sources, moved in the same way as their bits.
    fn moved(&self, f: IntFn, bits: u32, s: &[Reg; 4], controls: &[usize]) -> Lanes {
        let source = |at: usize| {
            let mut values: Lanes = self.warp.regs[s[at] as usize];
            lanes(self.exec).filter(|_| !controls.contains(&at)).for_each(|lane| {
                values[lane] = self.at(s[at], lane).bits;
            });
            values
        };
        self.computed(f, bits, [0, 1, 2, 3].map(source))
    }

    /// Applies the function to the given sources instead of the warp's registers.
    fn computed(&self, f: IntFn, bits: u32, sources: [Lanes; 4]) -> Lanes {
        let [a, b, c, d] = sources;
        let mut registers = [a, b, c, d, [0; 32]];
        int::execute(&mut registers, self.exec, f, bits, 4, &[0, 1, 2, 3]);
        registers[4]
    }
}

/// How undefined source bits of an integer function affect its result.
enum Propagation {
    /// Each result bit depends on the same bit of the sources.
    Bitwise,
    /// Bits are moved, as controlled by the sources with these indices.
    Permute(&'static [usize]),
    /// All bits from the lowest undefined one upwards; the result is wider than the sources by this factor.
    Upwards(u32),
    /// All bits; the result is wider than the sources by this factor.
    All(u32),
}

fn propagation(f: IntFn) -> Propagation {
    match f {
        IntFn::And | IntFn::Or | IntFn::Xor | IntFn::Not | IntFn::Lop3(_) => Propagation::Bitwise,
        IntFn::Shl | IntFn::Shr { .. } => Propagation::Permute(&[1]),
        IntFn::Funnel { .. } | IntFn::Prmt(_) => Propagation::Permute(&[2]),
        IntFn::Bfe { .. } => Propagation::Permute(&[1, 2]),
        IntFn::Bfi => Propagation::Permute(&[2, 3]),
        IntFn::Brev => Propagation::Permute(&[]),
        IntFn::Add | IntFn::Sub | IntFn::Mul | IntFn::Mad | IntFn::Neg => Propagation::Upwards(1),
        IntFn::MulWide { .. } | IntFn::MadWide { .. } => Propagation::Upwards(2),
        IntFn::AddSat | IntFn::SubSat | IntFn::MulHi { .. } | IntFn::MadHi { .. } | IntFn::MadHiSat => {
            Propagation::All(1)
        }
        IntFn::Mul24 { .. } | IntFn::Mad24 { .. } | IntFn::Div { .. } | IntFn::Rem { .. } | IntFn::Abs => {
            Propagation::All(1)
        }
        IntFn::Min { .. } | IntFn::Max { .. } | IntFn::Cnot | IntFn::Clz | IntFn::Popc => Propagation::All(1),
        IntFn::Bfind { .. } | IntFn::Sad { .. } | IntFn::Dp4a { .. } | IntFn::Dp2a { .. } => Propagation::All(1),
        IntFn::Bmsk { .. } | IntFn::Packed16(_) | IntFn::Select { .. } | IntFn::Fns => Propagation::All(1),
    }
}

/// A truncated or extended integer keeps its defined bits; every other conversion depends on all source bits.
fn converted(convert: &Convert, source: Undefined) -> Undefined {
    let source = source.with(source.bits & mask(convert.from.bits()));
    match (convert.from, convert.to) {
        (NumberType::Integer(from), NumberType::Integer(to)) if !convert.sat => {
            let extended = if from.signed { sign_extend(source.bits, from.bits) as u64 } else { source.bits };
            let cut = extended & mask(to.bits);
            let kept = if to.signed { sign_extend(cut, to.bits) as u64 } else { cut };
            source.with(kept & mask(convert.width))
        }
        _ => whole(source, mask(convert.width)),
    }
}

/// The undefined bits of the result of `mma.sync`: an element is undefined if anything in its row of A, its column of B
/// or its element of C is.
pub(crate) fn undefined_mma(warp: &Warp, op: &Mma) -> Vec<Update> {
    let (mut rows, mut columns) = ([Undefined::default(); 16], [Undefined::default(); 8]);
    for lane in 0..32 {
        for (index, reg) in op.a.iter().enumerate() {
            let row = &mut rows[lane / 4 + index % 2 * 8];
            *row = row.or(warp.undefined(*reg, lane));
        }
        for reg in &op.b {
            columns[lane / 4] = columns[lane / 4].or(warp.undefined(*reg, lane));
        }
    }
    let in_register = 4 / op.d.len();
    let bits = 32 / in_register as u32;
    let element = |lane: usize, at: usize| {
        let (row, column) = (lane / 4 + at / 2 * 8, lane % 4 * 2 + at % 2);
        let shift = at % in_register * bits as usize;
        let of_c = warp.undefined(op.c[at / in_register], lane);
        let own = of_c.with(of_c.bits & mask(bits) << shift);
        whole(rows[row].or(columns[column]).or(own), mask(bits) << shift)
    };
    let register = |(index, reg): (usize, &Reg)| {
        let elements = index * in_register..(index + 1) * in_register;
        let mut of = Box::new([Undefined::default(); 32]);
        for (lane, slot) in of.iter_mut().enumerate() {
            *slot = elements.clone().map(|at| element(lane, at)).fold(Undefined::default(), Undefined::or);
        }
        Update::Reg(*reg, of)
    };
    op.d.iter().enumerate().map(register).collect()
}

/// The same for m8n8k4 in f64, where one element fills a register: the elements of a row or column are in four adjacent
/// lanes.
pub(crate) fn undefined_double_mma(warp: &Warp, op: &DoubleMma) -> Vec<Update> {
    let of_line = |reg: Reg, line: usize| {
        let elements = (0..4).map(|k| warp.undefined(reg, line * 4 + k));
        elements.fold(Undefined::default(), Undefined::or)
    };
    let register = |(at, reg): (usize, &Reg)| {
        let element = |lane: usize| {
            let (row, column) = (lane / 4, lane % 4 * 2 + at);
            let own = warp.undefined(op.c[at], lane);
            whole(of_line(op.a, row).or(of_line(op.b, column)).or(own), u64::MAX)
        };
        Update::Reg(*reg, Box::new(std::array::from_fn(element)))
    };
    op.d.iter().enumerate().map(register).collect()
}

/// The undefined bits of a matrix register in each lane, all with the same origin.
pub(crate) fn matrix_lanes(bits: &Lanes, origin: u32) -> Box<UndefinedLanes> {
    let mut out = Box::new([Undefined::default(); 32]);
    for (slot, bits) in out.iter_mut().zip(bits) {
        *slot = Undefined::new(*bits, origin);
    }
    out
}
