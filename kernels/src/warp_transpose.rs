use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::config::ShapeKey;
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "warp_transpose",
    about: "tiles of rows x cols elements, each transposed by one warp in shared memory",
    shape: &[
        ShapeKey { name: "rows", default: 32, about: "rows of a tile" },
        ShapeKey { name: "cols", default: 32, about: "columns of a tile" },
        ShapeKey { name: "tiles", default: 2, about: "tiles, one per CTA" },
    ],
    dtypes: &[B32, B8, B16, B64, B128, F32],
    build: |config, _| warp_transpose(config),
    run_time: |_| &[],
    inputs: |c| vec![HostTensor::pattern(c.dtype, &[c.size("tiles"), c.size("rows"), c.size("cols")])],
    reference,
    tolerance: |_| Tolerance::EXACT,
    tested: &[
        (B32, &[("rows", 4), ("cols", 32)]),
        (B32, &[("rows", 32), ("cols", 4)]),
        (B32, &[("rows", 8), ("cols", 32)]),
        (B32, &[("rows", 16), ("cols", 32)]),
        (B32, &[("rows", 32), ("cols", 16)]),
        (B32, &[("rows", 16), ("cols", 16)]),
        (B32, &[("rows", 8), ("cols", 8)]),
        (B32, &[("rows", 2), ("cols", 64)]),
        (B32, &[("rows", 64), ("cols", 16)]),
        (B32, &[("rows", 4), ("cols", 64)]),
        (B32, &[("rows", 4), ("cols", 128)]),
        (B32, &[("rows", 64), ("cols", 4)]),
        (B32, &[("rows", 64), ("cols", 2)]),
        (B32, &[("rows", 34), ("cols", 32)]),
        (B16, &[("rows", 12), ("cols", 10), ("tiles", 5)]),
        (B8, &[("rows", 4), ("cols", 32)]),
        (B8, &[]),
        (B16, &[]),
        (B64, &[]),
        (B128, &[]),
        (B8, &[("rows", 24), ("cols", 40)]),
        (B8, &[("rows", 36), ("cols", 44)]),
        (B8, &[("rows", 5), ("cols", 7)]),
        (B16, &[("rows", 6), ("cols", 10)]),
        (B16, &[("rows", 30), ("cols", 34)]),
        (B32, &[("rows", 24), ("cols", 40)]),
        (B32, &[("rows", 5), ("cols", 7)]),
        (B32, &[("rows", 1), ("cols", 1)]),
        (B64, &[("rows", 12), ("cols", 20)]),
        (B128, &[("rows", 13), ("cols", 9)]),
        (B16, &[("rows", 8), ("cols", 32)]),
        (B64, &[("rows", 8), ("cols", 16)]),
        (B128, &[("rows", 8), ("cols", 8)]),
        (F32, &[("rows", 8), ("cols", 16)]),
    ],
};

/// Each CTA copies a tile to shared memory, transposes it there in place with one warp, and copies it out.
fn warp_transpose(config: &Config) -> Kernel {
    let (rows, cols, tiles) = (config.size("rows"), config.size("cols"), config.size("tiles"));
    kernel("warp_transpose", |k| {
        let a = k.input("a", config.dtype, [tiles, rows, cols]);
        let b = k.output("b", config.dtype, [tiles, cols, rows]);
        let [t] = k.grid([tiles]);
        k.threads(32);
        let tile = k.shared("tile", config.dtype, S([rows, cols], [cols, 1]));
        let columns = k.view("columns", tile, S([rows, cols], [1, rows]));
        let transposed = k.view("transposed", tile, S([cols, rows], [rows, 1]));
        k.warp().copy(tile, a.sub((t, .., ..)));
        k.warp().permute_layout(columns, tile);
        k.warp().copy(b.sub((t, .., ..)), transposed);
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let (rows, cols, tiles) = (config.size("rows"), config.size("cols"), config.size("tiles"));
    let a = &inputs[0];
    let transposed = HostTensor::from_fn(config.dtype, &[tiles, cols, rows], |i| {
        let (t, c, r) = (i / (rows * cols), i / rows % cols, i % rows);
        a.bits(t * rows * cols + r * cols + c)
    });
    vec![transposed]
}
