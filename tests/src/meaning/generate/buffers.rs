//! What buffers begin with, how long they are used, and what becomes an output.

use tilewright::prelude::*;

use super::maker::{Held, Maker};

impl Maker<'_> {
    /// Initializes a buffer.
    pub(super) fn start(&mut self, k: &mut KernelBuilder, held: Held) {
        let from = self.inputs.iter().copied().find(|x| x.dtype == held.dtype && x.extents == held.extents);
        match from.filter(|_| held.stages == 0 && self.rng.percent(60)) {
            Some(from) => {
                k.copy(held.buffer, from.buffer);
            }
            None => {
                let value = self.small(held.dtype);
                let is_fragment = self.fragments.iter().any(|fragment| fragment.buffer == held.buffer);
                // The rest of a fragment is 0.
                if is_fragment && self.rng.percent(25) {
                    let [rows, columns] = held.extents;
                    let part = match held.is_flat {
                        true => vec![at(0, self.rng.within(1..=rows * columns))],
                        false => vec![at(0, self.rng.within(1..=rows)), Index::All],
                    };
                    k.fill(held.buffer.sub(part), value);
                } else {
                    k.fill(held.buffer, value);
                }
            }
        }
    }

    /// A shared buffer that only the next steps use.
    pub(super) fn with_own_buffer(&mut self, k: &mut KernelBuilder, depth: usize) {
        let extents = self.rng.pick(&[self.outputs[0].extents, self.inputs[0].extents, [1, 40], [8, 32]]).to_owned();
        let (name, storage) = (self.name("own"), 2000 + self.names);
        let listed = if extents[0] == 1 { vec![extents[1]] } else { extents.to_vec() };
        let buffer = k.shared(&name, self.dtype, listed);
        let (dtype, is_flat) = (self.dtype, extents[0] == 1);
        let held = Held { buffer, dtype, extents, is_flat, stages: 0, storage, role: None };
        self.start(k, held);
        self.shared.push(held);
        (0..self.rng.within(1..=3)).for_each(|_| self.step(k, depth));
        self.shared.retain(|known| known.buffer != buffer);
    }

    /// Copies a fragment to outputs, if one fits.
    pub(super) fn finish(&mut self, k: &mut KernelBuilder) {
        for output in self.outputs.clone() {
            let mut fragments = self.fragments.iter().copied();
            let from = fragments.rfind(|f| f.dtype == output.dtype && f.extents == output.extents);
            if let Some(from) = from.filter(|_| self.rng.percent(70)) {
                let copy = |k: &mut KernelBuilder| _ = k.copy(output.buffer, from.buffer);
                match from.role {
                    None => copy(k),
                    Some(role) => self.in_role(k, role, |_, k| copy(k)),
                }
            }
        }
    }
}
