use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::config::ShapeKey;
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "transpose_2d",
    about: "a matrix of m x n elements, transposed by tiles; m and n are known at launch",
    shape: &[
        ShapeKey { name: "m", default: 128, about: "rows of the matrix" },
        ShapeKey { name: "n", default: 256, about: "columns of the matrix" },
    ],
    dtypes: &[B32, B8, B16, B64, B128, F32],
    build: |config, _| transpose_2d(config),
    run_time: |_| &["m", "n"],
    inputs: |c| vec![HostTensor::pattern(c.dtype, &[c.size("m"), c.size("n")])],
    reference,
    tolerance: |_| Tolerance::EXACT,
    tested: &[
        (B8, &[]),
        (B16, &[]),
        (B64, &[]),
        (B128, &[]),
        (B8, &[("m", 33), ("n", 7)]),
        (B16, &[("m", 33), ("n", 7)]),
        (B32, &[("m", 33), ("n", 7)]),
        (B64, &[("m", 33), ("n", 7)]),
        (B128, &[("m", 33), ("n", 7)]),
        (B32, &[("m", 1), ("n", 300)]),
        (B32, &[("m", 100), ("n", 136)]),
        (B16, &[("m", 40), ("n", 72)]),
    ],
};

/// Warps of a CTA, each with its own tile; the tiles are side by side.
const WARPS: i64 = 4;

/// Rows and columns of the tile of one warp that moves through registers: whole sectors on both sides.
fn tile_of(dtype: DType) -> (i64, i64) {
    match dtype.bytes() {
        1 => (128, 64),
        2 => (64, 64),
        4 | 8 => (32, 32),
        _ => (32, 16),
    }
}

/// `b[c, r] = a[r, c]`. Where rows and columns begin at whole vectors, tiles move from `a` to `b` through registers
/// only; otherwise they go through shared memory. Elements beyond an edge are masked.
fn transpose_2d(config: &Config) -> Kernel {
    let (rows, cols) = tile_of(config.dtype);
    let bytes = config.dtype.bytes();
    let widest = |name: &str| bytes * multiple(config, name, rows);
    let has_vectors = widest("m").min(widest("n")) > bytes.max(2);
    if has_vectors { through_registers(config, rows, cols) } else { through_shared(config) }
}

/// The largest power of two that divides a size, up to `most`.
fn multiple(config: &Config, name: &str, most: i64) -> i64 {
    (config.size(name) & -config.size(name)).min(most)
}

/// Declares a size that is a multiple of a power of two up to `most`, as in the configuration, and at most the next
/// power of two.
fn size(k: &mut KernelBuilder, config: &Config, name: &str, most: i64) -> Size {
    let multiple = multiple(config, name, most);
    let above = (config.size(name) as u64).next_power_of_two();
    k.size(name).multiple_of(multiple).max((above as i64).min(i64::from(i32::MAX)))
}

fn through_registers(config: &Config, rows: i64, cols: i64) -> Kernel {
    kernel("transpose_2d", |k| {
        let m = size(k, config, "m", rows);
        let n = size(k, config, "n", WARPS * cols);
        let a = k.input("a", config.dtype, (m, n));
        let b = k.output("b", config.dtype, (n, m));
        let columns = k.transposed("columns", b, [1, 0]);
        let [y, x] = k.grid([m.ceil_div(rows), n.ceil_div(WARPS * cols)]);
        k.threads(32 * WARPS);
        let (r, c) = (y * rows, (x * WARPS + k.warp_id()) * cols);
        k.warp().permute_layout(columns.sub((at(r, rows), at(c, cols))), a.sub((at(r, rows), at(c, cols))));
    })
}

/// Rows and columns of the tile of one warp that moves through shared memory.
const TILE: i64 = 32;

fn through_shared(config: &Config) -> Kernel {
    kernel("transpose_2d", |k| {
        let m = size(k, config, "m", 1);
        let n = size(k, config, "n", 1);
        let a = k.input("a", config.dtype, (m, n));
        let b = k.output("b", config.dtype, (n, m));
        let [y, x] = k.grid([m.ceil_div(TILE), n.ceil_div(WARPS * TILE)]);
        k.threads(32 * WARPS);
        let (r, c) = (y * TILE, (x * WARPS + k.warp_id()) * TILE);
        let tile = k.shared("tile", config.dtype, [WARPS, TILE, TILE]);
        let columns = k.transposed("columns", tile, [0, 2, 1]);
        let warp = k.warp_id();
        k.warp().copy(tile.sub((warp, .., ..)), a.sub((at(r, TILE), at(c, TILE))));
        k.warp().copy(b.sub((at(c, TILE), at(r, TILE))), columns.sub((warp, .., ..)));
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let (m, n) = (config.size("m"), config.size("n"));
    let a = &inputs[0];
    vec![HostTensor::from_fn(config.dtype, &[n, m], |i| a.bits(i % m * n + i / m))]
}
