use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::divisible;
use crate::config::ShapeKey;
use crate::numbers::{elements, listed};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "histogram",
    about: "how often each byte occurs: a CTA counts in shared memory, and adds its counts to those of all",
    shape: &[
        ShapeKey { name: "n", default: 8192, about: "number of bytes" },
        ShapeKey { name: "ctas", default: 4, about: "CTAs that share the bytes" },
        ShapeKey { name: "threads", default: 128, about: "threads of a CTA" },
    ],
    dtypes: &[U8],
    build: |config, _| histogram(config),
    run_time: |_| &["n"],
    inputs: |c| vec![HostTensor::from_f64(U8, &[c.size("n")], |at| ((at * at + at / 7) % 251) as f64)],
    reference,
    tolerance: |_| Tolerance::EXACT,
    tested: &[(U8, &[("n", 1)]), (U8, &[("n", 5001), ("ctas", 3), ("threads", 96)])],
};

const BINS: i64 = 256;
/// Bytes that a thread counts in one step.
const EACH: i64 = 8;

/// CTAs take tiles in turn. What lies beyond the last byte is not counted.
fn histogram(config: &Config) -> Kernel {
    let [ctas, threads] = ["ctas", "threads"].map(|name| config.size(name));
    let tile = threads * EACH;
    kernel("histogram", |k| {
        let n = divisible(k, config, "n").max(1 << 30);
        let x = k.input("x", U8, (n,));
        let counts = k.accumulator("counts", I32, [BINS]);
        let [cta] = k.grid([ctas]);
        k.threads(threads);
        let bins = k.shared("bins", I32, [BINS]);
        let (bytes, own) = (k.fragment("bytes", U8, [tile]), k.fragment("own", I32, [BINS]));
        k.fill(bins, 0);
        k.serial("first", (cta * tile, n).step(ctas * tile), |k, first| {
            k.copy(bytes, x.sub((at(first, tile),)));
            k.parallel([tile], |k, [i]| k.atomic_add(bins, (bytes.at((i,)),), 1));
        });
        k.copy(own, bins);
        k.atomic_add(counts, own);
    })
}

fn reference(_: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let mut counts = vec![0.0; BINS as usize];
    elements(&inputs[0]).into_iter().for_each(|byte| counts[byte as usize] += 1.0);
    vec![listed(I32, &[BINS], &counts)]
}
