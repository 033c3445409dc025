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
        let dimension = self.rng.below(2);
        let carry = self.carries([src], dimension, k);
        let scan = k.scan(kind, src.buffer, src.buffer, dimension);
        let scan = if self.rng.percent(40) { scan.exclusive() } else { scan };
        let scan = if self.rng.percent(40) { scan.reverse() } else { scan };
        if let Some(carry) = carry {
            scan.carry(carry);
        }
    }

    /// Fragments that a scan of these goes on from, half of the time: earlier results of rows, or small numbers.
    fn carries<const N: usize>(
        &mut self,
        of: [Held; N],
        dimension: usize,
        k: &mut KernelBuilder,
    ) -> Option<[Buffer; N]> {
        if self.rng.percent(50) {
            return None;
        }
        let left = of[0].extents[1 - dimension];
        let mut taken: Vec<usize> = Vec::new();
        Some(of.map(|src| {
            let fits = |held: &Held| {
                held.is_flat && held.dtype == src.dtype && held.extents[1] == left && !taken.contains(&held.storage)
            };
            let known: Vec<Held> = self.held().into_iter().filter(fits).collect();
            if !known.is_empty() && self.rng.percent(60) {
                let carry = *self.rng.pick(&known);
                taken.push(carry.storage);
                return carry.buffer;
            }
            let name = self.name("carry");
            let buffer = k.fragment(&name, src.dtype, [left]);
            let value = self.small(src.dtype);
            k.fill(buffer, value);
            let (storage, extents) = (1000 + self.names, [1, left]);
            self.names += 1;
            let (dtype, role) = (src.dtype, self.role);
            self.fragments.push(Held { buffer, dtype, extents, is_flat: true, stages: 0, storage, role });
            taken.push(storage);
            buffer
        }))
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

    /// Two fragments with the same extents, and a function that combines their elements to the same bits in any order.
    fn pair(&mut self) -> Option<([Held; 2], Exact)> {
        let has_words = |held: &Held| !held.is_flat && held.dtype.bytes() >= 4;
        let wide: Vec<Held> = self.held().into_iter().filter(has_words).collect();
        if wide.is_empty() {
            return None;
        }
        let first = *self.rng.pick(&wide);
        let same: Vec<Held> = wide.into_iter().filter(|held| held.extents == first.extents).collect();
        let alike: Vec<Held> = same.iter().copied().filter(|held| held.dtype == first.dtype).collect();
        let is_integer = !first.dtype.is_float();
        let integers: Vec<Held> = same.iter().copied().filter(|held| !held.dtype.is_float()).collect();
        let (second, function) = match self.rng.below(3) {
            0 if is_integer => (*self.rng.pick(&alike), Exact::Fractions),
            1 if is_integer => (*self.rng.pick(&integers), Exact::Greatest),
            _ => (*self.rng.pick(&same), Exact::Apart(self.rng.below(2))),
        };
        Some(([first, second], function))
    }

    /// Tuples are scanned, in place or to fragments of their own.
    pub(super) fn scan_by(&mut self, k: &mut KernelBuilder) {
        let Some((sources, function)) = self.pair() else { return };
        // In a scan, tuples keep their order.
        let is_integer = |src: &Held| !src.dtype.is_float();
        let ordered = sources[0].dtype == sources[1].dtype && sources.iter().all(is_integer);
        let function = if ordered && self.rng.percent(50) { Exact::Steps } else { function };
        let [first, second] = sources.map(|src| src.buffer);
        let is_in_place = sources[0].storage != sources[1].storage && self.rng.percent(50);
        let results = if is_in_place {
            [first, second]
        } else {
            sources.map(|src| {
                let name = self.name("run");
                k.fragment(&name, src.dtype, src.extents)
            })
        };
        let identity = function.identity(sources.map(|src| src.dtype));
        let dimension = self.rng.below(2);
        let carries = self.carries(sources, dimension, k);
        let scan = k.scan_by(results, [first, second], dimension, identity, |a, b| function.of(a, b));
        let scan = if self.rng.percent(40) { scan.exclusive() } else { scan };
        let scan = if self.rng.percent(40) { scan.reverse() } else { scan };
        if let Some(carries) = carries {
            scan.carry(carries);
        }
        if is_in_place {
            return;
        }
        for (buffer, src) in results.into_iter().zip(sources) {
            let storage = 1000 + self.names;
            self.names += 1;
            let (dtype, extents, role) = (src.dtype, src.extents, self.role);
            self.fragments.push(Held { buffer, dtype, extents, is_flat: false, stages: 0, storage, role });
        }
    }

    /// Tuples of elements are combined along a dimension.
    pub(super) fn reduce_by(&mut self, k: &mut KernelBuilder) {
        let Some((sources, function)) = self.pair() else { return };
        let dimension = self.rng.below(2);
        let left = sources[0].extents[1 - dimension];
        let results = sources.map(|src| {
            let name = self.name("tup");
            k.fragment(&name, src.dtype, [left])
        });
        let accumulates = self.rng.percent(40);
        if accumulates {
            for (result, src) in results.into_iter().zip(sources) {
                let value = self.small(src.dtype);
                k.fill(result, value);
            }
        }
        let identity = function.identity(sources.map(|src| src.dtype));
        let reduced =
            k.reduce_by(results, sources.map(|src| src.buffer), dimension, identity, |a, b| function.of(a, b));
        if accumulates {
            reduced.accumulate();
        }
        for (buffer, src) in results.into_iter().zip(sources) {
            let (storage, extents) = (1000 + self.names, [1, left]);
            self.names += 1;
            let (dtype, role) = (src.dtype, self.role);
            self.fragments.push(Held { buffer, dtype, extents, is_flat: true, stages: 0, storage, role });
        }
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

/// A function of two pairs whose result is the same to the bit however they are grouped.
#[derive(Clone, Copy)]
enum Exact {
    /// Two steps `x -> a*x + b` as one: the order matters.
    Steps,
    /// The sum of two fractions, as numerator and denominator.
    Fractions,
    /// The greater first value; of equal ones, the lesser second value.
    Greatest,
    /// The maximum and the minimum, or the other way round.
    Apart(usize),
}

impl Exact {
    fn of(self, [a, b]: [Value; 2], [c, d]: [Value; 2]) -> [Value; 2] {
        match self {
            Exact::Steps => [a * c, c * b + d],
            Exact::Fractions => [a * d + c * b, b * d],
            Exact::Greatest => {
                let is_later = c.gt(a) | (c.eq(a) & d.lt(b));
                [is_later.select(c, a), is_later.select(d, b)]
            }
            Exact::Apart(0) => [a.max(c), b.min(d)],
            Exact::Apart(_) => [a.min(c), b.max(d)],
        }
    }

    /// The pair that changes no other. Of floats it is NaN, which a maximum ignores.
    fn identity(self, dtypes: [DType; 2]) -> [Scalar; 2] {
        let end = |dtype: DType, is_most: bool| match dtype.integers() {
            None => Scalar::Float(f64::NAN),
            Some((least, most)) => Scalar::Int(if is_most { most } else { least } as i64),
        };
        match self {
            Exact::Steps => [Scalar::Int(1), Scalar::Int(0)],
            Exact::Fractions => [Scalar::Int(0), Scalar::Int(1)],
            Exact::Greatest | Exact::Apart(0) => [end(dtypes[0], false), end(dtypes[1], true)],
            Exact::Apart(_) => [end(dtypes[0], true), end(dtypes[1], false)],
        }
    }
}
