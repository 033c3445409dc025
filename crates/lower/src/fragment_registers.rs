//! Which thread holds which elements of a fragment, and in which registers.

use std::collections::BTreeMap;

use tilewright_ir::Handle;
use tilewright_ir::thread::{RegArray, Value as ThreadValue};
use tilewright_ir::tile::{Buffer, Kernel};
use tilewright_layout::DType;
use tilewright_layout::map::Map;

/// A fragment in registers.
pub(crate) struct FragmentRegisters {
    pub(crate) array: Handle<RegArray>,
    /// Elements of the fragment per register: more than one where a view of it has wider elements.
    ratio: i64,
    /// Type of an element.
    dtype: DType,
    /// Type of a register.
    register: DType,
    /// Number of elements of the fragment.
    elements: i64,
    /// By thread, its elements in ascending order, each with its slot; of several slots, the first. Statements read and
    /// write no others.
    slots: Vec<Vec<(u32, u32)>>,
}

/// A register, and which part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) register: i64,
    /// Position in the register, in elements.
    pub(crate) part: i64,
}

/// The slots that hold what threads need.
#[derive(Debug)]
pub(crate) struct HeldSlots {
    /// By slot as in [`FragmentRegisters::slot`], the threads whose elements are there.
    pub(crate) threads: BTreeMap<Slot, Vec<bool>>,
    /// The first thread that does not hold its element, and the element, of those that are in bounds.
    pub(crate) missing: Option<(usize, i64)>,
}

impl FragmentRegisters {
    /// A fragment in an array of registers of this type. The map is that of the fragment that owns the storage.
    pub(crate) fn of(
        kernel: &Kernel,
        handle: Handle<Buffer>,
        map: &Map,
        (array, register): (Handle<RegArray>, DType),
    ) -> FragmentRegisters {
        let buffer = &kernel.buffers[handle];
        let owner = &kernel.buffers[kernel.storage(handle)];
        // An element of the owner is several elements of a narrower view, or part of an element of a wider view.
        let narrower = (owner.dtype.bytes() / buffer.dtype.bytes()).max(1) as usize;
        let wider = (buffer.dtype.bytes() / owner.dtype.bytes()).max(1) as usize;
        let mut slots: Vec<Vec<(u32, u32)>> = vec![Vec::new(); map.threads()];
        for (thread, slot, element) in map.entries() {
            for part in 0..narrower {
                let (element, slot) = ((element * narrower + part) / wider, (slot * narrower + part) / wider);
                slots[thread].push((element as u32, slot as u32));
            }
        }
        for list in &mut slots {
            list.sort_unstable();
            list.dedup_by_key(|(element, _)| *element);
        }
        let ratio = (register.bytes() / buffer.dtype.bytes()).max(1);
        let elements = buffer.shape.iter().product();
        FragmentRegisters { array, ratio, dtype: buffer.dtype, register, elements, slots }
    }

    /// The slot in which a thread holds an element; `None` if it does not hold it.
    pub(crate) fn slot(&self, thread: usize, element: i64) -> Option<Slot> {
        let list = &self.slots[thread];
        let at = list.partition_point(|(known, _)| i64::from(*known) < element);
        let (_, slot) = list.get(at).filter(|(known, _)| i64::from(*known) == element)?;
        Some(self.place(*slot as usize))
    }

    /// The map from threads and slots to elements, of which there are `elements`; slots count elements.
    pub(crate) fn map(&self, elements: usize) -> Map {
        let mut map = Map::empty(self.slots.len(), elements);
        for (thread, list) in self.slots.iter().enumerate() {
            for (element, slot) in list {
                map.put(thread, *slot as usize, *element as usize);
            }
        }
        map
    }

    /// The register and part of a slot, where slots count elements.
    pub(crate) fn place(&self, slot: usize) -> Slot {
        let slot = slot as i64;
        Slot { register: slot / self.ratio, part: slot % self.ratio }
    }

    /// The value in slot number `slot`, where slots count elements.
    pub(crate) fn in_slot(&self, slot: usize) -> ThreadValue {
        self.read(self.place(slot))
    }

    /// The number of elements of the fragment.
    pub(crate) fn elements(&self) -> i64 {
        self.elements
    }

    /// The slots that hold the element that each thread needs, if it needs one.
    pub(crate) fn held_slots(&self, elements: impl Iterator<Item = Option<i64>>) -> HeldSlots {
        let mut held = HeldSlots { threads: BTreeMap::new(), missing: None };
        let mut found = Vec::with_capacity(self.slots.len());
        // Threads mostly have what they need at the same place of their lists, so that is where to look first.
        let mut usual = 0;
        for (thread, element) in elements.enumerate().filter_map(|(thread, element)| Some((thread, element?))) {
            let list = &self.slots[thread];
            let is_at = |at: usize| list.get(at).is_some_and(|(known, _)| i64::from(*known) == element);
            if !is_at(usual) {
                usual = list.partition_point(|(known, _)| i64::from(*known) < element);
            }
            if is_at(usual) {
                found.push((thread, list[usual].1));
            } else if held.missing.is_none() && (0..self.elements).contains(&element) {
                held.missing = Some((thread, element));
            }
        }
        for run in found.chunk_by(|(_, slot), (_, next)| slot == next) {
            let slot = self.place(run[0].1 as usize);
            let threads = held.threads.entry(slot).or_insert_with(|| vec![false; self.slots.len()]);
            run.iter().for_each(|(thread, _)| threads[*thread] = true);
        }
        held
    }

    /// Whether each register holds exactly one element, of the same type.
    pub(crate) fn is_plain(&self) -> bool {
        self.dtype == self.register
    }

    /// The value in a slot.
    pub(crate) fn read(&self, slot: Slot) -> ThreadValue {
        let register = ThreadValue::reg(self.array, slot.register);
        match (self.is_plain(), self.ratio) {
            (true, _) => register,
            (false, 1) => ThreadValue::Bits(self.dtype, Box::new(register)),
            (false, _) => ThreadValue::Part(self.dtype, Box::new(register), slot.part),
        }
    }

    /// The new value of a slot's register when the slot is set to `value`.
    pub(crate) fn written(&self, slot: Slot, value: ThreadValue) -> ThreadValue {
        match (self.is_plain(), self.ratio) {
            (true, _) => value,
            (false, 1) => ThreadValue::Bits(self.register, Box::new(value)),
            (false, _) => {
                let register = ThreadValue::reg(self.array, slot.register);
                ThreadValue::With(Box::new(register), slot.part, Box::new(value))
            }
        }
    }
}
