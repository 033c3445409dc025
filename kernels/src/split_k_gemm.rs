use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{THREADS, divisible};
use crate::config::ShapeKey;
use crate::numbers::listed;
use crate::products::{K, M, N, Product, STAGES, STEP, TILE, factors, multiplied};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "split_k_gemm",
    about: "a matrix product whose summed extent is divided among CTAs, which add their parts by atomics",
    shape: &[
        M,
        N,
        ShapeKey { default: 512, ..K },
        ShapeKey { name: "splits", default: 4, about: "CTAs that share a tile of the result" },
        TILE,
        STEP,
        STAGES,
        THREADS,
    ],
    dtypes: &[F16, BF16],
    build: |config, _| split_k_gemm(config),
    run_time: |_| &["m", "n", "k"],
    inputs: |c| {
        let [m, n, depth] = ["m", "n", "k"].map(|name| c.size(name));
        factors(c, &[m, depth], &[depth, n])
    },
    reference,
    // Products of such inputs are exact, and so are their sums in any order.
    tolerance: |_| Tolerance::EXACT,
    tested: &[
        (F16, &[("m", 1), ("n", 1), ("k", 1)]),
        (BF16, &[("m", 50), ("n", 72), ("k", 1000), ("threads", 64)]),
        (F16, &[("m", 33), ("n", 22), ("k", 111), ("splits", 3), ("tile", 32)]),
    ],
};

/// The parts of K are whole steps; the last ones may be empty.
fn split_k_gemm(config: &Config) -> Kernel {
    let (product, step, splits) = (Product::of(config), config.size("step"), config.size("splits"));
    let tile = product.tile;
    kernel("split_k_gemm", |k| {
        let [m, n, depth] = ["m", "n", "k"].map(|name| divisible(k, config, name));
        let a = k.input("a", product.dtype, (m, depth));
        let b = k.input("b", product.dtype, (depth, n));
        let c = k.accumulator("c", F32, (m, n));
        let [column, row, split] = k.grid([n.ceil_div(tile), m.ceil_div(tile), Expr::from(splits)]);
        k.threads(config.size("threads"));
        let (rows, columns) = (at(row * tile, tile), at(column * tile, tile));
        let part = depth.ceil_div(step * splits) * step;
        let own = ((split * part).at_most(depth), ((split + 1) * part).at_most(depth));
        let sums = product.sums(k, own, |part| a.sub((rows, part)), |part| b.sub((part, columns)));
        k.atomic_add(c.sub((rows, columns)), sums);
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let [m, n, depth] = ["m", "n", "k"].map(|name| config.size(name));
    vec![listed(F32, &[m, n], &multiplied([m, n, depth], [false; 2], inputs))]
}
