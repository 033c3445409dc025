use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::THREADS;
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "transpose_nd",
    about: "a tensor of three dimensions with its dimensions in another order",
    shape: &[
        ShapeKey { name: "a", default: 4, about: "extent of dimension 0" },
        ShapeKey { name: "b", default: 70, about: "extent of dimension 1" },
        ShapeKey { name: "c", default: 64, about: "extent of dimension 2" },
        ShapeKey { name: "order", default: 201, about: "three digits: which dimension comes first, second and last" },
        THREADS,
    ],
    dtypes: &[F16, BF16, F32, I8],
    build: |config, _| transpose_nd(config),
    run_time: |_| &["a", "b", "c"],
    inputs: |c| vec![scattered(c.dtype, &["a", "b", "c"].map(|name| c.size(name)), 1)],
    reference,
    tolerance: |_| Tolerance::EXACT,
    tested: &[
        (F32, &[("a", 1), ("b", 1), ("c", 1), ("order", 210)]),
        (F32, &[("a", 33), ("b", 5), ("c", 66), ("order", 210)]),
        (I8, &[("a", 3), ("b", 40), ("c", 129), ("order", 21), ("threads", 96)]),
        (F16, &[("a", 9), ("b", 37), ("c", 20), ("order", 102)]),
        (F16, &[("a", 40), ("b", 3), ("c", 64), ("order", 120)]),
        (BF16, &[("a", 5), ("b", 6), ("c", 70), ("order", 12)]),
    ],
};

/// Rows and columns of a tile.
const TILE: i64 = 32;

/// The dimensions of the input in the order of the output.
fn order(config: &Config) -> [usize; 3] {
    let order = config.size("order");
    [order / 100, order / 10 % 10, order % 10].map(|dimension| (dimension as usize).min(2))
}

/// A CTA moves a tile of the dimensions that are last in the input and in the output. Where these are two, it goes through
/// shared memory, so that rows are read and written along memory.
fn transpose_nd(config: &Config) -> Kernel {
    let (dtype, order) = (config.dtype, order(config));
    let last = order[2];
    // The other side of the tile: where the last dimension stays the last one, the one before it.
    let side = if last == 2 { 1 } else { last };
    let outer = 1 - side;
    kernel("transpose_nd", |k| {
        let sizes = ["a", "b", "c"].map(|name| k.size(name).max(65_535));
        let x = k.input("x", dtype, (sizes[0], sizes[1], sizes[2]));
        let y = k.output("y", dtype, (sizes[order[0]], sizes[order[1]], sizes[order[2]]));
        let [column, row, layer] = k.grid([sizes[2].ceil_div(TILE), sizes[side].ceil_div(TILE), sizes[outer].into()]);
        k.threads(config.size("threads"));
        let mut part = [Index::from(layer), Index::from(layer), at(column * TILE, TILE)];
        part[side] = at(row * TILE, TILE);
        let [from, to] = [[0, 1, 2], order].map(|order| order.map(|dimension| part[dimension]));
        if last == 2 {
            k.copy(y.sub(to), x.sub(from));
        } else {
            let tile = k.shared("tile", dtype, [TILE, TILE]);
            let turned = k.transposed("turned", tile, [1, 0]);
            k.copy(tile, x.sub(from));
            k.copy(y.sub(to), turned);
        }
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let (x, shape, order) = (elements(&inputs[0]), inputs[0].shape(), order(config));
    let [rows, cols] = [shape[order[1]], shape[order[2]]];
    let element = |at: i64| {
        let mut index = [0; 3];
        [at / cols / rows, at / cols % rows, at % cols].into_iter().zip(order).for_each(|(i, to)| index[to] = i);
        x[((index[0] * shape[1] + index[1]) * shape[2] + index[2]) as usize]
    };
    let y: Vec<f64> = (0..x.len() as i64).map(element).collect();
    vec![listed(config.dtype, &order.map(|dimension| shape[dimension]), &y)]
}
