//! How often each byte occurs: each CTA counts its share in shared memory, and a second kernel adds the counts.

use tilewright::prelude::*;

/// The bytes that are counted together.
pub const BINS: i64 = 256;
/// Bins of a CTA of the second kernel.
const COLS: i64 = 64;

/// Row `cta` of `counts`, which is `ctas` x 256, counts the bytes of `x` from `cta*share` on, where `share` is
/// `count/ctas` rounded up.
pub fn histogram(count: i64, ctas: i64) -> Kernel {
    let share = (count + ctas - 1) / ctas;
    kernel("histogram", |k| {
        let x = k.input("x", U8, [count]);
        let counts = k.output("counts", I32, [ctas, BINS]);
        let [cta] = k.grid([ctas]);
        k.threads(128);
        let first = cta * share;
        let counted = k.shared("counted", I32, [BINS]);
        k.fill(counted, 0);
        k.parallel([share], |k, [i]| {
            let place = first + i;
            // Without this, what lies outside would count as 0.
            k.if_(Value::from(place).lt(count), |k| {
                k.atomic_add(counted, (x.at((place,)).cast(I32),), 1);
            });
        });
        k.copy(counts.sub((cta, ..)), counted);
    })
}

/// `y[bin]` is the sum of `counts[.., bin]`, of `ctas` rows.
pub fn totals(ctas: i64) -> Kernel {
    kernel("totals", |k| {
        let counts = k.input("counts", I32, [ctas, BINS]);
        let y = k.output("y", I32, [BINS]);
        let [cta] = k.grid([BINS / COLS]);
        k.threads(COLS);
        let bins = at(cta * COLS, COLS);
        let part = k.fragment("part", I32, [ctas, COLS]);
        let total = k.fragment("total", I32, [COLS]);
        k.copy(part, counts.sub((.., bins)));
        k.reduce(Sum, total, part, 0);
        k.copy(y.sub((bins,)), total);
    })
}

/// The rows of counts in plain Rust.
pub fn reference(x: &[u8], ctas: usize) -> Vec<i32> {
    let share = x.len().div_ceil(ctas);
    let mut counts = vec![0; ctas * BINS as usize];
    for (at, byte) in x.iter().enumerate() {
        counts[at / share * BINS as usize + usize::from(*byte)] += 1;
    }
    counts
}
