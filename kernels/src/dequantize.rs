use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{ROWS, THREADS, ceil_div, divisible};
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "dequantize_int4",
    about: "a matrix of 4-bit integers, two in a byte, times a scale for each 128 columns of a row",
    shape: &[
        ROWS,
        ShapeKey { name: "bytes", default: 128, about: "bytes of a row, of which each holds two columns" },
        THREADS,
    ],
    dtypes: &[F16, BF16],
    build: |config, _| dequantize(config),
    run_time: |_| &["rows", "bytes"],
    inputs: |c| {
        let (rows, bytes) = (c.size("rows"), c.size("bytes"));
        let packed = HostTensor::from_f64(U8, &[rows, bytes], |at| ((at * at + at / 7) % 256) as f64);
        vec![packed, scattered(F32, &[rows, ceil_div(bytes, GROUP)], 1)]
    },
    reference,
    // Products are exact in f32, and are rounded once.
    tolerance: |_| Tolerance::EXACT,
    tested: &[
        (F16, &[("rows", 1), ("bytes", 1)]),
        (BF16, &[("rows", 3), ("bytes", 1000), ("threads", 96)]),
        (F16, &[("rows", 7), ("bytes", 67), ("threads", 32)]),
    ],
};

/// Bytes that share a scale.
const GROUP: i64 = 64;
/// Bytes of a thread.
const EACH: i64 = 4;

/// The low half of a byte is the even column. Integers are stored with 8 added to them.
fn dequantize(config: &Config) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    let tile = threads * EACH;
    kernel("dequantize_int4", |k| {
        let (rows, bytes) = (k.size("rows"), divisible(k, config, "bytes"));
        let packed = k.input("packed", U8, (rows, bytes));
        let scales = k.input("scales", F32, (rows, bytes.ceil_div(GROUP)));
        let y = k.output("y", dtype, (rows, bytes * 2));
        let [row, side] = k.grid([rows.into(), bytes.ceil_div(tile)]);
        k.threads(threads);
        k.parallel([tile], |k, [i]| {
            let byte = side * tile + i;
            let both = k.named("both", packed.at((row, byte)).cast(I32));
            let scale = k.named("scale", scales.at((row, byte / GROUP)));
            let number = |half: Value| ((half - 8).cast(F32) * scale).cast(dtype);
            k.store(y, (row, byte * 2), number(both & 15));
            k.store(y, (row, byte * 2 + 1), number(both >> 4));
        });
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let (rows, bytes) = (config.size("rows"), config.size("bytes"));
    let (packed, scales) = (elements(&inputs[0]), elements(&inputs[1]));
    let number = |at: i64| {
        let (row, column) = (at / (bytes * 2), at % (bytes * 2));
        let byte = packed[(row * bytes + column / 2) as usize] as i64;
        let half = if column % 2 == 0 { byte % 16 } else { byte / 16 };
        (half - 8) as f64 * scales[(row * ceil_div(bytes, GROUP) + column / 2 / GROUP) as usize]
    };
    let y: Vec<f64> = (0..rows * bytes * 2).map(number).collect();
    vec![listed(config.dtype, &[rows, bytes * 2], &y)]
}
