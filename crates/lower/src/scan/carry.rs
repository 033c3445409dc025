//! What a scan goes on from, row by row: tuples in registers, which come from fragments of the user's and go back there, or begin
//! with the first round of a row.

use std::collections::BTreeMap;

use tilewright_ir::thread::{Regs, Value};
use tilewright_layout::DType;

use super::context::{Context, ScanValue};
use super::writer::Writer;
use crate::builder::regs;
use crate::combine::cast;
use crate::fragment_registers::{FragmentRegisters, Slot};
use crate::tuples::{Arrays, assigned, registers, values};

/// By thread, the row whose carry it takes or leaves, if it does.
pub(super) type Rows = Vec<Option<usize>>;

/// The tuple that precedes what a thread combines next.
pub(super) struct Carry {
    pub(super) arrays: Arrays,
    /// Whether the arrays are those of the user's fragments.
    is_fragment: bool,
}

impl Carry {
    /// Registers for a tuple that a round sets.
    pub(super) fn unset(writer: &mut Writer) -> Carry {
        Carry { arrays: writer.arrays("carry", 1), is_fragment: false }
    }

    /// Registers for a tuple, which changes no other so far. They are those of the fragments if each thread has only one carry
    /// there.
    pub(super) fn new(writer: &mut Writer) -> Carry {
        match of_fragments(writer.context) {
            Some(arrays) => Carry { arrays, is_fragment: true },
            None => Carry { arrays: writer.neutral_arrays("carry"), is_fragment: false },
        }
    }

    /// Takes the carries of rows from the fragments.
    pub(super) fn take(&self, writer: &mut Writer, rows: &Rows) {
        for (slots, set) in self.slots(writer.context, rows) {
            let read = |((carry, of), value, slot): Held| cast(value.dtype, of, carry.read(slot));
            let read: Vec<Value> = held(writer.context, &slots).map(read).collect();
            writer.by(&set, assigned(registers(&self.arrays, 0), read).collect());
        }
    }

    /// Leaves the carries of rows in the fragments.
    pub(super) fn leave(&self, writer: &mut Writer, rows: &Rows) {
        for (slots, set) in self.slots(writer.context, rows) {
            let to = |((carry, _), _, slot): Held| regs(carry.array, slot.register, 1);
            let to: Vec<Regs> = held(writer.context, &slots).map(to).collect();
            let written =
                |(((carry, of), value, slot), new): (Held, Value)| carry.written(slot, cast(of, value.dtype, new));
            let stored = held(writer.context, &slots).zip(values(&self.arrays, 0)).map(written).collect();
            writer.by(&set, assigned(to, stored).collect());
        }
    }

    /// The threads by the slots of their rows' carries.
    fn slots(&self, context: &Context, rows: &Rows) -> BTreeMap<Vec<Slot>, Vec<bool>> {
        let mut found: BTreeMap<Vec<Slot>, Vec<bool>> = BTreeMap::new();
        if self.is_fragment {
            return found;
        }
        for (thread, row) in rows.iter().enumerate() {
            if let Some(slots) = row.and_then(|row| context.carry_slots(thread, row)) {
                found.entry(slots).or_insert_with(|| vec![false; rows.len()])[thread] = true;
            }
        }
        found
    }
}

/// The fragment of a value's carry with its dtype, that value, and the slot in which a thread has the carry.
type Held<'a> = ((&'a FragmentRegisters, DType), &'a ScanValue, Slot);

fn held<'a>(context: &'a Context, slots: &'a [Slot]) -> impl Iterator<Item = Held<'a>> {
    let of = |(value, slot): (&'a ScanValue, &Slot)| {
        let (carry, dtype) = value.carry.as_ref()?;
        Some(((&**carry, *dtype), value, *slot))
    };
    context.values.iter().zip(slots).filter_map(of)
}

/// The registers of the carries, if each thread has one, as the scan combines it.
fn of_fragments(context: &Context) -> Option<Arrays> {
    let of = |value: &ScanValue| {
        let (carry, dtype) = value.carry.as_ref()?;
        let is_first = |slot: Slot| slot == Slot { register: 0, part: 0 };
        let is_one = (0..context.runs.len())
            .all(|thread| (0..context.rows).filter_map(|row| carry.slot(thread, row as i64)).all(is_first));
        (is_one && carry.is_plain() && *dtype == value.dtype).then_some(carry.array)
    };
    context.values.iter().map(of).collect()
}
