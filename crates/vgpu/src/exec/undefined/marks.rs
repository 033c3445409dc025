//! The undefined bits of a warp's registers, predicates and carry flags.

use std::collections::BTreeMap;

use crate::lanes::lanes;
use crate::op::Reg;
use crate::undefined::Undefined;

/// The undefined bits of a register in each lane.
pub(crate) type UndefinedLanes = [Undefined; 32];

/// The undefined bits of a warp's registers, predicates and carry flags; those without undefined bits are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    /// The undefined bits of a register in all lanes; `None` if there are none.
    pub(crate) fn in_lanes(&self, reg: Reg) -> Option<&UndefinedLanes> {
        self.regs.get(&reg).map(Box::as_ref)
    }

    /// Replaces the marks of a register in all lanes.
    pub(crate) fn replace(&mut self, reg: Reg, new: Option<&UndefinedLanes>) {
        match new.filter(|new| new.iter().any(|undefined| undefined.is_some())) {
            Some(new) => *self.regs.entry(reg).or_insert_with(|| Box::new(*new)).as_mut() = *new,
            None => _ = self.regs.remove(&reg),
        }
    }

    /// The origin of the undefined bits of a register in the first of these lanes that has any.
    pub(crate) fn in_reg(&self, reg: Reg, exec: u32) -> Option<u32> {
        first(self.regs.get(&reg)?, exec)
    }

    /// The origin of a predicate in the first of these lanes in which it is undefined.
    pub(crate) fn in_pred(&self, pred: u32, exec: u32) -> Option<u32> {
        first(self.preds.get(&pred)?, exec)
    }

    /// Replaces marks in the lanes of `exec`.
    pub(crate) fn update(&mut self, exec: u32, updates: Vec<Update>) {
        for update in updates {
            match update {
                Update::Reg(reg, new) => put(&mut self.regs, reg, exec, &new),
                Update::Pred(pred, new) => put(&mut self.preds, pred, exec, &new),
                Update::Carry(new) => {
                    let mut held = self.carry.take().unwrap_or_default();
                    lanes(exec).for_each(|lane| held[lane] = new[lane]);
                    self.carry = held.iter().any(|undefined| undefined.is_some()).then_some(held);
                }
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
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
