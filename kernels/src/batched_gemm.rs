use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{THREADS, divisible};
use crate::config::ShapeKey;
use crate::numbers::listed;
use crate::products::{K, M, N, Product, STAGES, STEP, TILE, factors, multiplied};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "batched_gemm",
    about: "products of as many pairs of matrices as a batch has",
    shape: &[ShapeKey { name: "batch", default: 3, about: "pairs of matrices" }, M, N, K, TILE, STEP, STAGES, THREADS],
    dtypes: &[F16, BF16],
    build: |config, _| batched_gemm(config),
    run_time: |_| &["batch", "m", "n", "k"],
    inputs: |c| {
        let [batch, m, n, depth] = ["batch", "m", "n", "k"].map(|name| c.size(name));
        factors(c, &[batch, m, depth], &[batch, depth, n])
    },
    reference,
    // Products of such inputs are exact, and so are their sums.
    tolerance: |_| Tolerance::EXACT,
    tested: &[
        (F16, &[("batch", 1), ("m", 1), ("n", 1), ("k", 1)]),
        (BF16, &[("batch", 5), ("m", 50), ("n", 72), ("k", 40), ("threads", 64)]),
        (F16, &[("batch", 2), ("m", 33), ("n", 22), ("k", 11), ("tile", 32)]),
    ],
};

fn batched_gemm(config: &Config) -> Kernel {
    let product = Product::of(config);
    let tile = product.tile;
    kernel("batched_gemm", |k| {
        let batch = k.size("batch").max(65_535);
        let [m, n, depth] = ["m", "n", "k"].map(|name| divisible(k, config, name));
        let a = k.input("a", product.dtype, (batch, m, depth));
        let b = k.input("b", product.dtype, (batch, depth, n));
        let c = k.output("c", F32, (batch, m, n));
        let [column, row, pair] = k.grid([n.ceil_div(tile), m.ceil_div(tile), batch.into()]);
        k.threads(config.size("threads"));
        let (rows, columns) = (at(row * tile, tile), at(column * tile, tile));
        let all = (Expr::from(0), depth.into());
        let sums = product.sums(k, all, |part| a.sub((pair, rows, part)), |part| b.sub((pair, part, columns)));
        k.copy(c.sub((pair, rows, columns)), sums);
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let [batch, m, n, depth] = ["batch", "m", "n", "k"].map(|name| config.size(name));
    vec![listed(F32, &[batch, m, n], &multiplied([m, n, depth], [false; 2], inputs))]
}
