//! Warp-wide instructions: shuffles, votes, matches, reductions, `bar.warp.sync`.
//!
//! A lane waits until all members that have not exited have arrived (PTX ISA, section 9.7.9): at the same instruction
//! or, for `bar.warp.sync`, at any `bar.warp.sync` with the same members. Only `bar.warp.sync` orders memory.

use crate::exec::atomic::combine;
use crate::exec::machine::Machine;
use crate::exec::undefined::{Marks, Update};
use crate::exec::warp::{Wait, Warp};
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::isa::mask;
use crate::lanes::lanes;
use crate::op::{AtomFn, CollectiveFn, FloatType, Reg, Shuffle, ShuffleMode, VoteMode};
use crate::undefined::Undefined;

impl Machine<'_> {
    pub(crate) fn collective(&mut self, warp: &mut Warp, exec: u32, f: &CollectiveFn, members: Reg) -> ExecResult<()> {
        self.must_be_defined(warp, members, exec, "determine the members of a warp-wide instruction")?;
        if let CollectiveFn::Shuffle(Shuffle { b, c, .. }) = *f {
            self.must_be_defined(warp, b, exec, "decide which lane is read")?;
            self.must_be_defined(warp, c, exec, "decide which lane is read")?;
        }
        let named = warp.regs[members as usize];
        for lane in lanes(exec) {
            if named[lane] >> lane & 1 == 0 {
                let message = format!("lane {lane} is not in its own member mask {:#010x}", named[lane]);
                return Err(RaisedFault::new(FaultKind::BarrierMisuse, 1 << lane, message));
            }
        }
        let first = named[exec.trailing_zeros() as usize];
        let uniform = lanes(exec).all(|lane| named[lane] == first);
        if uniform && first as u32 & warp.alive == exec {
            self.perform(warp, exec, f);
            warp.pc += 1;
            return Ok(());
        }
        let pc = warp.pc;
        warp.block(exec, pc, |lane| Wait::Collective { pc, members: named[lane] as u32, f: *f });
        self.settle(warp)
    }

    /// Performs every warp-wide instruction whose members have all arrived.
    pub(crate) fn settle(&mut self, warp: &mut Warp) -> ExecResult<()> {
        for lane in 0..32usize {
            let Some(Wait::Collective { pc, members, f }) = warp.waits[lane] else { continue };
            let here = gathered(warp, pc, members, f);
            if here != members & warp.alive {
                continue;
            }
            self.perform(warp, here, &f);
            for lane in lanes(here) {
                warp.pcs[lane] += 1;
            }
            warp.unblock(here);
        }
        Ok(())
    }

    fn perform(&mut self, warp: &mut Warp, set: u32, f: &CollectiveFn) {
        let updates = warp.marks.as_ref().map(|marks| marks_after(warp, marks, set, f));
        self.perform_values(warp, set, f);
        updates.into_iter().for_each(|updates| warp.update_marks(set, updates));
    }

    fn perform_values(&mut self, warp: &mut Warp, set: u32, f: &CollectiveFn) {
        match f {
            CollectiveFn::Shuffle(shuffle) => execute_shuffle(warp, set, shuffle),
            CollectiveFn::Vote { mode, d, a } => {
                let value = warp.guard(*a) & set;
                let holds = match mode {
                    VoteMode::All => value == set,
                    VoteMode::Any => value != 0,
                    VoteMode::Uniform => value == 0 || value == set,
                };
                warp.set_pred(*d, set, if holds { u32::MAX } else { 0 });
            }
            CollectiveFn::Ballot { d, a } => {
                let value = warp.guard(*a) & set;
                warp.fill(*d, set, u64::from(value));
            }
            CollectiveFn::MatchAny { d, a } => match_any(warp, set, *d, *a),
            CollectiveFn::MatchAll { d, p, a } => match_all(warp, set, *d, *p, *a),
            CollectiveFn::Reduce { f, nan, abs, d, a } => reduce(warp, set, *f, (*nan, *abs), [*d, *a]),
            CollectiveFn::Elect { d, p } => {
                let leader = set.trailing_zeros();
                if let Some(d) = d {
                    warp.fill(*d, set, u64::from(leader));
                }
                warp.set_pred(*p, set, set & set.wrapping_neg());
            }
            CollectiveFn::Barrier => self.warp_barrier(warp, set),
        }
    }

    fn warp_barrier(&mut self, warp: &Warp, set: u32) {
        let threads: Vec<u32> = lanes(set).map(|lane| warp.thread(lane)).collect();
        let clocks = &mut self.cta.clocks;
        let contributions: Vec<_> = threads.iter().map(|thread| clocks.release(*thread)).collect();
        clocks.acquire(&contributions, &threads);
    }
}

/// Lanes that wait with the same members, at the same instruction or, for a barrier, at any `bar.warp.sync`.
fn gathered(warp: &Warp, pc: u32, members: u32, f: CollectiveFn) -> u32 {
    let mut here = 0;
    for lane in lanes(warp.alive) {
        let Some(Wait::Collective { pc: other, members: named, f: waits_for }) = warp.waits[lane] else { continue };
        let are_barriers = f == CollectiveFn::Barrier && waits_for == CollectiveFn::Barrier;
        if (other == pc || are_barriers) && named == members {
            here |= 1 << lane;
        }
    }
    here
}

/// The undefined bits of the results: a shuffled register takes the marks of its source lane, and a result computed
/// from all lanes is undefined if the value of any lane is.
fn marks_after(warp: &Warp, marks: &Marks, set: u32, f: &CollectiveFn) -> Vec<Update> {
    let everywhere = |origin: Option<u32>, bits: u64| {
        let undefined = origin.map_or(Undefined::default(), |origin| Undefined::new(bits, origin));
        Box::new([undefined; 32])
    };
    let register = |d: Reg, origin: Option<u32>| Update::Reg(d, everywhere(origin, mask(32)));
    let predicate = |p: u32, origin: Option<u32>| Update::Pred(p, everywhere(origin, 1));
    match f {
        CollectiveFn::Shuffle(Shuffle { mode, d, a, b, c, .. }) => {
            let mut moved = everywhere(None, 0);
            for lane in lanes(set) {
                let (offset, control) = (warp.regs[*b as usize][lane], warp.regs[*c as usize][lane]);
                let (source, _) = shuffle_source(*mode, lane as u32, offset as u32 & 31, control as u32);
                let undefined = marks.reg(*a, source as usize & 31);
                moved[lane] = undefined.with(undefined.bits & mask(32));
            }
            vec![Update::Reg(*d, moved)]
        }
        CollectiveFn::Vote { d, a, .. } => vec![predicate(*d, marks.in_pred(a.index, set))],
        CollectiveFn::Ballot { d, a } => {
            let of = |lane: usize| marks.pred(a.index, lane).bits << lane;
            let bits = lanes(set).map(of).fold(0, |all, bit| all | bit);
            vec![Update::Reg(*d, everywhere(marks.in_pred(a.index, set), bits))]
        }
        CollectiveFn::MatchAny { d, a } | CollectiveFn::Reduce { d, a, .. } => {
            vec![register(*d, marks.in_reg(*a, set))]
        }
        CollectiveFn::MatchAll { d, p, a } => {
            let origin = marks.in_reg(*a, set);
            [register(*d, origin)].into_iter().chain(p.map(|p| predicate(p, origin))).collect()
        }
        // These write defined values through `Warp::fill` and `Warp::set_pred`, which clear the marks.
        CollectiveFn::Elect { .. } | CollectiveFn::Barrier => Vec::new(),
    }
}

/// `shfl.sync` (PTX ISA, section 9.7.9.6). If the source lane is not a member, the current value of its register is
/// read.
fn execute_shuffle(warp: &mut Warp, set: u32, shuffle: &Shuffle) {
    let Shuffle { mode, d, p, a, b, c } = shuffle;
    let values = warp.regs[*a as usize];
    let offsets = warp.regs[*b as usize];
    let controls = warp.regs[*c as usize];
    let mut inside = 0;
    for lane in lanes(set) {
        let (source, valid) = shuffle_source(*mode, lane as u32, offsets[lane] as u32 & 31, controls[lane] as u32);
        warp.regs[*d as usize][lane] = values[source as usize & 31] & mask(32);
        inside |= u32::from(valid) << lane;
    }
    if let Some(p) = p {
        warp.set_pred(*p, set, inside);
    }
}

/// The source lane, and whether the requested lane is in range.
fn shuffle_source(mode: ShuffleMode, lane: u32, offset: u32, control: u32) -> (u32, bool) {
    let segment = control >> 8 & 31;
    let bound = control & 31;
    let last = (lane & segment) | (bound & !segment);
    let first = lane & segment;
    let (source, valid) = match mode {
        ShuffleMode::Up => {
            let source = lane as i32 - offset as i32;
            (source.max(0) as u32, source >= last as i32)
        }
        ShuffleMode::Down => (lane + offset, lane + offset <= last),
        ShuffleMode::Butterfly => (lane ^ offset, lane ^ offset <= last),
        ShuffleMode::Index => {
            let source = first | (offset & !segment);
            (source, source <= last)
        }
    };
    if valid { (source, true) } else { (lane, false) }
}

fn match_any(warp: &mut Warp, set: u32, d: Reg, a: Reg) {
    let values = warp.regs[a as usize];
    for lane in lanes(set) {
        let mut same = 0u32;
        for other in lanes(set) {
            same |= u32::from(values[other] == values[lane]) << other;
        }
        warp.regs[d as usize][lane] = u64::from(same);
    }
}

fn match_all(warp: &mut Warp, set: u32, d: Reg, p: Option<u32>, a: Reg) {
    let values = warp.regs[a as usize];
    let first = values[set.trailing_zeros() as usize];
    let equal = lanes(set).all(|lane| values[lane] == first);
    warp.fill(d, set, if equal { u64::from(set) } else { 0 });
    if let Some(p) = p {
        warp.set_pred(p, set, if equal { u32::MAX } else { 0 });
    }
}

fn reduce(warp: &mut Warp, set: u32, f: AtomFn, (nan, abs): (bool, bool), [d, a]: [Reg; 2]) {
    let values = warp.regs[a as usize];
    let read = |lane: usize| values[lane] & if abs { 0x7fff_ffff } else { mask(32) };
    // The set has at least the lane that executes the instruction.
    let mut total = read(set.trailing_zeros() as usize);
    let mut any_nan = f32::from_bits(total as u32).is_nan();
    for lane in lanes(set).skip(1) {
        any_nan |= f32::from_bits(read(lane) as u32).is_nan();
        total = combine(f, total, read(lane), 0, 32);
    }
    let floating = matches!(f, AtomFn::MinFloat(FloatType::F32, _) | AtomFn::MaxFloat(FloatType::F32, _));
    warp.fill(d, set, if floating && nan && any_nan { 0x7fff_ffff } else { total });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_stay_in_their_segment() {
        assert_eq!(shuffle_source(ShuffleMode::Butterfly, 5, 16, 31), (21, true));
        assert_eq!(shuffle_source(ShuffleMode::Down, 31, 1, 31), (31, false));
        assert_eq!(shuffle_source(ShuffleMode::Up, 0, 1, 0), (0, false));
        assert_eq!(shuffle_source(ShuffleMode::Up, 9, 1, 0), (8, true));
        // Width 8: segment mask 24, bound 7.
        assert_eq!(shuffle_source(ShuffleMode::Index, 13, 2, 24 << 8 | 31), (10, true));
        assert_eq!(shuffle_source(ShuffleMode::Down, 15, 1, 24 << 8 | 31), (15, false));
    }
}
