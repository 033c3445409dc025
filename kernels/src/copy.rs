use tilewright::prelude::*;
use tilewright::runtime::Tolerance;

use crate::blocks::{THREADS, divisible};
use crate::config::ShapeKey;
use crate::numbers::scattered;
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "copy",
    about: "a copy of a tensor, to measure the bandwidth of memory",
    shape: &[ShapeKey { name: "n", default: 16384, about: "number of elements" }, THREADS],
    dtypes: &[F32, F16, BF16, I8],
    build: |config, _| copy(config),
    run_time: |_| &["n"],
    inputs: |c| vec![scattered(c.dtype, &[c.size("n")], 1)],
    reference: |_, inputs| vec![inputs[0].clone()],
    tolerance: |_| Tolerance::EXACT,
    tested: &[(F16, &[("n", 1)]), (I8, &[("n", 4099), ("threads", 96)]), (BF16, &[("n", 5000), ("threads", 32)])],
};

/// Bytes of a thread.
const BYTES: i64 = 64;

fn copy(config: &Config) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    let tile = threads * BYTES / dtype.bytes();
    kernel("copy", |k| {
        let n = divisible(k, config, "n").max(1 << 30);
        let x = k.input("x", dtype, (n,));
        let y = k.output("y", dtype, (n,));
        let [block] = k.grid([n.ceil_div(tile)]);
        k.threads(threads);
        let part = (at(block * tile, tile),);
        k.copy(y.sub(part), x.sub(part));
    })
}
