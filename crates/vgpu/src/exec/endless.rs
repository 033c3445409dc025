//! Finds loops that cannot end, because nothing changes any more.
//!
//! A warp whose state is what it was at an earlier backward branch, while nothing has changed that other threads or
//! engines can change, does the same again until something changes. Until then it has no turn, as if it waited. Where all
//! warps wait or are in such loops, and no engine has work, nothing will ever change. Sleep in `mbarrier.try_wait`, which
//! may end at any time, is such a loop if the warp falls asleep in the same state again.

use crate::exec::machine::Machine;
use crate::exec::memory::little_endian;
use crate::exec::warp::{Wait, Warp};
use crate::isa::Space;
use crate::lanes::Lanes;
use crate::memory::map;

/// Backward branches without any change before the states of a warp are compared.
const FIRST: u32 = 256;

/// What a warp was at one kind of moments.
#[derive(Clone, Default)]
pub(crate) struct States {
    /// The machine's count of changes at the last moment.
    changes: Option<u64>,
    /// Moments since then.
    moments: u32,
    /// The state at the last power of two of them (Brent's algorithm).
    seen: Option<Box<Warp>>,
    /// A register that differed from it at the last comparison.
    hint: usize,
}

impl States {
    /// Whether the warp was in this state before, at a moment since the last change. The first moments do not count.
    fn is_repeated(&mut self, warp: &Warp, changes: u64, first: u32) -> bool {
        if self.changes != Some(changes) {
            *self = States { changes: Some(changes), ..States::default() };
        }
        self.moments = self.moments.saturating_add(1);
        if self.moments < first {
            return false;
        }
        let is_repeated = self.has_seen(warp);
        if !is_repeated && self.moments.is_power_of_two() {
            self.seen = Some(Box::new(warp.without_history()));
        }
        is_repeated
    }

    fn has_seen(&mut self, warp: &Warp) -> bool {
        let Some(seen) = &self.seen else { return false };
        if warp.regs.get(self.hint) != seen.regs.get(self.hint) {
            return false;
        }
        match warp.regs.iter().zip(&seen.regs).position(|(now, then)| now != then) {
            Some(register) => {
                self.hint = register;
                false
            }
            None => warp.is_at(seen),
        }
    }
}

/// What the loops of a warp have seen.
#[derive(Clone, Default)]
pub(crate) struct Loops {
    /// At backward branches.
    branches: States,
    /// When a sleep in `try_wait` could end without success.
    sleeps: States,
    /// The count of changes at which the warp is known to be in an endless loop.
    endless_at: Option<u64>,
    /// The last read since the first backward branch without a change.
    read: Option<LoopRead>,
}

/// A read in a loop.
#[derive(Clone, Copy)]
struct LoopRead {
    pc: u32,
    space: Space,
    /// The address that the first lane reads.
    address: u64,
    /// Bytes that it reads.
    len: usize,
}

impl Loops {
    /// The lanes of `exec` read `len` bytes each; the first of them stands for all.
    pub(super) fn note_read(&mut self, pc: u32, space: Space, (addresses, exec): (&Lanes, u32), len: usize) {
        self.read = Some(LoopRead { pc, space, address: addresses[exec.trailing_zeros() as usize & 31], len });
    }

    /// What follows does not depend on the registers alone, as after a look at the clock.
    pub(super) fn forget(&mut self) {
        *self = Loops::default();
    }

    /// Lanes go on, so that the warp is not in an endless loop any more, if it was.
    pub(super) fn wake(&mut self) {
        self.endless_at = None;
    }
}

impl Machine<'_> {
    /// The number of changes so far that a warp may observe other than in its own registers.
    fn all_changes(&self) -> u64 {
        self.changes + self.effects
    }

    /// Whether the warp is in a loop that does not end as long as nothing changes.
    pub(super) fn is_endless(&self, warp: &Warp) -> bool {
        warp.loops.endless_at == Some(self.all_changes())
    }

    /// A warp has branched backward.
    pub(super) fn watch_loop(&self, warp: &mut Warp) {
        let changes = self.all_changes();
        let mut loops = std::mem::take(&mut warp.loops);
        if loops.branches.is_repeated(warp, changes, FIRST) {
            loops.endless_at = Some(changes);
        }
        if loops.branches.moments == 1 {
            loops.read = None;
        }
        warp.loops = loops;
    }

    /// What a warp in an endless loop reads, as what it waits for, and the instruction that reads it.
    pub(super) fn describe_loop(&self, warp: &Warp) -> (u32, String) {
        let at = if warp.active != 0 { warp.pc } else { warp.pcs[warp.ready.trailing_zeros() as usize & 31] };
        let Some(LoopRead { pc, space, address, len }) = warp.loops.read else {
            return (at, "nothing: the loop reads no memory and does not end".to_string());
        };
        if space == Space::Shared {
            let offset = map::split_rank(address).1.wrapping_sub(map::SHARED_START) as usize;
            if self.cta.mbarriers.contains_key(&offset) {
                return self.describe(Wait::Phase { pc, address });
            }
        }
        let (name, offset, _) = self.nearest(space, address);
        let found = match space {
            Space::Shared => Some((&self.cta.shared, map::shared_start(self.cta.rank))),
            Space::Global => {
                let buffer = self.memory.at_or_below(address).map(|index| &self.memory.buffers[index]);
                buffer.map(|buffer| (&buffer.region, buffer.base))
            }
            Space::Generic | Space::Local | Space::Param | Space::Const => None,
        };
        let bytes = found.and_then(|(region, start)| {
            let place = address.wrapping_sub(start) as usize;
            let end = place.checked_add(len).filter(|end| *end <= region.bytes.len())?;
            Some(region.bytes.read(place..end))
        });
        let value = bytes
            .filter(|bytes| bytes.len() <= 8)
            .map_or(String::new(), |bytes| format!(", which is {}", little_endian(&bytes)));
        (pc, format!("a change of `{name}` + {offset}{value}"))
    }

    /// Whether a warp with sleeping lanes slept in the same state before, and nothing has changed since.
    pub(super) fn sleeps_forever(&self, warp: &mut Warp) -> bool {
        let mut loops = std::mem::take(&mut warp.loops);
        let is_repeated = loops.sleeps.is_repeated(warp, self.all_changes(), 0);
        warp.loops = loops;
        is_repeated
    }
}
