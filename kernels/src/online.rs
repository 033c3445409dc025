//! The maximum of a row of any length, and the sum of the exponentials of the distances from it, in one pass.

use tilewright::prelude::*;

/// How the threads of a CTA share a part of a row: each has vectors of adjacent elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Vectors of a thread.
    vectors: i64,
    /// Threads of the CTA.
    threads: i64,
    /// Elements of a vector.
    elements: i64,
}

impl Part {
    /// Two vectors of 16 bytes for each thread.
    pub(crate) fn of(threads: i64, dtype: DType) -> Part {
        Part { vectors: 2, threads, elements: 16 / dtype.bytes() }
    }

    fn extents(self) -> [i64; 3] {
        [self.vectors, self.threads, self.elements]
    }

    fn size(self) -> i64 {
        self.extents().iter().product()
    }
}

/// Less than any element, but a number: the exponential of its distance from itself is 1, and not NaN.
const LEAST: f64 = -3.0e38;

/// Maximum and sum, each a fragment of one element. Each thread has those of its own elements until the end of the row; a sum
/// is scaled where the maximum grows (Milakov and Gimelshein, 2018).
#[track_caller]
pub(crate) fn max_and_sum(k: &mut KernelBuilder, x: Buffer, row: Expr, cols: Size, part: Part) -> (Buffer, Buffer) {
    let Part { threads, elements, .. } = part;
    let mut result = None;
    k.op("max_and_sum", |k| {
        let v = k.fragment("v", F32, part.extents());
        let [own_max, before, own_sum] = ["own_max", "before", "own_sum"].map(|name| k.fragment(name, F32, [threads]));
        let [max, sum] = ["max", "sum"].map(|name| k.fragment(name, F32, [1]));
        k.fill(own_max, LEAST);
        k.fill(own_sum, 0.0);
        k.serial("first", (..cols).step(part.size()), |k, first| {
            k.map(v, |[u, i, e]| x.at((row, first + (u * threads + i) * elements + e)).cast(F32));
            k.copy(before, own_max);
            k.reduce(Max, own_max, v, [0, 2]).accumulate();
            k.map(v, |[u, i, e]| (v.at((u, i, e)) - own_max.at((i,))).fast_exp());
            k.map(own_sum, |[i]| own_sum.at((i,)) * (before.at((i,)) - own_max.at((i,))).fast_exp());
            k.reduce(Sum, own_sum, v, [0, 2]).accumulate();
        });
        k.reduce(Max, max, own_max, 0);
        k.map(own_sum, |[i]| own_sum.at((i,)) * (own_max.at((i,)) - max.at((0,))).fast_exp());
        k.reduce(Sum, sum, own_sum, 0);
        result = Some((max, sum));
    });
    result.expect("`op` runs its body")
}
