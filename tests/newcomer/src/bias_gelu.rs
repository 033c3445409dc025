//! `gelu(x + bias) + residual`, of f16 with arithmetic in f32, for any number of rows and columns.

use std::f64::consts::PI;

use tilewright::prelude::*;

const ROWS: i64 = 8;
const COLS: i64 = 64;

/// `x`, `residual` and `y` are `rows` x `cols`, which are known at launch; `bias` has `cols` elements.
pub fn bias_gelu() -> Kernel {
    kernel("bias_gelu", |k| {
        let rows = k.size("rows").max(1 << 16);
        let cols = k.size("cols").max(1 << 14);
        let x = k.input("x", F16, (rows, cols));
        let bias = k.input("bias", F16, (cols,));
        let residual = k.input("residual", F16, (rows, cols));
        let y = k.output("y", F16, (rows, cols));
        let [down, across] = k.grid([rows.ceil_div(ROWS), cols.ceil_div(COLS)]);
        k.threads(128);
        k.parallel([ROWS, COLS], |k, [i, j]| {
            let (row, column) = (down * ROWS + i, across * COLS + j);
            let z = k.named("z", x.at((row, column)).cast(F32) + bias.at((column,)).cast(F32));
            let sum = gelu(z) + residual.at((row, column)).cast(F32);
            k.store(y, (row, column), sum.cast(F16));
        });
    })
}

/// By tanh.
fn gelu(z: Value) -> Value {
    let cubic = z * z * z * 0.044715;
    let inner = (z + cubic) * (2.0 / PI).sqrt();
    z * 0.5 * (inner.tanh() + 1.0)
}

/// The same in plain Rust, row-major.
pub fn reference(x: &[f32], bias: &[f32], residual: &[f32]) -> Vec<f32> {
    let gelu = |z: f64| 0.5 * z * (1.0 + ((2.0 / PI).sqrt() * (z + 0.044715 * z * z * z)).tanh());
    let rows = x.chunks(bias.len()).zip(residual.chunks(bias.len()));
    rows.flat_map(|(x, residual)| {
        x.iter().zip(bias).zip(residual).map(|((x, bias), residual)| gelu(f64::from(x + bias)) as f32 + residual)
    })
    .collect()
}
