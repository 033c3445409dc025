//! Random reductions, scans and extremes.

use tilewright::prelude::*;

use super::maker::{Held, Maker};

impl Maker<'_> {
    pub(super) fn scan(&mut self, k: &mut KernelBuilder) {
        let wide: Vec<Held> = self.held().into_iter().filter(|f| !f.is_flat).collect();
        if wide.is_empty() {
            return;
        }
        let src = *self.rng.pick(&wide);
        let kinds = [Max, Min, AbsMax, Sum, Xor];
        let kind = *self.rng.pick(&kinds[..if src.dtype.is_float() { 3 } else { 5 }]);
        let scan = k.scan(kind, src.buffer, src.buffer, self.rng.below(2));
        let scan = if self.rng.percent(40) { scan.exclusive() } else { scan };
        if self.rng.percent(40) {
            scan.reverse();
        }
    }

    pub(super) fn reduce(&mut self, k: &mut KernelBuilder) {
        let wide: Vec<Held> = self.held().into_iter().filter(|f| !f.is_flat).collect();
        if wide.is_empty() {
            return;
        }
        let src = *self.rng.pick(&wide);
        let dimension = self.rng.below(2);
        let is_whole = self.rng.percent(15);
        let left = if is_whole { 1 } else { src.extents[1 - dimension] };
        let name = self.name("red");
        let dst = k.fragment(&name, src.dtype, [left]);
        let exact = [Max, Min, AbsMax];
        let all = [Sum, Max, Min, AbsMax, Product, And, Or, Xor];
        let kind = *self.rng.pick(if src.dtype.is_float() { &exact[..] } else { &all[..] });
        if !is_whole && self.rng.percent(25) {
            return self.extreme(k, src, dst, dimension);
        }
        if is_whole {
            k.reduce(kind, dst, src.buffer, [0, 1]);
        } else {
            k.reduce(kind, dst, src.buffer, dimension);
        }
        let storage = 1000 + self.names;
        let extents = [1, left];
        self.fragments.push(Held {
            buffer: dst,
            dtype: src.dtype,
            extents,
            is_flat: true,
            stages: 0,
            storage,
            role: self.role,
        });
    }

    /// The extreme elements of rows, and where they are.
    fn extreme(&mut self, k: &mut KernelBuilder, src: Held, values: Buffer, dimension: usize) {
        let extents = [1, src.extents[1 - dimension]];
        let name = self.name("places");
        let places = k.fragment(&name, I32, [extents[1]]);
        if self.rng.percent(50) {
            k.argmax(values, places, src.buffer, dimension);
        } else {
            k.argmin(values, places, src.buffer, dimension);
        }
        for (buffer, dtype) in [(values, src.dtype), (places, I32)] {
            let storage = 1000 + self.names;
            self.names += 1;
            self.fragments.push(Held { buffer, dtype, extents, is_flat: true, stages: 0, storage, role: self.role });
        }
    }
}
