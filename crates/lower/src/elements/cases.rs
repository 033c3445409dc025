//! Accesses to elements of fragments: the slots that an index may refer to, and the conditions for each.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_expr::linear::{linear, normalize};
use tilewright_expr::points::Split;
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Cond, Stmt, Value as ThreadValue};
use tilewright_ir::tile::{Access, Buffer, Coord};
use tilewright_ir::{Handle, Scalar};

use super::active_step::ActiveStep;
use super::known_slots::KnownSlots;
use super::lowering::Lowering;
use crate::builder::regs;
use crate::conditions::under;
use crate::fragment_registers::{FragmentRegisters, HeldSlots, Slot};
use crate::refusal::Refusal;

/// The most cases that the index of a fragment is split into because one term combines the iteration with other
/// variables.
const MOST_TIED: i64 = 16;

/// One case of an access to a fragment: conditions, and the slot that is accessed under them.
pub(super) struct SlotCase {
    pub(super) conditions: Vec<Cond>,
    pub(super) slot: Slot,
}

impl Lowering<'_> {
    /// The slots that an access to a fragment may refer to, each with its conditions.
    pub(super) fn slot_cases(&mut self, access: &Access, place: &ActiveStep) -> Result<Vec<SlotCase>, Refusal> {
        let held = self.fragment(access.buffer)?;
        let index = self.coordinates(access, place)?;
        let buffer = &self.kernel.buffers[access.buffer];
        let flat = tilewright_ir::tile::flat(&index, &buffer.shape);
        // Inference gave every thread the elements that it accesses. In an arm of `select` that is not taken, and at an
        // index that the conditions around it may exclude, it has none.
        let is_held = self.arms == 0 && !self.may_leave(access);
        let mut slot_cases = Vec::new();
        for (asked, split) in self.untied(&buffer.name, flat)? {
            let Some(other) = split.other.as_const() else {
                slot_cases.extend(self.cases_by_value(&held, &split, &asked, place));
                continue;
            };
            let slots = self.slots_of(access.buffer, &held, (&split.own, other), place);
            if let Some((thread, element)) = slots.missing.filter(|_| is_held && asked.is_empty()) {
                let name = &buffer.name;
                let text = format!("thread {thread} accesses element {element} of `{name}`, which it does not hold");
                return Err(text.into());
            }
            slot_cases.extend(self.cases_of_groups(&slots.threads, place, &asked));
        }
        Ok(slot_cases)
    }

    /// The expression as sums of a part that depends on the iteration and a part that does not. Where one term
    /// combines both, there is a case for every value of the variables outside the nest, with the conditions for it.
    fn untied(&mut self, name: &str, flat: Expr) -> Result<Vec<(Vec<Cond>, Split)>, Refusal> {
        let mut known = vec![(Vec::new(), flat)];
        while let Some(at) = known.iter().position(|(_, flat)| self.points.split(flat).is_none()) {
            let (asked, flat) = known.remove(at);
            let own = &self.nest.vars;
            let mut tied: Option<Var> = None;
            for (_, atom) in linear(&flat).terms {
                if own.iter().any(|var| atom.mentions(var)) {
                    atom.for_each_var(&mut |var| {
                        if tied.is_none() && !own.contains(var) {
                            tied = Some(var.clone());
                        }
                    });
                }
            }
            let var = tied.ok_or_else(|| format!("the index of `{name}` has a term that cannot be split"))?;
            let range = var.range();
            if range.hi - range.lo >= MOST_TIED || known.len() as i64 >= MOST_TIED {
                let var = var.name();
                return Err(Refusal::Limit {
                    text: format!(
                        "the index of `{name}` combines the variables of the loop with `{var}` in one term, \
                         which takes more than {MOST_TIED} cases"
                    ),
                    help: "write the index as a sum of a part that depends on the loop and a part that does \
                           not, or keep the tile in shared memory",
                });
            }
            known.extend((range.lo..=range.hi).map(|value| {
                let more = Cond::Equal(Expr::var(&var), Expr::constant(value));
                (asked.iter().cloned().chain([more]).collect(), normalize(&flat.with(&var, value)))
            }));
        }
        let split = |(asked, flat)| Some((asked, self.points.split(&flat)?));
        let found: Option<Vec<(Vec<Cond>, Split)>> = known.into_iter().map(split).collect();
        Ok(found.ok_or_else(|| format!("the index of `{name}` has a term that cannot be split"))?)
    }

    /// The slots of the elements with these numbers by iteration, plus `other`.
    fn slots_of(
        &mut self,
        buffer: Handle<Buffer>,
        held: &FragmentRegisters,
        (own, other): (&Arc<Vec<i64>>, i64),
        place: &ActiveStep,
    ) -> Arc<HeldSlots> {
        let is_same = |known: &&KnownSlots| {
            Arc::ptr_eq(&known.own, own) && (known.other, known.step) == (other, place.step) && known.mask == place.mask
        };
        if let Some(known) = self.slots.get(&buffer).filter(is_same) {
            return Arc::clone(&known.slots);
        }
        let elements = self.points.steps_values(own, place.step, &place.mask);
        let slots = Arc::new(held.held_slots(elements.map(|own| own.map(|own| own + other))));
        let (own, mask) = (Arc::clone(own), Arc::clone(&place.mask));
        self.slots.insert(buffer, KnownSlots { own, other, step: place.step, mask, slots: Arc::clone(&slots) });
        slots
    }

    /// The slots of the elements at an index that splits, of which the part that does not depend on the iteration is
    /// not constant. Each has its conditions after those `asked` already.
    fn cases_by_value(
        &mut self,
        held: &FragmentRegisters,
        split: &Split,
        asked: &[Cond],
        place: &ActiveStep,
    ) -> Vec<SlotCase> {
        let elements = held.elements();
        let own: Vec<Option<i64>> = self.points.steps_values(&split.own, place.step, &place.mask).collect();
        // Registers have no address, so every value that the index may have is a case of its own.
        let (least, most) = (own.iter().flatten().min(), own.iter().flatten().max());
        let (Some(least), Some(most)) = (least, most) else { return Vec::new() };
        let range = split.other.range();
        let step = split.other.multiple().max(1);
        let first = range.lo.max(-most);
        let mut other = first + (step - first.rem_euclid(step)) % step;
        let mut slot_cases = Vec::new();
        while other <= range.hi.min(elements - 1 - least) {
            let at = own.iter().map(|own| own.map(|own| own + other).filter(|at| (0..elements).contains(at)));
            let here = Cond::Equal(split.other.clone(), Expr::constant(other));
            let asked: Vec<Cond> = asked.iter().cloned().chain([here]).collect();
            slot_cases.extend(self.cases_of_groups(&held.held_slots(at).threads, place, &asked));
            other += step;
        }
        slot_cases
    }

    fn cases_of_groups(
        &mut self,
        groups: &BTreeMap<Slot, Vec<bool>>,
        place: &ActiveStep,
        asked: &[Cond],
    ) -> Vec<SlotCase> {
        let mut slot_cases = Vec::new();
        for (slot, mask) in groups {
            let mut conditions = asked.to_vec();
            if *mask != *place.mask {
                conditions.extend(self.conditions(mask));
            }
            slot_cases.push(SlotCase { conditions, slot: *slot });
        }
        slot_cases
    }

    /// Whether an index expression may be out of bounds of the buffer, judged by its range.
    fn may_leave(&self, access: &Access) -> bool {
        let mut dimensions = access.index.iter().zip(&self.kernel.buffers[access.buffer].shape);
        dimensions.any(|(coord, extent)| matches!(coord, Coord::At(at) if !at.range().within(0, *extent)))
    }

    /// The value of an element of a fragment.
    pub(super) fn read_fragment(&mut self, access: &Access, place: &ActiveStep) -> Result<ThreadValue, Refusal> {
        let held = self.fragment(access.buffer)?;
        let slot_cases = self.slot_cases(access, place)?;
        let dtype = self.kernel.buffers[access.buffer].dtype;
        match &slot_cases[..] {
            [] => Ok(ThreadValue::Const(dtype, Scalar::Int(0))),
            [case] if case.conditions.is_empty() => Ok(held.read(case.slot)),
            _ => {
                let array = self.new_registers("r", dtype, 1);
                // In an arm that is not taken, the index may be one that no thread holds.
                if self.arms > 0 && self.may_leave(access) {
                    self.out.push(Stmt::Set { to: regs(array, 0, 1), value: Scalar::Int(0) });
                }
                for case in slot_cases {
                    let read = Stmt::Assign { to: regs(array, 0, 1), value: held.read(case.slot) };
                    self.out.extend(under(&case.conditions, vec![read]));
                }
                Ok(ThreadValue::reg(array, 0))
            }
        }
    }

    /// Sets an element of a fragment to a value.
    pub(super) fn write_fragment(
        &mut self,
        access: &Access,
        place: &ActiveStep,
        value: &ThreadValue,
    ) -> Result<(), Refusal> {
        let held = self.fragment(access.buffer)?;
        for case in self.slot_cases(access, place)? {
            let written = held.written(case.slot, value.clone());
            let assign = Stmt::Assign { to: regs(held.array, case.slot.register, 1), value: written };
            self.out.extend(under(&case.conditions, vec![assign]));
        }
        Ok(())
    }
}
