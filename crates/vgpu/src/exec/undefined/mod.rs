//! Undefined bits: what a load returns for bytes that were never written, that race with a write, or that are past the
//! end of a buffer.
//!
//! Compilers load more than a program requests: they hoist loads above branches, and combine adjacent loads into a
//! vector. The program does not use the extra bits, so that loading them is not a fault. They are marked instead, and
//! the marks propagate through registers, shuffles and memory ([`flow`]). A fault is raised if a marked bit decides
//! what is executed, with an observable effect ([`branch`]), if it decides where memory is accessed, or if it reaches
//! global memory. The kind and location of the fault are those of the load.
//!
//! A warp without marks costs one comparison per instruction.

mod branch;
mod flow;
mod races;

use std::collections::BTreeMap;

use crate::exec::Machine;
use crate::exec::warp::{Warp, lanes};
use crate::fault::{Exec, Stop};
use crate::op::Reg;

pub(crate) use flow::{double_product, matrix_lanes, of, product};
pub(crate) use races::KnownRaces;

/// Undefined bits of a value, and the load that they come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Undefined {
    /// Mask of the undefined bits.
    pub(crate) bits: u64,
    /// Index of the load in [`Origins`]; meaningful only if `bits` is not 0.
    pub(crate) origin: u32,
}

/// The undefined bits of a register in each lane.
pub(crate) type UndefinedLanes = [Undefined; 32];

/// Undefined bits of one byte in memory.
pub(crate) type UndefinedByte = Undefined;

impl Undefined {
    /// The undefined bits of both; the origin is that of `self` if it has any.
    pub(crate) fn or(self, other: Undefined) -> Undefined {
        Undefined { bits: self.bits | other.bits, origin: if self.bits != 0 { self.origin } else { other.origin } }
    }

    /// Replaces the bits, and keeps the origin.
    pub(crate) fn with(self, bits: u64) -> Undefined {
        Undefined { bits, ..self }
    }

    pub(crate) fn is_some(self) -> bool {
        self.bits != 0
    }
}

/// The undefined bits of a warp's registers, predicates and carry flags; those without undefined bits are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    regs: BTreeMap<Reg, Box<UndefinedLanes>>,
    preds: BTreeMap<u32, Box<UndefinedLanes>>,
    /// The carry flag of each lane, as bit 0.
    carry: Option<Box<UndefinedLanes>>,
}

/// New marks of a register, a predicate or the carry flag.
#[derive(Debug)]
pub(crate) enum Update {
    Reg(Reg, Box<UndefinedLanes>),
    Pred(u32, Box<UndefinedLanes>),
    Carry(Box<UndefinedLanes>),
}

impl Marks {
    pub(crate) fn reg(&self, reg: Reg, lane: usize) -> Undefined {
        self.regs.get(&reg).map_or(Undefined::default(), |lanes| lanes[lane])
    }

    pub(crate) fn pred(&self, pred: u32, lane: usize) -> Undefined {
        self.preds.get(&pred).map_or(Undefined::default(), |lanes| lanes[lane])
    }

    pub(crate) fn carry(&self, lane: usize) -> Undefined {
        self.carry.as_ref().map_or(Undefined::default(), |lanes| lanes[lane])
    }

    /// The origin of the undefined bits of a register in the first of these lanes that has any.
    pub(crate) fn in_reg(&self, reg: Reg, exec: u32) -> Option<u32> {
        first(self.regs.get(&reg)?, exec)
    }

    /// The origin of a predicate in the first of these lanes in which it is undefined.
    pub(crate) fn in_pred(&self, pred: u32, exec: u32) -> Option<u32> {
        first(self.preds.get(&pred)?, exec)
    }

    fn is_empty(&self) -> bool {
        self.regs.is_empty() && self.preds.is_empty() && self.carry.is_none()
    }
}

fn first(marked: &UndefinedLanes, exec: u32) -> Option<u32> {
    lanes(exec).find(|lane| marked[*lane].is_some()).map(|lane| marked[lane].origin)
}

/// Replaces the lanes of `exec` in an entry, which is removed if it has no marks left.
fn put(map: &mut BTreeMap<u32, Box<UndefinedLanes>>, key: u32, exec: u32, new: &UndefinedLanes) {
    let is_marked = lanes(exec).any(|lane| new[lane].is_some());
    if !is_marked && !map.contains_key(&key) {
        return;
    }
    let held = map.entry(key).or_insert_with(|| Box::new([Undefined::default(); 32]));
    lanes(exec).for_each(|lane| held[lane] = new[lane]);
    if held.iter().all(|undefined| !undefined.is_some()) {
        map.remove(&key);
    }
}

impl Warp {
    /// Records the undefined bits of results in the lanes of `exec`.
    pub(crate) fn update_marks(&mut self, exec: u32, updates: Vec<Update>) {
        let marks = self.marks.get_or_insert_default();
        for update in updates {
            match update {
                Update::Reg(reg, new) => put(&mut marks.regs, reg, exec, &new),
                Update::Pred(pred, new) => put(&mut marks.preds, pred, exec, &new),
                Update::Carry(new) => {
                    let mut held = marks.carry.take().unwrap_or_default();
                    lanes(exec).for_each(|lane| held[lane] = new[lane]);
                    marks.carry = held.iter().any(|undefined| undefined.is_some()).then_some(held);
                }
            }
        }
        if marks.is_empty() {
            self.marks = None;
        }
    }

    /// Records the undefined bits of a register in one lane.
    pub(crate) fn mark(&mut self, reg: Reg, lane: usize, undefined: Undefined) {
        if self.marks.is_some() || undefined.is_some() {
            let mut new = Box::new([Undefined::default(); 32]);
            new[lane] = undefined;
            self.update_marks(1 << lane, vec![Update::Reg(reg, new)]);
        }
    }

    /// The undefined bits of a register in a lane.
    pub(crate) fn undefined(&self, reg: Reg, lane: usize) -> Undefined {
        self.marks.as_ref().map_or(Undefined::default(), |marks| marks.reg(reg, lane))
    }

    /// The origin of an undefined bit of a register in these lanes.
    pub(crate) fn undefined_in(&self, reg: Reg, exec: u32) -> Option<u32> {
        self.marks.as_ref()?.in_reg(reg, exec)
    }

    /// The origin of an undefined predicate in these lanes.
    pub(crate) fn undefined_pred(&self, pred: u32, exec: u32) -> Option<u32> {
        self.marks.as_ref()?.in_pred(pred, exec)
    }
}

/// Loads that returned undefined bits: one entry for each instruction and reason.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// The fault of each origin, by number.
    stops: Vec<Stop>,
    /// Number of each origin, by instruction, kind of fault and related instruction.
    numbers: BTreeMap<(u32, crate::fault::FaultKind, Option<u32>), u32>,
}

impl Machine<'_> {
    /// The number of the origin whose fault is `stop`.
    pub(crate) fn origin(&mut self, warp: u32, pc: u32, stop: Stop) -> u32 {
        let key = (pc, stop.kind, stop.related);
        let next = self.origins.stops.len() as u32;
        let number = *self.origins.numbers.entry(key).or_insert(next);
        if number == next {
            self.origins.stops.push(Stop { pc: Some(pc), warp: Some(warp), ..stop });
        }
        number
    }

    /// The fault of undefined bits that have an observable effect, which `they` describes.
    pub(crate) fn reached(&self, origin: u32, pc: u32, they: &str) -> Box<Stop> {
        let mut stop = self.origins.stops[origin as usize].clone();
        let line = self.program.line(pc);
        stop.message = format!("{}; the undefined bits {they} at PTX line {line}", stop.message);
        Box::new(stop)
    }

    /// Faults if a register that must be defined has undefined bits in these lanes.
    pub(crate) fn must_be_defined(&self, warp: &Warp, reg: Reg, exec: u32, they: &str) -> Exec<()> {
        match warp.undefined_in(reg, exec) {
            Some(origin) => Err(self.reached(origin, warp.pc, they)),
            None => Ok(()),
        }
    }
}
