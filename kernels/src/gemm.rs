use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{THREADS, divisible};
use crate::numbers::listed;
use crate::products::{K, LAYOUT, M, N, Product, STAGES, STEP, TILE, product_of, stored_factors, transposed};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "gemm",
    about: "a matrix product: every CTA computes a square tile of the result",
    shape: &[M, N, K, LAYOUT, TILE, STEP, STAGES, THREADS],
    dtypes: &[F16, BF16, F32, I8, E4M3, E5M2],
    build: |config, _| gemm(config),
    run_time: |_| &["m", "n", "k"],
    inputs: stored_factors,
    reference,
    // Products of such inputs are exact, and so are their sums, in tf32 too.
    tolerance: |_| Tolerance::EXACT,
    tested: &[
        (F16, &[("m", 50), ("n", 72), ("k", 104), ("threads", 64)]),
        (BF16, &[("m", 70), ("n", 40), ("k", 72), ("layout", 12)]),
        (F16, &[("m", 33), ("n", 22), ("k", 11), ("layout", 21), ("tile", 32)]),
        (F32, &[("m", 40), ("n", 64), ("k", 64), ("layout", 22), ("tile", 32)]),
        (I8, &[("m", 1), ("n", 1), ("k", 1), ("layout", 12), ("tile", 32)]),
        (E4M3, &[("m", 100), ("n", 48), ("k", 200), ("layout", 12), ("step", 64)]),
        (E5M2, &[("m", 30), ("n", 50), ("k", 70), ("tile", 32)]),
    ],
};

fn gemm(config: &Config) -> Kernel {
    let [transpose_a, transpose_b] = transposed(config);
    let product = Product { transpose_a, transpose_b, ..Product::of(config) };
    let tile = product.tile;
    kernel("gemm", |k| {
        let [m, n, depth] = ["m", "n", "k"].map(|name| divisible(k, config, name));
        let a = k.input("a", product.dtype, if transpose_a { (depth, m) } else { (m, depth) });
        let b = k.input("b", product.dtype, if transpose_b { (n, depth) } else { (depth, n) });
        let c = k.output("c", product.sum_dtype(), (m, n));
        let [column, row] = k.grid([n.ceil_div(tile), m.ceil_div(tile)]);
        k.threads(config.size("threads"));
        let (rows, columns) = (at(row * tile, tile), at(column * tile, tile));
        let sums = product.sums(
            k,
            (Expr::from(0), depth.into()),
            |part| if transpose_a { a.sub((part, rows)) } else { a.sub((rows, part)) },
            |part| if transpose_b { b.sub((columns, part)) } else { b.sub((part, columns)) },
        );
        k.copy(c.sub((rows, columns)), sums);
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let shape = ["m", "n"].map(|name| config.size(name));
    vec![listed(Product::of(config).sum_dtype(), &shape, &product_of(config, inputs))]
}
