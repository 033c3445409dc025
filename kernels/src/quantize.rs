use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{COLS, ROWS, THREADS, ceil_div, divisible};
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const INT8: KernelEntry = KernelEntry {
    name: "quantize_int8",
    about: "every row as 8-bit integers and one scale: its greatest absolute value is 127",
    shape: &[ROWS, COLS, THREADS],
    dtypes: &[F16, BF16, F32],
    build: |config, _| by_rows("quantize_int8", config, Quantized::INT8),
    run_time: |_| &["rows", "cols"],
    inputs: |c| vec![scattered(c.dtype, &[c.size("rows"), c.size("cols")], 1)],
    reference: |config, inputs| Quantized::INT8.reference(config, inputs, config.size("cols")),
    // The reference rounds to f32 where the kernel does.
    tolerance: |_| Tolerance::EXACT,
    tested: &[
        (F32, &[("rows", 1), ("cols", 1)]),
        (BF16, &[("rows", 3), ("cols", 5000), ("threads", 96)]),
        (F32, &[("rows", 7), ("cols", 13), ("threads", 32)]),
    ],
};

pub(crate) const FP8: KernelEntry = KernelEntry {
    name: "quantize_fp8",
    about: "every row as 8-bit floats (e4m3) and one scale: its greatest absolute value is 448",
    build: |config, _| by_rows("quantize_fp8", config, Quantized::FP8),
    reference: |config, inputs| Quantized::FP8.reference(config, inputs, config.size("cols")),
    ..INT8
};

pub(crate) const INT8_BLOCKS: KernelEntry = KernelEntry {
    name: "quantize_int8_blocks",
    about: "8-bit integers, and a scale for each 128 columns of a row",
    build: |config, _| by_blocks("quantize_int8_blocks", config, Quantized::INT8),
    reference: |config, inputs| Quantized::INT8.reference(config, inputs, BLOCK),
    ..INT8
};

pub(crate) const FP8_BLOCKS: KernelEntry = KernelEntry {
    name: "quantize_fp8_blocks",
    about: "8-bit floats (e4m3), and a scale for each 128 columns of a row",
    build: |config, _| by_blocks("quantize_fp8_blocks", config, Quantized::FP8),
    reference: |config, inputs| Quantized::FP8.reference(config, inputs, BLOCK),
    ..INT8
};

/// Elements of a row that a thread holds.
const EACH: i64 = 8;
/// Columns that share a scale.
const BLOCK: i64 = 128;

/// What numbers become.
#[derive(Clone, Copy)]
struct Quantized {
    dtype: DType,
    /// What the greatest absolute value becomes.
    greatest: f64,
}

impl Quantized {
    const INT8: Quantized = Quantized { dtype: I8, greatest: 127.0 };
    const FP8: Quantized = Quantized { dtype: E4M3, greatest: 448.0 };

    /// A number, divided by its scale.
    fn of(self, number: Value, inverse: Value) -> Value {
        let divided = number.cast(F32) * inverse;
        if self.dtype.is_float() { divided.cast(self.dtype) } else { divided.round_ties_even().cast(self.dtype) }
    }

    /// The scales of maxima, and their reciprocals. Zeros have the scale 0, and no reciprocal.
    fn scales(self, k: &mut KernelBuilder, most: Buffer, count: i64) -> [Buffer; 2] {
        let [scale, inverse] = ["scale", "inverse"].map(|name| k.fragment(name, F32, [count]));
        k.map(scale, |[i]| most.at((i,)).cast(F32) * (1.0 / self.greatest));
        k.map(inverse, |[i]| scale.at((i,)).gt(0.0).select(1.0 / scale.at((i,)), 0.0));
        [scale, inverse]
    }

    /// The same in plain Rust, where `width` columns of a row share a scale.
    fn reference(self, config: &Config, inputs: &[HostTensor], width: i64) -> Vec<HostTensor> {
        let [rows, cols] = ["rows", "cols"].map(|name| config.size(name));
        let (mut quantized, mut scales) = (Vec::new(), Vec::new());
        for row in elements(&inputs[0]).chunks(cols as usize) {
            for part in row.chunks(width as usize) {
                let most = part.iter().map(|x| x.abs()).fold(0.0, f64::max) as f32;
                let scale = most * (1.0 / self.greatest) as f32;
                let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
                let divided = part.iter().map(|x| *x as f32 * inverse);
                let rounded = divided.map(|x| if self.dtype.is_float() { x } else { x.round_ties_even() });
                quantized.extend(rounded.map(f64::from));
                scales.push(f64::from(scale));
            }
        }
        vec![listed(self.dtype, &[rows, cols], &quantized), listed(F32, &[rows, ceil_div(cols, width)], &scales)]
    }
}

/// A CTA reads its row twice, the second time from the cache: for the greatest absolute value, and to divide by it.
fn by_rows(name: &str, config: &Config, quantized: Quantized) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    let tile = threads * EACH;
    kernel(name, |k| {
        let (rows, cols) = (k.size("rows"), divisible(k, config, "cols"));
        let x = k.input("x", dtype, (rows, cols));
        let q = k.output("q", quantized.dtype, (rows, cols));
        let scales = k.output("scales", F32, (rows, 1));
        let [row] = k.grid([rows]);
        k.threads(threads);
        let v = k.fragment("v", dtype, [tile]);
        let most = k.fragment("most", dtype, [1]);
        k.fill(most, 0.0);
        k.serial("t", ..cols.ceil_div(tile), |k, t| {
            k.copy(v, x.sub((row, at(t * tile, tile))));
            k.reduce(AbsMax, most, v, 0).accumulate();
        });
        let [scale, inverse] = quantized.scales(k, most, 1);
        k.copy(scales.sub((row, ..)), scale);
        k.serial("s", ..cols.ceil_div(tile), |k, s| {
            let part = (row, at(s * tile, tile));
            k.copy(v, x.sub(part));
            k.parallel([tile], |k, [i]| k.store(q, (row, s * tile + i), quantized.of(v.at((i,)), inverse.at((0,)))));
        });
    })
}

/// A CTA holds some blocks of a row in registers.
fn by_blocks(name: &str, config: &Config, quantized: Quantized) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    let blocks = ceil_div(threads * EACH, BLOCK);
    kernel(name, |k| {
        let (rows, cols) = (k.size("rows"), divisible(k, config, "cols"));
        let x = k.input("x", dtype, (rows, cols));
        let q = k.output("q", quantized.dtype, (rows, cols));
        let scales = k.output("scales", F32, (rows, cols.ceil_div(BLOCK)));
        let [row, side] = k.grid([rows.into(), cols.ceil_div(blocks * BLOCK)]);
        k.threads(threads);
        let v = k.fragment("v", dtype, [blocks, BLOCK]);
        let most = k.fragment("most", dtype, [blocks]);
        let column = |b: Expr, i: Expr| (side * blocks + b) * BLOCK + i;
        k.map(v, |[b, i]| x.at((row, column(b, i))));
        k.reduce(AbsMax, most, v, 1);
        let [scale, inverse] = quantized.scales(k, most, blocks);
        k.parallel([blocks, BLOCK], |k, [b, i]| {
            k.store(q, (row, column(b, i)), quantized.of(v.at((b, i)), inverse.at((b,))));
        });
        k.copy(scales.sub((row, at(side * blocks, blocks))), scale);
    })
}
